"""A small cluster and the programs of its layers, run one after the other as a user would."""

import fcntl
import functools
import hashlib
import io
import json
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from core.cluster import ClusterSpec, parse
from core.ground.naming import LAYERS
from infra.alerts.dashboards import rule_file
from stacks.program import main
from tests import tables
from tests.unit.infra.recording import Recorded, run_program

# Where the workers of one session of unit tests keep what they recorded; nobody else keeps it.
KEPT: list[Path] = []
ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]
CONTROLLER = {
    "name": "controller",
    "role": "controller",
    "instance_type": "m7g.xlarge",
    "first_node_id": 0,
    "node_ids_per_zone": 1,
}
BROKER = {
    "name": "broker",
    "role": "broker",
    "instance_type": "r7g.4xlarge",
    "first_node_id": 10,
    "volumes": [{"size_gib": 100, "iops": 4000, "throughput_mib_per_s": 250}, {"size_gib": 50}],
}


def description(**changed: Any) -> dict[str, Any]:
    """Return a ClusterSpec as a user writes it; keywords replace settings, `pools.1.name` too."""
    usual = {
        "name": "orders",
        "environment": "test",
        "region": "us-east-1",
        "availability_zones": ZONES,
        "pools": [CONTROLLER, BROKER],
        "slack": {"channel": "C0HARBOUR1", "secret_name": "orders/slack"},
        "metrics": {"prometheus": {"address": "http://prometheus.monitoring.svc:9090"}},
    }
    found: dict[str, Any] = tables.changed(usual, changed)
    return found


def prometheus_alerts(cluster: ClusterSpec) -> dict[str, dict[str, Any]]:
    """Return every alert of a cluster by its name, as Prometheus takes it."""
    groups = rule_file(cluster)["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def spec(**changed: Any) -> ClusterSpec:
    return parse(description(**changed))


def run_layer(
    layer: str,
    raw: Mapping[str, Any],
    references: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    preview: bool = False,
    real_sizes: bool = False,
) -> Recorded:
    """Run one layer as the engine does, from its stack's name and configuration alone."""
    return run_program(
        main,
        stack_name=f"{raw['environment']}-{layer}",
        config={"cluster": json.dumps(raw)},
        references=references,
        preview=preview,
        real_sizes=real_sizes,
    )


class Layers(Mapping[str, Recorded]):
    """A cluster's layers, each recorded when it is first asked for, after those before it."""

    def __init__(self, raw: Mapping[str, Any], *, real_sizes: bool) -> None:
        # However it is written down: what says the same is recorded once.
        self._raw, self._real_sizes = json.dumps(raw, sort_keys=True), real_sizes
        self._found: dict[str, Recorded] = {}

    def __getitem__(self, layer: str) -> Recorded:
        if layer not in self._found:
            kept = io.BytesIO(_recorded(self._raw, self._real_sizes, layer))
            pickle.load(kept)  # noqa: S301 - its exports, which are in the rest as well
            self._found[layer] = pickle.load(kept)  # noqa: S301
        return self._found[layer]

    def __iter__(self) -> Iterator[str]:
        return iter(LAYERS)

    def __len__(self) -> int:
        return len(LAYERS)


def run_layers(raw: Mapping[str, Any] | None = None, *, real_sizes: bool = False) -> Layers:
    """Return all layers in order, each of which reads what the earlier ones exported."""
    return Layers(raw or description(), real_sizes=real_sizes)


def run_changed(layer: str, **changed: Any) -> Recorded:
    """Record one layer of the small cluster with settings changed, below its other layers.

    For settings of which no layer before it exports anything: those are not recorded again.
    """
    small, before = json.dumps(description(), sort_keys=True), LAYERS[: LAYERS.index(layer)]
    references = {f"test-{name}": _exports(small, False, name) for name in before}
    return run_layer(layer, description(**changed), references)


@functools.cache
def _recorded(raw: str, real_sizes: bool, layer: str) -> bytes:
    """Return a layer of a description; recorded once by all the session's workers.

    Pickled, its exports first: of most layers a later one reads nothing else.
    """
    if not KEPT:
        return _pickled(_run(raw, real_sizes, layer))
    key = hashlib.sha256(f"{real_sizes} {layer} {raw}".encode()).hexdigest()
    with (KEPT[0] / key).open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        found = file.read()
        if not found:
            found = _pickled(_run(raw, real_sizes, layer))
            file.write(found)
        return found


def _pickled(recorded: Recorded) -> bytes:
    return pickle.dumps(recorded.outputs) + pickle.dumps(recorded)


@functools.cache
def _exports(raw: str, real_sizes: bool, layer: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = pickle.loads(_recorded(raw, real_sizes, layer))  # noqa: S301
    return found


def _run(raw: str, real_sizes: bool, layer: str) -> Recorded:
    read, before = json.loads(raw), LAYERS[: LAYERS.index(layer)]
    references = {
        f"{read['environment']}-{name}": _exports(raw, real_sizes, name) for name in before
    }
    return run_layer(layer, read, references, real_sizes=real_sizes)
