"""Reads brokers, quorum and partitions into core.availability.wholeness, each by two sources.

One broker describes the topics; another lists their names and the brokers once more; every broker
tells what its log directories hold; the quorum's leader says how far the first one's metadata is.
Whatever Kafka refuses is noted under its call, never left out. kafka-python's own admin methods ask
whichever broker is idle and drop errors inside an answer, so the requests are sent and their
answers read here; encoding and connections stay the library's.

Topics come page by page, and of a page only what a decision needs is kept: at 200 brokers a whole
answer is 11 MB on the wire and 330 MB in memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka import KafkaAdminClient
from kafka.errors import AuthorizationError, IncompatibleBrokerVersion, KafkaError, for_code
from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    ListConfigResourcesRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.metadata import MetadataRequest

from core.availability.wholeness import (
    EVERY,
    Answers,
    BrokerAnswer,
    DirectoryAnswer,
    KafkaOperation,
    KafkaRequest,
    PartitionAnswer,
    QuorumAnswer,
    Refusal,
    ReplicaAnswer,
    grant,
    is_current,
)
from core.ground.errors import StillwaterError
from handlers.adapters.calls import portions
from handlers.adapters.kafka_pages import Cursor, Pages, PageTopic, topic_in

# The client refuses a fifth request on a connection (max_in_flight_requests_per_connection).
MOST_AT_ONCE = 4


class WireAdmin(KafkaAdminClient):  # type: ignore[misc]  # kafka-python carries no types
    """kafka-python's admin client, asked request by request."""

    def ask(self, request: Any, broker: int | None = None) -> Any:
        """Return a broker's answer, of any broker where none is named; raises KafkaError."""
        return self._manager.run(self._send, request, broker)

    def ask_undecoded(self, requests: Sequence[Any], broker: int) -> list[bytes]:
        """Return the bodies of a broker's answers as they came; raises KafkaError.

        All requests are under way at the same time, MOST_AT_ONCE of them at most.
        """
        answers: list[_Body] = self._manager.run(self._sent_at_once, requests, broker)
        return [answer.body for answer in answers]

    def ask_each(self, requests: Sequence[tuple[int, Any]]) -> Iterator[Any]:
        """Yield the answer of each broker to its request, or the KafkaError in its place.

        One at a time: those of 200 brokers are more than a function's memory holds.
        """
        return (self._answer_or_error(broker, request) for broker, request in requests)

    def _answer_or_error(self, broker: int, request: Any) -> Any:
        try:
            return self.ask(request, broker)
        except KafkaError as error:
            return error

    async def _send(self, request: Any, broker: int | None) -> Any:
        return await self._manager.send(request, node_id=broker)

    async def _sent_at_once(self, requests: Sequence[Any], broker: int) -> list[Any]:
        sent = [self._manager.send(_Undecoded(each), node_id=broker) for each in requests]
        return [await each for each in sent]


class _Undecoded:
    """A request of the library's, whose answer is handed over as it came."""

    def __init__(self, request: Any) -> None:
        object.__setattr__(self, "request", request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.request, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.request, name, value)

    @property
    def header(self) -> _Header:
        return _Header(self.request.header)


class _Header:
    """What the connection keeps of a request, to know the answer by."""

    def __init__(self, header: Any) -> None:
        self._header = header

    def __getattr__(self, name: str) -> Any:
        return getattr(self._header, name)

    def get_response_class(self) -> _Answers:
        return _Answers(self._header.get_response_class())


@dataclass(frozen=True, slots=True)
class _Body:
    """An answer as it came; the connection itself heeds the throttling that it begins with."""

    body: bytes

    @property
    def throttle_time_ms(self) -> int:
        return int.from_bytes(self.body[:4], "big", signed=True)


@dataclass(frozen=True, slots=True)
class _Answers:
    """Stands where the library has the class of a request's answers."""

    decoding: Any

    def parse_header(self, data: Any) -> Any:
        return self.decoding.parse_header(data)

    def decode(self, data: Any) -> _Body:
        return _Body(data.read())


def error_name(code: int) -> str:
    """Return Kafka's name of an error code without the library's ending; none for 0.

    >>> error_name(29), error_name(0)
    ('TopicAuthorizationFailed', '')
    """
    return name_of(for_code(code)) if code else ""


