"""A figure nobody has is a verdict of its own; it calls somebody only where one is missed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.cost import pricing
from core.volumes.deciding import DecisionKind, VolumeDecision, decide
from core.volumes.series import MAKING_SECONDS
from core.volumes.sizing import Policy
from core.volumes.views import Load, VolumeSet
from tests.unit.core.volumes.views import LOOKED, NOW, fill_forecast, view, volume_set

BOOK = pricing.book("us-east-1")
CONTROLLER = Policy(apply=True, grow_only=True, votes=True)


def verdicts(of: VolumeSet) -> list[VolumeDecision]:
    return [d for d in decide(of, BOOK, NOW) if d.kind is DecisionKind.UNKNOWN]


def unmeasured(*figures: str, **changed: Any) -> VolumeSet:
    """A set whose volume's load lacks figures."""
    volume = view(**changed)
    lacking = replace(volume.load, **dict.fromkeys(figures))
    return volume_set(replace(volume, load=lacking))


def test_a_volume_of_unknown_fill_is_not_said_to_have_what_it_needs() -> None:
    found = decide(volume_set(view(forecast=None)), BOOK, NOW)
    assert [d.kind for d in found] == [DecisionKind.UNKNOWN]
    assert found[0].refused_by == "unknown"
    assert "the fill of data-0-orders-broker-a-0 is not known" in found[0].reason
    assert "DescribeLogDirs" in found[0].reason


@pytest.mark.parametrize(
    "figure",
    ["volume_exceeded_share", "instance_exceeded_share", "iops_p999", "bytes_per_s_p999"],
)
def test_a_load_that_lacks_one_figure_is_unknown(figure: str) -> None:
    (verdict,) = verdicts(unmeasured(figure))
    assert verdict.refused_by == "unknown"
    assert "CloudWatch" in verdict.reason
    assert "Prometheus" not in verdict.reason


def test_where_a_prometheus_is_asked_it_is_named_among_the_sources() -> None:
    of = replace(volume_set(view(forecast=None)), prometheus=True)
    (verdict,) = verdicts(of)
    assert "Prometheus has no kubelet_volume_stats" in verdict.reason


def test_what_is_known_does_not_wait_for_what_is_not() -> None:
    full = replace(view(forecast=fill_forecast(0.97)), load=Load())
    first, *others = decide(volume_set(full), BOOK, NOW)
    assert first.kind is DecisionKind.GROW
    assert [d.kind for d in others] == [DecisionKind.UNKNOWN]


@pytest.mark.parametrize("age", [0.0, MAKING_SECONDS - 1])
def test_while_a_cluster_is_made_what_is_unknown_is_said_and_calls_nobody(age: float) -> None:
    young = replace(LOOKED, known_since=NOW - age)
    (verdict,) = verdicts(volume_set(view(forecast=None, history=young)))
    assert verdict.refused_by == ""


def test_a_new_broker_beside_an_old_one_does_not_silence_it() -> None:
    young = view(forecast=None, history=replace(LOOKED, known_since=NOW))
    (verdict,) = verdicts(volume_set(young, view(forecast=None)))
    assert verdict.refused_by == "unknown"


def test_the_fill_of_controllers_is_nobodys_fault_without_a_prometheus() -> None:
    of = volume_set(view(forecast=None), policy=CONTROLLER)
    (verdict,) = verdicts(of)
    assert verdict.refused_by == ""
    assert "set metrics.prometheus" in verdict.reason
    (verdict,) = verdicts(replace(of, prometheus=True))
    assert verdict.refused_by == "unknown"


def test_the_load_of_controllers_and_of_what_is_attached_nowhere_is_not_missed() -> None:
    nothing = replace(view(), load=Load())
    assert verdicts(volume_set(nothing, policy=CONTROLLER)) == []
    assert verdicts(volume_set(replace(nothing, instance_type=None))) == []
