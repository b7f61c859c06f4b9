"""Reads what Kafka's instances were launched as and their groups would launch; replaces roots.

EC2's task to replace a root volume stands under the key of an incident.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import boto3
from botocore.exceptions import ClientError

from core.ground.naming import INCIDENT_TAG
from core.incidents.observation import Ownership, RootTask
from core.rotation.plan import ROOT_DEVICE, Build, Launched
from handlers.adapters.aws import described_groups
from handlers.adapters.calls import CLIENT, MOST_FILTERED, known_shape, portions

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.type_defs import AutoScalingGroupTypeDef
    from mypy_boto3_autoscaling.type_defs import InstanceTypeDef as InstanceOfGroupTypeDef
    from mypy_boto3_ec2.type_defs import (
        InstanceTypeDef,
        LaunchTemplateVersionTypeDef,
        ReplaceRootVolumeTaskTypeDef,
    )

# Versions by template and number, each asked for once.
_Known: TypeAlias = "dict[tuple[str, str], LaunchTemplateVersionTypeDef | None]"
# On the groups that EKS makes for its managed node groups.
MANAGED_TAG = "eks:nodegroup-name"


class AwsTemplates:
    """Launch templates through boto3."""

    def __init__(self, region: str) -> None:
        self._ec2 = boto3.client("ec2", region_name=region, config=CLIENT)
        self._groups = boto3.client("autoscaling", region_name=region, config=CLIENT)

    @known_shape("EC2")
    def launched_instances(self, whose: Ownership) -> Mapping[str, Launched]:
        """Return every instance of a cluster's groups whose launch can be compared at all."""
        pages = self._groups.get_paginator("describe_auto_scaling_groups")
        groups = tuple(described_groups(pages, whose))
        running = self._running(i["InstanceId"] for g in groups for i in g.get("Instances", []))
        known: _Known = {}
        pairs = [
            (group, instance, would)
            for group in groups
            for instance in group.get("Instances", [])
            if (would := self._wanted_build(group, instance.get("InstanceType"), known)) is not None
        ]
        traits = self._traits(would.image_id for *_, would in pairs)
        return {
            instance["InstanceId"]: Launched(
                self._present_build(instance, running.get(instance["InstanceId"]), known),
                replace(would, traits=traits.get(would.image_id or "")),
                managed=any(tag.get("Key") == MANAGED_TAG for tag in group.get("Tags", [])),
            )
            for group, instance, would in pairs
        }

    def _present_build(
        self, instance: InstanceOfGroupTypeDef, runs: InstanceTypeDef | None, known: _Known
    ) -> Build:
        template = instance.get("LaunchTemplate", {})
        template_id, version = template.get("LaunchTemplateId"), template.get("Version")
        return Build(
            template_id=template_id,
            template_version=version,
            # One that is deleted is named no more.
            configuration=instance.get("LaunchConfigurationName"),
            image_id=None if runs is None else runs.get("ImageId"),
            instance_type=instance.get("InstanceType"),
            beyond_image=self._launched_with(template_id, version, known),
            traits=None if runs is None else _traits_of(runs),
        )

    def _wanted_build(
        self, group: AutoScalingGroupTypeDef, instance_type: str | None, known: _Known
    ) -> Build | None:
        """Return what a group would launch in an instance's place; None: that cannot be read."""
        if "LaunchConfigurationName" in group:
            return Build(configuration=group["LaunchConfigurationName"])
        mixed = group.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
        types = mixed.get("Overrides") or ()
        own: Mapping[str, Any] = next(
            (each for each in types if each.get("InstanceType") == instance_type), {}
        )
        named: Mapping[str, Any] | None = (
            own.get("LaunchTemplateSpecification")
            or mixed.get("LaunchTemplateSpecification")
            or group.get("LaunchTemplate")
        )
        if not named or "LaunchTemplateId" not in named:
            return None
        version = self._version(
            named["LaunchTemplateId"], named.get("Version") or "$Default", known
        )
        if version is None:
            return None
        data = version.get("LaunchTemplateData", {})
        return Build(
            template_id=named["LaunchTemplateId"],
            template_version=str(version["VersionNumber"]),
            image_id=data.get("ImageId"),
            # Of several types a group takes any.
            instance_type=None if types else data.get("InstanceType"),
            beyond_image=_beyond_image(data),
        )

    def _launched_with(
        self, template_id: str | None, version: str | None, known: _Known
    ) -> Mapping[str, str] | None:
        """Return what a version says beyond its image; None where it cannot be read any more."""
        if template_id is None or version is None:
            return None
        try:
            found = self._version(template_id, version, known)
        except ClientError as error:
            if not error.response["Error"]["Code"].startswith("InvalidLaunchTemplate"):
                raise
            known[template_id, version] = found = None
        return None if found is None else _beyond_image(found.get("LaunchTemplateData", {}))

    def _version(
        self, template_id: str, version: str, known: _Known
    ) -> LaunchTemplateVersionTypeDef | None:
        """Return a version, asked for once; None: it was deleted."""
        key = (template_id, version)
        if key not in known:
            answer = self._ec2.describe_launch_template_versions(
                LaunchTemplateId=template_id, Versions=[version]
            )
            found = answer["LaunchTemplateVersions"]
            known[key] = found[0] if found else None
        return known[key]

    def _running(self, instance_ids: Iterable[str]) -> dict[str, InstanceTypeDef]:
        pages = self._ec2.get_paginator("describe_instances")
        return {
            instance["InstanceId"]: instance
            for some in portions(instance_ids, MOST_FILTERED)
            for page in pages.paginate(Filters=[{"Name": "instance-id", "Values": some}])
            for reservation in page["Reservations"]
            for instance in reservation.get("Instances", [])
        }

    def _traits(self, image_ids: Iterable[str | None]) -> dict[str, dict[str, str]]:
        """Return what is known of images; one that is gone, or not ours to see, is not in it."""
        pages = self._ec2.get_paginator("describe_images")
        return {
            image["ImageId"]: _traits_of(image)
            for some in portions(sorted({id_ for id_ in image_ids if id_}), MOST_FILTERED)
            for page in pages.paginate(Filters=[{"Name": "image-id", "Values": some}])
            for image in page["Images"]
        }


