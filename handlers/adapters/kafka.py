"""Kafka's admin API: one reading of brokers, quorum and partitions, and what is changed.

Traps this module knows (research: kafka-measured): without a quorum the brokers still describe the
cluster, stale and with nobody fenced; a frozen broker in the bootstrap list costs a client its
whole bootstrap time, so addresses are tried one by one; a client older than a broker's return does
not know that broker, so every reading makes its own. The rate of throttled replication is the
default of all brokers: a broker's own value can be set at that broker alone, and one that is away
would keep it. Kafka throttles a replica that is out of sync and marked, and none in sync (KIP-73).
"""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
import ssl
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol, TypeVar

from kafka.errors import (
    ElectionNotNeededError,
    KafkaError,
    KafkaTimeoutError,
    PreferredLeaderNotAvailableError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    UnsupportedSaslMechanismError,
    for_code,
)
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    DescribeConfigsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)

from core.availability.consent import Order, Partition
from core.availability.wholeness import KafkaRequest, view_of
from core.ground.errors import StillwaterError
from core.rotation.run_record import Throttle
from core.views import ClusterView
from handlers.adapters.calls import known_shape, portions
from handlers.adapters.kafka_pages import Pages
from handlers.adapters.kafka_reading import (
    BROKER,
    TOPIC,
    Reading,
    WireAdmin,
    brokers_there,
    error_name,
    log_dirs_request,
    raise_where_refused,
)

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
MARKS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
EVERY_REPLICA = "*"
ALL_BROKERS = ""  # the name of their default
TOPICS_PER_REQUEST = 500
T = TypeVar("T")
_SET, _DELETE = 0, 1  # KIP-339's operations
# Where a value stands that somebody set while brokers ran: a topic, a broker, all brokers' default.
_SET_BY_SOMEBODY = frozenset({1, 2, 3})


def set_by_others(wire: WireAdmin, throttle: Throttle, ours: Collection[str]) -> str | None:
    """Say which throttle somebody else has set where this one would be; None: nobody has.

    `ours` are the topics that are marked already, by an earlier turn: with any, so are the rates.
    """
    topics = [(TOPIC, name, list(MARKS)) for name in sorted({*throttle.topics} - {*ours})]
    found = (_first_set(wire, some, None) for some in portions(topics, TOPICS_PER_REQUEST))
    rates = (
        _first_set(wire, [(BROKER, str(broker), [LEADER_RATE, FOLLOWER_RATE])], broker)
        for broker in (() if ours else throttle.brokers)
    )
    return next((said for said in chain(rates, found) if said), None)


def _first_set(
    wire: WireAdmin, resources: Sequence[tuple[int, str, list[str]]], broker: int | None
) -> str | None:
    answer = wire.ask(DescribeConfigsRequest(resources=list(resources)), broker)
    for each in answer.results:
        call = KafkaRequest.DESCRIBE_BROKER_CONFIGS
        what = f"broker {each.resource_name}"
        if each.resource_type == TOPIC:
            call, what = KafkaRequest.DESCRIBE_TOPIC_CONFIGS, f"topic {each.resource_name}"
        raise_where_refused(each.error_code, call)
        for config in each.configs:
            if config.config_source in _SET_BY_SOMEBODY and config.value:
                return f"{what} has {config.name}={config.value} already, which is not ours."
    return None


def set_throttle(wire: WireAdmin, throttle: Throttle) -> None:
    """Set the rates first: a mark without a rate holds nothing back."""
    rates = {
        LEADER_RATE: str(throttle.leader_bytes_per_s),
        FOLLOWER_RATE: str(throttle.follower_bytes_per_s),
    }
    _alter(wire, BROKER, [ALL_BROKERS], rates)
    _alter(wire, TOPIC, sorted(throttle.topics), dict.fromkeys(MARKS, EVERY_REPLICA))


def lift_throttle(wire: WireAdmin, topics: Collection[str]) -> None:
    """Take the rates away first: then nothing is held back, whatever fails afterwards."""
    _alter(wire, BROKER, [ALL_BROKERS], dict.fromkeys((LEADER_RATE, FOLLOWER_RATE)))
    _alter(wire, TOPIC, sorted(topics), dict.fromkeys(MARKS))


def _alter(
    wire: WireAdmin, kind: int, names: Sequence[str], values: Mapping[str, str | None]
) -> None:
    changes = [(key, _DELETE if value is None else _SET, value) for key, value in values.items()]
    call = KafkaRequest.ALTER_BROKER_CONFIGS if kind == BROKER else KafkaRequest.ALTER_TOPIC_CONFIGS
    for some in portions(names, TOPICS_PER_REQUEST):
        answer = wire.ask(
            IncrementalAlterConfigsRequest(
                resources=[(kind, name, changes) for name in some], validate_only=False
            )
        )
        for result in answer.responses:
            # A topic that was deleted meanwhile is throttled by nobody.
            gone = result.error_code and issubclass(
                for_code(result.error_code), UnknownTopicOrPartitionError
            )
            if not gone:
                raise_where_refused(result.error_code, call)


