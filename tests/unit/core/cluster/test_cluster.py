"""core.cluster: one description, one sentence per thing wrong with it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.checks import contradictions
from core.cluster import ClusterSpec, Role, parse
from core.cluster.reading import json_schema
from core.ground import instances
from core.ground.errors import InvalidInput
from tests import tables
from tests.every_case import every_case
from tests.tables import cases
from tests.unit.infra.programs import BROKER, CONTROLLER, description

SCHEMA = Path(__file__).parents[4] / "docs" / "reference" / "cluster-spec.schema.json"
GOOD: dict[str, Any] = {
    "name": "coban",
    "environment": "dev",
    "region": "us-east-1",
    "availability_zones": ["us-east-1a", "us-east-1b", "us-east-1c"],
    "pools": [
        {"name": "controller", "role": "controller", "instance_type": "m7i.large",
            "first_node_id": 0, "node_ids_per_zone": 1},
        {"name": "broker", "role": "broker", "instance_type": "r7i.xlarge", "first_node_id": 10}],
}  # fmt: skip


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the good spec with one value replaced: `pools.1.name`."""
    found: dict[str, Any] = tables.changed(GOOD, {path: value})
    return found


def problems(raw: object) -> tuple[str, ...]:
    with pytest.raises(InvalidInput) as caught:
        parse(raw)
    return caught.value.problems


def test_a_good_spec_is_accepted_and_names_its_resources() -> None:
    spec = parse(GOOD)
    assert spec.prefix == "dev-coban"
    assert [pool.role for pool in spec.pools] == [Role.CONTROLLER, Role.BROKER]


