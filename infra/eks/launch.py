"""Turns an EC2 instance into a node: image, nodeadm user data, and a launch template around them.

The labels and taints a node registers with, and how long its kubelet holds a shutdown back, are
written here alone. Launch templates are all alike: IMDSv2 only, an encrypted root, tags on what
they launch.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from core.timing import FACTS

# Graviton families carry a g behind their generation: m7g, c7gn, im4gn, t4g; a1 came before them.
_ARM = re.compile(r"^([a-z]+\d+g[a-z]*|a1)\.")
# What the kubelet keeps for node-critical pods (CSI, CNI) after the others are gone.
CRITICAL_PODS_GRACE_SECONDS = FACTS["critical_pods_shutdown_seconds"]
_BOUNDARY = "//"


def is_arm(instance_type: str) -> bool:
    """Say whether an instance type has a Graviton processor.

    >>> [is_arm(t) for t in ("m7g.large", "im4gn.xlarge", "g5.xlarge", "m7i.large")]
    [True, True, False, False]
    """
    return _ARM.match(instance_type) is not None


def managed_ami_type(instance_type: str) -> str:
    """Return the AMI type of a managed node group of this instance type."""
    return "AL2023_ARM_64_STANDARD" if is_arm(instance_type) else "AL2023_x86_64_STANDARD"


def image_id(
    kubernetes_version: str, instance_type: str, opts: pulumi.InvokeOptions
) -> pulumi.Output[str]:
    """Return the EKS-optimised Amazon Linux 2023 image AWS recommends now.

    It is read once per `pulumi up` and written into the launch template, so that two replacements
    between two runs come from the same image.
    """
    processor = "arm64" if is_arm(instance_type) else "x86_64"
    name = (
        f"/aws/service/eks/optimized-ami/{kubernetes_version}/amazon-linux-2023/"
        f"{processor}/standard/recommended/image_id"
    )
    found = aws.ssm.get_parameter_output(name=name, opts=opts)
    # Image ids are public; AWS's provider marks every parameter secret.
    return pulumi.Output.unsecret(found.value)


@dataclass(frozen=True, kw_only=True)
class ClusterAccess:
    """What an instance must know to join."""

    name: str
    endpoint: pulumi.Input[str]
    ca: pulumi.Input[str]  # base64 PEM
    service_cidr: pulumi.Input[str]


def user_data(
    cluster: ClusterAccess,
    *,
    labels: Mapping[str, str],
    taints: Sequence[str],
    node_shutdown_seconds: int,
) -> pulumi.Output[str]:
    """Return base64 user data with one nodeadm NodeConfig, as AL2023 nodes expect it."""
    kubelet = {
        "config": kubelet_config(node_shutdown_seconds),
        "flags": _flags(labels, taints),
    }
    return pulumi.Output.all(
        endpoint=cluster.endpoint, ca=cluster.ca, service_cidr=cluster.service_cidr
    ).apply(
        lambda known: base64.b64encode(
            multipart(
                {
                    "cluster": {
                        "name": cluster.name,
                        "apiServerEndpoint": known["endpoint"],
                        "certificateAuthority": known["ca"],
                        "cidr": known["service_cidr"],
                    },
                    "kubelet": kubelet,
                }
            ).encode()
        ).decode()
    )


def kubelet_config(node_shutdown_seconds: int) -> dict[str, str]:
    """Return how long the kubelet holds a shutdown back.

    core.timing sees to it that a broker's own grace fits in; without this, systemd stops the node
    under its pods.
    """
    return {
        "shutdownGracePeriod": f"{node_shutdown_seconds}s",
        "shutdownGracePeriodCriticalPods": f"{CRITICAL_PODS_GRACE_SECONDS}s",
    }


def _flags(labels: Mapping[str, str], taints: Sequence[str]) -> list[str]:
    flags = ["--node-labels=" + ",".join(f"{k}={v}" for k, v in sorted(labels.items()))]
    if taints:
        flags.append("--register-with-taints=" + ",".join(taints))
    return flags


def multipart(spec: Mapping[str, Any]) -> str:
    """Return MIME user data with one nodeadm NodeConfig."""
    node_config = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": dict(spec)}
    # JSON is YAML, and unlike a YAML library's output it never changes between versions: a changed
    # byte here is a new launch template version.
    return (
        f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{_BOUNDARY}"\n\n'
        f"--{_BOUNDARY}\nContent-Type: application/node.eks.aws\n\n"
        f"{json.dumps(node_config, indent=2)}\n\n--{_BOUNDARY}--\n"
    )


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
