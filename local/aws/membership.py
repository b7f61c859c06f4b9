"""Moves an instance into an Auto Scaling group and out: launched, through hooks, or retained."""

from __future__ import annotations

from typing import Any

from moto.autoscaling.models import InstanceState
from moto.core.exceptions import ServiceException
from moto.ec2.exceptions import InvalidSubnetIdError

from local.aws import lifecycle
from local.aws.instances import InstanceStates
from local.aws.lifecycle import ABANDON, TERMINATING, Activity, GroupHook, HookTransition
from local.environment import Delays
from local.journal import Write

GROUP_NAME_TAG = "aws:autoscaling:groupName"
ROOT_DEVICES = ("/dev/xvda", "/dev/sda1")


def place(group: Any) -> tuple[str, str]:
    """Return the subnet and zone of the next instance: the group's emptiest, first named first."""
    subnet_ids = (group.vpc_zone_identifier or "").replace(" ", "").split(",")
    if not subnet_ids[0]:
        return "", str(group.availability_zones[0])
    taken = [member.instance.subnet_id for member in group.instance_states]
    subnet_id = min(subnet_ids, key=taken.count)
    try:
        return subnet_id, str(group.ec2_backend.get_subnet(subnet_id).availability_zone)
    except InvalidSubnetIdError:
        # The launch itself fails on it, and is then announced as failed.
        return subnet_id, str(group.availability_zones[0])


def run(group: Any, subnet_id: str, zone: str) -> Any:
    """Run one instance of a group and return moto's record of it."""
    version = _template_version(group)
    data = version.data if version else {}
    arguments: dict[str, Any] = {
        "image_id": group.image_id,
        "count": 1,
        "user_data": group.user_data,
        "security_group_names": group.security_groups,
        "instance_type": group.instance_type,
        "is_instance_type_default": False,
        "region_name": group.region,
        "tags": {
            # A tag of the group wins over the template's (captured on AWS); moto does the reverse.
            "instance": {
                **(version.instance_tags if version else {}),
                **group.get_propagated_tags(),
                GROUP_NAME_TAG: group.name,
            },
            "volume": _volume_tags(data),
        },
        "launch_config": group.launch_config,
        "subnet_id": subnet_id or None,
        "metadata_options": data.get("MetadataOptions", {}),
        "ebs_optimized": data.get("EbsOptimized", False),
    }
    if not subnet_id:
        arguments["placement"] = zone
    if version:
        arguments["launch_template"] = {
            "LaunchTemplateId": version.template.id,
            "Version": str(version.number),
        }
        if groups := _interface_groups(data):
            arguments["security_group_ids"] = groups
        if mappings := _volumes(data):
            # Given here, they take the place of the image's root volume; moto would add an 8 GiB
            # one beside them.
            arguments["block_device_mappings"] = mappings
    instance = group.ec2_backend.run_instances(**arguments).instances[0]
    instance.launch_template_version = version.number if version else None
    _set_volume_performance(instance, data)
    _set_profile(group.ec2_backend, instance, data)
    return instance


def _template_version(group: Any) -> Any:
    template = group.ec2_launch_template
    return template.get_version(group.launch_template_version) if template else None


