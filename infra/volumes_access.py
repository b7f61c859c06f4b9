"""What λ volumes may do inside the cluster: read claims and pools, and patch a KafkaNodePool.

Its group is its own. It patches no claim and no volume: Strimzi writes the one, the EBS driver the
other, and whoever wrote beside them would be undone, or would undo.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

TYPE = "stillwater:infra:VolumesAccess"
GROUP = "stillwater:volumes"
ROLE = "stillwater-volumes"
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, kw_only=True)
class VolumesAccessArgs:
    eks_cluster: str
    namespace: str
    role_arn: pulumi.Input[str]
    # Whether pools may be changed, or only read.
    may_apply: bool
    # The Secret with Kafka's certificate authority; None: its listener is not encrypted.
    kafka_ca_secret: str | None


class VolumesAccess(pulumi.ComponentResource):
    """An access entry, a role in Kafka's namespace, and one for what has no namespace."""

    def __init__(
        self, name: str, args: VolumesAccessArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._child = name, pulumi.ResourceOptions(parent=self)
        aws.eks.AccessEntry(
            f"{name}-entry",
            cluster_name=args.eks_cluster,
            principal_arn=args.role_arn,
            type="STANDARD",
            kubernetes_groups=[GROUP],
            opts=self._child,
        )
        self._cluster_wide()
        self._in_namespace(args)
        self.register_outputs({})

    def _cluster_wide(self) -> None:
        rules = {"": "persistentvolumes", "storage.k8s.io": "volumeattributesclasses"}
        role = k8s.rbac.v1.ClusterRole(
            f"{self._name}-cluster-role",
            metadata=ObjectMetaArgs(name=ROLE),
            rules=[
                k8s.rbac.v1.PolicyRuleArgs(
                    api_groups=[api_group], resources=[resource], verbs=["list"]
                )
                for api_group, resource in rules.items()
            ],
            opts=self._child,
        )
        k8s.rbac.v1.ClusterRoleBinding(
            f"{self._name}-cluster-role-binding",
            metadata=ObjectMetaArgs(name=ROLE),
            role_ref=k8s.rbac.v1.RoleRefArgs(api_group=RBAC, kind="ClusterRole", name=ROLE),
            subjects=[k8s.rbac.v1.SubjectArgs(api_group=RBAC, kind="Group", name=GROUP)],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )

    def _in_namespace(self, args: VolumesAccessArgs) -> None:
        pools = ["list", "patch"] if args.may_apply else ["list"]
        rules = [
            k8s.rbac.v1.PolicyRuleArgs(
                api_groups=[""], resources=["persistentvolumeclaims"], verbs=["list"]
            ),
            k8s.rbac.v1.PolicyRuleArgs(
                api_groups=["kafka.strimzi.io"], resources=["kafkanodepools"], verbs=pools
            ),
        ]
        if args.kafka_ca_secret is not None:
            rules.append(
                k8s.rbac.v1.PolicyRuleArgs(
                    api_groups=[""],
                    resources=["secrets"],
                    resource_names=[args.kafka_ca_secret],
                    verbs=["get"],
                )
            )
        role = k8s.rbac.v1.Role(
            f"{self._name}-role",
            metadata=ObjectMetaArgs(name=ROLE, namespace=args.namespace),
            rules=rules,
            opts=self._child,
        )
        k8s.rbac.v1.RoleBinding(
            f"{self._name}-role-binding",
            metadata=ObjectMetaArgs(name=ROLE, namespace=args.namespace),
            role_ref=k8s.rbac.v1.RoleRefArgs(api_group=RBAC, kind="Role", name=ROLE),
            subjects=[k8s.rbac.v1.SubjectArgs(api_group=RBAC, kind="Group", name=GROUP)],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )
