from __future__ import annotations

from dataclasses import replace

import pytest

from core.incidents.observation import PodView
from core.incidents.record import State
from core.incidents.sweep import LEFT_OUT_SECONDS, Snapshot, left_out
from tests.unit.core.incidents.test_sweep import NOW, announced, group, incident_of

POD = PodView(
    name="orders-broker-a-10",
    node_id=10,
    role="broker",
    node_name=None,
    ready=False,
    out_since=NOW - LEFT_OUT_SECONDS,
    trouble="Unschedulable",
)
LEAVING = Snapshot(now=NOW, groups=(group(i_0a="Terminating:Wait"),))


def test_a_pod_nobody_cares_for_is_told_with_what_it_waits_for() -> None:
    (told,) = left_out([POD], [], NOW)
    assert (told.key, told.page) == ("left_out:orders-broker-a-10", "left_out")
    assert told.reason.startswith(
        "Kafka node 10 is out for 30 minutes, and no incident has called anybody about it. Pod "
        "orders-broker-a-10 is on no node: Unschedulable."
    )


@pytest.mark.parametrize(
    "pod",
    [
        replace(POD, ready=True, out_since=None),
        replace(POD, out_since=NOW - LEFT_OUT_SECONDS + 1),
        replace(POD, out_since=None),
    ],
    ids=["Ready", "not for long", "nobody said since when"],
)
def test_a_pod_that_is_back_or_may_yet_come_is_not_told(pod: PodView) -> None:
    assert list(left_out([pod], [], NOW)) == []


def test_an_open_incident_cares_for_its_own_pod_alone() -> None:
    own = replace(incident_of(announced(LEAVING)), pod_name=POD.name, state=State.GATING)
    assert list(left_out([POD], [own], NOW)) == []
    other = replace(own, pod_name="orders-broker-b-20")
    assert len(list(left_out([POD], [other], NOW))) == 1