def _beyond_image(data: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: json.dumps(value, sort_keys=True, default=str)
        for name, value in data.items()
        if name != "ImageId"
    }


def _traits_of(described: Mapping[str, Any]) -> dict[str, str]:
    """Return what EC2 compares of an instance and an image, which it describes alike."""
    codes = [str(code.get("ProductCodeId")) for code in described.get("ProductCodes") or ()]
    return {
        ROOT_DEVICE: described.get("RootDeviceType") or "",
        "architecture": described.get("Architecture") or "",
        "virtualization": described.get("VirtualizationType") or "",
        "platform": "Windows" if described.get("Platform") == "windows" else "Linux",
        "product code": ", ".join(sorted(codes)) or "none",
    }


# EC2's codes for a request that would be granted, for those that another attempt may be granted,
# and for one that it is carrying out already.
_GRANTED = "DryRunOperation"
_PASSING = frozenset(
    {"RequestLimitExceeded", "Throttling", "ThrottlingException", "InternalError", "Unavailable"}
)
_UNDER_WAY = "IncorrectState"


class RootVolumes:
    """EC2's tasks that replace root volumes."""

    def __init__(self, region: str) -> None:
        self._ec2 = boto3.client("ec2", region_name=region, config=CLIENT)

    @known_shape("EC2")
    def task_of(self, instance_id: str, incident_id: str) -> RootTask | None:
        """Return the newest task that was begun for an incident."""
        pages = self._ec2.get_paginator("describe_replace_root_volume_tasks").paginate(
            Filters=[{"Name": "instance-id", "Values": [instance_id]}]
        )
        ours = [
            task
            for page in pages
            for task in page["ReplaceRootVolumeTasks"]
            if _incident_of(task) == incident_id
        ]
        ours.sort(key=lambda task: str(task.get("StartTime", "")))
        newest = ours[-1] if ours else None
        if newest is None:
            return None
        return RootTask(newest["ReplaceRootVolumeTaskId"], newest["TaskState"])

    def replace(
        self, instance_id: str, image_id: str, incident_id: str, *, trial: bool
    ) -> str | None:
        """Have a root volume replaced, once for an incident; return why it is refused.

        `trial` only asks whether it would be. Raises ClientError for what another attempt may mend.
        """
        try:
            self._ec2.create_replace_root_volume_task(
                InstanceId=instance_id,
                ImageId=image_id,
                DeleteReplacedRootVolume=True,
                # The same request under the same key is the same task.
                ClientToken=incident_id,
                DryRun=trial,
                TagSpecifications=[
                    {
                        "ResourceType": "replace-root-volume-task",
                        "Tags": [{"Key": INCIDENT_TAG, "Value": incident_id}],
                    }
                ],
            )
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == _GRANTED:
                return None
            if code in _PASSING or (code == _UNDER_WAY and not trial):
                raise
            return f"{code}: {error.response['Error']['Message']}"
        return None


def _incident_of(task: ReplaceRootVolumeTaskTypeDef) -> str | None:
    tags = task.get("Tags", [])
    return next((tag.get("Value") for tag in tags if tag.get("Key") == INCIDENT_TAG), None)
