"""Defines what a format says of its lines: which columns are needed, and what a line's cells mean.

First stop of a dollar's walk. Text is left as it is delivered: what it means is said of each
different line once (spark.rules). A line that cannot be read keeps its reason instead of vanishing.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from core.ground.errors import InvalidInput
from spark.ingest.columns import Amounts, Numbers
from spark.rules.line import EMPTY
from spark.tag_keys import TAG_COLUMNS, KafkaTags

LINE_CHARACTERS = 300
BROKEN_LINE = "the line does not hold the columns of its header"
ELSEWHERE = "the line is of another month than the delivery it came in"
_SHOWN_CHARACTERS = 40
# A double that is no number is delivered, unlike what a database writes for nothing.
_NOTHING = frozenset(EMPTY - {"NaN"})
# The cells of a line by the names of their columns; None of a broken line, whose may have shifted.
Cells = Mapping[str, str | None]


class Format(StrEnum):
    """The bills that can be read."""

    CUR2 = "CUR 2.0"
    CUR = "legacy CUR"
    FOCUS = "FOCUS"


@dataclass(frozen=True, slots=True)
class Costs:
    """What lines or groups of them come to, and whether the export says a net cost of them."""

    quantity: Amounts
    billed: Amounts
    amortised: Amounts
    net: Amounts
    has_net: Numbers


@dataclass(frozen=True)
class Layout(ABC):
    """How one format's lines are read, in whatever its files call their columns.

    `maps` hold tags, `own` are the names by which the tags are looked up that have columns of
    their own. `notes` say what the bill cannot for want of columns.
    """

    kafka: KafkaTags
    maps: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    format: ClassVar[Format]
    has_splits: ClassVar[bool] = False

    texts: ClassVar[tuple[str, ...]]
    amounts: ClassVar[tuple[str, ...]]
    cost: ClassVar[str]
    # The amounts without which a line cannot be read, and the texts.
    numbers: ClassVar[tuple[str, ...]]
    present: ClassVar[tuple[str, ...]]
    day: ClassVar[str]
    month: ClassVar[str]
    resource: ClassVar[str]
    zone: ClassVar[str]
    meters: ClassVar[tuple[str, ...]]  # where the usage type stands
    # What a reader of the report needs to find a bad line in the bill.
    shown: ClassVar[tuple[str, ...]]

    @property
    def wanted(self) -> tuple[str, ...]:
        """Return the columns that are read."""
        named = (*self.texts, *self.amounts, self.day, self.month, *self.maps, *self.own)
        return tuple(dict.fromkeys(named))

    def places(self, columns: Sequence[str]) -> dict[str, str]:
        """Return where a file's columns are that are wanted."""
        return places(self.wanted, columns)

    def tag_columns(self, columns: Sequence[str]) -> dict[str, str]:
        """Return all of a file's columns that hold one tag each, also those not looked up."""
        del columns
        return {}

    def notes_of(self, kinds: Collection[str]) -> list[str]:
        """Say what these kinds of lines lack; raises InvalidInput where they cannot do without."""
        del kinds
        return []

    @abstractmethod
    def line(self, cells: Cells) -> tuple[str | None, ...]:
        """Return a line's texts in the order of spark.rules.line.Raw, up to its zone."""

    @abstractmethod
    def kind(self, cells: Cells) -> int:
        """Return by which formula a line's cost is spread, for `costs`."""

    @abstractmethod
    def costs(self, kinds: Numbers, amounts: Mapping[str, Amounts]) -> Costs:
        """Return what lines come to, whose kinds and amounts these are."""

    def reason(
        self,
        cells: Cells,
        known: Mapping[str, bool],
        period: str | None,
        month: str | None,
    ) -> str | None:
        """Return why a line cannot be read, or None of one that can.

        `known` says which numbers and times can be, `period` is the month that it was delivered
        for, and `month` the one that it names.
        """
        for name in self.numbers:
            if not known[name]:
                return _sentence(name, cells.get(name), "a number")
        for name in (self.month, self.day):
            if not known[name]:
                return _sentence(name, cells.get(name), "a time")
        for name in self.present:
            if cells.get(name) is None or cells[name] in EMPTY:
                return f"{name} is empty"
        return ELSEWHERE if period is not None and period != month else None

    def excerpt(self, cells: Cells) -> str:
        """Return what a line says, as much of it as finds it again."""
        said = (text_or_none(cells.get(name)) for name in self.shown)
        return ", ".join(each for each in said if each is not None)[:LINE_CHARACTERS]


def _sentence(name: str, written: str | None, kind: str) -> str:
    trimmed = (written or "").strip(" ")
    if trimmed in _NOTHING:
        return f"{name} is empty"
    return f"{name} '{trimmed[:_SHOWN_CHARACTERS]}' is not {kind}"


def text_or_none(written: str | None) -> str | None:
    """Return a cell's text, None where the export writes a literal for "nothing"."""
    trimmed = None if written is None else written.strip(" ")
    return None if trimmed in EMPTY else trimmed


def letters(name: str) -> str:
    """Return a column's name without case and without what stands between its words."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def spellings(columns: Iterable[str]) -> dict[str, str]:
    """Return where columns are, by their names in lower case and by their letters.

    Tags are told apart by what stands between their words: those have no second name.
    """
    names = list(columns)
    loose = {letters(name): name for name in names if not name.lower().startswith(TAG_COLUMNS)}
    return {**loose, **{name.lower(): name for name in names}}


def places(wanted: Iterable[str], columns: Iterable[str]) -> dict[str, str]:
    """Return where the wanted columns are among these; neither case nor what is between counts."""
    spelled = spellings(columns)
    found = {name: spelled.get(name.lower(), spelled.get(letters(name))) for name in wanted}
    return {name: place for name, place in found.items() if place is not None}


def require_columns(
    required: Mapping[str, str],
    columns: Iterable[str],
    what: str,
    called: Callable[[str], str] = str,
) -> None:
    """Refuse a bill that lacks a column, one sentence each, naming the setting that adds it.

    `called` is what the bill itself calls a column.
    """
    there = places(required, columns)
    missing = [
        f"{what} has no column {called(name)}; {remedy}."
        for name, remedy in required.items()
        if name not in there
    ]
    if missing:
        raise InvalidInput(missing)


def require_each_once(
    columns: Iterable[str], called: Callable[[str], str], wanted: Collection[str], what: str
) -> None:
    """Refuse a bill that has a wanted column under two names: which of them counts is not known."""
    found: dict[str, list[str]] = {}
    for name in columns:
        found.setdefault(called(name), []).append(name)
    problems = [
        f"{what} has one column under {len(names)} names, {' and '.join(names)}; export it once."
        for meant, names in found.items()
        if len(names) > 1 and meant in wanted
    ]
    if problems:
        raise InvalidInput(problems)


def left_out(
    effects: Mapping[str, str], known: Collection[str], called: Callable[[str], str] = str
) -> list[str]:
    """Say what a bill cannot tell for want of columns that are not required, one sentence each."""
    return [
        f"The bill has no column {called(name)}: {effect}."
        for name, effect in effects.items()
        if name.lower() not in known and letters(name) not in known
    ]


def distinct_names(names: Iterable[Sequence[str]]) -> list[str]:
    """Return the columns of several files, each once; the case of a name's letters does not count.

    The first spelling is kept.
    """
    spelled: dict[str, str] = {}
    for name in (name for each in names for name in each):
        spelled.setdefault(name.lower(), name)
    return list(spelled.values())
