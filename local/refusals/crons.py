"""Reads the expressions of rules and schedules as EventBridge does, a cron field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from local.refusals.limits import limit
from local.refusals.refusal import Refusal, Wanted

# Rates there, and the fields of a cron behind it.
_EXPRESSIONS = (
    "https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html"
)
_MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"
_DAYS = "SUN MON TUE WED THU FRI SAT"


@dataclass(frozen=True, slots=True)
class CronField:
    """A field: its least and greatest number, names for some, and the signs it knows."""

    least: int
    most: int
    names: str = ""
    # What a part of it may be besides values and ranges, and what a value may end with.
    whole: str = r"\*"
    ending: str = ""

    def takes(self, written: str) -> bool:
        """Say whether EventBridge takes a field: parts with commas between, `#` in one alone."""
        parts = written.upper().split(",")
        return all(map(self._takes, parts)) and (len(parts) == 1 or "#" not in written)

    def _takes(self, part: str) -> bool:
        base, slash, step = part.partition("/")
        if slash and not (step.isdecimal() and int(step)):
            return False
        if re.fullmatch(self.whole, base):
            return base == "*" or not slash
        if slash and not base:
            return True
        ends = re.sub(self.ending, "", base).split("-") if self.ending else base.split("-")
        return len(ends) <= 2 and all(map(self._holds, ends))

    def _holds(self, value: str) -> bool:
        if value in self.names.split():
            return True
        return value.isdecimal() and self.least <= int(value) <= self.most


_OF_A_MONTH, _OF_A_WEEK = 2, 4
FIELDS: tuple[CronField, ...] = (
    CronField(0, 59),
    CronField(0, 23),
    CronField(1, 31, "", r"\*|\?|L(-\d{1,2})?|LW", r"(?<=\d)W$"),
    CronField(1, 12, _MONTHS),
    CronField(1, 7, _DAYS, r"\*|\?|L", r"(?<=.)(L|#[1-5])$"),
    CronField(1970, 2199),
)


@limit("cloudwatch/eventRule:EventRule", "scheduler/schedule:Schedule", source=_EXPRESSIONS)
def expression_of_a_schedule(wanted: Wanted) -> Iterator[Refusal]:
    """A rate, a cron, and of a Scheduler's schedule a point in time."""
    given, schedule = wanted.inputs.get("scheduleExpression"), wanted.type.endswith(":Schedule")
    expression = str(given)
    if (
        given is None
        or _is_rate(expression)
        or _is_cron(expression)
        or (schedule and _is_point(expression))
    ):
        return
    operation = "CreateSchedule" if schedule else "PutRule"
    message = "Parameter ScheduleExpression is not valid."
    if schedule:
        message = f"Invalid Schedule Expression {expression}."
    yield Refusal(operation, "ValidationException", message, "scheduleExpression")


def _is_point(expression: str) -> bool:
    """Say whether it is one such as at(2026-11-30T08:00:00), in the zone that is named apart."""
    try:
        return bool(datetime.strptime(expression, "at(%Y-%m-%dT%H:%M:%S)"))  # noqa: DTZ007
    except ValueError:
        return False


def _is_rate(expression: str) -> bool:
    """Say whether it is one such as rate(1 minute), rate(5 minutes): the word as the number."""
    found = re.fullmatch(r"rate\((\d+) (minute|hour|day)(s?)\)", expression)
    return found is not None and int(found[1]) >= 1 and bool(found[3]) == (int(found[1]) > 1)


def _is_cron(expression: str) -> bool:
    """Say whether it is one of six fields, of whose two days one is a question mark."""
    found = re.fullmatch(r"cron\((.*)\)", expression)
    fields = found[1].split(" ") if found else []
    marks = [number for number, each in enumerate(fields) if each == "?"]
    return (
        len(fields) == len(FIELDS)
        and all(of.takes(each) for each, of in zip(fields, FIELDS, strict=True))
        and marks in ([_OF_A_MONTH], [_OF_A_WEEK])
    )
