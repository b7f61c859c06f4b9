"""Connects the demo's clients to Kafka: users with the rights they need.

A client that lives through a rotation keeps one TLS context: `Entry.renew` has it trust and show
what the Secrets hold by then, so that its next connection is of the new authority.
"""

from __future__ import annotations

import ssl
from typing import Any
from weakref import WeakSet

from core.ground.naming import cluster_ca_secret
from core.settings.functions import KafkaIdentity
from handlers.adapters.kafka import Access
from handlers.adapters.kafka_identity import KafkaAccess
from local.kubernetes.client import Api, Object, find
from local.kubernetes.strimzi_admin import show
from local.kubernetes.strimzi_authorities import data_of

CLUSTER, NAMESPACE, TOPIC = "harbour", "kafka", "orders"
# Who looks on; who makes and throttles topics for tests, as an operator of Kafka would.
PRODUCER, CONSUMER, WATCHER, ADMINISTRATOR = "producer", "consumer", "watcher", "administrator"
# Alter is what throttles, moves and elects; with it an administrator could give itself all else.
_ADMINISTERS = ["Create", "Describe", "Alter", "DescribeConfigs", "AlterConfigs"]


def users() -> list[dict[str, Any]]:
    """Return the users of the demo's ClusterSpec."""
    every, orders = {"resource": "topic", "name": "*"}, {"resource": "topic", "name": TOPIC}
    rights: dict[str, list[dict[str, Any]]] = {
        # The topic is its own to make.
        PRODUCER: [{**orders, "operations": ["Create", "Describe", "Write"]}],
        CONSUMER: [{**orders, "operations": ["Describe", "Read"]}],
        WATCHER: [
            {**every, "operations": ["Describe"]},
            {"resource": "cluster", "operations": ["Describe"]},
        ],
        ADMINISTRATOR: [
            {**every, "operations": ["All"]},
            {"resource": "cluster", "operations": _ADMINISTERS},
        ],
    }
    return [{"name": name, "acls": acls} for name, acls in rights.items()]


def access(api: Api, user: str) -> Access:
    """Return how one of them connects: by the certificate that its Secret holds at that moment."""
    identity = KafkaIdentity(
        security="SSL",
        authentication="tls",
        namespace=NAMESPACE,
        secret=user,
        authority_secret=cluster_ca_secret(CLUSTER),
    )
    return KafkaAccess(identity, _Finding(api))


class Entry:
    """How one of them reaches Kafka; each call gives the settings of a kafka-python client."""

    def __init__(self, api: Api, bootstrap: list[str], user: str) -> None:
        self._api, self._bootstrap, self._user = api, bootstrap, user
        self._access = access(api, user)
        self._contexts: WeakSet[ssl.SSLContext] = WeakSet()
        self._shown = self._credentials()

    def __call__(self) -> dict[str, Any]:
        settings = {"bootstrap_servers": self._bootstrap, **self._access()}
        self._contexts.add(settings["ssl_context"])
        return settings

    def renew(self) -> None:
        """Have every client's next connection trust and show what the Secrets hold now."""
        held = self._credentials()
        if not all(held) or held == self._shown:
            return
        authorities, certificate, key = held
        for context in list(self._contexts):
            context.load_verify_locations(cadata=authorities)
            show(context, certificate, key)
        self._shown = held

    def _credentials(self) -> tuple[str, str, str]:
        """Return the authorities, the certificate and its key; empty while they are not there."""
        trusted, mine = self._secret(cluster_ca_secret(CLUSTER)), self._secret(self._user)
        pems = [text for key, text in sorted(trusted.items()) if key.endswith(".crt")]
        return "\n".join(pems), mine.get("user.crt", ""), mine.get("user.key", "")

    def _secret(self, name: str) -> dict[str, str]:
        return data_of(find(self._api, f"/api/v1/namespaces/{NAMESPACE}/secrets/{name}"))


class _Finding:
    """One API server, as whoever has its administrator's token reads it."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def find(self, path: str) -> Object | None:
        return find(self._api, path)
