"""What a doctor says of its own machines and of a cluster that exists, each fault once."""

from __future__ import annotations

import base64
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from cli.answers import LOGIN
from cli.doctor import adopted
from cli.doctor import examine as examining
from cli.doctor.examine import Machines, _answered, read, surroundings_findings
from cli.main import app
from cli.target import Target
from core.checks import table
from core.checks.drift import findings
from core.checks.facts import Snapshot
from core.checks.finding import Finding, Weight
from core.cluster import ClusterSpec, parse
from core.ground.instances import STANDARD_QUOTA
from core.incidents.joining import Pause
from handlers.store.documents import Pauses
from infra.eks.api import ApiError
from tests.every_case import every_case
from tests.unit.certificates import issue
from tests.unit.cli.doctor.test_account import EXPECTED, Lists, cluster
from tests.unit.cli.doctor.test_account import read as read_cluster
from tests.unit.cli.doctor.test_examine import FINDING, diagnosis
from tests.unit.cli.survey.around import CLUSTER, refuse
from tests.unit.cli.survey.changes import (
    HANDLER,
    both,
    each_group,
    endpoints,
    nat_gone,
    refreshing,
    routed_to,
    short,
    template,
    template_keyed,
    without_template,
)
from tests.unit.cli.survey.changes_of_machines import action, policy
from tests.unit.cli.survey.machines import own_groups
from tests.unit.cli.survey.manifests import workload
from tests.unit.cli.survey.others import rows, surveyed
from tests.unit.cli.survey.worlds import Change, World, at, bare
from tests.unit.core.checks.test_judge import OneKafka
from tests.unit.infra.programs import description

OWNED = {"Key": "kubernetes.io/cluster/shop", "Value": "owned"}


def world(change: Change = lambda _: None) -> World:
    made = own_groups(bare())
    for each in made.instances.values():
        each["Tags"] = [OWNED]
    change(made)
    return made


def machines(made: World, **wanted: Any) -> Machines:
    usual = {"eks_cluster": "shop", "region": "eu-north-1", "groups": tuple(made.groups)}
    return Machines(**{**usual, **wanted})


def found_in(made: World, **wanted: Any) -> list[Finding]:
    return table.findings(read(lambda _: made, machines(made, **wanted)))


def checks(made: World, **wanted: Any) -> dict[str, Weight]:
    return {each.check: each.weight for each in found_in(made, **wanted)}


full = at("around.subnets.subnet-a", ("eu-north-1a", 1))
used_up = at(f"around.limits.{STANDARD_QUOTA}", 12)
extended = at(
    "around.versions.0",
    versionStatus="EXTENDED_SUPPORT",
    endOfExtendedSupportDate=datetime(2027, 9, 1, tzinfo=UTC),
)
TROUBLE = {
    "arn": "arn:e",
    "eventTypeCode": "AWS_EC2_OPERATIONAL_ISSUE",
    "service": "EC2",
    "eventTypeCategory": "issue",
    "availabilityZone": "eu-north-1a",
}
SHIFTED = [{"awayFrom": "eun1-az1", "appliedStatus": "APPLIED"}]


def denied(made: World) -> None:
    made.list_managed_resources = lambda **_: refuse("AccessDenied", "ListManagedResources")


SAID: dict[str, tuple[Change, dict[str, Weight]]] = {
    "nothing amiss": (lambda _: None, {}),
    "a subnet without addresses": (full, {"subnet-full": Weight.PRODUCER}),
    "a quota that is used up": (used_up, {"quota-machines": Weight.PRODUCER}),
    "a version in extended support": (extended, {"support-extended": Weight.ADVICE}),
    "an issue of EC2's": (at("around.events", [TROUBLE]), {"health-issue": Weight.PRODUCER}),
    "a zone that is shifted away": (
        at("around.managed", [{"arn": CLUSTER, "zonalShifts": SHIFTED}]),
        {"zone-shifted": Weight.PRODUCER}),
    "a template's key for the account alone": (template_keyed("arn:aws:iam::111122223333:root"),
        {"key-grant": Weight.PRODUCER}),
    "a NAT gateway that is gone": (nat_gone, {"route-gone": Weight.PRODUCER}),
    "a right that is missing": (denied, {"unread": Weight.UNKNOWN}),
}  # fmt: skip


@pytest.mark.parametrize(("change", "said"), SAID.values(), ids=SAID.keys())
def test_the_doctor_says_what_a_survey_says(change: Change, said: dict[str, Weight]) -> None:
    made = world(change)
    assert checks(made) == said
    assert set(said) <= {each.check for each in surveyed(made)}


