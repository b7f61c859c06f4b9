"""One way back of one broker: what goes and how, what its return took, and the model's word."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaProducer
from kafka.errors import KafkaError

from bench.refill.nodes import BROKERS, BenchNodes
from bench.waiting import until
from core.cost import resync
from core.ground.errors import StillwaterError

TOPIC, PARTITIONS = "resync", 12
# A production broker of 30 MB/s appended and 200 MB/s replicated, out for 300 s, is back in 53 s.
# A twentieth of its rates and an eighth of its outage keep the proportions. Both are as large as
# patience allows: a broker fetches a few MB before it has read that it is throttled, and one that
# is back within replica.lag.time.max.ms (30 s) holds up every producer until it has caught up.
APPEND_BYTES_PER_S = 1_500_000
THROTTLE_BYTES_PER_S = 9_000_000
OUTAGE_SECONDS = 36.0
# Each record is a batch. A fetch ends in the middle of one, and what came of it is fetched again: a
# batch must be as small against a fetch as in production, or much of the rate goes there.
RECORD_BYTES = 4 * 1024
FILL_AT_ONCE = 40
LOOK_SECONDS, LIMIT_SECONDS = 0.1, 400.0
AWAY = BROKERS[-1]
STAYING = BROKERS[:-1]
SLOW_DISK = Path(__file__).with_name("slow_disk.c")


@dataclass(frozen=True, kw_only=True)
class RefillCase:
    """Which way a broker comes back: with its directory or without, and what was wrong."""

    path: str  # "kept" or "emptied"
    stop: str = "clean"
    disk_bytes_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One way back; `held_bytes` is what the broker must hold, as a peer's directory has it."""

    case: RefillCase
    held_bytes: float
    append_bytes_per_s: float
    outage_seconds: float
    start_seconds: float  # from the process's start to its first fetch, formatting included
    seconds: float  # from its first fetch to its being in every ISR
    bytes_in: float
    samples: tuple[tuple[float, float], ...]

    def prediction(self, replication_bytes_per_s: float) -> resync.CatchUp | resync.Divergence:
        """Return the model's word for this way back, from what was measured about it."""
        limits = {"follower.replication.throttled.rate": replication_bytes_per_s}
        if self.case.disk_bytes_per_s is not None:
            limits["the disk"] = self.case.disk_bytes_per_s
        limited_by, rate = resync.slowest(limits)
        flow = resync.Flow(
            append_bytes_per_s=self.append_bytes_per_s,
            replication_bytes_per_s=rate,
            limited_by=limited_by,
        )
        if self.case.path == "kept":
            return resync.after_outage(
                flow, outage_seconds=self.outage_seconds, held_bytes=self.held_bytes
            )
        return resync.after_loss(
            flow, outage_seconds=self.outage_seconds, held_bytes=self.held_bytes
        )

    def head_start_bytes(self, replication_bytes_per_s: float) -> float:
        """Return what came before the first sample beyond the rate, before a throttle took hold."""
        at, came = self.samples[0]
        return max(0.0, came - at * replication_bytes_per_s)

    @property
    def rate_bytes_per_s(self) -> float:
        """Return the rate of the middle of the way back, where neither end is in it."""
        inner = [(at, n) for at, n in self.samples if 0.1 <= n / self.bytes_in <= 0.9]
        (first_at, first), (last_at, last) = inner[0], inner[-1]
        return (last - first) / (last_at - first_at)


class Appender:
    """Appends at a steady rate, acknowledged by all in-sync replicas, until it is closed."""

    def __init__(self, bootstrap: list[str]) -> None:
        self.errors: list[str] = []
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            batch_size=RECORD_BYTES,
            metadata_max_age_ms=5_000,
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        started, sent, record = time.monotonic(), 0, os.urandom(RECORD_BYTES)
        while not self._stop.is_set():
            due = started + sent * RECORD_BYTES / APPEND_BYTES_PER_S
            self._stop.wait(max(0.0, due - time.monotonic()))
            try:
                future = self._producer.send(TOPIC, record, partition=sent % PARTITIONS)
                future.add_errback(lambda error: self.errors.append(repr(error)))
            except KafkaError as error:
                self.errors.append(repr(error))
            sent += 1

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.close()


def fill(nodes: BenchNodes, to_bytes: int) -> None:
    """Append until a broker that stays holds so much."""
    producer = KafkaProducer(
        bootstrap_servers=nodes.bootstrap,
        acks="all",
        batch_size=RECORD_BYTES,
    )
    record, sent = os.urandom(RECORD_BYTES), 0
    try:
        while nodes.log_bytes(STAYING[0], TOPIC) < to_bytes:
            for _ in range(FILL_AT_ONCE * PARTITIONS):
                producer.send(TOPIC, record, partition=sent % PARTITIONS)
                sent += 1
            producer.flush(60)
    finally:
        producer.close()


