"""Which pods the twin's operator restarts, and what hinders it: decisions over what is shown."""

from typing import Any

from core.views import ClusterView, PartitionView, VoterView
from local.kubernetes.strimzi_model import KafkaPodNode
from local.kubernetes.strimzi_roller import configuration_changes, hindrance, is_stuck, roll_order
from tests.every_case import every_case
from tests.unit.local.described_kafka import cluster

NODES = {node.node_id: node for node in cluster().nodes}


def view(
    *partitions: tuple[str, tuple[int, ...], int], lags: tuple[float, ...] = ()
) -> ClusterView:
    return ClusterView(
        brokers=frozenset({10, 20, 30}),
        fenced=frozenset(),
        voters=tuple(VoterView(n, lag) for n, lag in enumerate(lags)),
        quorum_leader=0,
        partitions=tuple(
            PartitionView(topic, 0, isr[0], (10, 20, 30), isr, minimum)
            for topic, isr, minimum in partitions
        ),
    )


@every_case(
    ("node_id", "seen", "why"),
    [
        (10, view(("a", (10, 20, 30), 2)), ""),
        (10, view(("a", (10, 20), 2)), "a-0 has 2 replicas in sync"),
        # It is not in sync: enough others are, or it has to return first.
        (10, view(("a", (20, 30), 2)), ""),
        (10, view(("a", (20,), 2)), "a-0 has 1 replicas in sync"),
        # Nobody can write without it as it is.
        (10, view(("a", (10, 20), 3)), ""),
        (0, view(lags=(0, 0, 0)), ""),
        (0, view(lags=(0, 0, 99)), "only 1 of 3"),
        (0, view(lags=(0,)), ""),
    ],
)
def test_kafka_is_asked_before_a_pod_is_restarted(
    node_id: int, seen: ClusterView, why: str
) -> None:
    found = hindrance(NODES[node_id], seen)
    assert found.startswith(why) if why else not found


def test_controllers_come_first_and_those_that_are_not_ready_before_the_others() -> None:
    nodes: list[tuple[KafkaPodNode, bool]] = [
        (NODES[10], True),
        (NODES[20], False),
        (NODES[0], True),
    ]
    assert [[n.node_id for n in part] for part in roll_order(nodes)] == [[0], [20, 10]]


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


@every_case(
    ("status", "stuck"),
    [
        ({"phase": "Pending"}, False),
        ({"phase": "Pending", "conditions": [UNSCHEDULABLE]}, True),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}, True),
        ({"containerStatuses": [{"state": {"running": {}}}]}, False),
    ],
)
def test_a_pod_without_a_node_or_a_container_is_stuck(status: dict[str, Any], stuck: bool) -> None:
    assert is_stuck({"metadata": {}, "status": status}) is stuck


def entry(value: str, source: str = "STATIC_BROKER_CONFIG") -> dict[str, str]:
    return {"value": value, "config_source": source}


def test_a_brokers_configuration_is_compared_with_what_it_runs() -> None:
    found = {
        "num.io.threads": entry("8", "DEFAULT_CONFIG"),
        "log.retention.ms": entry("5"),
        "log.segment.bytes": entry("7", "DYNAMIC_BROKER_CONFIG"),
        "leader.replication.throttled.rate": entry("1", "DYNAMIC_BROKER_CONFIG"),
        "node.id": entry("10"),
        "compression.type": entry("producer", "DEFAULT_CONFIG"),
    }
    described = {"num.io.threads": "16", "log.retention.ms": "5", "unknown.to.kafka": "1"}
    assert configuration_changes(described, {"node.id": "10"}, found) == {
        "num.io.threads": "16",
        "log.segment.bytes": None,
    }
