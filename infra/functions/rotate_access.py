"""What λ rotate may do inside the cluster: read what a plan rests on, and change nothing.

It starts runs and answers people; whatever is done to nodes is done by the tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from infra.functions import rbac

TYPE = "stillwater:infra:RotateAccess"
GROUP = "stillwater:rotate"
ROLE = "stillwater-rotate"


@dataclass(frozen=True, kw_only=True)
class RotateAccessArgs:
    eks_cluster: str
    namespace: str
    # Those with Kafka's authorities and with the credentials of these functions, by name.
    kafka_secrets: Sequence[str]
    # The Kafka pods whose metrics are read; none where metrics are off.
    metrics_pods: Sequence[str] = ()
    role_arn: pulumi.Input[str]


class RotateAccess(pulumi.ComponentResource):
    """An access entry; a role that lists nodes, and one that lists Kafka's pods."""

    def __init__(
        self, name: str, args: RotateAccessArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        group = rbac.Group(name=GROUP, role=ROLE, parent=self)
        group.enter(f"{name}-entry", args.eks_cluster, args.role_arn)
        everywhere = [
            rbac.may("", ["nodes"], ["list"]),
            rbac.may("storage.k8s.io", ["csinodes"], ["list"]),
        ]
        group.everywhere(f"{name}-cluster-role", everywhere)
        inside = [
            rbac.may("", ["pods"], ["list"]),
            *rbac.may_read_metrics(args.metrics_pods),
            *rbac.may_get("secrets", args.kafka_secrets),
        ]
        group.inside(f"{name}-role", args.namespace, inside)
        self.register_outputs({})
