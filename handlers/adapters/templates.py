"""What Kafka's instances were launched as, and what their groups would launch now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import boto3
from botocore.config import Config

from core.incidents.ownership import Ownership
from core.rotation.outdated import Build, Launched
from handlers.adapters.aws import described_groups

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.type_defs import AutoScalingGroupTypeDef

_CLIENT = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard"})


class Templates(Protocol):
    """What λ rotate asks of launch templates."""

    def launched(self, whose: Ownership) -> Mapping[str, Launched]:
        """Return every instance of a cluster's groups; others have no template."""


class AwsTemplates:
    """Launch templates through boto3."""

    def __init__(self, region: str) -> None:
        self._ec2 = boto3.client("ec2", region_name=region, config=_CLIENT)
        self._groups = boto3.client("autoscaling", region_name=region, config=_CLIENT)

    def launched(self, whose: Ownership) -> Mapping[str, Launched]:
        pages = self._groups.get_paginator("describe_auto_scaling_groups")
        groups = described_groups(pages, whose)
        images = self._images(i["InstanceId"] for g in groups for i in g.get("Instances", []))
        found: dict[str, Launched] = {}
        for group in groups:
            wanted = self._wanted(group)
            for instance in group.get("Instances", []):
                template = instance.get("LaunchTemplate")
                if wanted is None or template is None:
                    continue
                present = Build(
                    template_id=template.get("LaunchTemplateId"),
                    template_version=template.get("Version"),
                    image_id=images.get(instance["InstanceId"]),
                    instance_type=instance.get("InstanceType"),
                )
                found[instance["InstanceId"]] = Launched(present, wanted)
        return found

    def _wanted(self, group: AutoScalingGroupTypeDef) -> Build | None:
        named: Mapping[str, Any] | None = group.get("LaunchTemplate")
        if not named or "LaunchTemplateId" not in named:
            return None
        answer = self._ec2.describe_launch_template_versions(
            LaunchTemplateId=named["LaunchTemplateId"],
            Versions=[named.get("Version") or "$Default"],
        )
        version = answer["LaunchTemplateVersions"][0]
        data = version.get("LaunchTemplateData", {})
        return Build(
            template_id=named["LaunchTemplateId"],
            template_version=str(version["VersionNumber"]),
            image_id=data.get("ImageId"),
            instance_type=data.get("InstanceType"),
        )

    def _images(self, instance_ids: Iterable[str]) -> dict[str, str]:
        ids = sorted(instance_ids)
        if not ids:
            return {}
        pages = self._ec2.get_paginator("describe_instances").paginate(
            Filters=[{"Name": "instance-id", "Values": ids}]
        )
        return {
            instance["InstanceId"]: instance["ImageId"]
            for page in pages
            for reservation in page["Reservations"]
            for instance in reservation.get("Instances", [])
            if "ImageId" in instance
        }
