"""Reads Strimzi's resources of one Kafka: what its operator does, and which pods are to be."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from core.availability.conditions import KafkaConditions, kafka_conditions
from core.availability.operator import OperatorView, read_operator
from core.errors import StillwaterError
from core.health.wanted import pods_wanted, roles_wanted
from core.naming import CLUSTER_LABEL
from handlers.adapters.eks import EksApi, Json
from handlers.adapters.shapes import known_shape


@known_shape("The Kubernetes API")
def operator_view(api: EksApi, namespace: str, cluster: str) -> OperatorView:
    """Return what the Kafka, its node pools and its pod sets tell of the operator's work.

    The Kafka is read last: a change of broker configuration shows there alone, until its end.
    """
    path = f"/apis/kafka.strimzi.io/v1/namespaces/{quote(namespace)}"
    sets = tuple(pod_sets(api, namespace, cluster))
    pools = tuple(api.list(f"{path}/kafkanodepools", labelSelector=f"{CLUSTER_LABEL}={cluster}"))
    return read_operator(kafka_resource(api, namespace, cluster), pools, sets)


@known_shape("The Kubernetes API")
def read_conditions(api: EksApi, namespace: str, cluster: str) -> KafkaConditions:
    """Return a Kafka's conditions; raises StillwaterError where it cannot be read."""
    return kafka_conditions(kafka_resource(api, namespace, cluster))


def kafka_resource(api: EksApi, namespace: str, cluster: str) -> Json:
    """Return the Kafka resource; raises StillwaterError where there is none."""
    path = f"/apis/kafka.strimzi.io/v1/namespaces/{quote(namespace)}/kafkas/{quote(cluster)}"
    found = api.find(path)
    if found is None:
        raise StillwaterError(f"There is no Kafka {namespace}/{cluster}.")
    return found


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
