"""core.cluster.changes: what a running cluster cannot follow, and whom a change shuts out."""

import json
from typing import Any

import pytest

from core.cluster import ClusterSpec, changes, parse
from tests.every_case import every_case
from tests.tables import cases
from tests.unit.infra.programs import BROKER, CONTROLLER, ZONES, description
from tests.unit.infra.variants import VARIANTS

PINNED = {**CONTROLLER, "zones": ZONES}
PINNED_IN_TWO = {**PINNED, "zones": ZONES[:2]}
TWO_IN_A_ZONE = {**BROKER, "nodes_per_zone": 2}
TOPIC = {"name": "orders", "partitions": 12}


def spec(**changed: Any) -> ClusterSpec:
    return parse(description(**{"pools": [PINNED, BROKER], "topics": [TOPIC], **changed}))


def pools(**changed: Any) -> dict[str, Any]:
    return {"pools": [PINNED, {**BROKER, **changed}]}


def kubernetes(version: str) -> dict[str, Any]:
    return {"kubernetes": {"version": version}}


REFUSED = """
name: orders-2 => name was orders and is orders-2
environment: prod => environment was test and is prod
kubernetes.namespace: streams => kubernetes.namespace was kafka
network.vpc_cidr: 10.50.0.0/16 => network.vpc_cidr was 10.40.0.0/16
pools.1.first_node_id: 40 => the nodes of broker-a have the ids 10, and Stillwater would look
pools.1.node_ids_per_zone: 20 => the nodes of broker-b have the ids 20, and Stillwater
pools.1.name: kafka => nodes of broker-a run under ids that kafka-a would take
pools.0.zones: [us-east-1a]
    => of the controllers 1, 2 would go, and the voters of a live cluster cannot change
{pools.0.node_ids_per_zone: 3, pools.0.nodes_per_zone: 3}
    => the voters of a live cluster cannot change
pools.1.role: combined => of the controllers 10, 20, 30 would join
pools.1.volumes: [{size_gib: 99}] => volume 0 of pool broker has 100 GiB and would have
kubernetes.version: "1.33" => kubernetes.version was 1.35 and is 1.33
kafka.listener.port: 9095 => a target group keeps its port
kafka.listener.first_advertised_port: 10010
    => would give port 10020 of the load balancer to another broker, and 2
{pools.1.first_node_id: 100, kafka.listener.bootstrap_port: 10010} => 10010
{availability_zones: [us-east-1a, us-east-1b], pools.0.zones: [us-east-1a, us-east-1b],
    pools.1.nodes_per_zone: 2} => availability_zones no longer names us-east-1c. AWS keeps subnets
kafka.metadata_version: 4.1-IV0 => that step cannot be undone
topics.0.partitions: 6 => has 12 partitions and would have 6
node_provisioner: karpenter => every machine of Kafka's at once
"""


@every_case(("changed", "words"), cases(REFUSED))
def test_what_a_cluster_cannot_follow_is_refused(changed: dict[str, Any], words: str) -> None:
    found = changes.refused_changes(spec(), spec(**changed))
    assert any(words in sentence for sentence in found), found
    assert all(sentence.endswith(".") and "\n" not in sentence for sentence in found)


@pytest.mark.parametrize("zones", [ZONES[::-1], [ZONES[1], ZONES[0], ZONES[2]]])
def test_zones_of_another_order_are_refused(zones: list[str]) -> None:
    found = changes.refused_changes(spec(), spec(availability_zones=zones))
    assert any("leave the order of availability_zones" in sentence for sentence in found)


def test_a_zone_put_in_before_another_is_refused_and_one_behind_is_not() -> None:
    two = spec(
        availability_zones=[ZONES[0], ZONES[2]],
        pools=[{**PINNED, "zones": ZONES[:1]}, {**BROKER, "nodes_per_zone": 2}],
    )
    grown = {"pools": [{**PINNED, "zones": ZONES[:1]}, {**BROKER, "nodes_per_zone": 2}]}
    (found,) = changes.refused_changes(two, spec(**grown))
    assert (
        "the nodes of broker-c have the ids 20, 21, and Stillwater would look for 30, 31" in found
    )
    behind = spec(availability_zones=[ZONES[0], ZONES[2], ZONES[1]], **grown)
    assert changes.refused_changes(two, behind) == []
    (felt,) = changes.felt_changes(two, behind)
    assert felt.startswith("the brokers 30, 31 would come")


