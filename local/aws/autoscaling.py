"""Auto Scaling groups in the twin: capacity, replacement, and the hooks of a termination.

moto knows no lifecycle: a terminate ends the instance in the same call, hooks are decoration,
nothing is announced. This engine is level-triggered: `step` looks at every group and does what is
missing. An instance that is on its way out does not count, so its replacement is launched at
once, before it is gone, as AWS does with a maintenance policy of 100 to 200 percent.

What is said about retained instances, forced deletion and activity codes was captured on AWS.
Launch and termination run in groups of any number of subnets, each instance in the emptiest one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.models import InstanceState, autoscaling_backends
from moto.core.exceptions import ServiceException

from local.aws import activities, launching
from local.aws.activities import Activity
from local.aws.instances import ENDED, Delays, Journal, Machines, all_backends, state_of
from local.aws.lifecycle import (
    ABANDON,
    CONTINUE,
    LAUNCHING,
    TERMINATING,
    Action,
    Hook,
    Transition,
    heartbeat,
)

COUNTED = ("Pending", "Pending:Wait", "Pending:Proceed", "InService")
RETAINED = "Terminating:Retained"
LEAVING = ("Terminating", "Terminating:Wait", "Terminating:Proceed")
LAUNCH_RETRY_SECONDS = 10.0


def hooks_of(group: Any, transition: str) -> list[Hook]:
    """Return a group's hooks of one transition as they are now."""
    return [
        Hook(
            name=hook.name,
            transition=hook.lifecycle_transition,
            heartbeat_timeout_seconds=int(hook.heartbeat_timeout),
            default_result=hook.default_result,
            notification_target_arn=hook.notification_target_arn,
            notification_metadata=getattr(hook, "notification_metadata", None),
        )
        for hook in group.autoscaling_backend.lifecycle_hooks.values()
        if hook.auto_scaling_group_name == group.name and hook.lifecycle_transition == transition
    ]


def retains(group: Any) -> bool:
    """Say whether an abandoned termination leaves the instance running in this group."""
    policy = getattr(group, "instance_lifecycle_policy", None) or {}
    return bool((policy.get("RetentionTriggers") or {}).get("TerminateHookAbandon") == "retain")


def suspended(group: Any, process: str) -> bool:
    return any(entry["ProcessName"] == process for entry in group.suspended_processes)


