"""Who keeps its instance in a rotation in place, who does not, and what a plan says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.incidents.record import State
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_in_place import (
    OLD,
    TEMPLATE,
    TRAITS,
    launched,
    look,
    outdated,
    start,
    turn,
)


@pytest.fixture
def station() -> Station:
    return outdated()


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        pytest.param(
            {"beyond_image": {**TEMPLATE, "UserData": '"x"'}}, "more than the image", id="user-data"
        ),
        pytest.param({"beyond_image": None}, "cannot be read", id="no-version"),
        pytest.param({"traits": {**TRAITS, "architecture": "x86_64"}}, "architecture", id="x86"),
        pytest.param(
            {"traits": {**TRAITS, "root device": "instance-store"}}, "no EBS volume", id="store"
        ),
        pytest.param({"traits": None}, "EC2 tells nothing", id="no-image"),
        pytest.param({"instance_type": "m8g.large"}, "instance type", id="type"),
        pytest.param({"template_id": "lt-2"}, "another launch template", id="template"),
        pytest.param({"image_id": None}, "is not known", id="unknown-image"),
    ],
)
def test_what_a_new_root_volume_would_not_make_right_is_replaced(
    station: Station, wanted: dict[str, Any], why: str
) -> None:
    station.cluster.builds[OLD] = launched(**wanted)
    found = start(station).turn_of(10)
    assert found.image_id is None
    assert why in found.by_replacement


def test_a_managed_group_is_left_to_eks(station: Station) -> None:
    station.cluster.builds[OLD] = replace(launched(), managed=True)
    assert "EKS manages" in start(station).turn_of(10).by_replacement


def test_a_plan_says_who_stays_and_why_others_do_not(station: Station) -> None:
    station.cluster.builds[OLD] = launched(traits=None)
    said = {"command": "plan", "in_place": True, "selection": {"everything": True}}
    plan = station.conductor.take(said, station.now)["plan"]
    notes = " ".join(plan["notes"])
    assert "In place: 20, 30." in notes
    assert "By a new instance: 10. EC2 tells nothing" in notes
    seconds = {node["node_id"]: node["seconds"] for node in plan["nodes"]}
    assert seconds[20] < seconds[10]


def test_a_cordon_of_somebody_else_makes_it_a_replacement(station: Station) -> None:
    view = station.cluster.node_views[OLD]
    station.cluster.node_views[OLD] = replace(view, schedulable=False)
    start(station)
    turn(station)
    for _ in range(4):
        incident = look(station)
    assert incident.state is State.REPLACING
    assert incident.in_place is not None
    assert "Somebody has cordoned" in (incident.in_place.refusal or "")
    assert not station.cluster.node_views[OLD].schedulable
