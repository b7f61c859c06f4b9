"""Tells the API server when to ask the gate, and what to do where nobody answers (ADR 0020).

An eviction shows nothing of its pod, so it is told by its name; a deletion shows all of it. What
heals (the kubelet, the garbage collectors, the operator) is not even asked: it must work while the
gate is away.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from core import naming
from core.cluster.operated import Operated
from core.gate import CLEANERS, EVICTIONS, TIMEOUT_SECONDS

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
