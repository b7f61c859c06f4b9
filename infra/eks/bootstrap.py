"""Turns an EC2 instance into a node: its image, its processor, its nodeadm user data.

The labels and taints a node registers with, and how long its kubelet holds a shutdown back, are
written here and nowhere else.
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
