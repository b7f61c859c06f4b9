"""Limits: what AWS or Kubernetes would refuse is a sentence before anything is built."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.checks import contradictions
from core.cluster import ClusterSpec, limits, parse
from core.cluster.addresses import beyond_what_accounts_begin_with
from core.cluster.limits import LONGEST_SUFFIX, ON_EVERY_NODE, RULE_NAME_LIMIT, problems
from core.ground.instances import table
from infra.spec import doubts_of
from infra.versions import ADDONS
from tests.every_case import every_case
from tests.unit.infra.programs import BROKER, CONTROLLER, description

GP3_INCLUDED = {"size_gib": 100, "iops": 3000, "throughput_mib_per_s": 125}


def spec(*, broker: dict[str, Any] | None = None, **changed: Any) -> ClusterSpec:
    """A cluster of combined nodes whose one pool is given."""
    pool = {
        "name": "node",
        "role": "combined",
        "instance_type": "r7g.xlarge",
        "first_node_id": 0,
        **(broker or {}),
    }
    return parse(
        {
            "name": "orders",
            "environment": "test",
            "region": "us-east-1",
            "availability_zones": ["us-east-1a", "us-east-1b", "us-east-1c"],
            "pools": [pool],
            **changed,
        }
    )


def pools(count: int, length: int, **changed: Any) -> ClusterSpec:
    """A cluster of so many pools, each in one zone, whose names have so many characters."""
    kind = {"role": "controller", "instance_type": "m7g.xlarge", "zones": ["us-east-1a"]}
    named = [
        {**kind, "name": f"p{number}".ljust(length, "x"), "first_node_id": 100 * number}
        for number in range(count - 1)
    ]
    broker = {**kind, "name": "broker", "role": "broker", "zones": None, "first_node_id": 9000}
    return spec(**changed, pools=[*named, broker])


def volumes(*each: dict[str, int]) -> dict[str, Any]:
    return {"volumes": [{**GP3_INCLUDED, **volume} for volume in each]}


def test_a_modest_cluster_breaks_no_limit() -> None:
    assert problems(spec()) == []


# One way to break each rule, and the words its sentence must hold.
BREAKING: list[tuple[str, ClusterSpec, tuple[str, ...]]] = [
    (
        "for a rule's name leave",
        spec(environment="b" * 22, name="a" * 21),
        ("44 characters", "leave 43", "shorten one"),
    ),
    (
        "for a rule's name leave",
        spec(environment="b" * 17, name="a" * 16, node_provisioner="karpenter"),
        ("34 characters", "leave 33"),
    ),
    (
        "AWS's limit leaves",
        pools(22, 10, environment="b" * 22, name="a" * 20),
        ("22 pools' groups", "1580 characters of a rule", "leaves 1550", "shorten environment"),
    ),
    (
        "AWS's limit leaves",
        pools(50, 3, environment="b", name="a"),
        ("50 pools' groups", "5856 characters of a role's policy", "leaves 5800"),
    ),
    *[
        ("AWS keeps", spec(environment=environment), (f"{environment}-", what))
        for environment, what in {
            "internal": "a load balancer's name",
            "sg": "a security group's name",
            "sthree": "a bucket's name",
        }.items()
    ],
    (
        "The zone has no addresses",
        spec(availability_zones=["us-east-1a", "us-east-1b", "us-east-1k"]),
        ("us-east-1k", "zones a to h", "network.existing"),
    ),
    (
        "throughput_mib_per_s of pool node",
        spec(broker=volumes({"throughput_mib_per_s": 150, "iops": 3000})),
        ("150 MiB/s", "r7g.xlarge sustains 149 MiB/s", "volumes_may_burst"),
    ),
    (
        "throughput_mib_per_s of pool node",
        spec(broker=volumes({"throughput_mib_per_s": 126}, {})),
        ("adds up to 251 MiB/s", "lower throughput_mib_per_s"),
    ),
    (
        "iops of pool node",
        spec(broker=volumes({"iops": 6001})),
        ("6001 IOPS", "sustains 6000 IOPS", "lower iops"),
    ),
    (
        "an d3en.12xlarge attaches",
        spec(broker={"instance_type": "d3en.12xlarge", **volumes({}, {})}),
        ("2 volumes per node", "attaches 1 in addition to", "fewer, larger volumes"),
    ),
    (
        "memory_request_mib of pool node",
        spec(broker={"memory_request_mib": 32000}),
        ("32000 MiB", "r7g.xlarge leaves it 31625 MiB", "larger instance type"),
    ),
    (
        "cpu_request_millis of pool node",
        spec(broker={"cpu_request_millis": 3950}),
        ("3950 m", "leaves it 3730 m", "No node can ever run the pod"),
    ),
]


@every_case(
    ("rule", "checked", "words"), BREAKING, ids=[f"{n}-{b[0]}" for n, b in enumerate(BREAKING)]
)
def test_a_broken_limit_is_one_sentence_with_values_and_remedy(
    rule: str, checked: ClusterSpec, words: tuple[str, ...]
) -> None:
    (sentence,) = problems(checked)
    assert rule in sentence
    assert all(word in sentence for word in words), sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_a_zone_of_a_vpc_that_is_there_already_needs_no_addresses_of_ours() -> None:
    zone, subnet = "us-east-1k", "subnet-0123456789abcdef0"
    existing = {"vpc_id": "vpc-0123456789abcdef0", "private_subnet_ids": {zone: subnet}}
    kafka = {"default_replication_factor": 1, "min_insync_replicas": 1}
    network = {"existing": existing}
    assert problems(spec(availability_zones=[zone], network=network, kafka=kafka)) == []


def test_what_gp3_includes_is_never_too_much_since_it_cannot_be_lowered() -> None:
    small = spec(broker={"instance_type": "r7g.large", **volumes({}, {}, {})})
    assert table().types["r7g.large"].ebs_mib_per_s < 125
    assert problems(small) == []


def test_who_wants_bursts_may_have_them() -> None:
    fast = {"throughput_mib_per_s": 500, "iops": 8000}
    assert problems(spec(broker={"volumes_may_burst": True, **volumes(fast)})) == []


@given(throughput=st.integers(125, 2000))
def test_volumes_are_accepted_exactly_up_to_the_instances_baseline(throughput: int) -> None:
    fast = volumes({"size_gib": 500, "iops": 8000, "throughput_mib_per_s": throughput})
    found = problems(spec(broker={"instance_type": "r7g.4xlarge", **fast}))
    within = throughput * 1024**2 <= table().types["r7g.4xlarge"].ebs_mb_per_s * 1000**2
    assert (found == []) is within


def test_every_row_of_the_table_has_figures_that_can_be_compared() -> None:
    assert len(table().types) > 500
    for instance in table().types.values():
        assert min(instance.vcpus, instance.memory_mib, instance.ebs_mib_per_s) > 0
        assert instance.ebs_iops > 0
        assert instance.attachments >= 3


def test_the_longest_suffix_leaves_room_for_a_prefix() -> None:
    assert all(RULE_NAME_LIMIT - len(suffix) > 30 for suffix in LONGEST_SUFFIX.values())


def found(changed: dict[str, Any]) -> list[str]:
    return contradictions.problems(parse(description(**changed)))


def allowed(count: int) -> dict[str, Any]:
    return {"metrics": {"allow": [f"kafka_team_{number:06}_.*" for number in range(count)]}}


def reading(count: int) -> list[dict[str, Any]]:
    return [
        {"resource": "topic", "name": f"orders-{number:06}", "operations": ["Read"]}
        for number in range(count)
    ]


def gate(count: int) -> dict[str, Any]:
    names = [f"system:serviceaccount:{'n' * 60}:{'x' * 240}{number:05}" for number in range(count)]
    return {"eviction_gate": {"image": "registry.example/gate:1", "operators": names}}


def voters(pools: int) -> dict[str, Any]:
    zones = [f"us-east-1{letter}" for letter in "abcdef"]
    many = {"nodes_per_zone": 50, "node_ids_per_zone": 50}
    named = [
        {**CONTROLLER, **many, "name": f"p{number:02}", "first_node_id": 300 * number}
        for number in range(pools)
    ]
    return {"availability_zones": zones, "pools": [*named, {**BROKER, "first_node_id": 50_000}]}


@every_case(
    ("changed", "words"),
    [
        (gate(290), "operators takes 96280 characters, and the expression of Kubernetes' webhook"),
        (voters(24), "pools have 7206 nodes, a list of 409633 bytes. The item of DynamoDB"),
        (allowed(50_000), "metrics.allow takes 1200000 bytes, and one object of Kubernetes has"),
        ({"users": [{"name": "billing", "acls": reading(15_000)}]}, "acls of user billing takes"),
        ({"connect": {"acls": reading(15_000)}}, "connect.acls takes"),
        (
            {"topics": [{"name": "t", "config": {"compression.type": "z" * 1_000_000}}]},
            "config of topic t takes",
        ),
    ],
)
def test_what_no_object_has_room_for_is_refused(changed: dict[str, Any], words: str) -> None:
    sentences = found(changed)
    assert any(words in sentence for sentence in sentences), [each[:200] for each in sentences]
    assert all(len(sentence) < 400 for sentence in sentences)


def test_what_is_large_and_fits_is_taken() -> None:
    assert found({**gate(285), **voters(22)}) == []
    assert found({**allowed(30_000), "users": [{"name": "billing", "acls": reading(9_000)}]}) == []


GATE = {"image": "registry.example/gate:1"}


def refused(**changed: Any) -> list[str]:
    spec = parse(description(**changed))
    return [*limits.problems(spec), *contradictions.system_node_problems(spec)]


def broker(**changed: Any) -> list[dict[str, Any]]:
    small = {"instance_type": "r7g.xlarge", "volumes": [{"size_gib": 100}]}
    return [CONTROLLER, {**BROKER, **small, **changed}]


def test_what_runs_on_every_node_are_add_ons_of_ours() -> None:
    assert set(ON_EVERY_NODE) < set(ADDONS)


@every_case(
    ("changed", "words"),
    [
        # 3,920 m are left by the kubelet; the add-ons' pods request 190 of them.
        ({"pools": broker(cpu_request_millis=3731)}, "leaves it 3730 m after the system"),
        ({"pools": broker(memory_request_mib=31626)}, "leaves it 31625 MiB after"),
        (
            {"pools": broker(memory_request_mib=29169), "node_provisioner": "karpenter",
                "eviction_gate": GATE},
            "leaves it 29168 MiB after the system (as Karpenter reckons it)"),
        ({"connect": {"replicas": 50}},
            "500 m of CPU and 2048 MiB, and the 6 system nodes (m7i.large) have room for 18"),
        ({"connect": {"replicas": 10}, "cluster_autoscaler": False},
            "the 3 system nodes (m7i.large) have room for 9"),
        ({"connect": {"replicas": 3, "cpu_request_millis": 1700}, "cluster_autoscaler": False},
            "5220 m of CPU for pods, and 6070 are requested"),
        ({"connect": {"memory_request_mib": 7400, "replicas": 1}},
            "Each pod of connect requests 7400, so none could run"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)  # fmt: skip
def test_what_would_wait_for_ever_is_refused(changed: dict[str, Any], words: str) -> None:
    (sentence,) = refused(**changed)
    assert words in sentence
    assert sentence.endswith(".")


@every_case(
    "changed",
    [
        {"pools": broker(cpu_request_millis=3730)},
        {"pools": broker(memory_request_mib=31625)},
        {"pools": broker(cpu_request_millis=3740), "kubernetes": {"node_monitoring": False}},
        {"connect": {"replicas": 18}},
        {"connect": {"replicas": 8}, "cluster_autoscaler": False},
        {"connect": {"replicas": 50}, "kubernetes": {"system_nodes_per_zone": 3}},
        {"connect": {"replicas": 50}, "kubernetes": {"system_instance_type": "q9z.large"}},
        {"connect": {}, "eviction_gate": GATE, "probe": GATE, "strimzi": {"replicas": 5}},
    ],
    ids=str,
)
def test_what_just_fits_is_taken(changed: dict[str, Any]) -> None:
    assert refused(**changed) == []


def test_memory_that_a_machine_may_be_short_of_is_doubted() -> None:
    fits = parse(description(pools=broker(memory_request_mib=29168)))
    assert limits.tight(fits) == []
    (doubt,) = limits.tight(parse(description(pools=broker(memory_request_mib=29169))))
    assert "up to 7.5%" in doubt
    assert "request 29168 MiB or less" in doubt
    assert doubt in doubts_of(parse(description(pools=broker(memory_request_mib=29169))))


ZONES = [f"us-east-1{letter}" for letter in "abcdef"]
VPC = {
    "vpc_id": "vpc-0123456789abcdef0",
    "private_subnet_ids": {zone: f"subnet-{n:017x}" for n, zone in enumerate(ZONES)},
}


def sentences(zones: int, gib: int = 500, memory_mib: int = 512, **network: Any) -> list[str]:
    found = parse(
        {
            "functions": {"memory_mib": memory_mib},
            "name": "orders",
            "environment": "test",
            "region": "us-east-1",
            "availability_zones": ZONES[:zones],
            "pools": [
                {
                    "name": "controller",
                    "role": "controller",
                    "zones": ZONES[:3],
                    "instance_type": "r7g.large",
                    "nodes_per_zone": 1,
                    "first_node_id": 0,
                },
                {
                    "name": "broker",
                    "role": "broker",
                    "instance_type": "r7g.xlarge",
                    "nodes_per_zone": 1,
                    "first_node_id": 100,
                    "volumes": [{"size_gib": gib}],
                },
            ],
            **({"network": network} if network else {}),
        }
    )
    return list(beyond_what_accounts_begin_with(found))


@pytest.mark.parametrize(
    ("zones", "gib", "network", "words"),
    [
        (5, 500, {}, []),
        (6, 500, {}, ["6 Elastic IP addresses"]),
        (6, 500, {"existing": VPC}, []),
        (4, 16_000, {}, ["TiB of gp3 volumes"]),
    ],
    ids=["five zones", "six zones", "six zones of a VPC that exists", "large volumes"],
)
def test_a_cluster_beyond_a_new_accounts_quota_is_doubted(
    zones: int, gib: int, network: dict[str, Any], words: list[str]
) -> None:
    found = sentences(zones, gib, **network)
    assert [word in sentence for word, sentence in zip(words, found, strict=True)] == [True] * len(
        words
    )


@pytest.mark.parametrize(("memory_mib", "doubts"), [(3008, 0), (3009, 1)])
def test_more_memory_than_new_accounts_have_is_doubted(memory_mib: int, doubts: int) -> None:
    found = sentences(3, memory_mib=memory_mib)
    assert len(found) == doubts
    assert all("functions.memory_mib is 3009" in each for each in found)
