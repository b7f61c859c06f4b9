"""Decides whether a reading of Kafka is whole, and makes of it the view that decisions rest on.

An all-topics answer leaves out what its reader may not describe, without an error; a broker whose
metadata lags describes yesterday; a call that is refused looks like one with nothing to tell. So
each thing is held against a second source: topics by name from another broker, partitions from
the brokers' own log directories, voters from the configuration. Whatever does not add up is a
doubt, and a view with a doubt allows nothing: nobody may leave, nobody is back, nothing is healthy.
Leaving anything out of an answer can only add a doubt. handlers.adapters.kafka fills in `Answers`,
call by call. The right that each call needs stands in one table, of which infra renders the ACLs
and sentences name what is missing; operations and resources are Kafka's own (Apache Kafka
documentation, "Authorization and ACLs: operations and resources on protocols").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from core.ground.words import listing
from core.views import CAUGHT_UP_WITHIN_SECONDS, ClusterView, Doubt, PartitionView, VoterView

EVERY = "*"


class KafkaResource(StrEnum):
    """What a right is on, as a KafkaUser's ACL spells it."""

    CLUSTER = "cluster"
    TOPIC = "topic"


class KafkaOperation(StrEnum):
    """What a right allows, as a KafkaUser's ACL spells it."""

    ALTER = "Alter"
    ALTER_CONFIGS = "AlterConfigs"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One operation on one resource, or on every resource of a kind; the cluster has no name."""

    resource: KafkaResource
    operation: KafkaOperation
    name: str = EVERY

    @property
    def sentence(self) -> str:
        """Return what a person grants, in the words of Kafka's own tools."""
        if self.resource is KafkaResource.CLUSTER:
            return f"{self.operation} on the cluster"
        where = "every topic" if self.name == EVERY else f"topic {self.name}"
        return f"{self.operation} on {where}"


class KafkaRequest(StrEnum):
    """A request of Kafka's protocol that the functions send, by its name there."""

    METADATA = "Metadata"
    DESCRIBE_TOPIC_PARTITIONS = "DescribeTopicPartitions"
    DESCRIBE_CLUSTER = "DescribeCluster"
    DESCRIBE_QUORUM = "DescribeQuorum"
    DESCRIBE_LOG_DIRS = "DescribeLogDirs"
    DESCRIBE_TOPIC_CONFIGS = "DescribeConfigs of topics"
    DESCRIBE_BROKER_CONFIGS = "DescribeConfigs of brokers"
    LIST_CONFIG_RESOURCES = "ListConfigResources"
    LIST_PARTITION_REASSIGNMENTS = "ListPartitionReassignments"
    ALTER_PARTITION_REASSIGNMENTS = "AlterPartitionReassignments"
    ELECT_LEADERS = "ElectLeaders"
    ALTER_BROKER_CONFIGS = "IncrementalAlterConfigs of brokers"
    ALTER_TOPIC_CONFIGS = "IncrementalAlterConfigs of topics"


_DESCRIBE_TOPICS = Right(KafkaResource.TOPIC, KafkaOperation.DESCRIBE)
_DESCRIBE_CLUSTER = Right(KafkaResource.CLUSTER, KafkaOperation.DESCRIBE)
_CLUSTER_CONFIGS = Right(KafkaResource.CLUSTER, KafkaOperation.DESCRIBE_CONFIGS)
_ALTER_CLUSTER = Right(KafkaResource.CLUSTER, KafkaOperation.ALTER)

