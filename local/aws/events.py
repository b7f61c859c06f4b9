"""EventBridge in the twin: AWS's envelope, targets that fail alone, rules that fire by rate.

Replaces what moto does when an event meets a rule. moto's envelope has no `account`, its disabled
and its scheduled rules match everything, its patterns do not look into lists of objects, and one
target it cannot serve (Lambda among them) fails the whole put_events call.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from moto.events import models
from moto.sns import sns_backends
from moto.sqs import sqs_backends

from local.iam.guard import check_delivery
from local.locks import EVENTS

LOG = logging.getLogger(__name__)
RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
SECONDS_PER_UNIT = {"minute": 60, "hour": 3600, "day": 86400}
PRINCIPAL = "events.amazonaws.com"
# What EventBridge does at a target whose own policy has to allow it.
ACTIONS = {"lambda": "lambda:InvokeFunction", "sns": "sns:Publish", "sqs": "sqs:SendMessage"}

InvokeFunction = Callable[[str, Any], None]


def put(
    account: str,
    region: str,
    *,
    source: str,
    detail_type: str,
    detail: dict[str, Any],
    resources: list[str],
) -> None:
    """Put one event of an AWS service on the account's default bus."""
    with EVENTS:
        models.events_backends[account][region].put_events(
            [
                {
                    "Source": source,
                    "DetailType": detail_type,
                    "Detail": json.dumps(detail),
                    "Resources": resources,
                }
            ]
        )


