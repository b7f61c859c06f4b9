"""A pod that somebody restarts has no node for a moment: no run stops for that."""

from __future__ import annotations

from dataclasses import replace

from core.rotation.following import STUCK_SECONDS
from core.rotation.run_record import RunState
from tests.every_case import every_case
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_rotations import current, start, turn


@every_case(
    "out_for, state",
    [(5.0, RunState.RUNNING), (STUCK_SECONDS + 1, RunState.STOPPED), (None, RunState.STOPPED)],
)
def test_a_run_stops_for_a_pod_without_a_node_once_that_lasts(
    out_for: float | None, state: RunState
) -> None:
    station = Station()
    start(station)
    pod = station.cluster.pods[30]
    since = None if out_for is None else station.now - out_for
    station.cluster.pods[30] = replace(
        pod, node_name=None, ready=False, trouble="Unschedulable", out_since=since
    )
    station.cluster.kafka = healthy_kafka(out=30)
    turn(station)
    assert current(station).state is state
