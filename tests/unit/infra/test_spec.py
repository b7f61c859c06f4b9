"""infra.spec: a spec is found, or the user is told in a sentence what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.cluster.limits import LONGEST_SUFFIX, RULE_NAME_LIMIT
from core.ground.errors import InvalidInput
from infra.spec import ROOT, load, read
from tests.unit.infra.programs import BROKER, CONTROLLER, description, run_layers


class Settings:
    """A stack's configuration as pulumi.Config gives it."""

    def __init__(self, **values: Any) -> None:
        self._values: Mapping[str, Any] = values

    def get(self, key: str) -> str | None:
        value = self._values.get(key)
        return None if value is None else str(value)

    def get_object(self, key: str) -> object:
        return self._values.get(key)


def problems(settings: Settings, environment: str = "test", root: Path = ROOT) -> tuple[str, ...]:
    with pytest.raises(InvalidInput) as caught:
        load(settings, environment, root)
    return caught.value.problems


@pytest.mark.parametrize("name", ["cluster.yaml", "cluster.json"])
def test_a_file_is_read_relative_to_the_repository(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(json.dumps(description()))
    assert load(Settings(spec=name), "test", tmp_path).name == "orders"


def test_a_file_may_lie_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(json.dumps(description()))
    assert load(Settings(spec=str(path)), "test").name == "orders"


def test_a_spec_may_be_written_in_the_stacks_own_configuration() -> None:
    assert load(Settings(cluster=description()), "test").prefix == "test-orders"


def test_the_example_is_valid() -> None:
    example = load(Settings(spec="stacks/config/clusters/example.yaml"), "example")
    assert len(example.availability_zones) == 3


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (Settings(), "This stack has no ClusterSpec: set one with"),
        (Settings(spec=""), "This stack has no ClusterSpec: set one with"),
        (Settings(spec="a.yaml", cluster={}), "stillwater:spec and stillwater:cluster are both"),
        (Settings(spec="missing.yaml"), "cannot be read: No such file or directory."),
    ],
    ids=["nothing", "empty", "both", "missing"],
)
def test_a_spec_that_cannot_be_found_is_one_sentence(settings: Settings, sentence: str) -> None:
    (problem,) = problems(settings)
    assert sentence in problem


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"name: [", "is not valid YAML"),
        (b"- just\n- a list\n", "must be a mapping of settings to values, and"),
        (b"", "must be a mapping of settings to values, and"),
        (b"\xff\xfe\x00", "cannot be read: it is not UTF-8 text;"),
    ],
    ids=["broken", "list", "empty", "binary"],
)
def test_a_file_that_is_no_spec_is_one_sentence(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    (tmp_path / "cluster.yaml").write_bytes(content)
    (problem,) = problems(Settings(spec="cluster.yaml"), root=tmp_path)
    assert sentence in problem
    assert "\n" not in problem


def test_every_problem_of_a_spec_is_listed() -> None:
    found = problems(Settings(cluster=description(region="nowhere", surprise=1)))
    assert len(found) == 2


def test_every_violated_timing_is_listed() -> None:
    timings = {"pod_grace_seconds": 100, "queue_visibility_timeout_seconds": 30}
    found = problems(Settings(cluster=description(timings=timings)))
    assert any("controlled_shutdown_seconds (300 s)" in sentence for sentence in found)
    assert any("queue_visibility_timeout_seconds (30 s)" in sentence for sentence in found)


def test_a_stack_of_another_environment_is_refused() -> None:
    (problem,) = problems(Settings(cluster=description()), environment="prod")
    assert "environment is 'test' but this stack is named for 'prod'" in problem


def test_names_too_long_for_aws_are_refused_before_aws_does() -> None:
    raw = description(name="a" * 32, environment="b" * 32)
    (problem,) = problems(Settings(cluster=raw), environment="b" * 32)
    assert "65 characters long" in problem


# What AWS refuses, by the kind that is named: the limit of a name in characters.
NAME_LIMITS = {
    "cloudwatch/eventRule:EventRule": 64,
    "iam/role:Role": 64,
    "iam/instanceProfile:InstanceProfile": 128,
    "lambda/function:Function": 64,
    "sqs/queue:Queue": 80,
    "lb/loadBalancer:LoadBalancer": 32,
    "lb/targetGroup:TargetGroup": 32,
    "dynamodb/table:Table": 255,
    "autoscaling/group:Group": 255,
    "eks/cluster:Cluster": 100,
    "cloudwatch/metricAlarm:MetricAlarm": 255,
}


@pytest.mark.parametrize("provisioner", ["asg", "karpenter"])
def test_the_longest_prefix_we_accept_makes_no_name_aws_refuses(provisioner: str) -> None:
    room = RULE_NAME_LIMIT - len(LONGEST_SUFFIX[provisioner])
    environment, name = "e" * (room // 2), "n" * (room - room // 2 - 1)
    raw = description(environment=environment, name=name, node_provisioner=provisioner)
    longest: dict[str, int] = {}
    for recorded in run_layers(raw).values():
        for resource in recorded.resources:
            kind = resource.type.partition(":")[2]
            if kind in NAME_LIMITS and "name" in resource.inputs:
                length = len(resource.inputs["name"])
                assert length <= NAME_LIMITS[kind], (kind, resource.inputs["name"])
                longest[kind] = max(length, longest.get(kind, 0))
    # Exactly: one character more would be one too many.
    assert longest["cloudwatch/eventRule:EventRule"] == RULE_NAME_LIMIT


# Every kind of problem a spec can have before an account is asked.
REFUSED = {
    "shape": {"surprise": 1},
    "timing": {"timings": {"pod_grace_seconds": 100}},
    "limit": {"pools": [CONTROLLER, {**BROKER, "instance_type": "r7g.large"}]},
    "name": {"environment": "b" * 32, "name": "a" * 32},
    "zone": {"availability_zones": ["us-east-1a", "us-east-1b", "us-east-1k"]},
    "add-on": {"kubernetes": {"addon_versions": {"kube-poxy": "v1"}}},
    "kubernetes": {"kubernetes": {"version": "1.34"}},
}


@pytest.mark.parametrize("changed", REFUSED.values(), ids=REFUSED)
def test_a_file_and_a_stack_are_refused_for_the_same_reasons(
    tmp_path: Path, changed: Mapping[str, Any]
) -> None:
    raw = description(**changed)
    (tmp_path / "cluster.yaml").write_text(json.dumps(raw))
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path / "cluster.yaml")
    placed = [problem.split(": ", 1) for problem in caught.value.problems]
    assert all(str(tmp_path) in place for place, _ in placed)
    assert problems(Settings(cluster=raw), raw["environment"]) == tuple(said for _, said in placed)
