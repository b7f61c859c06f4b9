"""Holds what Kafka answered in one reading, call by call, before anybody believes it.

handlers.adapters.kafka fills it in; core.availability.wholeness makes a ClusterView of it, and says
what in it cannot be whole. An answer that did not come is None or missing, never empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from core.availability.kafka_rights import EVERY, KafkaRequest

Partition = tuple[str, int]  # topic, number


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A call that Kafka did not answer as asked; `error` is Kafka's own name of the reason."""

    call: KafkaRequest
    error: str
    topic: str = EVERY
    broker: int | None = None


def is_unauthorized(error: str) -> bool:
    """Say whether Kafka's name of an error means that a right is missing."""
    return "AuthorizationFailed" in error


class BrokerAnswer(NamedTuple):
    """One registered broker; `fenced` is None where the answer does not say."""

    broker_id: int
    fenced: bool | None


class PartitionAnswer(NamedTuple):
    """One partition, as the broker's metadata has it; a leader below zero is none."""

    topic: str
    number: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    # Replicas out of sync that Kafka still knows to be complete (KIP-966); it may lead with them.
    eligible: tuple[int, ...] = ()
    error: str = ""


class ReplicaAnswer(NamedTuple):
    """A node that fetches the metadata log; milliseconds of the leader's clock, -1: never."""

    node_id: int
    caught_up_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumAnswer:
    """The quorum as its leader describes it; `nodes` are the voters by their endpoints."""

    leader: int
    voters: tuple[ReplicaAnswer, ...]
    observers: tuple[ReplicaAnswer, ...] = ()
    nodes: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryAnswer:
    """One log directory of a broker: which replicas it holds, or why it cannot tell."""

    path: str
    held: frozenset[Partition]
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Everything that was asked for one reading, and what came back.

    `partitions` are all of them, or those of the brokers it is about and whatever is not well.
    """

    brokers: tuple[BrokerAnswer, ...]
    partitions: tuple[PartitionAnswer, ...]
    # The brokers once more, as another of them knows them; None: there is no other to ask.
    brokers_again: frozenset[int] | None = None
    # None: no quorum answers, so brokers describe the cluster from memory.
    quorum: QuorumAnswer | None = None
    # Topics as they were described: name -> number of partitions, highest number among them.
    described: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    # Topics that were described with an error instead of partitions: name -> Kafka's error.
    topic_errors: Mapping[str, str] = field(default_factory=dict)
    minimums: Mapping[str, int] = field(default_factory=dict)  # topic -> min.insync.replicas
    # Every topic by name, as another call and another broker list them; None: brokers too old.
    topic_names: frozenset[str] | None = None
    # What each broker that was asked has in its log directories; one that did not say is missing.
    directories: Mapping[int, tuple[DirectoryAnswer, ...]] = field(default_factory=dict)
    counted: frozenset[int] = frozenset()  # the brokers that were asked for their log directories
    reassigning: tuple[str, ...] = ()
    configured_voters: frozenset[int] = frozenset()  # controller.quorum.voters, where it is set
    fetch_timeout_seconds: float | None = None  # controller.quorum.fetch.timeout.ms
    asked: int | None = None  # the broker whose metadata this is
    allowed: frozenset[str] | None = None  # operations on the cluster; None: not told
    refusals: tuple[Refusal, ...] = ()
