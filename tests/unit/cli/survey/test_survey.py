"""A survey as its caller gets it: text, one object for programs, one sentence for what is wrong."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from cli import adopt
from cli.survey import command, draft
from cli.terminal import show_findings
from core.checks.finding import CLEAR, NOT_READ
from core.ground.errors import StillwaterError
from tests.unit.cli.survey import worlds
from tests.unit.cli.survey.machines import own_groups
from tests.unit.cli.survey.manifests import workload
from tests.unit.cli.survey.others import kafka_spec, own
from tests.unit.cli.survey.worlds import World, bare


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


def test_a_kafka_of_others_alone_is_judged_and_not_described(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.add("statefulsets", workload("kafka", "legacy", "apache/kafka:4.1.0"))
    done = examined(monkeypatch, world)
    assert done.kafkas == ("StatefulSet legacy/kafka",)
    assert done.exit_code == NOT_READ
    assert "Strimzi's Kafkas alone" in done.undescribed


def test_a_page_for_whoever_decides_says_first_what_may_happen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = own_groups(bare())
    world.rules.clear()
    world.only("kafkas")["spec"]["kafka"]["listeners"] = [{"name": "<b>plain</b>"}]
    command.write_files(examined(monkeypatch, world), tmp_path / "survey.html", None)
    body = (tmp_path / "survey.html").read_text()
    assert body.index("Not safely") < body.index("never hears that nodes") < body.index("plain")
    assert "&lt;b&gt;plain" in body
    assert "{{" not in body


def test_a_page_that_cannot_be_written_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done = examined(monkeypatch, own_groups(bare()))
    with pytest.raises(StillwaterError, match="cannot be written: Is a directory; name a file"):
        command.write_files(done, tmp_path, None)


def test_the_description_it_writes_is_what_adopt_plan_reads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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


def test_the_account_of_an_operator_that_stands_elsewhere_is_noted_for_the_gate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = own_groups(bare())
    done = examined(monkeypatch, world)
    assert "#    - system:serviceaccount:ops:default\n" in done.description
    noted = done.description.replace("#  ", "  ").replace("image: ...", "image: gate:1.4")
    gate = yaml.safe_load(noted)["adopt"]["eviction_gate"]
    assert gate == {"image": "gate:1.4", "operators": ["system:serviceaccount:ops:default"]}
    (operator,) = (
        each
        for each in world.kinds["deployments"]
        if each["metadata"]["name"] == "strimzi-cluster-operator"
    )
    operator["metadata"]["namespace"] = "shop-kafka"
    operator["spec"]["template"]["spec"]["serviceAccountName"] = "strimzi-cluster-operator"
    assert "eviction_gate" not in examined(monkeypatch, world).description


def test_where_no_termination_handler_was_found_the_description_drains_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = own_groups(bare())
    done = examined(monkeypatch, world)
    assert "drainer" not in done.description
    world.kinds["deployments"] = [
        each for each in world.kinds["deployments"] if each["metadata"]["name"] != "nth"
    ]
    done = examined(monkeypatch, world)
    assert "drainer: none" in done.description


def test_what_was_not_read_is_left_out_of_the_description_and_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = own_groups(bare())
    done = examined(monkeypatch, world)
    assert "# eks_cluster could not be read: fill it in." in done.description
    assert "eks_cluster:" not in done.description


def test_a_cluster_that_another_stillwater_manages_is_not_described(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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
def test_only_a_way_in_that_the_functions_can_go_is_described(
    listener: dict[str, Any], said: str
) -> None:
    world = own()
    inside = listener.get("type") == "internal"
    servers = "orders-kafka-bootstrap.shop-kafka.svc:9094" if inside else "kafka.example.com:9094"
    kafka_spec(world)["listeners"] = [{"name": "it", "port": 9094, **listener}]
    served = {"name": "it", "bootstrapServers": servers}
    world.only("kafkas")["status"] = {"listeners": [served]}
    found = described(world)
    named = "its listener it (custom) is reached" if "authentication" in listener else "no listener"
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
    for each in world.kinds["nodes"]:
        each["metadata"]["labels"]["topology.kubernetes.io/zone"] = zone
    assert f"region: {re.match('[a-z]+-[a-z]+-[0-9]', zone)[0]}\n" in described(world)  # type: ignore[index]


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
    world, path = own(), "/111122223333/Drains"
    queue_of(world)["value"] = f"https://{host}{path}"
    assert f"queue_url: https://sqs.{region}.amazonaws.com{path}\n" in described(world)


def test_what_is_no_queue_of_awss_is_named_and_left_out() -> None:
    world = own()
    queue_of(world)["value"] = "https://sqs.example/111122223333/Drains"
    said = described(world)
    assert "\n  queue_url:" not in said
    assert "# queue_url: which of https://sqs.example/111122223333/Drains it is" in said


def queue_of(world: World) -> dict[str, Any]:
    """Return where the termination handler is told its queue."""
    (found,) = (
        variable
        for item in world.kinds["deployments"]
        for container in item["spec"]["template"]["spec"]["containers"]
        for variable in container.get("env") or ()
        if variable["name"] == "QUEUE_URL"
    )
    return found  # type: ignore[no-any-return]