LONG_USER = f"arn:aws:iam::111122223333:user/{'a' * 65}"
BAD = r"""
nmae: x => nmae: there is ... did you mean name?
name: Coban => name is 'Coban'
region: useast1 => region is 'useast1'
availability_zones: [us-east-1a, eu-west-1a] => eu-west-1a ... not in region us-east-1
availability_zones: [us-east-1a, us-east-1a] => names a zone twice
availability_zones: [] => availability_zones
pools.1.role: zookeeper => pools.1.role is 'zookeeper'
pools.1.role: controller => no pool has brokers
pools.0.role: broker => no pool has controllers
pools.1.name: controller => same name
pools.1.first_node_id: 2 => controller (0-2) ... broker (2-31) ... overlap
pools.1.nodes_per_zone: 11 => 11 nodes per zone ... 10 node ids
tags: {aws:x: y} => aws:x ... another key
tags: {team: "a&b"} => 'team' has '&'
tags: {Team: a, team: b} => IAM ... remove one
encryption_key: arn:aws:kms:eu-west-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef
    => eu-west-1 ... us-east-1 alone
encryption_key: alias/kafka => encryption_key
load_balancer.private_zone: a_b => is not a host name
connect.image: Registry.example/A => is not an image
load_balancer.endpoint_principals: [arn:aws:s3:::bucket] => arn:aws:s3:::bucket is not a principal
alerts.email: ["ü@example.org"] => alerts.email.0
network.existing: {vpc_id: vpc-0123456789ab, private_subnet_ids: {}} => network.existing.vpc_id
network.existing: {vpc_id: vpc-01234567, private_subnet_ids: {us-east-1a: subnet-012345678}}
    => network.existing.private_subnet_ids.us-east-1a
network.existing: {vpc_id: vpc-01234567, private_subnet_ids: {}, private_route_table_ids:
    [rtb-0123456789]} => network.existing.private_route_table_ids
network.existing.private_route_table_ids: [rtb-01234567, rtb-01234567]
    => rtb-01234567 is named twice
alerts.sns_topic_arn: arn:aws-cn:sns:us-east-1:123456789012:x => alerts.sns_topic_arn
load_balancer.endpoint_principals: [arn:aws:iam::111122223333:root, arn:aws:iam::111122223333:root]
    => is named twice
kubernetes.control_plane_logs: [api, api] => api is named twice
kafka.listener.advertised_host: 10.0.0.1 => a name of your DNS
kafka.listener.advertised_host: localhost => a name of your DNS
alerts.runbooks_url: "a\u0000b" => runbooks_url
alerts.runbooks_url: "a\u200bb" => U+200B
metrics.allow: ["a\u202eb"] => U+202E
bill_pool_tag: "a*" => bill_pool_tag has '*'
volumes.max_monthly_increase_usd: ١٢ => it must be a number
maintenance: {days: [mon, mon], start_utc: 03:00} => mon is named twice
alerts.email: ["a@x.org", "a@x.org"] => a@x.org is named twice
webhook_concurrency: -1 => webhook_concurrency
network.secondary_cidrs: [100.64.0.0/16] => a VPC you have ... network.existing
network.vpc_cidr: 8.8.0.0/16 => 8.8.0.0/16 ... private
network.vpc_cidr: 10.0.0.1/16 => write 10.0.0.0/16
network.vpc_cidr: nonsense => nonsense
pools.1.volumes: [{}, {size_gib: 10, iops: 6000}] => 6000 ... 5000
pools.1.volumes: [{}, {throughput_mib_per_s: 1000}] => 1000 ... 750 ... raise iops
kafka.default_replication_factor: 4 => 4 ... 3 brokers
kafka.min_insync_replicas: 4 => min_insync_replicas 4 ... default_replication_factor 3
kafka.listener.name: my-nlb => my-nlb
timings.tick_interval_seconds: soon => 'soon'
pools.1.heap_mib: 8192 => heap_mib 8192 ... memory_request_mib 8192
pools.1.instance_type: large => 'large'
kafka.listener.first_advertised_port: 9080 => bootstrap_port 9094 ... 9090-9119 ... move one
pools.1.first_node_id: 60000 => port 70029 ... end at 65535
pools.0.zones: [us-east-1a, us-east-1d] => pool controller stands in us-east-1d, which is not in
    availability_zones ... (us-east-1a, us-east-1b, us-east-1c) ... add it there, at the end, or
    take it from the pool's zones
pools.0.zones: [us-east-1a, us-east-1b, us-east-1a]
    => zones of pool controller names us-east-1a twice ... name each once
pools.0.zones: [] => pools.0.zones ... at least 1
pools.0.zones: [a] => pools.0.zones.0 is 'a'
pools.1.zones: [us-east-1a, us-east-1b] => default_replication_factor 3 exceeds the 2 brokers
encryption_key: arn:aws-us-gov:kms:us-east-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef
    => encryption_key
encryption_key: arn:aws:kms:us-east-1:123456789012:alias/kafka => encryption_key
encryption_key: arn:aws:kms:us-east-1:12345678901:key/01234567-89ab-cdef-0123-456789abcdef
    => encryption_key
load_balancer.endpoint_principals: [arn:aws-us-gov:iam::111122223333:root] => is not a principal
load_balancer.endpoint_principals: [arn:aws:iam::111122223333:role/a/] => is not a principal
load_balancer.endpoint_principals: [arn:aws:iam::111122223333:role/teams/a] => is not a principal
load_balancer.endpoint_principals: [arn:aws:iam::111122223333:role//a] => is not a principal
load_balancer.endpoint_principals: [arn:aws:iam::1111222233334:root] => is not a principal
pools: {} => pools ... must be a list
network: 7 => network is 7 ... must be a mapping
drain_route: maybe => drain_route is 'maybe'
"""


ADDRESSES = [
    *("a..b@example.org", ".a@example.org", "a@-example.org", "a@example.1", "a@example"),
    *(f"{'a' * 65}@example.org", f"a@{'b' * 60}.{'c' * 60}.{'d' * 60}.{'e' * 60}.{'f' * 12}"),
]
TOO_LONG: list[tuple[str, object, str]] = [
    ("tags", {"k" * 129: "y"}, "129 characters ... 128"),
    ("tags", {"k": "v" * 257}, "257 characters ... 256"),
    ("tags", {f"t{n}": "" for n in range(31)}, "31 tags ... 50"),
    ("kafka.listener.advertised_host", f"{'k' * 64}.x", "is not a host name ... 63"),
    *(("alerts.email", [address], "alerts.email.0") for address in ADDRESSES),
    ("encryption_key", f"arn:aws:kms:us-east-1:123456789012:key/{'-' * 36}", "encryption_key"),
    ("load_balancer.endpoint_principals", [LONG_USER], "is not a principal"),
    ("bill_cluster_tag", f"a={'x' * 257}", "bill_cluster_tag"),
    ("bill_cluster_tag", f"{'a' * 129}=x", "bill_cluster_tag"),
    ("alerts.runbooks_url", "x" * 401, "400"),
]


