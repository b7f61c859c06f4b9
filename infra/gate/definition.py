"""The gate's rights: what λ tick reads, the ledger and the ticks queue, and nothing of a node's.

In the cluster it reads, and writes two things by name: the Secret with its own certificate, and
whom the API server trusts for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.cluster.operated import Operated
from core.settings.functions import GateSettings
from infra import iam
from infra.functions import definition
from infra.functions.definition import Definition, Scope, look, write_incidents

NAMESPACE = "kube-system"


def _may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        *write_incidents(scope),
        look("autoscaling:DescribeAutoScalingGroups", "ec2:DescribeInstances"),
    ]


def _rights(cluster: Operated) -> definition.Rights:
    name = cluster.gate_name
    certificate = definition.PolicyRule(
        api_group="", resources=["secrets"], names=[name], verbs=["get", "patch"]
    )
    trusted = definition.PolicyRule(
        api_group="admissionregistration.k8s.io",
        resources=["validatingwebhookconfigurations"],
        names=[name],
        verbs=["get", "patch"],
    )
    return definition.Rights(
        group="stillwater:gate",
        everywhere=[
            definition.may("", ["nodes"], ["list"]),
            definition.may("storage.k8s.io", ["csinodes", "volumeattachments"], ["list"]),
            # Whatever is on a node takes room from Kafka's next pod there.
            definition.may("", ["pods"], ["list"]),
            *definition.may_read_node_claims(cluster),
            trusted,
        ],
        inside=[
            definition.may("", ["pods"], ["get"]),
            # Why a pod that was placed does not get its volumes.
            definition.may("", ["persistentvolumeclaims"], ["list"]),
            *definition.may_read_operator(cluster),
            definition.may("policy", ["poddisruptionbudgets"], ["list"]),
            *definition.may_get("secrets", cluster.secrets["gate"]),
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
