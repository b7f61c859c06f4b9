"""Decides whether a run goes on while clients fail: it may spend so much of their error budget.

Asked before a node begins, never while one is away: who is away comes back first. What nobody
counted is no good news, so the run waits for a count.
"""

from __future__ import annotations

from core.incidents.observation import Policy
from core.rotation.observation import RunObservation
from core.rotation.run_record import NodeTurn, Run, note_run
from core.rotation.step import ACTOR, RunStep, again, stop_for_person
from core.words import span

KEY = "budget"


def counting_since(run: Run) -> float:
    """Return since when a run's spending counts: a person's word gives it as much again."""
    return max((note.at for note in run.notes if note.actor != ACTOR), default=run.started_at)


def for_clients(run: Run, turn: NodeTurn, seen: RunObservation, policy: Policy) -> RunStep | None:
    """Stop a run that spent too much, or have it wait where nobody counts; None: it goes on."""
    spent = seen.spent
    if spent is None:
        return None
    if spent.silence:
        said = f"What clients see is unknown, so node {turn.node_id} waits: {spent.silence}"
        return again(note_run(run, ACTOR, said, seen.now, quiet=True), policy)
    if spent.percent <= spent.allowed_percent:
        return None
    reason = (
        f"{spent.failed:.0f} of {spent.attempts:.0f} attempts of the probe failed within "
        f"{span(spent.seconds)}: {spent.percent:.1f} % of the clients' error budget of 30 days, "
        f"and this run may spend {spent.allowed_percent:g} %; find out why, then resume it."
    )
    return stop_for_person(run, turn, reason, seen.now, KEY)
