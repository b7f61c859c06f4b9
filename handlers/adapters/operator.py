"""Asks Strimzi's operator for the revisions of pods.

A pod set names the revision each of its pods is to have; the operator rolls those that have
another (strimzi-kafka-operator 1.2.0, PodRevision).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import quote

from core.health.wanted import pods_wanted, roles_wanted
from core.naming import CLUSTER_LABEL, REVISION_ANNOTATION
from handlers.adapters.eks import EksApi, Json
from handlers.adapters.shapes import known_shape


def wanted_revisions(api: EksApi, namespace: str, cluster: str) -> Mapping[str, str]:
    """Return the revision that each pod of a Kafka is to have."""
    sets = pod_sets(api, namespace, cluster)
    pods = (pod for item in sets for pod in item["spec"].get("pods") or ())
    return {
        pod["metadata"]["name"]: revision
        for pod in pods
        if (revision := (pod["metadata"].get("annotations") or {}).get(REVISION_ANNOTATION))
    }


@known_shape("The Kubernetes API")
def wanted_roles(api: EksApi, namespace: str, cluster: str) -> dict[int, str]:
    """Return the nodes that a Kafka is to have, with their roles."""
    return roles_wanted(pod_sets(api, namespace, cluster))


@known_shape("The Kubernetes API")
def wanted_pods(api: EksApi, namespace: str, cluster: str) -> frozenset[str]:
    """Return the names of the pods that a Kafka is to have."""
    return pods_wanted(pod_sets(api, namespace, cluster))


def pod_sets(api: EksApi, namespace: str, cluster: str) -> Iterable[Json]:
    """Return the StrimziPodSets of a Kafka."""
    path = f"/apis/core.strimzi.io/v1/namespaces/{quote(namespace)}/strimzipodsets"
    return api.list(path, labelSelector=f"{CLUSTER_LABEL}={cluster}")
