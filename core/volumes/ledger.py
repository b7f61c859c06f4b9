"""Counts what was modified of a volume, and how many more times AWS allows it today.

Since 2026 AWS allows four modifications of a volume in any 24 hours, each only after the one before
is completed, and tells of the latest alone. So the rest is remembered here; where it is not known,
it counts as used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from core.stored import as_document, take_word, unread_keys, values_in, without
from core.volumes.limits import Gp3, Performance

MOST_IN_WINDOW = 4
WINDOW_SECONDS = 24 * 3600.0
# AWS's clock is not ours, and what it calls the start is not when it was asked.
CLOCK_SLACK_SECONDS = 120.0
# Two readings of one modification's start agree to the second.
SAME_START_SECONDS = 1.0
# A request that EC2 never saw, of a volume that has what was asked.
UNSEEN_SECONDS = 900.0
# Who looks less often may miss one that came and went.
GAP_SECONDS = 1800.0
KEPT_SECONDS = 30 * WINDOW_SECONDS


class ModificationState(StrEnum):
    """How far a modification is; `requested` is before EC2 has heard of it."""

    REQUESTED = "requested"
    MODIFYING = "modifying"
    OPTIMIZING = "optimizing"
    COMPLETED = "completed"
    FAILED = "failed"
    # A word that this release does not know: until EC2 says another, nothing else begins.
    UNKNOWN = "unknown"

    @property
    def over(self) -> bool:
        return self in {ModificationState.COMPLETED, ModificationState.FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Modification:
    """One modification of one volume; `reason` says why, where it was ours."""

    started_at: float
    state: ModificationState
    target: Gp3
    original: Gp3 | None = None
    ended_at: float | None = None
    reason: str = ""
    # What it was for, core.volumes.decisions.Kind's value; empty where it was not ours.
    kind: str = ""
    unread: Mapping[str, Any] = unread_keys()

    @property
    def ours(self) -> bool:
        return bool(self.kind)

    @property
    def word(self) -> str:
        """Return its state as it was said."""
        return str(self.unread.get("state", self.state.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A volume's modifications, the oldest first, complete since `known_since`."""

    known_since: float | None = None
    looked_at: float | None = None
    modifications: tuple[Modification, ...] = ()
    unread: Mapping[str, Any] = unread_keys()

    @property
    def latest(self) -> Modification | None:
        return self.modifications[-1] if self.modifications else None

    @property
    def under_way(self) -> Modification | None:
        """The modification that AWS lets no other start before, if there is one."""
        return next((m for m in reversed(self.modifications) if not m.state.over), None)

    def within(self, now: float, seconds: float) -> tuple[Modification, ...]:
        return tuple(m for m in self.modifications if m.started_at > now - seconds)


def free_slots(history: History, now: float) -> int:
    """Return how many modifications may still start in the 24 hours that end now."""
    if history.known_since is None:
        return 0
    window = WINDOW_SECONDS + CLOCK_SLACK_SECONDS
    counted = history.within(now, window)
    before_we_looked = any(m.started_at < history.known_since and not m.ours for m in counted)
    if before_we_looked and history.known_since > now - window:
        # AWS named the latest; how many came before it nobody knows.
        return 0
    return max(0, MOST_IN_WINDOW - len(counted))


def next_slot_at(history: History, now: float) -> float:
    """Return when one more modification may start than now."""
    if history.known_since is None:
        return now + WINDOW_SECONDS
    window = WINDOW_SECONDS + CLOCK_SLACK_SECONDS
    times = [m.started_at + window for m in history.within(now, window)]
    times += [history.known_since + window] if free_slots(history, now) == 0 else []
    ends = sorted(t for t in times if t > now)
    free = free_slots(history, now)
    return next((t for t in ends if free_slots(history, t) > free), ends[-1] if ends else now)


def with_request(history: History, modification: Modification) -> History:
    """Return a history with a modification that is about to be asked for."""
    return replace(history, modifications=(*history.modifications, modification))


