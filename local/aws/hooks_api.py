"""Lifecycle hooks in moto's Auto Scaling API: kept as they were put, and answered.

moto forgets a hook's target, role and metadata, and has neither complete_lifecycle_action nor
record_lifecycle_action_heartbeat.
"""

from __future__ import annotations

import time
from typing import Any

from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import EmptyResult

from local.aws import activities
from local.aws.autoscaling import Engine
from local.aws.lifecycle import (
    ABANDON,
    CONTINUE,
    LONGEST_HOLD_HEARTBEATS,
    LONGEST_HOLD_SECONDS,
    HookAction,
)
from local.aws.scaling_parameters import answering, group_named, parameters


def put_hook(group: Any, specification: dict[str, Any]) -> None:
    """Put a hook on a group; one whose target refuses a test message is not kept."""
    # AWS wants 30 to 7200 seconds here. The twin takes any number, so that tests of a timeout
    # last as long as they must; core.cluster holds the limits.
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
    if hook.notification_target_arn and not activities.test_notification(
        group, hook.notification_target_arn
    ):
        backend.delete_lifecycle_hook(group.name, hook.name)
        raise ValidationError(
            "Unable to publish test message to notification target "
            f"{hook.notification_target_arn} using IAM role {hook.role_arn}. Please check your "
            "target and role configuration and try to put lifecycle hook again."
        )


def _put(_engine: Engine, response: Any) -> Any:
    put_hook(group_named(response), parameters(response))
    return EmptyResult()


def _delete(engine: Engine, response: Any) -> Any:
    group, name = group_named(response), parameters(response)["LifecycleHookName"]
    if f"{group.name}_{name}" not in group.autoscaling_backend.lifecycle_hooks:
        raise ValidationError(f"No Lifecycle Hook found with name {name}")
    group.autoscaling_backend.delete_lifecycle_hook(group.name, name)
    engine.forget_hook(group, name, time.time())
    return EmptyResult()


def _complete(engine: Engine, response: Any) -> Any:
    result = parameters(response)["LifecycleActionResult"]
    if result not in (CONTINUE, ABANDON):
        raise ValidationError(
            f"The lifecycle action result {result} is neither CONTINUE nor ABANDON."
        )
    action, member = _open_action(engine, response)
    engine.complete(action, member, result, time.time())
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


def install(engine: Engine) -> None:
    """Replace what moto answers to calls about hooks."""
    AutoScalingResponse.put_lifecycle_hook = answering(engine, _put)
    AutoScalingResponse.delete_lifecycle_hook = answering(engine, _delete)
    AutoScalingResponse.complete_lifecycle_action = answering(engine, _complete)
    AutoScalingResponse.record_lifecycle_action_heartbeat = answering(engine, _heartbeat)
