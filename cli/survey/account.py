"""Reads the Auto Scaling groups of some instances into core.survey.facts; Describe alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from core.survey.facts import ScalingGroup, TerminationHook

# DescribeAutoScalingInstances takes no more at once.
AT_ONCE = 50
NODE_GROUP_TAG = "eks:nodegroup-name"
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"


def group_of(client: Any, instances: Iterable[str]) -> dict[str, str]:
    """Return the group's name of every instance that is in one."""
    wanted, found = sorted(instances), {}
    for start in range(0, len(wanted), AT_ONCE):
        answer = client.describe_auto_scaling_instances(InstanceIds=wanted[start : start + AT_ONCE])
        for each in answer["AutoScalingInstances"]:
            found[str(each["InstanceId"])] = str(each["AutoScalingGroupName"])
    return found


def groups(client: Any, names: Iterable[str]) -> dict[str, ScalingGroup]:
    found, wanted = {}, sorted(set(names))
    for start in range(0, len(wanted), AT_ONCE):
        answer = client.describe_auto_scaling_groups(
            AutoScalingGroupNames=wanted[start : start + AT_ONCE], MaxRecords=AT_ONCE
        )
        for each in answer["AutoScalingGroups"]:
            found[str(each["AutoScalingGroupName"])] = _group(client, each)
    return found


def _group(client: Any, item: Mapping[str, Any]) -> ScalingGroup:
    name = str(item["AutoScalingGroupName"])
    hooks = client.describe_lifecycle_hooks(AutoScalingGroupName=name)["LifecycleHooks"]
    triggers = (item.get("InstanceLifecyclePolicy") or {}).get("RetentionTriggers") or {}
    tags = {each["Key"]: each.get("Value", "") for each in item.get("Tags") or ()}
    return ScalingGroup(
        name=name,
        zones=frozenset(item["AvailabilityZones"]),
        desired=int(item["DesiredCapacity"]),
        maximum=int(item["MaxSize"]),
        suspended=frozenset(p["ProcessName"] for p in item.get("SuspendedProcesses") or ()),
        hooks=tuple(
            TerminationHook(
                name=str(hook["LifecycleHookName"]),
                heartbeat_seconds=int(hook["HeartbeatTimeout"]),
                default_result=str(hook["DefaultResult"]),
            )
            for hook in hooks
            if hook["LifecycleTransition"] == TERMINATING
        ),
        retains_on_abandon=triggers.get("TerminateHookAbandon") == "retain",
        managed_node_group=tags.get(NODE_GROUP_TAG),
    )
