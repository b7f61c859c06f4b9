"""What the functions may do inside the cluster.

An EKS access entry maps a function's role to the group `stillwater:handlers`; RBAC says what the
group may read, and that it may patch nodes: RBAC knows no single taint or annotation. Through the
API server it reads the metrics of Kafka's own pods, each by name and port (ADR 0012). It places the
out-of-service taint on a node whose instance EC2 says has ended, deletes the attachments such an
instance left behind when its Node went first, and keeps a waiting replacement from Cluster
Autoscaler. Nodes are drained by the node termination handler alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from infra.functions import rbac

TYPE = "stillwater:infra:HandlerAccess"
GROUP = "stillwater:handlers"
ROLE = "stillwater-handlers"


@dataclass(frozen=True, kw_only=True)
class HandlerAccessArgs:
    eks_cluster: str
    namespace: str
    # Those with Kafka's authorities and with the credentials of these functions, by name.
    kafka_secrets: Sequence[str]
    # The Kafka pods whose metrics are read, spare ones included; none where metrics are off.
    metrics_pods: Sequence[str] = ()
    # Function name -> role; only those that call Kubernetes.
    role_arns: Mapping[str, pulumi.Input[str]]


class HandlerAccess(pulumi.ComponentResource):
    """Access entries and the two RBAC roles behind them."""

    def __init__(
        self, name: str, args: HandlerAccessArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        group = rbac.Group(name=GROUP, role=ROLE, parent=self)
        for function, role_arn in args.role_arns.items():
            group.enter(f"{name}-{function}-entry", args.eks_cluster, role_arn)
        everywhere = [
            rbac.may("", ["nodes"], ["get", "list", "patch"]),
            rbac.may("storage.k8s.io", ["csinodes", "volumeattachments"], ["list"]),
            rbac.may("storage.k8s.io", ["volumeattachments"], ["delete"]),
        ]
        group.everywhere(f"{name}-cluster-role", everywhere)
        inside = [
            rbac.may("", ["pods"], ["list"]),
            rbac.may("policy", ["poddisruptionbudgets"], ["list"]),
            *rbac.may_get("secrets", args.kafka_secrets),
            *rbac.may_read_metrics(args.metrics_pods),
        ]
        group.inside(f"{name}-role", args.namespace, inside)
        self.register_outputs({})