@every_case(
    "changed",
    [
        {},
        pools(nodes_per_zone=3),
        pools(volumes=[*BROKER["volumes"], {"size_gib": 10}]),
        pools(instance_type="r7g.8xlarge", spare_nodes_per_zone=2),
        {"pools": [PINNED, BROKER, {**BROKER, "name": "more", "first_node_id": 100}]},
        {"pools": [CONTROLLER, BROKER]},
        kubernetes("1.34"),
        kubernetes("1.36"),
        pools(zones=ZONES[:2], nodes_per_zone=2),
        {"kafka": {"listener": {"first_advertised_port": 10_001}}},
        kubernetes("1.37"),
        {"topics": [{**TOPIC, "replication_factor": 1}]},
        {"kafka": {"version": "4.3.0", "metadata_version": "4.3-IV0"}},
        {"topics": [{**TOPIC, "partitions": 24, "config": {"retention.ms": 1}}, {"name": "more"}]},
        {"topics": []},
        {"network": {"interface_endpoints": True}, "connect": {}},
        {
            **pools(volumes=[{"size_gib": 1, "iops": 3000}]),
            "volumes": {"mode": "apply", "max_monthly_increase_usd": 1},
        },
    ],
    ids=str,
)
def test_what_a_running_cluster_follows_is_taken(changed: dict[str, Any]) -> None:
    assert changes.refused_changes(spec(), spec(**changed)) == []


@every_case(
    ("before", "after", "words"),
    [
        (pools(nodes_per_zone=2), {},
            "the brokers 11, 21, 31 (broker-a, broker-b, broker-c) would"),
        ({}, pools(nodes_per_zone=2),
            "the brokers 11, 21, 31 would come. Until they are Ready, Strimzi's operator does"),
        ({}, pools(nodes_per_zone=2), "`stillwater up test --layer kafka --target 'nodes-*'`"),
        ({"node_provisioner": "karpenter"},
            {"node_provisioner": "karpenter", **pools(nodes_per_zone=2)},
            "Karpenter starts their nodes once the pods wait for them."),
        ({}, pools(volumes=BROKER["volumes"][:1]), "would have 1 volumes where it has 2"),
        ({}, {"kafka": {"listener": {"first_advertised_port": 20_000}}}, "and is 20000: brokers"),
        ({}, kubernetes("1.37"), "write 1.36 first, unless"),
        ({}, kubernetes("1.34"), "EKS rolls back only within seven days"),
        ({"kubernetes": {"upgrade_policy": "extended"}}, {},
            "refuses of a cluster that has entered extended support"),
        ({}, {"kubernetes": {"upgrade_policy": "extended"}}, None),
        ({}, {"topics": [{**TOPIC, "replication_factor": 1}]}, "set its replication_factor to 3"),
        ({}, {"kafka": {"listener": {"tls": True}}, "users": [], **kubernetes("1.36")}, None),
        ({"topics": []}, {"topics": [{**TOPIC, "replication_factor": 1}]}, None),
    ],
)  # fmt: skip
def test_what_somebody_feels_is_said(
    before: dict[str, Any], after: dict[str, Any], words: str | None
) -> None:
    found = changes.felt_changes(spec(**before), spec(**after))
    assert [words in each for each in found if words] == [True] * bool(words)


def test_a_key_is_taken_and_never_given_up() -> None:
    key = "arn:aws:kms:us-east-1:111122223333:key/12345678-1234-1234-1234-12345678901{}"
    with_one, with_another = (spec(encryption_key=key.format(number)) for number in (1, 2))
    assert changes.refused_changes(spec(), with_one) == []
    for after in (with_another, spec()):
        (found,) = changes.refused_changes(with_one, after)
        assert "nodes would lose the grants to attach them" in found


def in_a_vpc(zones: list[str], blocks: list[str]) -> ClusterSpec:
    subnets = {zone: f"subnet-0123456789abcdef{zone[-1]}" for zone in zones}
    existing = {"vpc_id": "vpc-0123456789abcdef0", "private_subnet_ids": subnets}
    network = {"existing": existing, "secondary_cidrs": blocks}
    return spec(availability_zones=zones, network=network, pools=[PINNED_IN_TWO, TWO_IN_A_ZONE])


def test_blocks_of_a_vpc_that_move_the_services_are_refused_and_others_are_not() -> None:
    before = in_a_vpc(ZONES, [])
    (found,) = changes.refused_changes(before, in_a_vpc(ZONES, ["172.20.0.0/16"]))
    assert "block of Kubernetes' Services from 172.20.0.0/16 to 10.100.0.0/16" in found
    assert changes.refused_changes(before, in_a_vpc(ZONES, ["172.21.0.0/16"])) == []


