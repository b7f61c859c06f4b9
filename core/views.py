"""One reading of Kafka, as decisions see it: brokers, partitions from their leaders, the quorum.

handlers.adapters.kafka takes it; consent and presence judge it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

# What controller.quorum.fetch.timeout.ms is by default: a follower that fetched the leader's end
# longer ago lags (KafkaQuorumCheck uses the same bound).
CAUGHT_UP_WITHIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes or no, and the complete sentence that says why."""

    allowed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a reading may not be whole; `refused`: Kafka withholds it until a right is granted.

    `about` is the one broker whose own answer is missing or late, where it is one.
    """

    sentence: str
    refused: bool = False
    about: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition as its leader sees it; `leader` is None while it has none."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    min_isr: int
    # Out of sync and known to be complete (KIP-966): without a leader, one of them may lead.
    eligible: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def keepable(self) -> bool:
        """Say whether it can be written with acks=all while one of its brokers is away."""
        return len(self.replicas) > self.min_isr


@dataclass(frozen=True, slots=True)
class VoterView:
    """One controller; `lag_seconds` is how long it has been behind the leader, None if unknown.

    `within_seconds` is the cluster's own controller.quorum.fetch.timeout.ms, where it is known.
    """

    node_id: int
    lag_seconds: float | None
    within_seconds: float = CAUGHT_UP_WITHIN_SECONDS

    @property
    def caught_up(self) -> bool:
        return self.lag_seconds is not None and self.lag_seconds < self.within_seconds


@dataclass(frozen=True)
class ClusterView:
    """One reading of the cluster.

    `stale` says that the quorum did not answer: brokers then still describe the cluster, from
    memory and with nobody fenced (measured on 4.2), so nothing else here may be believed.
    `doubts` say that something was left out, the gravest first (core.availability.wholeness):
    bad news may be believed all the same, good news never.
    """

    brokers: frozenset[int]
    fenced: frozenset[int]
    voters: tuple[VoterView, ...]
    quorum_leader: int | None
    partitions: tuple[PartitionView, ...]
    stale: bool = False
    reassigning: tuple[str, ...] = ()  # partitions that are moving to other brokers
    doubts: tuple[Doubt, ...] = ()

    @property
    def doubt(self) -> str:
        """Return why this reading may not be whole, as a sentence; empty: it is."""
        if not self.doubts:
            return ""
        others = len(self.doubts) - 1
        more = f" ({others} more doubt{'s' if others > 1 else ''}.)" if others else ""
        return f"The reading of Kafka is not whole. {self.doubts[0].sentence}{more}"

    @property
    def withheld(self) -> bool:
        """Say whether Kafka withholds something until a person grants a right."""
        return any(each.refused for each in self.doubts)

    @property
    def lacks_quorum(self) -> bool:
        """Say whether the controllers have none; one that nobody may ask is a doubt instead."""
        return self.stale or (self.quorum_leader is None and not self.doubts)

    def drop_doubts(self, away: Collection[int]) -> ClusterView:
        """Return the same reading, not doubted for the silence of brokers that are known to stop.

        What is not known of anybody else stays a doubt, and so does what Kafka refuses to tell.
        """
        kept = tuple(d for d in self.doubts if d.refused or d.about not in away)
        return self if len(kept) == len(self.doubts) else replace(self, doubts=kept)

    def online(self, broker_id: int) -> bool:
        return broker_id in self.brokers and broker_id not in self.fenced

    def held_by(self, broker_id: int) -> tuple[PartitionView, ...]:
        """Return the partitions that a broker has a replica of."""
        return self._held.get(broker_id, ())

    def risky_partitions(self, broker_id: int) -> tuple[PartitionView, ...]:
        """Return those of a broker's partitions that its stop may hurt.

        One with every replica in sync, and more of them than it needs, is none, whoever stops.
        """
        return self._risky.get(broker_id, ())

    @cached_property
    def offline(self) -> tuple[PartitionView, ...]:
        """Return the partitions without a leader, but those that only removed brokers had."""
        return tuple(
            p
            for p in self.partitions
            if p.leader is None and not self.brokers.isdisjoint(p.replicas)
        )

    @cached_property
    def abandoned(self) -> tuple[PartitionView, ...]:
        """Return the partitions that nobody has any more: every broker of theirs was removed."""
        return tuple(p for p in self.partitions if self.brokers.isdisjoint(p.replicas))

    @cached_property
    def out_of_sync(self) -> tuple[PartitionView, ...]:
        """Return the partitions that lack a replica in sync."""
        return tuple(p for p in self.partitions if len(p.isr) < len(p.replicas))

    @cached_property
    def below_minimum(self) -> tuple[PartitionView, ...]:
        """Return the partitions with fewer replicas in sync than they need to be written."""
        return tuple(p for p in self.partitions if len(p.isr) < min(p.min_isr, len(p.replicas)))

    @cached_property
    def out(self) -> frozenset[int]:
        """Return the brokers that are out, fenced or unregistered, and that a partition misses."""
        missing = self._held.keys() - (self.brokers - self.fenced)
        return frozenset(
            b
            for b in missing
            if any(len(p.replicas) > 1 and p not in self.abandoned for p in self.held_by(b))
        )

    @cached_property
    def idle_fenced(self) -> frozenset[int]:
        """Return the brokers that are fenced and hold nothing: nobody misses them."""
        return self.fenced - self._held.keys()

    @cached_property
    def _held(self) -> dict[int, tuple[PartitionView, ...]]:
        return _group_by_replica(self.partitions)

    @cached_property
    def _risky(self) -> dict[int, tuple[PartitionView, ...]]:
        return _group_by_replica(
            p for p in self.partitions if len(p.isr) < len(p.replicas) or not p.keepable
        )

    def forgot(self, node_id: int) -> bool:
        """Say whether a node is no part of the cluster: not registered, no replicas, no vote."""
        if self.stale or self.quorum_leader is None:
            return False
        voters = {voter.node_id for voter in self.voters}
        return node_id not in self.brokers | voters and not self.held_by(node_id)


def _group_by_replica(partitions: Iterable[PartitionView]) -> dict[int, tuple[PartitionView, ...]]:
    found: dict[int, list[PartitionView]] = {}
    for partition in partitions:
        for broker_id in partition.replicas:
            found.setdefault(broker_id, []).append(partition)
    return {broker_id: tuple(held) for broker_id, held in found.items()}
