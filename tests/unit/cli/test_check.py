"""`check`, `adopt plan` and commands about a described cluster: each mistake with its remedy."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli import target
from cli.main import app
from cli.target import Cluster
from core.ground.errors import InvalidInput
from tests.unit.infra.programs import BROKER, CONTROLLER, description

EXAMPLE = Path(__file__).parents[3] / "stacks" / "config" / "clusters" / "example.yaml"


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def check(tmp_path: Path, *options: str, **changed: Any) -> Result:
    path = tmp_path / "cluster.yaml"
    path.write_text(json.dumps(description(**changed)))
    return run("check", path, *options)


def test_every_problem_of_every_kind_is_listed_at_once(tmp_path: Path) -> None:
    done = check(
        tmp_path,
        pools=[CONTROLLER, {**BROKER, "instance_type": "r7g.large"}],
        timings={"pod_grace_seconds": 100},
        kubernetes={"version": "1.34"},
    )
    assert done.exit_code == 1
    assert isinstance(done.exception, InvalidInput)
    said = str(done.exception)
    for part in ("r7g.large sustains", "controlled_shutdown_seconds", "kube-proxy"):
        assert part in said


def test_the_example_has_nothing_to_be_regretted() -> None:
    done = run("check", EXAMPLE)
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize("content", [b"name: [", b"- a list", b"\xff\xfe"])
def test_a_file_of_no_spec_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cluster.yaml").write_bytes(content)
    done = run("check", tmp_path / "cluster.yaml")
    assert isinstance(done.exception, InvalidInput)
    assert len(done.exception.problems) == 1


PROXY = {"kube-proxy": "v1.37.1-eksbuild.2"}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"pools": [CONTROLLER, {**BROKER, "instance_type": "r99g.large"}]},
            "r99g.large of pool broker is not in this release's table",
        ),
        ({"kubernetes": {"version": "1.37", "addon_versions": PROXY}}, "1.37 is newer than"),
        ({"kubernetes": {"system_instance_type": "m7ii.large"}}, "that is in it is m7i.large"),
        ({"node_provisioner": "karpenter"}, "drained before its replacement is there"),
        ({"node_provisioner": "karpenter"}, "no drain waits for in-sync replicas"),
        ({"load_balancer": {"client_cidrs": ["172.20.8.0/24"]}}, "overlaps 172.20.0.0/16"),
    ],
)
def test_doubts_are_refused_when_asked(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    lenient = check(tmp_path, **changed)
    assert (lenient.exit_code, words in lenient.stderr) == (0, True)
    assert "test-orders is consistent." in lenient.stdout
    strict = check(tmp_path, "--strict", **changed)
    assert isinstance(strict.exception, InvalidInput)
    assert words in str(strict.exception)


def test_what_a_running_cluster_could_not_follow_is_refused_with_its_place(tmp_path: Path) -> None:
    running, wanted = tmp_path / "running.yaml", tmp_path / "wanted.yaml"
    running.write_text(EXAMPLE.read_text())
    wanted.write_text(EXAMPLE.read_text().replace("size_gib: 500", "size_gib: 400"))
    asked = ("check", wanted, "--against", running)
    done = run(*asked)
    assert isinstance(done.exception, InvalidInput)
    (problem,) = done.exception.problems
    assert "volume 0 of pool broker has 500 GiB and would have 400" in problem
    assert problem.startswith(f"{wanted}:")
    wanted.write_text(EXAMPLE.read_text().replace("size_gib: 500", "size_gib: 600"))
    grown = run(*asked)
    assert (grown.exit_code, grown.stderr) == (0, "")


def test_what_somebody_would_feel_of_a_change_is_a_warning(tmp_path: Path) -> None:
    running, wanted = tmp_path / "running.yaml", tmp_path / "wanted.yaml"
    running.write_text(EXAMPLE.read_text())
    host = "advertised_host: kafka.orders.internal"
    wanted.write_text(EXAMPLE.read_text().replace(host, "advertised_host: k.orders.internal"))
    done = run("check", wanted, "--against", running)
    assert done.exit_code == 0
    assert "was kafka.orders.internal and is k.orders.internal" in done.stderr


@pytest.mark.parametrize("region", ["eu-west-1", "ap-southeast-1"])
def test_another_region_is_checked_like_the_first(tmp_path: Path, region: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(EXAMPLE.read_text().replace("us-east-1", region))
    done = run("check", "--strict", path)
    assert (done.exit_code, done.exception) == (0, None)


@pytest.mark.parametrize(
    ("changed", "strict", "code", "consistent"),
    [
        ({}, [], 0, True),
        ({}, ["--strict"], 1, True),
        ({"timings": {"pod_grace_seconds": 100}}, [], 1, False),
    ],
    ids=["doubtful", "strict", "wrong"],
)
def test_a_program_is_told_the_same_as_one_object(
    tmp_path: Path, changed: dict[str, Any], strict: list[str], code: int, *, consistent: bool
) -> None:
    done = check(tmp_path, "--json", *strict, **changed)
    said = json.loads(done.stdout)
    assert (done.exit_code, said["consistent"]) == (code, consistent)
    assert bool(said["problems"]) is not consistent
    assert bool(said["findings"]) is consistent
    assert bool(said["rights"]) is consistent


def test_an_environment_that_is_nowhere_is_an_object_too() -> None:
    done = run("check", "nowhere", "--json")
    said = json.loads(done.stdout)
    assert (done.exit_code, len(said["problems"])) == (1, 1)


DESCRIPTION = """\
adopt:
  eks_cluster: shop
  region: eu-north-1
  kafkas:
    - {namespace: shop-kafka, name: orders, bootstrap: "orders:9093", credentials_secret: eyes}
  scaling_groups: [kafka-a]
"""


def planned(path: Path, text: str) -> Result:
    path.write_text(text)
    return run("adopt", "plan", path)


def test_a_plan_says_what_is_added_and_how_to_leave(tmp_path: Path) -> None:
    done = planned(tmp_path / "shop.yaml", DESCRIPTION)
    assert done.exit_code == 0
    assert "from survey to watch. Nothing of theirs is written" in done.stdout
    assert "--- survey\n+++ watch\n+ DynamoDB table shop-orders-incidents: " in done.stdout
    assert "\n  Auto Scaling group kafka-a: as it is\n" in done.stdout
    assert "To leave it again, delete what was added" in done.stdout
    assert "`pulumi up` of a stack <name>-operations makes it." in done.stdout


def test_at_the_last_level_nothing_is_left_to_do(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    filled = {
        "level": "act",
        "drainer": "none",
        "pool_label": "pool",
        "subnets": "[subnet-0123456789abcdef0]",
        "security_groups": "[sg-0123456789abcdef0]",
    }
    added = "".join(f"  {key}: {value}\n" for key, value in filled.items())
    done = planned(path, DESCRIPTION.replace(", credentials_secret: eyes", "") + added)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.replace("\n", " ").strip() == f"{path}: shop is at act, the last level."


def test_a_mistake_is_a_sentence_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    done = planned(path, DESCRIPTION.replace("eu-north-1", "Stockholm"))
    assert done.exit_code == 2
    assert f"{path}:3:" in done.stderr.replace("\n", "")
    assert "region is 'Stockholm'" in done.stderr


def test_a_group_in_two_descriptions_is_refused(tmp_path: Path) -> None:
    for name in ("shop", "lab"):
        (tmp_path / f"{name}.yaml").write_text(DESCRIPTION.replace("orders", name))
    done = run("adopt", "plan", tmp_path / "shop.yaml", tmp_path / "lab.yaml")
    assert done.exit_code == 2
    assert "Auto Scaling group kafka-a is in" in done.stderr


ONE = """
adopt:
  eks_cluster: shop
  region: eu-north-1
  kafkas:
    - {namespace: shop-kafka, name: orders}
  node_pools: [kafka]
"""
SECOND = "    - {namespace: lab, name: trial, called: lab-trial}\n"
TWO = ONE.replace("  node_pools", f"{SECOND}  node_pools")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    path = tmp_path / "shop.yaml"
    path.write_text(ONE)
    return path


def test_the_one_kafka_of_a_description_needs_no_name(shop: Path) -> None:
    desk = Cluster.named(str(shop))
    assert (desk.table, desk.spec.name) == ("shop-orders-incidents", "orders")
    assert "`pulumi up` of its operations stack brings it" in str(desk.unreadable("health"))


def test_of_several_one_is_named_by_what_is_ours(shop: Path) -> None:
    shop.write_text(TWO)
    assert target.find_kafka(f"{shop}#lab-trial").name == "trial"
    for named, why in ((str(shop), "has 2 Kafkas"), (f"{shop}#other", "names no other")):
        with pytest.raises(InvalidInput) as refused:
            target.find_kafka(named)
        assert f"{why}; name one of {shop}#shop-orders, {shop}#lab-trial." in str(refused.value)


def test_what_our_stacks_alone_have_is_refused_in_a_sentence(shop: Path) -> None:
    with pytest.raises(InvalidInput, match="shop-orders is a cluster that exists"):
        _ = Cluster.named(str(shop)).own_spec


@pytest.mark.parametrize(("named", "meant"), [("prod", False), ("a/shop.yml#x", True)])
def test_a_file_is_told_from_an_environment_by_its_name(named: str, *, meant: bool) -> None:
    assert target.is_description(named) is meant