def name_of(error: type[BaseException]) -> str:
    return error.__name__.removesuffix("Error")


METADATA_TOPIC = "__cluster_metadata"
TOPIC, BROKER = 2, 4  # Kafka's numbers of config resources
# Kafka's numbers of operations.
_OPERATIONS = {
    KafkaOperation.ALTER: 7,
    KafkaOperation.DESCRIBE: 8,
    KafkaOperation.DESCRIBE_CONFIGS: 10,
}
# Nobody waits for a right to throttle: AlterConfigs is found missing where it is used.


def brokers_there(wire: WireAdmin) -> list[int]:
    """Return the ids of the brokers that are registered and not fenced."""
    return sorted(b.broker_id for b in brokers_in(wire.ask(cluster_request())) if not b.fenced)


def log_dirs_request() -> Any:
    return DescribeLogDirsRequest(topics=None)


def cluster_request() -> Any:
    return DescribeClusterRequest(
        include_cluster_authorized_operations=True, include_fenced_brokers=True
    )


def brokers_in(answer: Any) -> list[BrokerAnswer]:
    raise_for(answer.error_code)
    # Before 4.0 a broker that is fenced is not in the answer at all.
    return [BrokerAnswer(each.broker_id, bool(each.is_fenced)) for each in answer.brokers]


def replicas_in(found: Iterable[Any]) -> tuple[ReplicaAnswer, ...]:
    return tuple(ReplicaAnswer(each.replica_id, each.last_caught_up_timestamp) for each in found)


def directory_in(found: Any) -> DirectoryAnswer:
    return DirectoryAnswer(
        path=found.log_dir,
        # A future log is a copy in the making, on another disk of the same broker.
        held=frozenset(
            (name, partition.partition_index)
            for topic in found.topics
            # One text for what every broker says: 200 of them name each topic.
            for name in (sys.intern(topic.name),)
            for partition in topic.partitions
            if not partition.is_future_key
        ),
        error=error_name(found.error_code),
    )


def raise_for(code: int) -> None:
    if code:
        raise for_code(code)


def allowed_in(operations: Collection[int] | None) -> frozenset[str] | None:
    """Return what a client may do with the cluster, of what the functions ever do."""
    if operations is None:
        return None
    return frozenset(name for name, number in _OPERATIONS.items() if number in operations)


def voters_in(configured: str) -> frozenset[int]:
    """Return the ids in controller.quorum.voters.

    >>> sorted(voters_in("0@a:9090,1@b:9090"))
    [0, 1]
    """
    ids = (each.partition("@")[0].strip() for each in configured.split(","))
    return frozenset(int(each) for each in ids if each.isdecimal())


def seconds_in(milliseconds: str | None) -> float | None:
    told = milliseconds is not None and milliseconds.isdecimal()
    return int(milliseconds or 0) / 1000 if told else None


def raise_where_refused(code: int, call: KafkaRequest) -> None:
    """Raise where Kafka refuses a call as a whole, with the right to grant where one is missing."""
    if not code:
        return
    remedy = f"; {grant(call)}" if issubclass(for_code(code), AuthorizationError) else ""
    raise StillwaterError(f"Kafka refuses {call} ({error_name(code)}){remedy}.")


MIN_ISR = "min.insync.replicas"
FETCH_TIMEOUT = "controller.quorum.fetch.timeout.ms"
QUORUM_VOTERS = "controller.quorum.voters"
# The most a broker gives in one page (max.request.partition.size.limit).
PAGE_PARTITIONS = 2000
# One request names every topic it asks the settings of.
TOPICS_PER_REQUEST = 1000
# Of topics that an answer left out, so many are asked for by name, to hear why.
ASKED_BY_NAME = 20
# A partition without a leader, or whose leader is just going: no leader, and no other error.
_NO_LEADER = frozenset({"LeaderNotAvailable", "ListenerNotFound"})

# One broker that does not answer costs a request's timeout.
MOST_TRIED = 4

T = TypeVar("T")


