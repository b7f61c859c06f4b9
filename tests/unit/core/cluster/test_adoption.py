"""A description of a cluster that exists: a mistake is a sentence, a level adds to the last."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from core.cluster import adoption
from core.cluster.adoption import Level, doubts
from core.cluster.adoption_plan import next_level
from core.ground.errors import InvalidInput
from infra import spec
from tests.every_case import every_case
from tests.tables import cases, changed

KAFKA = {"namespace": "shop-kafka", "name": "orders", "bootstrap": "orders.example.com:9093"}
GOOD: dict[str, Any] = {
    "eks_cluster": "shop",
    "region": "eu-north-1",
    "kafkas": [KAFKA],
    "scaling_groups": ["kafka-a", "kafka-b"],
    "pool_label": "kafka-pool",
    "subnets": ["subnet-0123456789abcdef0"],
    "security_groups": ["sg-0123456789abcdef0"],
}
IMAGE = {"image": "registry.example/stillwater-gate:1.4"}
REFUSED = """
scaling_groups: [] => adopt names no machines; list the scaling_groups
kafkas: [] => kafkas: it has 0 entries and needs at least 1
kafkas: [{namespace: shop-kafka, name: orders, bootstrap: orders.example.com:9093}, {namespace:
    shop-kafka, name: orders, bootstrap: orders.example.com:9093}] => adopt.kafkas names
    shop-kafka/orders twice; keep one entry per Kafka.
scaling_groups: [a, a] => adopt.scaling_groups names a twice; keep it once.
scaling_group: [a] => did you mean scaling_groups?
level: own => level is 'own':
kafkas.0.bootstrap: orders
    => kafkas.0.bootstrap is 'orders': it must be HOST:PORT, several with commas
{kafkas.0: {namespace: a, name: b}, level: watch}
    => adopt.level is watch and Kafka a/b has no bootstrap; name a listener as HOST:PORT.
{kafkas.0.bootstrap: orders-kafka-bootstrap.a.svc:9093, level: watch}
    => names orders-kafka-bootstrap.a.svc:9093, which only the cluster knows
{kafkas.0.bootstrap: "b.a:1,x-0.b.a.svc.cluster.local:2", level: watch}
    => names x-0.b.a.svc.cluster.local:2, which only the cluster knows
{kafkas.0.credentials_secret: toolkit, level: watch}
    => has a credentials_secret that authentication none does not use
{kafkas.0.authentication: tls, kafkas.0.tls: false, kafkas.0.credentials_secret: toolkit, level:
    watch} => has authentication tls and tls false, and certificates need TLS
alerts.sns_topic_arn: arn:aws:sns:us-east-1:111122223333:calls
    => is in us-east-1, and an alarm of eu-north-1 may only tell a topic of eu-north-1
maintenance: {start_utc: 03:00, days: [mon, mon]}
    => maintenance.days: mon is named twice; name it once.
eviction_gate: {image: registry.example/stillwater-gate:1.4, operators: [kubernetes-admin]}
    => write it as system:serviceaccount:NAMESPACE:NAME.
scaling_groups: ["kafka-*"] => names kafka-*, which IAM would read as a pattern of names
scaling_groups: ["kafka-${x}"] => IAM would read as a pattern
{scaling_groups: [eks-kafka-a0c2b3d4-1234-5678-9abc-def012345678], level: act, drainer: none}
    => a group of a managed node group, where EKS takes no hooks of others
timings.nth_drain_timeout_seconds: 300
    => pod_grace_seconds (330 s) must be below nth_drain_timeout_seconds (300 s)
