"""core.cluster.changes: whom a change shuts out, and what it no longer keeps."""

from __future__ import annotations

from typing import Any

from core.cluster import ClusterSpec, changes, parse
from tests.every_case import every_case
from tests.unit.infra.programs import BROKER, CONTROLLER, ZONES, description

ACL = {"resource": "topic", "name": "orders", "operations": ["Read"]}
BILLING = {"name": "billing", "authentication": "tls", "acls": [ACL]}
TOPIC = {"name": "orders", "partitions": 12, "config": {"retention.ms": 604_800_000}}
TLS = {"authentication": "tls"}
SUBNETS = {zone: f"subnet-0123456789abcdef{zone[-1]}" for zone in ZONES}
NETWORK = {"vpc_id": "vpc-0123456789abcdef0", "private_subnet_ids": SUBNETS}
MOVED = {**NETWORK, "private_subnet_ids": {**SUBNETS, ZONES[0]: "subnet-0123456789abcdeff"}}
KEY = "arn:aws:kms:us-east-1:111122223333:key/12345678-1234-1234-1234-123456789012"
BEFORE: dict[str, Any] = {
    "pools": [
        {**CONTROLLER, "role": "combined", "zones": ZONES},
        BROKER,
    ],
    "topics": [TOPIC],
    "users": [BILLING],
    "kafka": {"listener": TLS, "internal_listener": TLS},
    "load_balancer": {
        "client_cidrs": ["192.168.0.0/24"],
        "private_zone": "stillwater.internal",
        "endpoint_principals": ["arn:aws:iam::111122223333:root"],
    },
    "network": {"existing": NETWORK},
    "connect": {"replicas": 1},
}


def spec(**changed: Any) -> ClusterSpec:
    return parse(description(**{**BEFORE, **changed}))


FELT: dict[str, tuple[dict[str, Any], str]] = {
    "a user gone": ({"users": []}, "users no longer names billing"),
    "an ACL gone": ({"users": [{**BILLING, "acls": []}]}, "lose Read on topic orders"),
    "no authorization": (
        {"kafka": {**BEFORE["kafka"], "authorization": "none"}},
        "whoever is let in may do everything",
    ),
    "another listener's name": (
        {"kafka": {**BEFORE["kafka"], "listener": {**TLS, "name": "out"}}},
        "bindings look for Services of the new name",
    ),
    "networks gone": ({"load_balancer": {}}, "no longer names 192.168.0.0/24"),
    "every account gone": ({"load_balancer": {}}, "deletes none that endpoints are connected to"),
    "an account gone": (
        {"load_balancer": {"endpoint_principals": ["arn:aws:iam::111122223334:root"]}},
        "those that are connected stay until you reject them",
    ),
    "a protected service": ({"load_balancer": {}}, "the endpoint service would be deleted or"),
    "a protected balancer": (
        {"network": {"existing": MOVED}},
        "the load balancer would be deleted",
    ),
    "a protected class": ({"encryption_key": KEY}, "the storage class of Kafka's volumes would"),
    "a protected key": ({"alerts": {"enabled": False}}, "the key of the alarms' topic would be"),
    "a protected zone": (
        {"load_balancer": {**BEFORE["load_balancer"], "private_zone": None}},
        "the private zone stillwater.internal would be deleted or replaced",
    ),
    "a protected pool": (
        {"pools": [{**CONTROLLER, "role": "combined", "zones": ZONES}]},
        "the KafkaNodePool broker-a, the KafkaNodePool broker-b, the KafkaNodePool broker-c would",
    ),
    "other system nodes": (
        {"kubernetes": {"system_instance_type": "m7g.large"}},
        "every zone's is deleted, at once, before another is made",
    ),
    "no Connect": ({"connect": None}, "every connector on them would stop"),
    "no protection": ({"ephemeral": True}, "nothing is protected"),
    "no snapshots": ({"snapshots": None}, "no more are taken"),
    "another key": ({"encryption_key": KEY}, "volumes that are there keep their key"),
    "another subnet": ({"network": {"existing": MOVED}}, "makes a load balancer anew"),
    "another operator": ({"strimzi": {"operator": "external"}}, "the operator that runs"),
    "shorter retention": (
        {"topics": [{**TOPIC, "config": {"retention.ms": 1000}}]},
        "retention.ms of topic orders was 604800000 and is 1000",
    ),
    "shorter retention of all": (
        {"kafka": {**BEFORE["kafka"], "config": {"log.retention.hours": 1}}},
        "log.retention.hours of kafka.config was not set and is 1",
    ),
    "more partitions": ({"topics": [{**TOPIC, "partitions": 24}]}, "gets 12 partitions more"),
    "brokers that only vote": (
        {"pools": [{**CONTROLLER, "zones": ZONES}, BROKER]},
        "the brokers 0, 1, 2",
    ),
}


@every_case(("changed", "words"), FELT.values(), ids=FELT.keys())
def test_what_a_change_takes_is_said_and_not_refused(changed: dict[str, Any], words: str) -> None:
    before, after = spec(), spec(**changed)
    assert changes.refused_changes(before, after) == []
    said = changes.felt_changes(before, after)
    assert any(words in each for each in said), said
    assert all(each.endswith(".") for each in said)


def test_where_nothing_is_protected_nothing_stops() -> None:
    before, after = spec(ephemeral=True), spec(ephemeral=True, alerts={"enabled": False})
    assert changes.felt_changes(before, after) == []


def test_of_what_stays_nothing_is_said() -> None:
    assert changes.felt_changes(spec(), spec()) == []
