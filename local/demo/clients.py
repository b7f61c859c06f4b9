"""Who the demo's clients are to Kafka: users with the rights they need, and how each connects."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from core.naming import cluster_ca_secret
from core.settings.functions import KafkaIdentity
from handlers.adapters.kafka import Access, Anonymous
from handlers.adapters.kafka_identity import KafkaAccess
from local.kubernetes.client import Api, Object
from local.kubernetes.lookups import find

CLUSTER, NAMESPACE, TOPIC = "harbour", "kafka", "orders"
ASKING_VARIABLE = "STILLWATER_KAFKA_ASKS"
Connect = Callable[[], dict[str, Any]]
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


def asking() -> bool:
    """Say whether the demo's Kafka asks who its clients are."""
    return os.environ.get(ASKING_VARIABLE) == "true"


def access(api: Api, user: str) -> Access:
    """Return how one of them connects: by the certificate that its Secret holds at that moment."""
    if not asking():
        return Anonymous()
    identity = KafkaIdentity(
        security="SSL",
        authentication="tls",
        namespace=NAMESPACE,
        secret=user,
        authority_secret=cluster_ca_secret(CLUSTER),
    )
    return KafkaAccess(identity, _Finding(api))


def connecting(api: Api, bootstrap: list[str], user: str) -> Connect:
    """Return what makes the settings of one of their kafka-python clients."""
    entry = access(api, user)
    return lambda: {"bootstrap_servers": bootstrap, **entry()}


class _Finding:
    """One API server, as whoever has its administrator's token reads it."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def find(self, path: str) -> Object | None:
        return find(self._api, path)
