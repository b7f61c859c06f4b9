"""Produces and reads back as any application does, counts attempts, and keeps the probe's topic.

What a client library hides from an application is hidden here, too: a leader that moves is a retry.
An attempt counts from when it was due, so what is stuck before Kafka has failed. The topic has a
partition for every broker, which that broker leads by preference; Kafka gives leaders back by
itself (auto.leader.rebalance.enable), so the probe needs no right on the cluster.
"""

from __future__ import annotations

import queue
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aws_lambda_powertools import Logger
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError, TopicAlreadyExistsError, UnknownBrokerIdError

from core.ground.errors import StillwaterError
from core.settings.prometheus import ATTEMPTS, FAILED, SECONDS

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
PRODUCE, CONSUME = "produce", "consume"


@dataclass
class _Histogram:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


@dataclass
class _Attempt:
    due_at: float
    acked: bool = False


class Attempts:
    """The attempts under way and what became of the others, by broker."""

    def __init__(self, brokers: Iterable[int], limit_seconds: float) -> None:
        self._limit = limit_seconds
        self._brokers = tuple(brokers)
        self._open: dict[tuple[int, int], _Attempt] = {}
        self._begun: Counter[int] = Counter()
        self._failed: Counter[tuple[int, str]] = Counter()
        self._seconds = {(b, what): _Histogram() for b in self._brokers for what in STEPS}
        # Clients call from threads of their own.
        self._lock = threading.Lock()

    def begin(self, broker: int, number: int, now: float) -> None:
        """Note that an attempt is due now."""
        with self._lock:
            self._begun[broker] += 1
            self._open[broker, number] = _Attempt(now)

    def note_acked(self, broker: int, number: int, now: float) -> None:
        """Note that the brokers have acknowledged an attempt's record."""
        with self._lock:
            found = self._open.get((broker, number))
            if found is not None and not found.acked:
                found.acked = True
                self._seconds[broker, PRODUCE].add(now - found.due_at)

    def read(self, broker: int, number: int, now: float) -> None:
        """Note that an attempt's record was read; in time, the attempt has succeeded."""
        with self._lock:
            found = self._open.get((broker, number))
            if found is None or now - found.due_at > self._limit:
                return
            self._seconds[broker, CONSUME].add(now - found.due_at)
            # Read before its acknowledgement came: it is in the log all the same.
            del self._open[broker, number]

    def expire(self, now: float) -> None:
        """Count what was not read back in time as failed, by the step it never took."""
        with self._lock:
            late = [key for key, each in self._open.items() if now - each.due_at > self._limit]
            for key in late:
                step = CONSUME if self._open.pop(key).acked else PRODUCE
                self._failed[key[0], step] += 1

    def page(self) -> str:
        """Return all of it as Prometheus reads it (text format 0.0.4)."""
        with self._lock:
            return "\n".join([*self._counters(), *self._histograms(), ""])

    def _counters(self) -> Iterator[str]:
        yield f"# TYPE {ATTEMPTS} counter"
        yield from (f'{ATTEMPTS}{{broker="{b}"}} {self._begun[b]}' for b in self._brokers)
        yield f"# TYPE {FAILED} counter"
        for broker in self._brokers:
            for step in STEPS:
                count = self._failed[broker, step]
                yield f'{FAILED}{{broker="{broker}",step="{step}"}} {count}'

    def _histograms(self) -> Iterator[str]:
        yield f"# TYPE {SECONDS} histogram"
        for (broker, step), each in self._seconds.items():
            labels, below = f'broker="{broker}",step="{step}"', 0
            for bound, count in zip((*BUCKETS, "+Inf"), each.counts, strict=True):
                below += count
                yield f'{SECONDS}_bucket{{{labels},le="{bound}"}} {below}'
            yield f"{SECONDS}_sum{{{labels}}} {each.total:.6f}"
            yield f"{SECONDS}_count{{{labels}}} {below}"


STEPS = (PRODUCE, CONSUME)


def replica_placement(racks: Mapping[int, str | None], factor: int) -> dict[int, list[int]]:
    """Return each broker's replicas for the partition it leads: itself, then other racks first.

    >>> replica_placement({10: "a", 20: "b", 30: "a"}, 2)
    {10: [10, 20], 20: [20, 30], 30: [30, 20]}
    """
    ids = sorted(racks)
    found = {}
    for place, broker in enumerate(ids):
        others = [*ids[place + 1 :], *ids[:place]]
        others.sort(key=lambda other: racks[other] == racks[broker])
        found[broker] = [broker, *others][:factor]
    return found


logger = Logger(service="stillwater", child=True)
PERIOD_SECONDS = 1.0
POLL_MS = 250
# Attempts that no client came to send; they fail by their own time limit.
MOST_WAITING = 1000


