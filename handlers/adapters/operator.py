"""Asks and tells Strimzi's operator: revisions of pods, and who is out.

A pod set names the revision each of its pods is to have; the operator rolls those that have
another (strimzi-kafka-operator 1.2.0, PodRevision).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import quote

from core.availability.drain_notice import DrainNotice, lease_spec
from core.health.wanted import pods_wanted, roles_wanted
from core.naming import CLUSTER_LABEL, DRAIN_REASON_ANNOTATION, REVISION_ANNOTATION, drain_lease
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


def tell_of_drain(api: EksApi, namespace: str, cluster: str, notice: DrainNotice | None) -> None:
    """Write who is out into the Lease beside the Kafka; where there is none, nobody is told."""
    lease = quote(drain_lease(cluster))
    path = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace)}/leases/{lease}"
    said = None if notice is None else notice.reason
    metadata = {"annotations": {DRAIN_REASON_ANNOTATION: said}}
    api.merge(path, {"metadata": metadata, "spec": lease_spec(notice)})