def test_a_zone_of_somebody_elses_vpc_may_be_left() -> None:
    assert changes.refused_changes(in_a_vpc(ZONES, []), in_a_vpc(ZONES[:2], [])) == []


@every_case("name", VARIANTS)
def test_what_a_layer_was_made_from_is_read_again_as_it_was(name: str) -> None:
    made = parse(VARIANTS[name])
    assert parse(json.loads(made.model_dump_json())) == made


ACL = {"resource": "topic", "name": "orders", "operations": ["Read"]}
BILLING = {"name": "billing", "authentication": "tls", "acls": [ACL]}
RETAINED_TOPIC = {"name": "orders", "partitions": 12, "config": {"retention.ms": 604_800_000}}
TLS = {"authentication": "tls"}
SUBNETS = {zone: f"subnet-0123456789abcdef{zone[-1]}" for zone in ZONES}
NETWORK = {"vpc_id": "vpc-0123456789abcdef0", "private_subnet_ids": SUBNETS}
BEFORE: dict[str, Any] = {
    "pools": [{**CONTROLLER, "role": "combined", "zones": ZONES}, BROKER],
    "topics": [RETAINED_TOPIC],
    "users": [BILLING],
    "kafka": {"listener": TLS, "internal_listener": TLS},
    "load_balancer": {"client_cidrs": ["192.168.0.0/24"], "private_zone": "stillwater.internal",
        "endpoint_principals": ["arn:aws:iam::111122223333:root"]},
    "network": {"existing": NETWORK},
    "connect": {"replicas": 1},
    "eviction_gate": {"image": "registry.example/gate:1"},
}  # fmt: skip


def spec_before(**changed: Any) -> ClusterSpec:
    return parse(description(**{**BEFORE, **changed}))


FELT = """
users: [] => users no longer names billing
users.0.acls: [] => lose Read on topic orders
kafka.authorization: none => every client may do everything
kafka.listener.name: out => bindings look for Services of the new name
load_balancer: {} => no longer names 192.168.0.0/24
load_balancer: {} => deletes none with connected endpoints
load_balancer: {endpoint_principals: [arn:aws:iam::111122223334:root]}
    => those that are connected stay until you reject them
load_balancer: {} => the endpoint service would be deleted or
network.existing.private_subnet_ids.us-east-1a: subnet-0123456789abcdeff
    => the load balancer would be deleted
encryption_key: arn:aws:kms:us-east-1:111122223333:key/12345678-1234-1234-1234-123456789012
    => the storage class of Kafka's volumes would
alerts.enabled: false => the key of the alarms' topic would be
load_balancer.private_zone: null
    => the private zone stillwater.internal would be deleted or replaced
pools: [{name: controller, role: combined, instance_type: m7g.xlarge, first_node_id: 0,
    node_ids_per_zone: 1, zones: [us-east-1a, us-east-1b, us-east-1c]}] => the KafkaNodePool
    broker-a, the KafkaNodePool broker-b, the KafkaNodePool broker-c would
kubernetes.system_instance_type: m7g.large => every zone's managed node group is deleted
connect: null => every connector on them would stop
ephemeral: true => nothing is protected
snapshots: null => no further snapshots
eviction_gate: null => no drainer of Kafka's pods asks Kafka
encryption_key: arn:aws:kms:us-east-1:111122223333:key/12345678-1234-1234-1234-123456789012
    => volumes that are there keep their key
network.existing.private_subnet_ids.us-east-1a: subnet-0123456789abcdeff
    => replaces the load balancer
strimzi.operator: external => the operator that runs
topics.0.config: {retention.ms: 1000} => retention.ms of topic orders was 604800000 and is 1000
kafka.config: {log.retention.hours: 1} => log.retention.hours of kafka.config was not set and is 1
topics.0.partitions: 24 => gets 12 partitions more
pools.0.role: controller => the brokers 0, 1, 2
"""


@every_case(("changed", "words"), cases(FELT))
def test_what_a_change_takes_is_said_and_not_refused(changed: dict[str, Any], words: str) -> None:
    before, after = spec_before(), spec_before(**changed)
    assert changes.refused_changes(before, after) == []
    said = changes.felt_changes(before, after)
    assert any(words in each for each in said), said
    assert all(each.endswith(".") for each in said)


def test_where_nothing_is_protected_nothing_stops() -> None:
    before, after = (
        spec_before(ephemeral=True),
        spec_before(ephemeral=True, alerts={"enabled": False}),
    )
    assert changes.felt_changes(before, after) == []


def test_of_what_stays_nothing_is_said() -> None:
    assert changes.felt_changes(spec_before(), spec_before()) == []
