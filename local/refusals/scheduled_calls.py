"""Judges what a schedule hands a universal target by botocore's model of the call it makes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from local.refusals.limits import limit
from local.refusals.model import service_model
from local.refusals.refusal import Refusal, Wanted
from local.refusals.schedules import universal

_REASON = "Invalid RequestJson provided. Reason: "


@limit(
    "scheduler/schedule:Schedule",
    source="https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-universal.html",
)
def call_of_a_schedule(wanted: Wanted) -> Iterator[Refusal]:
    """An object with what the call needs, and nothing that it does not know."""
    target = wanted.inputs.get("target") or {}
    service, action = universal(str(target.get("arn") or ""))
    shape = _input(service, action) if service else None
    if shape is None:
        return
    told = _content(target.get("input"))
    wrong = "it must be a JSON object" if not isinstance(told, dict) else _wrong(shape, told)
    if wrong:
        message = f"{_REASON}{wrong}."
        yield Refusal("CreateSchedule", "ValidationException", message, "target")


def _content(given: Any) -> Any:
    if given in (None, ""):
        return {}
    try:
        return json.loads(str(given))
    except ValueError:
        # Refused as no JSON.
        return {}


def _input(service: str, action: str) -> Any:
    model = service_model(service)
    known = {name.lower(): name for name in model.operation_names}
    operation = known.get(action.lower())
    return model.operation_model(operation).input_shape if operation else None


def _wrong(shape: Any, told: dict[str, Any]) -> str:
    """Return what a call lacks or does not know; the SDK's names differ from botocore's in case."""
    # A token that the SDK draws where nobody gives one.
    drawn = {n.lower() for n, m in shape.members.items() if m.metadata.get("idempotencyToken")}
    given, known = {key.lower() for key in told}, {name.lower() for name in shape.members}
    for name in shape.required_members:
        if name.lower() not in given | drawn:
            return f"the required parameter {name} is missing"
    for key in told:
        if key.lower() not in known:
            return f"the parameter {key} is not known"
    return ""