def measure(nodes: BenchNodes, case: RefillCase) -> Measured:
    """Let a broker go and come back; return what its way back took."""
    _until_in_sync(nodes)
    nodes.stop(AWAY, signal.SIGTERM if case.stop == "clean" else signal.SIGKILL)
    gone_at = nodes.last_append(AWAY, TOPIC)
    peer_at, peer_had = time.time(), nodes.log_bytes(STAYING[0], TOPIC)
    if case.path == "emptied":
        nodes.empty(AWAY)
    # Both ways are away for as long; what formatting takes is part of an outage that is measured.
    time.sleep(max(0.0, gone_at + OUTAGE_SECONDS - time.time()))
    started_at = time.time()
    nodes.start(AWAY, slow_disk(nodes, case.disk_bytes_per_s))
    fetching_at, held = _first_fetch(nodes)
    samples = _follow(nodes, fetching_at)
    over_at, bytes_in = samples[-1]
    appended = nodes.log_bytes(STAYING[0], TOPIC) - peer_had
    return Measured(
        case=case,
        held_bytes=held,
        append_bytes_per_s=appended / (time.time() - peer_at),
        outage_seconds=fetching_at - gone_at,
        start_seconds=fetching_at - started_at,
        seconds=over_at,
        bytes_in=bytes_in,
        samples=tuple(samples),
    )


def never(nodes: BenchNodes, disk_bytes_per_s: float, watched_seconds: float) -> dict[str, float]:
    """Let a broker come back to a disk slower than what is appended; return how far it falls."""
    _until_in_sync(nodes)
    nodes.stop(AWAY)
    time.sleep(OUTAGE_SECONDS)
    nodes.start(AWAY, slow_disk(nodes, disk_bytes_per_s))
    _first_fetch(nodes)

    def behind() -> float:
        return nodes.log_bytes(STAYING[0], TOPIC) - nodes.log_bytes(AWAY, TOPIC)

    # A fresh throttle grants its first second at once.
    time.sleep(5)
    first, began = behind(), time.monotonic()
    time.sleep(watched_seconds)
    grown = behind() - first
    return {
        "behind_bytes": first,
        "grows_bytes_per_s": grown / (time.monotonic() - began),
        "in_sync": float(nodes.all_in_sync(TOPIC, STAYING)),
    }


def slow_disk(nodes: BenchNodes, bytes_per_s: float | None) -> dict[str, str]:
    """Return the environment in which a broker's record logs take so many bytes a second."""
    if bytes_per_s is None:
        return {}
    library = nodes.place.path("slow_disk.so")
    if not library.exists():
        try:
            subprocess.run(
                ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(SLOW_DISK), "-ldl"],
                check=True,
            )
        except OSError:
            raise StillwaterError(
                "The rows with a slow disk need a C compiler, and there is no `cc`; install gcc or "
                "clang, or run with --without-slow-disk."
            ) from None
    return {
        "LD_PRELOAD": str(library),
        "SLOW_DISK_UNDER": str(nodes.place.path("volumes")),
        "SLOW_DISK_RATE": str(bytes_per_s),
    }


def _until_in_sync(nodes: BenchNodes) -> None:
    until(
        lambda: nodes.all_in_sync(TOPIC, STAYING),
        f"{TOPIC} is in sync again",
        within_seconds=LIMIT_SECONDS,
        look_seconds=0.5,
        alive=nodes.check_alive,
    )


def _first_fetch(nodes: BenchNodes) -> tuple[float, float]:
    """Wait for the first bytes; return when they came, and what a peer held then.

    Seen in the broker's directory: while it starts, its metrics answer late or not at all.
    """
    deadline = time.monotonic() + LIMIT_SECONDS
    before, had = time.time(), nodes.log_bytes(AWAY, TOPIC)
    while time.monotonic() < deadline:
        nodes.check_alive()
        at, has = time.time(), nodes.log_bytes(AWAY, TOPIC)
        if has > had:
            return (before + at) / 2, nodes.log_bytes(STAYING[0], TOPIC)
        before, had = at, has
        time.sleep(LOOK_SECONDS / 4)
    raise StillwaterError(f"Broker {AWAY} fetched nothing within {LIMIT_SECONDS:.0f} s.")


def _follow(nodes: BenchNodes, fetching_at: float) -> list[tuple[float, float]]:
    """Return (seconds since the first fetch, bytes fetched) until the broker is in every ISR."""
    samples: list[tuple[float, float]] = []
    while time.time() < fetching_at + LIMIT_SECONDS:
        nodes.check_alive()
        over = nodes.all_in_sync(TOPIC, STAYING)
        fetched = nodes.replication_bytes_in(AWAY)
        if fetched is not None:
            samples.append((time.time() - fetching_at, fetched))
            if over:
                return samples
        time.sleep(LOOK_SECONDS)
    raise StillwaterError(
        f"Broker {AWAY} was not in every ISR {LIMIT_SECONDS:.0f} s after its first fetch."
    )
