"""What λ volumes may do inside the cluster: read claims and pools, and patch a KafkaNodePool.

Its group is its own. It patches no claim and no volume: Strimzi writes the one, the EBS driver the
other, and whoever wrote beside them would be undone, or would undo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from core.settings.prometheus_address import Address, Service
from infra.functions import rbac

TYPE = "stillwater:infra:VolumesAccess"
GROUP = "stillwater:volumes"
ROLE = "stillwater-volumes"


@dataclass(frozen=True, kw_only=True)
class VolumesAccessArgs:
    eks_cluster: str
    namespace: str
    role_arn: pulumi.Input[str]
    # Whether pools may be changed, or only read.
    may_apply: bool
    # Those with Kafka's authorities and with the credentials of these functions, by name.
    kafka_secrets: Sequence[str]
    # Where volumes' figures are asked; a workspace is no part of the cluster.
    prometheus: Address | None = None


class VolumesAccess(pulumi.ComponentResource):
    """An access entry, a role in Kafka's namespace, and one for what has no namespace."""

    def __init__(
        self, name: str, args: VolumesAccessArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        group = rbac.Group(name=GROUP, role=ROLE, parent=self)
        group.enter(f"{name}-entry", args.eks_cluster, args.role_arn)
        everywhere = [
            rbac.may("", ["persistentvolumes"], ["list"]),
            rbac.may("storage.k8s.io", ["volumeattributesclasses"], ["list"]),
        ]
        group.everywhere(f"{name}-cluster-role", everywhere)
        pools = ["list", "patch"] if args.may_apply else ["list"]
        inside = [
            rbac.may("", ["persistentvolumeclaims"], ["list"]),
            rbac.may("kafka.strimzi.io", ["kafkanodepools"], pools),
            *rbac.may_get("secrets", args.kafka_secrets),
        ]
        asked = args.prometheus
        if isinstance(asked, Service):
            # The proxy of one port of one Service, by GET: Prometheus is changed by POST and PUT.
            proxy = rbac.may_get("services/proxy", [asked.resource_name])
            if asked.namespace == args.namespace:
                inside += proxy
            else:
                group.inside(f"{name}-prometheus", asked.namespace, proxy)
        group.inside(f"{name}-role", args.namespace, inside)
        self.register_outputs({})
