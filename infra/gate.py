"""The eviction gate: its rights, its webhook of the API server's, and the pods that answer.

Two replicas stand on the system nodes; in a cluster that exists they run off Kafka's machines, as
far as there are others. The gate tolerates no taint of Kafka's, so no drain of a broker takes it
away, and its own pods are none that it is asked about. What heals (the kubelet, the garbage
collectors, the operator) is not even asked: it must work while the gate is away (ADR 0020).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from core.cluster import limits
from core.cluster.images import EvictionGate as Described
from core.cluster.operated import Operated
from core.gate import CLEANERS, EVICTIONS, TIMEOUT_SECONDS
from core.ground import naming
from core.settings.codec import KEPT, SETTINGS
from core.settings.functions import GateSettings
from infra import iam, pods
from infra.functions import definition
from infra.functions.definition import Definition, Scope, write_incidents
from infra.functions.function import Late, keep, settings, short
from infra.functions.loop import Names, grant

NAMESPACE = "kube-system"


def _may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        *write_incidents(scope),
        iam.look("autoscaling:DescribeAutoScalingGroups", "ec2:DescribeInstances"),
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


PORT = 8443


def webhooks(cluster: Operated, namespace: str, operators: Sequence[str]) -> list[dict[str, Any]]:
    """Return the webhooks, without their path and whom to trust: the gate writes those."""
    asked = {
        "clientConfig": {
            "service": {
                "name": cluster.gate_name,
                "namespace": namespace,
                "port": PORT,
            }
        },
        "admissionReviewVersions": ["v1"],
        "sideEffects": "NoneOnDryRun",
        "matchPolicy": "Equivalent",
        "timeoutSeconds": TIMEOUT_SECONDS,
    }
    inside = {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}}
    return [
        {
            **asked,
            "name": EVICTIONS,
            "rules": [_rule("CREATE", "pods/eviction", "Namespaced")],
            "namespaceSelector": inside,
            "matchConditions": [_condition("kafkas", _pod_name_condition(cluster))],
            # Nobody heals by evicting; who drains asks again.
            "failurePolicy": "Fail",
        },
        {
            **asked,
            "name": "pods.stillwater.dev",
            "rules": [_rule("DELETE", "pods", "Namespaced")],
            "namespaceSelector": inside,
            "objectSelector": {
                "matchLabels": {naming.CLUSTER_LABEL: cluster.name},
                "matchExpressions": [{"key": naming.POOL_LABEL, "operator": "Exists"}],
            },
            "matchConditions": [
                _condition("not-cleaned-up", _none_of([*sorted(CLEANERS), *operators])),
                _condition("not-its-kubelet", _NOT_ITS_KUBELET),
                _condition("not-over", "!has(oldObject.metadata.deletionTimestamp)"),
            ],
            "failurePolicy": "Ignore",
        },
        {
            **asked,
            "name": "nodes.stillwater.dev",
            "rules": [_rule("DELETE", "nodes", "Cluster")],
            "failurePolicy": "Ignore",
        },
    ]


_NOT_ITS_KUBELET = (
    "!has(oldObject.spec.nodeName) || "
    "request.userInfo.username != 'system:node:' + oldObject.spec.nodeName"
)


def _rule(operation: str, resource: str, scope: str) -> dict[str, Any]:
    return {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": [operation],
        "resources": [resource],
        "scope": scope,
    }


def _condition(name: str, expression: str) -> dict[str, str]:
    return {"name": name, "expression": expression}


def _pod_name_condition(cluster: Operated) -> str:
    """Return what is true of the names of Kafka's own pods, and not of Connect's.

    Of a Kafka that exists pools may come and go: there it is true of more, until the gate has added
    the pools that there are (core.gate); it knows its own pods by their labels in any case.
    """
    pools = "|".join(sorted({node.node_pool for node in cluster.nodes})) or ".+"
    return f"request.name.matches('^{cluster.name}-({pools})-[0-9]+$')"


def _none_of(users: Sequence[str]) -> str:
    # JSON's text is CEL's, too.
    return f"!(request.userInfo.username in {json.dumps(list(users))})"


TYPE = "stillwater:infra:EvictionGate"
REPLICAS = 2
# uvicorn ends what it is asked within 10 s, and Services forget a pod meanwhile.
GRACE_SECONDS = 30


class EvictionGate(pulumi.ComponentResource):
    """A Deployment, a Service and a ValidatingWebhookConfiguration, and the least they may do.

    A NetworkPolicy admits the control plane to the pods and nobody else.
    """

    def __init__(
        self, name: str, scope: Scope, late: Late, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._cluster, self._late = name, scope.cluster, late
        cluster = scope.cluster
        self._gate = _gate_of(cluster)
        self._labels = {"app.kubernetes.io/name": cluster.gate_name}
        operator = naming.operator_account(cluster.operator_namespace)
        operators = (operator, *self._gate.operators)
        role, first = iam.controller_role(
            name,
            role_name=f"{cluster.prefix}-gate",
            eks_cluster=cluster.eks_cluster,
            service_account=cluster.gate_name,
            statements=GATE.may(scope),
            parent=self,
        )
        grant(Names(type="", component=name), GATE, cluster, role, parent=self)
        deployment = self._deployment(operators, first)
        self._webhooks(operators, deployment)
        self.register_outputs({})

    def _deployment(
        self, operators: tuple[str, ...], first: list[pulumi.Resource]
    ) -> pulumi.Resource:
        name, cluster = self._name, self._cluster
        late = {
            **self._late,
            "reading_age_seconds": self._gate.reading_age_seconds,
            "operators": operators,
            "gate_name": cluster.gate_name,
            "gate_namespace": NAMESPACE,
            "port": PORT,
        }
        told = settings(GATE, cluster, late)
        kept = keep(f"{name}-kept", "gate", self._late["ledger_table"], told, self)
        child = pulumi.ResourceOptions(parent=self)
        # mypy weighs every field of the API against a dictionary it may look into.
        called, labels = cluster.gate_name, self._labels
        metadata: Any = {"name": called, "namespace": NAMESPACE, "labels": labels}
        budget: Any = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
        ports: Any = {"selector": labels, "ports": [{"name": "https", "port": PORT}]}
        account = k8s.core.v1.ServiceAccount(f"{name}-account", metadata=metadata, opts=child)
        certificate = k8s.core.v1.Secret(
            f"{name}-certificate",
            metadata=metadata,
            type="Opaque",
            # The gate's own: it issues and renews what stands there.
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=["data", "stringData"]),
        )
        k8s.policy.v1.PodDisruptionBudget(
            f"{name}-budget",
            metadata=metadata,
            spec=budget,
            opts=child,
        )
        k8s.core.v1.Service(
            f"{name}-service",
            metadata=metadata,
            spec=ports,
            opts=child,
        )
        asking = pods.control_plane(cluster.eks_cluster, pulumi.InvokeOptions(parent=self))
        pods.admit(f"{name}-admitted", metadata, labels, {PORT: asking}, child)
        variables: dict[str, pulumi.Input[str]] = {
            SETTINGS: told.apply(short),
            KEPT: kept.key,
            "AWS_REGION": cluster.region,
        }
        spec: Any = {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {
                "metadata": {"labels": labels},
                "spec": _pod(cluster, self._gate.image, labels, variables),
            },
        }
        return k8s.apps.v1.Deployment(
            f"{name}-deployment",
            metadata=metadata,
            spec=spec,
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[*first, account, certificate, kept.item]
            ),
        )

    def _webhooks(self, operators: tuple[str, ...], deployment: pulumi.Resource) -> None:
        """Ask the gate from when it answers on; whom to trust is for the gate to say."""
        cluster = self._cluster
        metadata: Any = {"name": cluster.gate_name, "labels": self._labels}
        asked: Any = webhooks(cluster, NAMESPACE, operators)
        k8s.admissionregistration.v1.ValidatingWebhookConfiguration(
            f"{self._name}-webhooks",
            metadata=metadata,
            webhooks=asked,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[deployment],
                ignore_changes=["webhooks[*].clientConfig.caBundle"],
            ),
        )


def _gate_of(cluster: Operated) -> Described:
    if cluster.eviction_gate is None:
        raise ValueError(f"{cluster.prefix} is described without an eviction gate.")
    return cluster.eviction_gate


def _off_kafkas_machines(cluster: Operated) -> dict[str, Any]:
    """Return where the pods run: on the system nodes of ours, or where no Kafka is meant to."""
    if cluster.pool_labels is None:
        return {"nodeSelector": {naming.NODE_POOL_LABEL: naming.SYSTEM_POOL}}
    return {"affinity": pods.off_kafkas_machines(cluster.pool_labels)}


def _pod(
    cluster: Operated,
    image: str,
    labels: Mapping[str, str],
    variables: Mapping[str, pulumi.Input[str]],
) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/readyz", "port": PORT, "scheme": "HTTPS"}}
    return {
        "serviceAccountName": cluster.gate_name,
        # It is asked as its role in AWS, by the functions' own way.
        "automountServiceAccountToken": False,
        "priorityClassName": "system-cluster-critical",
        **_off_kafkas_machines(cluster),
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels},
            }
            for key in (naming.ZONE_LABEL, "kubernetes.io/hostname")
        ],
        "securityContext": {**pods.FILTERED_CALLS, "runAsNonRoot": True, "runAsUser": 65532},
        "containers": [
            {
                "name": "gate",
                "image": image,
                "command": ["python", "-m", "stillwater.inside", "gate"],
                "env": [{"name": key, "value": value} for key, value in variables.items()],
                "ports": [{"name": "https", "containerPort": PORT}],
                "readinessProbe": {**probe, "periodSeconds": 5},
                "livenessProbe": {**probe, "periodSeconds": 10, "failureThreshold": 3},
                "resources": pods.resources(limits.GATE, memory_limit_mib=1024),
                "securityContext": {
                    **pods.NO_CAPABILITIES,
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                },
                # A key is a file for as long as it is read.
                "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}],  # noqa: S108
            }
        ],
        "volumes": [{"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}}],
    }