# DescribeCluster answers anybody who may connect; it is here so that the table is every call.
RIGHT_OF = MappingProxyType[KafkaRequest, Right | None](
    {
        KafkaRequest.METADATA: _DESCRIBE_TOPICS,
        KafkaRequest.DESCRIBE_TOPIC_PARTITIONS: _DESCRIBE_TOPICS,
        KafkaRequest.DESCRIBE_CLUSTER: None,
        KafkaRequest.DESCRIBE_QUORUM: _DESCRIBE_CLUSTER,
        KafkaRequest.DESCRIBE_LOG_DIRS: _DESCRIBE_CLUSTER,
        KafkaRequest.DESCRIBE_TOPIC_CONFIGS: Right(
            KafkaResource.TOPIC, KafkaOperation.DESCRIBE_CONFIGS
        ),
        KafkaRequest.DESCRIBE_BROKER_CONFIGS: _CLUSTER_CONFIGS,
        # Lists the names of all topics to whoever has this one right, whatever the topics' ACLs
        # say: the second source of what an answer may have left out (brokers from 4.1 on).
        KafkaRequest.LIST_CONFIG_RESOURCES: _CLUSTER_CONFIGS,
        KafkaRequest.LIST_PARTITION_REASSIGNMENTS: _DESCRIBE_CLUSTER,
        KafkaRequest.ALTER_PARTITION_REASSIGNMENTS: _ALTER_CLUSTER,
        KafkaRequest.ELECT_LEADERS: _ALTER_CLUSTER,
        KafkaRequest.ALTER_BROKER_CONFIGS: Right(
            KafkaResource.CLUSTER, KafkaOperation.ALTER_CONFIGS
        ),
        KafkaRequest.ALTER_TOPIC_CONFIGS: Right(KafkaResource.TOPIC, KafkaOperation.ALTER_CONFIGS),
    }
)

# What a function that only reads sends: λ health and λ volumes.
READING = frozenset(
    {
        KafkaRequest.METADATA,
        KafkaRequest.DESCRIBE_TOPIC_PARTITIONS,
        KafkaRequest.DESCRIBE_CLUSTER,
        KafkaRequest.DESCRIBE_QUORUM,
        KafkaRequest.DESCRIBE_LOG_DIRS,
        KafkaRequest.DESCRIBE_TOPIC_CONFIGS,
        KafkaRequest.DESCRIBE_BROKER_CONFIGS,
        KafkaRequest.LIST_CONFIG_RESOURCES,
        KafkaRequest.LIST_PARTITION_REASSIGNMENTS,
    }
)
# What moving leaders away and giving them back sends besides: λ tick and λ sweep's messages to it.
MOVING_LEADERS = frozenset({KafkaRequest.ALTER_PARTITION_REASSIGNMENTS, KafkaRequest.ELECT_LEADERS})

# What throttling the refill of a broker that lost its disk sends besides: λ tick. Kafka knows no
# right on a single setting. Without these a run goes on, and nothing is throttled.
THROTTLING = frozenset({KafkaRequest.ALTER_BROKER_CONFIGS, KafkaRequest.ALTER_TOPIC_CONFIGS})


def rights_for(calls: Iterable[KafkaRequest]) -> tuple[Right, ...]:
    """Return the rights that some calls need, each once.

    >>> calls = [KafkaRequest.DESCRIBE_QUORUM, KafkaRequest.ELECT_LEADERS]
    >>> [right.sentence for right in rights_for(calls)]
    ['Alter on the cluster', 'Describe on the cluster']
    """
    needed = {right for call in calls if (right := RIGHT_OF[call]) is not None}
    return tuple(sorted(needed))


def grant(call: KafkaRequest, *, name: str = EVERY) -> str:
    """Say what to grant where Kafka refused a call, as a clause that ends a sentence.

    >>> grant(KafkaRequest.DESCRIBE_TOPIC_CONFIGS, name="orders")
    "grant the functions' user DescribeConfigs on topic orders"
    """
    right = RIGHT_OF[call]
    if right is None:
        return "let the functions' user connect"
    if name != EVERY and right.resource is KafkaResource.TOPIC:
        right = Right(right.resource, right.operation, name)
    return f"grant the functions' user {right.sentence}"


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


# A broker that fetches the metadata log has it within half a second; one that is cut off is fenced
# after nine, and until then describes what it knew.
METADATA_LAG_SECONDS = 5.0
# kafka-python's name of a call that a broker does not have.
TOO_OLD = "IncompatibleBrokerVersion"
# Not told: no partition is below it, and the doubt beside it stops every decision.
UNKNOWN_MINIMUM = 0

T = TypeVar("T", bound=Hashable)


