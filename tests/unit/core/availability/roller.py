"""What Strimzi's roller asks of Kafka before it restarts a node, restated plainly.

KafkaQuorumCheck and KafkaAvailability of Strimzi 1.x, from their behaviour. A test's oracle: what
they refuse, we must refuse.
"""

from core.views import ClusterView, PartitionView

FETCH_TIMEOUT_SECONDS = 2.0


def quorum_lets_go(node_id: int, view: ClusterView) -> bool:
    """KafkaQuorumCheck: asked of a node with the controller role."""
    if view.quorum_leader is None or view.stale:
        return False
    caught_up = {
        voter.node_id
        for voter in view.voters
        if voter.node_id == view.quorum_leader
        or (voter.lag_seconds is not None and voter.lag_seconds < FETCH_TIMEOUT_SECONDS)
    }
    total = len(view.voters)
    if total == 1:
        return True
    if total == 2:
        return bool(caught_up - {node_id})
    return len(caught_up - {node_id}) >= (total + 2) // 2


def partition_lets_go(broker_id: int, partition: PartitionView) -> bool:
    """KafkaAvailability, for one partition."""
    if broker_id not in partition.replicas or len(partition.replicas) <= partition.min_isr:
        return True
    in_sync = len(partition.isr)
    if in_sync < partition.min_isr:
        return False
    return in_sync > partition.min_isr or broker_id not in partition.isr


def may_restart(node_id: int, view: ClusterView) -> bool:
    """Both, for the roles a node has."""
    votes = any(voter.node_id == node_id for voter in view.voters)
    if votes and not quorum_lets_go(node_id, view):
        return False
    return all(partition_lets_go(node_id, partition) for partition in view.partitions)
