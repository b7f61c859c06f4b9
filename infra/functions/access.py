"""Lets a function into the cluster, and gives it the rights its definition names there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pulumi
import pulumi_aws as aws

from core.cluster.operated import Operated
from infra.functions.definition import Definition
from infra.functions.rbac import RbacGroup


@dataclass(frozen=True, kw_only=True)
class Names:
    """What a function's way in is called in Pulumi's state.

    What is called otherwise there is taken away and made again, and a function is shut out between.
    """

    type: str
    component: str
    entry: str = "entry"
    everywhere: str = "cluster-role"


NAMES: Mapping[str, Names] = {
    "tick": Names(
        type="stillwater:infra:HandlerAccess", component="handlers-access", entry="tick-entry"
    ),
    "sweep": Names(
        type="stillwater:infra:SweepAccess", component="sweep-access", everywhere="role"
    ),
    "rotate": Names(type="stillwater:infra:RotateAccess", component="rotate-access"),
    "volumes": Names(type="stillwater:infra:VolumesAccess", component="volumes-access"),
}


class FunctionAccess(pulumi.ComponentResource):
    """An access entry of EKS, and RBAC roles for the group behind it."""

    def __init__(
        self,
        definition: Definition,
        cluster: Operated,
        role: aws.iam.Role,
        *,
        below: str = "",
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        known = NAMES[definition.name]
        names = replace(known, component=f"{below}{known.component}")
        super().__init__(names.type, names.component, None, opts)
        grant(names, definition, cluster, role, parent=self)
        self.register_outputs({})


def grant(
    names: Names,
    definition: Definition,
    cluster: Operated,
    role: aws.iam.Role,
    *,
    parent: pulumi.Resource,
) -> None:
    """Make the entry and the roles of a function below a component."""
    if definition.kubernetes is None:
        return
    name, rights = names.component, definition.kubernetes(cluster)
    called = cluster.group(rights.group)
    group = RbacGroup(name=called, role=called.replace(":", "-"), parent=parent)
    for limit in rights.limits:
        group.limit(f"{name}-{limit.resource}-limit", limit)
    group.enter(f"{name}-{names.entry}", cluster.eks_cluster, role)
    if rights.everywhere:
        group.everywhere(f"{name}-{names.everywhere}", rights.everywhere)
    for short, (namespace, rules) in rights.elsewhere.items():
        group.inside(f"{name}-{short}", namespace, rules)
    if rights.inside:
        group.inside(f"{name}-role", cluster.namespace, rights.inside)