def view_of(answers: Answers, needed: Iterable[KafkaRequest] = ()) -> ClusterView:
    """Return the view of one reading, with its doubts.

    `needed` are calls beyond reading that whoever decides must be allowed to make afterwards.
    """
    quorum = answers.quorum
    return ClusterView(
        brokers=frozenset(each.broker_id for each in answers.brokers),
        fenced=frozenset(each.broker_id for each in answers.brokers if each.fenced is not False),
        voters=() if quorum is None else _voters(quorum, answers.fetch_timeout_seconds),
        quorum_leader=None if quorum is None else quorum.leader,
        partitions=tuple(_partition(each, answers) for each in answers.partitions),
        stale=quorum is None and not any(_asks_quorum(each) for each in answers.refusals),
        reassigning=answers.reassigning,
        doubts=tuple(_doubts(answers, frozenset(needed))),
    )


def _partition(found: PartitionAnswer, answers: Answers) -> PartitionView:
    return PartitionView(
        found.topic,
        found.number,
        None if found.leader < 0 else found.leader,
        found.replicas,
        found.isr,
        answers.minimums.get(found.topic, UNKNOWN_MINIMUM),
        found.eligible,
    )


def _voters(quorum: QuorumAnswer, within_seconds: float | None) -> tuple[VoterView, ...]:
    ends = {voter.node_id: voter.caught_up_ms for voter in quorum.voters}
    within = CAUGHT_UP_WITHIN_SECONDS if within_seconds is None else within_seconds
    return tuple(VoterView(n, _lag(n, quorum.leader, ends), within) for n in sorted(ends))


def _lag(node_id: int, leader: int, caught_up_ms: dict[int, int]) -> float | None:
    """Return how many seconds a node is behind the leader; None: it never fetched."""
    if node_id == leader:
        return 0.0
    own, end = caught_up_ms.get(node_id, -1), caught_up_ms.get(leader, -1)
    return None if own < 0 or end < 0 else max(end - own, 0) / 1000


def _doubts(answers: Answers, needed: frozenset[KafkaRequest]) -> Iterator[Doubt]:
    yield from (_doubt_of_refusal(refusal) for refusal in answers.refusals)
    yield from _missing_right_doubts(answers, needed)
    yield from _error_doubts(answers)
    yield from map(Doubt, _topic_doubts(answers))
    yield from _broker_doubts(answers)
    yield from map(Doubt, _voter_doubts(answers))
    yield from _metadata_lag_doubts(answers)
    yield from map(Doubt, _partition_doubts(answers))
    yield from _directory_doubts(answers)


def _asks_quorum(refusal: Refusal) -> bool:
    return refusal.call is KafkaRequest.DESCRIBE_QUORUM


def _doubt_of_refusal(refusal: Refusal) -> Doubt:
    whom = "Kafka" if refusal.broker is None else f"Broker {refusal.broker}"
    if is_unauthorized(refusal.error):
        return Doubt(
            f"{whom} refuses {refusal.call} ({refusal.error}); "
            f"{grant(refusal.call, name=refusal.topic)}.",
            refused=True,
        )
    if refusal.error == TOO_OLD:
        era = "its metadata is in ZooKeeper, or it is from before 3.3"
        why = era if _asks_quorum(refusal) else "it is too old"
        return Doubt(f"{whom} does not know {refusal.call}: {why}.")
    return Doubt(f"{whom} did not answer {refusal.call} ({refusal.error}).", about=refusal.broker)


def _missing_right_doubts(answers: Answers, needed: frozenset[KafkaRequest]) -> Iterator[Doubt]:
    """Yield the rights on the cluster that whoever decides will need, and Kafka says are missing.

    Better before a node has gone than when its leaders are to return.
    """
    if answers.allowed is None:
        return
    for call in sorted(needed):
        right = RIGHT_OF[call]
        on_cluster = right is not None and right.resource is KafkaResource.CLUSTER
        if right is not None and on_cluster and right.operation not in answers.allowed:
            yield Doubt(f"Kafka will refuse {call}; {grant(call)}.", refused=True)
            return


def _error_doubts(answers: Answers) -> Iterator[Doubt]:
    """Yield the topics that were described with an error instead of their partitions."""
    refused = sorted(t for t, error in answers.topic_errors.items() if is_unauthorized(error))
    if refused:
        yield Doubt(
            f"Kafka hides topic {listing(refused, 1)} ({answers.topic_errors[refused[0]]}); "
            f"{grant(KafkaRequest.METADATA)}.",
            refused=True,
        )
    for topic, error in sorted(answers.topic_errors.items()):
        if not is_unauthorized(error):
            yield Doubt(f"Kafka described topic {topic} with an error ({error}); look again.")


