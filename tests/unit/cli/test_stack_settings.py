"""cli.stack_settings: an environment is what its stacks' settings say, every layer alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.stack_settings import Project, project_at, read_described, require
from core.ground.errors import InvalidInput
from core.ground.naming import LAYERS
from infra.spec import ROOT
from tests.unit.infra.programs import description


def settings(directory: Path, config: dict[str, Any], *layers: str) -> None:
    for layer in layers or LAYERS:
        path = directory / f"Pulumi.test-{layer}.yaml"
        path.write_text(json.dumps({"config": config}))


@pytest.fixture
def named(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(json.dumps(description()))
    settings(tmp_path, {"stillwater:spec": "cluster.yaml"})
    return tmp_path


def test_a_spec_is_the_one_every_layer_names(named: Path) -> None:
    found = read_described("test", Project(named, named))
    assert (found.spec.prefix, found.profile) == ("test-orders", None)


def test_a_spec_may_stand_in_the_settings_beside_a_profile(tmp_path: Path) -> None:
    settings(tmp_path, {"stillwater:cluster": description(), "aws:profile": "audit"})
    found = read_described("test", Project(tmp_path, tmp_path))
    assert (found.spec.prefix, found.profile) == ("test-orders", "audit")


def test_an_environment_nobody_described_is_told_what_is_missing(named: Path) -> None:
    with pytest.raises(InvalidInput, match=r"There is no environment prod: .* has those of test"):
        require("prod", Project(named, named))


def test_the_twin_is_no_environment_of_stacks(named: Path) -> None:
    with pytest.raises(InvalidInput, match=r"commands of its own: `python -m local`"):
        require("local", Project(named, named))


def test_a_layer_that_names_another_spec_is_named(named: Path) -> None:
    settings(named, {"stillwater:spec": "other.yaml"}, "kafka")
    with pytest.raises(InvalidInput, match="test-kafka name another ClusterSpec"):
        read_described("test", Project(named, named))


def test_settings_that_are_no_yaml_are_a_sentence(named: Path) -> None:
    (named / "Pulumi.test-platform.yaml").write_text("config: [")
    with pytest.raises(InvalidInput, match=r"Pulumi.test-platform.yaml cannot be read as YAML"):
        read_described("test", Project(named, named))


def test_what_stands_already_is_read_even_if_it_would_be_refused_today(tmp_path: Path) -> None:
    raw = description(timings={"pod_grace_seconds": 100})
    settings(tmp_path, {"stillwater:cluster": raw})
    assert read_described("test", Project(tmp_path, tmp_path)).spec.timings.pod_grace_seconds == 100


@pytest.mark.parametrize("environment", ["", "../x", "orders.yaml", "a b"])
def test_a_name_that_no_environment_can_have_is_told_as_that(named: Path, environment: str) -> None:
    with pytest.raises(InvalidInput, match="letters, digits and hyphens") as caught:
        require(environment, Project(named, named))
    assert "stillwater init" not in str(caught.value)


def test_a_name_that_is_nearly_one_is_told_which() -> None:
    with pytest.raises(InvalidInput, match="Did you mean example") as caught:
        require("exmaple", project_at(ROOT))
    assert "`stillwater init DIRECTORY --environment exmaple`" in str(caught.value)