region: eusc-de-east-1 => region eusc-de-east-1 is of the European Sovereign Cloud
{drainer: none, queue_url: https://sqs.eu-north-1.amazonaws.com/111122223333/Drains}
    => adopt.drainer is none; remove one of them.
"""


def adopted(**changes: Any) -> adoption.Adoption:
    return adoption.parse({"adopt": changed(GOOD, changes)})


@every_case(("changes", "sentence"), cases(REFUSED))
def test_what_cannot_be_adopted_is_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        adopted(**changes)
    (problem,) = refused.value.problems
    assert sentence in problem


@pytest.mark.parametrize("raw", [None, [], {}, {"adopt": []}])
def test_a_file_without_a_description_is_told_where_to_get_one(raw: object) -> None:
    with pytest.raises(InvalidInput, match=r"^shop\.yaml:1:1: .*--adopt FILE"):
        adoption.parse(raw, lambda place, _: f"shop.yaml:{len(place)}:1: ")


def test_a_cluster_is_adopted_or_made_and_never_both() -> None:
    with pytest.raises(InvalidInput, match=r"^a\.yaml: In addition to `adopt` it has name, pools"):
        adoption.parse({"adopt": GOOD, "name": "tide", "pools": []}, lambda *_: "a.yaml: ")


def test_what_stands_in_two_descriptions_is_named_with_both() -> None:
    other = {"kafkas": [KAFKA | {"name": "ledger"}], "scaling_groups": ["kafka-b"]}
    said = adoption.shared_parts({"a.yaml": adopted(), "b.yaml": adopted(**other)})
    assert said == [
        "Auto Scaling group kafka-b is in a.yaml and in b.yaml; leave it in one of them."
    ]
    # The same name elsewhere is another group.
    assert adoption.shared_parts({"a": adopted(), "b": adopted(**other, region="eu-west-1")}) == []


def test_only_the_last_level_changes_what_is_theirs() -> None:
    for level in (Level.SURVEY, Level.WATCH):
        plan = next_level(adopted(level=level))
        assert {change.mark for change in plan.changes} == {"+", " "}
    plan = next_level(adopted(level="gate", eviction_gate=IMAGE, managed_node_groups=["workers"]))
    assert "~ Auto Scaling group kafka-a: + hooks drain and gate, default ABANDON" in plan.diff()
    assert all(change.mark == " " for change in plan.changes if "Managed" in change.what)
    queue = "https://sqs.eu-north-1.amazonaws.com/111122223333/Drains"
    assert next_level(adopted(level="act", queue_url=queue)) is None


def test_a_drain_of_our_own_is_planned_with_its_rights_and_no_queue() -> None:
    plan = next_level(adopted(level="gate", eviction_gate=IMAGE, drainer="none"))
    assert (
        "~ nodes of the named groups: cordoned, and their pods evicted, once the replacement is "
        "ready: Kafka's last"
    ) in plan.diff()
    assert any("create pods/eviction" in line for line in plan.diff())
    assert not any("messages to" in line for line in plan.diff())
    assert any("Let no other tool drain" in each for each in plan.missing)


def test_a_termination_handler_of_ours_is_planned_with_its_queue_and_role() -> None:
    plan = next_level(adopted(level="watch", eviction_gate=None, drainer="ours"))
    assert not any("-nth" in line for line in plan.diff())
    plan = next_level(adopted(level="gate", eviction_gate=IMAGE, drainer="ours"))
    assert [change.what for change in plan.changes if "-nth" in change.what] == [
        "SQS queue shop-orders-nth",
        "kube-system: Helm release shop-orders-nth",
        "role and Pod Identity association shop-orders-nth",
    ]
    assert any("would drain at once what is held" in each for each in plan.missing)


def test_gate_adds_a_gate_for_each_kafka_and_says_what_it_needs_first() -> None:
    both = [KAFKA, KAFKA | {"namespace": "lab", "name": "trial"}]
    plan = next_level(adopted(level="watch", kafkas=both))
    assert {change.mark for change in plan.changes} == {"+", " "}
    made = [change.what for change in plan.changes if change.what.startswith("Validating")]
    assert made == [
        "ValidatingWebhookConfiguration shop-orders-gate",
        "ValidatingWebhookConfiguration shop-trial-gate",
    ]
    said = " ".join(plan.missing)
    assert "eviction_gate is not set" in said
    assert "unless it is strimzi-cluster-operator in lab or shop-kafka" in said
    ready = next_level(adopted(level="watch", eviction_gate=IMAGE))
    assert not any("is not set" in each for each in ready.missing)


def test_what_must_be_filled_in_first_is_said() -> None:
    plan = next_level(adopted(kafkas=[{"namespace": "a", "name": "b"}]))
    assert [each.split(";")[0] for each in plan.missing] == [
        "Kafka a/b has no bootstrap",
        "Kafka a/b has no credentials_secret",
        "Strimzi must be 0.49 or newer",
    ]


WAYS_IN = {
    "a load balancer": ("kafka-0a1b.elb.eu-north-1.amazonaws.com:9094", ""),
    "nodes by their addresses": ("10.0.1.7:32100,10.0.2.9:32100", "10.0.1.7, 10.0.2.9"),
    "a node of version six": ("[2600:1f18::1]:32100", "2600:1f18::1"),
    "an address beside a name": ("kafka.example.com:9094,10.0.1.7:9094", ""),
    "a name without a domain": ("kafka:9094", "has no domain"),
    "Amazon MSK's": ("b-1.shop.0a1b.c2.kafka.eu-north-1.amazonaws.com:9094", "Amazon MSK's"),
    "nothing yet": (None, ""),
}


@every_case(("bootstrap", "said"), WAYS_IN.values(), ids=WAYS_IN.keys())
def test_a_way_in_that_may_not_last_is_doubted(bootstrap: str | None, said: str) -> None:
    kafka = {"namespace": "shop-kafka", "name": "orders"}
    kafka |= {"bootstrap": bootstrap} if bootstrap else {}
    section = {"eks_cluster": "shop", "region": "eu-north-1", "kafkas": [kafka]}
    found = doubts(adoption.parse({"adopt": {**section, "managed_node_groups": ["a"]}}))
    assert said in " ".join(found)
    assert bool(found) is bool(said)


QUEUE = "https://sqs.eu-north-1.amazonaws.com/111122223333/Drains"
THEIRS: dict[str, Any] = {
    "level": "act",
    "eks_cluster": "shop",
    "region": "eu-north-1",
    "kafkas": [{"namespace": "streams", "name": "orders", "bootstrap": "orders:9093"}],
    "scaling_groups": ["kafka-a"],
    "pool_label": "pool",
    "queue_url": QUEUE,
    "subnets": ["subnet-01234567"],
    "security_groups": ["sg-01234567"],
}


def kafka(**changed: Any) -> dict[str, Any]:
    return {"kafkas": [{**THEIRS["kafkas"][0], **changed}]}


def read(path: Path, changed: dict[str, Any]) -> adoption.Adoption:
    path.write_text(yaml.safe_dump({"adopt": {**THEIRS, **changed}}, sort_keys=False))
    found = spec.load_yaml(path)
    return adoption.parse(found.content, found.locate)


@pytest.mark.parametrize(
    ("changed", "line", "words"),
    [
        (kafka(bootstrap="orders:99999"), 8, "names orders:99999, and ports are 1 to 65535"),
        (kafka(bootstrap="a:9093,b:0"), 8, "names b:0, and ports are 1 to"),
        (kafka(namespace="a.b"), 6, "kafkas.0.namespace is 'a.b'"),
        (kafka(namespace="a" * 64), 6, "kafkas.0.namespace is"),
        (kafka(name="a..b"), 7, "kafkas.0.name is 'a..b'"),
        (kafka(bootstrap="a/b:9093"), 8, "kafkas.0.bootstrap is"),
        (kafka(bootstrap="ü.example:9093"), 8, "kafkas.0.bootstrap is"),
        (kafka(bootstrap=f"{'a' * 254}:9093"), 8, "kafkas.0.bootstrap is"),
        (kafka(bootstrap="A.B.SVC:9093"), 8, "which only the cluster knows"),
        (kafka(called="sthree-x"), 9, "AWS keeps 'sthree-' at the beginning of a bucket's name"),
        ({"pool_label": "a..b/pool"}, 11, "pool_label is"),
        ({"pool_label": "-a/pool"}, 11, "pool_label is"),
        ({"scaling_groups": ["a\nb"]}, 10, "scaling_groups.0 is"),
        ({"scaling_groups": ["a:b"]}, 10, "scaling_groups.0 is 'a:b'"),
        (kafka(bootstrap="orders-kafka-bootstrap.streams:9093"), 8, "only the cluster knows"),
        ({"scaling_groups": ["kafka-\u200ba"]}, 9, "U+200B, which is invisible"),
        ({"scaling_groups": ["kafka-a "]}, 10, "without a space at either end"),
        ({"node_pools": ["n" * 64]}, 18, "the name of a NodePool"),
        (kafka(bootstrap="127.0.0.1:9094"), 8, "not the address of a broker"),
        (kafka(bootstrap="a.example:1,localhost:9094"), 8, "names localhost:9094"),
        (kafka(bootstrap="[::1]:9094"), 8, "names [::1]:9094"),
        (kafka(bootstrap="169.254.1.1:9094"), 8, "names 169.254.1.1:9094"),
        (kafka(bootstrap="10.0.1:9094"), 8, "names 10.0.1:9094"),
        (kafka(name="orders.eu"), 7, "with no hyphen at either end"),
        (kafka(name="o" * 48), 7, "at most 47"),
        ({"managed_node_groups": ["n" * 64]}, 18, "managed_node_groups.0 is"),
        ({"queue_url": f"{QUEUE}.fifo"}, 12, "queue_url is"),
        ({"queue_url": "https://sqs.evil.example/111122223333/Q"}, 12, "queue_url is"),
        ({"queue_url": QUEUE.replace("north", "west")}, 12, "adopt.queue_url is in eu-west-1"),
        ({"subnets": ["subnet-01234567"] * 2}, 14, "adopt.subnets names subnet-01234567 twice"),
        ({"region": "us-gov-west-1", "queue_url": None}, 4, "AWS GovCloud (US)"),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_its_place(
    changed: dict[str, Any], line: int, words: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path / "a.yaml", changed)
    (problem,) = (each for each in caught.value.problems if words in each)
    assert int(problem.split(":")[1]) == line, problem
    assert problem.endswith(".")


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"scaling_groups": ["Kafka nodes/eu (a)"]},
        {"managed_node_groups": ["n" * 63]},
        {"pool_label": f"{'a' * 253}/{'b' * 63}"},
        kafka(bootstrap="10.0.0.7:9093,b_1.example:9093", called="internal-x"),
        kafka(bootstrap="a:1,b:65535", namespace="a" * 63, called="orders"),
    ],
    ids=str,
)
def test_what_people_have_is_taken(changed: dict[str, Any], tmp_path: Path) -> None:
    assert read(tmp_path / "a.yaml", changed).region == "eu-north-1"
