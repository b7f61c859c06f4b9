"""Refuses what alarms cannot do and what their expressions cannot compute."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from local.refusals import metric_math
from local.refusals.fields import values
from local.refusals.limits import first_of, limit
from local.refusals.refusal import Refusal, Wanted
from local.refusals.watching import OF_A_BAND, is_period, names_in

_WATCH = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/"
_KINDS = ("alarmActions", "insufficientDataActions", "okActions")
# PutMetricAlarm's AlarmActions, "Valid values", after arn:PARTITION:.
_ACTIONS = tuple(
    re.compile(form)
    for form in (
        r"sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}(?:\.fifo)?",
        r"automate:[a-z0-9-]+:ec2:(?:reboot|recover|stop|terminate)",
        r"swf:[a-z0-9-]+:\d{12}:action/actions/AWS_EC2\.InstanceId\.(?:Reboot|Stop|Terminate)/1\.0",
        r"autoscaling:[a-z0-9-]+:\d{12}:scalingPolicy:.+",
        r"lambda:[a-z0-9-]+:\d{12}:function:[A-Za-z0-9_-]+(?::[A-Za-z0-9_$-]+)?",
        r"ssm:[a-z0-9-]+:\d{12}:opsitem:[1-4](?:#CATEGORY=\w+)?",
        r"ssm-incidents::\d{12}:response-?plan[/:].+",
        r"aiops:[a-z0-9-]+:\d{12}:investigation-group[/:].+",
    )
)


@limit("cloudwatch/metricAlarm:MetricAlarm", source=f"{_WATCH}APIReference/API_PutMetricAlarm.html")
def actions_of_an_alarm(wanted: Wanted) -> Iterator[Refusal]:
    """A topic, a function, an instance, a scaling policy, an item or a plan of Systems Manager."""
    for kind in _KINDS:
        for action in wanted.inputs.get(kind) or ():
            _, _, named = str(action).removeprefix("arn:").partition(":")
            if str(action).startswith("arn:") and not any(e.fullmatch(named) for e in _ACTIONS):
                message = f"Invalid arn syntax or unsupported action: {action}"
                yield Refusal("PutMetricAlarm", "ValidationError", message, kind)


@limit("cloudwatch/metricAlarm:MetricAlarm", source=metric_math.SOURCE)
def expressions_of_an_alarm(wanted: Wanted) -> Iterator[Refusal]:
    """One series at the end, of functions that there are, and in no circle."""
    queries = [*values(wanted.inputs, "metricQueries.*")]
    uses = {
        str(each.get("id")): names_in(str(each["expression"]))
        for each in queries
        if each.get("expression")
    }
    broken = [
        f"Error in expression '{each.get('id')}': {said}"
        for each in queries
        if each.get("expression") and (said := _wrong(each))
    ]
    circle = next((name for name in uses if _reaches(name, name, uses)), "")
    odd = [each for each in values(queries, "*.period") if not is_period(int(each))]
    band = str(wanted.inputs.get("thresholdMetricId") or "")
    line = next((str(e.get("expression")) for e in queries if e.get("id") == band), "")
    yield from first_of(
        "PutMetricAlarm",
        "ValidationError",
        (broken, "".join(broken[:1]), "metricQueries"),
        (odd, f"Invalid metric query period {odd[:1]}.", "metricQueries"),
        (circle, f"Error in expression '{circle}': it uses itself.", "metricQueries"),
        (
            wanted.inputs.get("comparisonOperator") in OF_A_BAND
            and band
            and not line.startswith("ANOMALY_DETECTION_BAND"),
            "ThresholdMetricId must be the id of an ANOMALY_DETECTION_BAND expression.",
            "thresholdMetricId",
        ),
    )


def _wrong(query: Mapping[str, Any]) -> str:
    expression = str(query["expression"])
    if re.match(r"\s*SELECT\b", expression, re.IGNORECASE):
        return ""
    found = metric_math.wrong(expression)
    # Of those that others use, several series may come.
    several = found == metric_math.SEVERAL
    return "" if several and not query.get("returnData") else found


def _reaches(start: str, name: str, uses: Mapping[str, Sequence[str]], depth: int = 20) -> bool:
    near = uses.get(name, ())
    return start in near or (
        depth > 0 and any(_reaches(start, each, uses, depth - 1) for each in near)
    )
