"""Decides whether Kafka's own parser would take a value: a number, some words, text of a form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

SHORT, INT, LONG = 2**15 - 1, 2**31 - 1, 2**63 - 1
MIB = 1024**2
MOST_DIGITS = 100
Value = str | int | bool


@dataclass(frozen=True, slots=True)
class Range:
    """A number between two others, or the one beside them that Kafka reads as none."""

    least: float
    most: float
    whole: bool = True
    also: int | None = None

    def refuses(self, value: Value) -> str | None:
        """Return what it must be; None: it is."""
        given = None if isinstance(value, bool) else number(str(value).strip(), whole=self.whole)
        if given is None:
            return "a whole number" if self.whole else "a number"
        if self.least <= given <= self.most or given == self.also:
            return None
        return f"{self.least} to {self.most}{'' if self.also is None else f', or {self.also}'}"


@dataclass(frozen=True, slots=True)
class Words:
    """One of some words, or several of them with commas between.

    With `empty` none of them will do as well, and `always` is the one that may not be missing.
    """

    words: tuple[str, ...]
    several: bool = False
    any_case: bool = False
    empty: bool = False
    always: str | None = None

    def refuses(self, value: Value) -> str | None:
        """Return what it must be; None: it is."""
        written = str(value).strip()
        if self.empty and not written:
            return None
        given = {each.strip() for each in written.split(",")} if self.several else {written}
        known = set(self.words)
        if self.any_case:
            given, known = {each.lower() for each in given}, {each.lower() for each in known}
        if given <= known and (self.always is None or self.always in given):
            return None
        among = "" if self.always is None else f", and {self.always} among them"
        return f"{'some' if self.several else 'one'} of {', '.join(self.words)}{among}"


@dataclass(frozen=True, slots=True)
class Shaped:
    """Text of a form."""

    expression: str
    form: str

    def refuses(self, value: Value) -> str | None:
        """Return what it must be; None: it is."""
        return None if re.fullmatch(self.expression, str(value).strip()) else self.form


Kind = Range | Words | Shaped
TRUTH = Words(("true", "false"), any_case=True)
# Numbers that Kafka holds against nothing but their type.
ANY_INT, ANY_LONG = Range(-INT - 1, INT), Range(-LONG - 1, LONG)
ANY_NUMBER = Range(float("-inf"), float("inf"), whole=False)
NAME = Shaped(r".*\S.*", "a name")
CLASS = Shaped(r"[^\s,]+", "the full name of a class")
CLASSES = Shaped(r"([^\s,]+(\s*,\s*[^\s,]+)*)?", "full names of classes with commas between")


def number(written: str, *, whole: bool = True) -> float | None:
    """Return a number as Kafka's own parser reads it; None: it would not."""
    if re.fullmatch(r"[-+]?[0-9]+", written):
        # Python itself reads no number of thousands of digits, and Kafka none of more than 19.
        return int(written) if len(written) <= MOST_DIGITS else None
    if whole or re.fullmatch(r"[-+]?([0-9]+\.?|[0-9]*\.[0-9]+)([eE][-+]?[0-9]+)?", written) is None:
        return None
    return float(written)


def whole_number(value: Value) -> int | None:
    """Return a value's number; None: it is no whole one."""
    read = number(str(value).strip())
    return None if read is None else int(read)


def figure_of(setting: str, *configs: Mapping[str, Value]) -> int | None:
    """Return a setting's number by the first that has it; None: it is no whole one, or none has."""
    return next((whole_number(each[setting]) for each in configs if setting in each), None)


def setting_text(setting: str, number: int, config: Mapping[str, Value]) -> str:
    """Say what a setting is, and whether somebody said so."""
    return f"{setting} is {number}" + ("" if setting in config else " where nothing is said")