def _volumes(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the volumes a template asks for; the root goes with its instance unless it says no."""
    return [
        {
            **mapping,
            "Ebs": {
                "DeleteOnTermination": mapping["DeviceName"] in ROOT_DEVICES,
                **mapping["Ebs"],
            },
        }
        for mapping in data.get("BlockDeviceMappings", [])
        if mapping.get("Ebs")
    ]


def _volume_tags(data: dict[str, Any]) -> dict[str, str]:
    return {
        tag["Key"]: tag["Value"]
        for specification in data.get("TagSpecifications", [])
        if specification.get("ResourceType") == "volume"
        for tag in specification.get("Tags", [])
    }


def _interface_groups(data: dict[str, Any]) -> list[str]:
    return [
        group
        for interface in data.get("NetworkInterfaces", [])
        for group in interface.get("Groups", [])
    ]


def _set_volume_performance(instance: Any, data: dict[str, Any]) -> None:
    for mapping in data.get("BlockDeviceMappings", []):
        device = instance.block_device_mapping.get(mapping.get("DeviceName"))
        if device is None:
            continue
        volume = instance.ec2_backend.get_volume(device.volume_id)
        for setting, attribute in (("Iops", "iops"), ("Throughput", "throughput")):
            if mapping.get("Ebs", {}).get(setting):
                setattr(volume, attribute, int(mapping["Ebs"][setting]))


def _set_profile(backend: Any, instance: Any, data: dict[str, Any]) -> None:
    profile = data.get("IamInstanceProfile", {})
    if profile.get("Name") or profile.get("Arn"):
        backend.associate_iam_instance_profile(
            instance_id=instance.id,
            iam_instance_profile_name=profile.get("Name"),
            iam_instance_profile_arn=profile.get("Arn"),
        )


RETAINED = "Terminating:Retained"


def hooks_of(group: Any) -> list[GroupHook]:
    """Return a group's hooks of a termination as they are now."""
    return [
        GroupHook(
            name=hook.name,
            heartbeat_timeout_seconds=int(hook.heartbeat_timeout),
            default_result=hook.default_result,
            notification_target_arn=hook.notification_target_arn,
            notification_metadata=getattr(hook, "notification_metadata", None),
        )
        for hook in group.autoscaling_backend.lifecycle_hooks.values()
        if hook.auto_scaling_group_name == group.name and hook.lifecycle_transition == TERMINATING
    ]


def retains(group: Any) -> bool:
    """Say whether an abandoned termination leaves the instance running in this group."""
    policy = getattr(group, "instance_lifecycle_policy", None) or {}
    return bool((policy.get("RetentionTriggers") or {}).get("TerminateHookAbandon") == "retain")


class Membership:
    """The members of every group and what each waits for; callers hold locks.COMPUTE."""

    def __init__(self, machines: InstanceStates, delays: Delays, journal: Write) -> None:
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
        subnet_id, zone = place(group)
        cause = (
            "an instance was started in response to a difference between desired and actual "
            f"capacity, towards a capacity of {group.desired_capacity}."
        )
        activity = lifecycle.begin(
            group, "Launching a new EC2 instance", cause, subnet_id=subnet_id, zone=zone
        )
        try:
            instance = run(group, subnet_id, zone)
        except ServiceException as error:
            self._not_before[group.arn] = now + self._delays.launch_retry_seconds
            activity.end("Failed", f"{error.message} Launching EC2 instance failed.")
            activity.description += f".  Status Reason: {activity.status_message}"
            lifecycle.announce_activity(group, "EC2 Instance Launch Unsuccessful", activity)
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

    def arrive(self, member: Any) -> None:
        """Take a booted instance into service."""
        member.lifecycle_state = "InService"
        group = member.auto_scaling_group
        self._journal("moto", "instance_in_service", group=group.name, instance=member.instance_id)
        group.autoscaling_backend.update_attached_elbs(group.name)
        group.autoscaling_backend.update_attached_target_groups(group.name)
        if activity := self._activities.pop(member.instance_id, None):
            activity.end("Successful")
            lifecycle.announce_activity(group, "EC2 Instance Launch Successful", activity)

    # Departures

    def leave(self, member: Any, now: float, cause: str) -> Activity:
        """Begin a termination: ask the hooks, or shut the instance down where there are none."""
        activity = self.begin_terminating(member, cause)
        hooks = hooks_of(member.auto_scaling_group)
        if hooks:
            activity.status_code, activity.progress = "MidTerminatingLifecycleAction", 60
            self._wait(member, hooks, now)
        else:
            self._proceed(member, "Terminating")
        return activity

    def begin_terminating(self, member: Any, cause: str) -> Activity:
        """Open the activity of a termination."""
        activity = lifecycle.begin(
            member.auto_scaling_group,
            f"Terminating EC2 instance: {member.instance_id}",
            cause,
            subnet_id=str(member.instance.subnet_id or ""),
            zone=member.availability_zone,
        )
        activity.instance_id = member.instance_id
        self._activities[member.instance_id] = activity
        return activity

    def _wait(self, member: Any, hooks: list[GroupHook], now: float) -> None:
        member.lifecycle_state = "Terminating:Wait"
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
            if not lifecycle.announce_action(group, member.instance_id, action):
                # Captured on AWS: a target that refuses the notification answers by the default.
                action.result = action.hook.default_result

    def settle(self, member: Any) -> None:
        """Act on the verdict of a transition, if it has one."""
        transition = self.transitions.get(member.instance_id)
        if transition is None or transition.verdict is None:
            return
        del self.transitions[member.instance_id]
        if transition.verdict == ABANDON and retains(member.auto_scaling_group):
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
            lifecycle.announce_activity(group, "EC2 Instance Terminate Successful", activity)