class Clients:
    """A producer and a consumer over the partitions of every broker."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        topic: str,
        partitions: Mapping[int, int],
        attempts: Attempts,
        limit_seconds: float,
    ) -> None:
        self._topic, self._partitions, self._attempts = topic, partitions, attempts
        self._brokers = {partition: broker for broker, partition in partitions.items()}
        # Records of a probe before this one are not ours.
        self._run = f"{time.time():.3f}"
        self._waiting: queue.Queue[tuple[int, int]] = queue.Queue(MOST_WAITING)
        limit_ms = int(limit_seconds * 1000)
        self._producer = KafkaProducer(
            **settings,
            acks="all",
            enable_idempotence=False,
            request_timeout_ms=limit_ms,
            delivery_timeout_ms=limit_ms,
            max_block_ms=limit_ms,
        )
        self._consumer = KafkaConsumer(**settings, group_id=None, enable_auto_commit=False)
        mine = [TopicPartition(topic, partition) for partition in self._brokers]
        self._consumer.assign(mine)
        self._consumer.seek_to_end(*mine)
        # Asked now: what is produced from here on is read.
        for each in mine:
            self._consumer.position(each)

    def start(self) -> None:
        """Send and read in threads of their own, which end with the process."""
        for work in (self._send, self._read):
            threading.Thread(target=work, daemon=True, name=work.__name__).start()

    def attempt(self, number: int, now: float) -> None:
        """Begin an attempt with every broker."""
        for broker in self._partitions:
            self._attempts.begin(broker, number, now)
            try:
                self._waiting.put_nowait((broker, number))
            except queue.Full:
                logger.warning("An attempt was not sent.", broker=broker)

    def _send(self) -> None:
        while True:
            broker, number = self._waiting.get()
            try:
                sent = self._producer.send(
                    self._topic,
                    value=f"{self._run} {number}".encode(),
                    partition=self._partitions[broker],
                )
            except KafkaError as error:
                logger.warning("A record was not taken.", broker=broker, error=repr(error))
                continue
            sent.add_callback(partial(self._note_acknowledgement, broker, number))
            sent.add_errback(partial(self._log_refusal, broker))

    def _note_acknowledgement(self, broker: int, number: int, _metadata: Any) -> None:
        self._attempts.note_acked(broker, number, time.monotonic())

    @staticmethod
    def _log_refusal(broker: int, error: BaseException) -> None:
        logger.warning("A record was not acknowledged.", broker=broker, error=repr(error))

    def _read(self) -> None:
        while True:
            try:
                found = self._consumer.poll(timeout_ms=POLL_MS)
            except KafkaError as error:
                logger.warning("Nothing was read.", error=repr(error))
                continue
            now = time.monotonic()
            for record in (each for records in found.values() for each in records):
                run, _, number = record.value.decode(errors="replace").partition(" ")
                if run == self._run and number.isdecimal():
                    self._attempts.read(self._brokers[record.partition], int(number), now)


def run(
    attempt: Callable[[int, float], None],
    attempts: Attempts,
    over: Callable[[], bool],
    pause: Callable[[float], Any] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Begin an attempt a second until it is over; none is left out because one was slow."""
    number, due = 0, clock()
    while not over():
        while due <= clock():
            attempt(number, due)
            number, due = number + 1, due + PERIOD_SECONDS
        attempts.expire(clock())
        pause(max(0.0, due - clock()))


def brokers_changed(known: Iterable[int], now: Iterable[int]) -> bool:
    """Say whether a broker has joined that no partition is led by."""
    return not set(now) <= set(known)


# Nobody reads a record twice, and an hour is enough to look at.
CONFIGS = {"retention.ms": "3600000", "segment.ms": "3600000", "cleanup.policy": "delete"}
ASKING_MS = 10_000
# Longer than Kafka takes to find that a broker is gone, and to let others lead.
PATIENCE_SECONDS = 60.0
AGAIN_SECONDS = 1.0
_PASSING = (TopicAlreadyExistsError, UnknownBrokerIdError)


def racks(admin: KafkaAdminClient) -> dict[int, str | None]:
    """Return the brokers that serve, each with its rack."""
    found = admin.describe_cluster()["brokers"]
    return {b["broker_id"]: b.get("rack") for b in found if not b.get("is_fenced")}


def partitions(admin: KafkaAdminClient, topic: str) -> dict[int, int]:
    """Return each broker's partition: the one it is the first replica of; empty without a topic."""
    (described,) = admin.describe_topics([topic])
    return {
        each["replica_nodes"][0]: each["partition_index"]
        for each in sorted(described["partitions"], key=lambda each: -each["partition_index"])
    }


def ensure_topic(settings: Mapping[str, Any], topic: str, factor: int) -> dict[int, int]:
    """Make the topic, or the partitions that brokers which have joined lack; return each's own.

    What passes by itself (a broker that is down, a leader that moves) is asked again for
    PATIENCE_SECONDS: a probe that starts in a fault is to see it. Raises StillwaterError with what
    Kafka refused, or said last.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return _ensure_once(settings, topic, factor)
        except KafkaError as error:
            # A topic that exists by now was made by a request whose answer came too late, and a
            # controller is named before it is listed as a broker.
            passes = error.retriable or isinstance(error, _PASSING)
            if not passes or time.monotonic() > until:
                raise StillwaterError(f"Topic {topic} could not be kept: {error!r}.") from None
        time.sleep(AGAIN_SECONDS)


def _ensure_once(settings: Mapping[str, Any], topic: str, factor: int) -> dict[int, int]:
    admin = KafkaAdminClient(**settings, request_timeout_ms=ASKING_MS)
    try:
        return _kept_leaders(admin, topic, factor)
    finally:
        admin.close()


def _kept_leaders(admin: KafkaAdminClient, topic: str, factor: int) -> dict[int, int]:
    brokers = racks(admin)
    wanted = replica_placement(brokers, min(factor, len(brokers)))
    known = partitions(admin, topic)
    missing = [replicas for broker, replicas in wanted.items() if broker not in known]
    if missing and not known:
        assignments = dict(enumerate(missing))
        admin.create_topics({topic: {"assignments": assignments, "configs": CONFIGS}})
    elif missing:
        count = max(known.values()) + 1 + len(missing)
        admin.create_partitions({topic: {"count": count, "assignments": missing}})
    if missing:
        admin.wait_for_topics([topic])
        known = partitions(admin, topic)
    return {broker: known[broker] for broker in wanted if broker in known}
