"""Gives a Kafka node its role in AWS, and its right to join the cluster."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from infra import iam
from infra.eks.cluster import NODE_POLICIES


def role_name(prefix: str) -> str:
    """Return the name of the nodes' role and of its instance profile."""
    return f"{prefix}-nodes"


def node_identity(
    name: str, *, prefix: str, eks_cluster: str, parent: pulumi.Resource
) -> tuple[aws.iam.InstanceProfile, list[pulumi.Resource]]:
    """Create the instance profile of Kafka's nodes; return what must be there before the first."""
    child = pulumi.ResourceOptions(parent=parent)
    role, attachments = iam.service_role(
        f"{name}-role",
        role_name=role_name(prefix),
        service="ec2.amazonaws.com",
        managed_policies=NODE_POLICIES,
        parent=parent,
    )
    profile = aws.iam.InstanceProfile(
        f"{name}-profile", name=role_name(prefix), role=role.name, opts=child
    )
    # EKS writes the entries of managed node groups itself, never those of our own groups.
    entry = aws.eks.AccessEntry(
        f"{name}-access",
        cluster_name=eks_cluster,
        principal_arn=role.arn,
        type="EC2_LINUX",
        opts=iam.entry_options(role, parent),
    )
    return profile, [*attachments, entry]
