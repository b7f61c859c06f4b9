"""Every Helm value of every release exists in its chart: none is ignored in silence.

The charts' own values.yaml lie in the folder that STILLWATER_CHART_VALUES names, or beside this
repository, as <chart>-<version>.values.yaml.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.infra.recording import Resource
from tests.unit.infra.variants import VARIANTS, recorded

BESIDE = Path(__file__).parents[4] / "shared" / "data" / "charts"
FOLDER = Path(os.environ.get("STILLWATER_CHART_VALUES", BESIDE))
RELEASE = "helm.sh/v3:Release"
# Values that a chart hands on as they are, whatever keys its defaults have: to Kubernetes, or as
# flags to its program.
HANDED_ON = {
    "containerSecurityContext", "extraArgs", "podSecurityContext", "resources", "securityContext",
}  # fmt: skip
CHARTS = {
    "aws-load-balancer-controller", "aws-node-termination-handler", "cluster-autoscaler",
    "karpenter", "karpenter-crd", "strimzi-kafka-operator",
}  # fmt: skip
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason="the charts' values are not here; name their folder in STILLWATER_CHART_VALUES",
)


def chart(release: Resource) -> str:
    return str(release.inputs["chart"]).rpartition("/")[2]


@pytest.fixture(scope="module")
def releases(cache: None) -> list[Resource]:
    return [
        release
        for variant in VARIANTS
        for layer in recorded(variant).values()
        for release in layer.of(RELEASE)
    ]


def unknown(given: Mapping[str, Any], known: Mapping[str, Any], at: str = "") -> Iterator[str]:
    """Yield the paths of values that a chart's own do not have; an empty default takes anything."""
    for key, value in given.items():
        if key not in known:
            yield f"{at}{key}"
        elif key not in HANDED_ON and isinstance(value, Mapping) and known[key]:
            yield from unknown(value, known[key], f"{at}{key}.")


def test_every_release_is_one_whose_values_are_looked_at(releases: list[Resource]) -> None:
    assert {chart(release) for release in releases} == CHARTS


def test_every_value_exists_in_its_chart_at_the_pinned_version(releases: list[Resource]) -> None:
    for release in releases:
        name, version = chart(release), release.inputs["version"]
        if not release.inputs["values"]:
            continue
        own = FOLDER / f"{name}-{version}.values.yaml"
        assert own.is_file(), f"{own.name} is not there; the pin has moved on"
        known = yaml.safe_load(own.read_text())
        strange = sorted(unknown(release.inputs["values"], known))
        assert not strange, f"{name} {version} reads none of {strange}"


def test_a_value_that_no_chart_reads_is_found() -> None:
    known = {"replicas": 1, "resources": {}, "service": {"port": 80}, "labels": {}}
    given = {"replica": 2, "service": {"ports": 1}, "labels": {"a": "b"}}
    assert list(unknown(given, known)) == ["replica", "service.ports"]
