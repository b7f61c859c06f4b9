"""The clients whose view counts: an acks=all producer, a live consumer, and a reader of every ISR.

A program of its own, so that nothing the demo draws slows a measured request. It produces numbered
records at a steady rate until SIGTERM, then reads the whole topic back and counts what is missing,
doubled or out of order.
Writes samples.jsonl while it runs and summary.json when it ends.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

from local.demo import clients
from local.demo.clients import CONSUMER, PRODUCER, WATCHER, Entry
from local.kubernetes.client import ApiError, administrator
from local.place import Place
from local.processes import stop_event

NANOSECONDS = 1_000_000_000


def value(number: int, sent_at: float, padding: bytes) -> bytes:
    """Return a record's value: its number, the epoch nanoseconds it was sent at, and padding."""
    return b"%d %d " % (number, sent_at * NANOSECONDS) + padding


def read(text: bytes) -> tuple[int, float]:
    """Return a record's number and the epoch seconds it was sent at."""
    number, sent_ns, _ = text.split(b" ", 2)
    return int(number), int(sent_ns) / NANOSECONDS


@dataclass
class ReadRecords:
    """The record numbers that were read, and what was wrong with their sequence.

    A number that comes again is a duplicate; one that comes after a larger one of its partition,
    and was not there before, is out of order.
    """

    numbers: set[int] = field(default_factory=set)
    duplicates: int = 0
    out_of_order: int = 0
    _last: dict[int, int] = field(default_factory=dict)

    def take(self, partition: int, number: int) -> None:
        """Count one record, in the order it was read."""
        if number in self.numbers:
            self.duplicates += 1
            return
        self.numbers.add(number)
        last = self._last.get(partition, -1)
        if number < last:
            self.out_of_order += 1
        else:
            self._last[partition] = number

    def lacks(self, acknowledged: Collection[int]) -> set[int]:
        """Return the acknowledged numbers that were not read."""
        return set(acknowledged) - self.numbers


TOPIC = clients.TOPIC
PARTITIONS = 12
REPLICATION_FACTOR = 3
MIN_INSYNC_REPLICAS = 2
RECORDS_PER_SECOND = 100
PAYLOAD_BYTES = 512
# Longer than any hand-over a rotation should cause; a record unacknowledged by then is an error.
DELIVERY_TIMEOUT_MS = 120_000
ISR_SAMPLE_SECONDS = 0.5
RENEW_SECONDS = 2.0

Connect = Callable[[], dict[str, Any]]


@dataclass
class Tally:
    """What the producer was told, record by record."""

    sent: int = 0
    acked: dict[int, float] = field(default_factory=dict)  # record number -> send time
    errors: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class Summary:
    """The load's verdict; `lost` counts acknowledged records that cannot be read back.

    `duplicates` and `out_of_order` are those of the topic as read back; what the live consumer saw
    of either beyond that is in `live_disorder`.
    """

    sent: int
    acked: int
    lost: int
    client_errors: int
    first_errors: list[str]
    duplicates: int
    out_of_order: int
    consumed_live: int
    live_disorder: int
    bytes_between_zones: int


