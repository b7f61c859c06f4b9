"""Reads the cron expressions of rules and schedules as EventBridge does, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from local.refusals.limits import limit
from local.refusals.refusal import Refusal, Wanted

_CRON = "https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-cron-expressions.html"
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


@limit("cloudwatch/eventRule:EventRule", "scheduler/schedule:Schedule", source=_CRON)
def fields_of_a_cron(wanted: Wanted) -> Iterator[Refusal]:
    """Each field's own numbers, names and signs, and one of the two days a question mark."""
    expression = str(wanted.inputs.get("scheduleExpression") or "")
    found = re.fullmatch(r"cron\((.*)\)", expression)
    fields = found[1].split(" ") if found else []
    if len(fields) != len(FIELDS):
        return
    marks = [number for number, each in enumerate(fields) if each == "?"]
    known = all(of.takes(each) for each, of in zip(fields, FIELDS, strict=True))
    if not known or marks not in ([_OF_A_MONTH], [_OF_A_WEEK]):
        schedule = wanted.type.endswith(":Schedule")
        operation = "CreateSchedule" if schedule else "PutRule"
        message = "Parameter ScheduleExpression is not valid."
        if schedule:
            message = f"Invalid Schedule Expression {expression}."
        yield Refusal(operation, "ValidationException", message, "scheduleExpression")
