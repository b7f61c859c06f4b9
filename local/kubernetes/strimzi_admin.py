"""Kafka's administration as Strimzi's own parts use it: on the port among brokers, by certificate.

Here the cluster operator's serves them all; Strimzi gives each operator one of its own.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka.admin import KafkaAdminClient

from core.ground import naming
from handlers.adapters.eks import trusting
from local.kubernetes.client import Api, find
from local.kubernetes.strimzi_authorities import OPERATOR, data_of, operator_secret
from local.kubernetes.strimzi_config import REPLICATION_PORT
from local.kubernetes.strimzi_objects import STRIMZI
from local.processes import listens

BOOTSTRAP_MS, REQUEST_MS = 3_000, 10_000


class OperatorAccess:
    """How the operators of one cluster connect, read anew each time: all of it is replaced."""

    def __init__(self, api: Api, namespace: str, cluster: str, *, by_address: bool = False) -> None:
        self._api, self._namespace, self._cluster = api, namespace, cluster
        self._by_address = by_address

    def __call__(self) -> Mapping[str, Any]:
        """Return settings of kafka-python; in the clear where no certificate was issued."""
        trusted = self._secret(naming.cluster_ca_secret(self._cluster))
        mine = self._secret(operator_secret(self._cluster))
        if not mine or not trusted:
            return {"security_protocol": "PLAINTEXT"}
        authorities = [text for key, text in sorted(trusted.items()) if key.endswith(".crt")]
        context = trusting("\n".join(authorities), "The cluster's")
        # A pod's certificate serves its names alone, as in Kubernetes.
        context.check_hostname = not self._by_address
        show(context, mine[f"{OPERATOR}.crt"], mine[f"{OPERATOR}.key"])
        return {"security_protocol": "SSL", "ssl_context": context}

    def remedy(self, error: BaseException) -> str:
        del error
        return ""

    def _secret(self, name: str) -> dict[str, str]:
        return data_of(find(self._api, f"/api/v1/namespaces/{self._namespace}/secrets/{name}"))


@contextmanager
def admin(api: Api, namespace: str, cluster: str) -> Iterator[KafkaAdminClient]:
    """Connect to the port brokers replicate on."""
    client = KafkaAdminClient(
        bootstrap_servers=bootstrap(namespace, cluster),
        bootstrap_timeout_ms=BOOTSTRAP_MS,
        request_timeout_ms=REQUEST_MS,
        client_id="strimzi-operator",
        **OperatorAccess(api, namespace, cluster)(),
    )
    try:
        yield client
    finally:
        client.close()


def runs(api: Api, namespace: str, cluster: str) -> bool:
    """Say whether a Kafka is there to stay, and was Ready once: from then on its operators run."""
    found = find(api, f"{STRIMZI}/namespaces/{namespace}/kafkas/{cluster}")
    return (
        found is not None
        and "deletionTimestamp" not in found["metadata"]
        and "listeners" in (found.get("status") or {})
        and answers(namespace, cluster)
    )


def answers(namespace: str, cluster: str) -> bool:
    """Say whether a broker of a Kafka listens, be the others where they may."""
    return listens(_host(namespace, cluster), REPLICATION_PORT)


def bootstrap(namespace: str, cluster: str) -> str:
    return f"{_host(namespace, cluster)}:{REPLICATION_PORT}"


def _host(namespace: str, cluster: str) -> str:
    return f"{naming.bootstrap_service(cluster)}.{namespace}.svc"


def show(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Have a context show a certificate, which it takes from a file alone."""
    with tempfile.TemporaryDirectory() as directory:  # mode 0700
        path = Path(directory, "pem")
        path.write_text(f"{key}\n{certificate}\n")
        context.load_cert_chain(path)
