"""Refuses what EventBridge and its Scheduler do not take of buses, targets and times."""

from __future__ import annotations

import functools
import re
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import botocore.session

from local.refusals.documents import is_json
from local.refusals.fields import values
from local.refusals.limits import first_about, first_of, limit
from local.refusals.model import service_model
from local.refusals.refusal import Refusal, Wanted

_EVENTS = "https://docs.aws.amazon.com/eventbridge/latest/"
_SCHEDULER = "https://docs.aws.amazon.com/scheduler/latest/"
_UNIVERSAL = re.compile(r"arn:aws[a-z-]*:scheduler:::aws-sdk:([^:]*):([^:.]*)(\.\w+)?")
_READ_ONLY = re.compile(r"(get|describe|list)[A-Z]\w*")
_PLACEHOLDER = re.compile(r"<([^<>\s]+)>")


@limit("cloudwatch/eventTarget:EventTarget", source=f"{_EVENTS}APIReference/API_Target.html")
def queue_and_template_of_a_target(wanted: Wanted) -> Iterator[Refusal]:
    """A FIFO queue with a group of messages; a template of the paths that are named."""
    inputs = wanted.inputs
    named = inputs.get("targetId") or "terraform"
    fifo = ":sqs:" in str(inputs.get("arn")) and str(inputs.get("arn")).endswith(".fifo")
    groups = values(inputs, "sqsTarget.messageGroupId")
    transformer = inputs.get("inputTransformer") or {}
    used = _PLACEHOLDER.findall(str(transformer.get("inputTemplate") or ""))
    known = set(transformer.get("inputPaths") or {})
    unknown = [each for each in used if each not in known and not each.startswith("aws.")]
    yield from first_of(
        "PutTargets",
        "ValidationException",
        (
            fifo and not groups,
            f"Parameter(s) SqsParameters must be specified for target: {named}.",
            "arn",
        ),
        (
            groups and not fifo,
            f"Parameter(s) SqsParameters not valid for target {named}: no FIFO queue.",
            "sqsTarget",
        ),
        (
            unknown,
            f"InputTemplate for target {named} contains invalid placeholder {unknown[:1]}.",
            "inputTransformer",
        ),
        (
            any(not str(path).startswith("$") for path in values(inputs, "inputPath")),
            f"Invalid JsonPath for target {named}.",
            "inputPath",
        ),
        (
            any(not str(each).startswith("$") for each in _paths(transformer)),
            f"InputPath for target {named} is invalid.",
            "inputTransformer",
        ),
        (
            any(each.startswith("AWS") for each in known),
            f"InputPathsMap for target {named} has a key that begins with AWS.",
            "inputTransformer",
        ),
    )


def _paths(transformer: Any) -> list[Any]:
    return list((transformer.get("inputPaths") or {}).values())


@limit(
    "scheduler/schedule:Schedule", source=f"{_SCHEDULER}UserGuide/managing-targets-universal.html"
)
def target_of_a_schedule(wanted: Wanted) -> Iterator[Refusal]:
    """Of a universal target a service and a writing action that there are, with input in JSON."""
    target = wanted.inputs.get("target") or {}
    arn, given = str(target.get("arn") or ""), target.get("input")
    found = _UNIVERSAL.fullmatch(arn)
    universal = ":aws-sdk:" in arn
    service, action = (found[1], found[2]) if found else ("", "")
    templated = any(f":{each}:" in arn for each in ("lambda", "states", "events"))
    fifo = ":sqs:" in arn and arn.endswith(".fifo")
    yield from first_about(
        "CreateSchedule",
        "ValidationException",
        "target",
        (universal and found is None, "Provided Arn is not in correct format."),
        (
            found is not None and service not in _services(),
            f"Invalid RequestJson provided. Reason {service} is not a supported service.",
        ),
        (
            found is not None and not _is_action(service, action),
            f"Invalid RequestJson provided. Reason {action} is not a supported API of {service}.",
        ),
        (
            given is not None and (universal or templated) and not is_json(given),
            "Invalid RequestJson provided. Reason: the input is not well-formed JSON.",
        ),
        (
            fifo and not values(target, "sqsParameters.messageGroupId"),
            "SqsParameters with a MessageGroupId must be specified for a FIFO queue.",
        ),
    )


def universal(arn: str) -> tuple[str, str]:
    """Return botocore's name of the service and the action that a universal target names.

    Both are empty where it names none that there is.
    """
    found = _UNIVERSAL.fullmatch(arn)
    if found is None or not _is_action(found[1], found[2]):
        return "", ""
    return _services()[found[1]], found[2]


@functools.cache
def _services() -> dict[str, str]:
    """Return botocore's name of each service, by the name that the AWS SDK for Java gives it."""
    session = botocore.session.get_session()
    known = session.get_available_services()
    return {each.replace("-", ""): each for each in known} | _OTHERWISE


# Where the SDK's name is not botocore's without its hyphens.
_OTHERWISE = {
    "cloudwatchlogs": "logs",
    "eventbridge": "events",
    "sfn": "stepfunctions",
    "elasticloadbalancingv2": "elbv2",
    "costexplorer": "ce",
    "applicationautoscaling": "application-autoscaling",
}


def _is_action(service: str, action: str) -> bool:
    if not action or not action[0].islower() or _READ_ONLY.fullmatch(action):
        return False
    if service not in _services():
        return False
    known = service_model(_services()[service]).operation_names
    return action.lower() in {name.lower() for name in known}


@limit("scheduler/schedule:Schedule", source=f"{_SCHEDULER}APIReference/API_CreateSchedule.html")
def days_of_a_schedule(wanted: Wanted) -> Iterator[Refusal]:
    """In a zone of the IANA's; it ends after it has begun; a window only where it is flexible."""
    inputs = wanted.inputs
    first, last = (_moment(inputs.get(key)) for key in ("startDate", "endDate"))
    zone = inputs.get("scheduleExpressionTimezone")
    window = inputs.get("flexibleTimeWindow") or {}
    yield from first_of(
        "CreateSchedule",
        "ValidationException",
        (
            window.get("mode") == "FLEXIBLE" and not window.get("maximumWindowInMinutes"),
            "FlexibleTimeWindow must have MaximumWindowInMinutes when its mode is FLEXIBLE",
            "flexibleTimeWindow",
        ),
        (
            zone is not None and zone not in zoneinfo.available_timezones(),
            f"Invalid Schedule Expression Timezone: {zone}",
            "scheduleExpressionTimezone",
        ),
        (
            first is not None and last is not None and last <= first,
            "The EndDate you specify must come after the StartDate.",
            "endDate",
        ),
        (
            window.get("mode") == "OFF" and window.get("maximumWindowInMinutes"),
            "MaximumWindowInMinutes must not be specified when FlexibleTimeWindow.Mode is OFF.",
            "flexibleTimeWindow",
        ),
    )


def _moment(written: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(written))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
