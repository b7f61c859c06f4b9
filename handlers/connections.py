"""What a function reaches, opened as its settings say: the API server and what is read of it."""

from __future__ import annotations

import os

from core import naming
from handlers.adapters.eks import EksApi
from handlers.adapters.kafka_identity import KafkaAccess, KafkaIdentity
from handlers.adapters.kubernetes import EksNodes
from handlers.settings import Reader, Settings


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


def kafka_identity(reader: Reader, function: str) -> KafkaIdentity:
    """Read who a function is to Kafka: the Secret is its own, unless one is named for all."""
    cluster = reader.text("CLUSTER")
    return KafkaIdentity(
        security=reader.choice("KAFKA_SECURITY", "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        authentication=reader.choice(
            "KAFKA_AUTHENTICATION", "none", "tls", "scram-sha-512", "oauth", "aws-iam"
        ),
        namespace=reader.text("NAMESPACE"),
        secret=reader.optional("KAFKA_SECRET") or naming.function_user(cluster, function),
        authority_secret=reader.optional("KAFKA_AUTHORITY_SECRET")
        or naming.cluster_ca_secret(cluster),
        token_url=reader.optional("KAFKA_TOKEN_URL"),
    )


def kafka_access(api: EksApi, function: str) -> KafkaAccess:
    """Return how a function connects to Kafka; raises InvalidInput for a broken environment."""
    reader = Reader(os.environ)
    identity = kafka_identity(reader, function)
    reader.check()
    return KafkaAccess(identity, api)