FUNCTIONS: dict[str, tuple[Change, dict[str, Weight]]] = {
    "behind a NAT gateway": (lambda _: None, {}),
    "behind an internet gateway alone": (routed_to(GatewayId="igw-1"),
        {"function-endpoints": Weight.PRODUCER}),
    "by endpoints alone": (both(routed_to(GatewayId="igw-1"), endpoints("sqs", "dynamodb", "ec2")),
        {}),
    "by some of the endpoints": (both(routed_to(GatewayId="igw-1"), endpoints("sqs", "ec2")),
        {"function-endpoints": Weight.PRODUCER}),
    "behind a NAT gateway that is gone": (nat_gone,
        {"route-gone": Weight.PRODUCER, "function-route": Weight.PRODUCER}),
}  # fmt: skip


@pytest.mark.parametrize(("change", "said"), FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_functions_in_others_subnets_reach_all(change: Change, said: dict[str, Weight]) -> None:
    called = ("sqs", "dynamodb", "ec2")
    assert checks(world(change), function_subnets=("subnet-c",), called=called) == said


def test_functions_in_a_subnet_that_is_gone_are_found() -> None:
    assert {*checks(world(), function_subnets=("subnet-z",))} == {"function-subnets"}


def test_the_subnets_of_somebody_elses_groups_are_not_judged() -> None:
    made = world(full)
    assert checks(made, groups=[n for n in made.groups if not n.endswith("-0")]) == {}


def karpenters(made: World) -> None:
    made.groups, made.member_of = {}, {}
    full(made)
    for each in made.instances.values():
        each["Tags"] = [OWNED, {"Key": "karpenter.sh/nodepool", "Value": "kafka"}]


@pytest.mark.parametrize(
    ("pools", "said"), [(None, {"subnet-full"}), (("kafka",), {"subnet-full"}), (("web",), set())]
)
def test_pools_are_judged_by_their_subnets(pools: tuple[str, ...] | None, said: set[str]) -> None:
    assert set(checks(world(karpenters), groups=(), node_pools=pools)) == said


def test_machines_that_are_not_found_are_not_known_to_have_room() -> None:
    made = world(lambda w: w.instances.clear())
    assert checks(made, groups=(), node_groups=("quorum",))["unread"] is Weight.UNKNOWN


@pytest.mark.parametrize(
    ("change", "code"), [(full, 1), (extended, 0), (denied, 2), (lambda _: None, 0)]
)
def test_what_stops_a_rotation_has_the_exit_code_of_a_difference(change: Change, code: int) -> None:
    found = found_in(world(change))
    assert diagnosis(found).exit_code == code
    assert diagnosis([FINDING, *found]).exit_code == max(1, code)


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("https://ec2.eu-north-1.amazonaws.com", True),
        ("https://vpce-0a1b.ec2.eu-north-1.vpce.amazonaws.com", True),
        ("https://ec2.cn-north-1.amazonaws.com.cn", True),
        ("https://ec2.eu-north-1.api.aws", True),
        ("http://127.0.0.1:5000", False),
        ("https://localstack.example.com", False),
    ],
)
def test_whoever_stands_in_for_aws_is_not_asked_for_its_account(url: str, asked: bool) -> None:
    made = world(full)
    made.meta = type("Meta", (), {"endpoint_url": url})
    session = type("Session", (), {"client": lambda *_, **__: made})()
    assert bool(surroundings_findings(session, machines(made))) == asked


def test_an_account_that_cannot_be_asked_at_all_is_unknown_and_costs_nothing_else() -> None:
    class Session:
        def client(self, *_: Any, **__: Any) -> Any:
            raise ValueError("Invalid endpoint: https://ec2..amazonaws.com")

    (said,) = surroundings_findings(Session(), Machines(eks_cluster="shop", region="eu-north-1"))
    assert (said.subject, said.weight) == ("the account around it", Weight.UNKNOWN)


