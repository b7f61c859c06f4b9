"""core.rotation.progress: a run stops itself where its clients fail more than it may cost them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.availability.budget import PERIOD_SECONDS, Spent
from core.incidents.actions import Page
from core.rotation.progress import KEY, counting_since, next_step
from core.rotation.run_record import Run, RunState, RunStep, resume
from tests.unit.core.rotation.test_who_is_next import a_run, begun, seen_at
from tests.unit.policies import policy_with

ALLOWED = Spent(
    objective_percent=99.9, allowed_percent=10, seconds=3600.0, attempts=10_800.0, failed=0.0
)
# What spends a tenth of the 30 days' budget, were it to come within this hour.
TENTH = ALLOWED.attempts / 1000 * 0.1 * PERIOD_SECONDS / ALLOWED.seconds


def stepped(spent: Spent | None, run: Run | None = None) -> RunStep:
    return next_step(run or a_run(), replace(seen_at(1.0), spent=spent), policy_with())


@pytest.mark.parametrize(
    "spent",
    [None, ALLOWED, replace(ALLOWED, failed=TENTH - 1)],
    ids=["no probe", "nothing failed", "within the budget"],
)
def test_a_run_begins_with_the_next_node(spent: Spent | None) -> None:
    assert begun(stepped(spent)) == [10]


def test_a_run_that_spent_too_much_stops_for_a_person_and_says_what_failed() -> None:
    step = stepped(replace(ALLOWED, failed=1.5 * TENTH))
    assert step.run.state is RunState.STOPPED
    assert begun(step) == []
    assert [action.key for action in step.actions if isinstance(action, Page)] == [KEY]
    assert "15.0 % of the clients' error budget" in step.run.reason


def test_a_run_waits_while_nobody_knows_what_clients_see() -> None:
    step = stepped(replace(ALLOWED, silence="Prometheus does not answer."))
    assert (step.run.state, begun(step)) == (RunState.RUNNING, [])
    assert step.delay_seconds is not None
    assert "Prometheus does not answer." in step.run.reason


def test_a_persons_resume_gives_the_run_as_much_again() -> None:
    run = stepped(replace(ALLOWED, failed=TENTH + 1)).run
    assert counting_since(run) == 0.0
    assert counting_since(resume(run, "ada", 500.0)) == 500.0
