"""Moves an instance into an Auto Scaling group and out: through hooks, or to be retained."""

from __future__ import annotations

from typing import Any

from moto.autoscaling.models import InstanceState
from moto.core.exceptions import ServiceException

from local.aws import activities, launching
from local.aws.activities import Activity
from local.aws.instances import InstanceStates, Journal
from local.aws.lifecycle import ABANDON, LAUNCHING, TERMINATING, GroupHook, HookTransition
from local.delays import Delays

RETAINED = "Terminating:Retained"


def hooks_of(group: Any, transition: str) -> list[GroupHook]:
    """Return a group's hooks of one transition as they are now."""
    return [
        GroupHook(
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


class Membership:
    """The members of every group and what each waits for; callers hold locks.COMPUTE."""

    def __init__(self, machines: InstanceStates, delays: Delays, journal: Journal) -> None:
        self.transitions: dict[str, HookTransition] = {}
        self._machines = machines
        self._delays = delays
        self._journal = journal
        self._activities: dict[str, Activity] = {}
        self._not_before: dict[str, float] = {}

    # Arrivals

    def launch(self, group: Any, now: float) -> None:
        """Launch one instance; one that fails is announced and tried again after a while."""
        if now < self._not_before.get(group.arn, 0.0):
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
            self._not_before[group.arn] = now + self._delays.launch_retry_seconds
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

    def arrive(self, member: Any, now: float) -> None:
        """Take a booted instance into service, once its launch hooks agree."""
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

    def leave(self, member: Any, now: float, cause: str) -> Activity:
        """Begin a termination: ask the hooks, or shut the instance down where there are none."""
        activity = self.begin_terminating(member, cause)
        hooks = hooks_of(member.auto_scaling_group, TERMINATING)
        if hooks:
            activity.status_code, activity.progress = "MidTerminatingLifecycleAction", 60
            self._wait(member, "Terminating:Wait", hooks, now)
        else:
            self._proceed(member, "Terminating")
        return activity

    def begin_terminating(self, member: Any, cause: str) -> Activity:
        """Open the activity of a termination."""
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

    def _wait(self, member: Any, state: str, hooks: list[GroupHook], now: float) -> None:
        member.lifecycle_state = state
        group = member.auto_scaling_group
        transition = HookTransition.begin(member.instance_id, hooks, now)
        self.transitions[member.instance_id] = transition
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

    def settle(self, member: Any, now: float) -> None:
        """Act on the verdict of a transition, if it has one."""
        transition = self.transitions.get(member.instance_id)
        if transition is None or transition.verdict is None:
            return
        del self.transitions[member.instance_id]
        abandoned = transition.verdict == ABANDON
        if member.lifecycle_state == "Pending:Wait":
            if abandoned:
                self.leave(member, now, "an instance was abandoned by a launch hook.")
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

    def remove(self, member: Any) -> None:
        """Take a terminated instance out of its group."""
        group = member.auto_scaling_group
        group.instance_states = [m for m in group.instance_states if m is not member]
        self._journal("moto", "instance_terminated", instance=member.instance_id, group=group.name)
        if activity := self._activities.pop(member.instance_id, None):
            activity.end("Successful")
            activities.announce_activity(group, "EC2 Instance Terminate Successful", activity)

    def _mark(self, member: Any, status_code: str, progress: int) -> None:
        if activity := self._activities.get(member.instance_id):
            activity.status_code, activity.progress = status_code, progress
