"""What a move of leaders costs who produces, by how long a follower waits after an error.

    python -m bench.moves [--backoff-ms N ...]

A follower that asks the old leader, or the new one before that knows it leads, is refused, and asks
again after `replica.fetch.backoff.ms`: a second by default, for which whoever writes with acks=all
waits. Three bare controllers and three bare brokers for each value in one run, the same load by
kafka-python and by Kafka's own client in Java; all that one broker leads is moved away MOVES times,
as a rotation does before a broker leaves. Writes out/bench/moves.json; a minute and a half for each
value.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import record
from bench.moving.producers import producing
from bench.refill.nodes import BROKERS, Nodes, running
from handlers.adapters.kafka import KafkaAdmin
from infra.kafka.cluster import FETCH_BACKOFF_MS
from local.demo.load import PARTITIONS, RECORDS_PER_SECOND
from local.demo.story import percentiles

TOPIC, PRODUCERS = "moves", ("python", "java")
BY_DEFAULT_MS = 1000
MOVES, APART_SECONDS, SETTLES_SECONDS = 12, 4.0, 3.0
WARM_UP_SECONDS, STEADY_SECONDS = 10.0, 10.0


def main(arguments: Sequence[str]) -> None:
    """Measure, write down; end with 1 when a producer saw an error."""
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
        f"{name}_slowest_ms_at_{row['backoff_ms']}": row[name]["slowest_of_a_move_ms"]["p50"]
        for row in rows
        for name in PRODUCERS
    }
    print(record.write("moves", parameters, rows, summary))
    _show(rows)
    missed = [
        f"{row['backoff_ms']} ms, {name}: {row[name]['errors'][0]}"
        for row in rows
        for name in PRODUCERS
        if row[name]["errors"]
    ]
    if missed:
        sys.exit("\n".join(missed))


def _one(backoff_ms: int, console: Console) -> dict[str, Any]:
    with running({"replica.fetch.backoff.ms": backoff_ms}) as nodes:
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
        "backoff_ms": backoff_ms,
        "partitions_moved": sum(count for _, count in moved),
        "load_average": round(os.getloadavg()[0], 1),
    }
    for name, acks in producers.items():
        after = [acks.between(at, at + SETTLES_SECONDS) for at, _ in moved]
        row[name] = {
            "steady_ms": asdict(percentiles(acks.between(began, until))),
            "moving_ms": asdict(percentiles([ms for each in after for ms in each])),
            "slowest_of_a_move_ms": asdict(percentiles([max(each) for each in after])),
            "errors": acks.errors,
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
        *("backoff ms", "producer", "steady p99", "moving p99"),
        *("slowest of a move: median", "most", "load"),
    )
    for row in rows:
        for name in PRODUCERS:
            seen = row[name]
            slowest = seen["slowest_of_a_move_ms"]
            p99 = (seen["steady_ms"]["p99"], seen["moving_ms"]["p99"])
            told = (f"{cell:.0f}" for cell in (*p99, slowest["p50"], slowest["max"]))
            table.add_row(str(row["backoff_ms"]), name, *told, str(row["load_average"]))
    Console(width=120).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
