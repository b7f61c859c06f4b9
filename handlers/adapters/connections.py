"""What a function reaches, opened as its settings say: the API server and what is read of it."""

from __future__ import annotations

from handlers.adapters.eks import EksApi
from handlers.adapters.kubernetes import EksNodes
from handlers.settings import Settings


def open_api(settings: Settings, connections: int = 1) -> EksApi:
    """Return the cluster's API server; as many requests at a time as there are `connections`."""
    return EksApi(
        endpoint=settings.eks_endpoint,
        ca_pem=settings.eks_ca_pem,
        eks_cluster=settings.eks_cluster,
        region=settings.region,
        connections=connections,
    )


def open_nodes(settings: Settings, api: EksApi) -> EksNodes:
    """Return the nodes and pods of this Kafka cluster."""
    return EksNodes(api, settings.namespace, settings.cluster)
