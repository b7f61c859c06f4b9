"""Names and addresses: whose a name is already, and what patterns and images take."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from core.checks import contradictions
from core.cluster import parse as parse_spec
from core.cluster.adoption import Adoption
from core.cluster.images import image_name
from core.cluster.reading import WORDS, asked_for
from core.cluster.spec import ClusterSpec
from core.ground.errors import InvalidInput
from infra.kafka.topics import resource_name
from tests.every_case import every_case
from tests.unit.infra.programs import BROKER, CONTROLLER, description

EXISTING = {
    "vpc_id": "vpc-0123456789abcdef0",
    "private_subnet_ids": {
        f"us-east-1{letter}": f"subnet-0123456789abcdef{number}"
        for number, letter in enumerate("abc")
    },
}
IN_CHINA = (
    "https://aps-workspaces.cn-north-1.amazonaws.com.cn/workspaces/"
    "ws-01234567-89ab-cdef-0123-456789abcdef"
)
PROMETHEUS = "http://prometheus.monitoring.svc:9090"


def found(**changed: Any) -> list[str]:
    try:
        return contradictions.problems(parse_spec(description(**changed)))
    except InvalidInput as error:
        return list(error.problems)


def named(zone: str, host: str | None = None) -> dict[str, Any]:
    return {
        "load_balancer": {"private_zone": zone},
        "kafka": {"listener": {"advertised_host": host or f"kafka.{zone}"}},
    }


def slack(url: str) -> dict[str, Any]:
    return {"slack": {"channel": "C0HARBOUR1", "secret_name": "orders/slack", "api_url": url}}


def user(name: str, **more: Any) -> dict[str, Any]:
    return {"users": [{"name": name, **more}]}


@every_case(
    ("changed", "words"),
    [
        (named("amazonaws.com"), "private_zone is amazonaws.com, and names under amazonaws.com"),
        (named("kafka.us-east-1.amazonaws.com"), "Route 53 makes no zone of them"),
        (named("Kafka.AMAZONAWS.com"), "Route 53 makes no zone of them"),
        (named("cluster.local"), "belongs to the cluster's own DNS"),
        (named("kafka.svc.cluster.local"), "belongs to the cluster's own DNS"),
        (named("ec2.internal"), "hides the nodes' own names"),
        (named("us-east-1.compute.internal"), "hides the nodes' own names"),
        (named("com"), "a top-level domain, for which Route 53 makes no hosted zone"),
        (named("io"), "a top-level domain"),
        (named("zz"), "a top-level domain"),
        ({"kafka": {"listener": {"advertised_host": "x.elb.us-east-1.amazonaws.com"}}},
            "advertised_host is x.elb.us-east-1.amazonaws.com, and names under"),
        ({"kafka": {"listener": {"advertised_host": "0x7f000001"}}}, "is an address"),
        ({"kafka": {"listener": {"advertised_host": "kafka.0xff"}}}, "is an address"),
        (slack("http://slack.com/api/"), "in clear text; write https://"),
        (slack("http://127.0.0.1.example.org/api/"), "write https://"),
        (slack("https:///api/"), "is no address of an API"),
        (slack("https://u:p@slack.com/api/"), "is no address of an API"),
        (slack("https://slack.com/api?x=/"), "is no address of an API"),
        (slack('https://slack"com/'), "is no address of an API"),
        (slack("https://slack.com/api"), "a slash at its end"),
        (slack("ftp://slack.com/"), "is no address of an API"),
        (user("orders-cluster-ca-cert"), "in which Strimzi keeps the cluster's own keys"),
        (user("orders-trustbundle"), "in which Strimzi keeps the cluster's own keys"),
        (user("orders-broker-a-10"), "in which Strimzi keeps the cluster's own keys"),
        (user("u", acls=[{"resource": "group", "name": "a\nb", "operations": ["Read"]}]),
            "users.0.acls.0.name is 'a\\nb'"),
        ({"metrics": {"allow": [" "]}}, "would let every metric through"),
        ({"bill_cluster_tag": "a\tb"}, "bill_cluster_tag is"),
        ({"tags": {"team": "a\tb"}}, "tag 'team' has '\\t' in its value"),
        ({"bill_pool_tag": "a\nb"}, "bill_pool_tag is"),
        ({"metrics": {"prometheus": {"address": IN_CHINA}}}, "of the China partition"),
        (user("orders-clients-ca"), "in which Strimzi keeps the cluster's own keys"),
        (user("u", acls=[{"resource": "topic", "name": "a b", "operations": ["Read"]}]),
            "user u has an ACL on the topic 'a b', which no topic can have"),
        (user("u", producer_bytes_per_s=2**31), "users.0.producer_bytes_per_s is 2147483648"),
        ({"connect": {}, "topics": [{"name": "orders-connect-configs"}]},
            "which Connect's workers make for themselves"),
        ({"strimzi": {"namespace": "kube-system"}}, "strimzi.namespace is kube-system"),
        ({"strimzi": {"namespace": "default"}}, "made for the operator alone"),
        ({"eviction_gate": {"image": "r.example/g:1", "operators": ["nobody"]}},
            "system:serviceaccount:NAMESPACE:NAME"),
        ({"eviction_gate": {"image": "r.example/g:1", "operators": ["system:serviceaccount:-a:b"]}},
            "system:serviceaccount:NAMESPACE:NAME"),
        ({"connect": {"image": f"{'a' * 300}:1"}}, "registries take 255"),
        (named("svc"), "belongs to the cluster's own DNS"),
        ({"kafka": {"listener": {"advertised_host": "orders-kafka-bootstrap.kafka.svc"}}},
            "belongs to the cluster's own DNS"),
        ({"kafka": {"listener": {"advertised_host": "x.localdomain"}}}, "every machine's own"),
        ({"kafka": {"functions": {"secret_name": "a..b"}}}, "next to each dot"),
        ({"kafka": {"functions": {"authority_secret_name": "a.-b"}}}, "next to each dot"),
        ({**user("ours"), "kafka": {"functions": {"authority_secret_name": "ours"}}},
            "names as that of the brokers' authorities"),
        (user("u", acls=[{"resource": "topic", "name": "..", "operations": ["Read"]}]),
            "which no topic can have"),
        ({"pools": [CONTROLLER, {**BROKER, "name": "bootstrap"}]},
            "a pool of brokers is named bootstrap"),
        ({"alerts": {"runbooks_url": "https://w.example/{{x}}"}}, "runbooks_url is"),
        ({"alerts": {"runbooks_url": "https:"}}, "is not the address of a page"),
        ({"tags": {"elbv2.k8s.aws/cluster": "x"}}, "belongs to AWS, Kubernetes"),
        ({"tags": {"node.k8s.amazonaws.com/instance_id": "x"}}, "belongs to AWS, Kubernetes"),
        ({"tags": {"kubernetes.io": "x"}}, "belongs to AWS, Kubernetes"),
        ({"alerts": {"runbooks_url": "javascript:alert(1)"}}, "is not the address of a page"),
        ({"tags": {"team": "AWS:x"}}, "AWS keeps what begins with aws: for itself, in values too"),
        ({"metrics": {"prometheus": {"address": PROMETHEUS, "labels": {"__name__": "x"}}}},
            "keeps what begins with two underscores for itself"),
        (
            {
                "network": {"existing": EXISTING,
                    "secondary_cidrs": [f"10.{n}.0.0/16" for n in range(50, 100)]}},
            "a VPC has 50 with its first at most"),
        ({"kubernetes": {"public_access_cidrs": ["198.18.0.0/15"]}}, "EKS refuses private"),
        ({"kubernetes": {"system_nodes_per_zone": True}}, "makes a truth value of this"),
        ({"webhook_concurrency": True}, "makes a truth value of this"),
        ({"timings": {"tick_interval_seconds": False}}, "makes a truth value of this"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_name_or_address_of_others_is_refused(changed: dict[str, Any], words: str) -> None:
    sentences = found(**changed)
    assert any(words in sentence for sentence in sentences), sentences


@every_case(
    "changed",
    [
        named("internal", "kafka.internal"),
        named("orders.local"),
        named("orders.internal", "Kafka.Orders.Internal"),
        named("svc.example.org"),
        {"pools": [{**CONTROLLER, "name": "bootstrap"}, BROKER]},
        user(
            "u", acls=[{"resource": "topic", "name": ".", "prefix": True, "operations": ["Read"]}]
        ),
        {**user("ours"), "kafka": {"functions": {"secret_name": "ours"}}},
        {"tags": {"k8s.io/x": "a=b"}},
        named("amazonaws.com.example.org"),
        slack("http://127.0.0.1:8099/api/"),
        slack("https://slack-gov.com/api/"),
        slack("https://proxy.example.org:8443/slack/api/"),
        user("orders-cluster-ca-certs"),
        user("cluster-reader"),
        {"topics": [{"name": "orders-connect-configs"}]},
        {"alerts": {"runbooks_url": "docs/run:books"}},
        {"alerts": {"runbooks_url": "https://wiki.example.org/x"}},
        {"tags": {"team": "draws:x"}},
        {
            "eviction_gate": {
                "image": "r.example/g:1",
                "operators": ["system:serviceaccount:ops:roller.v2"],
            }
        },
    ],
    ids=str,
)
def test_what_only_looks_like_it_is_taken(changed: dict[str, Any]) -> None:
    assert found(**changed) == []


def test_a_tag_that_volumes_get_otherwise_is_doubted() -> None:
    (doubt,) = contradictions.doubts(parse_spec(description(tags={"a=b": "c", "d": "e=f"})))
    assert "Volumes get the tag 'a' there" in doubt


def test_more_blocks_than_a_vpc_has_by_default_are_doubted() -> None:
    blocks = [f"10.{n}.0.0/16" for n in range(50, 55)]
    network = {"existing": EXISTING, "secondary_cidrs": blocks}
    (doubt,) = contradictions.doubts(parse_spec(description(network=network)))
    assert "makes 6 blocks of one VPC, and AWS's quota is 5" in doubt


@every_case("topic", ["a..b", "a.-b", "a-.b", "Orders._x", "..a", "a.", "_"])
def test_a_topics_resource_has_a_name_that_kubernetes_takes(topic: str) -> None:
    labels = resource_name(topic).split(".")
    assert all(label and label[0] != "-" and label[-1] != "-" for label in labels)
    assert resource_name(topic) != topic


def patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for each in schema:
            yield from patterns(each)
    elif isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        yield from schema.get("patternProperties", ())
        for each in schema.values():
            yield from patterns(each)


def of(*models: type[BaseModel]) -> set[str]:
    return {found for model in models for found in patterns(model.model_json_schema())}


def test_every_pattern_has_words_and_all_words_a_pattern() -> None:
    assert of(ClusterSpec, Adoption) == set(WORDS)


@every_case("pattern", sorted(WORDS), ids=lambda each: WORDS[each][:40])
def test_words_hold_nothing_of_an_expression(pattern: str) -> None:
    said = asked_for(pattern)
    assert said.startswith("it must be ")
    assert not any(part in said for part in ("[", "\\", "^", "$", "("))


@every_case("pattern", sorted(WORDS))
def test_a_digit_or_letter_is_one_of_ascii(pattern: str) -> None:
    # A class of pydantic's engine holds those of every script, which nobody at AWS takes.
    assert not re.search(r"\\[dw]", pattern)


def numbers(schema: Any, place: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(schema, list):
        for number, each in enumerate(schema):
            yield from numbers(each, f"{place}.{number}")
    elif isinstance(schema, dict):
        if schema.get("type") in {"integer", "number"}:
            yield place, schema
        for key, each in schema.items():
            yield from numbers(each, f"{place}.{key}")


@pytest.mark.parametrize("model", [ClusterSpec, Adoption])
def test_every_number_ends_where_its_reader_ends(model: type[BaseModel]) -> None:
    # Settings of Kafka's and Connect's have their own (core.cluster.kafka_settings).
    found = [
        place
        for place, schema in numbers(model.model_json_schema())
        if not schema.keys() & {"maximum", "exclusiveMaximum", "enum"} and ".config." not in place
    ]
    assert found == []


DIGEST = f"@sha256:{'a' * 64}"


@every_case(
    "name",
    [
        "connect",
        "connect:1.4",
        f"connect{DIGEST}",
        f"team/connect:1{DIGEST}",
        "registry.example:5000/a/b_c/d--e/f.g__h:V1",
        "123456789012.dkr.ecr.eu-west-1.amazonaws.com/kafka/connect:4.2.0",
        "localhost:65535/x",
        "Registry.Example/x:1",
        f"x:{'t' * 128}",
    ],
)
def test_an_image_is_taken(name: str) -> None:
    assert image_name(name) == name


@every_case(
    "name",
    [
        *("", "Connect", "a//b", "a/", "/a", "a..b", "a._b", "a___b", "a-", "-a.example/b"),
        *("a.example-/b", "r.example:99999/b", "r.example:0/b", "r.example:/b", "https://r/b:1"),
        *(f"x:{'t' * 129}", "x:-1", "x@sha256:abc", "x:1:2", "x y", "x:1\n", "ü/x", "x:\u0661"),
    ],
)
def test_what_is_none_is_a_sentence(name: str) -> None:
    with pytest.raises(ValueError, match="is not an image: write"):
        image_name(name)
