"""Auto Scaling groups in the twin: capacity, replacement, and the hooks of a termination.

moto knows no lifecycle: a terminate ends the instance in the same call, hooks are decoration,
nothing is announced. This engine is level-triggered: `step` looks at every group and does what is
missing. An instance that is on its way out does not count, so its replacement is launched at
once, before it is gone, as AWS does with a maintenance policy of 100 to 200 percent.

Retained instances, forced deletion and activity codes follow what others captured on AWS.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.models import autoscaling_backends
from moto.core.exceptions import ServiceException

from local.aws.instances import ENDED, all_backends, state_of
from local.aws.lifecycle import CONTINUE, Activity, HookAction, heartbeat
from local.aws.membership import RETAINED, Membership
from local.environment import Delays
from local.journal import Write

LOG = logging.getLogger(__name__)
COUNTED = ("Pending", "InService")
LEAVING = ("Terminating", "Terminating:Wait", "Terminating:Proceed")
SHUTTING_DOWN = ("Terminating", "Terminating:Proceed")


def is_suspended(group: Any, process: str) -> bool:
    return any(entry["ProcessName"] == process for entry in group.suspended_processes)


class Engine:
    """Moves the members of every group; callers hold locks.COMPUTE."""

    def __init__(self, members: Membership, delays: Delays, journal: Write) -> None:
        self._members = members
        self._delays = delays
        self._journal = journal
        self._seen_ended: dict[str, float] = {}

    # What the API asks for

    def terminate(self, member: Any, now: float, *, decrement: bool) -> Activity:
        """Terminate a member as TerminateInstanceInAutoScalingGroup does."""
        group = member.auto_scaling_group
        if member.lifecycle_state == RETAINED and decrement:
            raise ValidationError(
                f"The instance {member.instance_id} is retained and does not count towards the "
                "desired capacity, so the desired capacity cannot be decremented."
            )
        if member.lifecycle_state in LEAVING:
            raise ServiceException(
                "ScalingActivityInProgress",
                "The operation can't be performed because there are scaling activities in "
                "progress.",
            )
        if decrement and group.desired_capacity <= group.min_size:
            raise ValidationError(
                f"Currently, desiredSize equals minSize ({group.min_size}). Terminating instance "
                "without replacement will violate group's min size constraint. Either set "
                "shouldDecrementDesiredCapacity flag to false or lower group's min size."
            )
        cause = (
            f"instance {member.instance_id} was taken out of service in response to a user request"
        )
        if decrement:
            group.desired_capacity -= 1
            cause += (
                f", shrinking the capacity from {group.desired_capacity + 1} to "
                f"{group.desired_capacity}"
            )
        self._journal(
            "moto",
            "terminate_called",
            instance=member.instance_id,
            group=group.name,
            decrement=decrement,
        )
        activity = self._members.leave(member, now, cause + ".")
        self.reconcile(group, now)
        return activity

    def complete(self, action: HookAction, member: Any, result: str) -> None:
        """Answer one hook; ABANDON, or the last CONTINUE, ends the wait."""
        action.result = result
        self._journal(
            "moto",
            "hook_completed",
            hook=action.hook.name,
            instance=member.instance_id,
            group=member.auto_scaling_group.name,
            result=result,
        )
        self._members.settle(member)

    def extend(self, action: HookAction, member: Any, now: float) -> None:
        heartbeat(action, now)
        self._journal(
            "moto",
            "heartbeat",
            hook=action.hook.name,
            instance=member.instance_id,
            deadline=action.deadline,
        )

    def open_action(
        self, group: Any, hook_name: str, *, instance_id: str | None, token: str | None
    ) -> tuple[HookAction, Any]:
        """Return the open action an API call names, or say as AWS does that there is none."""
        for member in group.instance_states:
            if instance_id in (None, member.instance_id):
                transition = self._members.transitions.get(member.instance_id)
                action = transition.find(hook_name, token=token) if transition else None
                if action is not None:
                    return action, member
        what = f"instance ID {instance_id}" if instance_id else f"token {token}"
        raise ValidationError(f"No active Lifecycle Action found with {what}")

    def forget_hook(self, group: Any, hook_name: str) -> None:
        """Let go what a deleted hook holds."""
        for member in list(group.instance_states):
            transition = self._members.transitions.get(member.instance_id)
            action = transition.find(hook_name) if transition else None
            if action is not None:
                self.complete(action, member, CONTINUE)

    def delete(self, group: Any, now: float) -> None:
        """Delete a group: its members leave through their hooks, and then it is gone."""
        group.desired_capacity = group.min_size = group.max_size = 0
        group.status = "Delete in progress"
        for member in list(group.instance_states):
            if member.lifecycle_state not in LEAVING:
                self._members.leave(member, now, "a user request deleted the group.")
        self._drop_if_empty(group)

    # What happens by itself

    def step(self, now: float) -> None:
        """Do everything that is due in every group."""
        for backend in all_backends(autoscaling_backends):
            for group in list(backend.autoscaling_groups.values()):
                try:
                    self._step_group(group, now)
                except Exception:
                    # A broken group must not stop the clock for the others.
                    LOG.exception("group %s cannot move on", group.name)

    def _step_group(self, group: Any, now: float) -> None:
        for member in list(group.instance_states):
            self._step_member(member, now)
        self.reconcile(group, now)
        self._drop_if_empty(group)

    def reconcile(self, group: Any, now: float) -> None:
        """Launch what is missing and let go what is too much."""
        if group.name not in group.autoscaling_backend.autoscaling_groups:
            return
        counted = [m for m in group.instance_states if m.lifecycle_state in COUNTED]
        missing = (group.desired_capacity or 0) - len(counted)
        if missing > 0 and not is_suspended(group, "Launch"):
            for _ in range(missing):
                self._members.launch(group, now)
        elif missing < 0 and not is_suspended(group, "Terminate"):
            for member in _scale_in_order(counted)[:-missing]:
                cause = (
                    "an instance was taken out of service in response to a difference between "
                    f"desired and actual capacity, shrinking the capacity from {len(counted)} to "
                    f"{group.desired_capacity}."
                )
                self._members.leave(member, now, cause)

    def _step_member(self, member: Any, now: float) -> None:
        transition = self._members.transitions.get(member.instance_id)
        for action in transition.expire(now) if transition else ():
            self._journal(
                "moto",
                "hook_timed_out",
                hook=action.hook.name,
                instance=member.instance_id,
                result=action.result,
            )
        state, machine = member.lifecycle_state, state_of(member.instance)
        if transition is not None and transition.verdict is not None:
            self._members.settle(member)
        elif state == "Pending" and machine == "running":
            self._members.arrive(member)
        elif machine == "terminated" and state in SHUTTING_DOWN:
            self._members.remove(member)
        elif machine in ENDED and state not in SHUTTING_DOWN:
            self._ended_outside(member, now)
        elif state == "InService" and self._unhealthy(member):
            self._members.leave(member, now, "an instance was taken out of service as unhealthy.")

    def _unhealthy(self, member: Any) -> bool:
        group = member.auto_scaling_group
        if is_suspended(group, "ReplaceUnhealthy") or is_suspended(group, "Terminate"):
            return False
        stopped = state_of(member.instance) in ("stopping", "stopped")
        return member.health_status == "Unhealthy" or (
            stopped and not is_suspended(group, "HealthCheck")
        )

    def _ended_outside(self, member: Any, now: float) -> None:
        """Notice, at the next health check, a member that somebody terminated through EC2."""
        first_seen = self._seen_ended.setdefault(member.instance_id, now)
        if now - first_seen >= self._delays.health_check_seconds:
            del self._seen_ended[member.instance_id]
            self._members.transitions.pop(member.instance_id, None)
            if member.lifecycle_state not in LEAVING:
                self._members.begin_terminating(
                    member, "an instance was found terminated by a health check."
                )
            self._members.remove(member)

    def _drop_if_empty(self, group: Any) -> None:
        backend = group.autoscaling_backend
        if group.instance_states or getattr(group, "status", None) is None:
            return
        backend.autoscaling_groups.pop(group.name, None)
        for key, hook in list(backend.lifecycle_hooks.items()):
            if hook.auto_scaling_group_name == group.name:
                del backend.lifecycle_hooks[key]


def _scale_in_order(members: Iterable[Any]) -> list[Any]:
    """Return who may leave, first to go first; never a protected one.

    AWS's default policy: of the fullest zone, the oldest launch template, then the oldest.
    """
    members = list(members)
    zones = [member.availability_zone for member in members]
    return sorted(
        (member for member in members if not member.protected_from_scale_in),
        key=lambda m: (
            -zones.count(m.availability_zone),
            getattr(m.instance, "launch_template_version", None) or 0,
            m.instance.launch_time,
        ),
    )
