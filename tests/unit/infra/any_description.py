"""Descriptions as people might write them, each of which is right: drawn by hypothesis."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from core.cluster.limits import LONGEST_SUFFIX, RULE_NAME_LIMIT, overhead_mib, requested_room
from core.ground import instances
from core.ground.regions import ZONES
from tests.unit.infra.variants import TOKENS

# A group, its Service and its target group of a name as long as this all fit, with any zone and id.
_LONGEST_POOL, _LONGEST_CLUSTER = 20, 21
_IMAGE = "registry.example:5000/team/stillwater-gate:1.4"
_MOST_LISTENERS = 49
# Machines on which a small Kafka and its volumes fit, of either processor, bursting ones and such
# with disks of their own among them.
_TYPES = sorted(
    name
    for name, kind in instances.table().types.items()
    if kind.memory_mib >= 8192 and kind.vcpus >= 2 and kind.attachments > 5
)


@functools.cache
def _names(longest: int) -> st.SearchStrategy[str]:
    inside = st.text("abcxyz0189-", max_size=longest - 2)
    return st.tuples(st.sampled_from("bcdefgh"), inside, st.sampled_from("aztk79")).map("".join)


def _maybe(key: str, value: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(st.just({}), value.map(lambda found: {key: found}))


@st.composite
def _pool(draw: Any, name: str, role: str, first: int, zones: Sequence[str]) -> dict[str, Any]:
    kind = instances.table().types[draw(st.sampled_from(_TYPES))]
    left = requested_room(kind, node_monitoring=True)
    memory = draw(st.integers(1024, left.memory_mib - overhead_mib(kind)))
    size = draw(st.integers(10, 4000))
    fast = draw(st.booleans())
    return {
        "name": name,
        "role": role,
        "instance_type": kind.name,
        "zones": list(zones),
        "nodes_per_zone": draw(st.integers(1, 2)),
        "spare_nodes_per_zone": draw(st.integers(0, 1)) if role != "controller" else 0,
        "first_node_id": first,
        "memory_request_mib": memory,
        "heap_mib": memory // 2,
        "cpu_request_millis": draw(st.integers(50, left.cpu_millis)),
        "volumes_may_burst": fast,
        "volumes": [
            {"size_gib": size, **({"iops": 4000, "throughput_mib_per_s": 200} if fast else {})}
        ]
        * draw(st.integers(1, 2)),
    }


@st.composite
def _pools(draw: Any, zones: Sequence[str]) -> list[dict[str, Any]]:
    # Two brokers and a spare one of each in a zone.
    most = min(4, _MOST_LISTENERS // (3 * len(zones)))
    names = draw(st.lists(_names(_LONGEST_POOL), min_size=2, max_size=most, unique=True))
    combined = draw(st.booleans())
    first = draw(_pool(names[0], "combined" if combined else "controller", 0, zones))
    return [
        first,
        *(
            draw(_pool(name, "broker", 1000 * number, zones))
            for number, name in enumerate(names[1:], 1)
        ),
    ]


@functools.cache
def _asking() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(
        [
            {},
            {"authentication": "tls"},
            {"authentication": "scram-sha-512"},
            {"authentication": "scram-sha-512", "tls": False},
        ]
    )


@st.composite
def _kafka(draw: Any, brokers: int, host: str) -> dict[str, Any]:
    factor = draw(st.integers(1, min(5, brokers)))
    tokens = draw(st.booleans())
    listener = dict(TOKENS) if tokens else draw(_asking())
    return {
        "default_replication_factor": factor,
        "min_insync_replicas": max(1, factor - 1),
        "listener": {
            **listener,
            "name": draw(st.sampled_from(["nlb", "external", "a1b2c3d4e5f"])),
            "advertised_host": host,
            "bootstrap_port": draw(st.integers(1024, 9999)),
        },
        "internal_listener": draw(_asking()),
        **({"functions": {"secret_name": "our.functions"}} if tokens else {}),
        "config": draw(
            st.sampled_from([{}, {"log.retention.hours": 48}, {"num.io.threads": "16"}])
        ),
    }


def _network(zones: Sequence[str]) -> st.SearchStrategy[dict[str, Any]]:
    ids = {zone: f"subnet-0123456789abcdef{zone[-1]}" for zone in zones}
    existing = {"vpc_id": "vpc-0123456789abcdef0", "private_subnet_ids": ids}
    ours = st.sampled_from(["10.40.0.0/16", "172.20.0.0/17", "192.168.0.0/16"]).map(
        lambda block: {"vpc_cidr": block}
    )
    theirs = st.sampled_from([[], ["100.64.0.0/16"], ["10.60.0.0/24"]]).map(
        lambda blocks: {"existing": existing, "secondary_cidrs": blocks}
    )
    return st.one_of(ours, theirs)


# To make a strategy takes longer than to draw from it.
@functools.cache
def _optional(password: str) -> tuple[st.SearchStrategy[dict[str, Any]], ...]:
    return (
        _maybe("connect", st.just({"replicas": 1, "image": _IMAGE})),
        _maybe("probe", st.just({"image": _IMAGE, "objective_percent": 99.5})),
        _maybe("eviction_gate", st.just({"image": _IMAGE})),
        _maybe("maintenance", st.just({"start_utc": "23:30", "duration_minutes": 90})),
        _maybe("snapshots", st.sampled_from([None, {"every_hours": 1, "kept": 30}])),
        _maybe("slack", st.just({"channel": "C0123456789", "secret_name": "kafka/slack"})),
        _maybe("drain_route", st.sampled_from(["held", "direct"])),
        _maybe("ephemeral", st.booleans()),
        _maybe("topics", st.just([{"name": "Orders.v1", "replication_factor": 1}])),
        _maybe("users", st.just([{"name": "billing", "authentication": password}])),
        _maybe("tags", st.just({"team/cost": "Kafka + co", "x": ""})),
        _maybe("metrics", st.just({"prometheus_operator": True, "dashboards": True})),
        _maybe("alerts", st.just({"email": ["on.call+kafka@example.org"]})),
        _maybe("load_balancer", st.just({"private_zone": "example.INTERNAL"})),
        _maybe("volumes", st.just({"mode": "apply", "max_monthly_increase_usd": "12.50"})),
    )


@st.composite
def descriptions(draw: Any) -> Mapping[str, Any]:
    """Return a description that `check` passes and AWS takes, with any of what is optional."""
    region = draw(st.sampled_from(sorted(ZONES)))
    zones = [f"{region}{letter}" for letter in draw(st.permutations(ZONES[region]))[:4]]
    provisioner = draw(st.sampled_from(["asg", "karpenter"]))
    left = RULE_NAME_LIMIT - len(LONGEST_SUFFIX[provisioner])
    name = draw(_names(_LONGEST_CLUSTER))
    environment = draw(_names(left - _LONGEST_CLUSTER - 1))
    pools = draw(_pools(zones))
    brokers = sum(
        len(zones) * pool["nodes_per_zone"] for pool in pools if pool["role"] != "controller"
    )
    host = draw(st.sampled_from(["kafka.example.internal", f"{'k' * 60}.Example.internal"]))
    kafka = draw(_kafka(brokers, host))
    password = kafka["internal_listener"].get("authentication", "tls")
    return {
        "name": name,
        "environment": environment,
        "region": region,
        "availability_zones": zones,
        "node_provisioner": provisioner,
        "pools": pools,
        "kafka": kafka,
        "accept": ["min-insync"] if kafka["min_insync_replicas"] == 1 else [],
        "network": draw(_network(zones)),
        "kubernetes": {"system_instance_type": "m7g.2xlarge"},
        **{key: value for each in _optional(password) for key, value in draw(each).items()},
    }
