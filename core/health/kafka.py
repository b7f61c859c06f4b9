"""Judges quorum, partitions and each node from one admin reading of Kafka.

The quorum comes first: without one the brokers go on describing the cluster from memory, with
nobody fenced (research: kafka-measured 3), so nothing else in such a reading is believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.health.limits import Limits
from core.health.verdict import HealthVerdict, degraded, healthy, not_known, unhealthy
from core.views import ClusterView, PartitionView, VoterView, id_list

LIMITS = Limits()
ADMIN = "Kafka's admin API"
WHOLE = "a whole reading of Kafka"


def silent(what: str, why: str) -> HealthVerdict:
    """Return the verdict on anything that only Kafka could have told."""
    return not_known(f"{what}: unknown, since Kafka gave no answer. {why}", (ADMIN,))


def not_whole(what: str, view: ClusterView) -> HealthVerdict:
    """Return the verdict on anything whose good state only a whole reading could have shown."""
    why = view.doubt or "What Kafka told of it is not all there is to tell."
    return not_known(f"{what}: unknown. {why}", (WHOLE,))


def quorum_verdict(view: ClusterView) -> HealthVerdict:
    """Say whether the controllers have a leader, and a majority that keeps up with it."""
    if view.without_quorum:
        return unhealthy(
            "The controllers have no quorum: brokers serve from memory, and nothing can change; "
            "bring a majority of the controllers back.",
        )
    # A leader that no voter is: whether a majority keeps up was not told.
    if view.quorum_leader not in {voter.node_id for voter in view.voters}:
        return not_whole("The quorum", view)
    behind = [voter.node_id for voter in view.voters if _lags(voter)]
    said = f"Controller {view.quorum_leader} leads the quorum of {len(view.voters)}"
    if not behind and view.doubts:
        return not_whole("The quorum", view)
    if not behind:
        return healthy(f"{said}, and all keep up.")
    left = len(view.voters) - len(behind)
    if left <= len(view.voters) // 2:
        return unhealthy(f"{said}, and no majority keeps up: {id_list(behind)} lag behind.")
    return degraded(f"{said}, and {id_list(behind)} lag behind.")


def controller_verdict(node_id: int, view: ClusterView) -> HealthVerdict:
    """Return one controller's verdict as the quorum's leader sees it."""
    if view.without_quorum:
        return silent(f"Controller {node_id}", "The controllers have no quorum.")
    voter = next((v for v in view.voters if v.node_id == node_id), None)
    # Without the leader's own place in the log, nobody's lag is known.
    unmeasured = view.quorum_leader not in {v.node_id for v in view.voters}
    if unmeasured or (view.doubts and (voter is None or not _lags(voter))):
        return not_whole(f"Controller {node_id}", view)
    if voter is None:
        return unhealthy(f"Controller {node_id} is no voter of the quorum that answers.")
    if voter.node_id == view.quorum_leader:
        return healthy(f"Controller {node_id} leads the quorum.")
    if not _lags(voter):
        return healthy(f"Controller {node_id} keeps up with the leader.")
    lag = voter.lag_seconds
    since = "it never fetched" if lag is None else f"{lag:.0f} s behind"
    return unhealthy(f"Controller {node_id} has not caught up with the quorum's leader: {since}.")


def broker_verdict(broker_id: int, view: ClusterView) -> HealthVerdict:
    """Return one broker's verdict: registered, unfenced, and in every ISR as the leaders see it."""
    if view.without_quorum:
        return silent(f"Broker {broker_id}", "The controllers have no quorum.")
    if broker_id not in view.brokers:
        return unhealthy(f"Broker {broker_id} is not registered.")
    held = view.held_by(broker_id)
    if broker_id in view.fenced:
        return unhealthy(
            f"Broker {broker_id} is fenced: it serves none of its {len(held)} partitions."
        )
    behind = [p for p in held if broker_id not in p.isr]
    if behind:
        return degraded(
            f"Broker {broker_id} is not in the ISR of {_partitions(behind, len(held))}."
        )
    if view.doubts:
        return not_whole(f"Broker {broker_id}", view)
    return healthy(f"Broker {broker_id} is in the ISR of all its {len(held)} partitions.")


def partitions_verdict(view: ClusterView) -> HealthVerdict:
    """Say whether every partition can be read and written, and would survive a broker."""
    if view.without_quorum:
        return silent("Partitions", "The controllers have no quorum.")
    total = len(view.partitions)
    well = healthy(f"All {total} partitions have all replicas in sync.")
    return next(_partition_troubles(view, total), well)


def _partition_troubles(view: ClusterView, total: int) -> Iterator[HealthVerdict]:
    """Yield what keeps the partitions from being well, the gravest first."""
    if offline := [p for p in view.partitions if p.leader is None]:
        said = f"No broker leads {_partitions(offline, total)}."
        yield unhealthy(f"{said}{_whole_copies(offline)}")
    if below := [p for p in view.partitions if len(p.isr) < p.min_isr]:
        yield unhealthy(
            f"Producers with acks=all are refused: {_partitions(below, total)} have fewer in-sync "
            f"replicas than min.insync.replicas.",
        )
    if impossible := next((p for p in view.partitions if not _can_lead(p, view)), None):
        yield not_known(
            f"Partitions: unknown. Broker {impossible.leader} is told to lead {impossible.name}, "
            f"and is {_why_not(impossible, view)}: what was read contradicts itself; look again, "
            f"and at that broker's connection to the controllers.",
            (WHOLE,),
        )
    if behind := [p for p in view.partitions if set(p.isr) != set(p.replicas)]:
        yield degraded(f"Replicas are out of sync in {_partitions(behind, total)}.")
    if view.doubts:
        yield not_whole("Partitions", view)


def _can_lead(partition: PartitionView, view: ClusterView) -> bool:
    """Say whether its leader is one that Kafka elects: in sync, and online."""
    leader = partition.leader
    return leader is None or (leader in partition.isr and view.online(leader))


def _why_not(partition: PartitionView, view: ClusterView) -> str:
    if partition.leader not in partition.isr:
        return "not in its ISR"
    return "fenced" if partition.leader in view.fenced else "not registered"


def _whole_copies(offline: Sequence[PartitionView]) -> str:
    """Return who brings an offline partition back without loss, where Kafka knows it (ELR)."""
    known = next((p for p in offline if p.eligible), None)
    if known is None:
        return ""
    return (
        f" Broker {id_list(known.eligible)} still holds all of {known.name} (ELR): bring it back, "
        f"and nothing is lost."
    )


def _lags(voter: VoterView) -> bool:
    """Say whether a voter is behind for longer than a hiccup; a rotation is stricter."""
    # What is no number is not below the limit either.
    return voter.lag_seconds is None or not voter.lag_seconds <= LIMITS.voter_lag_seconds


def _partitions(found: Sequence[PartitionView], of: int) -> str:
    rest = f", among them {found[0].name}" if len(found) > 1 else f": {found[0].name}"
    return f"{len(found)} of {of} partitions{rest}"
