"""Topics and users as Strimzi's resources, for its topic and user operators.

A topic's resource that leaves the description stays in the cluster: deleting it would delete the
records. Whoever means that deletes the KafkaTopic by hand.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from core.cluster import Acl, ClusterSpec, Topic, User
from core.cluster.rights import Client, clients
from core.ground import naming
from infra.versions import STRIMZI_API

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9.-]+")


# RFC 1123: what Kubernetes takes for a resource's name.
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"


_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


READY = {"pulumi.com/waitFor": "condition=Ready"}


class Topics(pulumi.ComponentResource):
    """A KafkaTopic per topic; a KafkaUser per user and per function that speaks to Kafka."""

    def __init__(
        self, name: str, spec: ClusterSpec, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        for topic in spec.topics:
            CustomResource(
                f"{name}-topic-{resource_name(topic.name)}",
                api_version=STRIMZI_API,
                kind="KafkaTopic",
                metadata=_metadata(spec, resource_name(topic.name)),
                spec=topic_spec(spec, topic),
                opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
            )
        quotas = {user.name: _quotas(user) for user in spec.users}
        for client in clients(spec):
            if client.name == naming.connect(spec.name):
                continue  # made with its workers
            CustomResource(
                f"{name}-user-{client.name}",
                api_version=STRIMZI_API,
                kind="KafkaUser",
                metadata=_metadata(spec, client.name),
                spec=user_spec(spec, client, quotas.get(client.name, {})),
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})


def resource_name(topic: str) -> str:
    """Return the KafkaTopic's name: the topic's own where Kubernetes takes it, else a hash's.

    >>> resource_name("orders.v1"), resource_name("Orders_V1")
    ('orders.v1', 'orders-v1-c2912a61')
    """
    plain = _NOT_IN_A_NAME.sub("-", topic.lower()).strip("-.")
    if plain == topic and _NAME.fullmatch(topic):
        return topic
    # Two topics may differ in what a resource's name cannot show.
    digest = hashlib.sha256(topic.encode()).hexdigest()[:8]
    named = f"{plain[:200]}-{digest}".lstrip("-")
    return named if _NAME.fullmatch(named) else named.replace(".", "-")


def topic_spec(spec: ClusterSpec, topic: Topic) -> dict[str, Any]:
    """Return a KafkaTopic's spec."""
    rendered: dict[str, Any] = {
        "partitions": topic.partitions,
        "replicas": topic.replication_factor or spec.kafka.default_replication_factor,
        "config": dict(topic.config),
    }
    if resource_name(topic.name) != topic.name:
        rendered["topicName"] = topic.name
    return rendered


def user_spec(spec: ClusterSpec, client: Client, quotas: Mapping[str, int]) -> dict[str, Any]:
    """Return a KafkaUser's spec: how it says who it is, what it may do and how much of it."""
    rendered: dict[str, Any] = {}
    # Somebody with a token has no credentials of Strimzi's; ACLs and quotas are of the plain name.
    if client.authentication != "oauth":
        rendered["authentication"] = {"type": client.authentication}
    # Without an ACL as well: what was granted before is taken away then.
    if spec.kafka.authorization == "simple":
        acls = [_acl(acl) for acl in client.acls]
        rendered["authorization"] = {"type": "simple", "acls": acls}
    if quotas:
        rendered["quotas"] = dict(quotas)
    return rendered


def _acl(acl: Acl) -> dict[str, Any]:
    resource: dict[str, Any] = {"type": acl.resource}
    if acl.resource != "cluster":
        resource |= {"name": acl.name, "patternType": "prefix" if acl.prefix else "literal"}
    return {"resource": resource, "operations": list(acl.operations)}


def _quotas(user: User) -> dict[str, int]:
    asked = {
        "producerByteRate": user.producer_bytes_per_s,
        "consumerByteRate": user.consumer_bytes_per_s,
    }
    return {name: rate for name, rate in asked.items() if rate is not None}


def _metadata(spec: ClusterSpec, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": spec.kubernetes.namespace,
        "labels": {naming.CLUSTER_LABEL: spec.name},
        "annotations": dict(READY),
    }


TYPE = "stillwater:infra:Topics"
