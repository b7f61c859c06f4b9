"""Checks resources against others they belong to: add-ons, entries, policies, listeners' groups."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from local.refusals.attachments import POLICIES_OF_A_ROLE
from local.refusals.fields import values
from local.refusals.limits import IAM_QUOTAS, KIB, LAMBDA_QUOTAS
from local.refusals.pairs import (
    OLDER,
    groups_of_a_listener,
    minor,
    name_of_a_group,
    versions_of_clusters,
)
from local.refusals.refusal import Refusal, Wanted
from local.refusals.together import about, limit, of, resources_by_name

_EKS = "https://docs.aws.amazon.com/eks/latest/userguide/"
_ELB = "https://docs.aws.amazon.com/elasticloadbalancing/latest/network/"


@limit(f"{_EKS}managing-kube-proxy.html")
def versions_of_kube_proxy(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """No newer than its cluster, and three minor versions older at most."""
    versions = versions_of_clusters(everything)
    for each in of(everything, "eks/addon:Addon"):
        own = versions.get(str(each.inputs.get("clusterName")))
        found = re.match(r"v(1\.\d+)\.", str(each.inputs.get("addonVersion") or ""))
        if each.inputs.get("addonName") != "kube-proxy" or not own or not found:
            continue
        if not 0 <= minor(own) - minor(found[1]) <= OLDER:
            message = f"Addon version specified is not supported: kube-proxy {found[1]} beside "
            message += f"Kubernetes {own}"
            yield about(each, "CreateAddon", "InvalidParameterException", message, "addonVersion")


@limit(f"{_EKS}access-policies.html")
def policies_of_entries(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """Access policies are for entries of people and programs; nodes' entries have their own."""
    kinds = {
        (e.inputs.get("clusterName"), e.inputs.get("principalArn")): e.inputs.get("type")
        for e in of(everything, "eks/accessEntry:AccessEntry")
    }
    for each in of(everything, "eks/accessPolicyAssociation:AccessPolicyAssociation"):
        kind = kinds.get((each.inputs.get("clusterName"), each.inputs.get("principalArn")))
        if kind in {"EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "HYBRID_LINUX"}:
            message = f"Access policies cannot be associated with access entries of type {kind}"
            code, at = "InvalidRequestException", "principalArn"
            yield about(each, "AssociateAccessPolicy", code, message, at)


@limit(f"{_EKS}setting-up-access-entries.html")
def entries_of_a_cluster(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """Access entries are of clusters that look at them."""
    clusters = resources_by_name(everything, "eks/cluster:Cluster")
    for token, operation in (
        ("eks/accessEntry:AccessEntry", "CreateAccessEntry"),
        ("eks/accessPolicyAssociation:AccessPolicyAssociation", "AssociateAccessPolicy"),
    ):
        for each in of(everything, token):
            cluster = clusters.get(str(each.inputs.get("clusterName")))
            modes = values(cluster.inputs, "accessConfig.authenticationMode") if cluster else []
            if modes == ["CONFIG_MAP"]:
                message = "The cluster's authentication mode must be set to one of [API, "
                message += "API_AND_CONFIG_MAP] to perform this operation."
                yield about(each, operation, "InvalidRequestException", message, "clusterName")


@limit("https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_AssociateAddress.html")
def addresses_used_once(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """An Elastic IP address is of one gateway, or of one zone of one balancer."""
    seen = set()
    for token, path, operation in (
        ("ec2/natGateway:NatGateway", "allocationId", "CreateNatGateway"),
        ("lb/loadBalancer:LoadBalancer", "subnetMappings.*.allocationId", "CreateLoadBalancer"),
    ):
        for each in of(everything, token):
            for address in map(str, values(each.inputs, path)):
                # Of two gateways `names_that_exist` says it.
                if address in seen and operation == "CreateLoadBalancer":
                    message = f"Elastic IP address [{address}] is already associated"
                    code, at = "ResourceInUse", "subnetMappings"
                    yield about(each, operation, code, message, at)
                seen.add(address)


# Lambda developer guide, "Lambda quotas": a function's resource-based policy.
POLICY_OF_A_FUNCTION = 20 * KIB
# What a statement has beside what its permission says: its ARN, and the words of the policy.
_OF_A_STATEMENT = 200


@limit(LAMBDA_QUOTAS)
def permissions_of_a_function(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """20 KB of them all."""
    sizes: dict[str, int] = defaultdict(int)
    for each in of(everything, "lambda/permission:Permission"):
        function = str(each.inputs.get("function")).rpartition(":function:")[2]
        before = sizes[function]
        sizes[function] += _OF_A_STATEMENT + sum(len(str(e)) for e in each.inputs.values())
        if before <= POLICY_OF_A_FUNCTION < sizes[function]:
            message = f"The final policy size is bigger than the limit ({POLICY_OF_A_FUNCTION})."
            yield about(each, "AddPermission", "PolicyLengthExceededException", message)


@limit(IAM_QUOTAS)
def policies_of_a_role(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """Ten managed policies, those that a role lists and those attached beside it."""
    attached: dict[str, set[str]] = defaultdict(set)
    for role in of(everything, "iam/role:Role"):
        attached[str(role.inputs.get("name"))] |= set(values(role.inputs, "managedPolicyArns.*"))
    listed = {name: len(arns) for name, arns in attached.items()}
    for each in of(everything, "iam/rolePolicyAttachment:RolePolicyAttachment"):
        role_name = str(each.inputs.get("role"))
        attached[role_name].add(str(each.inputs.get("policyArn")))
        # Without a list `counts_on_one_parent` says it.
        if listed.get(role_name) and len(attached[role_name]) == POLICIES_OF_A_ROLE + 1:
            message = f"Cannot exceed quota for PoliciesPerRole: {POLICIES_OF_A_ROLE}"
            yield about(each, "AttachRolePolicy", "LimitExceeded", message, "role")


@limit(f"{_ELB}edit-target-group-attributes.html")
def stickiness_under_tls(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A listener that ends TLS keeps no client at its target."""
    groups = resources_by_name(everything, "lb/targetGroup:TargetGroup")
    for each in of(everything, "lb/listener:Listener"):
        for arn in groups_of_a_listener(each) if each.inputs.get("protocol") == "TLS" else ():
            group = groups.get(name_of_a_group(arn))
            stickiness = (group.inputs.get("stickiness") if group else None) or {}
            if stickiness.get("enabled", bool(stickiness)):
                message = "Stickiness is not supported with TLS listeners and TLS target groups"
                code, at = "InvalidConfigurationRequest", "defaultActions"
                yield about(each, "CreateListener", code, message, at)
