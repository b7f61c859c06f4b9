"""The twin's topic operator on a cluster that only remembers what it was asked."""

from __future__ import annotations

from typing import Any

import pytest

from local.kubernetes.strimzi_entities import RefusedTopic, _bring, _is_settled, topic_name


class RememberingCluster:
    """Kafka's admin API over a dictionary of topics: name -> (partitions, replicas)."""

    def __init__(self, **topics: tuple[int, int]) -> None:
        self.topics = topics
        self.made: list[Any] = []
        self.configured: list[dict[str, str]] = []

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        (name,) = names
        if name not in self.topics:
            return [{"error_code": 3, "partitions": []}]
        partitions, replicas = self.topics[name]
        return [
            {"error_code": 0, "partitions": [{"replica_nodes": [*range(replicas)]}] * partitions}
        ]

    def create_topics(self, topics: list[Any]) -> None:
        self.made += topics

    def create_partitions(self, grown: dict[str, int]) -> None:
        for name, partitions in grown.items():
            self.topics[name] = (partitions, self.topics[name][1])

    def alter_configs(self, resources: list[Any]) -> None:
        self.configured += [resource.configs for resource in resources]


def topic(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "orders", "namespace": "kafka", "generation": 2}, "spec": spec}


def bring(cluster: RememberingCluster, **spec: Any) -> None:
    _bring(cluster, topic(**spec))  # type: ignore[arg-type]  # it asks no more of a client


def test_a_topic_that_is_missing_is_made_as_described() -> None:
    cluster = RememberingCluster()
    bring(cluster, partitions=6, replicas=3, config={"retention.ms": 5, "unclean": True})
    (made,) = cluster.made
    assert (made.name, made.num_partitions, made.replication_factor) == ("orders", 6, 3)
    assert made.topic_configs == {"retention.ms": "5", "unclean": "true"}


def test_a_topic_that_exists_grows_and_takes_its_settings() -> None:
    cluster = RememberingCluster(orders=(2, 3))
    bring(cluster, partitions=6, replicas=3, config={"retention.ms": 5})
    assert cluster.topics["orders"] == (6, 3)
    assert cluster.configured == [{"retention.ms": "5"}]
    assert cluster.made == []


def test_what_is_not_said_is_left_as_it_is() -> None:
    cluster = RememberingCluster(orders=(2, 1))
    bring(cluster)
    assert cluster.topics["orders"] == (2, 1)


@pytest.mark.parametrize(
    ("spec", "says"),
    [({"partitions": 1}, "never removes one"), ({"replicas": 1}, "reassignment")],
)
def test_what_no_topic_can_become_is_refused_in_a_sentence(spec: dict[str, int], says: str) -> None:
    cluster = RememberingCluster(orders=(2, 3))
    with pytest.raises(RefusedTopic, match=says):
        bring(cluster, **spec)
    assert cluster.topics["orders"] == (2, 3)


def test_a_resource_may_be_called_otherwise_than_its_topic() -> None:
    assert topic_name(topic(topicName="Orders_V1")) == "Orders_V1"
    assert topic_name(topic()) == "orders"


@pytest.mark.parametrize(
    ("status", "reason", "generation", "settled"),
    [
        ("True", "", 2, True),
        ("True", "", 1, False),
        ("False", "NotSupported", 2, True),
        ("False", "KafkaError", 2, False),
    ],
)
def test_a_description_is_tried_until_it_is_brought_about_or_refused(
    status: str, reason: str, generation: int, settled: bool
) -> None:
    resource = topic()
    assert not _is_settled(resource)
    condition = {"type": "Ready", "status": status, "reason": reason}
    resource["status"] = {"observedGeneration": generation, "conditions": [condition]}
    assert _is_settled(resource) is settled
