"""Reads what Strimzi's operator says of a Kafka."""

from __future__ import annotations

from urllib.parse import quote

from core.availability.conditions import KafkaConditions, kafka_conditions
from core.errors import StillwaterError
from handlers.adapters.eks import EksApi
from handlers.adapters.shapes import known_shape


@known_shape("The Kubernetes API")
def read_conditions(api: EksApi, namespace: str, cluster: str) -> KafkaConditions:
    """Return a Kafka's conditions; raises StillwaterError where it cannot be read."""
    path = f"/apis/kafka.strimzi.io/v1/namespaces/{quote(namespace)}/kafkas/{quote(cluster)}"
    found = api.find(path)
    if found is None:
        raise StillwaterError(f"There is no Kafka {namespace}/{cluster}.")
    return kafka_conditions(found)
