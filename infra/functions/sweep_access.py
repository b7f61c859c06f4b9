"""What the sweep may do inside the cluster: see which Nodes there are, and nothing else.

Its group is its own: what the tick is allowed to change, the sweep has no use for.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from infra.functions import rbac

TYPE = "stillwater:infra:SweepAccess"
GROUP = "stillwater:sweep"
ROLE = "stillwater-sweep"


@dataclass(frozen=True, kw_only=True)
class SweepAccessArgs:
    eks_cluster: str
    role_arn: pulumi.Input[str]


class SweepAccess(pulumi.ComponentResource):
    """An access entry, and a role that lists nodes."""

    def __init__(
        self, name: str, args: SweepAccessArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        group = rbac.Group(name=GROUP, role=ROLE, parent=self)
        group.enter(f"{name}-entry", args.eks_cluster, args.role_arn)
        rules = [
            rbac.may("", ["nodes"], ["list"]),
            rbac.may("storage.k8s.io", ["csinodes"], ["list"]),
        ]
        group.everywhere(f"{name}-role", rules)
        self.register_outputs({})