def _topic_doubts(answers: Answers) -> Iterator[str]:
    described = answers.described.keys() | answers.topic_errors.keys()
    if answers.topic_names is not None:
        hidden = sorted(answers.topic_names - described)
        if hidden:
            yield (
                f"Kafka has {len(answers.topic_names)} topics and described {len(described)}: "
                f"topic {hidden[0]} is missing. Perhaps the functions may not describe it: "
                f"{grant(KafkaRequest.METADATA)}, or wait if it was deleted just now."
            )
        unlisted = sorted(described - answers.topic_names)
        if unlisted:
            yield (
                f"Topic {unlisted[0]} is known to one broker and not to another: the metadata of "
                f"one of them lags, or the topic is new."
            )
    for topic in sorted({each.topic for each in answers.partitions} - answers.minimums.keys()):
        yield (
            f"Kafka did not say min.insync.replicas of topic {topic}; "
            f"{grant(KafkaRequest.DESCRIBE_TOPIC_CONFIGS)}."
        )
        return


def _broker_doubts(answers: Answers) -> Iterator[Doubt]:
    if not answers.brokers:
        yield Doubt("Kafka named no broker of its own.")
    named = {each.broker_id for each in answers.brokers}
    if answers.brokers_again is not None and answers.brokers_again != named:
        differing = sorted(answers.brokers_again ^ named)
        yield Doubt(
            f"Broker {differing[0]} is known to one broker and not to another: the metadata of one "
            f"of them lags."
        )
    for broker_id in _repeats(each.broker_id for each in answers.brokers):
        yield Doubt(f"Kafka named broker {broker_id} twice.")
    for each in answers.brokers:
        if each.fenced is None:
            yield Doubt(f"Kafka did not say whether broker {each.broker_id} is fenced.")


def _voter_doubts(answers: Answers) -> Iterator[str]:
    quorum = answers.quorum
    if quorum is None:
        return
    voters = {voter.node_id for voter in quorum.voters}
    for node_id in _repeats(voter.node_id for voter in quorum.voters):
        yield f"The quorum named controller {node_id} twice."
    if quorum.leader not in voters:
        yield f"The quorum is led by controller {quorum.leader}, which it does not count."
    watching = {observer.node_id for observer in quorum.observers}
    known = (quorum.nodes - watching) | answers.configured_voters
    for node_id in sorted(known - voters):
        yield (
            f"Controller {node_id} has a vote by configuration, and the quorum that answers does "
            f"not count it."
        )


def metadata_lag(broker_id: int, quorum: QuorumAnswer) -> float | None:
    """Return how many seconds a broker's metadata is behind the quorum's; None: nobody knows."""
    ends = {each.node_id: each.caught_up_ms for each in (*quorum.observers, *quorum.voters)}
    return _lag(broker_id, quorum.leader, ends)


def is_current(broker_id: int, quorum: QuorumAnswer) -> bool:
    """Say whether a broker's metadata may be believed to be today's."""
    lag = metadata_lag(broker_id, quorum)
    return lag is not None and lag <= METADATA_LAG_SECONDS


def _metadata_lag_doubts(answers: Answers) -> Iterator[Doubt]:
    """Yield that the broker that was asked knows less than the quorum has decided."""
    quorum, asked = answers.quorum, answers.asked
    if quorum is None or asked is None or is_current(asked, quorum):
        return
    lag = metadata_lag(asked, quorum)
    if lag is None:
        said = f"Broker {asked} answered, and the quorum does not know how far its metadata is."
        yield Doubt(said)
    else:
        yield Doubt(
            f"Broker {asked} answered, and its metadata is {lag:.0f} s behind the quorum's; look "
            f"at its connection to the controllers."
        )