class Engine:
    """Moves the members of every group; callers hold locks.COMPUTE."""

    def __init__(self, machines: Machines, delays: Delays, journal: Journal) -> None:
        self._machines = machines
        self._delays = delays
        self._journal = journal
        self._transitions: dict[str, Transition] = {}
        self._activities: dict[str, Activity] = {}
        self._seen_ended: dict[str, float] = {}
        self._launch_not_before: dict[str, float] = {}

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
        activity = self._leave(member, now, cause + ".")
        self.reconcile(group, now)
        return activity

    def complete(self, action: Action, member: Any, result: str, now: float) -> None:
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
        self._settle(member, now)

    def extend(self, action: Action, member: Any, now: float) -> None:
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
    ) -> tuple[Action, Any]:
        """Return the open action an API call names, or say as AWS does that there is none."""
        for member in group.instance_states:
            if instance_id in (None, member.instance_id):
                transition = self._transitions.get(member.instance_id)
                action = transition.find(hook_name, token=token) if transition else None
                if action is not None:
                    return action, member
        what = f"instance ID {instance_id}" if instance_id else f"token {token}"
        raise ValidationError(f"No active Lifecycle Action found with {what}")

    def forget_hook(self, group: Any, hook_name: str, now: float) -> None:
        """Complete what a deleted hook holds: CONTINUE for terminations, ABANDON for launches."""
        for member in list(group.instance_states):
            transition = self._transitions.get(member.instance_id)
            action = transition.find(hook_name) if transition else None
            if action is not None:
                result = CONTINUE if action.hook.transition == TERMINATING else ABANDON
                self.complete(action, member, result, now)

    def delete(self, group: Any, now: float) -> None:
        """Delete a group: its members leave through their hooks, and then it is gone."""
        group.desired_capacity = group.min_size = group.max_size = 0
        group.status = "Delete in progress"
        for member in list(group.instance_states):
            if member.lifecycle_state not in LEAVING:
                self._leave(member, now, "a user request deleted the group.")
        self._drop_if_empty(group)

    # What happens by itself

    def step(self, now: float) -> None:
        """Do everything that is due in every group."""
        for backend in all_backends(autoscaling_backends):
            for group in list(backend.autoscaling_groups.values()):
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
        if missing > 0 and not suspended(group, "Launch"):
            for _ in range(missing):
                self._launch(group, now)
        elif missing < 0 and not suspended(group, "Terminate"):
            for member in _scale_in_order(counted)[:-missing]:
                cause = (
                    "an instance was taken out of service in response to a difference between "
                    f"desired and actual capacity, shrinking the capacity from {len(counted)} to "
                    f"{group.desired_capacity}."
                )
                self._leave(member, now, cause)

    def _step_member(self, member: Any, now: float) -> None:
        transition = self._transitions.get(member.instance_id)
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
            self._settle(member, now)
        elif state == "Pending" and machine == "running":
            self._arrive(member, now)
        elif machine == "terminated" and state in ("Terminating", "Terminating:Proceed"):
            self._gone(member)
        elif machine in ENDED and state not in ("Terminating", "Terminating:Proceed"):
            self._ended_outside(member, now)
        elif state == "InService" and self._unhealthy(member):
            self._leave(member, now, "an instance was taken out of service as unhealthy.")

    def _unhealthy(self, member: Any) -> bool:
        group = member.auto_scaling_group
        if suspended(group, "ReplaceUnhealthy") or suspended(group, "Terminate"):
            return False
        stopped = state_of(member.instance) in ("stopping", "stopped")
        return member.health_status == "Unhealthy" or (
            stopped and not suspended(group, "HealthCheck")
        )

    def _ended_outside(self, member: Any, now: float) -> None:
        """Notice, at the next health check, a member that somebody terminated through EC2."""
        first_seen = self._seen_ended.setdefault(member.instance_id, now)
        if now - first_seen >= self._delays.health_check_seconds:
            self._transitions.pop(member.instance_id, None)
            if member.lifecycle_state not in LEAVING:
                self._begin_terminating(
                    member, "an instance was found terminated by a health check."
                )
            self._gone(member)

    # Arrivals

    def _launch(self, group: Any, now: float) -> None:
        if now < self._launch_not_before.get(group.arn, 0.0):
            return
        subnet_id, zone = launching.place(group)
        cause = (
            "an instance was started in response to a difference between desired and actual "
            f"capacity, towards a capacity of {group.desired_capacity}."
        )
        activity = activities.begin(
            group, "Launching a new EC2 instance", cause, subnet_id=subnet_id, zone=zone
        )
        try:
            instance = launching.run(group, subnet_id, zone)
        except ServiceException as error:
            self._launch_not_before[group.arn] = now + LAUNCH_RETRY_SECONDS
            activity.end("Failed", f"{error.message} Launching EC2 instance failed.")
            activity.description += f".  Status Reason: {activity.status_message}"
            activities.announce_activity(group, "EC2 Instance Launch Unsuccessful", activity)
            self._journal("moto", "launch_failed", group=group.name, reason=error.message)
            return
        activity.description += f": {instance.id}"
        activity.instance_id, activity.status_code, activity.progress = (
            instance.id,
            "PreInService",
            30,
        )
        instance.autoscaling_group = group
        member = InstanceState(
            instance,
            lifecycle_state="Pending",
            protected_from_scale_in=group.new_instances_protected_from_scale_in,
        )
        group.instance_states.append(member)
        self._activities[instance.id] = activity
        self._journal(
            "moto", "instance_launched", group=group.name, instance=instance.id, zone=zone
        )

    def _arrive(self, member: Any, now: float) -> None:
        hooks = hooks_of(member.auto_scaling_group, LAUNCHING)
        if hooks:
            self._wait(member, "Pending:Wait", hooks, now)
            self._mark(member, "MidLifecycleAction", 40)
        else:
            self._in_service(member)

    def _in_service(self, member: Any) -> None:
        member.lifecycle_state = "InService"
        group = member.auto_scaling_group
        self._journal("moto", "instance_in_service", group=group.name, instance=member.instance_id)
        group.autoscaling_backend.update_attached_elbs(group.name)
        group.autoscaling_backend.update_attached_target_groups(group.name)
        if activity := self._activities.pop(member.instance_id, None):
            activity.end("Successful")
            activities.announce_activity(group, "EC2 Instance Launch Successful", activity)

    # Departures

    def _leave(self, member: Any, now: float, cause: str) -> Activity:
        activity = self._begin_terminating(member, cause)
        hooks = hooks_of(member.auto_scaling_group, TERMINATING)
        if hooks:
            activity.status_code, activity.progress = "MidTerminatingLifecycleAction", 60
            self._wait(member, "Terminating:Wait", hooks, now)
        else:
            self._proceed(member, "Terminating")
        return activity

    def _begin_terminating(self, member: Any, cause: str) -> Activity:
        activity = activities.begin(
            member.auto_scaling_group,
            f"Terminating EC2 instance: {member.instance_id}",
            cause,
            subnet_id=str(member.instance.subnet_id or ""),
            zone=member.availability_zone,
        )
        activity.instance_id = member.instance_id
        self._activities[member.instance_id] = activity
        return activity

    def _wait(self, member: Any, state: str, hooks: list[Hook], now: float) -> None:
        member.lifecycle_state = state
        group = member.auto_scaling_group
        transition = Transition.begin(member.instance_id, hooks, now)
        self._transitions[member.instance_id] = transition
        for action in transition.actions:
            self._journal(
                "moto",
                "lifecycle_action",
                hook=action.hook.name,
                instance=member.instance_id,
                group=group.name,
                deadline=action.deadline,
            )
            if not activities.announce_action(group, member.instance_id, action):
                # Captured on AWS: a target that refuses the notification answers by the default.
                action.result = action.hook.default_result

    def _settle(self, member: Any, now: float) -> None:
        """Act on the verdict of a transition, if it has one."""
        transition = self._transitions.get(member.instance_id)
        if transition is None or transition.verdict is None:
            return
        del self._transitions[member.instance_id]
        abandoned = transition.verdict == ABANDON
        if member.lifecycle_state == "Pending:Wait":
            if abandoned:
                self._leave(member, now, "an instance was abandoned by a launch hook.")
            else:
                self._in_service(member)
        elif abandoned and retains(member.auto_scaling_group):
            self._retain(member)
        else:
            self._proceed(member, "Terminating:Proceed")

    def _retain(self, member: Any) -> None:
        member.lifecycle_state = RETAINED
        if activity := self._activities.pop(member.instance_id, None):
            activity.end("Cancelled", "A termination lifecycle hook was abandoned.")
        self._journal(
            "moto",
            "instance_retained",
            instance=member.instance_id,
            group=member.auto_scaling_group.name,
        )

    def _proceed(self, member: Any, state: str) -> None:
        # Past EC2's termination protection, which binds users and not the group itself.
        member.lifecycle_state = state
        self._machines.shut_down(member.instance)

    def _gone(self, member: Any) -> None:
        group = member.auto_scaling_group
        group.instance_states = [m for m in group.instance_states if m is not member]
        self._seen_ended.pop(member.instance_id, None)
        self._journal("moto", "instance_terminated", instance=member.instance_id, group=group.name)
        if activity := self._activities.pop(member.instance_id, None):
            activity.end("Successful")
            activities.announce_activity(group, "EC2 Instance Terminate Successful", activity)

    def _mark(self, member: Any, status_code: str, progress: int) -> None:
        if activity := self._activities.get(member.instance_id):
            activity.status_code, activity.progress = status_code, progress

    def _drop_if_empty(self, group: Any) -> None:
        backend = group.autoscaling_backend
        if group.instance_states or getattr(group, "status", None) is None:
            return
        backend.autoscaling_groups.pop(group.name, None)
        for key, hook in list(backend.lifecycle_hooks.items()):
            if hook.auto_scaling_group_name == group.name:
                del backend.lifecycle_hooks[key]


def _scale_in_order(members: Iterable[Any]) -> list[Any]:
    """Return who may leave, first to go first: the fullest zone's oldest, never a protected one."""
    members = list(members)
    zones = [member.availability_zone for member in members]
    return sorted(
        (member for member in members if not member.protected_from_scale_in),
        key=lambda m: (-zones.count(m.availability_zone), m.instance.launch_time),
    )
