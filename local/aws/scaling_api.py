"""Puts the engine behind moto's Auto Scaling API, and keeps what moto forgets.

moto drops a group's maintenance and lifecycle policies, ends instances at once, and describes no
activity. It forgets a hook's target, role and metadata, and has neither complete_lifecycle_action
nor record_lifecycle_action_heartbeat.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup, InstanceState
from moto.autoscaling.responses import AutoScalingResponse
from moto.core import responses as moto_responses
from moto.core.responses import ActionResult, EmptyResult

from local.aws import lifecycle
from local.aws.autoscaling import Engine
from local.aws.lifecycle import (
    ABANDON,
    CONTINUE,
    LONGEST_HOLD_HEARTBEATS,
    LONGEST_HOLD_SECONDS,
    TERMINATING,
    HookAction,
)
from local.aws.membership import RETAINED, retains

Answer = Callable[[Engine, Any], Any]


def answering(engine: Engine, answer: Answer) -> Callable[[Any], Any]:
    """Return an answer of ours as a method of moto's response class."""
    return lambda response: answer(engine, response)


def parameters(response: Any) -> dict[str, Any]:
    """Return a request's parameters by their names in the API."""
    return dict(response._get_params())  # noqa: SLF001  # moto's way to them


def flag(response: Any, name: str) -> bool:
    """Return a boolean parameter, False when it is absent."""
    return bool(response._get_bool_param(name, False))  # noqa: SLF001, FBT003  # moto's way to it


def group_named(response: Any) -> Any:
    """Return the group a request is about."""
    name = parameters(response).get("AutoScalingGroupName")
    group = response.autoscaling_backend.autoscaling_groups.get(name)
    if group is None:
        raise ValidationError(
            f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found"
        )
    return group


def member_named(response: Any) -> Any:
    """Return the group member a request is about."""
    instance_id = parameters(response).get("InstanceId")
    for group in response.autoscaling_backend.autoscaling_groups.values():
        for member in group.instance_states:
            if member.instance_id == instance_id:
                return member
    raise ValidationError(
        f"Instance Id not found - No managed instance found for instance ID: {instance_id}"
    )


def put_hook(group: Any, specification: dict[str, Any]) -> None:
    """Put a hook on a group; one whose target refuses a test message is not kept."""
    # AWS wants 30 to 7200 seconds here. The twin takes any number, so that tests of a timeout
    # last as long as they must; core.cluster holds the limits.
    if specification["LifecycleTransition"] != TERMINATING:
        raise ValidationError("The twin's groups hold terminations alone.")
    backend = group.autoscaling_backend
    hook = backend.create_lifecycle_hook(
        name=specification["LifecycleHookName"],
        as_name=group.name,
        transition=specification["LifecycleTransition"],
        timeout=int(specification.get("HeartbeatTimeout") or 3600),
        result=specification.get("DefaultResult"),
    )
    hook.notification_target_arn = specification.get("NotificationTargetARN")
    hook.role_arn = specification.get("RoleARN")
    hook.notification_metadata = specification.get("NotificationMetadata")
    hook.global_timeout = min(
        LONGEST_HOLD_SECONDS, LONGEST_HOLD_HEARTBEATS * hook.heartbeat_timeout
    )
    if hook.notification_target_arn and not lifecycle.test_notification(
        group, hook.notification_target_arn
    ):
        backend.delete_lifecycle_hook(group.name, hook.name)
        raise ValidationError(
            "Unable to publish test message to notification target "
            f"{hook.notification_target_arn} using IAM role {hook.role_arn}. Please check your "
            "target and role configuration and try to put lifecycle hook again."
        )


def _put_hook(_engine: Engine, response: Any) -> Any:
    put_hook(group_named(response), parameters(response))
    return EmptyResult()


def _delete_hook(engine: Engine, response: Any) -> Any:
    group, name = group_named(response), parameters(response)["LifecycleHookName"]
    if f"{group.name}_{name}" not in group.autoscaling_backend.lifecycle_hooks:
        raise ValidationError(f"No Lifecycle Hook found with name {name}")
    group.autoscaling_backend.delete_lifecycle_hook(group.name, name)
    engine.forget_hook(group, name)
    return EmptyResult()


def _complete(engine: Engine, response: Any) -> Any:
    result = parameters(response)["LifecycleActionResult"]
    if result not in (CONTINUE, ABANDON):
        raise ValidationError(
            f"The lifecycle action result {result} is neither CONTINUE nor ABANDON."
        )
    action, member = _open_action(engine, response)
    engine.complete(action, member, result)
    return EmptyResult()


def _heartbeat(engine: Engine, response: Any) -> Any:
    action, member = _open_action(engine, response)
    engine.extend(action, member, time.time())
    return EmptyResult()


def _open_action(engine: Engine, response: Any) -> tuple[HookAction, Any]:
    given = parameters(response)
    instance_id, token = given.get("InstanceId"), given.get("LifecycleActionToken")
    if not instance_id and not token:
        raise ValidationError(
            "Either InstanceId or LifecycleActionToken must be given to find the action."
        )
    return engine.open_action(
        group_named(response),
        given["LifecycleHookName"],
        instance_id=instance_id,
        token=token,
    )


def _install_hooks(engine: Engine) -> None:
    AutoScalingResponse.put_lifecycle_hook = answering(engine, _put_hook)
    AutoScalingResponse.delete_lifecycle_hook = answering(engine, _delete_hook)
    AutoScalingResponse.complete_lifecycle_action = answering(engine, _complete)
    AutoScalingResponse.record_lifecycle_action_heartbeat = answering(engine, _heartbeat)


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
    _install_hooks(engine)
    # moto remembers which methods a response class has.
    getattr(moto_responses.method_names_from_class, "cache_clear", lambda: None)()


def _install_capacity(engine: Engine) -> None:
    def set_capacity(group: Any, capacity: int | None) -> None:
        group.desired_capacity = group.min_size if capacity is None else capacity
        engine.reconcile(group, time.time())

    def protect(backend: Any, name: str, instance_ids: list[str], *args: Any) -> Any:
        _refuse_retained(backend, name, instance_ids)
        return MOTO_PROTECT(backend, name, instance_ids, *args)

    FakeAutoScalingGroup.set_desired_capacity = set_capacity
    AutoScalingBackend.set_instance_protection = protect
    # The engine finds at its next health check what EC2 was told to terminate.
    AutoScalingBackend.notify_terminate_instances = lambda _backend, _instance_ids: None