class SampleLog:
    """Appends one JSON line per sample; safe from several threads."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        self._lock = threading.Lock()

    def write(self, **fields: Any) -> None:
        with self._lock:
            self._file.write(json.dumps(fields) + "\n")


def create_topic(connect: Connect) -> None:
    """Create the topic, replicated over all three zones, unless it exists."""
    admin = KafkaAdminClient(**connect())
    try:
        if TOPIC not in admin.list_topics():
            admin.create_topics(
                [
                    NewTopic(
                        TOPIC,
                        PARTITIONS,
                        REPLICATION_FACTOR,
                        topic_configs={"min.insync.replicas": str(MIN_INSYNC_REPLICAS)},
                    )
                ]
            )
    finally:
        admin.close()


def unfenced_brokers(connect: Connect) -> list[int]:
    """Return the ids of the brokers that are registered and unfenced; none while nobody answers."""
    try:
        admin = KafkaAdminClient(**connect(), request_timeout_ms=4_000, bootstrap_timeout_ms=4_000)
    except KafkaError:
        return []
    try:
        brokers = admin.describe_cluster()["brokers"]
    except KafkaError:
        return []
    finally:
        admin.close()
    return sorted(b["broker_id"] for b in brokers if not b.get("is_fenced"))


def produce(connect: Connect, stop: threading.Event, tally: Tally, samples: SampleLog) -> None:
    """Send at a steady rate, never waiting for one record before the next is due."""
    producer = KafkaProducer(
        **connect(),
        acks="all",
        enable_idempotence=True,
        linger_ms=0,
        request_timeout_ms=10_000,
        delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
        metadata_max_age_ms=5_000,
    )
    padding = b"x" * PAYLOAD_BYTES
    started = time.monotonic()
    while not stop.is_set():
        number = tally.sent
        due = started + number / RECORDS_PER_SECOND
        stop.wait(max(0.0, due - time.monotonic()))
        sent_at, clock = time.time(), time.perf_counter()
        tally.sent += 1
        try:
            record = value(number, sent_at, padding)
            future = producer.send(TOPIC, record, partition=number % PARTITIONS)
        except KafkaError as error:
            tally.errors.append(repr(error))
            continue

        def acknowledged(_: Any, n: int = number, at: float = sent_at, c: float = clock) -> None:
            with tally.lock:
                tally.acked[n] = at
            samples.write(kind="ack", at=at, ms=(time.perf_counter() - c) * 1000)

        def failed(error: BaseException, at: float = sent_at) -> None:
            tally.errors.append(repr(error))
            samples.write(kind="error", at=at, error=repr(error))

        future.add_callback(acknowledged).add_errback(failed)
    producer.flush(DELIVERY_TIMEOUT_MS / 1000)
    producer.close()


def consume(connect: Connect, stop: threading.Event, seen: ReadRecords, samples: SampleLog) -> None:
    """Read along as a live consumer would: how late each record is, and what breaks."""
    consumer = KafkaConsumer(
        **connect(),
        group_id=None,
        auto_offset_reset="earliest",
        metadata_max_age_ms=5_000,
    )
    consumer.assign([TopicPartition(TOPIC, p) for p in range(PARTITIONS)])
    while not stop.is_set():
        try:
            batches = consumer.poll(timeout_ms=500)
        except KafkaError as error:
            samples.write(kind="consumer_error", at=time.time(), error=repr(error))
            continue
        read_at = time.time()
        for partition, records in batches.items():
            for record in records:
                number, sent_at = read(record.value)
                seen.take(partition.partition, number)
                samples.write(kind="read", at=sent_at, ms=(read_at - sent_at) * 1000)
    consumer.close()


def watch_isr(connect: Connect, stop: threading.Event, samples: SampleLog) -> None:
    """Sample the smallest ISR and who is missing, as the leaders report it."""
    admin: KafkaAdminClient | None = None
    while not stop.wait(ISR_SAMPLE_SECONDS):
        try:
            admin = admin or KafkaAdminClient(
                **connect(), request_timeout_ms=4_000, bootstrap_timeout_ms=4_000
            )
            partitions = admin.describe_topics([TOPIC])[0]["partitions"]
        except KafkaError:
            # A client made before a broker moved may not know it; the next sample opens a new one.
            with contextlib.suppress(Exception):
                if admin:
                    admin.close()
            admin = None
            continue
        missing = sorted(
            {r for p in partitions for r in p["replica_nodes"] if r not in p["isr_nodes"]}
        )
        samples.write(
            kind="isr",
            at=time.time(),
            smallest=min(len(p["isr_nodes"]) for p in partitions),
            missing=missing,
            lacking=sum(len(p["replica_nodes"]) - len(p["isr_nodes"]) for p in partitions),
            leaders=sorted({p["leader_id"] for p in partitions}),
            led_by=[p["leader_id"] for p in sorted(partitions, key=lambda p: p["partition_index"])],
        )
    if admin:
        admin.close()


def renew(entries: Iterable[Entry], stop: threading.Event) -> None:
    """Keep the clients' certificates, and the authorities they trust, those of their Secrets."""
    while not stop.wait(RENEW_SECONDS):
        for entry in entries:
            # An API server that is away, or a pair that is half written: the next look has it.
            with contextlib.suppress(ApiError, OSError):
                entry.renew()


def read_back(connect: Connect) -> ReadRecords:
    """Read the whole topic from its beginning to its end and return what was found."""
    consumer = KafkaConsumer(**connect(), group_id=None, auto_offset_reset="earliest")
    partitions = [TopicPartition(TOPIC, p) for p in range(PARTITIONS)]
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    found = ReadRecords()
    while any(consumer.position(p) < ends[p] for p in partitions):
        for partition, records in consumer.poll(timeout_ms=1000).items():
            for record in records:
                found.take(partition.partition, read(record.value)[0])
    consumer.close()
    return found


def bytes_between_zones(connect: Connect) -> int:
    """Return the bytes that followers hold: each was sent to another zone once.

    Every replica of a partition is in a zone of its own, and internal topics are replicated too.
    Clients' own traffic is not in it.
    """
    admin = KafkaAdminClient(**connect())
    try:
        sizes: dict[tuple[str, int], list[int]] = {}
        for broker in admin.describe_log_dirs():
            for directory in broker["log_dirs"]:
                for topic in directory["topics"]:
                    for partition in topic["partitions"]:
                        key = (topic["name"], partition["partition_index"])
                        sizes.setdefault(key, []).append(partition["partition_size"])
    finally:
        admin.close()
    return sum(sum(replicas) - max(replicas) for replicas in sizes.values())


def run(bootstrap: list[str], directory: Path) -> Summary:
    """Produce, consume and watch until SIGTERM; then read back and write summary.json."""
    stop = stop_event()
    tally, seen = Tally(), ReadRecords()
    samples = SampleLog(directory / "samples.jsonl")
    api = administrator(Place.load())
    entries = producer, consumer, watcher = tuple(
        Entry(api, bootstrap, user) for user in (PRODUCER, CONSUMER, WATCHER)
    )
    create_topic(producer)
    side = threading.Event()
    threads = [
        threading.Thread(target=consume, args=(consumer, side, seen, samples), daemon=True),
        threading.Thread(target=watch_isr, args=(watcher, side, samples), daemon=True),
        threading.Thread(target=renew, args=(entries, side), daemon=True),
    ]
    for thread in threads:
        thread.start()
    produce(producer, stop, tally, samples)
    found = read_back(consumer)
    side.set()
    for thread in threads:
        thread.join(10)
    summary = Summary(
        sent=tally.sent,
        acked=len(tally.acked),
        lost=len(found.lacks(tally.acked)),
        client_errors=len(tally.errors),
        first_errors=tally.errors[:3],
        duplicates=found.duplicates,
        out_of_order=found.out_of_order,
        consumed_live=len(seen.numbers),
        live_disorder=seen.duplicates + seen.out_of_order,
        bytes_between_zones=bytes_between_zones(watcher),
    )
    partial = directory / "summary.json.partial"
    partial.write_text(json.dumps(asdict(summary)))
    partial.rename(directory / "summary.json")
    return summary


if __name__ == "__main__":
    run(sys.argv[1].split(","), Path(sys.argv[2]))
