"""Measures how long the program takes to describe a cluster, from 3 brokers to 48.

    python -m bench.program [--without-engine]

Two measurements of the same code. Evaluation: all five layers against mocks, in a fresh process per
size, imports apart. The engine: `pulumi preview` of the layer that grows with the brokers, by the
real engine on a twin; what that takes beyond the evaluation of the same layer is the engine's, the
providers' and the starting of processes. Writes out/bench/program.json and a plot.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bench import record

BROKERS = (3, 6, 12, 24, 48)
REPEATS = 5
LAYER = "kafka"
CHILD = "evaluate"
ZONES = 3
# The same for every size, so that none differs in more than its brokers: 16 per zone are 48.
IDS_PER_ZONE = 16


def main(arguments: Sequence[str]) -> None:
    """Measure, write down, draw; `evaluate N` is what this program runs for each size."""
    if arguments[:1] == [CHILD]:
        print(json.dumps(_evaluate(int(arguments[1]))))
        return
    rows = [_measure_in_child(brokers) for brokers in BROKERS]
    print(*map(json.dumps, rows), sep="\n")
    if "--without-engine" not in arguments:
        _add_engine(rows)
    first, last = rows[0], rows[-1]
    summary = {
        "brokers": last["brokers"],
        "seconds": last["seconds"],
        "resources": last["resources"],
        "growth_16x": round(last["seconds"] / first["seconds"], 2),
        "resources_16x": round(last["resources"] / first["resources"], 2),
        "peak_mib": last["peak_mib"],
    }
    if "preview_seconds" in last:
        summary["engine_share"] = round(1 - last["layer_seconds"] / last["preview_seconds"], 2)
    parameters = {"brokers": list(BROKERS), "repeats": REPEATS, "preview_layer": LAYER}
    path = record.write("program", parameters, rows, summary)
    _draw(rows, path.with_suffix(".png"))


def _measure_in_child(brokers: int) -> dict[str, Any]:
    """Evaluate in a process of its own: its peak of memory is this size's, its imports are cold."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "bench.program", CHILD, str(brokers)],
            env={**os.environ, "STILLWATER_CACHE": cache},
            capture_output=True,
            text=True,
            check=True,
        )
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def _evaluate(brokers: int) -> dict[str, Any]:
    started = time.perf_counter()
    # The tests' recorder is the instrument: every registration, no engine.
    from tests.unit.infra.programs import run_layer, run_layers  # noqa: PLC0415 - measured

    imports = time.perf_counter() - started
    raw = {**_description(brokers), "environment": "bench"}
    layers = run_layers(raw)  # the first run packs the functions' zip
    references = {f"bench-{name}": run.outputs for name, run in layers.items()}
    whole = [_seconds(lambda: run_layers(raw)) for _ in range(REPEATS)]
    one = [_seconds(lambda: run_layer(LAYER, raw, references)) for _ in range(REPEATS)]
    count = sum(len(run.resources) for run in layers.values())
    return {
        "brokers": brokers,
        "resources": count,
        "import_seconds": round(imports, 3),
        "seconds": round(statistics.median(whole), 3),
        "ms_per_resource": round(1000 * statistics.median(whole) / count, 2),
        "layer_resources": len(layers[LAYER].resources),
        "layer_seconds": round(statistics.median(one), 3),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def _seconds(run: Any) -> float:
    # The processor's time: what else this machine does is not the program's.
    started = time.process_time()
    run()
    return time.process_time() - started


def _description(brokers: int) -> dict[str, Any]:
    """Return a cluster of so many brokers in three zones, with three controllers."""
    return {
        "name": "orders",
        "region": "us-east-1",
        "availability_zones": [f"us-east-1{letter}" for letter in "abc"],
        "pools": [
            {
                "name": "controller",
                "role": "controller",
                "instance_type": "m7g.large",
                "heap_mib": 2048,
                "memory_request_mib": 4096,
                "cpu_request_millis": 1000,
                "first_node_id": 0,
                "node_ids_per_zone": 1,
            },
            {
                "name": "broker",
                "role": "broker",
                "instance_type": "r7g.xlarge",
                "first_node_id": 10,
                "node_ids_per_zone": IDS_PER_ZONE,
                "nodes_per_zone": brokers // ZONES,
                "volumes": [{"size_gib": 100}],
            },
        ],
    }


def _add_engine(rows: list[dict[str, Any]]) -> None:
    """Preview the growing layer with the real engine on a twin, once per size after a first."""
    from rich.console import Console  # noqa: PLC0415 - the child needs none of these

    from cli.engine.layers import Layers  # noqa: PLC0415
    from local import twin as twins  # noqa: PLC0415
    from local.commands.layers import TwinLayers  # noqa: PLC0415
    from local.commands.setup import prepare_tools  # noqa: PLC0415
    from local.demo import spec as demo  # noqa: PLC0415

    prepare_tools(Console(stderr=True))
    with twins.running(lambda sentence: print(sentence, file=sys.stderr)) as twin:
        path = demo.write(twin.place)
        described = demo.spec(twin.place)
        layers: Layers = TwinLayers(twin, path).layers
        layers.up_one("foundation")
        layers.layers = (LAYER,)
        layers.preview()  # the first loads the providers' Python into the page cache
        for row in rows:
            pools = _description(row["brokers"])["pools"]
            path.write_text(yaml.safe_dump({**described, "pools": pools}))
            (planned,) = layers.preview()
            row["preview_seconds"] = round(planned.seconds, 3)
            row["preview_creates"] = planned.created
            print(f"{row['brokers']:>3} brokers: preview of {LAYER} in {planned.seconds:.2f} s")


def _draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - the child draws nothing

    brokers = [row["brokers"] for row in rows]
    figure = Figure(figsize=(10, 4), layout="constrained")
    time_axis, memory_axis = figure.subplots(1, 2)
    time_axis.plot(brokers, [row["seconds"] for row in rows], "o-", label="program, all layers")
    time_axis.plot(brokers, [row["layer_seconds"] for row in rows], "o-", label=f"program, {LAYER}")
    if all("preview_seconds" in row for row in rows):
        previews = [row["preview_seconds"] for row in rows]
        time_axis.plot(brokers, previews, "o--", label=f"engine's preview of {LAYER}")
    time_axis.set(xlabel="brokers", ylabel="seconds", ylim=(0, None), xticks=brokers)
    time_axis.legend()
    memory_axis.plot(brokers, [row["peak_mib"] for row in rows], "o-", label="peak memory, MiB")
    memory_axis.plot(brokers, [row["resources"] for row in rows], "o-", label="resources")
    memory_axis.set(xlabel="brokers", ylim=(0, None), xticks=brokers)
    memory_axis.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(sys.argv[1:])
