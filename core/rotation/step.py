"""Defines what one turn of a run returns: the run as it then is, what to do, when to look again.

core.rotation.progress and core.rotation.following make steps; handlers.rotation.turns carries them
out and records the run. Every action may be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.incidents.observation import Policy
from core.rotation.run_record import NodeTurn, Run, RunState, note_run

ACTOR = "rotation"


@dataclass(frozen=True, slots=True)
class Begin:
    """Open the incident by which a node's instance leaves."""

    node_id: int


@dataclass(frozen=True, slots=True)
class MakeReady:
    """Open that incident for the node's replacement alone: its own turn comes later."""

    node_id: int


@dataclass(frozen=True, slots=True)
class CallOff:
    """Tell a node's incident that its instance stays, while nothing of it has left."""

    node_id: int


@dataclass(frozen=True, slots=True)
class Elect:
    """Have a broker lead again what it is preferred for."""

    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PersonCall:
    """Call a person; once per key until the run is resumed."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """What replication may bring in, a broker, while some of them refill."""

    brokers: tuple[int, ...]
    topics: tuple[str, ...]  # with a replica that one of them has not in sync
    follower_bytes_per_s: int
    leader_bytes_per_s: int


@dataclass(frozen=True, slots=True)
class ThrottleRefill:
    """Throttle replication into what is out of sync; None: take the throttle off."""

    throttle: Throttle | None


RunAction = Begin | MakeReady | CallOff | Elect | PersonCall | ThrottleRefill


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStep:
    """What a run is after this turn, what is to be done for it, and when to look again."""

    run: Run
    actions: tuple[RunAction, ...] = ()
    delay_seconds: float | None = None  # None: nothing carries it on but a person


def again(run: Run, policy: Policy, *actions: RunAction, delay: float | None = None) -> RunStep:
    """Look again after a tick's time, or another."""
    delay = policy.tick_interval_seconds if delay is None else delay
    return RunStep(run=run, actions=actions, delay_seconds=delay)


def end_run(run: Run, state: RunState, reason: str, now: float) -> RunStep:
    """End the run: it is done, or aborted."""
    over = replace(run, state=state, ended_at=now, next_turn_at=None)
    return RunStep(run=note_run(over, ACTOR, reason, now))


def stop_for_person(run: Run, turn: NodeTurn, reason: str, now: float, key: str) -> RunStep:
    """Stop for a person, who resumes, skips or aborts."""
    run = replace(
        run.with_turn(replace(turn, reason=reason)), state=RunState.STOPPED, next_turn_at=None
    )
    if key in run.pages:
        return RunStep(run=note_run(run, ACTOR, reason, now))
    run = note_run(replace(run, pages=(*run.pages, key)), ACTOR, reason, now)
    return RunStep(run=run, actions=(PersonCall(key, f"Run {run.id} stopped. {reason}"),))