@every_case(
    ("given", "words"), [*cases(BAD), *(({path: value}, words) for path, value, words in TOO_LONG)]
)
def test_a_bad_spec_is_a_sentence(given: dict[str, Any], words: str) -> None:
    found = problems(tables.changed(GOOD, given))
    assert any(all(word in said for word in words.split(" ... ")) for said in found)
    assert all(sentence.endswith((".", "?")) and "\n" not in sentence for sentence in found)


def test_a_name_kubernetes_would_refuse_is_named_with_its_length() -> None:
    raw = changed("pools.1.name", "b" * 30) | {"name": "c" * 30}
    (sentence,) = problems(raw)
    assert f"{'c' * 30}-{'b' * 30}-a-nlb-39 of pool {'b' * 30} has 70 characters" in sentence


@pytest.mark.parametrize("raw", [None, "text", 7, [], {}], ids=repr)
def test_what_is_no_spec_at_all_is_refused_in_sentences(raw: object) -> None:
    assert all(sentence.endswith(".") for sentence in problems(raw))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda c: (
            st.lists(c) | st.dictionaries(st.sampled_from(sorted(ClusterSpec.model_fields)), c)
        ),
        max_leaves=20,
    )
)
def test_parse_raises_only_invalid_input(raw: object) -> None:
    try:
        parse(raw)
    except InvalidInput as error:
        assert error.problems  # noqa: PT017  # whether it raises depends on what was drawn


def test_the_checked_in_schema_is_the_current_one() -> None:
    assert SCHEMA.read_text() == json_schema()


EXISTING = {
    "vpc_id": "vpc-0123456789abcdef0",
    "private_subnet_ids": {
        "us-east-1a": "subnet-0123456789abcdef0",
        "us-east-1b": "subnet-0123456789abcdef1",
        "us-east-1c": "subnet-0123456789abcdef2",
    },
}


@pytest.mark.parametrize("block", ["10.0.0.0/24", "100.64.0.0/16", "52.1.0.0/22", "10.9.0.0/28"])
def test_a_vpc_that_exists_has_the_block_it_has(block: str) -> None:
    assert parse(changed("network", {"existing": EXISTING, "vpc_cidr": block}))
    (found,) = problems(changed("network", {"vpc_cidr": block}))
    assert f"vpc_cidr {block} must be a private IPv4 block between /16 and /20" in found


def test_an_existing_network_has_a_subnet_for_every_zone_and_no_other() -> None:
    assert parse(changed("network.existing", EXISTING)).network.existing is not None
    moved = {"us-east-1a": "subnet-0123456789abcdef0", "us-east-1f": "subnet-0123456789abcdef1"}
    found = "".join(
        problems(changed("network.existing", {**EXISTING, "private_subnet_ids": moved}))
    )
    assert "no private subnet for availability zone us-east-1b" in found
    assert "no private subnet for availability zone us-east-1c" in found
    assert "names a subnet in us-east-1f" in found


def test_the_api_server_is_private_unless_somebody_is_named() -> None:
    assert parse(GOOD).kubernetes.public_access_cidrs == ()
    (found,) = problems(changed("kubernetes.public_access_cidrs", ["0.0.0.0/0"]))
    assert "opens the API server to any address" in found


def test_a_pool_stands_in_every_zone_unless_it_names_some() -> None:
    spec = parse(changed("pools.0.zones", ["us-east-1c", "us-east-1a"]))
    controller, broker = spec.pools
    assert spec.zones_of(broker) == spec.availability_zones
    # In the cluster's order, not the pool's.
    assert spec.zones_of(controller) == ("us-east-1a", "us-east-1c")
    assert (spec.nodes_of(controller), spec.controllers, spec.brokers) == (2, 2, 3)