DESCRIPTION = """
adopt:
  level: {level}
  eks_cluster: shop
  region: eu-north-1
  kafkas:
    - namespace: shop-kafka
      name: orders
      bootstrap: orders.example.com:9093
      authentication: tls
      credentials_secret: eyes
  managed_node_groups: [quorum]
  subnets: [subnet-0123456789abcdef0]
  security_groups: [sg-0123456789abcdef0]
  eviction_gate: {{image: "registry.example/stillwater-gate:1.4"}}
"""
GATE = {
    **workload("gate", "kube-system", "registry.example/stillwater-gate:1.4"),
    "status": {"availableReplicas": 2},
}
TRUSTED = {"webhooks": [{"clientConfig": {"caBundle": "eA=="}}]}
OPERATOR = workload("operator", "ops", "quay.io/strimzi/operator:1.2.0")
OPERATOR["spec"]["template"]["spec"]["serviceAccountName"] = "strimzi"
KAFKA = {"metadata": {"name": "orders", "namespace": "shop-kafka"}, "spec": {"kafka": {}}}


class Missing(Exception):
    """SQS knows no such queue."""


class Service:
    """Every client of AWS's that the doctor makes."""

    exceptions = type("Exceptions", (), {"QueueDoesNotExist": Missing})

    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": "111122223333"}

    def can_paginate(self, _call: str) -> bool:
        return True

    def get_paginator(self, _call: str) -> Service:
        return self

    def paginate(self, **_asked: str) -> list[dict[str, list[str]]]:
        return [{"nodegroups": ["quorum"]}]

    def get_function_configuration(self, **asked: str) -> None:
        if asked["FunctionName"] == "shop-orders-sweep":
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "GetFunction")

    def get_queue_url(self, **asked: str) -> None:
        if asked["QueueName"] == "shop-orders-ticks":
            raise Missing


class Server:
    """An API server that has what is in `held`, and refuses Secrets where told to."""

    held: dict[str, Any]

    def __init__(self) -> None:
        # What the doctor asks to have judged around the machines.
        self.judged: list[Any] = []

    def get(self, path: str, **_query: object) -> Any:
        assert "/secrets" not in path, "what a Secret holds was asked for"
        return self._held(path)

    def metadata(self, path: str) -> Any:
        return self._held(path)

    def _held(self, path: str) -> Any:
        found = self.held.get(path)
        if isinstance(found, int) or found is None:
            status = found or 404
            raise ApiError(status, "", f"GET {path} was refused ({status}): no")
        return found


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    gate = "shop-orders-gate"
    made.held = {
        "/api/v1/nodes": {"items": [{"metadata": {"name": "a", "labels": {"kafka-pool": "b"}}}]},
        "/apis/kafka.strimzi.io": {"preferredVersion": {"groupVersion": "kafka.strimzi.io/v1"}},
        "/apis/core.strimzi.io": {"versions": [{"version": "v1"}]},
        "/apis/kafka.strimzi.io/v1/kafkas": {"items": [KAFKA]},
        "/api/v1/namespaces/shop-kafka/secrets/eyes": {},
        "/api/v1/namespaces/shop-kafka/secrets/orders-cluster-ca-cert": {},
        "/apis/apps/v1/deployments": {"items": []},
        "/apis/apps/v1/daemonsets": {"items": []},
        f"/apis/apps/v1/namespaces/kube-system/deployments/{gate}": GATE,
        f"{adopted.WEBHOOKS}/{gate}": TRUSTED,
    }
    monkeypatch.setattr(adopted, "eks_api", lambda *_: made)
    session = type("Session", (), {"client": lambda *_, **__: Service()})
    monkeypatch.setattr(adopted.aws, "session", lambda **_: session())
    monkeypatch.setattr(
        adopted, "surroundings_findings", lambda _, asked: made.judged.append(asked) or []
    )
    return made


def described(tmp_path: Path, level: str) -> Path:
    path = tmp_path / "shop.yaml"
    path.write_text(DESCRIPTION.format(level=level))
    return path


def test_what_is_missing_is_named_and_nothing_else(server: Server, tmp_path: Path) -> None:
    found = adopted.examine(described(tmp_path, "gate"))
    expected = ["function shop-orders-sweep", "queue shop-orders-ticks"]
    assert [each.subject for each in found.findings] == expected
    assert (found.exit_code, found.account, found.cluster) == (1, "111122223333", "shop")


def test_a_gate_whose_authority_ended_is_not_trusted(server: Server, tmp_path: Path) -> None:
    ended = issue("ca", None, datetime(2021, 1, 1, tzinfo=UTC)).certificate_pem
    bundle = base64.b64encode(ended.encode()).decode()
    server.held[f"{adopted.WEBHOOKS}/shop-orders-gate"] = {
        "webhooks": [{"clientConfig": {"caBundle": bundle}}]
    }
    found = adopted.examine(described(tmp_path, "gate")).findings
    assert [e.evidence for e in found if e.subject == "webhook shop-orders-gate"] == [
        "expected asks the gate, and trusts it, found does not"
    ]