def iso_time(moment: float | str) -> str:
    """Return a time as EventBridge writes it: whole seconds, UTC."""
    if isinstance(moment, str) and not moment.replace(".", "", 1).isdigit():
        return moment
    return datetime.fromtimestamp(float(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def envelope(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event as a target receives it, from moto's inner form."""
    return {
        "version": "0",
        "id": event["id"],
        "detail-type": event["detail-type"],
        "source": event["source"],
        "account": event["account"],
        "time": iso_time(event["time"]),
        "region": event["region"],
        "resources": event["resources"],
        "detail": event["detail"],
    }


def payload(target: dict[str, Any], event: dict[str, Any]) -> Any:
    """Return what a target's input settings make of an event."""
    if target.get("Input"):
        return json.loads(target["Input"])
    if target.keys() & {"InputPath", "InputTransformer"}:
        raise LookupError("The twin's EventBridge hands over a constant or the whole event.")
    return envelope(event)


def matches(pattern: Any, event: dict[str, Any]) -> bool:
    """Say whether an event meets moto's pattern, whose lists of objects it looks through."""
    return bool(pattern.matches_event(_spread(event)))


def _spread(value: Any) -> Any:
    """Return an event in which a list of objects is one object with lists for its values.

    EventBridge asks of such a list whether any of its objects has the value.
    """
    if isinstance(value, dict):
        return {key: _spread(inner) for key, inner in value.items()}
    if not isinstance(value, list) or not value or not all(isinstance(v, dict) for v in value):
        return value
    merged: dict[str, list[Any]] = {}
    for each in value:
        for key, inner in each.items():
            merged.setdefault(key, []).append(inner)
    return {key: _spread(_only(values)) for key, values in merged.items()}


def _only(values: list[Any]) -> Any:
    """Return the one value, or all: lists within lists are one list to a pattern."""
    if len(values) == 1:
        return values[0]
    return [v for value in values for v in (value if isinstance(value, list) else [value])]


def interval_seconds(expression: str) -> int | None:
    """Return the seconds of a rate expression, None for any other: rate(1 minute) -> 60."""
    found = RATE.fullmatch(expression or "")
    return int(found.group(1)) * SECONDS_PER_UNIT[found.group(2)] if found else None


class EventDelivery:
    """Takes an event from a rule to its targets."""

    def __init__(self, invoke: InvokeFunction) -> None:
        self._invoke = invoke

    def to_targets(self, rule: Any, event: dict[str, Any]) -> None:
        """Deliver to every target; one that fails leaves the others and the sender untouched."""
        for target in list(rule.targets):
            try:
                self._to_target(rule, target, event)
            except Exception as error:  # noqa: BLE001  # whatever fails, EventBridge never tells the sender
                LOG.warning("rule %s cannot reach %s: %s", rule.name, target["Arn"], error)
                self._to_dead_letters(rule, target, event)

    def _to_target(self, rule: Any, target: dict[str, Any], event: dict[str, Any]) -> None:
        arn = target["Arn"]
        service, region, account, name = arn.split(":", 5)[2:]
        if service in ACTIONS:
            check_delivery(PRINCIPAL, ACTIONS[service], arn, rule.arn)
        if service == "sqs":
            sqs_backends[account][region].send_message(
                queue_name=name,
                message_body=json.dumps(payload(target, event)),
                group_id=target.get("SqsParameters", {}).get("MessageGroupId"),
            )
        elif service == "lambda":
            self._invoke(arn, payload(target, event))
        elif service == "sns":
            sns_backends[account][region].publish(json.dumps(payload(target, event)), arn=arn)
        else:
            raise LookupError(f"The twin's EventBridge reaches no {service}.")

    def _to_dead_letters(self, rule: Any, target: dict[str, Any], event: dict[str, Any]) -> None:
        """Send at once where AWS would after its retries (24 hours by default)."""
        arn = target.get("DeadLetterConfig", {}).get("Arn")
        if arn:
            alone = {"Id": target["Id"], "Arn": arn}
            try:
                self._to_target(rule, alone, event)
            except Exception as error:  # noqa: BLE001  # a dead-letter queue that is gone loses the event, on AWS too
                LOG.warning("rule %s lost an event: %s", rule.name, error)


class Schedules:
    """Fires rules with a rate; a rule's first turn comes one interval after it was first seen."""

    def __init__(self, delivery: EventDelivery) -> None:
        self._delivery = delivery
        self._due: dict[str, tuple[str, float]] = {}

    def fire_due(self, now: float) -> list[str]:
        """Fire every rule that is due and return their ARNs."""
        fired = []
        with EVENTS:
            rules = {rule.arn: rule for rule in _scheduled_rules()}
            self._due = {arn: due for arn, due in self._due.items() if arn in rules}
            for arn, rule in rules.items():
                interval = interval_seconds(rule.scheduled_expression)
                if interval is None:
                    continue
                expression, due = self._due.get(arn, ("", 0.0))
                if expression != rule.scheduled_expression:
                    self._due[arn] = (rule.scheduled_expression, now + interval)
                elif due <= now:
                    self._due[arn] = (expression, max(due + interval, now))
                    self._delivery.to_targets(rule, _scheduled_event(rule, now))
                    fired.append(arn)
        return fired


def _scheduled_rules() -> list[Any]:
    return [
        rule
        for regions in list(models.events_backends.values())
        for backend in list(regions.values())
        for bus in backend.event_buses.values()
        for rule in bus.rules.values()
        if rule.scheduled_expression and rule.state == "ENABLED"
    ]


def _scheduled_event(rule: Any, now: float) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid4()),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": rule.account_id,
        "time": now,
        "region": rule.region_name,
        "resources": [rule.arn],
        "detail": {},
        "ingestion-time": now,
    }


def install(invoke: InvokeFunction) -> Schedules:
    """Put this delivery in moto's place; return the schedules, whose rounds somebody does."""
    delivery = EventDelivery(invoke)

    def send_to_targets(rule: Any, event: dict[str, Any], **_moto_options: Any) -> None:
        pattern = rule.event_pattern.dump()
        if rule.state == "ENABLED" and pattern and matches(rule.event_pattern, event):
            delivery.to_targets(rule, event)

    models.Rule.send_to_targets = send_to_targets
    return Schedules(delivery)
