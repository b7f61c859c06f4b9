"""How a function connects to Kafka, opened as its environment says."""

from __future__ import annotations

import os

from core import naming
from handlers.adapters.eks import EksApi
from handlers.adapters.kafka_identity import KafkaAccess, KafkaIdentity
from handlers.settings import Reader


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
