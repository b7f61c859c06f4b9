"""Limits: what AWS would refuse, or never deliver, is a sentence before anything is built."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core.cluster import ClusterSpec, parse
from core.cluster.limits import LONGEST_SUFFIX, RULE_NAME_LIMIT, problems, unchecked_types
from core.ground.instances import table
from tests.every_case import every_case

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
        "the zone has no addresses",
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
        ("2 volumes per node", "attaches 1 beside", "fewer, larger volumes"),
    ),
    (
        "memory_request_mib of pool node",
        spec(broker={"memory_request_mib": 32000}),
        ("32000 MiB", "r7g.xlarge leaves it 31625 MiB", "larger instance type"),
    ),
    (
        "cpu_request_millis of pool node",
        spec(broker={"cpu_request_millis": 3950}),
        ("3950 m", "leaves it 3730 m", "no node can ever run the pod"),
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


def test_with_karpenter_neither_a_role_nor_a_rule_names_groups() -> None:
    karpenter = {"node_provisioner": "karpenter"}
    assert problems(pools(50, 3, environment="b", name="a", **karpenter)) == []
    assert problems(pools(30, 10, environment="b" * 16, name="a" * 16, **karpenter)) == []


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


def test_an_instance_type_nobody_knows_is_said_and_not_refused() -> None:
    novel = spec(broker={"instance_type": "r99g.xlarge", **volumes({"iops": 50_000})})
    assert problems(novel) == []
    (sentence,) = unchecked_types(novel)
    assert "r99g.xlarge of pool node is not in this release's table" in sentence
    assert unchecked_types(spec()) == []


def test_every_row_of_the_table_has_figures_that_can_be_compared() -> None:
    assert len(table().types) > 500
    for instance in table().types.values():
        assert min(instance.vcpus, instance.memory_mib, instance.ebs_mib_per_s) > 0
        assert instance.ebs_iops > 0
        assert instance.attachments >= 3


def test_the_longest_suffix_leaves_room_for_a_prefix() -> None:
    assert all(RULE_NAME_LIMIT - len(suffix) > 30 for suffix in LONGEST_SUFFIX.values())