def test_a_strimzi_of_before_v1_is_found(server: Server, tmp_path: Path) -> None:
    server.held["/apis/core.strimzi.io"] = {"versions": [{"version": "v1beta2"}]}
    found = adopted.examine(described(tmp_path, "watch")).findings
    assert [e.evidence for e in found if e.subject == "API of StrimziPodSets"] == [
        "expected v1, found v1beta2 alone"
    ]


def test_functions_in_subnets_call_what_their_rights_name(server: Server, tmp_path: Path) -> None:
    adopted.examine(described(tmp_path, "watch"))
    (machines,) = server.judged
    assert machines.function_subnets == ("subnet-0123456789abcdef0",)
    assert machines.called >= {"autoscaling", "dynamodb", "ec2", "sqs", "s3"}
    # Slack's function stands outside the VPC.
    assert "secretsmanager" not in machines.called


def test_an_operator_elsewhere_is_read_by_its_account(server: Server, tmp_path: Path) -> None:
    server.held["/apis/apps/v1/deployments"] = {"items": [OPERATOR]}
    found = adopted.examine(described(tmp_path, "gate"))
    assert any("system:serviceaccount:ops:strimzi" in each.evidence for each in found.findings)


def test_a_refused_part_is_not_known_and_costs_no_other(server: Server, tmp_path: Path) -> None:
    server.held["/api/v1/namespaces/shop-kafka/secrets/eyes"] = 401
    found = adopted.examine(described(tmp_path, "gate"))
    (unread,) = [each for each in found.findings if each.weight is Weight.UNKNOWN]
    assert unread.subject == "Secrets"
    assert "was refused (401)" in unread.evidence
    assert unread.remedy == LOGIN
    assert len(found.findings) == 3
    assert found.exit_code == 2


def test_a_description_of_a_survey_is_the_surveys(tmp_path: Path) -> None:
    # One Kafka of a file is named as other commands name it; all of the file is examined.
    done = CliRunner().invoke(app, ["doctor", f"{described(tmp_path, 'survey')}#shop-orders"])
    assert done.exit_code == 2
    assert "`stillwater survey` judges it" in done.stderr


def test_a_kafka_that_somebody_deletes_is_found_meanwhile(server: Server, tmp_path: Path) -> None:
    going = {**KAFKA, "metadata": {**KAFKA["metadata"], "deletionTimestamp": "2026-11-01"}}
    server.held["/apis/kafka.strimzi.io/v1/kafkas"] = {"items": [going]}
    (first, *_) = adopted.examine(described(tmp_path, "gate")).findings
    assert first.subject == "Kafka shop-kafka/orders"
    assert first.evidence.endswith("found somebody deletes it")


WARM = {"InstanceReusePolicy": {"ReuseOnScaleIn": True}}
SHARE = {"InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 0}}
BY_HAND: dict[str, Change] = {
    "a maximum lifetime => group-lifetime": each_group(MaxInstanceLifetime=604_800),
    "the load balancer's health => group-health": each_group(HealthCheckType="ELB"),
    "a target of processor time => group-scales-in": policy,
    "nights without nodes => group-scales-in": action,
    "an instance refresh => group-refreshing": refreshing("InProgress"),
    "an instance refresh of last month =>": refreshing("Successful"),
    "a warm pool that takes nodes back => group-warm-pool": each_group(WarmPoolConfiguration=WARM),
    "a share for spot => group-spot": each_group(MixedInstancesPolicy=SHARE),
    "a template for spot => group-spot": template(InstanceMarketOptions={"MarketType": "spot"}),
    "a template that is gone => template-gone": without_template,
    # A rotation does so, too: the alerts watch it.
    "a machine that is not there yet =>": short,
}


@every_case(("change", "said"), rows(BY_HAND), ids=BY_HAND)
def test_what_ends_our_machines_is_found(change: Change, said: set[str]) -> None:
    assert set(checks(world(change))) == said


QUEUES = "https://sqs.us-east-1.amazonaws.com/111122223333"
OURS = next(name for name in EXPECTED.snapshot.queues or {} if name.endswith("-nth"))
EVERYTHING = [{"operator": "Exists"}]


def handler(
    name: str, namespace: str = "ops", tolerations: Any = (), replicas: int = 1, **env: Any
) -> dict[str, Any]:
    made = workload(name, namespace, HANDLER, **env)
    made["spec"]["replicas"] = replicas
    made["spec"]["template"]["spec"]["tolerations"] = list(tolerations)
    return made


def queued(queue: str, **given: Any) -> dict[str, Any]:
    env = {"ENABLE_SQS_TERMINATION_DRAINING": "true", "QUEUE_URL": f"{QUEUES}/{queue}"}
    return handler("drainer", **given, **env)


CASES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "in another namespace, on a queue of its own": ("deployments", queued("web-drains"),
        ["reads queue web-drains"]),
    "by another chart, on our queue": ("deployments", queued(OURS, namespace="kube-system"),
        [f"reads our queue {OURS}"]),
    "on every node, by the metadata": ("daemonsets", handler("nth-imds", tolerations=EVERYTHING),
        ["on Kafka's nodes, by the instance metadata"]),
    "on Kafka's nodes by name": ("daemonsets",
        handler("nth-imds",
            tolerations=[{"key": "dedicated", "value": "kafka", "effect": "NoSchedule"}]),
        ["on Kafka's nodes, by the instance metadata"]),
    "on other nodes alone": ("daemonsets", handler("nth-imds"), []),
    "scaled to none": ("deployments", queued("web-drains", replicas=0), []),
    "ours": ("deployments",
        {**queued(OURS),
            "metadata": {"name": "aws-node-termination-handler", "namespace": "kube-system"}}, []),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "found", "said"), CASES.values(), ids=CASES.keys())
