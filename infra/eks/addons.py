"""EKS add-ons: their versions, what they are told, and which AWS role their pods get.

Nodes join only once the network plugin is there; the other add-ons need a node to run on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from core.cluster import ClusterSpec
from core.cluster.limits import NODE_MONITORING
from infra import encryption, iam
from infra.eks.addon_versions import version
from infra.tags import cluster_tags
from infra.versions import ADDONS

VOLUME_DRIVER, NETWORK_PLUGIN = "aws-ebs-csi-driver", "vpc-cni"
BEFORE_NODES = (NETWORK_PLUGIN, "kube-proxy", "eks-pod-identity-agent")
# The agent writes what is wrong with a machine on its Node (core.incidents.sweep).
AFTER_NODES = ("coredns", VOLUME_DRIVER, "snapshot-controller", NODE_MONITORING)


@dataclass(frozen=True, slots=True)
class PodRole:
    """The AWS rights of an add-on's pods, by Pod Identity: nodes have none of them."""

    short_name: str
    service_account: str
    managed_policy: str


POD_ROLES = {
    NETWORK_PLUGIN: PodRole("vpc-cni", "aws-node", "AmazonEKS_CNI_Policy"),
    # V2 touches volumes alone that carry the driver's own tag.
    VOLUME_DRIVER: PodRole("ebs-csi", "ebs-csi-controller-sa", "AmazonEBSCSIDriverPolicyV2"),
}


def addon_names(*, node_monitoring: bool) -> tuple[str, ...]:
    """Return the add-ons of a cluster, by name."""
    return tuple(addon for addon in ADDONS if node_monitoring or addon != NODE_MONITORING)


def configuration(addon: str, region: str, volume_tags: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what an add-on is told beyond its defaults."""
    if addon == NETWORK_PLUGIN:
        # Without it NetworkPolicies are objects that nothing enforces.
        return {"enableNetworkPolicy": "true"}
    if addon != VOLUME_DRIVER:
        return None
    return {
        "controller": {
            # Whatever class a volume comes from, it is found and billed as this cluster's.
            "extraVolumeTags": dict(sorted(volume_tags.items())),
            # Given, since no pod reaches the metadata service.
            "region": region,
        },
        "node": {
            # Says whether a volume or its instance is the limit: seconds of exceeded IOPS, bytes.
            "enableMetrics": True,
            # The metadata service alone knows how many attachments a node has left.
            "hostNetwork": True,
        },
    }


def install(
    name: str,
    addon: str,
    spec: ClusterSpec,
    cluster: aws.eks.Cluster,
    after: Sequence[pulumi.Resource],
    parent: pulumi.Resource,
) -> aws.eks.Addon:
    """Create an add-on, and before it the role of its pods: they get credentials as they start."""
    told = configuration(addon, spec.region, cluster_tags(spec).everywhere)
    return aws.eks.Addon(
        f"{name}-addon-{addon}",
        cluster_name=cluster.name,
        addon_name=addon,
        addon_version=version(addon, spec.kubernetes.addon_versions),
        configuration_values=None if told is None else json.dumps(told, sort_keys=True),
        resolve_conflicts_on_create="OVERWRITE",
        resolve_conflicts_on_update="OVERWRITE",
        opts=pulumi.ResourceOptions(
            parent=parent, depends_on=[*after, *_pod_role(name, addon, spec, cluster, parent)]
        ),
    )


def _pod_role(
    name: str, addon: str, spec: ClusterSpec, cluster: aws.eks.Cluster, parent: pulumi.Resource
) -> list[pulumi.Resource]:
    needed = POD_ROLES.get(addon)
    if needed is None:
        return []
    role, association = iam.pod_role(
        f"{name}-{needed.short_name}",
        role_name=f"{spec.prefix}-{needed.short_name}",
        eks_cluster=cluster.name,
        service_account=needed.service_account,
        parent=parent,
    )
    policy = aws.iam.RolePolicyAttachment(
        f"{name}-{needed.short_name}-policy",
        role=role.name,
        policy_arn=iam.managed_policy(needed.managed_policy, parent),
        opts=pulumi.ResourceOptions(parent=parent),
    )
    may_encrypt = (
        encryption.grant(f"{name}-{needed.short_name}-grant", spec.encryption_key, role.arn, parent)
        if addon == VOLUME_DRIVER
        else []
    )
    return [association, policy, *may_encrypt]
