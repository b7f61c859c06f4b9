"""`stillwater check`: what is wrong, why and the remedy, on one line each, and exit code 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from core.ground.errors import InvalidInput
from tests.unit.infra.programs import BROKER, CONTROLLER, ZONES, description

EXAMPLE = Path(__file__).parents[3] / "stacks" / "config" / "clusters" / "example.yaml"


def check(tmp_path: Path, **changed: Any) -> Result:
    path = tmp_path / "cluster.yaml"
    path.write_text(json.dumps(description(**changed)))
    return CliRunner().invoke(app, ["check", str(path)])


def test_a_spec_that_agrees_is_said_to(tmp_path: Path) -> None:
    done = check(tmp_path)
    assert done.exit_code == 0
    assert "test-orders is consistent." in done.stdout


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


def test_an_instance_type_nobody_knows_is_a_warning(tmp_path: Path) -> None:
    done = check(tmp_path, pools=[CONTROLLER, {**BROKER, "instance_type": "r99g.large"}])
    assert done.exit_code == 0
    assert "r99g.large of pool broker is not in this release's table" in done.stderr
    assert "consistent" in done.stdout


def test_a_kubernetes_newer_than_this_release_is_a_warning(tmp_path: Path) -> None:
    proxy = {"kube-proxy": "v1.37.1-eksbuild.2"}
    done = check(tmp_path, kubernetes={"version": "1.37", "addon_versions": proxy})
    assert done.exit_code == 0
    assert "1.37 is newer than" in done.stderr


def test_what_may_be_regretted_is_a_warning(tmp_path: Path) -> None:
    done = check(tmp_path)
    assert done.exit_code == 0
    assert done.stderr.count("\n") == 1
    assert "pool controller: it has controllers in all of availability_zones" in done.stderr
    pinned = check(tmp_path, pools=[{**CONTROLLER, "zones": ZONES}, BROKER])
    assert pinned.stderr == ""


def test_the_example_has_nothing_to_be_regretted() -> None:
    done = CliRunner().invoke(app, ["check", str(EXAMPLE)])
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize("content", [b"name: [", b"- a list", b"\xff\xfe"])
def test_a_file_that_is_no_spec_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cluster.yaml").write_bytes(content)
    done = CliRunner().invoke(app, ["check", str(tmp_path / "cluster.yaml")])
    assert isinstance(done.exception, InvalidInput)
    assert len(done.exception.problems) == 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"pools": [CONTROLLER, {**BROKER, "instance_type": "r99g.large"}]}, "r99g.large"),
        ({"kubernetes": {"system_instance_type": "m7ii.large"}}, "that is in it is m7i.large"),
        ({"node_provisioner": "karpenter"}, "drained before its replacement is there"),
        ({"node_provisioner": "karpenter"}, "nothing looks at in-sync replicas"),
        ({"load_balancer": {"client_cidrs": ["172.20.8.0/24"]}}, "overlaps 172.20.0.0/16"),
    ],
)
def test_what_is_doubted_is_refused_when_that_is_asked(
    tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    lenient = check(tmp_path, **changed)
    assert (lenient.exit_code, words in lenient.stderr) == (0, True)
    strict = CliRunner().invoke(app, ["check", "--strict", str(tmp_path / "cluster.yaml")])
    assert isinstance(strict.exception, InvalidInput)
    assert words in str(strict.exception)


def test_what_a_running_cluster_could_not_follow_is_refused_with_its_place(tmp_path: Path) -> None:
    running, wanted = tmp_path / "running.yaml", tmp_path / "wanted.yaml"
    running.write_text(EXAMPLE.read_text())
    wanted.write_text(EXAMPLE.read_text().replace("size_gib: 500", "size_gib: 400"))
    asked = ["check", str(wanted), "--against", str(running)]
    done = CliRunner().invoke(app, asked)
    assert isinstance(done.exception, InvalidInput)
    (problem,) = done.exception.problems
    assert "volume 0 of pool broker has 500 GiB and would have 400" in problem
    assert problem.startswith(f"{wanted}:")
    wanted.write_text(EXAMPLE.read_text().replace("size_gib: 500", "size_gib: 600"))
    grown = CliRunner().invoke(app, asked)
    assert (grown.exit_code, grown.stderr) == (0, "")


def test_what_somebody_would_feel_of_a_change_is_a_warning(tmp_path: Path) -> None:
    running, wanted = tmp_path / "running.yaml", tmp_path / "wanted.yaml"
    running.write_text(EXAMPLE.read_text())
    host = "advertised_host: kafka.orders.internal"
    wanted.write_text(EXAMPLE.read_text().replace(host, "advertised_host: k.orders.internal"))
    done = CliRunner().invoke(app, ["check", str(wanted), "--against", str(running)])
    assert done.exit_code == 0
    assert "was kafka.orders.internal and is k.orders.internal" in done.stderr


@pytest.mark.parametrize("region", ["eu-west-1", "ap-southeast-1"])
def test_another_region_is_checked_like_the_first(tmp_path: Path, region: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(EXAMPLE.read_text().replace("us-east-1", region))
    done = CliRunner().invoke(app, ["check", "--strict", str(path)])
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
    path = tmp_path / "cluster.yaml"
    path.write_text(json.dumps(description(**changed)))
    done = CliRunner().invoke(app, ["check", str(path), "--json", *strict])
    said = json.loads(done.stdout)
    assert (done.exit_code, said["consistent"]) == (code, consistent)
    assert bool(said["problems"]) is not consistent
    assert bool(said["findings"]) is consistent
    assert bool(said["rights"]) is consistent


def test_an_environment_that_is_nowhere_is_an_object_too(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["check", "nowhere", "--json"])
    said = json.loads(done.stdout)
    assert (done.exit_code, len(said["problems"])) == (1, 1)
