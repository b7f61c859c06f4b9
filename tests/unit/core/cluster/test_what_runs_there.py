"""core.cluster: snapshots, topics, listeners, metrics and Connect of a description."""

from __future__ import annotations

import pytest

from core.cluster import parse
from tests.every_case import every_case
from tests.unit.core.cluster.test_cluster import changed, problems


def test_a_snapshot_schedule_is_one_that_aws_offers() -> None:
    assert parse(changed("snapshots", None)).snapshots is None
    assert problems(changed("snapshots", {"every_hours": 5}))
    assert problems(changed("snapshots", {"start_at_utc": "24:00"}))


@every_case(
    ("path", "value", "says"),
    [
        pytest.param(
            "kafka.internal_listener",
            {"tls": False, "authentication": "tls"},
            "only a listener with tls asks for",
            id="certificate-without-tls",
        ),
        pytest.param("topics", [{"name": "t"}, {"name": "t"}], "names t twice", id="topic-twice"),
        pytest.param(
            "topics",
            [{"name": "t", "replication_factor": 4}],
            "wants 4 replicas but the cluster has 3 brokers",
            id="too-many-replicas",
        ),
        pytest.param(
            "topics", [{"name": "a/b"}], "must be at most 249 letters", id="no-topic-name"
        ),
        pytest.param("metrics.allow", ["("], "no regular expression", id="bad-expression"),
        pytest.param("connect", {"startup_seconds": 5}, "30 or more", id="no-time-to-start"),
    ],
)
def test_topics_users_connect_and_metrics_are_checked(path: str, value: object, says: str) -> None:
    (problem,) = problems(changed(path, value))
    assert says in problem


def test_a_topic_of_one_replica_is_the_users_choice() -> None:
    assert parse(changed("topics", [{"name": "t", "replication_factor": 1}])).topics
