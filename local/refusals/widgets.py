"""Refuses what CloudWatch does not take inside a dashboard's widgets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from local.refusals.watching import is_period, is_statistic

# Of each kind of widget what its properties may be: their words, or what they are.
_WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "alarm": {"sortBy": ("default", "stateUpdatedTimestamp", "timestamp")},
    "log": {"view": ("bar", "pie", "table", "timeSeries")},
    "metric": {"legend.position": ("bottom", "hidden", "right")},
    "text": {"background": ("solid", "transparent")},
}
_STATES = frozenset({"ALARM", "INSUFFICIENT_DATA", "OK"})
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("liveData", "setPeriodToTimeRange", "sparkline", "trend"), bool),
    **dict.fromkeys(("region", "title", "timezone", "markdown", "query"), str),
}
_COLOUR = re.compile(r"#(?:[0-9A-Fa-f]{3}){1,2}")
_ID = re.compile(r"[a-z][A-Za-z0-9_]*")
_FILLS = ("above", "after", "before", "below", "between", "none")


def wrongs(kind: str, told: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a widget's properties, by their path in it."""
    for name, known in _KINDS.items():
        if name in told and not isinstance(told[name], known):
            yield f"/{name}: Should be {'boolean' if known is bool else 'string'}"
    for path, words in _WORDS.get(kind, {}).items():
        value: Any = told
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None and value not in words:
            yield f"/{path.replace('.', '/')}: Should be equal to one of the allowed values"
    if kind == "alarm":
        yield from _of_alarms(told)
    if kind == "metric":
        yield from _of_a_graph(told)


def _of_alarms(told: Mapping[str, Any]) -> Iterator[str]:
    for alarm in told.get("alarms") or ():
        if not re.fullmatch(r"arn:aws[a-z-]*:cloudwatch:.+:alarm:.+", str(alarm)):
            yield f"/alarms: {alarm} should be the ARN of an alarm"
    if set(map(str, told.get("states") or ())) - _STATES:
        yield "/states: Should be equal to one of the allowed values"


def _of_a_graph(told: Mapping[str, Any]) -> Iterator[str]:
    yield from _drawing_problems(told)
    if "timezone" in told and not re.fullmatch(r"[+-]\d{4}", str(told["timezone"])):
        yield "/timezone: Should be an offset from UTC such as +0130"
    yield from _axes(told.get("yAxis") or {})
    lines = told.get("annotations") or {}
    for way in ("horizontal", "vertical") if isinstance(lines, dict) else ():
        for each in lines.get(way) or ():
            for line in each if isinstance(each, list) else [each]:
                yield from _line(line, way)
    for number, series in enumerate(told.get("metrics") or ()):
        if isinstance(series, list):
            yield from (f"/metrics/{number}{wrong}" for wrong in _series(series, number))


def _drawing_problems(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a period and a statistic, of a graph or of one of its series."""
    period, stat = options.get("period"), options.get("stat")
    if period is not None and not (type(period) is int and is_period(period)):
        yield "/period: Should be 1, 5, 10, 20, 30 or a multiple of 60"
    if stat is not None and not is_statistic(str(stat)):
        yield "/stat: Should be a statistic"


def _axes(axes: Any) -> Iterator[str]:
    if not isinstance(axes, dict) or set(axes) - {"left", "right"}:
        yield "/yAxis: Should have left and right alone"
        return
    for side, axis in axes.items():
        for end in ("min", "max"):
            value = axis.get(end) if isinstance(axis, dict) else None
            if value is not None and not isinstance(value, int | float):
                yield f"/yAxis/{side}/{end}: Should be number"


def _line(line: Any, way: str) -> Iterator[str]:
    where = f"/annotations/{way}"
    if not isinstance(line, dict) or line.get("value") is None:
        yield f"{where}: Should have required property 'value'"
        return
    value = line["value"]
    if way == "horizontal" and not isinstance(value, int | float):
        yield f"{where}/value: Should be number"
    if way == "vertical" and not is_time(value):
        yield f"{where}/value: Should be a date and time as ISO 8601 has them"
    if line.get("fill", "none") not in _FILLS:
        yield f"{where}/fill: Should be equal to one of the allowed values"
    if "color" in line and not _COLOUR.fullmatch(str(line["color"])):
        yield f"{where}/color: Should be a colour such as #ff6384"


def is_time(written: object) -> bool:
    """Say whether it is a time as ISO 8601 writes them."""
    try:
        return bool(datetime.fromisoformat(str(written)))
    except ValueError:
        return False


def _series(series: list[Any], number: int) -> Iterator[str]:
    options = series[-1] if series and isinstance(series[-1], dict) else {}
    named = series[:-1] if options or (series and isinstance(series[-1], dict)) else series
    if not all(isinstance(each, str) for each in named):
        yield ": Should name its metric in strings"
    elif named and "..." not in named and (len(named) < 2 or len(named) % 2):
        yield ": Should be a namespace, a metric's name, and pairs of dimensions"
    elif number == 0 and {".", "..."} & set(named):
        yield ": The first series has none before it to repeat"
    yield from _drawing_problems(options)
    expression = options.get("expression")
    problems = (
        (expression is not None and not isinstance(expression, str), "/expression: Should be text"),
        (not named and expression is None, ": Should be a metric or an expression"),
        (
            "id" in options and not _ID.fullmatch(str(options["id"])),
            "/id: Should begin in lower case",
        ),
        (
            "color" in options and not _COLOUR.fullmatch(str(options["color"])),
            "/color: Should be a colour",
        ),
        (options.get("yAxis", "left") not in {"left", "right"}, "/yAxis: Should be left or right"),
        (not isinstance(options.get("visible", True), bool), "/visible: Should be boolean"),
    )
    yield from (said for wrong, said in problems if wrong)
