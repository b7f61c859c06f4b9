"""Wakes a function at fixed times: an EventBridge rule, its target, and the rule's right to invoke.

Nobody else gets that right by it: the permission names the rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.functions.function import Function


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """When a function is called, and as what: `role` names it among the cluster's."""

    prefix: str
    role: str
    does: str
    expression: str


def wake(name: str, schedule: Schedule, function: Function, parent: pulumi.Resource) -> None:
    """Have a function called on schedule."""
    child = pulumi.ResourceOptions(parent=parent)
    rule = aws.cloudwatch.EventRule(
        f"{name}-schedule",
        # Rules that pass announcements on are named beside it: `-health` is one of them.
        name=f"{schedule.prefix}-{schedule.role}-schedule",
        description=f"Stillwater {schedule.prefix}: {schedule.does}",
        schedule_expression=schedule.expression,
        opts=child,
    )
    permission = aws.lambda_.Permission(
        f"{name}-permission",
        action="lambda:InvokeFunction",
        function=function.name,
        principal="events.amazonaws.com",
        source_arn=rule.arn,
        opts=child,
    )
    aws.cloudwatch.EventTarget(
        f"{name}-target",
        rule=rule.name,
        target_id=schedule.role,
        arn=function.arn,
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[permission]),
    )
