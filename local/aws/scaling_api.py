"""Puts the engine behind moto's Auto Scaling API, and keeps what moto forgets.

moto drops a group's maintenance and lifecycle policies, ends instances at once, and describes no
activity.
"""

from __future__ import annotations

import time
from typing import Any

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup, InstanceState
from moto.autoscaling.responses import AutoScalingResponse
from moto.core import responses as moto_responses
from moto.core.responses import ActionResult, EmptyResult

from local.aws import hooks_api
from local.aws.autoscaling import Engine
from local.aws.hooks_api import put_hook
from local.aws.membership import RETAINED, retains
from local.aws.scaling_parameters import (
    answering,
    flag,
    group_named,
    member_named,
    parameters,
)

# Settings of a group that moto accepts and drops, at creation and at update.
KEPT_SETTINGS = {
    "InstanceMaintenancePolicy": "instance_maintenance_policy",
    "InstanceLifecyclePolicy": "instance_lifecycle_policy",
    "AvailabilityZoneDistribution": "availability_zone_distribution",
    "AvailabilityZoneImpairmentPolicy": "availability_zone_impairment_policy",
    "CapacityReservationSpecification": "capacity_reservation_specification",
    "DefaultInstanceWarmup": "default_instance_warmup",
    "MaxInstanceLifetime": "max_instance_lifetime",
    "DesiredCapacityType": "desired_capacity_type",
    "DeletionProtection": "deletion_protection",
    "Context": "context",
}
# Settings that moto keeps at creation and ignores at update.
KEPT_AT_UPDATE = {
    "DefaultCooldown": "default_cooldown",
    "TerminationPolicies": "termination_policies",
    "PlacementGroup": "placement_group",
    "CapacityRebalance": "capacity_rebalance",
}


MOTO_CREATE = AutoScalingResponse.create_auto_scaling_group
MOTO_UPDATE = AutoScalingResponse.update_auto_scaling_group
MOTO_STANDBY = AutoScalingBackend.enter_standby_instances
MOTO_PROTECT = AutoScalingBackend.set_instance_protection
ACTIVITIES_PER_PAGE = 100


def _keep(group: Any, given: dict[str, Any], settings: dict[str, str]) -> None:
    for parameter, attribute in settings.items():
        value = given.get(parameter)
        if value is None:
            continue
        # -1 clears the percentages of a maintenance policy.
        cleared = isinstance(value, dict) and value.get("MinHealthyPercentage") == -1
        setattr(group, attribute, None if cleared else value)


def _create(engine: Engine, response: Any) -> Any:
    given = parameters(response)
    name = given["AutoScalingGroupName"]
    if name in response.autoscaling_backend.autoscaling_groups:
        raise AutoscalingClientError(
            "AlreadyExists",
            "AutoScalingGroup by this name already exists - A group with the name "
            f"{name} already exists",
        )
    answer = MOTO_CREATE(response)
    group = group_named(response)
    _keep(group, given, KEPT_SETTINGS)
    for specification in given.get("LifecycleHookSpecificationList", []):
        put_hook(group, specification)
    engine.reconcile(group, time.time())
    return answer


def _update(engine: Engine, response: Any) -> Any:
    group = group_named(response)
    if getattr(group, "status", None):
        raise ValidationError(
            "The AutoScaling group may not be modified while it is pending delete"
        )
    answer = MOTO_UPDATE(response)
    _keep(group, parameters(response), {**KEPT_SETTINGS, **KEPT_AT_UPDATE})
    engine.reconcile(group, time.time())
    return answer


def _delete(engine: Engine, response: Any) -> Any:
    group, force = group_named(response), flag(response, "ForceDelete")
    if force and retains(group):
        raise ValidationError(
            "You can't force delete this Auto Scaling group because the TerminateHookAbandon "
            "retention trigger is set to retain. Change the retention trigger to terminate "
            "and try again"
        )
    if group.instance_states and not force:
        raise AutoscalingClientError(
            "ResourceInUse",
            "You cannot delete an AutoScalingGroup while there are instances or pending Spot "
            "instance request(s) still in the group.",
        )
    engine.delete(group, time.time())
    return EmptyResult()


