"""A machine whose cordon somebody took off is not booted: a pod may start there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_in_place import drained, look, outdated


@pytest.fixture
def station() -> Station:
    return outdated()


@pytest.mark.parametrize("pod", [None, 20], ids=["nobody runs there yet", "another broker does"])
def test_a_machine_that_somebody_has_uncordoned_is_not_booted(
    station: Station, pod: int | None
) -> None:
    """A party's other pod may start on it, and would be cut off by the boot."""
    drained(station)
    cluster = station.cluster
    cluster.node_views[OLD] = replace(cluster.node_views[OLD], schedulable=True)
    if pod is not None:
        cluster.place_pod(pod, OLD)
    for _ in range(4):
        look(station)
    assert station.roots.tasks == {}
    place = station.incident().in_place
    assert place is not None
    assert "uncordoned" in (place.refusal or "")
