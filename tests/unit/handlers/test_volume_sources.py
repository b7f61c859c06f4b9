"""Which source is asked for what: Prometheus first, the others for what it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from core.ground import constants
from core.ground.errors import StillwaterError
from core.volumes.views import Load
from handlers.adapters.volumes import FillView, SeriesResult
from handlers.store import volume_records
from tests.unit.handlers.failing import fail, noted
from tests.unit.handlers.one_volume import GIB, HOUR, IDLE, LOOK, NOW, OneVolume, desk

CLAIM, VOLUME = "data-0-orders-broker-a-10", "vol-0a"


@dataclass
class Watching:
    """A Prometheus that knows what it is told to."""

    fill: FillView | None = None
    load: Load | None = None
    before: Mapping[float, float] = field(default_factory=dict)
    asked_past: list[Sequence[str]] = field(default_factory=list)

    def fills(self, claims: Sequence[str], now: float) -> SeriesResult[FillView]:
        if self.fill is None:
            return SeriesResult(
                {}, ("Prometheus has no kubelet_volume_stats_capacity_bytes of any",)
            )
        return SeriesResult(dict.fromkeys(claims, self.fill))

    def past(self, claims: Sequence[str], now: float) -> Mapping[str, Mapping[float, float]]:
        self.asked_past.append(claims)
        return dict.fromkeys(claims, self.before)

    def loads(self, volumes: Sequence[str], now: float) -> SeriesResult[Load]:
        return SeriesResult({} if self.load is None else dict.fromkeys(volumes, self.load))


def room(used_gib: float) -> FillView:
    return FillView(int(used_gib * GIB), 100 * GIB, int((100 - used_gib) * GIB))


def test_where_prometheus_knows_all_nobody_else_is_asked() -> None:
    world = OneVolume(series=Watching(room(95), IDLE))
    brokers, cloudwatch = noted(world, "fills"), noted(world, "loads")
    assert desk(world).first()["kind"] == "grow"
    assert (len(brokers), len(cloudwatch)) == (0, 0)


def test_what_prometheus_lacks_the_brokers_and_cloudwatch_are_asked() -> None:
    lacking = replace(IDLE, iops_p999=None)
    world = OneVolume(used=95.0 * GIB, load=IDLE, series=Watching(None, lacking))
    brokers, cloudwatch = noted(world, "fills"), noted(world, "loads")
    shown = desk(world).look()
    assert shown["decisions"][0]["kind"] == "grow"
    assert (len(brokers), len(cloudwatch)) == (1, 1)
    assert shown["unknown"] == ["Prometheus has no kubelet_volume_stats_capacity_bytes of any"]


def test_a_prometheus_that_does_not_answer_is_said_and_the_others_are_asked() -> None:
    world = OneVolume(used=95.0 * GIB, load=IDLE, series=Watching())
    fail(world.series, "fills", StillwaterError("The Kubernetes API answered 503 to GET"))
    shown = desk(world).look()
    assert shown["decisions"][0]["kind"] == "grow"
    assert "Prometheus did not answer" in shown["unknown"][0]


def test_a_volume_whose_fill_nobody_knows_is_named_and_not_taken_for_empty() -> None:
    world = OneVolume()
    fail(world, "fills", StillwaterError("No broker answers."))
    at = desk(world)
    shown = at.look()
    (verdict,) = shown["decisions"]
    assert verdict["kind"] == "unknown"
    assert verdict["reason"].startswith(f"the fill of {CLAIM} is not known, so nothing is grown")
    assert shown["unknown"] == ["No broker said how full its volumes are: No broker answers."]
    assert volume_records.read(at.records, VOLUME).samples == ()


def test_what_is_unknown_is_counted_once_the_cluster_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: list[str] = []
    monkeypatch.setattr(
        "handlers.volume.steward.metrics.count", lambda name, _=1: counts.append(name)
    )
    at = desk(OneVolume(load=Load()))
    at.look()
    at.world.now += HOUR - LOOK
    at.look()
    assert counts == []
    at.world.now += LOOK
    at.look()
    assert counts == [constants.VOLUMES_UNKNOWN]


def test_what_prometheus_saw_before_is_a_trend_at_the_first_look_and_asked_once() -> None:
    # 30 GiB two days ago, 70 now: 20 a day.
    before = {NOW - h * HOUR: (70 - 20 * h / 24) * GIB for h in range(1, 49)}
    watching = Watching(room(70), IDLE, before)
    at = desk(OneVolume(series=watching))
    decision = at.first()
    assert (decision["kind"], decision["emergency"]) == ("grow", False)
    assert "+20.0 GiB a day" in decision["reason"]
    at.world.now += LOOK
    at.look()
    assert watching.asked_past == [[CLAIM]]