def test_a_second_handler_is_found(kind: str, found: dict[str, Any], said: list[str]) -> None:
    parts, _ = read_cluster(**{kind: [found]})
    drifts = findings(EXPECTED, Snapshot(second_handlers=parts["second_handlers"]))
    assert [each.evidence for each in drifts] == [f"expected missing, found {s}" for s in said]
    assert all(each.subject.startswith("second node termination handler") for each in drifts)


def test_a_handler_whose_settings_stand_elsewhere_costs_no_other_part() -> None:
    source = {"valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}}
    odd = handler("nth", ENABLE_SQS_TERMINATION_DRAINING=source)
    parts, reader = next(each for each in cluster().readers() if "second_handlers" in each[0])
    api: Any = Lists({"deployments": [odd]})
    found, why = _answered(lambda: reader(api))
    assert set(parts) - set(found) == {"second_handlers"}
    assert "is set from another object" in why.why


def test_every_part_that_a_reader_of_the_cluster_yields_is_asked_for() -> None:
    """A part that the spec's own snapshot lacks is one that this cluster does not have."""
    parts = [part for named, _ in cluster().readers() for part in named]
    assert [part for part in parts if getattr(EXPECTED.snapshot, part) is None] == []


class LivingAccount:
    """An account of which nothing is read, with the API server of one paused Kafka."""

    def __init__(self, target: Target, _wanted: object) -> None:
        self._kafka = OneKafka(target.spec)
        self._kafka.item["metadata"]["annotations"] = {"strimzi.io/pause-reconciliation": "true"}

    def number(self) -> str:
        return "111122223333"

    def api(self) -> OneKafka:
        return self._kafka

    def readers(self) -> list[Any]:
        return []


def said(spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often the doctor says each check of a live cluster, drift aside."""
    monkeypatch.setattr(examining, "LiveAccount", LivingAccount)
    monkeypatch.setattr(examining, "_surroundings", lambda *_: [])
    pause = Pause("ann", "an upgrade", 0)
    monkeypatch.setattr(Pauses, "current", lambda *_: pause)
    target = Target(spec, boto3.Session("AKIAEXAMPLE", "none", region_name=spec.region))
    found = examining.examine(target).findings
    return Counter(each.check for each in found if each.check != "drift")


def test_each_source_is_asked_and_a_fault_of_two_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = said(parse(description(kafka={"min_insync_replicas": 1})), monkeypatch)
    # Of the live Kafka, of both, of the description alone, of the ledger.
    expected = {"paused", "operator-missing", "min-insync", "quorum-grows", "pause"}
    assert {check: found[check] for check in expected} == dict.fromkeys(expected, 1)


def test_only_what_a_description_answers_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    meant = description(kafka={"min_insync_replicas": 1}, accept=["min-insync", "paused"])
    found = said(parse(meant), monkeypatch)
    assert found["min-insync"] == 0
    assert found["paused"] == found["accept-unused"] == 1
