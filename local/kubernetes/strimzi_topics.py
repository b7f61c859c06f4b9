"""The twin's topic operator: KafkaTopics become topics of the real cluster.

As Strimzi's does without finalizers: a topic is made, grown and configured; fewer partitions or
another number of replicas is refused in the status; a KafkaTopic deleted while its Kafka lives
takes the topic with it. A setting that leaves the resource keeps its last value here.
"""

from __future__ import annotations

from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from kafka.errors import KafkaError, UnknownTopicOrPartitionError

from core.ground.errors import StillwaterError
from local.kubernetes.client import Api, Informer
from local.kubernetes.strimzi_admin import admin, runs
from local.kubernetes.strimzi_config import plain
from local.kubernetes.strimzi_objects import (
    READY,
    STRIMZI,
    EntityOperator,
    Object,
    OperatorObjects,
    kafka_of,
    resource_path,
)

UNKNOWN_TOPIC = 3


class RefusedTopic(StillwaterError):
    """What a topic's resource asks for cannot be done to a topic that exists."""


class TopicOperator(EntityOperator):
    """Brings every KafkaTopic to what it says."""

    kind, retry_seconds = "Topics", 2.0

    def __init__(self, api: Api, objects: OperatorObjects) -> None:
        super().__init__(api, objects)
        self._topics = Informer(api, f"{STRIMZI}/kafkatopics", self._on_change)
        self.informers = (self._topics,)

    def _reconcile_all(self) -> None:
        waiting = [t for t in list(self._topics.objects.values()) if not _is_settled(t)]
        for kafka in sorted({kafka_of(topic) for topic in waiting}):
            if not runs(self._api, *kafka):
                continue
            with admin(self._api, *kafka) as client:
                for topic in waiting:
                    if kafka_of(topic) == kafka:
                        self._reconcile(client, topic)

    def _reconcile(self, client: KafkaAdminClient, topic: Object) -> None:
        reason, message = "", ""
        try:
            _bring(client, topic)
        except RefusedTopic as error:
            reason, message = "NotSupported", str(error)
        except KafkaError as error:
            reason, message = "KafkaError", f"Kafka refused the topic: {error}."
        path = resource_path("kafkatopics", topic)
        failed = {"type": "Ready", "status": "False", "reason": reason, "message": message}
        self._objects.report(topic, path, failed if reason else READY)

    def _forget(self, topic: Object) -> None:
        kafka = kafka_of(topic)
        if not runs(self._api, *kafka):
            return  # the cluster goes as a whole, and its volumes keep the records
        with admin(self._api, *kafka) as client:
            try:
                client.delete_topics([topic_name(topic)])
            except UnknownTopicOrPartitionError:
                return


def topic_name(topic: Object) -> str:
    return str((topic.get("spec") or {}).get("topicName") or topic["metadata"]["name"])


def _bring(client: KafkaAdminClient, topic: Object) -> None:
    """Make the topic what its resource says; raises Refused for what no topic can become."""
    name, spec = topic_name(topic), topic.get("spec") or {}
    config = {key: plain(value) for key, value in (spec.get("config") or {}).items()}
    partitions, replicas = int(spec.get("partitions") or -1), int(spec.get("replicas") or -1)
    (found,) = client.describe_topics([name])
    if found["error_code"] == UNKNOWN_TOPIC:
        client.create_topics([NewTopic(name, partitions, replicas, topic_configs=config)])
        return
    _check(name, found["partitions"], partitions, replicas)
    if partitions > len(found["partitions"]):
        client.create_partitions({name: partitions})
    if config:
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, config)])


def _check(name: str, found: list[dict[str, Any]], partitions: int, replicas: int) -> None:
    now = {len(partition["replica_nodes"]) for partition in found}
    if 0 < partitions < len(found):
        raise RefusedTopic(
            f"Topic {name} has {len(found)} partitions and cannot have {partitions}: Kafka never "
            f"removes one; ask for {len(found)} or more."
        )
    if replicas > 0 and now != {replicas}:
        raise RefusedTopic(
            f"Topic {name} has {max(now)} replicas and cannot get {replicas} here: that is a "
            f"reassignment; ask for {max(now)}, or reassign its partitions first."
        )


def _is_settled(topic: Object) -> bool:
    """Say whether this very description was brought about, or refused, already."""
    status = topic.get("status") or {}
    conditions = status.get("conditions") or []
    final = any(
        c["type"] == "Ready" and (c["status"] == "True" or c["reason"] == "NotSupported")
        for c in conditions
    )
    return final and status.get("observedGeneration") == topic["metadata"]["generation"]
