"""Launch templates, Auto Scaling groups, and the security group that a VPC comes with."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from core.ground.errors import StillwaterError
from local.pulumi.aws_adapter import (
    EC2_TAGS,
    Adapter,
    Aws,
    CallById,
    adapts,
    first,
    has_changed,
    request,
    tag_list,
    tags_of,
)
from local.pulumi.provider import Existing, Resource, State
from local.refusals.calls import pick
from local.refusals.catalogue import (
    group_tags,
    template_data,
)
from local.refusals.documents import as_list
from local.values import Properties


@adapts("ec2/defaultSecurityGroup:DefaultSecurityGroup")
class DefaultSecurityGroupAdapter(Adapter):
    """The group a VPC comes with, adopted and emptied; it is never made, and goes with its VPC."""

    replaces = frozenset({"vpcId"})
    tagging = EC2_TAGS

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        ec2 = aws.client("ec2")
        here = [
            {"Name": "vpc-id", "Values": [inputs["vpcId"]]},
            {"Name": "group-name", "Values": ["default"]},
        ]
        (group,) = ec2.describe_security_groups(Filters=here)["SecurityGroups"]
        identity = group["GroupId"]
        for revoke, rules in (
            (ec2.revoke_security_group_ingress, group["IpPermissions"]),
            (ec2.revoke_security_group_egress, group["IpPermissionsEgress"]),
        ):
            if rules:
                revoke(GroupId=identity, IpPermissions=rules)
        if tags_of(inputs):
            ec2.create_tags(Resources=[identity], Tags=tag_list(tags_of(inputs)))
        arn = aws.arn("ec2", f"security-group/{identity}")
        return State(identity, {"arn": arn, "ownerId": aws.account, "name": "default"})


@adapts("ec2/launchTemplate:LaunchTemplate")
class LaunchTemplateAdapter(Adapter):
    name_property = "name"
    deletion = CallById("ec2", "delete_launch_template", "LaunchTemplateId")
    tagging = EC2_TAGS

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        identity = self.make(aws, inputs)["LaunchTemplate"]["LaunchTemplateId"]
        arn = aws.arn("ec2", f"launch-template/{identity}")
        return State(identity, {"arn": arn, "latestVersion": 1, "defaultVersion": 1})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        ec2, fresh = aws.client("ec2"), super().update(aws, existing, inputs)
        if has_changed(existing, inputs, *({*existing.inputs, *inputs} - {"tags", "tagsAll"})):
            made = ec2.create_launch_template_version(
                LaunchTemplateId=existing.id,
                LaunchTemplateData=template_data(inputs),
                **pick(inputs, {"description": "VersionDescription"}),
            )["LaunchTemplateVersion"]
            fresh["latestVersion"] = made["VersionNumber"]
            if inputs.get("updateDefaultVersion"):
                ec2.modify_launch_template(
                    LaunchTemplateId=existing.id, DefaultVersion=str(made["VersionNumber"])
                )
                fresh["defaultVersion"] = made["VersionNumber"]
        return fresh

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        found = aws.client("ec2").describe_launch_templates(LaunchTemplateIds=[existing.id])
        template = found["LaunchTemplates"][0]
        return {"latestVersion": template["LatestVersionNumber"]}


POLL_SECONDS = 0.2
CAPACITY_SECONDS = 120
EMPTYING_SECONDS = 60


def _template(template: Properties) -> dict[str, str]:
    named = {"LaunchTemplateId": template.get("id"), "LaunchTemplateName": template.get("name")}
    reference = {key: str(value) for key, value in named.items() if value}
    return {**reference, "Version": str(template.get("version") or "$Default")}


def _parameters(aws: Aws, operation: str, inputs: Properties) -> dict[str, Any]:
    # The API spells them otherwise, or takes them through a call of its own.
    apart = ("tags", "launchTemplate", "instanceLifecyclePolicy")
    parameters = request(aws.client("autoscaling"), operation, inputs, *apart)
    parameters["AutoScalingGroupName"] = inputs["name"]
    if inputs.get("launchTemplate"):
        parameters["LaunchTemplate"] = _template(inputs["launchTemplate"])
    if inputs.get("vpcZoneIdentifiers"):
        parameters["VPCZoneIdentifier"] = ",".join(inputs["vpcZoneIdentifiers"])
    triggers = (inputs.get("instanceLifecyclePolicy") or {}).get("retentionTriggers") or {}
    if triggers.get("terminateHookAbandon"):
        parameters["InstanceLifecyclePolicy"] = {
            "RetentionTriggers": {"TerminateHookAbandon": triggers["terminateHookAbandon"]}
        }
    return parameters


def describe(aws: Aws, name: str) -> dict[str, Any] | None:
    """Return a group as the API describes it, or None."""
    found = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[name])
    group: dict[str, Any] | None = first(found["AutoScalingGroups"])
    return group


def _wait(
    aws: Aws, name: str, reached: Callable[[dict[str, Any]], bool], seconds: float, what: str
) -> None:
    end = time.monotonic() + seconds
    while (group := describe(aws, name)) is not None and not reached(group):
        if time.monotonic() > end:
            states = [instance["LifecycleState"] for instance in group["Instances"]]
            raise StillwaterError(
                f"Auto Scaling group {name} did not {what} within {seconds:.0f} s; its instances "
                f"are {', '.join(states) or 'none'}."
            )
        time.sleep(POLL_SECONDS)


def wait_for_capacity(aws: Aws, name: str) -> None:
    """Wait until a group runs what it desires, as the real provider does."""

    def full(group: dict[str, Any]) -> bool:
        running = [i for i in group["Instances"] if i["LifecycleState"] == "InService"]
        return len(running) >= int(group["DesiredCapacity"])

    _wait(aws, name, full, CAPACITY_SECONDS, "reach its capacity")


def wait_until_gone(aws: Aws, name: str) -> None:
    """Wait until a group that somebody else deletes is gone: its subnets cannot go before it."""
    _wait(aws, name, lambda _group: False, EMPTYING_SECONDS, "end")


def empty_and_delete(aws: Aws, name: str) -> None:
    """Scale a group to nothing, wait for its instances to end, delete it."""
    autoscaling = aws.client("autoscaling")
    if describe(aws, name) is None:
        return
    autoscaling.update_auto_scaling_group(
        AutoScalingGroupName=name, MinSize=0, MaxSize=0, DesiredCapacity=0
    )
    _wait(aws, name, lambda group: not group["Instances"], EMPTYING_SECONDS, "become empty")
    # Without force: AWS refuses force on a group whose policy retains abandoned instances.
    autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name)


@adapts("autoscaling/group:Group")
class GroupAdapter(Adapter):
    name_property = "name"
    # Others scale a group as well; and a larger minimum raises what is desired by itself.
    sent_if_changed = ("desiredCapacity",)

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        name = inputs["name"]
        parameters = _parameters(aws, "CreateAutoScalingGroup", inputs)
        parameters.setdefault("DesiredCapacity", parameters["MinSize"])
        parameters["Tags"] = group_tags(name, as_list(inputs.get("tags")))
        aws.client("autoscaling").create_auto_scaling_group(**parameters)
        self._processes(aws, name, [], as_list(inputs.get("suspendedProcesses")))
        wait_for_capacity(aws, name)
        group = describe(aws, name) or {}
        return State(
            name,
            {
                "arn": group["AutoScalingGroupARN"],
                "availabilityZones": group["AvailabilityZones"],
                "desiredCapacity": inputs.get("desiredCapacity", group["DesiredCapacity"]),
            },
        )

    @staticmethod
    def _processes(aws: Aws, name: str, old: list[str], new: list[str]) -> None:
        """Suspend and resume a group's processes."""
        autoscaling = aws.client("autoscaling")
        resumed = [process for process in old if process not in new]
        suspended = [process for process in new if process not in old]
        if resumed:
            autoscaling.resume_processes(AutoScalingGroupName=name, ScalingProcesses=resumed)
        if suspended:
            autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=suspended)

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        autoscaling, name = aws.client("autoscaling"), existing.id
        self._processes(
            aws,
            name,
            as_list(existing.inputs.get("suspendedProcesses")),
            as_list(inputs.get("suspendedProcesses")),
        )
        settings = {*existing.inputs, *inputs} - {"tags", "tagsAll", "suspendedProcesses"}
        if has_changed(existing, inputs, *settings):
            sent = self.sent(existing, inputs)
            autoscaling.update_auto_scaling_group(
                **_parameters(aws, "UpdateAutoScalingGroup", sent)
            )
        old = group_tags(name, as_list(existing.inputs.get("tags")))
        new = group_tags(name, as_list(inputs.get("tags")))
        kept = {tag["Key"] for tag in new}
        gone = [tag for tag in old if tag["Key"] not in kept]
        fresh = [tag for tag in new if tag not in old]
        if gone:
            autoscaling.delete_tags(Tags=gone)
        if fresh:
            autoscaling.create_or_update_tags(Tags=fresh)
        return {}

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        group = describe(aws, existing.id)
        return None if group is None else {"desiredCapacity": group["DesiredCapacity"]}

    def delete(self, aws: Aws, existing: Existing) -> None:
        empty_and_delete(aws, existing.id)
