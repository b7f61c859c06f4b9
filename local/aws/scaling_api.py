"""Puts the engine behind moto's Auto Scaling API, and keeps what moto forgets.

moto drops a group's maintenance and lifecycle policies and a hook's target, role and metadata;
it has no complete_lifecycle_action and no heartbeat, and describes no activity.
"""

from __future__ import annotations

import time
from typing import Any

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup, InstanceState
from moto.autoscaling.responses import AutoScalingResponse
from moto.core import responses as moto_responses
from moto.core.responses import ActionResult, EmptyResult

from local.aws import activities
from local.aws.autoscaling import RETAINED, Engine, retains
from local.aws.lifecycle import ABANDON, CONTINUE

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


def _group(backend: Any, name: str) -> Any:
    group = backend.autoscaling_groups.get(name)
    if group is None:
        raise ValidationError(
            f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found"
        )
    return group


def _member(backend: Any, instance_id: str) -> Any:
    for group in backend.autoscaling_groups.values():
        for member in group.instance_states:
            if member.instance_id == instance_id:
                return member
    raise ValidationError(
        f"Instance Id not found - No managed instance found for instance ID: {instance_id}"
    )


def _keep(group: Any, response: Any, settings: dict[str, str]) -> None:
    for parameter, attribute in settings.items():
        value = response._get_param(parameter)  # noqa: SLF001  # moto's way to a parameter
        if value is None:
            continue
        # -1 clears the percentages of a maintenance policy.
        cleared = isinstance(value, dict) and value.get("MinHealthyPercentage") == -1
        setattr(group, attribute, None if cleared else value)


def _check_size(group: Any, desired: int | None) -> None:
    if desired is None:
        return
    for limit, word in ((group.max_size, "above max"), (group.min_size, "below min")):
        if (desired > limit) if word == "above max" else (desired < limit):
            raise ValidationError(
                f"New SetDesiredCapacity value {desired} is {word} value {limit} for the "
                "AutoScalingGroup."
            )


def _put_hook(backend: Any, group: Any, specification: dict[str, Any]) -> None:
    # AWS wants 30 to 7200 seconds here. The twin takes any number, so that tests of a timeout
    # last as long as they must; core.cluster holds the limits.
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
    hook.global_timeout = min(48 * 3600, 100 * hook.heartbeat_timeout)
    if hook.notification_target_arn and not activities.test_notification(
        group, hook.notification_target_arn
    ):
        backend.delete_lifecycle_hook(group.name, hook.name)
        raise ValidationError(
            "Unable to publish test message to notification target "
            f"{hook.notification_target_arn} using IAM role {hook.role_arn}. Please check your "
            "target and role configuration and try to put lifecycle hook again."
        )


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


def install(engine: Engine) -> None:
    """Replace what moto answers to Auto Scaling calls."""
    _install_groups(engine)
    _install_hooks(engine)
    _install_capacity(engine)
    # moto remembers which methods a response class has.
    getattr(moto_responses.method_names_from_class, "cache_clear", lambda: None)()


def _install_groups(engine: Engine) -> None:
    moto_create = AutoScalingResponse.create_auto_scaling_group
    moto_update = AutoScalingResponse.update_auto_scaling_group

    def create(response: Any) -> Any:
        backend, name = response.autoscaling_backend, response._get_param("AutoScalingGroupName")  # noqa: SLF001  # moto's way to a parameter
        if name in backend.autoscaling_groups:
            raise AutoscalingClientError(
                "AlreadyExists",
                "AutoScalingGroup by this name already exists - A group with the name "
                f"{name} already exists",
            )
        answer = moto_create(response)
        group = _group(backend, name)
        _keep(group, response, KEPT_SETTINGS)
        for specification in response._get_param("LifecycleHookSpecificationList", []):  # noqa: SLF001  # as above
            _put_hook(backend, group, specification)
        engine.reconcile(group, time.time())
        return answer

    def update(response: Any) -> Any:
        name = response._get_param("AutoScalingGroupName")  # noqa: SLF001  # moto's way to a parameter
        group = _group(response.autoscaling_backend, name)
        if getattr(group, "status", None):
            raise ValidationError(
                "The AutoScaling group may not be modified while it is pending delete"
            )
        answer = moto_update(response)
        _keep(group, response, {**KEPT_SETTINGS, **KEPT_AT_UPDATE})
        engine.reconcile(group, time.time())
        return answer

    def delete(response: Any) -> Any:
        name = response._get_param("AutoScalingGroupName")  # noqa: SLF001  # moto's way to a parameter
        group = _group(response.autoscaling_backend, name)
        force = response._get_bool_param("ForceDelete", False)  # noqa: SLF001, FBT003  # moto's signature
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

    def describe_activities(response: Any) -> Any:
        name = response._get_param("AutoScalingGroupName")  # noqa: SLF001  # moto's way to a parameter
        ids = response._get_param("ActivityIds", [])  # noqa: SLF001  # as above
        limit = response._get_int_param("MaxRecords") or 100  # noqa: SLF001  # as above
        kept = response.autoscaling_backend.__dict__.get("activities", [])
        found = [
            activity
            for activity in kept
            if name in (None, activity.auto_scaling_group_name)
            and (not ids or activity.activity_id in ids)
        ]
        return ActionResult({"Activities": found[:limit]})

    AutoScalingResponse.create_auto_scaling_group = create
    AutoScalingResponse.update_auto_scaling_group = update
    AutoScalingResponse.delete_auto_scaling_group = delete
    AutoScalingResponse.describe_scaling_activities = describe_activities


