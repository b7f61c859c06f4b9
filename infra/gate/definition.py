"""The gate's rights: what λ tick reads, the ledger and the ticks queue, and nothing of a node's.

In the cluster it reads, and writes two things by name: the Secret with its own certificate, and
whom the API server trusts for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.cluster.operated import Operated
from core.settings.functions import GateSettings
from infra import iam
from infra.functions import rbac
from infra.functions.definition import Definition, Scope, look, write_incidents

NAMESPACE = "kube-system"


def _may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        *write_incidents(scope),
        look("autoscaling:DescribeAutoScalingGroups", "ec2:DescribeInstances"),
    ]


def _rights(cluster: Operated) -> rbac.Rights:
    name = cluster.gate_name
    certificate = rbac.PolicyRule(
        api_group="", resources=["secrets"], names=[name], verbs=["get", "patch"]
    )
    trusted = rbac.PolicyRule(
        api_group="admissionregistration.k8s.io",
        resources=["validatingwebhookconfigurations"],
        names=[name],
        verbs=["get", "patch"],
    )
    return rbac.Rights(
        group="stillwater:gate",
        everywhere=[
            rbac.may("", ["nodes"], ["list"]),
            rbac.may("storage.k8s.io", ["csinodes", "volumeattachments"], ["list"]),
            # Whatever is on a node takes room from Kafka's next pod there.
            rbac.may("", ["pods"], ["list"]),
            *rbac.may_read_node_claims(cluster),
            trusted,
        ],
        inside=[
            rbac.may("", ["pods"], ["get"]),
            # Why a pod that was placed does not get its volumes.
            rbac.may("", ["persistentvolumeclaims"], ["list"]),
            *rbac.may_read_operator(cluster),
            rbac.may("policy", ["poddisruptionbudgets"], ["list"]),
            *rbac.may_get("secrets", cluster.secrets["gate"]),
        ],
        elsewhere={"certificate": (NAMESPACE, [certificate])},
    )


GATE = Definition(
    name="gate",
    description="Whether one of Kafka's pods may be evicted now",
    settings=GateSettings,
    may=_may,
    kubernetes=_rights,
)
