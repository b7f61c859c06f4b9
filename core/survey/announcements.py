"""Decides whether a rule of EventBridge lets a group's terminations through to a queue.

Source: Amazon EventBridge event patterns. What a pattern asks that is not known here counts as
met: of a filter nobody is sure of nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

ACTION = "EC2 Instance-terminate Lifecycle Action"
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
_COMPARED: Mapping[str, Callable[[str, str], bool]] = {
    "prefix": str.startswith,
    "suffix": str.endswith,
    "equals-ignore-case": lambda value, wanted: value.lower() == wanted.lower(),
}


def is_announced(pattern: Mapping[str, Any], group: str, hook: str) -> bool:
    """Say whether a pattern matches what Auto Scaling announces of a hook.

    >>> is_announced({"detail": {"LifecycleHookName": ["launch"]}}, "kafka-a", "drain")
    False
    """
    return _meets(
        pattern,
        {
            "source": "aws.autoscaling",
            "detail-type": ACTION,
            "detail": {
                "AutoScalingGroupName": group,
                "LifecycleHookName": hook,
                "LifecycleTransition": TERMINATING,
            },
        },
    )


def _meets(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    return all(_field(wanted, event[key]) for key, wanted in pattern.items() if key in event)


def _field(wanted: object, value: object) -> bool:
    if isinstance(wanted, Mapping) and isinstance(value, Mapping):
        return _meets(wanted, value)
    if not isinstance(wanted, list) or not isinstance(value, str):
        return True
    return any(_matches(each, value) for each in wanted)


def _matches(wanted: object, value: str) -> bool:
    if isinstance(wanted, Mapping):
        return all(_compares(str(how), what, value) for how, what in wanted.items())
    return not isinstance(wanted, str) or wanted == value


def _compares(how: str, what: object, value: str) -> bool:
    if how == "anything-but" and isinstance(what, str | list):
        return value not in ([what] if isinstance(what, str) else what)
    if how in _COMPARED and isinstance(what, str):
        return _COMPARED[how](value, what)
    return True
