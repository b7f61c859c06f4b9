"""Refuses what Auto Scaling does not take of a group's capacity and of a hook's messages."""

from __future__ import annotations

from collections.abc import Iterator

from local.refusals.fields import values
from local.refusals.limits import first_of, limit
from local.refusals.model import words_of
from local.refusals.refusal import Refusal, Wanted

_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/"
# Of a refresh, what the provider says where the program says nothing.
LEAST_HEALTHY = 90
_OVERRIDES = "mixedInstancesPolicy.launchTemplate.overrides.*"


@limit("autoscaling/group:Group", source=f"{_SCALING}API_CreateAutoScalingGroup.html")
def units_of_a_group(wanted: Wanted) -> Iterator[Refusal]:
    """vCPUs and memory are counted where types are chosen by their attributes."""
    kind = wanted.inputs.get("desiredCapacityType") or "units"
    chosen = values(wanted.inputs, f"{_OVERRIDES}.instanceRequirements")
    hooks = values(wanted.inputs, "initialLifecycleHooks.*.name")
    named = values(wanted.inputs, f"{_OVERRIDES}.instanceType")
    weights = values(wanted.inputs, f"{_OVERRIDES}.weightedCapacity")
    refreshed = (wanted.inputs.get("instanceRefresh") or {}).get("preferences") or {}
    low = refreshed.get("minHealthyPercentage", LEAST_HEALTHY)
    high = refreshed.get("maxHealthyPercentage")
    strange = [str(e) for e in named if str(e) not in words_of("ec2", "InstanceType")]
    yield from first_of(
        "CreateAutoScalingGroup",
        "ValidationError",
        (
            kind in {"vcpu", "memory-mib"} and not chosen,
            "DesiredCapacityType is supported for attribute-based instance type selection only.",
            "desiredCapacityType",
        ),
        (
            len(set(hooks)) < len(hooks),
            "Lifecycle hooks' names must be unique.",
            "initialLifecycleHooks",
        ),
        (
            chosen and named,
            "Valid requests must contain either InstanceType or InstanceRequirements in overrides.",
            "mixedInstancesPolicy",
        ),
        (
            strange,
            f"Invalid instance types in the overrides: {', '.join(strange)}.",
            "mixedInstancesPolicy",
        ),
        (
            len(set(named)) < len(named),
            "Found duplicate instance types in the overrides.",
            "mixedInstancesPolicy",
        ),
        (
            weights and len(weights) < len(values(wanted.inputs, _OVERRIDES)),
            "The weighted capacity must be provided for all instance types, or for none.",
            "mixedInstancesPolicy",
        ),
        (
            high is not None and float(high) - float(low) > 100,
            "MaxHealthyPercentage may be 100 more than MinHealthyPercentage at most.",
            "instanceRefresh",
        ),
    )


@limit("autoscaling/lifecycleHook:LifecycleHook", source=f"{_SCALING}API_PutLifecycleHook.html")
def messages_of_a_hook(wanted: Wanted) -> Iterator[Refusal]:
    """A target with the role that may write to it, and it is a queue or a topic."""
    target = str(wanted.inputs.get("notificationTargetArn") or "")
    role = wanted.inputs.get("roleArn")
    yield from first_of(
        "PutLifecycleHook",
        "ValidationError",
        (
            target and not role,
            "RoleARN is required when a notification target is specified.",
            "roleArn",
        ),
        (
            target and not target.startswith("arn:"),
            f"Invalid ARN: {target}",
            "notificationTargetArn",
        ),
        (
            target and not any(f":{each}:" in target for each in ("sqs", "sns")),
            "The notification target must be an Amazon SNS topic or an Amazon SQS queue.",
            "notificationTargetArn",
        ),
        (
            target.endswith(".fifo"),
            "FIFO queues and topics are not supported as notification targets.",
            "notificationTargetArn",
        ),
    )
