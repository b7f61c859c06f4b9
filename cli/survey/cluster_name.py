"""Finds what EKS calls a cluster, by the tags of its machines or by the context that names it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from core.survey.node_facts import Instance, ScalingGroup

# Tags of groups and machines by which the EKS cluster's name is known: in the key, or the value.
OWNED = "kubernetes.io/cluster/"
CLUSTER_NAMES = ("eks:cluster-name", "eks:eks-cluster-name", "aws:eks:cluster-name")
ARN = re.compile(r"arn:aws[a-z-]*:eks:[a-z0-9-]+:\d{12}:cluster/(\S+)")


def eks_cluster(
    groups: Iterable[ScalingGroup], machines: Iterable[Instance], context: str
) -> str | None:
    """Return the one name that tags have, else that of a context that is the cluster's ARN."""
    every = [*(group.tags or {} for group in groups), *(machine.tags for machine in machines)]
    named = {tags[key] for tags in every for key in CLUSTER_NAMES if key in tags} | {
        key.removeprefix(OWNED) for tags in every for key in tags if key.startswith(OWNED)
    }
    if len(named) == 1:
        return named.pop()
    found = ARN.fullmatch(context)
    return found[1] if found else None
