"""What an authorizer takes from the functions, on real Kafka: each right, and the reading then.

Three combined nodes, SASL in the clear (authentication is another test's): `root` is a super user,
`functions` has the rights of core.availability.wholeness, less one at a time.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    KafkaAdminClient,
    NewTopic,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeConfigsRequest

from core.availability.consent import check_returned, may_leave, too_much
from core.availability.wholeness import (
    MOVING_LEADERS,
    READING,
    THROTTLING,
    KafkaOperation,
    KafkaRequest,
    KafkaResource,
    rights_for,
)
from core.ground.errors import StillwaterError
from core.health.kafka import partitions_verdict
from core.health.node import Role
from core.rotation.run_record import Throttle
from core.views import ClusterView
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.kafka_reading import BROKER, TOPIC, WireAdmin
from handlers.incidents.shifts import Leadership
from handlers.rotation.turns import Throttles
from handlers.store.documents import is_left_throttled
from tests.integration.bare_kafka import BareCluster, ground
from tests.integration.waiting import PATIENCE_SECONDS, until, until_read
from tests.unit.handlers.in_memory import MemoryRecords

pytestmark = pytest.mark.integration

NODES = (1, 2, 3)
PLAIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="root" password="root" user_root="root" user_functions="functions";'
)
SETTINGS = f"""\
listener.security.protocol.map=CONTROLPLANE:SASL_PLAINTEXT,REPLICATION:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.mechanism.controller.protocol=PLAIN
listener.name.replication.plain.sasl.jaas.config={PLAIN}
listener.name.controlplane.plain.sasl.jaas.config={PLAIN}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:root
"""


class Named:
    """A user with a password that is its name."""

    def __init__(self, user: str) -> None:
        self.user = user

    def __call__(self) -> Mapping[str, Any]:
        return {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": self.user,
            "sasl_plain_password": self.user,
        }

    def remedy(self, error: BaseException) -> str:
        del error
        return ""


@dataclass(frozen=True)
class Cluster:
    nodes: BareCluster

    def lose_disk(self, node: int) -> None:
        self.nodes.processes.stop(self.nodes.children[node])
        self.nodes.empty(node)

    def addresses(self) -> list[str]:
        return [self.nodes.bootstrap(node) for node in NODES]

    def read(self, about: set[int] | None = None) -> ClusterView:
        admin = KafkaAdmin(self.addresses(), Named("functions"), needed=MOVING_LEADERS)
        return admin.read(about)

    def root(self) -> KafkaAdminClient:
        return KafkaAdminClient(bootstrap_servers=self.addresses()[0], **Named("root")())

    def until(
        self, holds: Callable[[ClusterView], bool], about: set[int] | None = None
    ) -> ClusterView:
        return until_read(lambda: self.read(about), holds)


OPERATIONS = {
    KafkaOperation.ALTER: ACLOperation.ALTER,
    KafkaOperation.ALTER_CONFIGS: ACLOperation.ALTER_CONFIGS,
    KafkaOperation.DESCRIBE: ACLOperation.DESCRIBE,
    KafkaOperation.DESCRIBE_CONFIGS: ACLOperation.DESCRIBE_CONFIGS,
}
RIGHTS = rights_for(KafkaRequest)
# What a reading and the moving of leaders need; a throttle finds its own missing where it is set.
READ_RIGHTS = rights_for(READING | MOVING_LEADERS)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ground(tmp_path_factory.mktemp("kafka")) as made:
        roles = dict.fromkeys(NODES, Role.COMBINED)
        found = Cluster(BareCluster(*made, roles, network=9, settings=SETTINGS))
        for node in NODES:
            found.nodes.start(node)
        _topics(found)
        yield found


def _topics(cluster: Cluster) -> None:
    names = ("orders", "payments")
    topics = [NewTopic(n, num_partitions=3, replication_factor=3) for n in names]

    def made() -> bool:
        try:
            with contextlib.closing(cluster.root()) as admin:
                if len(admin.describe_cluster()["brokers"]) < len(NODES):
                    return False
                if not set(names) <= set(admin.list_topics()):
                    admin.create_topics(topics)
                admin.create_acls([_acl(right) for right in RIGHTS])
        except KafkaError:
            # A controller is named before it is listed as a broker.
            return False
        return True

    until(made, "the topics are made")
    cluster.until(lambda view: len(view.partitions) == 6 and _whole(view))


def _whole(view: ClusterView) -> bool:
    """Say whether all is told and anybody may go: voters and replicas need a moment to follow."""
    return not view.doubts and all(may_leave(node, view).allowed for node in NODES)


def _acl(right: Any, permission: ACLPermissionType = ACLPermissionType.ALLOW) -> ACL:
    on_cluster = right.resource is KafkaResource.CLUSTER
    kind = ResourceType.CLUSTER if on_cluster else ResourceType.TOPIC
    name = "kafka-cluster" if on_cluster else right.name
    pattern = ResourcePattern(kind, name)
    return ACL("User:functions", "*", OPERATIONS[right.operation], permission, pattern)


def _filter(acl: ACL) -> ACLFilter:
    found = acl.resource_pattern
    return ACLFilter(
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
        ResourcePatternFilter(found.resource_type, found.resource_name, found.pattern_type),
    )


def test_with_every_right_of_the_table_a_reading_is_whole(cluster: Cluster) -> None:
    view = cluster.until(_whole)
    assert all(check_returned(node, view).allowed for node in NODES)
    assert partitions_verdict(view).healthy
    about = cluster.read({1})
    assert about.doubts == ()
    assert may_leave(1, about).allowed


@pytest.mark.parametrize("right", READ_RIGHTS, ids=lambda right: right.sentence)
def test_each_right_taken_away_makes_a_reading_blind_by_its_name(
    cluster: Cluster, right: Any
) -> None:
    admin = cluster.root()
    try:
        taken = [right]
        if right.operation is KafkaOperation.DESCRIBE and right.resource is KafkaResource.CLUSTER:
            # Alter implies Describe: without the one, the other is left.
            taken = [
                r
                for r in RIGHTS
                if r.resource is KafkaResource.CLUSTER
                and r.operation != KafkaOperation.DESCRIBE_CONFIGS
            ]
        if right.operation is KafkaOperation.DESCRIBE_CONFIGS:
            # AlterConfigs implies it.
            implying = [r for r in RIGHTS if r.operation is KafkaOperation.ALTER_CONFIGS]
            taken += [r for r in implying if r.resource is right.resource]
        admin.delete_acls([_filter(_acl(each)) for each in taken])
        for about in (None, {1}):
            view = cluster.until(lambda view: view.withheld, about)
            assert right.operation in view.doubts[0].sentence
            assert not any(may_leave(node, view).allowed for node in NODES)
            assert not any(check_returned(node, view).allowed for node in NODES)
            assert not partitions_verdict(view).healthy
    finally:
        admin.create_acls([_acl(each) for each in taken])
        admin.close()
        cluster.until(lambda view: not view.doubts)


def test_the_leaders_of_a_party_leave_all_of_it_and_come_back_in_their_own_order(
    cluster: Cluster,
) -> None:
    before = cluster.until(lambda view: not view.doubts and view.out_of_sync == ())
    kafka = KafkaAdmin(cluster.addresses(), Named("functions"), needed=MOVING_LEADERS)
    leadership = Leadership(kafka, MemoryRecords(), "orders")
    for cause in ("incident:i-1", "incident:i-2"):
        leadership.avoid(cause, (1, 2))
    moved = cluster.until(lambda view: {p.leader for p in view.partitions} == {3})
    assert {p.replicas[0] for p in moved.partitions} == {3}
    assert moved.reassigning == ()
    # What all of them do at once is too much for one of three.
    assert "instead of" in str(too_much({1, 2}, before, {1: "a", 2: "a", 3: "b"}))
    leadership.restore("incident:i-1")
    assert {p.leader for p in cluster.read().partitions} == {3}
    leadership.restore("incident:i-2")
    orders = {p.name: p.replicas for p in before.partitions}
    back = cluster.until(lambda view: {p.name: p.replicas for p in view.partitions} == orders)
    assert all(p.leader == p.replicas[0] for p in back.partitions)


def configured(cluster: Cluster) -> dict[str, dict[str, str]]:
    """Return what throttles replication, as Kafka tells it, by resource."""
    resources = [(BROKER, "", None), (TOPIC, "orders", None), (TOPIC, "payments", None)]
    wire = WireAdmin(bootstrap_servers=cluster.addresses()[0], **Named("root")())
    try:
        told = wire.ask(DescribeConfigsRequest(resources=resources))
    finally:
        wire.close()
    return {
        result.resource_name or "brokers": {
            each.name: each.value
            for each in result.configs
            if "replication.throttled" in each.name and each.value
        }
        for result in told.results
    }


def eventually(cluster: Cluster, wanted: Mapping[str, Mapping[str, str]]) -> None:
    """Wait until Kafka shows its settings so: a broker learns of them with its metadata."""
    until(lambda: configured(cluster) == wanted, f"Kafka shows {wanted}")


NOTHING: dict[str, dict[str, str]] = {"brokers": {}, "orders": {}, "payments": {}}


def test_a_throttle_is_set_for_all_brokers_and_leaves_nothing_behind(cluster: Cluster) -> None:
    cluster.until(lambda view: not view.doubts and view.out_of_sync == ())
    eventually(cluster, NOTHING)
    kafka = KafkaAdmin(cluster.addresses(), Named("functions"))
    records = MemoryRecords()
    throttles = Throttles(kafka, records, "orders")
    wanted = Throttle(
        brokers=(3,), topics=("orders",), follower_bytes_per_s=4_000_000, leader_bytes_per_s=3000000
    )
    throttles.settle("rotation-1", wanted)
    throttled = {
        "brokers": {
            "leader.replication.throttled.rate": "3000000",
            "follower.replication.throttled.rate": "4000000",
        },
        "orders": {
            "leader.replication.throttled.replicas": "*",
            "follower.replication.throttled.replicas": "*",
        },
    }
    eventually(cluster, NOTHING | throttled)
    throttles.tidy(None)
    eventually(cluster, NOTHING)
    assert not is_left_throttled(records, "orders", None)


def refusal(kafka: KafkaAdmin, wanted: Throttle | None) -> str:
    """Set a throttle, or lift it from `orders`; return why it is refused, if it is."""
    try:
        if wanted is None:
            kafka.unthrottle(("orders",))
        else:
            kafka.throttle(wanted)
    except StillwaterError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("right", rights_for(THROTTLING), ids=lambda right: right.sentence)
def test_without_its_right_a_throttle_is_refused_in_a_sentence_and_a_reading_stays_whole(
    cluster: Cluster, right: Any
) -> None:
    wanted = Throttle(
        brokers=(3,), topics=("orders",), follower_bytes_per_s=4_000_000, leader_bytes_per_s=3000000
    )
    kafka = KafkaAdmin(cluster.addresses(), Named("functions"))
    admin = cluster.root()
    try:
        admin.delete_acls([_filter(_acl(right))])
        until(
            lambda: f"grant the functions' user {right.sentence}" in refusal(kafka, wanted),
            "it is refused for its right",
        )
        assert cluster.read().doubts == ()
    finally:
        admin.create_acls([_acl(right)])
        admin.close()
        until(lambda: refusal(kafka, None) == "", "it is lifted")
    eventually(cluster, NOTHING)


@pytest.mark.long
def test_a_broker_that_lost_its_disk_refills_at_the_rate_of_the_throttle(cluster: Cluster) -> None:
    cluster.until(lambda view: not view.doubts and view.out_of_sync == ())
    producer = KafkaProducer(bootstrap_servers=cluster.addresses(), acks="all", **Named("root")())
    record = os.urandom(500_000)
    for _ in range(80):
        producer.send("orders", record).get(PATIENCE_SECONDS)
    producer.close()
    kafka = KafkaAdmin(cluster.addresses(), Named("functions"))
    held = kafka.log_bytes()[3]
    assert held > 40_000_000
    rate = 2 * 1024 * 1024
    throttles = Throttles(kafka, MemoryRecords(), "orders")
    throttles.settle(
        "rotation-1",
        Throttle(
            brokers=(3,), topics=("orders",), follower_bytes_per_s=rate, leader_bytes_per_s=rate
        ),
    )
    cluster.lose_disk(3)
    cluster.until(lambda view: 3 in view.fenced or 3 not in view.brokers)
    began = time.monotonic()
    cluster.nodes.start(3)
    cluster.until(lambda view: view.online(3))
    while time.monotonic() - began < 8:
        took = time.monotonic() - began
        # Kafka counts in windows of a second, and lets a fetch of each partition be the last.
        assert kafka.log_bytes().get(3, 0) < rate * took + 8_000_000
        time.sleep(0.5)
    view = cluster.read()
    assert any(3 not in p.isr for p in view.held_by(3) if p.topic == "orders")
    # What is in sync is throttled by nobody: those who produce go on.
    assert all({1, 2} <= set(p.isr) for p in view.partitions)
    throttles.settle("rotation-1", None)
    cluster.until(lambda view: not view.doubts and view.out_of_sync == ())
    assert kafka.log_bytes()[3] == pytest.approx(held, rel=0.05)


def test_one_topic_denied_makes_a_reading_blind(cluster: Cluster) -> None:
    admin = cluster.root()
    denied = _acl(
        type(RIGHTS[0])(KafkaResource.TOPIC, KafkaOperation.DESCRIBE, "payments"),
        ACLPermissionType.DENY,
    )
    try:
        admin.create_acls([denied])
        for about in (None, {1}):
            view = cluster.until(lambda view: view.withheld, about)
            assert "Kafka hides topic payments (TopicAuthorizationFailed)" in view.doubt
            assert {p.topic for p in view.partitions} == {"orders"}
            assert not may_leave(1, view).allowed
            assert not check_returned(1, view).allowed
    finally:
        admin.delete_acls([_filter(denied)])
        admin.close()
        cluster.until(lambda view: not view.doubts)
