"""Every Helm value of every release exists in its chart: none is ignored in silence.

A chart's own values.yaml lies, as <chart>-<version>.values.yaml, in tests/data/charts, in the
folder that STILLWATER_CHART_VALUES names or beside this repository.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from infra.eks.cluster import configuration
from tests.unit.infra.variants import VARIANTS, recorded

HERE = Path(__file__).parents[2] / "data" / "charts"
BESIDE = Path(__file__).parents[4] / "shared" / "data" / "charts"
ELSEWHERE = Path(os.environ.get("STILLWATER_CHART_VALUES", BESIDE))
# Values that a chart hands on as they are, whatever keys its defaults have: to Kubernetes, or as
# flags to its program.
HANDED_ON = {
    "containerSecurityContext", "extraArgs", "podSecurityContext", "resources", "securityContext",
}  # fmt: skip


def strange(chart: str, values: Mapping[str, Any]) -> list[str]:
    """Return the paths of values that a chart does not know, where its own values are here."""
    found = [folder / f"{chart}.values.yaml" for folder in (HERE, ELSEWHERE)]
    own = next((path for path in found if path.is_file()), None)
    if own is None:
        assert not values or not ELSEWHERE.is_dir(), f"{chart} is not there; the pin has moved on"
        return []
    return list(unknown(values, yaml.safe_load(own.read_text())))


def unknown(given: Mapping[str, Any], known: Mapping[str, Any], at: str = "") -> Iterator[str]:
    """Yield the paths of values that a chart's own do not have; an empty default takes anything."""
    for key, value in given.items():
        if key not in known:
            yield f"{at}{key}"
        elif key not in HANDED_ON and isinstance(value, Mapping) and known[key]:
            yield from unknown(value, known[key], f"{at}{key}.")


def test_every_value_exists_in_its_chart_at_the_pinned_version(cache: None) -> None:
    releases = [
        release.inputs
        for variant in VARIANTS
        for layer in recorded(variant).values()
        for release in layer.of("helm.sh/v3:Release")
    ]
    assert len(releases) > len(VARIANTS)
    for release in releases:
        chart = f"{release['chart'].rpartition('/')[2]}-{release['version']}"
        assert strange(chart, release["values"]) == [], chart


def test_the_volume_driver_knows_every_value_it_is_told() -> None:
    told = configuration("aws-ebs-csi-driver", "eu-west-1", {"team": "streaming"})
    assert told is not None
    assert strange("aws-ebs-csi-driver-2.64.0", told) == []


def test_a_value_that_no_chart_reads_is_found() -> None:
    known = {"replicas": 1, "resources": {}, "service": {"port": 80}, "labels": {}}
    given = {"replica": 2, "service": {"ports": 1}, "labels": {"a": "b"}}
    assert list(unknown(given, known)) == ["replica", "service.ports"]