def with_observation(
    history: History,
    latest: Modification | None,
    actual: Gp3,
    now: float,
    asked: Gp3 | None = None,
) -> History:
    """Return a history with what AWS said of a volume's latest modification, and of the volume.

    `asked` is what its pool asks for; a request of ours for something else never reached it.
    """
    known = history.known_since
    if known is None or _may_have_missed(history, latest, now):
        known = now
    kept = [m for m in history.modifications if m.started_at > now - KEPT_SECONDS]
    if latest is not None:
        kept = _with_latest(kept, latest)
    kept = [m for m in kept if not _came_to_nothing(m, actual, asked, now)]
    return replace(history, known_since=known, looked_at=now, modifications=tuple(kept))


def with_end(history: History, state: ModificationState, at: float) -> History:
    """Return a history whose modification under way has ended, as AWS announced."""
    running = history.under_way
    if running is None or running.state is ModificationState.REQUESTED or at < running.started_at:
        # An announcement of what we have not seen start: the next look at EC2 tells the rest.
        return history
    unread = without(running.unread, "state")
    done = replace(running, state=state, ended_at=at, unread=unread)
    changed = tuple(done if m is running else m for m in history.modifications)
    return replace(history, modifications=changed)


def _may_have_missed(history: History, latest: Modification | None, now: float) -> bool:
    """Say whether more than AWS's latest may have begun since the last look."""
    last = history.looked_at
    if last is None or latest is None or now - last <= GAP_SECONDS:
        return False
    return latest.started_at > last and not any(
        abs(m.started_at - latest.started_at) <= SAME_START_SECONDS
        or (m.state is ModificationState.REQUESTED and _answers(latest, m))
        for m in history.modifications
    )


def _with_latest(known: list[Modification], latest: Modification) -> list[Modification]:
    """Put AWS's latest in the place of what is known of it, or behind it."""
    for number, each in enumerate(known):
        if abs(each.started_at - latest.started_at) <= SAME_START_SECONDS:
            if each.state.over:
                return known
            known[number] = _as_ours(latest, each)
            return known
    for number, each in enumerate(known):
        if each.state is ModificationState.REQUESTED and _answers(latest, each):
            known[number] = _as_ours(latest, each)
            return sorted(known, key=lambda m: m.started_at)
    # A later one can only have started once those before were over, whatever we missed.
    over = [
        replace(
            m,
            state=ModificationState.COMPLETED,
            ended_at=latest.started_at,
            unread=without(m.unread, "state"),
        )
        if not m.state.over and m.state is not ModificationState.REQUESTED
        else m
        for m in known
    ]
    return sorted([*over, latest], key=lambda m: m.started_at)


def _as_ours(latest: Modification, known: Modification) -> Modification:
    """Return AWS's word of a modification with what only we know of it."""
    unread = {**without(known.unread, "state"), **latest.unread}
    return replace(latest, reason=known.reason, kind=known.kind, unread=unread)


def _answers(latest: Modification, asked: Modification) -> bool:
    return (
        latest.started_at >= asked.started_at - CLOCK_SLACK_SECONDS
        and latest.target == asked.target
    )


def _came_to_nothing(each: Modification, actual: Gp3, asked: Gp3 | None, now: float) -> bool:
    """Say whether EC2 was never asked: there was nothing to do, or its pool was not changed."""
    if each.state is not ModificationState.REQUESTED or now - each.started_at <= UNSEEN_SECONDS:
        return False
    return each.target == actual or (asked is not None and each.target != asked)


def to_json(history: History) -> dict[str, Any]:
    modifications = [
        {
            **as_document(m),
            "target": _shape(m.target),
            "original": None if m.original is None else _shape(m.original),
        }
        for m in history.modifications
    ]
    return {**as_document(replace(history, modifications=())), "modifications": modifications}


def from_json(document: Mapping[str, Any] | None) -> History:
    """Read a history; of a volume nobody looked at, an unknown one."""
    if not document:
        return History()
    known = values_in(History, document)
    return History(**{**known, "modifications": tuple(map(_modification, known["modifications"]))})


def _modification(stored: Mapping[str, Any]) -> Modification:
    known = values_in(Modification, stored)
    known |= {
        "target": _gp3(stored["target"]),
        "original": None if stored["original"] is None else _gp3(stored["original"]),
    }
    take_word(known, "state", ModificationState, ModificationState.UNKNOWN)
    return Modification(**known)


def _shape(volume: Gp3) -> list[int]:
    return [volume.size_gib, volume.iops, volume.throughput_mib_per_s]


def _gp3(shape: list[int]) -> Gp3:
    return Gp3(shape[0], Performance(shape[1], shape[2]))
