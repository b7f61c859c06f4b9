"""`stillwater check`: what is wrong, why and the remedy, on one line each, and exit code 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from core.errors import InvalidInput
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


def test_what_may_be_regretted_is_a_warning(tmp_path: Path) -> None:
    done = check(tmp_path)
    assert done.exit_code == 0
    assert done.stderr.count("\n") == 1
    assert "Pool controller has controllers in all of availability_zones" in done.stderr
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
