"""IAM documents: who may assume a role, and exactly what it may do.

Statements name every action; `*` as a resource stands only where the API takes none, with the
reason beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pulumi
import pulumi_aws as aws

POLICY_VERSION = "2012-10-17"
# Describe and List calls that IAM cannot narrow to a resource.
ANY_RESOURCE: tuple[str, ...] = ("*",)
# No page of AWS's says that these name an account when they assume a role. They take roles of
# their caller's account alone.
NAMES_NO_ACCOUNT = {"ec2.amazonaws.com", "lambda.amazonaws.com"}
POD_ACTIONS = ("sts:AssumeRole", "sts:TagSession")
# Where the pods run that have a role.
POD_NAMESPACE = "kube-system"


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One permission or denial: these actions, on these resources, under these conditions."""

    sid: str
    actions: Sequence[str]
    resources: Sequence[pulumi.Input[str]]
    conditions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    effect: Literal["Allow", "Deny"] = "Allow"

    def render(self) -> dict[str, Any]:
        statement: dict[str, Any] = {
            "Sid": self.sid,
            "Effect": self.effect,
            "Action": sorted(self.actions),
            "Resource": list(self.resources),
        }
        if self.conditions:
            statement["Condition"] = {key: dict(value) for key, value in self.conditions.items()}
        return statement


@dataclass(frozen=True, kw_only=True)
class Account:
    """The account and region the program runs in, for ARNs of what another layer creates."""

    partition: str
    region: str
    account_id: str

    @classmethod
    def current(cls, opts: pulumi.InvokeOptions, region: str | None = None) -> Account:
        """Return those of the provider that is asked; its region, unless one is given."""
        return cls(
            partition=aws.get_partition(opts=opts).partition,
            region=region or aws.get_region(opts=opts).region,
            account_id=aws.get_caller_identity(opts=opts).account_id,
        )

    def arn(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account_id}:{resource}"

    def global_arn(self, service: str, resource: str) -> str:
        """Return an ARN of a service without regions: IAM."""
        return f"arn:{self.partition}:{service}::{self.account_id}:{resource}"

    def queue_url(self, name: str) -> str:
        """Return the URL of a queue that another layer creates."""
        suffix = "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com"
        return f"https://sqs.{self.region}.{suffix}/{self.account_id}/{name}"

    def our_roles(self, prefix: str) -> str:
        """Return the pattern of the roles that the stacks of a cluster make."""
        return self.global_arn("iam", f"role/{prefix}-*")

    def group_arn(self, group_name: str) -> str:
        """Return the ARN of an Auto Scaling group by name.

        AWS puts a random id before the name; a group that is replaced keeps its permissions.
        """
        return self.arn("autoscaling", f"autoScalingGroup:*:autoScalingGroupName/{group_name}")


def look(*actions: str) -> Statement:
    """Return the right to calls that take no resource: Describe, List, metrics' data."""
    return Statement(sid="LookAround", actions=actions, resources=ANY_RESOURCE)


def document(statements: Sequence[Mapping[str, Any]]) -> pulumi.Output[str]:
    return pulumi.Output.json_dumps({"Version": POLICY_VERSION, "Statement": list(statements)})


def only_over_tls(action: str, resources: Sequence[pulumi.Input[str]]) -> dict[str, Any]:
    """Return the statement that denies every request made without TLS."""
    return {
        "Sid": "OnlyOverTls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": action,
        "Resource": list(resources),
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


def trust(
    service: str,
    parent: pulumi.Resource,
    *,
    source: str | None = None,
    tags: Mapping[str, pulumi.Input[str]] | None = None,
    actions: str | Sequence[str] = "sts:AssumeRole",
) -> pulumi.Output[str]:
    """Return the trust policy of an AWS service, which acts for this account alone.

    `source` is the service's resource for which it may act, `tags` those of the session it makes.
    """
    statement: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": actions,
    }
    if service not in NAMES_NO_ACCOUNT:
        account = Account.current(pulumi.InvokeOptions(parent=parent))
        equal: dict[str, pulumi.Input[str]] = {"aws:SourceAccount": account.account_id}
        equal |= {f"aws:RequestTag/{key}": value for key, value in (tags or {}).items()}
        statement["Condition"] = {"StringEquals": equal}
        if source is not None:
            arn = account.arn(service.partition(".")[0], source)
            statement["Condition"]["ArnLike"] = {"aws:SourceArn": arn}
    return document([statement])


