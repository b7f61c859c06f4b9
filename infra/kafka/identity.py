"""Who the functions are to Kafka: what their environment says of it, and which Secrets they read.

No key, password or token passes through here: a function reads its own from the API server, when
it asks Kafka, so that a renewed one needs no deployment.
"""

from __future__ import annotations

from core import naming
from core.cluster import ClusterSpec
from core.cluster.rights import functions_authentication

SASL = {"scram-sha-512", "oauth", "aws-iam"}


def environment(spec: ClusterSpec) -> dict[str, str]:
    """Return the variables from which handlers.settings reads how to connect to Kafka."""
    how, functions = functions_authentication(spec.kafka), spec.kafka.functions
    oauth = spec.kafka.listener.oauth
    transport = "SSL" if spec.kafka.listener.tls else "PLAINTEXT"
    said = {
        "STILLWATER_KAFKA_SECURITY": f"SASL_{transport}" if how in SASL else transport,
        "STILLWATER_KAFKA_AUTHENTICATION": how,
        "STILLWATER_KAFKA_SECRET": functions.secret_name,
        "STILLWATER_KAFKA_AUTHORITY_SECRET": functions.authority_secret_name,
        "STILLWATER_KAFKA_TOKEN_URL": oauth.token_url if oauth else None,
    }
    return {name: value for name, value in said.items() if value}


def kafka_secrets(spec: ClusterSpec, function: str) -> list[str]:
    """Return the Secrets that a function may read: the brokers' authorities, its credentials."""
    how, functions = functions_authentication(spec.kafka), spec.kafka.functions
    names = []
    if spec.kafka.listener.tls and how != "aws-iam":
        names.append(functions.authority_secret_name or naming.cluster_ca_secret(spec.name))
    if how not in {"none", "aws-iam"}:
        names.append(functions.secret_name or naming.function_user(spec.name, function))
    return names
