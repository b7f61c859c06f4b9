"""Words about zones, said by clocks that differ and heard in any order: what is frozen at the end.

`at` is AWS's time of a word; `heard` is ours, of whichever function heard it.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def began(
    zone: str, at: float, *, key: str = "1", source: str = MANUAL_SHIFT, **of: object
) -> Word:
    return Word(source, f"{source}:{zone}:{key}", (zone,), at, **of)  # type: ignore[arg-type]


def ended(
    zone: str, at: float, *, key: str = "1", source: str = MANUAL_SHIFT, **of: object
) -> Word:
    return Word(source, f"{source}:{zone}:{key}", (zone,), at, over=True, **of)  # type: ignore[arg-type]


def shifted(zone: str, at: float, *, over: bool = False, **of: object) -> Word:
    return Word(AUTOSHIFT, f"{AUTOSHIFT}:{zone}", (zone,), at, over=over, **of)  # type: ignore[arg-type]


HISTORIES: dict[str, tuple[Sequence[Word], set[str]]] = {
    "a shift begins and ends": ([began(A, 0), ended(A, 60)], set()),
    "a shift begins, ends and begins": ([began(A, 0), ended(A, 60), began(A, 120)], {A}),
    "the end of another resource's shift": (
        [began(A, 0, key="one"), ended(A, 60, key="two")],
        {A},
    ),
    "two resources' shifts, one of them ended": (
        [began(A, 0, key="one"), began(A, 30, key="two"), ended(A, 60, key="two")],
        {A},
    ),
    "two resources' shifts, both ended": (
        [
            began(A, 0, key="one"),
            began(A, 30, key="two"),
            ended(A, 60, key="two"),
            ended(A, 90, key="one"),
        ],
        set(),
    ),
    "two zones at once by AWS": ([shifted(A, 0), shifted(B, 1)], {A, B}),
    "two zones at once, one of them over": (
        [shifted(A, 0), shifted(B, 1), shifted(A, 60, over=True)],
        {B},
    ),
    "AWS's shift ends, and somebody's own goes on": (
        [shifted(A, 0), began(A, 30), shifted(A, 60, over=True)],
        {A},
    ),
    "a rehearsal beside a shift ends": (
        [shifted(A, 0), Word(REHEARSAL, f"{REHEARSAL}:{A}", (A,), 60, over=True)],
        {A},
    ),
    "a rehearsal alone": ([Word(REHEARSAL, f"{REHEARSAL}:{A}", (A,), 0)], set()),
    "a person's freeze outlasts AWS's end": (
        [began(A, 0, source=PERSON, key=""), shifted(A, 10), shifted(A, 60, over=True)],
        {A},
    ),
    "Health alone freezes nothing": ([Word(HEALTH_ISSUE, "arn:1", (A,), 0)], set()),
    "Health ends what ARC goes on with": (
        [
            shifted(A, 0),
            Word(HEALTH_ISSUE, "arn:1", (A,), 10),
            Word(HEALTH_ISSUE, "arn:1", (A,), 60, over=True),
        ],
        {A},
    ),
    "a lost zone is ended by nobody but our own sight": (
        [Word(LOST_ZONE, f"{LOST_ZONE}:{A}", (A,), 0), shifted(A, 60, over=True)],
        {A},
    ),
    "the two words of one moment": ([shifted(A, 60), shifted(A, 60, over=True)], set()),
}
SKEWED: dict[str, tuple[Sequence[Word], set[str]]] = {
    "AWS's clock is a minute ahead of ours": (
        [shifted(A, 60, heard=0.0), shifted(A, 90, over=True, heard=30.0)],
        set(),
    ),
    "the end is heard by a function whose clock is behind": (
        [shifted(A, 60, heard=0.0), shifted(A, 90, over=True, heard=-20.0)],
        set(),
    ),
    "the beginning comes late to a function whose clock is behind": (
        [shifted(A, 90, over=True, heard=0.0), shifted(A, 60, heard=-30.0)],
        set(),
    ),
    "the next shift is heard by a function whose clock is behind": (
        [
            shifted(A, 60, heard=0.0),
            shifted(A, 90, over=True, heard=30.0),
            shifted(A, 120, heard=-10.0),
        ],
        {A},
    ),
    "a word from the next century is corrected by the next": (
        [shifted(A, 3e9, heard=0.0), shifted(A, 900, over=True, heard=900.0)],
        set(),
    ),
    "an end from the next century hides no later shift": (
        [shifted(A, 3e9, over=True, heard=0.0), shifted(A, 900, heard=900.0)],
        {A},
    ),
    "our clocks are behind by an hour": (
        [shifted(A, 0, heard=-3600.0), shifted(A, 10, over=True, heard=-3590.0)],
        set(),
    ),
}


def after(words: Sequence[Word], *, late: float = 600.0) -> tuple[ZoneIncident, ...]:
    incidents: tuple[ZoneIncident, ...] = ()
    for word in words:
        now = NOW + (late if word.heard is None else word.heard)
        incidents = hear(word, incidents, now)
        sight = ZoneSight(now=now, names=NAMES, zones=frozenset(NAMES.values()))
        incidents, _ = judge(incidents, sight)
    return incidents


def frozen_in(words: Sequence[Word], now: float = NOW + 1000) -> set[str]:
    return {freeze.zone_id for freeze in freezes_in_force(after(words), now)}


@every_case(
    ("words", "zones"),
    [
        pytest.param(order, zones, id=f"{name}, order {number}")
        for name, (words, zones) in HISTORIES.items()
        for number, order in enumerate(permutations(words))
    ],
)
def test_what_is_frozen_is_the_same_in_whatever_order_words_come(
    words: Sequence[Word], zones: set[str]
) -> None:
    assert frozen_in(words) == zones


@every_case(("words", "zones"), SKEWED.values(), ids=SKEWED)
def test_aws_orders_its_own_words_whatever_our_clocks_say(
    words: Sequence[Word], zones: set[str]
) -> None:
    assert frozen_in(words) == zones


@pytest.mark.parametrize("source", [AUTOSHIFT, MANUAL_SHIFT])
def test_a_clock_that_is_ahead_makes_no_freeze_longer(source: str) -> None:
    (incident,) = after([began(A, 3e9, source=source, heard=0.0)])
    assert incident.until == NOW + LONGEST_SILENCE_SECONDS[source]


def test_all_three_zones_at_once_leave_the_last_one_alone() -> None:
    for order in permutations([shifted(A, 0), shifted(B, 1), shifted(C, 2)]):
        assert len(frozen_in(order)) == 2