def _install_hooks(engine: Engine) -> None:
    def put_hook(response: Any) -> Any:
        parameters = response._get_params()  # noqa: SLF001  # moto's way to the parameters
        backend = response.autoscaling_backend
        _put_hook(backend, _group(backend, parameters["AutoScalingGroupName"]), parameters)
        return EmptyResult()

    def delete_hook(response: Any) -> Any:
        parameters = response._get_params()  # noqa: SLF001  # as above
        backend = response.autoscaling_backend
        group = _group(backend, parameters["AutoScalingGroupName"])
        hook_name = parameters["LifecycleHookName"]
        if f"{group.name}_{hook_name}" not in backend.lifecycle_hooks:
            raise ValidationError(f"No Lifecycle Hook found with name {hook_name}")
        backend.delete_lifecycle_hook(group.name, hook_name)
        engine.forget_hook(group, hook_name, time.time())
        return EmptyResult()

    def find_action(response: Any) -> tuple[Any, Any]:
        parameters = response._get_params()  # noqa: SLF001  # as above
        instance_id, token = parameters.get("InstanceId"), parameters.get("LifecycleActionToken")
        if not instance_id and not token:
            raise ValidationError(
                "Either instanceId or lifecycleActionToken must be specified to find the action."
            )
        group = _group(response.autoscaling_backend, parameters["AutoScalingGroupName"])
        return engine.open_action(
            group, parameters["LifecycleHookName"], instance_id=instance_id, token=token
        )

    def complete(response: Any) -> Any:
        result = response._get_param("LifecycleActionResult")  # noqa: SLF001  # as above
        if result not in (CONTINUE, ABANDON):
            raise ValidationError(
                f"The lifecycle action result {result} is neither CONTINUE nor ABANDON."
            )
        action, member = find_action(response)
        engine.complete(action, member, result, time.time())
        return EmptyResult()

    def record_heartbeat(response: Any) -> Any:
        action, member = find_action(response)
        engine.extend(action, member, time.time())
        return EmptyResult()

    AutoScalingResponse.put_lifecycle_hook = put_hook
    AutoScalingResponse.delete_lifecycle_hook = delete_hook
    AutoScalingResponse.complete_lifecycle_action = complete
    AutoScalingResponse.record_lifecycle_action_heartbeat = record_heartbeat


def _install_capacity(engine: Engine) -> None:
    moto_standby = AutoScalingBackend.enter_standby_instances
    moto_protect = AutoScalingBackend.set_instance_protection

    def set_desired(response: Any) -> Any:
        name = response._get_param("AutoScalingGroupName")  # noqa: SLF001  # moto's way to a parameter
        desired = response._get_int_param("DesiredCapacity")  # noqa: SLF001  # as above
        group = _group(response.autoscaling_backend, name)
        _check_size(group, desired)
        group.set_desired_capacity(desired)
        return EmptyResult()

    def terminate(response: Any) -> Any:
        member = _member(response.autoscaling_backend, response._get_param("InstanceId"))  # noqa: SLF001  # as above
        decrement = response._get_bool_param("ShouldDecrementDesiredCapacity", False)  # noqa: SLF001, FBT003  # as above
        return ActionResult(
            {"Activity": engine.terminate(member, time.time(), decrement=decrement)}
        )

    def set_capacity(group: Any, capacity: int | None) -> None:
        group.desired_capacity = group.min_size if capacity is None else capacity
        engine.reconcile(group, time.time())

    def refuse_retained(group: Any, instance_ids: list[str]) -> None:
        for member in group.instance_states:
            if member.instance_id in instance_ids and member.lifecycle_state == RETAINED:
                raise ValidationError(
                    f"The instance {member.instance_id} is not in InService or Standby."
                )

    def standby(backend: Any, name: str, instance_ids: list[str], *args: Any) -> Any:
        refuse_retained(_group(backend, name), instance_ids)
        return moto_standby(backend, name, instance_ids, *args)

    def protect(backend: Any, name: str, instance_ids: list[str], *args: Any) -> Any:
        refuse_retained(_group(backend, name), instance_ids)
        return moto_protect(backend, name, instance_ids, *args)

    AutoScalingResponse.set_desired_capacity = set_desired
    AutoScalingResponse.terminate_instance_in_auto_scaling_group = terminate
    FakeAutoScalingGroup.set_desired_capacity = set_capacity
    AutoScalingBackend.enter_standby_instances = standby
    AutoScalingBackend.set_instance_protection = protect
    InstanceState.launch_template = property(_launched_from)
    # The engine finds at its next health check what EC2 was told to terminate.
    AutoScalingBackend.notify_terminate_instances = lambda _backend, _instance_ids: None
