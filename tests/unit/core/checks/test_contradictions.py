"""core.checks.contradictions and advice: what is refused today, and what costs something later."""

from typing import Any

import pytest

from core.checks import contradictions
from core.checks.table import description_findings
from core.cluster import ClusterSpec, kafka_settings, parse
from core.ground.errors import InvalidInput
from infra.versions import STRIMZI_CHART_VERSION
from tests.every_case import every_case
from tests.tables import cases
from tests.unit.infra.programs import BROKER, CONTROLLER, description

EXISTING = {
    "vpc_id": "vpc-0123456789abcdef0",
    "private_subnet_ids": {
        "us-east-1a": "subnet-0123456789abcdef0",
        "us-east-1b": "subnet-0123456789abcdef1",
        "us-east-1c": "subnet-0123456789abcdef1",
    },
}
SERVICE = "http://prometheus.monitoring.svc:9090"
SLACK = {"channel": "C0HARBOUR1"}
ON_LOOPBACK = {"kafka": {"listener": {"advertised_host": "127.99.251.1"}}}


def found(**changed: Any) -> list[str]:
    return contradictions.problems(parse(description(**changed)))


def test_a_spec_without_contradictions_has_none() -> None:
    assert found() == []


@every_case(
    "changed",
    [
        {"tags": {"cost centre": "Team A @ EU", "a=b": ""}, "snapshots": None},
        {"load_balancer": {"client_cidrs": ["0.0.0.0/0"]}},
        {"load_balancer": {"client_cidrs": [f"10.{n}.0.0/16" for n in range(100, 129)]}},
        {"kafka": {"config": {"controller.quorum.fetch.timeout.ms": 3000, "log.retention.ms": 9}}},
        {"connect": {"config": {"ssl.endpoint.identification.algorithm": ""}}},
        {"kubernetes": {"system_instance_type": "m7g.medium"}},
        {"kafka": {"listener": {"name": "tls"}}},
        {"kafka": {"listener": {"name": "replica"}}},
        {"strimzi": {"operator": "external", "namespace": "kafka"}},
        {"topics": [{"name": "a", "config": {"retention.ms": -1, "cleanup.policy": "compact"}}]},
        {"metrics": {"prometheus": {"address": SERVICE, "labels": {"cluster": "x" * 900}}}},
    ],
)
def test_what_is_close_to_a_limit_is_let_through(changed: dict[str, Any]) -> None:
    assert found(**changed) == []


def test_the_operators_release_is_the_one_that_is_pinned() -> None:
    assert kafka_settings.OPERATOR == STRIMZI_CHART_VERSION


