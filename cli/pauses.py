"""`stillwater pause` and `stillwater resume`: a stop on purpose, kept in the ledger."""

from __future__ import annotations

import time
from dataclasses import replace

from cli.incidents import Desk, sentences
from cli.moments import moment_of
from core.errors import InvalidInput
from core.incidents.joining import Pause
from core.window import clock
from handlers.adapters.aws import tick_message


def pause(desk: Desk, because: str, until: str | None) -> str:
    """Have nothing new drained or terminated until a moment, or until somebody resumes."""
    now = time.time()
    moment = None if until is None else moment_of(until, now)
    problems = []
    if not because.strip():
        problems.append("--because is empty; say why, for whoever finds the cluster paused.")
    if moment is not None and moment <= now:
        problems.append(f"A pause cannot end at {clock(moment)}: it is {clock(now)}.")
    if problems:
        raise InvalidInput(problems)
    with sentences():
        pauses = desk.pauses
        before = pauses.current(now)
        pause = Pause(desk.actor, because.strip(), now, moment)
        pauses.write(pause if before is None else replace(pause, since=before.since))
    return (
        f"{pause.sentence} Nothing new is drained or terminated; hooks keep beating, drains that "
        f"run end, and a two-minute warning is drained all the same."
    )


def resume(desk: Desk) -> str:
    """Let the loop go on, and have it look at every open incident now."""
    with sentences():
        pauses = desk.pauses
        before = pauses.current(time.time())
        pauses.write(None)
        woken = desk.ledger.open_incidents()
        for incident in woken:
            desk.send_tick(tick_message(incident.id, incident.version))
    if before is None:
        return f"{desk.spec.name} was not paused."
    return (
        f"{desk.spec.name} goes on; it was: {before.sentence} The loop looks at {len(woken)} open "
        f"incidents now."
    )
