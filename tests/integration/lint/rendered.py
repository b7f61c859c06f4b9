"""Every Kubernetes object of recorded layers: the program's own, and what its charts render to.

Charts come with the Go modules of local/tools and are rendered by real helm with the values the
program gives them.
"""

import functools
import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from core.ground.errors import StillwaterError
from local.tools import chart_path, tool_path
from local.tools.catalogue import CHARTS
from tests.unit.infra.recording import Recorded, Resource

RELEASE = "kubernetes:helm.sh/v3:Release"
# Rendered for its definitions alone (infra.charts.lbc), which recorded layers lack.
DEFINITIONS = "kubernetes:helm.sh/v3:Chart"
KUBERNETES = "1.35.0"
# Releases whose charts are in no registry read here, and who checks their values instead.
ELSEWHERE: Mapping[str, str] = {
    "strimzi-kafka-operator": "tests/unit/infra/test_kafka.py",
    "cluster-autoscaler": "tests/unit/infra/test_karpenter.py",
}


@dataclass(frozen=True)
class Rendered:
    """One object, and the resource of the program that it comes from."""

    source: str
    manifest: dict[str, Any]
    # Where a namespaced object goes that names no namespace itself.
    namespace: str = "default"

    @property
    def name(self) -> str:
        return f"{self.manifest['kind']}.{self.manifest['metadata']['name']}"


def objects(layers: Mapping[str, Recorded]) -> list[Rendered]:
    """Return every object, those of charts where the chart is here."""
    return [
        each
        for recorded in layers.values()
        for resource in recorded.resources
        if resource.type.startswith("kubernetes:") and resource.type != DEFINITIONS
        for each in _of(resource)
    ]


def charts(layers: Mapping[str, Recorded]) -> set[str]:
    """Return the charts of the program by name."""
    return {
        chart_name(resource)
        for recorded in layers.values()
        for resource in recorded.resources
        if resource.type == RELEASE
    }


def chart_name(release: Resource) -> str:
    return str(release.inputs["chart"]).rpartition("/")[2]


def _of(resource: Resource) -> Iterator[Rendered]:
    if resource.type != RELEASE:
        # The engine keeps settings of its own beside an object's.
        manifest = {k: v for k, v in resource.inputs.items() if not k.startswith("__")}
        yield Rendered(resource.name, manifest)
    elif chart_name(resource) in CHARTS:
        namespace = str(resource.inputs["namespace"])
        yield from (Rendered(resource.name, each, namespace) for each in _template(resource))


def _template(release: Resource) -> list[dict[str, Any]]:
    # Most variants of a cluster give a chart the same values.
    return _render(json.dumps(release.inputs, sort_keys=True))


@functools.cache
def _render(release: str) -> list[dict[str, Any]]:
    inputs = json.loads(release)
    chart = str(inputs["chart"]).rpartition("/")[2]
    with tempfile.TemporaryDirectory() as home:
        values = Path(home, "values.yaml")
        values.write_text(yaml.safe_dump(inputs["values"]))
        done = subprocess.run(
            [
                str(tool_path("helm")),
                *("template", inputs["name"], str(chart_path(chart))),
                *("--namespace", inputs["namespace"], "--values", str(values)),
                *("--kube-version", KUBERNETES),
                *([] if inputs.get("skipCrds") else ["--include-crds"]),
            ],
            env={"HOME": home, "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise StillwaterError(f"helm cannot render {inputs['name']}: {done.stderr.strip()}")
    return [d for d in yaml.load_all(done.stdout, Loader=yaml.CSafeLoader) if d]
