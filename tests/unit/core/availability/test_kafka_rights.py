"""The table of rights on Kafka: every call in it, nothing wider than its calls."""

from __future__ import annotations

import pytest

from core.availability import wholeness
from core.availability.wholeness import (
    MOVING_LEADERS,
    READING,
    RIGHT_OF,
    THROTTLING,
    KafkaOperation,
    KafkaRequest,
    KafkaResource,
    grant,
    rights_for,
)


def test_every_call_has_its_line_and_belongs_to_who_reads_moves_leaders_or_throttles() -> None:
    assert set(RIGHT_OF) == set(KafkaRequest) == READING | MOVING_LEADERS | THROTTLING


def test_a_function_that_only_reads_may_change_nothing() -> None:
    assert {right.operation for right in rights_for(READING)} == {
        KafkaOperation.DESCRIBE,
        KafkaOperation.DESCRIBE_CONFIGS,
    }


def test_no_right_reaches_a_record_or_an_acl() -> None:
    assert {(r.resource, r.operation) for r in rights_for(KafkaRequest)} == {
        (KafkaResource.CLUSTER, KafkaOperation.ALTER),
        (KafkaResource.CLUSTER, KafkaOperation.ALTER_CONFIGS),
        (KafkaResource.CLUSTER, KafkaOperation.DESCRIBE),
        (KafkaResource.CLUSTER, KafkaOperation.DESCRIBE_CONFIGS),
        (KafkaResource.TOPIC, KafkaOperation.ALTER_CONFIGS),
        (KafkaResource.TOPIC, KafkaOperation.DESCRIBE),
        (KafkaResource.TOPIC, KafkaOperation.DESCRIBE_CONFIGS),
    }


@pytest.mark.parametrize(
    ("call", "topic", "said"),
    [
        (KafkaRequest.DESCRIBE_QUORUM, "*", "Describe on the cluster"),
        (KafkaRequest.ELECT_LEADERS, "*", "Alter on the cluster"),
        (KafkaRequest.METADATA, "*", "Describe on every topic"),
        (KafkaRequest.METADATA, "orders", "Describe on topic orders"),
        (KafkaRequest.LIST_CONFIG_RESOURCES, "orders", "DescribeConfigs on the cluster"),
    ],
)
def test_a_refusal_names_the_right_to_grant(call: KafkaRequest, topic: str, said: str) -> None:
    assert grant(call, name=topic) == f"grant the functions' user {said}"


def test_the_table_is_plain_data_that_nobody_changes() -> None:
    with pytest.raises(TypeError):
        wholeness.RIGHT_OF[KafkaRequest.METADATA] = None  # type: ignore[index]
