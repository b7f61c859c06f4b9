"""Reads an Auto Scaling request in moto's hands: its parameters, and what they name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.autoscaling.exceptions import ValidationError

from local.aws.autoscaling import Engine

Answer = Callable[[Engine, Any], Any]


def answering(engine: Engine, answer: Answer) -> Callable[[Any], Any]:
    """Return an answer of ours as a method of moto's response class."""

    def method(response: Any) -> Any:
        return answer(engine, response)

    return method


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
