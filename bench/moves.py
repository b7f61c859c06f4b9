"""What a move of leaders costs who produces, by how long a follower waits after an error.

    python -m bench.moves [--backoff-ms N ...]

A follower that asks the old leader, or the new one before that knows it leads, is refused, and asks
again after `replica.fetch.backoff.ms`: a second by default, for which whoever writes with acks=all
waits. Three bare controllers and three bare brokers for each value in one run, the same load; all
that one broker leads is moved away MOVES times, as a rotation does before a broker leaves. Writes
out/bench/moves.json; a minute and a half for each value.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from kafka import KafkaProducer
from rich.console import Console
from rich.table import Table

from bench import record
from bench.refill.nodes import BROKERS, Nodes, running
from handlers.adapters.kafka import KafkaAdmin
from infra.kafka.cluster import FETCH_BACKOFF_MS
from local.demo.load import PARTITIONS, PAYLOAD_BYTES, RECORDS_PER_SECOND
from local.demo.story import percentiles

TOPIC = "moves"
BY_DEFAULT_MS = 1000
MOVES, APART_SECONDS, SETTLES_SECONDS = 12, 4.0, 3.0
WARM_UP_SECONDS, STEADY_SECONDS = 10.0, 10.0
FLUSH_SECONDS = 30.0


@dataclass
class Acks:
    """When each record was sent, in epoch seconds, and after how many milliseconds acknowledged."""

    nodes: Nodes
    seen: list[tuple[float, float]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def produce(self) -> None:
        """Send at a steady rate until stopped, never waiting for one before the next is due."""
        producer = KafkaProducer(
            bootstrap_servers=self.nodes.bootstrap, acks="all", enable_idempotence=True, linger_ms=0
        )
        payload, started, sent = b"x" * PAYLOAD_BYTES, time.monotonic(), 0
        while not self._stop.wait(max(0.0, started + sent / RECORDS_PER_SECOND - time.monotonic())):
            at, clock = time.time(), time.perf_counter()
            future = producer.send(TOPIC, payload, partition=sent % PARTITIONS)
            future.add_callback(
                lambda _, at=at, clock=clock: self.seen.append(
                    (at, (time.perf_counter() - clock) * 1000)
                )
            )
            future.add_errback(lambda error: self.errors.append(repr(error)))
            sent += 1
        producer.flush(FLUSH_SECONDS)
        producer.close()

    def stop(self) -> None:
        self._stop.set()

    def between(self, since: float, until: float) -> list[float]:
        return [ms for at, ms in self.seen if since <= at < until]


def main(arguments: Sequence[str]) -> None:
    """Measure, write down; end with 1 when the default we write is no better than Kafka's."""
    parser = argparse.ArgumentParser(
        prog="bench.moves", description=str(__doc__).partition("\n")[0]
    )
    parser.add_argument(
        "--backoff-ms", type=int, action="append", help="default: Kafka's, and the toolkit's"
    )
    values = parser.parse_args(arguments).backoff_ms or [BY_DEFAULT_MS, FETCH_BACKOFF_MS]
    console = Console(stderr=True)
    rows = [_one(value, console) for value in values]
    parameters = {
        "moves": MOVES,
        "partitions": PARTITIONS,
        "records_per_second": RECORDS_PER_SECOND,
    }
    summary = {
        f"slowest_ms_at_{row['backoff_ms']}": row["slowest_of_a_move_ms"]["p50"] for row in rows
    }
    print(record.write("moves", parameters, rows, summary))
    _show(rows)
    missed = [f"{row['backoff_ms']} ms: {row['errors']}" for row in rows if row["errors"]]
    if missed:
        sys.exit("\n".join(missed))


def _one(backoff_ms: int, console: Console) -> dict[str, Any]:
    with running({"replica.fetch.backoff.ms": backoff_ms}) as nodes:
        nodes.create_topic(TOPIC, PARTITIONS)
        acks = Acks(nodes)
        producing = threading.Thread(target=acks.produce)
        producing.start()
        try:
            time.sleep(WARM_UP_SECONDS)
            began = time.time()
            time.sleep(STEADY_SECONDS)
            steady = acks.between(began, time.time())
            moved = [_move(nodes, BROKERS[number % len(BROKERS)]) for number in range(MOVES)]
        finally:
            acks.stop()
            producing.join()
    after = [acks.between(at, at + SETTLES_SECONDS) for at, _ in moved]
    row = {
        "backoff_ms": backoff_ms,
        "partitions_moved": sum(count for _, count in moved),
        "steady_ms": asdict(percentiles(steady)),
        "moving_ms": asdict(percentiles([ms for each in after for ms in each])),
        "slowest_of_a_move_ms": asdict(percentiles([max(each) for each in after])),
        "errors": acks.errors,
        "load_average": round(os.getloadavg()[0], 1),
    }
    console.log(row)
    return row


def _move(nodes: Nodes, broker: int) -> tuple[float, int]:
    """Have others lead what a broker leads; return when that began, and how many partitions."""
    kafka = KafkaAdmin(nodes.bootstrap)
    led = [p for p in kafka.read().partitions if p.topic == TOPIC and p.leader == broker]
    orders = {
        (p.topic, p.partition): (*(r for r in p.replicas if r != broker), broker) for p in led
    }
    began = time.time()
    kafka.reorder(orders)
    kafka.elect(orders)
    time.sleep(APART_SECONDS)
    return began, len(orders)


def _show(rows: Sequence[dict[str, Any]]) -> None:
    table = Table(
        "backoff ms", "steady p99", "moving p99", "slowest of a move: median", "most", "load"
    )
    for row in rows:
        slowest = row["slowest_of_a_move_ms"]
        cells = (row["steady_ms"]["p99"], row["moving_ms"]["p99"], slowest["p50"], slowest["max"])
        told = (f"{cell:.0f}" for cell in cells)
        table.add_row(str(row["backoff_ms"]), *told, str(row["load_average"]))
    Console(width=120).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
