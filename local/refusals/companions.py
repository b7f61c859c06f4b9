"""Checks resources against others they belong to: add-ons, entries, policies, listeners' groups."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from local.refusals.fields import values
from local.refusals.limits import KIB, LAMBDA_QUOTAS
from local.refusals.pairs import (
    OLDER,
    minor,
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
