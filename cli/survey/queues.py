"""Reads the queue of a termination handler: how long it keeps, and what is sent to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from core.survey.tool_facts import TerminationQueue


def queue(sqs: Any, events: Any, url: str) -> TerminationQueue:
    """Return what a termination handler's queue keeps, and whether it is told of terminations."""
    said = sqs.get_queue_attributes(
        QueueUrl=url,
        AttributeNames=["QueueArn", "MessageRetentionPeriod", "Policy", "KmsMasterKeyId"],
    )["Attributes"]
    arn = str(said["QueueArn"])
    policy = str(said.get("Policy") or "")
    names = list(_rules(events, arn))
    rules = (events.describe_rule(Name=name) for name in names)
    barred = _delivery_barrier(policy, str(said.get("KmsMasterKeyId") or ""))
    if barred and any(_by_role(events, name, arn) for name in names):
        barred = None
    return TerminationQueue(
        arn=arn,
        kept_seconds=int(said["MessageRetentionPeriod"]),
        patterns=tuple(
            json.loads(rule.get("EventPattern") or "{}")
            for rule in rules
            if rule.get("State") != "DISABLED"
        ),
        barred=barred,
        by_topic="sns.amazonaws.com" in policy,
    )


def _rules(events: Any, arn: str) -> Iterator[str]:
    following: str | None = None
    while following != "":
        given = {"NextToken": following} if following else {}
        answer = events.list_rule_names_by_target(TargetArn=arn, **given)
        yield from answer["RuleNames"]
        following = answer.get("NextToken") or ""


def _by_role(events: Any, rule: str, arn: str) -> bool:
    """Say whether a rule sends to a queue under a role of its own, whose rights are not read."""
    targets = events.list_targets_by_rule(Rule=rule)["Targets"]
    return any(each["Arn"] == arn and each.get("RoleArn") for each in targets)


def _delivery_barrier(policy: str, key: str) -> str | None:
    """Return why EventBridge's messages do not arrive in a queue, by its policy and its key."""
    allowed = (_allows_eventbridge(each) for each in _statements(policy))
    if not any(allowed):
        return "its policy does not let events.amazonaws.com send"
    # The policy of AWS's own key names SQS's callers alone.
    if key.endswith("alias/aws/sqs"):
        return "EventBridge may not use the key alias/aws/sqs that encrypts it"
    return None


def _statements(policy: str) -> list[Mapping[str, Any]]:
    found = json.loads(policy or "{}").get("Statement") or []
    return [found] if isinstance(found, dict) else list(found)


def _allows_eventbridge(statement: Mapping[str, Any]) -> bool:
    """Say whether a statement lets EventBridge send; its conditions are taken for met."""
    principal = statement.get("Principal")
    named = principal.get("Service", principal.get("AWS")) if isinstance(principal, dict) else None
    who = [principal] if isinstance(principal, str) else _several(named)
    what = [each.lower() for each in _several(statement.get("Action"))]
    return (
        statement.get("Effect") == "Allow"
        and any(each in {"*", "events.amazonaws.com"} for each in who)
        and any(each in {"*", "sqs:*", "sqs:send*", "sqs:sendmessage"} for each in what)
    )


def _several(given: object) -> list[str]:
    return [given] if isinstance(given, str) else list(given) if isinstance(given, list) else []