CONTRADICTIONS = """
kafka.version: 4.1.0 => kafka.version 4.1.0 is not among those that Strimzi
kafka.version: 4.22.0 => 4.2.0 is the nearest
kafka.metadata_version: 4.2-IV9 => metadata_version 4.2-IV9 is not among
kafka.metadata_version: 4.4-IV0 => metadata_version 4.4-IV0 is not among
kafka.metadata_version: latest => metadata_version latest is not among
kafka.metadata_version: "4.3" => 4.3 is newer than kafka.version 4.2.0
kubernetes.version: "1.29" => 1.29 is older than 1.30, the oldest that Strimzi
{availability_zones: [us-east-1a], kafka: {default_replication_factor: 1, min_insync_replicas: 1}}
    => EKS makes no cluster in fewer than 2
kafka.config: {min.insync.replicas: 1} => kafka.min_insync_replicas makes it 2
kafka.config: {broker.session.timeout.ms: 18000}
    => timings.broker_session_timeout_seconds makes it 9000
kafka.config: {offsets.topic.replication.factor: three}
    => to 'three', and Kafka takes a whole number
kubernetes.namespace: default => namespace is default, which Kubernetes makes
kubernetes.namespace: kube-kafka => choose another name, such as kafka
pools.1.name: system => a pool is named system
network.vpc_cidr: 127.0.0.0/16 => vpc_cidr names 127.0.0.0/16, which is res
network.vpc_cidr: 169.254.0.0/16 => reserved for hosts themselves
load_balancer.client_cidrs: [224.0.0.0/8] => client_cidrs names 224.0.0.0/8, which is reserved
kubernetes.public_access_cidrs: [127.0.0.0/8] => EKS refuses private networks there
tags.team: Zürich => tags has 'team' with 'ü' in its value, and EMR
tags.Größe: x => with 'ß' 'ö' in its key
tags: {cost centre: x} => Data Lifecycle Manager, which takes the snapshots
kafka.config.listeners: x => keeps what begins with listeners to itself
kafka.config: {log.dirs: /x} => what begins with log.dir to itself
connect.config: {group.id: x} => connect.config sets group.id
kafka.listener.port: 9093 => internal_listener.port are both 9093
kafka.listener.port: 9404 => at which Prometheus answers
topics: [{name: ..}] => which Kafka does not allow
topics: [{name: __mine}] => are Kafka's own
topics: [{name: a.b}, {name: a_b}] => topics a.b and a_b collide
load_balancer.client_cidrs: [fd00::/8] => has IPv4 addresses alone
kubernetes.system_instance_type: t3.nano
    => t3.nano, with addresses for 4 pods, 5 of them every node's own
{kubernetes.system_instance_type: m7g.medium, cluster_autoscaler: false}
    => 3 such nodes take 9 and 12 are needed (2 of CoreDNS,
{kubernetes.system_instance_type: t3.small, connect: {}}
    => leaves its pods 1422 MiB of memory after the system and the pods of
pools.0.instance_type: t3.micro => pool controller runs 6 pods on a node, Kafka's among them
load_balancer.client_cidrs: [10.40.0.0/16] => network.vpc_cidr has already
pools.1.instance_type: a1.4xlarge
    => a1.4xlarge of pool broker cannot be a node here: A1's processors are too old
kubernetes.system_instance_type: mac2-m2pro.metal
    => of the system nodes cannot be a node here: EC2 launches it on a Dedicated Host
kafka.listener.name: internal => Strimzi wants a name for each
kafka.listener.name: replication => has a port of Strimzi's own called tcp-replication
kafka: {listener: {name: tls, port: 9093}, internal_listener: {port: 9095}}
    => listener.name is tls at port 9093, which Strimzi keeps
kubernetes.namespace: strimzi => strimzi.namespace and kubernetes.namespace are both strimzi
topics: [{name: a, config: {retention.m: 1}}]
    => does not know of a topic, so that it would not make it; write retention.ms if you
slack.secret_name: test-orders/nth-webhook => which is made here for the webhook's own token
load_balancer.client_cidrs: [10.9.0.0/16, 10.9.0.0/16] => load_balancer.client_cidrs has already
kubernetes.public_access_cidrs: [10.0.0.0/8] => EKS refuses private networks there
kubernetes.public_access_cidrs: [203.0.113.7/32, 203.0.113.7/32] => names 203.0.113.7/32 2 times
connect: {heap_mib: 4096, memory_request_mib: 2048}
    => connect.heap_mib 4096 leaves nothing of connect.memory_request_mib 2048
pools.1.volume_policy.max_size_gib: 10
    => volume_policy.max_size_gib 10 of pool broker is below the size_gib
pools.1.volume_policy.max_size_gib: 10 => raise max_size_gib
"""


@every_case(
    ("changed", "words"),
    [
        *cases(CONTRADICTIONS),
        ({"network": {"existing": EXISTING, "secondary_cidrs": ["10.40.128.0/17"]}},
            "names 10.40.128.0/17, which overlaps 10.40.0.0/16 of the same VPC"),
        (
            {"network": {"existing": EXISTING, "secondary_cidrs": ["100.64.0.0/16"]},
                "load_balancer": {"client_cidrs": ["100.64.0.0/16"]}},
            "which network.secondary_cidrs has already"),
        ({"load_balancer": {"client_cidrs": [f"10.{n}.0.0/16" for n in range(100, 130)]}},
            "they need 62 rules, and a security group takes 60; join networks or pools, to 30"),
        ({"metrics": {"prometheus": {"address": SERVICE, "labels": {"cluster": "x" * 1000}}}},
            "metrics.prometheus.labels are 1015 characters as JSON"),
        ({"kubernetes": {"public_access_cidrs": [f"203.0.113.{n}/32" for n in range(41)]}},
            "names 41 networks and EKS takes 40"),
        ({"network": {"existing": EXISTING}}, "names subnet-0123456789abcdef1 for 2 zones"),
    ],
)  # fmt: skip
def test_a_contradiction_is_a_sentence_with_its_remedy(changed: dict[str, Any], words: str) -> None:
    sentences = found(**changed)
    assert any(words in sentence for sentence in sentences), sentences
    assert all(sentence.endswith(".") for sentence in sentences)


