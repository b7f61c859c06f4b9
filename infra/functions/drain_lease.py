"""The Lease of Kubernetes in which λ tick tells Strimzi's operator of a drain (ADR 0021).

λ tick may change this one object and make none; the operator, where this project installs it, may
read it. Without the plugin in the operator (strimzi/) nobody does.
"""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from core import naming
from core.cluster.operated import Operated
from infra.functions.rbac import API_GROUP, PolicyRule

TYPE = "stillwater:infra:DrainLease"
LEASES = "coordination.k8s.io"


def tell_of_drains(cluster: Operated) -> PolicyRule:
    """Allow to write into the Lease, which is there already."""
    return PolicyRule(
        api_group=LEASES,
        resources=["leases"],
        names=[naming.drain_lease(cluster.name)],
        verbs=["patch"],
    )


class DrainLease(pulumi.ComponentResource):
    """An empty Lease, and the right of an operator of ours to read it."""

    def __init__(
        self,
        name: str,
        cluster: Operated,
        operator_namespace: str | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        called = naming.drain_lease(cluster.name)
        metadata = ObjectMetaArgs(name=called, namespace=cluster.namespace)
        k8s.coordination.v1.Lease(
            f"{name}-lease",
            metadata=metadata,
            # What is in it is λ tick's.
            opts=pulumi.ResourceOptions(
                parent=self, ignore_changes=["spec", "metadata.annotations"]
            ),
        )
        # Somebody else's operator is let in by them.
        if operator_namespace is not None:
            self._let_the_operator_read(name, called, metadata, operator_namespace)
        self.register_outputs({})

    def _let_the_operator_read(
        self, name: str, called: str, metadata: ObjectMetaArgs, operator: str
    ) -> None:
        read = PolicyRule(api_group=LEASES, resources=["leases"], names=[called], verbs=["get"])
        role = k8s.rbac.v1.Role(
            f"{name}-role",
            metadata=metadata,
            rules=[read.render()],
            opts=pulumi.ResourceOptions(parent=self),
        )
        k8s.rbac.v1.RoleBinding(
            f"{name}-role-binding",
            metadata=metadata,
            role_ref=k8s.rbac.v1.RoleRefArgs(api_group=API_GROUP, kind="Role", name=called),
            subjects=[
                k8s.rbac.v1.SubjectArgs(
                    kind="ServiceAccount", name=naming.STRIMZI_OPERATOR, namespace=operator
                )
            ],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )
