"""A survey as its caller gets it, what it asks, and what it says where an answer is refused."""

import io
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore import xform_name
from botocore.session import get_session
from botocore.validate import ParamValidator
from rich.console import Console

from cli import adopt
from cli.survey import command, draft, tools
from cli.terminal import show_findings
from core.checks.finding import CLEAR, NOT_READ, Finding, Weight
from core.checks.rights import READS
from core.checks.table import findings
from core.ground.errors import StillwaterError
from infra.eks.api import ApiError
from tests.unit.cli.survey import worlds
from tests.unit.cli.survey.around import CLUSTER, refuse
from tests.unit.cli.survey.changes import (
    by_configuration,
    container_of,
    of_ecr,
    role,
    short,
    template,
    without,
)
from tests.unit.cli.survey.machines import managed, own_groups
from tests.unit.cli.survey.manifests import workload
from tests.unit.cli.survey.others import bound, changed, checks, kafka_spec, own, surveyed
from tests.unit.cli.survey.test_around import behind, told
from tests.unit.cli.survey.worlds import Change, World, at, bare


def examined(monkeypatch: pytest.MonkeyPatch, world: World) -> command.Survey:
    monkeypatch.setattr(command, "connect", lambda *_: ("shop", world))
    monkeypatch.setattr(
        "boto3.Session.client", lambda _, service, **__: world.client(service, None)
    )
    return command.examine(
        context=None, kubeconfig=Path("unused"), namespace=None, region="eu-north-1", profile=None
    )


def test_a_survey_is_one_object_for_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    world = own_groups(bare())
    world.refused = {"pods"}
    done = examined(monkeypatch, world)
    shown = json.loads(command.as_json(done))
    assert shown["exit_code"] == done.exit_code == NOT_READ
    assert shown["kafkas"] == ["Kafka shop-kafka/orders"]
    assert shown["findings"][0]["weight"] == "unknown"


def test_a_healthy_cluster_is_one_line_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    world = own_groups(bare())
    for instance in world.instances.values():
        instance["Tags"].append({"Key": "kubernetes.io/cluster/shop", "Value": "owned"})
    done = examined(monkeypatch, world)
    console = Console(file=io.StringIO(), width=200)
    show_findings(done.findings, console, command.verdict(done))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "shop (Kafka shop-kafka/orders): nothing was found.\n"
    assert done.exit_code == CLEAR


def test_a_cluster_without_kafka_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StillwaterError, match="no Kafka resource of Strimzi's in shop"):
        examined(monkeypatch, World())


def test_a_kafka_of_others_is_judged_and_not_described(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.add("statefulsets", workload("kafka", "legacy", "apache/kafka:4.1.0"))
    done = examined(monkeypatch, world)
    assert done.kafkas == ("StatefulSet legacy/kafka",)
    assert done.exit_code == NOT_READ
    assert "Strimzi's Kafkas alone" in done.undescribed


def test_a_page_says_first_what_may_happen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = own_groups(bare())
    world.rules.clear()
    world.only("kafkas")["spec"]["kafka"]["listeners"] = [{"name": "<b>plain</b>"}]
    command.write_files(examined(monkeypatch, world), tmp_path / "survey.html", None)
    body = (tmp_path / "survey.html").read_text()
    assert body.index("Not safely") < body.index("never hears that nodes") < body.index("plain")
    assert "&lt;b&gt;plain" in body
    assert "{{" not in body


def test_an_unwritten_page_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = examined(monkeypatch, own_groups(bare()))
    with pytest.raises(StillwaterError, match="cannot be written: Is a directory; name a file"):
        command.write_files(done, tmp_path, None)


def test_adopt_plan_reads_its_description(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = own_groups(bare())
    for group in world.groups.values():
        group["Tags"] = [{"Key": "kubernetes.io/cluster/shop", "Value": "owned"}]
    inside = {"name": "tls", "bootstrapServers": "orders-kafka-bootstrap.shop-kafka.svc:9093"}
    served = {"name": "lb", "bootstrapServers": "kafka.example.com:9094"}
    world.only("kafkas")["status"] = {"listeners": [inside, served]}
    asks = {"name": "lb", "port": 9094, "tls": True, "authentication": {"type": "scram-sha-512"}}
    world.only("kafkas")["spec"]["kafka"]["listeners"].append(asks)
    path = tmp_path / "adopt.yaml"
    command.write_files(examined(monkeypatch, world), None, path)
    adopted = adopt.read([path])[str(path)]
    assert (adopted.eks_cluster, adopted.region) == ("shop", "eu-north-1")
    (kafka,) = adopted.kafkas
    assert kafka.bootstrap == "kafka.example.com:9094"
    assert (kafka.authentication, kafka.tls) == ("scram-sha-512", True)
    assert "name the Secret of a KafkaUser in credentials_secret" in path.read_text()
    assert set(adopted.scaling_groups) == set(world.groups)
    assert adopted.queue_url == worlds.QUEUE_URL


def test_an_operators_account_is_noted_for_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    world = own_groups(bare())
    done = examined(monkeypatch, world)
    assert "#    - system:serviceaccount:ops:default\n" in done.description
    noted = done.description.replace("#  ", "  ").replace("image: ...", "image: gate:1.4")
    gate = yaml.safe_load(noted)["adopt"]["eviction_gate"]
    assert gate == {"image": "gate:1.4", "operators": ["system:serviceaccount:ops:default"]}
    operator = world.kinds["deployments"][0]
    operator["metadata"]["namespace"] = "shop-kafka"
    operator["spec"]["template"]["spec"]["serviceAccountName"] = "strimzi-cluster-operator"
    assert "eviction_gate" not in examined(monkeypatch, world).description


def test_without_a_handler_the_description_drains_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = own_groups(bare())
    done = examined(monkeypatch, world)
    assert "drainer" not in done.description
    without("termination-handler")(world)
    done = examined(monkeypatch, world)
    assert "drainer: none" in done.description


def test_what_was_not_read_is_left_out_of_the_description(monkeypatch: pytest.MonkeyPatch) -> None:
    world = own_groups(bare())
    done = examined(monkeypatch, world)
    assert "# eks_cluster could not be read: fill it in." in done.description
    assert "eks_cluster:" not in done.description


def test_anothers_cluster_is_not_described(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = own_groups(bare())
    next(iter(world.groups.values()))["Tags"] = [{"Key": "stillwater:cluster", "Value": "tide"}]
    done = examined(monkeypatch, world)
    with pytest.raises(StillwaterError, match="stillwater:cluster=tide: a Stillwater manages it"):
        command.write_files(done, None, tmp_path / "adopt.yaml")


@pytest.mark.parametrize(
    ("listener", "said"),
    [
        ({"type": "internal"}, ""),
        ({"authentication": {"type": "custom"}}, ""),
        ({}, "bootstrap: kafka.example.com:9094\n    tls: false\n"),
        ({"tls": True}, "bootstrap: kafka.example.com:9094\n"),
    ],
    ids=["inside alone", "asks in its own way", "in the clear", "encrypted"],
)
def test_only_a_way_in_for_the_functions_is_described(listener: dict[str, Any], said: str) -> None:
    world = own()
    inside = listener.get("type") == "internal"
    servers = "orders-kafka-bootstrap.shop-kafka.svc:9094" if inside else "kafka.example.com:9094"
    kafka_spec(world)["listeners"] = [{"name": "it", "port": 9094, **listener}]
    served = {"name": "it", "bootstrapServers": servers}
    world.only("kafkas")["status"] = {"listeners": [served]}
    found = described(world)
    named = (
        "its listener it (custom) cannot serve" if "authentication" in listener else "no listener"
    )
    assert (f"# Kafka shop-kafka/orders: {named}" in found) is not bool(said)
    assert said in found
    assert ("bootstrap:" in found) is bool(said)


def described(world: World) -> str:
    seen = command.read(world, world.client, None)
    return draft.draft(seen, "arn:aws:eks:eu-north-1:111122223333:cluster/shop")


@pytest.mark.parametrize(
    "zone", ["us-west-2a", "us-west-2-lax-1a", "us-east-1-wl1-bos-wlz-1", "ap-southeast-1c"]
)
def test_the_region_of_any_kind_of_zone_is_in_the_description(zone: str) -> None:
    world = own()
    at("nodes.*.metadata.labels", **{"topology.kubernetes.io/zone": zone})(world)
    assert f"region: {re.match('[a-z]+-[a-z]+-[0-9]', zone)[0]}\n" in described(world)


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("eu-north-1.queue.amazonaws.com", "eu-north-1"),
        ("queue.amazonaws.com", "us-east-1"),
        ("sqs-fips.us-east-1.amazonaws.com", "us-east-1"),
        ("sqs.eu-north-1.api.aws", "eu-north-1"),
        ("vpce-0a1b-eu-north-1a.sqs.eu-north-1.vpce.amazonaws.com", "eu-north-1"),
    ],
)
def test_a_queue_is_described_by_the_name_that_adoption_takes(host: str, region: str) -> None:
    path = "/111122223333/Drains"
    world = changed(own, queue(f"https://{host}{path}"))()
    assert f"queue_url: https://sqs.{region}.amazonaws.com{path}\n" in described(world)


def test_what_is_no_queue_of_awss_is_named_and_left_out() -> None:
    said = described(changed(own, queue("https://sqs.example/111122223333/Drains"))())
    assert "\n  queue_url:" not in said
    assert "# queue_url: which of https://sqs.example/111122223333/Drains it is" in said


def queue(url: str) -> Change:
    """Tell the termination handler its queue."""
    return container_of("termination-handler", lambda c: c["env"][1].update(value=url))


def test_a_listing_whose_pages_expire_is_begun_anew() -> None:
    """A large cluster's API server forgets where a slow reader was."""
    world = own()
    answer = world._request

    def request(method: str, path: str, body: Any, query: dict[str, Any], **named: Any) -> Any:
        if "continue" in query:
            raise ApiError(410, "Expired", "the continue parameter is too old")
        whole = answer(method, path, body, query, **named)
        if path.endswith("/nodes") and "limit" in query:
            return {"items": whole["items"][:2], "metadata": {"continue": "next"}}
        return whole

    world._request = request
    assert checks(world) == set()


def test_a_listing_without_end_ends() -> None:
    world = own()
    answer = world._request

    def request(method: str, path: str, body: Any, query: dict[str, Any], **named: Any) -> Any:
        found = answer(method, path, body, query, **named)
        return {**found, "metadata": {"continue": "same"}} if path.endswith("/nodes") else found

    world._request = request
    (said,) = surveyed(world)
    assert "the same next page" in said.evidence


def test_who_may_list_the_budgets_of_one_namespace_alone_is_told_of_these() -> None:
    world = own()
    asked = world._request

    def request(method: str, path: str, *given: Any, **named: Any) -> Any:
        if path.endswith("/v1/poddisruptionbudgets"):
            raise ApiError(403, "Forbidden", "no")
        return asked(method, path, *given, **named)

    world._request = request
    assert [each.name for each in tools.budgets(world, "shop-kafka")] == ["orders-kafka"]
    with pytest.raises(ApiError):
        tools.budgets(world, None)


# A cluster with something wrong of its own, so that a part of it may go missing.
def build() -> World:
    world = changed(changed(own, bound), short)()
    parts = {"ImageId": "ami-1", "SecurityGroupIds": ["sg-1"], "KeyName": "ops"}
    encrypted = {"BlockDeviceMappings": [{"Ebs": {"KmsKeyId": "alias/mine"}}]}
    role("eks-nodes", mode="API_AND_CONFIG_MAP", known=("eks-nodes",))(world)
    template(**parts, **encrypted)(world)
    world.profiles["web"] = []
    of_ecr("ImageNotFoundException", cached="strimzi")(world)
    world.routes["a"].pop()
    told("issue")(world)
    return world


IAM = {"elbv2": "elasticloadbalancing", "service-quotas": "servicequotas"}


@cache
def operations(service: str) -> dict[str, Any]:
    model = get_session().get_service_model(service)
    return {xform_name(name): model.operation_model(name) for name in model.operation_names}


class Recorded:
    """A client whose calls are noted, and held against botocore's model; one may be refused."""

    def __init__(self, world: World, service: str, asked: set[str], refused: str = "") -> None:
        self._world, self._service, self._asked, self._refused = world, service, asked, refused

    def __getattr__(self, call: str) -> Callable[..., Any]:
        return self._checked(call, getattr(self._world, call))

    def can_paginate(self, call: str) -> bool:
        return self._world.can_paginate(call)

    def get_paginator(self, call: str) -> Any:
        """Return the world's pages of a call; botocore knows that it has pages, or raises."""
        name = operations(self._service)[call].name
        get_session().get_paginator_model(self._service).get_paginator(name)
        paginate = self._checked(call, self._world.get_paginator(call).paginate)
        return type("Pages", (), {"paginate": staticmethod(paginate)})

    def _checked(self, call: str, answer: Callable[..., Any]) -> Callable[..., Any]:
        def ask(**given: Any) -> Any:
            operation = operations(self._service)[call]
            report = ParamValidator().validate(given, operation.input_shape)
            assert not report.has_errors(), report.generate_report()
            named = f"{IAM.get(self._service, self._service)}:{operation.name}"
            self._asked.add(named)
            return refuse("AccessDenied", call) if named == self._refused else answer(**given)

        return ask


def read(world: World, refused: str = "") -> tuple[list[Finding], set[str]]:
    """Return what a survey finds, and what it asks of AWS."""
    asked: set[str] = set()
    found = command.read(
        world, lambda service, _: Recorded(world, service, asked, refused), None, CLUSTER
    )
    return findings(found), asked


class Listed(World):
    """A world that notes which kinds are listed."""

    kinds_asked: set[str]

    def _request(self, method: str, path: str, *given: Any, **named: Any) -> Any:
        self.kinds_asked.add(path.rpartition("/")[2])
        return super()._request(method, path, *given, **named)


def _everything() -> tuple[list[Finding], list[str], list[str]]:
    world = build()
    world.__class__ = Listed
    world.kinds_asked = set()
    found, calls = read(world)
    return found, sorted(world.kinds_asked), sorted(calls)


WHOLE, KINDS, CALLS = _everything()


def keys(found: list[Finding]) -> set[tuple[str, str, Weight]]:
    return {(each.check, each.subject, each.weight) for each in found}


def only_unread_is_new(found: list[Finding], why: str, before: list[Finding] = WHOLE) -> None:
    known = keys(before)
    new = [each for each in found if (each.check, each.subject, each.weight) not in known]
    assert new, "nothing says that it was refused"
    assert {(each.check, each.weight) for each in new} == {("unread", Weight.UNKNOWN)}, new
    assert all(why in each.evidence for each in new)


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_kind_that_may_not_be_listed_nothing_is_made(kind: str) -> None:
    world = build()
    world.refused.add(kind)
    only_unread_is_new(read(world)[0], "403")


@pytest.mark.parametrize("call", CALLS)
def test_of_a_call_that_may_not_be_made_nothing_is_made(call: str) -> None:
    only_unread_is_new(read(build(), call)[0], "AccessDenied")


def test_of_a_managed_node_group_that_may_not_be_described_nothing_is_made() -> None:
    found, _ = read(managed(bare()), "eks:DescribeNodegroup")
    only_unread_is_new(found, "AccessDenied", surveyed(managed(bare())))


def test_a_survey_calls_what_its_rights_list_and_nothing_else() -> None:
    world = own_groups(bare())
    world.queue_attributes["Policy"] = {"Statement": []}
    behind(**{"load_balancing.cross_zone.enabled": "use_load_balancer_configuration"})(world)
    told("issue")(world)
    before_templates = own_groups(bare())
    by_configuration()(before_templates)
    short(world)
    parts = {"ImageId": "ami-1", "SecurityGroupIds": ["sg-1"], "KeyName": "ops"}
    encrypted = {"BlockDeviceMappings": [{"Ebs": {"KmsKeyId": "alias/mine"}}]}
    template(**parts, **encrypted, IamInstanceProfile={"Name": "nodes"})(world)
    world.around.cluster["accessConfig"] = {"authenticationMode": "API"}
    world.roles, world.entries = {"nodes": "shop-nodes"}, ["shop-nodes"]
    world.profiles["web"] = []
    of_ecr("ImageNotFoundException")(world)
    world.routes["a"].pop()
    asked = (read(each)[1] for each in (world, managed(bare()), before_templates))
    assert set().union(*asked) == set(READS)