@pytest.mark.parametrize(
    ("region", "words"),
    [
        ("us-gov-west-1", "AWS GovCloud (US)"),
        ("cn-north-1", "the China partition"),
        ("eusc-de-east-1", "the European Sovereign Cloud"),
    ],
)
def test_another_partition_is_refused_in_words(region: str, words: str) -> None:
    zones = [f"{region}{letter}" for letter in "abc"]
    assert words in found(region=region, availability_zones=zones)[0]


@pytest.mark.parametrize("region", ["eu-west-1", "ap-southeast-1", "sa-east-1", "us-west-2"])
def test_every_commercial_region_is_as_good_as_another(region: str) -> None:
    zones = [f"{region}{letter}" for letter in "abc"]
    spec = parse(description(region=region, availability_zones=zones))
    assert (contradictions.problems(spec), contradictions.doubts(spec)) == ([], [])


@pytest.mark.parametrize(
    ("region", "letters", "words"),
    [
        ("eu-west-1", "abd", "eu-west-1d is not among those that accounts commonly have"),
        ("ap-northeast-1", "abc", "ap-northeast-1b is not among"),
        ("eu-wst-1", "abc", "did you mean eu-west-1?"),
    ],
)
def test_what_no_table_knows_is_doubted(region: str, letters: str, words: str) -> None:
    zones = [f"{region}{letter}" for letter in letters]
    (doubt,) = contradictions.doubts(parse(description(region=region, availability_zones=zones)))
    assert words in doubt


def test_of_somebody_elses_operator_the_versions_are_doubted_and_not_refused() -> None:
    spec = parse(description(strimzi={"operator": "external"}, kafka={"version": "4.1.0"}))
    assert [s for s in contradictions.problems(spec) if "Strimzi" in s] == []
    assert "strimzi.operator is external" in contradictions.doubts(spec)[0]


@pytest.mark.parametrize(
    ("written", "level"),
    [("4.2", "4.2-IV1"), ("4.0", "4.0-IV3"), ("4.3-IV0", "4.3-IV0"), ("4", None), ("", None)],
)
def test_a_metadata_version_may_be_that_of_a_release(written: str, level: str | None) -> None:
    assert kafka_settings.metadata_level(written) == level


@pytest.mark.parametrize(
    "changed",
    [
        {"load_balancer": {"client_cidrs": ["10.9.1.1/16"]}},
        {"network": {"vpc_cidr": "10.9.1.1/16"}},
        {"network": {"existing": EXISTING, "secondary_cidrs": ["10.9.1.1/16"]}},
        {"kubernetes": {"public_access_cidrs": ["203.0.113.7/16"]}},
    ],
    ids=lambda changed: str(*next(iter(changed.values())).keys() - {"existing"}),
)
def test_a_block_with_host_bits_is_refused_with_its_network(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"AWS keeps the network; write (10\.9|203\.0)\.0\.0/16"):
        parse(description(**changed))


def test_a_network_that_the_nodes_interfaces_use_up_is_warned_of() -> None:
    pools = [CONTROLLER, BROKER | {"instance_type": "r7g.2xlarge", "nodes_per_zone": 10}]

    def told(block: str) -> list[str]:
        wanted = parse(description(pools=pools, network={"vpc_cidr": block}))
        return [each for each in contradictions.doubts(wanted) if "vpc_cidr" in each]

    assert told("10.40.0.0/19") == []
    (sentence,) = told("10.40.0.0/20")
    assert "of each zone 251 addresses" in sentence


