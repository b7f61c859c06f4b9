"""May this Kafka node go, is it back, and who may let one go: asked by core.incidents.

Views are what one reading of Kafka's admin API showed; every function here is pure. A refusal names
the partition, broker or voter that refuses, and what to wait for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# A follower that fetched the leader's end later than this lags (controller.quorum.fetch.timeout.ms
# defaults to 2000; KafkaQuorumCheck uses the same bound).
CAUGHT_UP_WITHIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes or no, and the complete sentence that says why."""

    allowed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition as its leader sees it; `leader` is None while it has none."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    min_isr: int

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class VoterView:
    """One controller; `lag_seconds` is how long it has been behind the leader, None if unknown."""

    node_id: int
    lag_seconds: float | None

    @property
    def caught_up(self) -> bool:
        return self.lag_seconds is not None and self.lag_seconds < CAUGHT_UP_WITHIN_SECONDS


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One reading of the cluster.

    `stale` says that the quorum did not answer: brokers then still describe the cluster, from
    memory and with nobody fenced (measured on 4.2), so nothing else here may be believed.
    """

    brokers: frozenset[int]
    fenced: frozenset[int]
    voters: tuple[VoterView, ...]
    quorum_leader: int | None
    partitions: tuple[PartitionView, ...]
    stale: bool = False

    def online(self, broker_id: int) -> bool:
        return broker_id in self.brokers and broker_id not in self.fenced


def may_leave(broker_id: int, cluster: ClusterView, *, isr_margin: int = 1) -> Verdict:
    """Say whether a Kafka node may stop now without a partition or the quorum suffering for it.

    After it has gone, every partition it holds must keep `min.insync.replicas + isr_margin` members
    in sync, or all its other replicas where the replication factor allows no more. A partition
    whose replication factor does not exceed its minimum never blocks: it cannot be kept. A node
    that is in both roles, or in one, is asked about each role it has.

    Source: KafkaAvailability and KafkaQuorumCheck (Strimzi 1.x), made stricter by `isr_margin` and
    by refusing while any other broker is out.
    """
    refusal = next(_refusals(broker_id, cluster, isr_margin), None)
    if refusal:
        return Verdict(allowed=False, reason=refusal)
    held = sum(broker_id in p.replicas for p in cluster.partitions)
    return Verdict(
        allowed=True,
        reason=f"Node {broker_id} may leave: all its {held} partitions stay in sync without it "
        f"and the quorum keeps its majority.",
    )


def _refusals(node_id: int, cluster: ClusterView, isr_margin: int) -> Iterator[str]:
    """Yield reasons to refuse, the gravest first."""
    if cluster.stale or cluster.quorum_leader is None:
        # A broker told to stop without a quorum hangs until one returns (measured: > 48 s).
        yield (
            f"Node {node_id} may not leave: the controllers have no quorum; bring a majority of "
            f"them back first."
        )
        return
    yield from _quorum_refusals(node_id, cluster)
    for other in sorted(cluster.fenced - {node_id}):
        yield (
            f"Node {node_id} may not leave: broker {other} is fenced, and a second broker must "
            f"not be out at the same time; wait until it has registered again."
        )
    if node_id in cluster.fenced:
        return  # It serves nothing already: no partition loses anything by its departure.
    for partition in cluster.partitions:
        yield from _partition_refusals(node_id, partition, isr_margin)


def _partition_refusals(node_id: int, partition: PartitionView, isr_margin: int) -> Iterator[str]:
    if partition.leader is None:
        yield (
            f"Node {node_id} may not leave: partition {partition.name} is offline; bring one of "
            f"its replicas {_listed(partition.replicas)} back first."
        )
        return
    factor = len(partition.replicas)
    if node_id not in partition.replicas or factor <= partition.min_isr:
        return
    left = sorted(set(partition.isr) - {node_id})
    needed = min(partition.min_isr + isr_margin, factor - 1)
    if len(left) < needed:
        yield (
            f"Node {node_id} may not leave: partition {partition.name} would keep "
            f"{len(left)} in-sync replicas ({_listed(left)}) of {factor}, and it needs {needed} "
            f"(min.insync.replicas {partition.min_isr}, margin {isr_margin}); wait until its other "
            f"replicas have caught up."
        )


def _quorum_refusals(node_id: int, cluster: ClusterView) -> Iterator[str]:
    voters = cluster.voters
    if node_id not in {voter.node_id for voter in voters}:
        return
    others = [voter for voter in voters if voter.node_id != node_id]
    caught_up = [voter.node_id for voter in others if voter.caught_up]
    # A majority of all voters. Two voters have none without each other: then the other one must
    # be caught up, and a single voter cannot be kept (as KafkaQuorumCheck decides).
    needed = min(len(voters) // 2 + 1, len(others))
    if len(caught_up) < needed:
        lagging = [voter.node_id for voter in others if not voter.caught_up]
        yield (
            f"Node {node_id} may not leave: of the {len(voters)} controllers only "
            f"{_listed(caught_up)} would be left caught up, and the quorum needs {needed}; wait "
            f"for {_listed(lagging)} to catch up."
        )


def _listed(node_ids: list[int] | tuple[int, ...]) -> str:
    return ", ".join(str(n) for n in node_ids) or "none"


def is_back(
    node_id: int,
    cluster: ClusterView,
    *,
    back_since: float | None,
    now: float,
    hold_seconds: float,
) -> Verdict:
    """Say whether a node that left has fully returned, and stayed for `hold_seconds`.

    `back_since` is since when readings have shown it returned (`returned` below). Ready is not
    enough: a broker is unfenced long before it is in sync, and may be fenced again 20-50 s after it
    rejoined (strimzi#11736), so its ISR membership is read from the leaders and must last.
    """
    missing = returned(node_id, cluster)
    if not missing.allowed:
        return missing
    held_seconds = now - (now if back_since is None else back_since)
    if held_seconds < hold_seconds:
        return Verdict(
            allowed=False,
            reason=f"Node {node_id} is back in every ISR since {held_seconds:.0f} s; it must stay "
            f"for {hold_seconds:.0f} s before the next may leave.",
        )
    return Verdict(
        allowed=True,
        reason=f"Node {node_id} is back in every ISR since {held_seconds:.0f} s.",
    )


def returned(node_id: int, cluster: ClusterView) -> Verdict:
    """Say whether this one reading shows the node registered, in every ISR and caught up."""
    reason = next(_absences(node_id, cluster), None)
    if reason:
        return Verdict(allowed=False, reason=reason)
    return Verdict(allowed=True, reason=f"Node {node_id} is back in every ISR.")


def _absences(node_id: int, cluster: ClusterView) -> Iterator[str]:
    if cluster.stale or cluster.quorum_leader is None:
        yield f"Whether node {node_id} is back cannot be told: the controllers have no quorum."
        return
    voter = next((v for v in cluster.voters if v.node_id == node_id), None)
    held = [p for p in cluster.partitions if node_id in p.replicas]
    if voter is None or held or node_id in cluster.brokers:
        if node_id not in cluster.brokers:
            yield f"Broker {node_id} has not registered yet."
        elif node_id in cluster.fenced:
            yield f"Broker {node_id} is registered and still fenced."
    if voter is not None and not voter.caught_up:
        yield f"Controller {node_id} has not caught up with the quorum's leader."
    behind = [p.name for p in held if node_id not in p.isr]
    if behind:
        yield (
            f"Broker {node_id} is not yet in the ISR of {len(behind)} of its {len(held)} "
            f"partitions, among them {behind[0]}."
        )


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to take one Kafka node out, held by one incident until it expires."""

    holder: str
    expires_at: float  # epoch seconds


@dataclass(frozen=True, slots=True)
class LeaseDecision:
    """What the lease is after somebody asked for it."""

    granted: bool
    lease: Lease
    reason: str


def valid_holder(lease: Lease | None, now: float) -> str | None:
    return lease.holder if lease is not None and now < lease.expires_at else None


def grant(lease: Lease | None, holder: str, now: float, ttl_seconds: float) -> LeaseDecision:
    """Give the cluster's one lease to `holder`, renew it, or refuse while another holds it.

    A renewal never shortens what was promised: clocks of two machines may disagree.
    """
    current = valid_holder(lease, now)
    if lease is not None and current is not None and current != holder:
        return LeaseDecision(
            granted=False,
            lease=lease,
            reason=f"{current} is taking a Kafka node out and holds the lease for another "
            f"{lease.expires_at - now:.0f} s.",
        )
    until = now + ttl_seconds
    if lease is not None and current == holder:
        until = max(until, lease.expires_at)
    return LeaseDecision(
        granted=True, lease=Lease(holder, until), reason=f"{holder} holds the lease."
    )


def release(lease: Lease | None, holder: str) -> Lease | None:
    """Return what is left after `holder` gives the lease back; another's lease stays."""
    return None if lease is None or lease.holder == holder else lease
