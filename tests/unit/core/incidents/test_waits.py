"""core.incidents.decide: what waits for somebody else calls a person in time, with a way out."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.events import Kind
from core.incidents.actions import Decision, DropLease, Page, TerminateInGroup, settle
from core.incidents.decide import ENDING_SECONDS, WAITS, next_action
from core.incidents.learn import learn
from core.incidents.observation import Observation, PodView
from core.incidents.record import Forwarding, Incident, Release, State
from core.incidents.replacement import GROUP_SECONDS
from core.incidents.sweep import Announce, died_again, left_out
from tests.unit.core.incidents.test_guards import NEW_NODE, OLD, PATIENT, POD, housed, shown

PODS = (PodView(name=POD, node_id=10, role="broker", node_name="old", ready=False),)


def called(decision: Decision) -> dict[str, str]:
    return {a.key: a.reason for a in decision.actions if isinstance(a, Page)}


def looked_at(incident: Incident, now: float, **changes: Any) -> tuple[Incident, Decision]:
    seen = shown(now, **changes)
    known = learn(incident, seen)
    decision = next_action(known, seen, PATIENT)
    return settle(known, decision, now), decision


UNANNOUNCED = replace(housed(State.OPENED), kind=Kind.STATE_CHANGE, opened_at=0.0, hooks={})
WARNED = replace(housed(State.DRAINING), kind=Kind.SPOT_INTERRUPTION)


@pytest.mark.parametrize("ec2", ["stopping", "shutting-down"])
@pytest.mark.parametrize("incident", [UNANNOUNCED, WARNED], ids=["unannounced", "spot"])
def test_an_end_that_never_comes_calls_a_person_within_a_quarter_of_an_hour(
    incident: Incident, ec2: str
) -> None:
    alone: dict[str, Any] = {"state": ec2, "pods": PODS, "group": None}
    incident, first = looked_at(incident, 10.0, **alone)
    assert "ec2_ending" not in called(first)
    late = 10.0 + ENDING_SECONDS + 1
    incident, decision = looked_at(incident, late, **alone)
    text = called(decision)["ec2_ending"]
    assert f"EC2 says {ec2}." in text
    assert f"`aws ec2 stop-instances --force --instance-ids {OLD}`" in text
    _, again = looked_at(incident, late + 60, **alone)
    assert "ec2_ending" not in called(again)


def test_a_pod_past_its_grace_on_a_machine_that_runs_calls_a_person() -> None:
    draining = housed(State.DRAINING, forwarded=Forwarding(first_at=0.0, last_at=0.0))
    stopping = replace(PODS[0], stopping=True, out_since=340.0, grace_seconds=330.0)
    _, soon = looked_at(draining, 400.0, pods=(stopping,))
    assert "pod_stuck" not in called(soon)
    _, late = looked_at(draining, 470.0, pods=(stopping,))
    assert "Never delete the pod by force while its machine runs" in called(late)["pod_stuck"]


def in_service(incident: Incident, now: float) -> tuple[Incident, Decision]:
    view = shown(now, lease_holder=incident.id)
    assert view.group is not None
    stays = replace(view.group, instances={OLD: "InService", "i-new": "InService"})
    return looked_at(incident, now, lease_holder=incident.id, group=stays)


def test_a_group_that_accepts_and_does_nothing_is_asked_once_and_gives_the_lease_back() -> None:
    planned = replace(
        housed(State.HOLDING, replacement=NEW_NODE),
        kind=Kind.SICK_NODE,
        hooks={},
        group="g",
        surge_to=2,
    )
    asked, first = in_service(planned, 1.0)
    assert any(isinstance(a, TerminateInGroup) for a in first.actions)
    asked, second = in_service(asked, 60.0)
    assert not any(isinstance(a, TerminateInGroup) for a in second.actions)
    late, third = in_service(asked, GROUP_SECONDS + 2)
    assert "detach-instances" in called(third)["group_silent"]
    assert DropLease() in third.actions
    assert late.terminate_asked_at == 1.0
    released = replace(late, release=Release(by="ann", at=400.0))
    _, again = in_service(released, 401.0)
    assert any(isinstance(a, TerminateInGroup) for a in again.actions)


def test_a_wait_that_a_page_has_told_of_calls_nobody_again() -> None:
    known = replace(UNANNOUNCED, pages=("ec2_ending", "stands_still"), ending_since=0.0)
    seen: Observation = shown(9999.0, state="stopping", pods=PODS)
    assert called(next_action(known, seen, PATIENT)) == {}


def test_every_open_state_has_a_wait_and_every_wait_a_way_out() -> None:
    open_states = {State.OPENED, State.REPLACING, State.HOLDING, State.DRAINING, State.GATING}
    for state in open_states:
        assert sum(state in wait.states for wait in WAITS) >= 2
    assert all(wait.way_out and wait.pages for wait in WAITS)


def test_an_open_incident_that_has_called_nobody_does_not_mute_the_alarm_of_a_broker_left_out() -> (
    None
):
    out = replace(PODS[0], out_since=0.0)
    silent = housed(State.OPENED)
    (concern,) = left_out((out,), (silent,), silent.entered_at + 1900.0)
    assert concern.page == "left_out"
    assert list(left_out((out,), (silent,), silent.entered_at + 1700.0)) == []
    told = replace(silent, pages=("ec2_ending",))
    assert list(left_out((out,), (told,), silent.entered_at + 1900.0)) == []


def test_a_broker_that_is_back_is_not_given_up_for_looks_that_saw_nothing() -> None:
    """Each blind look starts the time again for which a broker is to stay."""
    gating = housed(State.GATING, forwarded=Forwarding(first_at=0.0, last_at=0.0))
    late = PATIENT.post_condition_wait_seconds + 10
    back = PodView(name=POD, node_id=10, role="broker", node_name="new", ready=True)
    for lost_at, ec2 in ((None, "running"), (1.0, "terminated")):
        gating = replace(gating, lost_at=lost_at)
        known, decision = looked_at(gating, late, pods=(back,), state=ec2)
        assert (decision.state, known.broker_back_at) == (State.GATING, late)
        away = replace(back, ready=False)
        _, given_up = looked_at(gating, late, pods=(away,), state=ec2)
        assert given_up.state in {State.RETAINED, State.LOST}


def test_what_was_given_up_before_ec2_confirmed_its_end_is_freed_once_it_does() -> None:
    housed_there = cast("Announce", SimpleNamespace(housed=True))
    given_up = replace(housed(State.LOST), lost_at=None, broker_back_at=None)
    assert died_again([given_up], housed_there)
    freed = replace(given_up, lost_at=5.0)
    assert not died_again([freed], housed_there)
    assert died_again([replace(freed, broker_back_at=9.0)], housed_there)
