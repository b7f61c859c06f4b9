"""record, joining and settling: what announcements do to an incident, and what is kept of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.events import Kind
from core.incidents.actions import Decision, ForwardDrain, settle
from core.incidents.decide import why_unanswered
from core.incidents.joining import merge, open_incident, reopens
from core.incidents.record import (
    ALLOWED,
    TERMINAL,
    State,
    from_json,
    incident_id,
    is_unattended,
    to_json,
)
from tests.every_case import every_case
from tests.unit.core.incidents.announced_incidents import OLD, announcement, opened_incident


def test_an_announcement_that_joined_already_changes_nothing() -> None:
    incident = opened_incident()
    assert merge(incident, announcement(hook="drain", lifecycle_token="t"), 9.0) is incident


def test_the_second_hooks_announcement_adds_its_token() -> None:
    incident = merge(opened_incident(), announcement(hook="gate", lifecycle_token="u"), 1.0)
    assert incident.hooks == {"drain": "t", "gate": "u"}
    assert incident.drain_event == "asg_terminate drain"


def test_the_gates_announcement_alone_is_never_forwarded_as_the_drain() -> None:
    assert opened_incident(hook="gate").drain_event is None


def test_what_was_planned_becomes_a_termination_and_then_a_warning() -> None:
    incident = opened_incident(
        Kind.SCHEDULED_CHANGE, event_type="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
    )
    incident = merge(incident, announcement(hook="drain", lifecycle_token="t"), 1.0)
    assert incident.kind is Kind.ASG_TERMINATE
    assert incident.group == "g"
    incident = merge(incident, announcement(Kind.SPOT_INTERRUPTION), 2.0)
    assert incident.urgent
    assert merge(incident, announcement(Kind.STATE_CHANGE), 3.0).kind is Kind.SPOT_INTERRUPTION


def test_a_clock_ahead_of_ours_does_not_postpone_heartbeats() -> None:
    assert open_incident(announcement(occurred_at=99.0), 10.0).announced_at == 10.0
    assert open_incident(announcement(occurred_at=None), 10.0).announced_at == 10.0


REOPENING = [
    (State.RELEASED, False),
    (State.LOST, False),
    (State.RETAINED, True),
    (State.CANCELLED, True),
    (State.RIDDEN_THROUGH, True),
]


@every_case(("state", "again"), REOPENING)
def test_an_instance_that_still_runs_may_be_announced_again(state: State, again: bool) -> None:
    finished = replace(opened_incident(), state=state)
    assert reopens(finished, announcement(hook="drain", dedupe_key="new")) is again
    assert not reopens(finished, announcement(hook="drain"))


def test_a_later_round_has_an_id_of_its_own() -> None:
    assert [incident_id(OLD, n) for n in (1, 2)] == ["i-old", "i-old.2"]


def test_launches_and_called_off_plans_open_no_incident() -> None:
    assert why_unanswered(announcement(Kind.ASG_LAUNCH))
    assert why_unanswered(announcement(Kind.SCHEDULED_CHANGE, closed=True))
    assert why_unanswered(announcement()) is None


def test_a_transition_design_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="may not go opened -> released"):
        settle(opened_incident(), Decision(state=State.RELEASED, reason="x"), 1.0)


def test_every_state_but_the_ends_leads_somewhere() -> None:
    assert set(ALLOWED) == set(State)
    assert {s for s, following in ALLOWED.items() if not following} == TERMINAL


def test_a_reason_that_changes_is_noted_once() -> None:
    stay = Decision(state=State.OPENED, reason="waiting", delay_seconds=5)
    incident = settle(settle(opened_incident(), stay, 1.0), stay, 2.0)
    assert [(n.at, n.reason) for n in incident.notes] == [(1.0, "waiting")]
    assert len(incident.transitions) == 1


def test_a_record_survives_being_written() -> None:
    incident = settle(
        merge(opened_incident(), announcement(Kind.SPOT_INTERRUPTION), 2.0),
        Decision(state=State.DRAINING, reason="now", actions=(ForwardDrain(),), delay_seconds=0),
        3.0,
    )
    assert from_json(to_json(incident)) == incident


def test_an_incident_is_unattended_once_its_tick_is_late() -> None:
    incident = replace(opened_incident(), ticked_at=100.0, next_tick_at=1000.0)
    assert not is_unattended(incident, 1040.0, 45)
    assert is_unattended(incident, 1046.0, 45)
    assert is_unattended(opened_incident(), 46.0, 45)
    assert not is_unattended(replace(incident, state=State.LOST), 9999.0, 45)


@pytest.mark.parametrize(("hook", "again"), [(None, True), ("drain", False)])
def test_a_termination_is_another_matter_than_an_ignored_warning(
    hook: str | None, again: bool
) -> None:
    warned = announcement(Kind.SPOT_INTERRUPTION)
    incident = open_incident(warned, 0.0)
    if hook is not None:
        incident = merge(incident, announcement(hook=hook), 1.0)
    over = replace(incident, state=State.CANCELLED, ignored_by="ada")
    assert reopens(over, announcement(hook="gate", dedupe_key="new")) is again
