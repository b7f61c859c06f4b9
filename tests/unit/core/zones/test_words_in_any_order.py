"""Words about zones, said by clocks that differ and heard in any order: what is frozen at the end.

`at` is AWS's time of a word; `heard` is ours, of whichever function heard it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import pytest

from core.availability.consent import HEALTH_ISSUE, LOST_ZONE
from core.zones.evidence import ZoneSight, judge
from core.zones.incident import (
    AUTOSHIFT,
    LONGEST_SILENCE_SECONDS,
    MANUAL_SHIFT,
    PERSON,
    REHEARSAL,
    ZoneIncident,
    freezes_in_force,
    hear,
)
from tests.every_case import every_case
from tests.history_rows import rows

NOW = 1_795_168_800.0
A, B, C = "use1-az4", "use1-az6", "use1-az1"
NAMES = {A: "us-east-1a", B: "us-east-1b", C: "us-east-1c"}


@dataclass(frozen=True)
class Word:
    source: str
    key: str
    zone_ids: tuple[str, ...] = ()
    at: float = 0.0
    over: bool = False
    heard: float | None = None
    healthy_ids: tuple[str, ...] = ()
    until: float | None = None
    event_type: str | None = None
    said: str = ""

    @property
    def updated_at(self) -> float:
        return NOW + self.at

    @property
    def occurred_at(self) -> float:
        return NOW + self.at


SOURCES = {
    "shift": AUTOSHIFT,
    "own": MANUAL_SHIFT,
    "rehearsal": REHEARSAL,
    "person": PERSON,
    "health": HEALTH_ISSUE,
    "lost": LOST_ZONE,
}
ZONES = {"a": A, "b": B, "c": C}


def words_of(line: str) -> list[Word]:
    """Return the words of a line: who says what of a zone, when, of which resource, heard when."""
    words = []
    for step in line.split(", "):
        source, letter, at, *more = step.split()
        named = [each for each in more if each != "over"]
        told = dict(zip(named[::2], named[1::2], strict=True))
        zone, heard = ZONES[letter], told.get("heard")
        words.append(
            Word(
                SOURCES[source],
                f"{source}:{zone}:{told.get('of')}",
                (zone,),
                float(at),
                over="over" in more,
                heard=None if heard is None else float(heard),
            )
        )
    return words


# Words by AWS's seconds => the zones that are frozen after them, in whatever order they come.
HISTORIES = """
own a 0, own a 60 over =>
own a 0, own a 60 over, own a 120 => a
own a 0 of one, own a 60 over of two => a
own a 0 of one, own a 30 of two, own a 60 over of two => a
own a 0 of one, own a 30 of two, own a 60 over of two, own a 90 over of one =>
shift a 0, shift b 1 => a b
shift a 0, shift b 1, shift a 60 over => b
shift a 0, own a 30, shift a 60 over => a
shift a 0, rehearsal a 60 over => a
rehearsal a 0 =>
person a 0, shift a 10, shift a 60 over => a
health a 0 =>
shift a 0, health a 10, health a 60 over => a
lost a 0, shift a 60 over => a
shift a 60, shift a 60 over =>
"""
# And where they come in this order, by clocks of ours that differ.
SKEWED = """
# AWS's clock is a minute ahead of ours.
shift a 60 heard 0, shift a 90 over heard 30 =>
# The end is heard by a function whose clock is behind.
shift a 60 heard 0, shift a 90 over heard -20 =>
# The beginning comes late to a function whose clock is behind.
shift a 90 over heard 0, shift a 60 heard -30 =>
# The next shift is heard by a function whose clock is behind.
shift a 60 heard 0, shift a 90 over heard 30, shift a 120 heard -10 => a
# A word from the next century is corrected by the next.
shift a 3e9 heard 0, shift a 900 over heard 900 =>
# An end from the next century hides no later shift.
shift a 3e9 over heard 0, shift a 900 heard 900 => a
# Our clocks are behind by an hour.
shift a 0 heard -3600, shift a 10 over heard -3590 =>
"""


def after(words: Sequence[Word], *, late: float = 600.0) -> tuple[ZoneIncident, ...]:
    incidents: tuple[ZoneIncident, ...] = ()
    for word in words:
        now = NOW + (late if word.heard is None else word.heard)
        incidents = hear(word, incidents, now)
        sight = ZoneSight(now=now, names=NAMES, zones=frozenset(NAMES.values()))
        incidents, _ = judge(incidents, sight)
    return incidents


def frozen_in(words: Sequence[Word]) -> str:
    """Return the letters of the zones that are frozen after these words."""
    frozen = {freeze.zone_id for freeze in freezes_in_force(after(words), NOW + 1000)}
    return " ".join(letter for letter, zone in ZONES.items() if zone in frozen)


def orders() -> Iterator[tuple[Sequence[Word], str]]:
    for line, zones in rows(HISTORIES):
        yield from ((order, zones) for order in permutations(words_of(line)))


@every_case(("words", "zones"), orders)
def test_what_is_frozen_is_the_same_in_any_order(words: Sequence[Word], zones: str) -> None:
    assert frozen_in(words) == zones


@every_case(("line", "zones"), rows(SKEWED))
def test_aws_orders_its_own_words_whatever_our_clocks_say(line: str, zones: str) -> None:
    assert frozen_in(words_of(line)) == zones


@pytest.mark.parametrize("source", [AUTOSHIFT, MANUAL_SHIFT])
def test_a_clock_that_is_ahead_makes_no_freeze_longer(source: str) -> None:
    (incident,) = after([Word(source, "one", (A,), 3e9, heard=0.0)])
    assert incident.until == NOW + LONGEST_SILENCE_SECONDS[source]


def test_all_three_zones_at_once_leave_the_last_one_alone() -> None:
    for order in permutations(words_of("shift a 0, shift b 1, shift c 2")):
        assert len(frozen_in(order).split()) == 2
