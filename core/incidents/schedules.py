"""Keeps what AWS has scheduled for one instance, event by event, and says which of it governs.

A machine may have a reboot and a retirement ahead of it at once. Health moves and closes each by
words of its own, and EC2's list shows the same two under other names. A word is about the event it
names; where one of the two sides gives no common name, about the one of the same meaning and date.
core.incidents.joining asks, and keeps the answer in the incident's own fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.events import Interruption
from core.events.scheduled import ChangeResponse, answer_to
from core.stored import unread_keys

# Changes AWS makes as soon as it can: the date it gives is the latest, not the day.
EXPEDITED = "EXPEDITED"
_GRAVEST_FIRST = (ChangeResponse.RETIRE, ChangeResponse.RIDE_THROUGH, ChangeResponse.TELL)
# So long EC2's list may show what Health has closed.
LIST_LAGS_SECONDS = 900.0
# Health never says so many things about one machine; the item must stay small.
MOST_KEPT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledChange:
    """One event, as last heard of."""

    names: tuple[str, ...]  # Health's ARN and EC2's id of it, as far as they are known
    code: str | None
    due_at: float | None  # epoch seconds
    said_at: float
    closed: bool = False
    unread: Mapping[str, Any] = unread_keys()

    @property
    def answer(self) -> ChangeResponse:
        return answer_to(self.code)


def apply_word(
    known: tuple[ScheduledChange, ...], told: Interruption, now: float
) -> tuple[ScheduledChange, ...]:
    """Return what is scheduled after a word; one older than what is known of its event is none."""
    about = tuple(each for each in known if _is_about(told, each))
    last = max(
        about, key=lambda each: (told.health_event in each.names, each.said_at), default=None
    )
    if last is not None and told.is_outdated(last.said_at, now):
        return known
    names = (*(name for each in about for name in each.names), told.health_event)
    word = ScheduledChange(
        names=tuple(dict.fromkeys(name for name in names if name is not None)),
        code=told.event_type or (None if last is None else last.code),
        due_at=told.due_at or (None if last is None else last.due_at),
        said_at=told.said_at(now),
        closed=told.closed,
        unread={key: value for each in about for key, value in each.unread.items()},
    )
    kept = tuple(each for each in known if each not in about)
    return (*kept, word)[-MOST_KEPT:]


def is_another(known: Iterable[ScheduledChange], told: Interruption) -> bool:
    """Say whether a word is about an event of which nothing is known."""
    return not any(_is_about(told, each) for each in known)


def _is_about(told: Interruption, known: ScheduledChange) -> bool:
    """Say whether a word is about an event that is known."""
    name = told.health_event
    if name in known.names:
        return True
    if not _alike(told.event_type, known.code):
        return False
    if name is None or not known.names:
        return True
    # Health's name and EC2's for one event share nothing but what it is and when.
    named_alike = any(_is_health(each) == _is_health(name) for each in known.names)
    return not named_alike and told.due_at == known.due_at


def _alike(one: str | None, other: str | None) -> bool:
    """Say whether two codes may be one event's: EC2's and Health's differ, and mean the same."""
    return one is None or other is None or answer_to(one) is answer_to(other)


def _is_health(name: str) -> bool:
    return name.startswith("arn:")


def governing(
    known: Iterable[ScheduledChange], *, retiring: bool = False
) -> ScheduledChange | None:
    """Return the open event that decides: what ends the machine first, and the earliest of those.

    `retiring`: only what ends the machine, since its replacement has begun.
    """
    ahead = [each for each in known if not each.closed]
    if retiring:
        ahead = [each for each in ahead if each.answer is ChangeResponse.RETIRE]
    return min(ahead, key=_rank, default=None)


def _rank(each: ScheduledChange) -> tuple[int, bool, float]:
    unhurried = EXPEDITED not in (each.code or "").upper()
    due = float("inf") if each.due_at is None else each.due_at
    return _GRAVEST_FIRST.index(each.answer), unhurried, due


def is_known(known: Iterable[ScheduledChange], told: Interruption, now: float) -> bool:
    """Say whether a finding of EC2's list tells nothing new: the same event, date and end.

    AWS may schedule again, under the same name and for the same date, what it has called off.
    """
    same = _known_of_finding(known, told)
    if told.closed:
        # What was completed last week says nothing about what is planned now.
        return all(each.closed for each in same)
    return any(not each.closed or now - each.said_at <= LIST_LAGS_SECONDS for each in same)


def last_word_at(known: Iterable[ScheduledChange], told: Interruption) -> float | None:
    """Return when AWS last spoke of what a finding of EC2's list shows; None: it has not."""
    return max((each.said_at for each in _known_of_finding(known, told)), default=None)


def _known_of_finding(
    known: Iterable[ScheduledChange], told: Interruption
) -> list[ScheduledChange]:
    """Return what is known of a finding's event at its date; its own name counts before a date."""
    known = tuple(known)
    named = [e for e in known if told.health_event is not None and told.health_event in e.names]
    return [
        each
        for each in named or known
        if _is_about(told, each)
        and _alike(each.code, told.event_type)
        and told.due_at in {None, each.due_at}
    ]
