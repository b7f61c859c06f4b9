"""Decides whether Kafka Connect would start with the settings of its workers.

A worker with a value that Kafka refuses never starts; one of a connector's clients stops its tasks.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.cluster import connect_pairs
from core.cluster.connect_settings import CLIENTS, INTERNAL, WORKER
from core.cluster.kafka_kinds import Kind
from core.cluster.kafka_settings import TOPIC
from core.cluster.kafka_values import refused_values
from core.cluster.spec import ClusterSpec

# Of the topics that a worker makes for itself; their policy is Connect's, whatever is set.
_OF_TOPICS = {
    f"{topic}.storage.{setting}": kind
    for topic in connect_pairs.TOPICS
    for setting, kind in TOPIC.items()
    if setting != "cleanup.policy"
}
_STARTS = ("worker", "source's task", "sink's task")
OF_WORKERS: dict[str, Kind] = {**_OF_TOPICS, **INTERNAL, **WORKER}
OF_CLIENTS: dict[str, Kind] = {
    f"{prefix}{setting}": kind
    for prefix, kinds in CLIENTS.items()
    for setting, kind in kinds.items()
}


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each value that Kafka Connect would refuse."""
    if spec.connect is None:
        return
    config = spec.connect.config
    yield from refused_values("connect.config sets", config, OF_WORKERS, "no worker would start")
    yield from refused_values(
        "connect.config sets", config, OF_CLIENTS, "connectors' tasks would not start"
    )
    yield from connect_pairs.of_worker(spec, config)
    worker, source, sink = (f"no {each} would start" for each in _STARTS)
    for prefix, else_ in (("", worker), ("producer.", source)):
        yield from connect_pairs.of_producers(config, prefix, else_)
    for prefix, else_ in (("", worker), ("consumer.", sink)):
        yield from connect_pairs.of_consumers(config, prefix, else_)