CONNECT_SECONDS = 1.0
BOOTSTRAP_SECONDS = 2.0
REQUEST_SECONDS = 3.0
# One address may take 14 s, so a reading that fails altogether ends within 30 s.
READ_SECONDS = 15.0
# A broker that is away is what a tick expects; the client would log a warning per attempt.
logging.getLogger("kafka").setLevel(logging.ERROR)
_CLIENT_LOGS = [logging.getLogger(f"kafka.net.{part}") for part in ("manager", "connection")]
PREFERRED = 0  # KIP-460's election type
# A request names every partition it changes; a controller takes thousands in one, but not any size.
PARTITIONS_PER_REQUEST = 500
# A partition that goes away, and an election that came about already, ask for nothing.
_HARMLESS = (ElectionNotNeededError, PreferredLeaderNotAvailableError, UnknownTopicOrPartitionError)


class Access(Protocol):
    """How a client connects, as of each reading: authorities and credentials are renewed."""

    def __call__(self) -> Mapping[str, Any]:
        """Return settings of kafka-python; raises StillwaterError where there are none."""

    def remedy(self, error: BaseException) -> str:
        """Return a clause on what to do where Kafka did not let the client in; may be empty."""


class Anonymous:
    """In the clear and without a name."""

    def __call__(self) -> Mapping[str, Any]:
        return {"security_protocol": "PLAINTEXT"}

    def remedy(self, error: BaseException) -> str:
        del error
        return ""


class KafkaAdmin:
    """Asks a cluster through whichever bootstrap address answers first.

    `needed` are calls that whoever reads must be allowed to make afterwards: a reading says so when
    a right to one is missing. `pages` let one reading after another take less time, not less of
    Kafka.
    """

    def __init__(
        self,
        bootstrap: Iterable[str],
        access: Access | None = None,
        needed: Iterable[KafkaRequest] = (),
        pages: Pages | None = None,
    ) -> None:
        self._bootstrap, self._needed = tuple(bootstrap), frozenset(needed)
        self._access = access or Anonymous()
        self._pages = pages

    @known_shape("Kafka")
    def read(self, about: Collection[int] | None = None) -> ClusterView:
        """Return one reading; raises StillwaterError when no broker answers.

        `about` are the brokers it is taken for: of partitions on none of them, only those that are
        not well are in it. A view may have doubts, and then allows nothing.
        """
        with _pause_collector():
            return self._ask(
                lambda wire: view_of(Reading(wire, about, self._pages).take(), self._needed)
            )

    def reorder(self, orders: Mapping[Partition, Order]) -> None:
        """Write the order of partitions' replicas; no data moves.

        Raises StillwaterError with the first partition that Kafka refuses.
        """
        if orders:
            self._ask(lambda wire: _reorder(wire, orders))

    @known_shape("Kafka")
    def log_bytes(self, brokers: Iterable[int] | None = None) -> dict[int, int]:
        """Return how many bytes of log each broker holds that says so, of those or of all."""
        return self._ask(lambda wire: _log_bytes(wire, brokers))

    def elect(self, partitions: Iterable[Partition]) -> None:
        """Have the first replica of each partition lead it, where it is in sync."""
        wanted = sorted(partitions)
        if wanted:
            self._ask(lambda wire: _elect(wire, wanted))

    def throttled_by_others(self, throttle: Throttle, ours: Collection[str]) -> str | None:
        """Say what somebody else throttles where this would; `ours` are topics we marked already.

        Raises StillwaterError where Kafka does not tell.
        """
        return self._ask(lambda wire: set_by_others(wire, throttle, ours))

    def throttle(self, throttle: Throttle) -> None:
        """Have replication into what is out of sync of some topics keep to a rate.

        Raises StillwaterError where Kafka refuses it.
        """
        self._ask(lambda wire: set_throttle(wire, throttle))

    def unthrottle(self, topics: Collection[str]) -> None:
        """Take the rate away, and the marks of these topics."""
        self._ask(lambda wire: lift_throttle(wire, topics))

    def _ask(self, question: Callable[[WireAdmin], T]) -> T:
        problems, remedies = [], []
        settings = self._settings()
        give_up_at = time.monotonic() + READ_SECONDS
        for address in self._bootstrap:
            if time.monotonic() > give_up_at:
                problems.append(f"{address}: not tried, {READ_SECONDS:.0f} s are over")
                continue
            with _connection_errors() as refused:
                try:
                    return self._ask_at(address, settings, question)
                except (KafkaError, OSError) as error:
                    reasons = [each for each in refused if self._access.remedy(each)]
                    why = [*reasons, *reversed(refused), error][0]
                    problems.append(f"{address}: {str(why) or type(why).__name__}")
                    remedies.append(self._access.remedy(why))
        remedy = next((f": {each}" for each in remedies if each), "")
        said = "; ".join(each.rstrip(".") for each in problems)
        raise StillwaterError(f"No Kafka broker could be reached: {said}{remedy}.")

    def _settings(self) -> Mapping[str, Any]:
        try:
            return self._access()
        except ssl.SSLError as error:
            # Strimzi writes certificate and key into one Secret, and authorities into another.
            raise StillwaterError(
                "No Kafka broker could be reached: the certificates to connect with cannot be "
                f"used ({error}). See that the Secrets of the user and of the cluster's authority "
                "hold whole PEM texts."
            ) from None

    def _ask_at(
        self, address: str, settings: Mapping[str, Any], question: Callable[[WireAdmin], T]
    ) -> T:
        _knock(address)
        admin = WireAdmin(
            bootstrap_servers=address,
            bootstrap_timeout_ms=int(BOOTSTRAP_SECONDS * 1000),
            request_timeout_ms=int(REQUEST_SECONDS * 1000),
            client_id="stillwater-tick",
            **settings,
        )
        try:
            return question(admin)
        finally:
            admin.close()


