"""Measures what a move of leaders costs producers, by how soon followers ask the new leader.

    python -m bench.moves

A follower that asks the old leader, or the new one before that knows it leads, is refused, and asks
again after `replica.fetch.backoff.ms`: a second by default. One whose fetch from the new leader is
under way, and finds nothing, adds what that broker now leads after `replica.fetch.wait.max.ms`:
half a second by default. Whoever writes with acks=all waits for both. Three bare controllers and
three bare brokers for each row in one run, the same load by kafka-python and by Kafka's own client
in Java; all that one broker leads is moved away MOVES times, as a rotation does before a broker
leaves. Writes out/bench/moves.json; a minute and a half for each row.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import record
from bench.moving.producers import producing
from bench.refill.nodes import BROKERS, BenchNodes, running
from core.cluster.kafka_settings import FETCH_BACKOFF_MS, FETCH_WAIT_MS
from handlers.adapters.kafka import KafkaAdmin
from local.demo.load import PARTITIONS, RECORDS_PER_SECOND
from local.demo.story import percentiles

TOPIC, PRODUCERS = "moves", ("python", "java")
BACKOFF, WAIT = "replica.fetch.backoff.ms", "replica.fetch.wait.max.ms"
ROWS: Mapping[str, Mapping[str, int]] = {
    "kafka's defaults": {BACKOFF: 1000, WAIT: 500},
    "backoff alone": {BACKOFF: FETCH_BACKOFF_MS, WAIT: 500},
    "the toolkit's": {BACKOFF: FETCH_BACKOFF_MS, WAIT: FETCH_WAIT_MS},
}
MOVES, APART_SECONDS, SETTLES_SECONDS = 12, 4.0, 3.0
WARM_UP_SECONDS, STEADY_SECONDS = 10.0, 10.0
# What the slowest record of a rotation may take.
MOST_MS = 500


def main() -> None:
    """Measure, write down; end with 1 when a producer saw an error, or waited for too long."""
    console = Console(stderr=True)
    rows = [_one(name, settings, console) for name, settings in ROWS.items()]
    parameters = {
        "moves": MOVES,
        "partitions": PARTITIONS,
        "records_per_second": RECORDS_PER_SECOND,
    }
    summary = {
        f"{name}_slowest_ms_by_{row['by']}": row[name]["slowest_of_a_move_ms"]["p50"]
        for row in rows
        for name in PRODUCERS
    }
    record.write("moves", parameters, rows, summary)
    _show(rows)
    missed = [
        f"{row['by']}, {name}: {row[name]['errors'][0]}"
        for row in rows
        for name in PRODUCERS
        if row[name]["errors"]
    ]
    for name in PRODUCERS:
        slowest = rows[-1][name]["slowest_of_a_move_ms"]["max"]
        if slowest > MOST_MS:
            missed.append(f"{rows[-1]['by']}, {name}: {slowest:.0f} ms, wanted {MOST_MS}.")
    if missed:
        sys.exit("\n".join(missed))


def _one(name: str, settings: Mapping[str, int], console: Console) -> dict[str, Any]:
    with running(settings) as nodes:
        nodes.create_topic(TOPIC, PARTITIONS)
        with producing(nodes.bootstrap, TOPIC) as producers:
            while not all(acks.seen for acks in producers.values()):
                nodes.check_alive()
                time.sleep(1.0)
            time.sleep(WARM_UP_SECONDS)
            began = time.time()
            time.sleep(STEADY_SECONDS)
            until = time.time()
            moved = [_move(nodes, BROKERS[number % len(BROKERS)]) for number in range(MOVES)]
    row: dict[str, Any] = {
        "by": name,
        **settings,
        "partitions_moved": sum(count for _, count in moved),
        "load_average": record.load_average(),
    }
    for producer, acks in producers.items():
        after = [acks.latencies_between(at, at + SETTLES_SECONDS) for at, _ in moved]
        row[producer] = {
            "steady_ms": asdict(percentiles(acks.latencies_between(began, until))),
            "moving_ms": asdict(percentiles([ms for each in after for ms in each])),
            "slowest_of_a_move_ms": asdict(percentiles([max(each) for each in after])),
            "errors": acks.errors,
        }
    console.log(row)
    return row


def _move(nodes: BenchNodes, broker: int) -> tuple[float, int]:
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
        *("by", "producer", "steady p99", "moving p99"),
        *("slowest of a move: median", "most", "load"),
    )
    for row in rows:
        for name in PRODUCERS:
            seen = row[name]
            slowest = seen["slowest_of_a_move_ms"]
            p99 = (seen["steady_ms"]["p99"], seen["moving_ms"]["p99"])
            told = (f"{cell:.0f}" for cell in (*p99, slowest["p50"], slowest["max"]))
            table.add_row(row["by"], name, *told, str(row["load_average"]))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
