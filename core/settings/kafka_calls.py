"""Defines what each function asks of Kafka: its ACLs there follow (core.cluster.rights).

Apart from what they are told, which rests on incidents: a description is read without those.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.availability.wholeness import MOVING_LEADERS, READING, THROTTLING, KafkaRequest

# What each function that speaks to Kafka sends there.
FUNCTION_CALLS: Mapping[str, frozenset[KafkaRequest]] = {
    "tick": READING | MOVING_LEADERS | THROTTLING,
    "rotate": READING,
    "health": READING,
    "volumes": frozenset({KafkaRequest.DESCRIBE_CLUSTER, KafkaRequest.DESCRIBE_LOG_DIRS}),
}
