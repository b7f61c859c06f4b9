"""Opens what a function reaches, as its settings say: the API server and what is read of it."""

from __future__ import annotations

from core.settings.functions import InCluster, OfClaims
from handlers.adapters.eks import EksApi
from handlers.adapters.kubernetes import NO_CLAIMS, EksNodeClaims, EksNodes, NodeClaims


def open_api(settings: InCluster, connections: int = 1) -> EksApi:
    """Return the cluster's API server; as many requests at a time as there are `connections`."""
    return EksApi(
        endpoint=settings.api.endpoint,
        ca_pem=settings.api.ca_pem,
        eks_cluster=settings.api.eks_cluster,
        region=settings.region,
        connections=connections,
    )


def open_nodes(settings: InCluster, api: EksApi) -> EksNodes:
    """Return the nodes and pods of this Kafka cluster."""
    return EksNodes(api, settings.namespace, settings.cluster, settings.pool_labels)


def open_claims(settings: OfClaims, api: EksApi) -> NodeClaims:
    """Return Karpenter's NodeClaims, where it launches the nodes."""
    return EksNodeClaims(api, settings.pool_labels) if settings.node_claims else NO_CLAIMS
