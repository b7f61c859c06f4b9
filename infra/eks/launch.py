"""Builds launch templates, all alike: IMDSv2 only, encrypted root, tags on what they launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

ROOT_DEVICE = "/dev/xvda"
ROOT_SIZE_GIB = 50
# A pod is a second hop away: it would get its node's credentials, and with them other pods' tokens.
# What needs the service is on its node's network, or is given what it would ask for.
METADATA_HOP_LIMIT = 1
LAUNCHED = ("instance", "volume", "network-interface")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What one template adds; a managed node group fills in what is left out."""

    template_name: str
    tags: Mapping[str, str]
    image_id: pulumi.Input[str] | None = None
    instance_type: str | None = None
    instance_profile_arn: pulumi.Input[str] | None = None
    security_group_ids: Sequence[pulumi.Input[str]] | None = None
    user_data: pulumi.Input[str] | None = None
    # Of the root volume; None: the account's default key.
    encryption_key: pulumi.Input[str] | None = None


def launch_template(name: str, launch: Launch, parent: pulumi.Resource) -> aws.ec2.LaunchTemplate:
    """Create a launch template; what it launches carries the same tags as itself."""
    profile = (
        aws.ec2.LaunchTemplateIamInstanceProfileArgs(arn=launch.instance_profile_arn)
        if launch.instance_profile_arn is not None
        else None
    )
    return aws.ec2.LaunchTemplate(
        name,
        name=launch.template_name,
        update_default_version=True,
        image_id=launch.image_id,
        instance_type=launch.instance_type,
        iam_instance_profile=profile,
        vpc_security_group_ids=launch.security_group_ids,
        user_data=launch.user_data,
        ebs_optimized="true" if launch.instance_type else None,
        metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled",
            http_tokens="required",
            http_put_response_hop_limit=METADATA_HOP_LIMIT,
        ),
        block_device_mappings=[_encrypted_root(launch.encryption_key)],
        tag_specifications=[
            aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=dict(launch.tags))
            for kind in LAUNCHED
        ],
        tags=dict(launch.tags),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def _encrypted_root(key: pulumi.Input[str] | None) -> aws.ec2.LaunchTemplateBlockDeviceMappingArgs:
    return aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name=ROOT_DEVICE,
        ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            volume_type="gp3",
            volume_size=ROOT_SIZE_GIB,
            encrypted="true",
            kms_key_id=key,
            delete_on_termination="true",
        ),
    )