_LATE = (KafkaTimeoutError, RequestTimedOutError)


class _Reasons(logging.Filter):
    """Keeps the errors that a client tells its log alone; its warnings go no further."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[BaseException] = []

    def filter(self, record: logging.LogRecord) -> bool:
        for said in record.args if isinstance(record.args, tuple) else ():
            # A time that ran out is no reason.
            if isinstance(said, BaseException) and not isinstance(said, _LATE):
                self.heard.append(said)
            elif said == UnsupportedSaslMechanismError.__name__:
                self.heard.append(UnsupportedSaslMechanismError("mechanism not offered"))
        return record.levelno >= logging.ERROR


@contextlib.contextmanager
def _connection_errors() -> Iterator[list[BaseException]]:
    """Yield why connections failed meanwhile: a client that cannot bootstrap raises its timeout."""
    reasons = _Reasons()
    for log in _CLIENT_LOGS:
        log.addFilter(reasons)
        log.setLevel(logging.WARNING)
    try:
        yield reasons.heard
    finally:
        for log in _CLIENT_LOGS:
            log.removeFilter(reasons)
            if not log.filters:
                log.setLevel(logging.NOTSET)


@contextlib.contextmanager
def _pause_collector() -> Iterator[None]:
    """Keep Python's cycle collector away: nothing in a reading is a cycle, and it looks at all.

    At 200 brokers it took 40 % of the time, for nothing.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _knock(address: str) -> None:
    """Fail at once where nothing listens: the client would try for its whole bootstrap time."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()


def _log_bytes(wire: WireAdmin, brokers: Iterable[int] | None) -> dict[int, int]:
    ids = brokers_there(wire) if brokers is None else sorted(brokers)
    found = {}
    for broker_id, answer in zip(
        ids, wire.ask_each([(i, log_dirs_request()) for i in ids]), strict=True
    ):
        if isinstance(answer, KafkaError) or answer.error_code or not answer.results:
            continue  # whoever measures goes without; whoever decides takes a reading
        found[broker_id] = sum(
            partition.partition_size
            for directory in answer.results
            for topic in directory.topics
            for partition in topic.partitions
        )
    return found


def _reorder(wire: WireAdmin, orders: Mapping[Partition, Order]) -> None:
    for chunk in portions(sorted(orders), PARTITIONS_PER_REQUEST):
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=int(REQUEST_SECONDS * 1000),
            topics=[
                (topic, [(number, list(orders[topic, number])) for number in numbers])
                for topic, numbers in _topic_numbers(chunk).items()
            ],
        )
        answer = wire.ask(request)
        raise_where_refused(answer.error_code, KafkaRequest.ALTER_PARTITION_REASSIGNMENTS)
        for topic in answer.responses:
            for result in topic.partitions:
                if _is_refusal(result.error_code):
                    raise StillwaterError(
                        f"Kafka refused another order of the replicas of "
                        f"{topic.name}-{result.partition_index}: {error_name(result.error_code)}."
                    )


def _elect(wire: WireAdmin, partitions: list[Partition]) -> None:
    for chunk in portions(partitions, PARTITIONS_PER_REQUEST):
        request = ElectLeadersRequest(
            election_type=PREFERRED,
            topic_partitions=list(_topic_numbers(chunk).items()),
            timeout_ms=int(REQUEST_SECONDS * 1000),
        )
        answer = wire.ask(request)
        raise_where_refused(answer.error_code, KafkaRequest.ELECT_LEADERS)
        # One partition without its election must not hide what came of the others.
        for topic in answer.replica_election_results:
            for result in topic.partition_result:
                if _is_refusal(result.error_code):
                    raise StillwaterError(
                        f"Kafka elected no leader of {topic.topic}-{result.partition_id}: "
                        f"{error_name(result.error_code)}."
                    )


def _topic_numbers(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return found


def _is_refusal(code: int) -> bool:
    return bool(code) and not issubclass(for_code(code), _HARMLESS)
