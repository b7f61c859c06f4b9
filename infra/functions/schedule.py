"""Wakes a function at fixed times: an EventBridge rule, its target, and the rule's right to invoke.

Nobody else gets that right by it: the permission names the rule.
"""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from infra.functions.definition import Definition
from infra.functions.function import LambdaFunction


def wake(
    name: str,
    definition: Definition,
    prefix: str,
    function: LambdaFunction,
    parent: pulumi.Resource,
) -> None:
    """Have a function called on the schedule that its definition names, if any."""
    if definition.schedule is None:
        return
    child = pulumi.ResourceOptions(parent=parent)
    expression, does = definition.schedule
    rule = aws.cloudwatch.EventRule(
        f"{name}-schedule",
        # Rules that pass announcements on are named beside it: `-health` is one of them.
        name=f"{prefix}-{definition.name}-schedule",
        description=f"Stillwater {prefix}: {does}",
        schedule_expression=expression,
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
        target_id=definition.name,
        arn=function.arn,
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[permission]),
    )