class Reading:
    """One reading, call by call; `about` are the brokers it is taken for, None is all of them.

    Of partitions that no broker of `about` holds, only those that are not well are kept. `pages`
    is what readings before this one leave to it.
    """

    def __init__(
        self, wire: WireAdmin, about: Collection[int] | None = None, pages: Pages | None = None
    ) -> None:
        self._wire, self._pages = wire, pages or Pages()
        self._about = None if about is None else frozenset(about)
        self._refusals: list[Refusal] = []
        self._shared: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._partitions: list[PartitionAnswer] = []
        self._described: dict[str, tuple[int, int]] = {}  # topic -> partitions, highest number
        self._topic_errors: dict[str, str] = {}

    def take(self) -> Answers:
        """Return every answer; raises KafkaError where nobody answers at all."""
        known = brokers_in(self._wire.ask(cluster_request()))
        asked, described, other, again = self._two_of(known)
        quorum = self._quorum(asked)
        if quorum is None and again is not None and not self._refusals:
            # A broker that is cut off from the controllers knows of no quorum where one is.
            asked, described, other, again = other, again, asked, described
            quorum = self._quorum(asked)
        if quorum is not None and again is not None and not is_current(asked, quorum):
            asked, described, other, again = other, again, asked, described
        names = self._attempt(KafkaRequest.LIST_CONFIG_RESOURCES, lambda: self._names(other))
        brokers = brokers_in(described)
        counted = self._whole_brokers(brokers, names, quorum)
        if counted != self._about_brokers(brokers, quorum):
            self._about = None  # every broker is counted, so every partition must be kept
        self._topics(asked)
        directories = self._directories(counted)
        self._ask_hidden(asked, names, directories)
        settings = self._broker_settings(asked)
        return Answers(
            brokers=tuple(brokers),
            brokers_again=None
            if again is None
            else frozenset(b.broker_id for b in brokers_in(again)),
            quorum=quorum,
            partitions=tuple(self._partitions),
            described=self._described,
            topic_errors=self._topic_errors,
            minimums=self._minimums(asked),
            topic_names=names,
            directories=directories,
            counted=counted,
            # Asked of the controllers, so it waits in vain where there are none.
            reassigning=() if quorum is None else self._reassigning(asked),
            configured_voters=voters_in(settings.get(QUORUM_VOTERS, "")),
            fetch_timeout_seconds=seconds_in(settings.get(FETCH_TIMEOUT)),
            asked=asked,
            allowed=allowed_in(described.authorized_operations),
            refusals=tuple(self._refusals),
        )

    def _two_of(self, known: Sequence[BrokerAnswer]) -> tuple[int, Any, int, Any]:
        """Return two brokers that answer and what each says of the cluster, the second's or None.

        Those the reading is about come last: they may be the ones that are cut off.
        """
        about = self._about or frozenset()
        order = sorted((b.broker_id in about, b.broker_id) for b in known if not b.fenced)
        answers: list[tuple[int, Any]] = []
        problem: KafkaError = KafkaError("No broker is registered and unfenced.")
        for _, broker_id in order[:MOST_TRIED]:
            try:
                answers.append((broker_id, self._wire.ask(cluster_request(), broker_id)))
            except KafkaError as error:
                problem = error
            if len(answers) > 1:
                break
        if not answers:
            raise problem
        first, second = answers[0], answers[-1]
        return *first, second[0], None if second is first else second[1]

    def _attempt(self, call: KafkaRequest, question: Callable[[], T]) -> T | None:
        """Return an answer, or None and the note that a right to it is missing."""
        try:
            return question()
        except AuthorizationError as error:
            self._refusals.append(Refusal(call=call, error=name_of(type(error))))
            return None

    def _quorum(self, asked: int) -> QuorumAnswer | None:
        """Return the quorum as its leader tells it; None where none answers, or it is refused."""
        try:
            answer = self._wire.ask(DescribeQuorumRequest(topics=[(METADATA_TOPIC, [(0,)])]), asked)
            raise_for(answer.error_code)
            (partition,) = (p for topic in answer.topics for p in topic.partitions)
            raise_for(partition.error_code)
        except (AuthorizationError, IncompatibleBrokerVersion) as error:
            self._refusals.append(
                Refusal(call=KafkaRequest.DESCRIBE_QUORUM, error=name_of(type(error)))
            )
            return None
        except (KafkaError, ValueError):
            return None
        if partition.leader_id < 0:
            return None
        return QuorumAnswer(
            leader=partition.leader_id,
            voters=replicas_in(partition.current_voters),
            observers=replicas_in(partition.observers),
            nodes=frozenset(node.node_id for node in answer.nodes or ()),
        )

    def _names(self, other: int) -> frozenset[str] | None:
        try:
            names = ListConfigResourcesRequest(resource_types=[TOPIC], min_version=1)
            answer = self._wire.ask(names, other)
        except IncompatibleBrokerVersion:
            return None  # before 4.1; then every broker's log directories count
        raise_for(answer.error_code)
        return frozenset(
            each.resource_name for each in answer.config_resources if each.resource_type == TOPIC
        )

    def _topics(self, asked: int) -> None:
        """Take every topic, page by page; from a broker before 3.8 in one answer."""
        pages = self._pages.reading()
        cursor: Cursor = None
        bodies: dict[Cursor, bytes] = {}
        while True:
            if cursor not in bodies:
                try:
                    bodies = self._asked_ahead(cursor, asked)
                except IncompatibleBrokerVersion:
                    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
                    self._keep_decoded(self._wire.ask(request, asked).topics)
                    return
            page = pages.page(cursor, bodies[cursor], self._about)
            self._keep(page.topics)
            if page.following is None:
                return
            if page.following <= (cursor or ("", -1)):
                raise KafkaError(f"Broker {asked} gives the page at {cursor} again and again.")
            cursor = page.following

    def _asked_ahead(self, cursor: Cursor, asked: int) -> dict[Cursor, bytes]:
        """Ask for a page, and for those after it where it is known where they began."""
        ahead = self._pages.ahead(cursor, MOST_AT_ONCE)
        requests = [
            DescribeTopicPartitionsRequest(
                topics=[],
                response_partition_limit=PAGE_PARTITIONS,
                cursor=each
                and DescribeTopicPartitionsRequest.Cursor(
                    topic_name=each[0], partition_index=each[1]
                ),
            )
            for each in ahead
        ]
        return dict(zip(ahead, self._wire.ask_undecoded(requests, asked), strict=True))

    def _keep_decoded(self, topics: Iterable[Any]) -> None:
        self._keep(topic_in(each, self._about) for each in topics)

    def _keep(self, topics: Iterable[PageTopic]) -> None:
        """Count what a page describes, and keep of it what a decision may need."""
        for topic in topics:
            name = sys.intern(topic.name)
            if topic.error_code:
                self._topic_errors[name] = error_name(topic.error_code)
                continue
            count, highest = self._described.get(name, (0, -1))
            self._described[name] = (count + topic.described, max(highest, topic.highest))
            self._partitions += [self._partition(name, found) for found in topic.partitions]

    def _partition(self, topic: str, found: Any) -> PartitionAnswer:
        error = error_name(found.error_code) if found.error_code else ""
        eligible = getattr(found, "eligible_leader_replicas", None)
        replicas = self._share(found.replica_nodes)
        whole = found.isr_nodes == found.replica_nodes
        return PartitionAnswer(
            topic,
            found.partition_index,
            -1 if error in _NO_LEADER else found.leader_id,
            replicas,
            replicas if whole else self._share(found.isr_nodes),
            self._share(eligible) if eligible else (),
            "" if error in _NO_LEADER else error,
        )

    def _share(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Return one tuple for all partitions on the same brokers."""
        return self._shared.setdefault(found := tuple(ids), found)

    def _ask_hidden(
        self,
        asked: int,
        names: frozenset[str] | None,
        directories: Mapping[int, Sequence[DirectoryAnswer]],
    ) -> None:
        """Ask by name for topics that the answer left out: then Kafka says why."""
        held = {topic for each in directories.values() for d in each for topic, _ in d.held}
        hidden = sorted(((names or frozenset()) | held) - self._described.keys())
        asked_for = [name for name in hidden if name not in self._topic_errors][:ASKED_BY_NAME]
        if asked_for:
            topics = [(name,) for name in asked_for]
            request = MetadataRequest(
                topics=[MetadataRequest.MetadataRequestTopic(name=name) for (name,) in topics],
                allow_auto_topic_creation=False,
            )
            self._keep_decoded(self._wire.ask(request, asked).topics)

    def _about_brokers(
        self, brokers: Sequence[BrokerAnswer], quorum: QuorumAnswer | None
    ) -> frozenset[int] | None:
        """Return the brokers among those the reading is about: a controller holds no partition."""
        if self._about is None:
            return None
        voters = {voter.node_id for voter in quorum.voters} if quorum is not None else set()
        return self._about - (voters - {each.broker_id for each in brokers})

    def _whole_brokers(
        self,
        brokers: Sequence[BrokerAnswer],
        names: frozenset[str] | None,
        quorum: QuorumAnswer | None,
    ) -> frozenset[int]:
        """Return the brokers whose log directories count what the metadata says.

        Those the reading is about; all of them where one of those cannot be asked, or nobody lists
        the topics by name.
        """
        there = frozenset(each.broker_id for each in brokers if not each.fenced)
        about = self._about_brokers(brokers, quorum)
        return there if about is None or names is None or not about <= there else about

    def _directories(self, counted: Iterable[int]) -> Mapping[int, tuple[DirectoryAnswer, ...]]:
        ids = sorted(counted)
        answers = self._wire.ask_each([(id_, log_dirs_request()) for id_ in ids])
        found = {}
        for broker_id, answer in zip(ids, answers, strict=True):
            code = getattr(answer, "error_code", 0)
            if isinstance(answer, KafkaError) or code:
                error = error_name(code) or name_of(type(answer))
                self._refusals.append(
                    Refusal(call=KafkaRequest.DESCRIBE_LOG_DIRS, error=error, broker=broker_id)
                )
                continue
            found[broker_id] = tuple(directory_in(each) for each in answer.results)
        return found

    def _minimums(self, asked: int) -> Mapping[str, int]:
        """Return min.insync.replicas as it is in effect, of the topics that are kept."""
        names = sorted({each.topic for each in self._partitions})
        found = {}
        for chunk in portions(names, TOPICS_PER_REQUEST):
            for name, settings in self._configs(
                KafkaRequest.DESCRIBE_TOPIC_CONFIGS,
                asked,
                [(TOPIC, name, [MIN_ISR]) for name in chunk],
            ):
                if (value := settings.get(MIN_ISR)) is not None and value.isdecimal():
                    found[name] = int(value)
        return found

    def _broker_settings(self, asked: int) -> Mapping[str, str]:
        resource = (BROKER, str(asked), [FETCH_TIMEOUT, QUORUM_VOTERS])
        return dict(self._configs(KafkaRequest.DESCRIBE_BROKER_CONFIGS, asked, [resource])).get(
            str(asked), {}
        )

    def _configs(
        self, call: KafkaRequest, asked: int, resources: Sequence[tuple[int, str, list[str]]]
    ) -> Iterator[tuple[str, Mapping[str, str]]]:
        answer = self._wire.ask(DescribeConfigsRequest(resources=list(resources)), asked)
        noted = False
        for each in answer.results:
            if not each.error_code:
                yield (
                    each.resource_name,
                    {c.name: c.value for c in each.configs if c.value is not None},
                )
            elif not noted:
                noted = True
                topic = each.resource_name if call is KafkaRequest.DESCRIBE_TOPIC_CONFIGS else EVERY
                self._refusals.append(
                    Refusal(call=call, error=error_name(each.error_code), topic=topic)
                )

    def _reassigning(self, asked: int) -> tuple[str, ...]:
        """Return the partitions that are moving to other brokers."""

        def moving() -> tuple[str, ...]:
            answer = self._wire.ask(ListPartitionReassignmentsRequest(topics=None), asked)
            raise_for(answer.error_code)
            return tuple(
                sorted(
                    f"{topic.name}-{partition.partition_index}"
                    for topic in answer.topics
                    for partition in topic.partitions
                )
            )

        return self._attempt(KafkaRequest.LIST_PARTITION_REASSIGNMENTS, moving) or ()
