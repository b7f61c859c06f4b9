"""Two producers with acks=all at their defaults: when each record was sent, and acknowledged."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kafka import KafkaProducer

from core.ground.errors import StillwaterError
from local.demo.load import PARTITIONS, PAYLOAD_BYTES, RECORDS_PER_SECOND
from local.kafka import jars

SOURCE = Path(__file__).with_name("Acks.java")
FLUSH_SECONDS = 60.0


@dataclass
class Acks:
    """When each record was sent, in epoch seconds, and after how many milliseconds acknowledged."""

    seen: list[tuple[float, float]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def latencies_between(self, since: float, until: float) -> list[float]:
        return [ms for at, ms in self.seen if since <= at < until]


@contextmanager
def producing(bootstrap: Sequence[str], topic: str) -> Iterator[dict[str, Acks]]:
    """Have both send at a steady rate until the block ends, never waiting for one to be written."""
    with _python(bootstrap, topic) as python, _java(bootstrap, topic) as java:
        yield {"python": python, "java": java}


@contextmanager
def _python(bootstrap: Sequence[str], topic: str) -> Iterator[Acks]:
    acks, stop = Acks(), threading.Event()

    def send() -> None:
        producer = KafkaProducer(
            bootstrap_servers=list(bootstrap), acks="all", enable_idempotence=True, linger_ms=0
        )
        payload, started, sent = b"x" * PAYLOAD_BYTES, time.monotonic(), 0
        while not stop.wait(max(0.0, started + sent / RECORDS_PER_SECOND - time.monotonic())):
            at, clock = time.time(), time.perf_counter()

            def acknowledged(_: object, at: float = at, clock: float = clock) -> None:
                acks.seen.append((at, (time.perf_counter() - clock) * 1000))

            future = producer.send(topic, payload, partition=sent % PARTITIONS)
            future.add_callback(acknowledged)
            future.add_errback(lambda error: acks.errors.append(repr(error)))
            sent += 1
        producer.flush(FLUSH_SECONDS)
        producer.close()

    sending = threading.Thread(target=send)
    sending.start()
    try:
        yield acks
    finally:
        stop.set()
        sending.join()


@contextmanager
def _java(bootstrap: Sequence[str], topic: str) -> Iterator[Acks]:
    """Run Acks.java from its source; raises StillwaterError where it ends by itself."""
    acks = Acks()
    asked = [topic, *(str(n) for n in (PARTITIONS, RECORDS_PER_SECOND, PAYLOAD_BYTES))]
    program = subprocess.Popen(
        ["java", "-cp", f"{jars.fetch()}/*", str(SOURCE), ",".join(bootstrap), *asked],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )

    def read() -> None:
        for line in program.stdout or ():
            at, ms, *error = line.split(" ", 2)
            acks.errors.extend(error)
            acks.seen.append((int(at) / 1000, float(ms)))

    reading = threading.Thread(target=read)
    reading.start()
    try:
        yield acks
        if program.poll() is not None:
            raise StillwaterError(f"{SOURCE.name} ended with {program.returncode}.")
    finally:
        if program.poll() is None:
            _end(program)
        reading.join()


def _end(program: subprocess.Popen[str]) -> None:
    if program.stdin is not None:
        program.stdin.write("stop")
        program.stdin.flush()
    program.wait(FLUSH_SECONDS)