@given(st.sets(st.sampled_from(GOOD["availability_zones"]), min_size=1), st.booleans())
def test_the_zones_a_pool_names_change_no_node_id(zones: set[str], grown: bool) -> None:
    everywhere = parse(GOOD)
    raw = changed("pools.0.zones", sorted(zones, reverse=True))
    raw["availability_zones"] = [*raw["availability_zones"], *["us-east-1d"] * grown]
    pinned = parse(raw)
    ids = everywhere.node_ids_of(everywhere.pools[0])
    assert pinned.node_ids_of(pinned.pools[0]) == {z: ids[z] for z in ids if z in zones}


def test_pools_in_different_zones_do_not_meet() -> None:
    fast = {**GOOD["pools"][1], "name": "fast", "nodes_per_zone": 1}
    raw = changed("pools.1.zones", GOOD["availability_zones"])
    raw["availability_zones"] = [*GOOD["availability_zones"], "us-east-1d"]
    raw["pools"][0] |= {"zones": GOOD["availability_zones"]}
    spec = parse({**raw, "pools": [*raw["pools"], {**fast, "zones": ["us-east-1d"]}]})
    assert spec.node_ids_of(spec.pools[2]) == {"us-east-1d": range(40, 50)}
    both = {**fast, "zones": ["us-east-1c", "us-east-1d"]}
    (sentence,) = problems({**raw, "pools": [*raw["pools"], both]})
    assert "node ids of pools broker (10-39) and fast (30-49) overlap" in sentence


def test_listeners_are_counted_in_the_zones_of_brokers() -> None:
    many = {"nodes_per_zone": 17, "node_ids_per_zone": 20}
    raw = changed("pools.1", {**GOOD["pools"][1], **many})
    (sentence,) = problems(raw)
    assert "51 brokers, spare ones included, and the bootstrap need 52 listeners" in sentence
    raw["pools"][1]["zones"] = ["us-east-1a", "us-east-1b"]
    assert parse(raw).brokers == 34


CHECKED = """
kafka.internal_listener: {tls: false, authentication: tls} => needs a listener with tls
topics: [{name: t}, {name: t}] => names t twice
topics: [{name: t, replication_factor: 4}] => wants 4 replicas but the cluster has 3 brokers
topics: [{name: a/b}] => must be at most 249 letters
metrics.allow: ["("] => not a regular expression
connect: {startup_seconds: 5} => 30 or more
alerts: {email: [on-call]} => alerts.email.0 ... on-call
alerts: {sns_topic_arn: on-call} => alerts.sns_topic_arn ... on-call
alerts: {sns_topic_arn: arn:aws:sns:eu-west-1:123456789012:on-call}
    => eu-west-1 ... of us-east-1 ... name one there
alerts: {sns_topic_arn: arn:aws:sns:us-east-1:123456789012:on-call, email: [a@example.com]}
    => sns_topic_arn ... subscribe the addresses there
alerts: {runbooks_url: https://x/} => alerts.runbooks_url
"""


@every_case(("given", "words"), cases(CHECKED))
def test_topics_connect_metrics_and_alarms_are_checked(given: dict[str, Any], words: str) -> None:
    (problem,) = problems(tables.changed(GOOD, given))
    for word in words.split(" ... "):
        assert word in problem


ACCELERATED = ("g5", "g5g", "g4dn", "gr6", "p4d", "p5en", "p6-b200", "inf2", "trn1n", "dl1", "vt1")


def found(name: str) -> list[str]:
    pools = [CONTROLLER, {**BROKER, "instance_type": name}]
    return list(contradictions.machine_problems(parse(description(pools=pools))))


@every_case(
    "name", ["r7g.32xlarge", "m7i.metal-24xl", "r7g.metal", "q9z.large", "r5a.xlarge", "m4.large"]
)
def test_what_may_have_come_since_is_not_refused(name: str) -> None:
    assert found(name) == []


@every_case("family", ACCELERATED)
def test_what_needs_another_image_is_refused(family: str) -> None:
    (sentence,) = found(f"{family}.xlarge")
    assert "need an image with their drivers" in sentence
    assert sentence.endswith("choose another type.")


@pytest.mark.parametrize("name", ["t2.large", "t1.micro", "m1.small", "m3.medium", "c3.large"])
def test_what_is_never_optimized_for_ebs_is_refused(name: str) -> None:
    (sentence,) = found(name)
    assert "launched EBS-optimized" in sentence


def test_no_type_of_the_table_is_refused() -> None:
    assert [name for name in instances.table().types if found(name)] == []