def _partition_doubts(answers: Answers) -> Iterator[str]:
    """Yield partitions whose own entries contradict themselves, or that leave a gap."""
    for topic, number in _repeats((each.topic, each.number) for each in answers.partitions):
        yield f"Kafka described partition {topic}-{number} twice."
    for topic, number, leader, replicas, isr, eligible, error in answers.partitions:
        members = set(replicas)
        if error:
            yield f"Kafka described partition {topic}-{number} with an error ({error})."
        elif not replicas or len(members) != len(replicas):
            yield f"Partition {topic}-{number} was described with replicas {list(replicas)}."
        elif isr == replicas and leader in members and not eligible:
            continue
        elif not members.issuperset(isr) or not members.issuperset(eligible):
            yield f"Partition {topic}-{number} has brokers in sync that are none of its replicas."
        elif leader >= 0 and leader not in isr:
            yield f"Partition {topic}-{number} is led by broker {leader}, which is not in sync."
    for topic, (count, highest) in answers.described.items():
        if count != highest + 1:
            yield f"Topic {topic} was described with {count} partitions numbered up to {highest}."


def _directory_doubts(answers: Answers) -> Iterator[Doubt]:
    held = {
        broker_id: _held_in(directories)
        for broker_id in answers.counted
        if (directories := answers.directories.get(broker_id))
    }
    matched, lacking = _held_against(answers.partitions, held)
    for broker_id in sorted(answers.counted):
        if broker_id not in held:
            yield Doubt(
                f"Broker {broker_id} did not say what its log directories hold, so nothing counts "
                f"its partitions; {grant(KafkaRequest.DESCRIBE_LOG_DIRS)}.",
                about=broker_id,
            )
            continue
        failed = next((each for each in answers.directories[broker_id] if each.error), None)
        if failed is not None:
            yield Doubt(
                f"Broker {broker_id} cannot read log directory {failed.path} ({failed.error}), so "
                f"nothing counts what is in it; see to its volume."
            )
        if matched[broker_id] != len(held[broker_id]):
            yield from map(
                Doubt, _undescribed_partitions(broker_id, held[broker_id], answers.partitions)
            )
        if broker_id in lacking:
            topic, number = min(lacking[broker_id])
            yield Doubt(
                f"Broker {broker_id} is in sync with {topic}-{number} by the metadata, and has no "
                f"log of it: the metadata lags, or the partition is new."
            )
    if answers.topic_names is not None:
        return
    for each in answers.brokers:
        if each.broker_id not in answers.counted:
            yield Doubt(
                f"Broker {each.broker_id} is fenced and cannot name the partitions that only it "
                "holds; bring it back first.",
                about=each.broker_id,
            )


def _held_in(directories: Sequence[DirectoryAnswer]) -> frozenset[Partition]:
    if len(directories) == 1:
        return directories[0].held
    return frozenset().union(*(each.held for each in directories))


def _held_against(
    partitions: Iterable[PartitionAnswer], held: Mapping[int, frozenset[Partition]]
) -> tuple[dict[int, int], dict[int, list[Partition]]]:
    """Count what each broker holds of what the metadata says it has; return what it lacks in sync.

    In one pass, and without a set of its own for each: at 200 brokers, one for each took longer
    than everything else together.
    """
    matched, lacking = dict.fromkeys(held, 0), dict[int, list[Partition]]()
    for found in partitions:
        partition = (found.topic, found.number)
        for broker_id in found.replicas:
            if broker_id not in held:
                continue
            if partition in held[broker_id]:
                matched[broker_id] += 1
            elif broker_id in found.isr:
                lacking.setdefault(broker_id, []).append(partition)
    return matched, lacking


def _undescribed_partitions(
    broker_id: int, held: frozenset[Partition], partitions: Iterable[PartitionAnswer]
) -> Iterator[str]:
    """Name what a broker has in its log directories and the metadata does not say it has."""
    assigned = {(each.topic, each.number) for each in partitions if broker_id in each.replicas}
    for topic, number in sorted(held - assigned)[:1]:
        yield (
            f"Broker {broker_id} holds {len(held)} partitions and Kafka described {len(assigned)} "
            f"of them: {topic}-{number} is missing. Perhaps the functions may not describe it: "
            f"{grant(KafkaRequest.METADATA, name=topic)}, or wait if it was deleted or moved just "
            "now."
        )


def _repeats(ids: Iterable[T]) -> list[T]:
    every = list(ids)
    if len(set(every)) == len(every):
        return []
    return [each for each, times in Counter(every).items() if times > 1]
