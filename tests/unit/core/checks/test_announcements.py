"""Rules of EventBridge as people write them, put to what Auto Scaling announces."""

from __future__ import annotations

from typing import Any

from core.model.workloads import is_announced
from tests.every_case import every_case

ACTION = "EC2 Instance-terminate Lifecycle Action"


def of_group(*wanted: object) -> dict[str, Any]:
    return {"detail": {"AutoScalingGroupName": list(wanted)}}


@every_case(
    ("pattern", "meets"),
    [
        ({}, True),
        ({"source": ["aws.autoscaling"], "detail-type": [ACTION]}, True),
        ({"source": ["aws.ec2"]}, False),
        ({"source": [{"prefix": "aws."}]}, True),
        (of_group("kafka-a"), True),
        (of_group("kafka-b"), False),
        (of_group("kafka-b", {"prefix": "kafka-"}), True),
        (of_group({"suffix": "-b"}), False),
        (of_group({"equals-ignore-case": "KAFKA-A"}), True),
        (of_group({"anything-but": ["kafka-a"]}), False),
        (of_group({"anything-but": "kafka-b"}), True),
        (of_group({"anything-but": {"prefix": "kafka-"}}), True),
        (of_group({"wildcard": "x*"}), True),
        ({"detail": {"LifecycleHookName": ["launch"]}}, False),
        ({"detail": {"LifecycleTransition": ["autoscaling:EC2_INSTANCE_LAUNCHING"]}}, False),
        ({"detail": {"NotificationMetadata": [{"exists": True}]}}, True),
        ({"account": ["111122223333"]}, True),
    ],
    ids=str,
)
def test_a_rule_lets_a_termination_through_or_not(pattern: dict[str, Any], *, meets: bool) -> None:
    assert is_announced(pattern, "kafka-a", "drain") is meets
