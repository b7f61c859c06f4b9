"""Measures what a reading of Kafka costs, from 6 brokers to 200: CPU, memory, bytes on the wire.

    python -m bench.reading [BROKERS ...]

Each broker holds 4,000 replicas of factor 3. Fake brokers answer with the real protocol's bytes
from a process of their own; each measurement is a fresh process that takes one reading as λ tick
does for one broker (`tick`), or one of everything and the plan of a rotation of all brokers as
λ rotate does (`plan`). Writes out/bench/reading.json.
"""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from bench import record
from core.incidents.observation import GroupView, NodeView, PodView
from core.rotation.estimate import RunObservation
from core.rotation.plan import plan
from core.rotation.run_record import NodeTurn, Options
from core.views import ClusterView
from handlers.adapters.kafka import KafkaAdmin
from tests.unit.policies import policy_with

BROKERS = (6, 30, 100, 200)
REPLICAS_PER_BROKER = 4_000
CHILD = "measure"


def main(arguments: Sequence[str]) -> None:
    """Measure, write down; `measure tick|plan ADDRESS` is what this program runs each time."""
    if arguments[:1] == [CHILD]:
        print(json.dumps(_measure(arguments[1], arguments[2])))
        return
    rows = []
    for brokers in [int(each) for each in arguments] or BROKERS:
        for what in ("tick", "plan"):
            rows.append(row := _row(brokers, what))
            print(json.dumps(row))
    largest = {row["what"]: row for row in rows if row["brokers"] == max(BROKERS)}
    summary = {}
    if largest:
        summary = {
            "plan_cpu_s_200": largest["plan"]["cpu_s"],
            "plan_alone_cpu_s_200": largest["plan"]["plan_cpu_s"],
            "plan_mib_200": largest["plan"]["mib"],
            "tick_cpu_s_200": largest["tick"]["cpu_s"],
            "tick_mib_200": largest["tick"]["mib"],
        }
    record.write("reading", {"replicas_per_broker": REPLICAS_PER_BROKER}, rows, summary)


@contextlib.contextmanager
def fake_kafka(brokers: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve a Kafka of that size from a process of its own; yield its address and the process."""
    module = [sys.executable, "-m", "tests.fake_brokers"]
    with subprocess.Popen(
        [*module, str(brokers), str(REPLICAS_PER_BROKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as serving:
        assert serving.stdin is not None
        assert serving.stdout is not None
        yield serving.stdout.readline().strip(), serving
        serving.stdin.close()


def _row(brokers: int, what: str) -> dict[str, object]:
    with fake_kafka(brokers) as (address, serving):
        command = [sys.executable, "-m", "bench.reading", CHILD, what, address]
        # Those fill the fake's memory of its answers: one that is late is asked for again.
        while subprocess.run(command, check=False, capture_output=True).returncode:
            pass
        before = _bytes_sent(serving)
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        sent = _bytes_sent(serving) - before
    return {"brokers": brokers, "what": what, **json.loads(done.stdout), "bytes": sent}


def _bytes_sent(serving: subprocess.Popen[str]) -> int:
    assert serving.stdin is not None
    assert serving.stdout is not None
    serving.stdin.write("\n")
    serving.stdin.flush()
    return int(json.loads(serving.stdout.readline())["sent"])


def _measure(what: str, address: str) -> dict[str, object]:
    started, began = time.process_time(), time.monotonic()
    kafka = KafkaAdmin([address]).read({3} if what == "tick" else None)
    read, planned = time.process_time() - started, 0.0
    if kafka.doubts:
        raise SystemExit(kafka.doubt)
    if what == "plan":
        turns = [_turn(broker) for broker in sorted(kafka.brokers)]
        before = time.process_time()
        found = plan(turns, _run_observation(kafka), Options(), policy_with(isr_margin=0))
        planned = time.process_time() - before
        assert not any(node.objections for node in found.nodes), found.nodes[0].objections
    return {
        "partitions": len(kafka.partitions),
        "cpu_s": round(read + planned, 2),
        "plan_cpu_s": round(planned, 2),
        "seconds": round(time.monotonic() - began, 2),
        "mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def _turn(broker: int) -> NodeTurn:
    return NodeTurn(
        node_id=broker,
        pod=f"pod-{broker}",
        role="broker",
        pool="broker",
        zone=f"zone-{broker % 3}",
        instance_id=f"i-{broker}",
        why="measured",
    )


def _run_observation(kafka: ClusterView) -> RunObservation:
    ids = sorted(kafka.brokers)
    return RunObservation(
        now=0.0,
        kafka=kafka,
        pods=tuple(
            PodView(name=f"pod-{b}", node_id=b, role="broker", node_name=f"node-{b}", ready=True)
            for b in ids
        ),
        nodes=tuple(
            NodeView(
                name=f"node-{b}",
                instance_id=f"i-{b}",
                zone=f"zone-{b % 3}",
                pool="broker",
                ready=True,
                schedulable=True,
                csi_ready=True,
            )
            for b in ids
        ),
        groups=tuple(
            GroupView(
                name=f"zone-{zone}",
                desired=len(ids),
                maximum=2 * len(ids),
                instances={f"i-{b}": "InService" for b in ids if b % 3 == zone},
            )
            for zone in range(3)
        ),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