@every_case(
    ("changed", "words"),
    [
        ({"network": {"vpc_cidr": "172.17.0.0/16"}}, "Docker, Cloud9 and SageMaker"),
        ({"network": {"vpc_cidr": "172.17.128.0/20"}}, "overlaps 172.17.0.0/16"),
        ({"network": {"existing": EXISTING, "secondary_cidrs": ["192.168.0.0/16"]}},
            "whose first block is of 10.0.0.0/8 takes none of 192.168.0.0/16"),
        (
            {
                "network": {"existing": EXISTING, "vpc_cidr": "172.16.0.0/16",
                    "secondary_cidrs": ["198.19.0.0/16"]}},
            "whose first block is of 172.16.0.0/12 takes none of 198.19.0.0/16"),
        ({"slack": {**SLACK, "secret_name": "kafka/slack-abc123"}}, "like the ARN of a secret"),
        (ON_LOOPBACK | {"environment": "prod"}, "address of the client's own machine"),
    ],
)  # fmt: skip
def test_what_aws_advises_against_is_doubted(changed: dict[str, Any], words: str) -> None:
    doubts = contradictions.doubts(parse(description(**changed)))
    assert [each for each in doubts if words in each], doubts


@pytest.mark.parametrize(
    "changed",
    [
        {"network": {"vpc_cidr": "172.16.0.0/16"}},
        {"network": {"vpc_cidr": "172.18.0.0/16"}},
        {"network": {"existing": EXISTING, "secondary_cidrs": ["10.50.0.0/16", "100.64.0.0/16"]}},
        {"slack": {**SLACK, "secret_name": "kafka/slack-abc12"}},
        ON_LOOPBACK | {"environment": "local"},
    ],
)
def test_what_aws_does_not_mind_is_not_doubted(changed: dict[str, Any]) -> None:
    assert contradictions.doubts(parse(description(**changed))) == []


ZONES = ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"]


def spec(controllers: int = 3, brokers: list[str] | None = None, **kafka: Any) -> ClusterSpec:
    """A cluster in four zones, its controllers in the first ones."""
    node = {"instance_type": "r7g.xlarge", "nodes_per_zone": 3}
    return parse(
        {
            "name": "orders",
            "environment": "test",
            "region": "us-east-1",
            "availability_zones": ZONES,
            "pools": [
                {
                    **node,
                    "name": "controller",
                    "role": "controller",
                    "zones": ZONES[:controllers],
                    "nodes_per_zone": 1,
                    "first_node_id": 0,
                },
                {
                    **node,
                    "name": "broker",
                    "role": "broker",
                    "zones": brokers,
                    "first_node_id": 100,
                },
            ],
            "kafka": kafka,
        }
    )


def advice(described: ClusterSpec) -> list[str]:
    """Return what is worth knowing of a description, but for roles that are two in one."""
    found, _accepted = description_findings(described)
    return [each.line for each in found if each.check != "combined"]


@pytest.mark.parametrize("role", ["controller", "combined"])
def test_controllers_that_would_follow_a_new_zone_are_warned_of(role: str) -> None:
    changed = spec().model_dump(mode="json")
    changed["availability_zones"] = ZONES[:3]
    changed["pools"][0] |= {"role": role, "zones": None}
    (sentence,) = advice(parse(changed))
    assert sentence == (
        "worth knowing: pool controller: it has controllers in all of availability_zones: a zone "
        "added later adds controllers, and Strimzi cannot add a voter to a live cluster; set zones "
        "of the pool to [us-east-1a, us-east-1b, us-east-1c], which changes nothing today."
    )


def changed(**settings: Any) -> list[str]:
    raw = spec().model_dump(mode="json")
    pools = [{**raw["pools"][0], **settings.pop("pool", {})}, raw["pools"][1]]
    return advice(parse({**raw, "pools": pools, **settings}))


def test_a_heap_of_connects_that_leaves_java_too_little_is_warned_of() -> None:
    assert changed(connect={"heap_mib": 1638}) == []
    (said,) = changed(connect={"heap_mib": 2000})
    assert "connect: the heap of its workers may take more than 80%" in said


def test_addresses_that_nobody_writes_to_are_warned_of() -> None:
    (said,) = changed(alerts={"enabled": False, "email": ["a@example.org"]})
    assert "so that a@example.org would never hear of it" in said
    assert changed(alerts={"enabled": False}) == []
    assert changed(alerts={"email": ["a@example.org"]}) == []


@pytest.mark.parametrize(("partitions", "said"), [(10_000, True), (12, False)])
def test_more_replicas_than_a_broker_hands_over_warn(partitions: int, *, said: bool) -> None:
    raw = spec().model_dump(mode="json", exclude_unset=True)
    topics = [{"name": f"t{n}", "partitions": partitions} for n in range(2)]
    found = advice(parse({**raw, "topics": topics}))
    assert any("Kafka advises 4000 at most" in each for each in found) is said
