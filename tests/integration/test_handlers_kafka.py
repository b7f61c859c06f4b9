"""The Kafka adapter on three real combined nodes: healthy, frozen at the front, killed.

The nodes are its own: without its quorum, the shared cluster would be of no use to other tests.
"""

import signal
from collections.abc import Callable, Iterator

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from core.availability.consent import check_returned, may_leave
from core.ground.errors import StillwaterError
from core.health.node import Role
from core.views import ClusterView
from handlers.adapters.kafka import KafkaAdmin
from handlers.incidents.shifts import Leadership
from tests.integration.bare_kafka import BareCluster, ground
from tests.integration.waiting import until_read
from tests.unit.handlers.in_memory import MemoryRecords

pytestmark = pytest.mark.integration
NODES = (1, 2, 3)
SETTINGS = """\
min.insync.replicas=2
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""


def admin(brokers: BareCluster, *nodes: int) -> KafkaAdmin:
    return KafkaAdmin([brokers.bootstrap(node) for node in nodes or NODES])


def eventually(brokers: BareCluster, holds: Callable[[ClusterView], bool]) -> ClusterView:
    """Read until something holds; return the reading that shows it."""
    return until_read(admin(brokers).read, holds)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareCluster]:
    with ground(tmp_path_factory.mktemp("kafka")) as made:
        roles = dict.fromkeys(NODES, Role.COMBINED)
        started = BareCluster(*made, roles, network=9, settings=SETTINGS)
        for node in NODES:
            started.start(node)
        eventually(started, lambda view: len(view.brokers) == 3 and not view.fenced)
        client = KafkaAdminClient(bootstrap_servers=started.bootstrap(1))
        client.create_topics([NewTopic("orders", 3, 3)])
        client.close()
        eventually(started, healthy)
        yield started


def healthy(view: ClusterView) -> bool:
    in_sync = [len(p.isr) == 3 for p in view.partitions]
    # A broker that has just started may still lag behind the quorum, which is a doubt.
    whole = not view.doubts and all(v.caught_up for v in view.voters)
    return len(in_sync) == 3 and all(in_sync) and whole


def test_a_healthy_cluster_lets_any_node_go(brokers: BareCluster) -> None:
    view = eventually(brokers, healthy)
    assert view.brokers == {1, 2, 3}
    assert not view.stale
    assert {p.min_isr for p in view.partitions} == {2}
    assert all(may_leave(node, view).allowed for node in NODES)


def test_a_frozen_broker_at_the_front_neither_hides_nor_lets_another_go(
    brokers: BareCluster,
) -> None:
    eventually(brokers, healthy)
    brokers.signal(1, signal.SIGSTOP)
    try:
        view = eventually(brokers, lambda view: 1 in view.fenced)
        assert not may_leave(2, view).allowed
        assert not check_returned(1, view).allowed
    finally:
        brokers.signal(1, signal.SIGCONT)
    view = eventually(brokers, healthy)
    assert check_returned(1, view).allowed


def test_a_partition_ends_where_its_mover_wants_though_its_leader_is_to_leave(
    brokers: BareCluster,
) -> None:
    """Kafka takes another order of a moving partition's replicas for where it is to move."""
    eventually(brokers, healthy)
    client, one = KafkaAdminClient(bootstrap_servers=brokers.bootstrap(1)), ("moving", 0)
    client.create_topics([NewTopic("moving", replica_assignments={0: [1, 2]})])
    brokers.signal(3, signal.SIGSTOP)  # so that it takes a while
    try:
        eventually(brokers, lambda view: 3 in view.fenced)
        admin(brokers, 1, 2).reorder({one: (1, 3)})
        eventually(brokers, lambda view: view.reassigning == ("moving-0",))
        Leadership(admin(brokers, 1, 2), MemoryRecords(), "orders").avoid("test", [1])
    finally:
        brokers.signal(3, signal.SIGCONT)
    view = eventually(brokers, lambda view: not view.reassigning and not view.doubts)
    assert [set(p.replicas) for p in view.partitions if p.topic == "moving"] == [{1, 3}]
    client.delete_topics(["moving"])
    client.close()


def test_without_a_quorum_nobody_goes(brokers: BareCluster) -> None:
    eventually(brokers, healthy)
    for node in (1, 2):
        brokers.signal(node, signal.SIGSTOP)
    try:
        # Node 3 may answer, stale, or ask a frozen one and say nothing: either way nobody goes.
        try:
            verdicts = [may_leave(node, admin(brokers, 3).read()).allowed for node in NODES]
        except StillwaterError as error:
            assert brokers.bootstrap(3) in str(error)  # noqa: PT017 - both outcomes are right
        else:
            assert verdicts == [False, False, False]
    finally:
        for node in (1, 2):
            brokers.signal(node, signal.SIGCONT)
    eventually(brokers, healthy)


def test_a_killed_broker_is_back_only_once_it_is_in_every_isr(brokers: BareCluster) -> None:
    eventually(brokers, healthy)
    brokers.kill(2)
    view = eventually(brokers, lambda view: 2 in view.fenced)
    assert all(2 not in p.isr for p in view.partitions)
    brokers.start(2)
    view = eventually(brokers, lambda view: check_returned(2, view).allowed)
    assert all(2 in p.isr for p in view.partitions)
