"""The description of any cluster: `adopt plan` takes it at every level, or it says why not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.survey import command, draft
from core.cluster import adoption
from core.ground.errors import InvalidInput
from tests.every_case import every_case
from tests.unit.cli.survey import machines
from tests.unit.cli.survey.around import CLUSTER
from tests.unit.cli.survey.changes import drains_by
from tests.unit.cli.survey.changes_of_machines import karpenters, started_by
from tests.unit.cli.survey.descriptions import ARN, at, described
from tests.unit.cli.survey.others import kafka_spec, own, two_kafkas
from tests.unit.cli.survey.worlds import Change, World

ZONE = "topology.kubernetes.io/zone"


def in_region(zone: str) -> Change:
    def made(world: World) -> None:
        for each in world.kinds["nodes"]:
            each["metadata"]["labels"][ZONE] = zone

    return made


def renamed_group(name: str) -> Change:
    """Give the first group another name."""

    def made(world: World) -> None:
        old = min(world.groups)
        world.groups[name] = {**world.groups.pop(old), "AutoScalingGroupName": name}
        world.hooks[name] = world.hooks.pop(old)
        world.member_of = {i: name if g == old else g for i, g in world.member_of.items()}

    return made


def served_at(servers: str, **listener: Any) -> Change:
    def made(world: World) -> None:
        kafka_spec(world)["listeners"] = [{"name": "it", "port": 9094, "tls": True, **listener}]
        served = {"name": "it", "bootstrapServers": servers}
        world.only("kafkas")["status"] = {"listeners": [served]}

    return made


def named(name: str) -> Change:
    def made(world: World) -> None:
        world.only("kafkas")["metadata"]["name"] = name
        for each in world.kinds["pods"]:
            each["metadata"]["labels"]["strimzi.io/cluster"] = name

    return made


REFUSED: dict[str, tuple[Callable[[], World], Change, str]] = {
    "machines of nobody": (own, started_by(), "names no machines"),
    "CAST AI's machines": (own, started_by("cast:cluster-id"), "names no machines"),
    "GovCloud": (own, in_region("us-gov-west-1a"), "AWS GovCloud"),
    "China": (own, in_region("cn-north-1b"), "the China partition"),
    "the Sovereign Cloud": (own, in_region("eusc-de-east-1a"), "the European Sovereign Cloud"),
    "a group by a pattern": (own, renamed_group("kafka-*"), "would read as a pattern"),
    "groups that cannot be read": (own, lambda w: w.groups.clear(), "names no machines"),
}


@every_case(("build", "change", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_why_it_cannot_be_used_stands_in_it(
    build: Callable[[], World], change: Change, why: str
) -> None:
    world = build()
    change(world)
    section, text = described(world)
    with pytest.raises(InvalidInput, match=why):
        adoption.parse({"adopt": section})
    said = draft.refusals(text)
    assert why in " ".join(said)
    assert all(f"# It cannot be used as it is: {each}\n" in text for each in said)


NAMED: dict[str, tuple[Callable[[], World], Change, str, str | None]] = {
    "a name that fits": (own, named("orders"), ARN, None),
    "a name with hyphens": (own, named("orders-eu"), ARN, None),
    "an EKS cluster in capitals": (
        own,
        named("orders"),
        ARN.replace("/shop", "/Shop_Prod"),
        "shop-prod-orders",
    ),
}


@every_case(("build", "change", "arn", "called"), NAMED.values(), ids=NAMED.keys())
def test_what_is_ours_has_a_name_that_aws_takes(
    build: Callable[[], World], change: Change, arn: str, called: str | None
) -> None:
    world = build()
    change(world)
    section, _ = described(world, arn)
    (kafka,) = section["kafkas"]
    assert kafka.get("called") == called
    adoption.parse(at("watch", section))


@pytest.mark.parametrize("name", ["payments-of-all-the-shops-in-europe", "1", "-"])
def test_a_name_that_does_not_fit_is_made_short_and_stays_the_same(name: str) -> None:
    world = own()
    named(name if name != "-" else "x" * 47)(world)
    long = ARN.replace("/shop", "/prod-platform-data-cluster")
    section, _ = described(world, long)
    again, _ = described(world, long)
    assert section == again
    adoption.parse(at("watch", section))


def test_two_kafkas_of_one_name_are_called_differently() -> None:
    section, _ = described(two_kafkas())
    called = [each.get("called") for each in section["kafkas"]]
    assert called == [None, "shop-lab-orders"]


@pytest.mark.parametrize(
    ("servers", "written"),
    [
        ("[2600:1f18::1]:31000", True),
        ("2600:1f18::1:31000", False),
        ("10.0.0.1:31000,10.0.0.2:31000", True),
    ],
)
def test_an_address_of_version_six_is_taken_in_brackets(servers: str, *, written: bool) -> None:
    world = own()
    served_at(servers)(world)
    section, text = described(world)
    adoption.parse(at("watch", section))
    assert ("bootstrap" in section["kafkas"][0]) is written
    assert (f"its listener at {servers} is not HOST:PORT" in text) is not written


def test_a_certificate_of_ones_own_is_noted() -> None:
    world = own()
    served_at("kafka.example.com:9094", configuration={"brokerCertChainAndKey": {}})(world)
    assert "name the Secret of its authority in authority_secret" in described(world)[1]


def test_whoever_hears_of_hooks_is_no_reason_to_drain_without_a_handler() -> None:
    world = own()
    drains_by("keikoproj/lifecycle-manager:v0.6.0")(world)
    section, text = described(world)
    assert "drainer" not in section
    assert "# drainer: ops/it drains what waits in a hook" in text


def test_hooks_that_are_called_as_ours_are_noted() -> None:
    world = own()
    name = min(world.groups)
    world.hooks[name] = [machines.hook(LifecycleHookName="drain")]
    said = described(world)[1]
    assert f"# Auto Scaling group {name} has a hook drain of its own" in said


@pytest.mark.parametrize(
    "tag", ["kubernetes.io/cluster/shop", "eks:eks-cluster-name", "aws:eks:cluster-name"]
)
def test_the_cluster_is_known_by_its_machines_where_they_are_in_no_group(tag: str) -> None:
    world = karpenters()()
    for each in world.instances.values():
        each["Tags"] = [{"Key": tag, "Value": "shop" if tag.endswith("name") else "owned"}]
    assert described(world, "an-alias")[0]["eks_cluster"] == "shop"


def test_what_is_unusable_is_said_beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = own()
    renamed_group("kafka-*")(world)
    monkeypatch.setattr(command, "connect", lambda *_: (ARN, world))
    monkeypatch.setattr(
        "boto3.Session.client", lambda _, service, **__: world.client(service, None)
    )
    path = tmp_path / "shop.yaml"
    done = CliRunner().invoke(
        app, ["survey", "--kubeconfig", "x", "--region", "eu-north-1", "--adopt", str(path)]
    )
    assert "kafka-*, which IAM would read as a pattern" in done.output.replace("\n", " ")


def test_check_takes_a_description_too(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(described(own())[1])
    done = CliRunner().invoke(app, ["check", str(path)])
    assert (done.exit_code, done.stdout) == (0, f"{path}: shop is consistent.\n")
    path.write_text(path.read_text().replace("level: survey", "level: own"))
    refused = CliRunner().invoke(app, ["check", str(path)])
    assert refused.exit_code == 1
    assert "level is 'own'" in str(refused.exception)


def test_a_listener_that_a_network_policy_fences_is_noted() -> None:
    world = own()
    served_at("kafka.example.com:9094", networkPolicyPeers=[{"podSelector": {}}])(world)
    assert "add the addresses of the functions' subnets" in described(world)[1]


def known_by(mode: str | None) -> Change:
    said = {} if mode is None else {"accessConfig": {"authenticationMode": mode}}
    return lambda world: world.around.cluster.update(said)


def strimzi(version: str) -> Change:
    return lambda world: world.versions.update({"core.strimzi.io": version})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (known_by("CONFIG_MAP"), "authenticationMode=API_AND_CONFIG_MAP"),
        (known_by("API_AND_CONFIG_MAP"), ""),
        (known_by("API"), ""),
        (known_by(None), ""),
        (strimzi("v1beta2"), "upgrade Strimzi to 0.49"),
        (strimzi("v1"), ""),
    ],
    ids=["aws-auth alone", "both", "access entries", "unsaid", "Strimzi 0.45", "Strimzi 1.2"],
)
def test_what_the_functions_need_is_said_before_they_are_made(change: Change, words: str) -> None:
    world = own()
    change(world)
    text = draft.draft(command.read(world, world.client, None, CLUSTER), CLUSTER)
    told = ("API_AND_CONFIG_MAP", "upgrade Strimzi")
    assert any(each in text for each in told) == bool(words)
    assert words in text
