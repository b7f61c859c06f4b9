"""infra.charts.strimzi: Strimzi from its chart, with rights where it needs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.charts.strimzi import values
from infra.versions import STRIMZI_CHART_VERSION
from tests.unit.infra.programs import run_changed, spec
from tests.unit.infra.recording import Recorded

RELEASE = "helm.sh/v3:Release"
CHARTS = Path(__file__).parents[4] / "shared" / "data" / "charts"
CHART = CHARTS / f"strimzi-kafka-operator-{STRIMZI_CHART_VERSION}.values.yaml"


def test_it_watches_kafkas_namespace_alone_and_waits_as_long_as_a_gated_pod_takes() -> None:
    chosen = values(spec())
    assert chosen["watchNamespaces"] == ["kafka"]
    assert chosen["operationTimeoutMs"] == 600_000


def test_one_operator_may_go_while_another_stays() -> None:
    assert values(spec())["podDisruptionBudget"] == {"enabled": True, "minAvailable": 1}
    assert not values(spec(strimzi={"replicas": 1}))["podDisruptionBudget"]["enabled"]


def test_its_rights_need_the_namespace_first(layers: dict[str, Recorded]) -> None:
    kafka = layers["kafka"]
    component = next(r for r in kafka.resources if r.type.endswith(":infra:StrimziOperator"))
    assert "kafka-namespace" in component.depends_on
    release = kafka.one(RELEASE, "strimzi-release")
    assert release.inputs["version"] == STRIMZI_CHART_VERSION


def test_an_operator_that_is_already_there_is_left_alone(cache: None) -> None:
    layer = run_changed("kafka", strimzi={"operator": "external"})
    assert [r.name for r in layer.of(RELEASE) if "strimzi" in r.name] == []


@pytest.mark.skipif(not CHART.exists(), reason="the chart's own values are not here")
def test_every_value_is_one_the_chart_knows() -> None:
    known = yaml.safe_load(CHART.read_text())
    assert list(_unknown(values(spec()), known)) == []


def _unknown(given: Mapping[str, Any], known: Mapping[str, Any], at: str = "") -> Iterator[str]:
    for key, value in given.items():
        if key not in known:
            yield f"{at}{key}"
        elif isinstance(value, Mapping) and isinstance(known[key], Mapping) and known[key]:
            yield from _unknown(value, known[key], f"{at}{key}.")