def _describe_activities(_engine: Engine, response: Any) -> Any:
    given = parameters(response)
    name, ids = given.get("AutoScalingGroupName"), given.get("ActivityIds", [])
    found = [
        activity
        for activity in response.autoscaling_backend.__dict__.get("activities", [])
        if name in (None, activity.auto_scaling_group_name)
        and (not ids or activity.activity_id in ids)
    ]
    return ActionResult({"Activities": found[: int(given.get("MaxRecords", ACTIVITIES_PER_PAGE))]})


def _describe_refreshes(_engine: Engine, response: Any) -> Any:
    """Answer that the group was never refreshed: nothing in the twin refreshes one."""
    group_named(response)
    return ActionResult({"InstanceRefreshes": []})


def _set_desired_capacity(_engine: Engine, response: Any) -> Any:
    group, desired = group_named(response), int(parameters(response)["DesiredCapacity"])
    if desired > group.max_size:
        raise ValidationError(
            f"New SetDesiredCapacity value {desired} is above max value {group.max_size} for the "
            "AutoScalingGroup."
        )
    if desired < group.min_size:
        raise ValidationError(
            f"New SetDesiredCapacity value {desired} is below min value {group.min_size} for the "
            "AutoScalingGroup."
        )
    group.set_desired_capacity(desired)
    return EmptyResult()


def _terminate(engine: Engine, response: Any) -> Any:
    decrement = flag(response, "ShouldDecrementDesiredCapacity")
    activity = engine.terminate(member_named(response), time.time(), decrement=decrement)
    return ActionResult({"Activity": activity})


def _launched_from(member: Any) -> dict[str, str] | None:
    """Return the template a member was launched from, with the number its version had then."""
    template = member.auto_scaling_group.ec2_launch_template
    number = getattr(member.instance, "launch_template_version", None)
    if template is None or number is None:
        return None
    return {
        "LaunchTemplateId": template.id,
        "LaunchTemplateName": template.name,
        "Version": str(number),
    }


def _refuse_retained(backend: Any, group_name: str, instance_ids: list[str]) -> None:
    group = backend.autoscaling_groups.get(group_name)
    for member in group.instance_states if group else ():
        if member.instance_id in instance_ids and member.lifecycle_state == RETAINED:
            raise ValidationError(
                f"The instance {member.instance_id} is not in InService or Standby."
            )


def install(engine: Engine) -> None:
    """Replace what moto answers to Auto Scaling calls."""
    AutoScalingResponse.create_auto_scaling_group = answering(engine, _create)
    AutoScalingResponse.update_auto_scaling_group = answering(engine, _update)
    AutoScalingResponse.delete_auto_scaling_group = answering(engine, _delete)
    AutoScalingResponse.describe_scaling_activities = answering(engine, _describe_activities)
    AutoScalingResponse.describe_instance_refreshes = answering(engine, _describe_refreshes)
    AutoScalingResponse.set_desired_capacity = answering(engine, _set_desired_capacity)
    AutoScalingResponse.terminate_instance_in_auto_scaling_group = answering(engine, _terminate)
    InstanceState.launch_template = property(_launched_from)
    _install_capacity(engine)
    hooks_api.install(engine)
    # moto remembers which methods a response class has.
    getattr(moto_responses.method_names_from_class, "cache_clear", lambda: None)()


def _install_capacity(engine: Engine) -> None:
    def set_capacity(group: Any, capacity: int | None) -> None:
        group.desired_capacity = group.min_size if capacity is None else capacity
        engine.reconcile(group, time.time())

    def enter_standby(backend: Any, name: str, instance_ids: list[str], *args: Any) -> Any:
        _refuse_retained(backend, name, instance_ids)
        return MOTO_STANDBY(backend, name, instance_ids, *args)

    def protect(backend: Any, name: str, instance_ids: list[str], *args: Any) -> Any:
        _refuse_retained(backend, name, instance_ids)
        return MOTO_PROTECT(backend, name, instance_ids, *args)

    FakeAutoScalingGroup.set_desired_capacity = set_capacity
    AutoScalingBackend.enter_standby_instances = enter_standby
    AutoScalingBackend.set_instance_protection = protect
    # The engine finds at its next health check what EC2 was told to terminate.
    AutoScalingBackend.notify_terminate_instances = lambda _backend, _instance_ids: None
