"""Reads an expression of CloudWatch's metric math as far as its grammar goes.

It says what is wrong with it: a bracket that is never closed, a function that there is not or that
has other arguments, and more than one series where an alarm takes one. What the functions compute
is left to CloudWatch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

SOURCE = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html"
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)|(?P<name>[A-Za-z][A-Za-z0-9_]*)|"
    r"(?P<text>\"[^\"]*\"|'[^']*')|(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/^<>()\[\],]))"
)
# How tightly an operator binds; - and + before an operand bind as an operand does.
_BINDS = {
    **dict.fromkeys(("OR", "||"), 1),
    **dict.fromkeys(("AND", "&&"), 2),
    **dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/"), 5),
    "^": 6,
}
# A function's least and most arguments.
_ARGUMENTS = {
    **dict.fromkeys(("ABS", "CEIL", "DATAPOINT_COUNT", "DAY", "DATE", "DIFF", "DIFF_TIME"), (1, 1)),
    **dict.fromkeys(("EPOCH", "FLOOR", "HOUR", "LOG", "LOG10", "METRIC_COUNT", "MINUTE"), (1, 1)),
    **dict.fromkeys(("MONTH", "PERIOD", "RATE", "RUNNING_SUM", "TIME_SERIES", "YEAR"), (1, 1)),
    **dict.fromkeys(("REMOVE_EMPTY", "SECOND"), (1, 1)),
    **dict.fromkeys(("AVG", "MAX", "MIN", "STDDEV", "SUM"), (1, 1)),
    **dict.fromkeys(("FIRST", "LAST"), (1, 1)),
    **dict.fromkeys(("FILL", "ANOMALY_DETECTION_BAND"), (1, 2)),
    "IF": (2, 3),
    "METRICS": (0, 1),
    "SERVICE_QUOTA": (1, 1),
    "SLICE": (2, 3),
    "SORT": (2, 4),
    "INSIGHT_RULE_METRIC": (2, 2),
    "DB_PERF_INSIGHTS": (3, 4),
    "LAMBDA": (1, 10),
    "SEARCH": (2, 3),
}
_LEAST_TWO = frozenset({"FILL"})
# What these are told beside series, in a word.
_WORDS = frozenset({"REPEAT", "LINEAR", "ASC", "DESC", *_ARGUMENTS})
# Of several series one remains.
_ONE = frozenset({"FIRST", "LAST", "METRIC_COUNT"})
_REDUCING = frozenset({"AVG", "MAX", "MIN", "STDDEV", "SUM"})
_SEVERAL = frozenset({"METRICS", "SORT", "SLICE", "REMOVE_EMPTY"})

SEVERAL = "an alarm's expression must result in a single time series"


class _WrongError(Exception):
    """What is wrong with an expression."""


@dataclass(slots=True)
class _Reader:
    """The tokens of an expression, and how far they have been read."""

    tokens: Sequence[tuple[str, str]]
    at: int = 0

    def next(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("", "")

    def take(self, wanted: str = "") -> str:
        kind, value = self.next()
        if not kind or (wanted and value != wanted):
            raise _WrongError(f"expected {wanted or 'an operand'}, found {value or 'the end'}")
        self.at += 1
        return value


def wrong(expression: str) -> str:
    """Return what is wrong with an alarm's expression, or nothing.

    >>> wrong("100 * (m1 / m2")
    'expected ), found the end'
    """
    reader = _Reader(tuple(_tokens(expression)))
    try:
        several = _binary(reader, 0)
        if reader.next()[0]:
            return f"unexpected {reader.next()[1]}"
    except _WrongError as error:
        return str(error)
    return SEVERAL if several else ""


def _tokens(expression: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at, text = 0, expression.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return [*found, ("wrong", text[at:].strip()[:20])]
        found.append((str(match.lastgroup), str(match[str(match.lastgroup)])))
        at = match.end()
    return found


def _binary(reader: _Reader, least: int) -> bool:
    """Read operands with what joins them; say whether several series come of it."""
    several = _operand(reader)
    while True:
        _, sign = reader.next()
        binds = _BINDS.get(sign)
        if binds is None or binds <= least:
            return several
        reader.take()
        several |= _binary(reader, binds)


def _operand(reader: _Reader) -> bool:
    kind, value = reader.next()
    if value in {"-", "+"} and kind == "sign":
        reader.take()
        return _operand(reader)
    reader.take()
    if value == "(":
        several = _binary(reader, 0)
        reader.take(")")
        return several
    if value == "[":
        _list(reader, "]")
        return True
    if kind == "name":
        return _read_call(reader, value)
    if kind != "number":
        raise _WrongError(f"unexpected {value}")
    return False


def _read_call(reader: _Reader, name: str) -> bool:
    if reader.next() != ("sign", "("):
        if name.isupper() and name not in _WORDS:
            raise _WrongError(f"{name} is no id of a metric: ids begin in lower case")
        return False
    if name == "SEARCH":
        raise _WrongError("SEARCH is not supported on Metric Alarms")
    if name not in _ARGUMENTS:
        raise _WrongError(f"there is no function {name}")
    reader.take("(")
    given = _list(reader, ")")
    least, most = _ARGUMENTS[name]
    least = 2 if name in _LEAST_TWO else least
    if not least <= len(given) <= most:
        raise _WrongError(f"{name} takes {least} to {most} arguments, and not {len(given)}")
    if name in _ONE or name in _REDUCING:
        return False
    return name in _SEVERAL or any(given)


def _list(reader: _Reader, end: str) -> list[bool]:
    """Read what stands between commas up to an end."""
    found: list[bool] = []
    while reader.next() != ("sign", end):
        if found:
            reader.take(",")
        kind, _ = reader.next()
        if kind == "text":
            reader.take()
            found.append(False)
        else:
            found.append(_binary(reader, 0))
    reader.take(end)
    return found