def allow(
    name: str, role: aws.iam.Role, statements: Sequence[Statement], parent: pulumi.Resource
) -> aws.iam.RolePolicy:
    """Let a role do what these statements say, as a policy of its own."""
    return aws.iam.RolePolicy(
        name,
        role=role.name,
        policy=document([statement.render() for statement in statements]),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def managed_policy(name: str, parent: pulumi.Resource) -> str:
    """Return the ARN of one of AWS's own policies, in the partition of the parent's provider."""
    opts = pulumi.InvokeOptions(parent=parent)
    return f"arn:{aws.get_partition(opts=opts).partition}:iam::aws:policy/{name}"


def service_role(
    name: str,
    *,
    role_name: str,
    service: str,
    managed_policies: Mapping[str, str],
    parent: pulumi.Resource,
    source: str | None = None,
) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
    """Create a role for an AWS service with AWS's own policies, keyed by a short name.

    The attachments are returned because what uses the role must wait for them: EKS, for one,
    leaks network interfaces when its role loses its policies first.
    """
    opts = pulumi.ResourceOptions(parent=parent)
    trusted = trust(service, parent, source=source)
    role = aws.iam.Role(name, name=role_name, assume_role_policy=trusted, opts=opts)
    attachments: list[pulumi.Resource] = [
        aws.iam.RolePolicyAttachment(
            f"{name}-{key}",
            role=role.name,
            policy_arn=managed_policy(policy_name, parent),
            opts=opts,
        )
        for key, policy_name in managed_policies.items()
    ]
    return role, attachments


def entry_options(role: aws.iam.Role, parent: pulumi.Resource) -> pulumi.ResourceOptions:
    """Replace an access entry together with its role.

    EKS keeps the role's unique id. A role that is made again has another one, under the same ARN.
    EKS takes no second entry for one ARN, so the old entry goes first. A state from before this
    option has no id: the engine notes it and replaces nothing.
    """
    return pulumi.ResourceOptions(
        parent=parent, replacement_trigger=role.unique_id, delete_before_replace=True
    )


def pod_role(
    name: str,
    *,
    role_name: str,
    eks_cluster: pulumi.Input[str],
    service_account: str,
    parent: pulumi.Resource,
) -> tuple[aws.iam.Role, aws.eks.PodIdentityAssociation]:
    """Create a role that the pods of one service account assume through EKS Pod Identity.

    An association that somebody makes for another account's pods does not get the role's sessions:
    Pod Identity tags each with where its pod runs (Amazon EKS, "Create IAM role with trust policy
    required by EKS Pod Identity").
    """
    opts = pulumi.ResourceOptions(parent=parent)
    tags = {
        "eks-cluster-name": eks_cluster,
        "kubernetes-namespace": POD_NAMESPACE,
        "kubernetes-service-account": service_account,
    }
    trusted = trust("pods.eks.amazonaws.com", parent, tags=tags, actions=POD_ACTIONS)
    role = aws.iam.Role(name, name=role_name, assume_role_policy=trusted, opts=opts)
    association = aws.eks.PodIdentityAssociation(
        f"{name}-association",
        cluster_name=eks_cluster,
        namespace=POD_NAMESPACE,
        service_account=service_account,
        role_arn=role.arn,
        opts=opts,
    )
    return role, association


def controller_role(
    name: str,
    *,
    role_name: str,
    eks_cluster: str,
    service_account: str,
    statements: Sequence[Statement],
    parent: pulumi.Resource,
) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
    """Create the role of a controller's pods with its rights, and return what they wait for.

    Pods get credentials when they start, so association and policy come first.
    """
    role, association = pod_role(
        f"{name}-role",
        role_name=role_name,
        eks_cluster=eks_cluster,
        service_account=service_account,
        parent=parent,
    )
    return role, [association, allow(f"{name}-policy", role, statements, parent)]
