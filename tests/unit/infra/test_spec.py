"""infra.spec: a spec is found, each problem with its place, nothing read that nobody meant."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from core.cluster import changes, parse
from core.cluster.limits import LONGEST_SUFFIX, RULE_NAME_LIMIT
from core.ground.errors import InvalidInput
from infra import spec
from infra.spec import ROOT, doubts_in, load, problems_of, read
from tests.every_case import every_case
from tests.unit.infra.any_description import descriptions
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
def test_a_file_is_read_relative_to_the_repository_or_anywhere(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(json.dumps(description()))
    assert load(Settings(spec=name), "test", tmp_path).name == "orders"
    assert load(Settings(spec=str(tmp_path / name)), "test").name == "orders"
    assert load(Settings(cluster=description()), "test").prefix == "test-orders"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (Settings(), "This stack has no ClusterSpec: set one with"),
        (Settings(spec=""), "This stack has no ClusterSpec: set one with"),
        (Settings(spec="a.yaml", cluster={}), "stillwater:spec and stillwater:cluster are both"),
        (Settings(spec="missing.yaml"), "cannot be read: No such file or directory;"),
    ],
    ids=["nothing", "empty", "both", "missing"],
)
def test_a_spec_that_cannot_be_found_is_one_sentence(settings: Settings, sentence: str) -> None:
    (problem,) = problems(settings)
    assert sentence in problem


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
def test_files_and_stacks_are_refused_alike(tmp_path: Path, changed: Mapping[str, Any]) -> None:
    raw = description(**changed)
    (tmp_path / "cluster.yaml").write_text(json.dumps(raw))
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path / "cluster.yaml")
    placed = [problem.split(": ", 1) for problem in caught.value.problems]
    assert all(str(tmp_path) in place for place, _ in placed)
    assert problems(Settings(cluster=raw), raw["environment"]) == tuple(said for _, said in placed)


EXAMPLE = (ROOT / "stacks" / "config" / "clusters" / "example.yaml").read_text()


def refusals(tmp_path: Path, content: str | bytes, name: str = "c.yaml") -> list[str]:
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path / name)
    return [problem.removeprefix(f"{tmp_path}/") for problem in caught.value.problems]


def line_of(text: str, beginning: str) -> int:
    lines = text.splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.strip().startswith(beginning))


@pytest.mark.parametrize(
    ("old", "new", "at", "words"),
    [
        ("  min_insync_replicas: 2", "  min_insync: 2", "min_insync:", "mean min_insync_replicas?"),
        ("snapshots:", "snapshot:", "snapshot:", "did you mean snapshots?"),
        ("  vpc_cidr:", "  vpcCidr:", "vpcCidr:", "did you mean vpc_cidr?"),
        ("    heap_mib: 6144", "    heap_mb: 6144", "heap_mb", "did you mean heap_mib?"),
        ("tags:", "isr_replicas: 2\ntags:", "isr_repl", "remove it or correct its name"),
        ("tags:", "system_nodes_per_zone: 2\nt:", "system_nodes_per_zone: 2", "mean kubern"),
        ("        iops: 4000", "        iops: many", "iops: many", "pools.1.volumes.0.iops is"),
        ('  start_at_utc: "03:00"', "  start_at_utc: 13:00", "start_at", "put it in quotes"),
        ('  version: "1.35"', "  version: 1.35", "version: 1.35", "put it in quotes"),
        ("  metadata_version: 4.2-IV1", "  metadata_version: 4.3", "metadata_v", "in quotes"),
        ("  metadata_version: 4.2-IV1", "  metadata_version: 4.3-IV0", "metadata_v", "newer than"),
        ("  min_insync_replicas: 2", "  min_insync_replicas: 3", "min_insync", "no broker may"),
        ("memory_request_mib: 24576", "memory_request_mib: 64000", "memory_request_mib: 6", "."),
        ("    first_node_id: 10", "    first_node_id: 2", "first_node_id: 0", "overlap"),
    ],
)  # fmt: skip
def test_a_problem_names_its_line(old: str, new: str, at: str, words: str, tmp_path: Path) -> None:
    assert old in EXAMPLE
    text = EXAMPLE.replace(old, new, 1)
    found = refusals(tmp_path, text)
    wanted = [sentence for sentence in found if words in sentence]
    assert wanted, found
    assert int(wanted[0].split(":")[1]) == line_of(text, at), wanted


def test_the_column_is_an_editors(tmp_path: Path) -> None:
    (found,) = refusals(tmp_path, EXAMPLE.replace("  vpc_cidr:", "  vpc_cdir:"))
    assert found.startswith(f"c.yaml:{line_of(EXAMPLE, 'vpc_cidr')}:3: network.vpc_cdir: there is")


IN_ZONES = "availability_zones: [us-east-1a, us-east-1b, us-east-1c]"


def test_an_item_of_a_list_has_its_own_place(tmp_path: Path) -> None:
    text = EXAMPLE.replace(IN_ZONES, IN_ZONES.replace("]", ", us-west-2a]"))
    found = refusals(tmp_path, text)
    column = text.splitlines()[line_of(text, "availability_zones:") - 1].index("us-west-2a") + 1
    assert found[0].startswith(f"c.yaml:{line_of(text, 'availability_zones:')}:{column}: ")


def test_a_merge_key_may_be_overridden(tmp_path: Path) -> None:
    text = "base: &base {a: 1, b: 2}\nother:\n  <<: *base\n  a: 3\n"
    (tmp_path / "c.yaml").write_text(text)
    assert spec.load_yaml(tmp_path / "c.yaml").content["other"] == {"a": 3, "b": 2}


TWICE = '{"name": "orders",\n "kafka": {"version": "4.2.0",\n  "version": "4.3.0"}}'
LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("first_node_id: 10", "first_node_id: 010", ":20: 010 begins with a zero, and YAML"),
        ("first_node_id: 10", "first_node_id: 1:40", "in base sixty"),
        ("first_node_id: 10", "first_node_id: !!int ten", "'ten' cannot be read as int"),
        ("first_node_id: 10", f"first_node_id: {'9' * 5000}", "has 5000 digits, and no setting"),
        ("first_node_id: 10", f"first_node_id: 0x{'f' * 99}", "no setting takes more than 18"),
        ("first_node_id: 10", "first_node_id: .inf", "it must be a finite number"),
        ("first_node_id: 10", "first_node_id: yes", "makes a truth value of this"),
        ("first_node_id: 10", "first_node_id: 1.5", "it must be a whole number"),
        ("size_gib: 20", "size_gib: true", "pools.0.volumes.0.size_gib is True: it must be a num"),
        ("ephemeral: false", "ephemeral: !!bool maybe", "'maybe' cannot be read as bool"),
        ("ephemeral: false", "ephemeral: perhaps", "it must be true or false"),
        ("name: orders", "name: !!timestamp yesterday", "cannot be read as timestamp"),
        ("name: orders", "name: !!binary b3JkZXJz", "no setting is YAML's binary"),
        ("name: orders", "name: !Ref orders", "could not determine a constructor"),
        ("name: orders", "name: no", "name is False: it must be text; put it in quotes"),
        ("name: orders", "name: 2026-01-01", "name is '2026-01-01': it must be text"),
        ("name: orders", 'name: "\\ud800"', "has half of a character in it"),
        ("name: orders", "name: \x01", "the character U+0001 may not stand in YAML"),
        ("name: orders", "name: o\x00", "the character U+0000 may not stand in YAML"),
        ("name: orders", f"name: {'x' * 5000}", "(5002 characters)"),
        (IN_ZONES, "availability_zones: !!set {us-east-1a, us-east-1b}", "setting is YAML's set"),
        ("tags:", "no: 1\ntags:", "the key no is read as a truth value, and keys are text"),
        ("tags:", "7: 1\ntags:", "the key 7 is read as a number"),
        ("tags:", "~: 1\ntags:", "the key ~ is read as nothing"),
        ("tags:", "tags:\n  2026-01-01: x", "the key 2026-01-01 is read as a date"),
        ("  team: streaming", "  team: aws:x", "AWS keeps what begins with aws: for itself"),
        ("  team: streaming", "  t🚀: x", ": tag 't🚀' has '🚀' in its key"),
        ("  team: streaming", '  "": x', "has a key of 0 characters"),
        ("tags:", "topics: [{name: t, config: {bogus.key: 1}}]\ntags:", "topic t sets bogus.key"),
        ("tags:", "topics: [{name: t, config: {retention.ms: 1.5}}]\ntags:", "text, a whole"),
    ],
)  # fmt: skip
def test_what_reads_as_something_else_is_refused_with_its_place(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    assert old in EXAMPLE
    text = EXAMPLE.replace(old, new, 1)
    found = refusals(tmp_path, text)
    assert [each for each in found if words in each], found
    assert len(found) == 1
    file, line, column, _ = found[0].split(":", 3)
    assert file == "c.yaml"
    assert line.isdecimal()
    assert column.isdecimal()
    assert "\n" not in found[0]
    assert len(found[0]) < 400


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("c.yaml", "name: [", "c.yaml:1:8: this is not valid YAML"),
        ("c.yaml", "name: orders\n\tregion: x\n", "c.yaml:2:1: this is not valid YAML"),
        ("c.yaml", "a: 1\n---\nb: 2\n", ":2:1: this is not valid YAML: found another document"),
        ("c.yaml", "name: *nobody\n", "c.yaml:1:7: this is not valid YAML"),
        ("c.yaml", "? [a, b]\n: 1\n", "is not valid YAML"),
        ("c.yaml", "at: 2026-99-99\n", "c.yaml:1:5: '2026-99-99' cannot be read as timestamp"),
        ("c.yaml", "pools: &p [*p]\n", "pools"),
        ("c.yaml", "a: " + "[" * 500 + "]" * 500, "nested deeper"),
        ("c.yaml", LAUGHS, "there is no such setting"),
        ("c.yaml", b"", "c.yaml:1:1: a description must be a mapping of settings to values, and "),
        ("c.yaml", b"# nothing\n", "this file holds nothing"),
        ("c.yaml", b"- a\n", "this file holds a list"),
        ("c.yaml", b"7\n", "this file holds a number"),
        ("c.yaml", b"name = orders\n", "this file holds text"),
        ("c.yaml", b"\x00\x00\x00", "c.yaml:1:1: this is not valid YAML"),
        ("c.yaml", EXAMPLE.encode("utf-16"), "c.yaml:1:1: the file cannot be read: it is"),
        ("c.yaml", b"name: x\nteam: str\xc4\n", "c.yaml:2:10: the file cannot be read"),
        ("c.yaml", b"apiVersion: v1\nkind: Kafka\n", "c.yaml:1:1: this is a Kubernetes resource"),
        ("c.yaml", b"adopt:\n  level: act\n", "c.yaml:1:1: this describes a cluster that exists"),
        ("c.yaml", TWICE, "c.yaml:3:3: version stands twice here, first in line 2"),
        ("c.json", TWICE, "c.json:3:3: version stands twice here, first in line 2"),
        ("c.json", '{"name": "orders",\n "x" 4}', "c.json:2:6: this is not valid JSON"),
        ("c.json", b'{"name": NaN}', "c.json:1:10: this is not valid JSON: NaN is no number"),
        ("c.json", b'{"a": -Infinity}', "-Infinity is no number"),
        ("c.json", b'{"a": ' + b"9" * 5000 + b"}", "c.json:1:7: this is not valid JSON: 9999"),
        ("c.json", b'{\n\t"name": "x",\n\t"name": "y"}', "c.json:3:2: name stands twice here"),
        ("c.JSON", b'{"name": "x",}', "c.JSON:1:14: this is not valid JSON"),
        ("c.json", b'{"name": "\\ud800"}', "half of a character"),
    ],
)  # fmt: skip
def test_what_is_no_description_is_a_sentence(
    name: str, content: str | bytes, words: str, tmp_path: Path
) -> None:
    found = refusals(tmp_path, content, name)
    assert any(words in each for each in found), found
    # A stack is told as much.
    assert not [each for each in problems(Settings(spec=name), root=tmp_path) if "\n" in each]


def test_what_is_missing_at_the_top_has_a_place_too(tmp_path: Path) -> None:
    found = refusals(tmp_path, "# of ours\n\nname: orders\n")
    assert found
    assert all(each.startswith("c.yaml:3:1: ") for each in found)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("first_node_id: 10", "first_node_id: 0xa"),
        ("first_node_id: 10", "first_node_id: +10"),
        ("first_node_id: 10", "first_node_id: 1_0"),
        ("first_node_id: 10", 'first_node_id: "10"'),
        ("size_gib: 500", "size_gib: 500.0"),
        ('start_at_utc: "03:00"', "start_at_utc: 03:00"),
        ("ephemeral: false", "ephemeral: off"),
        ("name: orders", "name: &n !!str orders"),
        ("team: streaming", "team: '010'"),
        ("team: streaming", "<<: {team: x}"),
        ("# A complete", "%YAML 1.1\n---\n# A complete"),
        ("\n", "\r\n"),
    ],
)
def test_what_means_the_same_is_taken(old: str, new: str, tmp_path: Path) -> None:
    assert old in EXAMPLE
    (tmp_path / "c.yaml").write_bytes(EXAMPLE.replace(old, new).encode("utf-8-sig"))
    spec = read(tmp_path / "c.yaml")
    assert (spec.name, spec.pools[1].first_node_id) == ("orders", 10)
    assert doubts_in(tmp_path / "c.yaml", spec) == []


@every_case(
    ("old", "new"),
    [
        ("name: orders", f"name: orders\n{'x' * 900}: 1"),
        ("vpc_cidr: 10.40.0.0/16", f"vpc_cidr: {'x' * 20_000}"),
        ("tags:", f"topics: [{{name: t, config: {{? {'x' * 900} : 1}}}}]\ntags:"),
        ("  team: streaming", f"  ? aws:{'x' * 900}\n  : y"),
    ],
    ids=["a key", "a value", "a setting of Kafka's", "a tag"],
)
def test_no_sentence_repeats_a_word_without_end(tmp_path: Path, old: str, new: str) -> None:
    found = refusals(tmp_path, EXAMPLE.replace(old, new, 1))
    assert all(len(sentence) < 700 for sentence in found), [len(each) for each in found]
    assert any("characters)" in sentence for sentence in found), [e[:300] for e in found]


@given(descriptions())
def test_a_right_description_passes(raw: Mapping[str, Any]) -> None:
    spec = parse(raw)
    assert problems_of(spec) == []
    again = parse(json.loads(spec.model_dump_json()))
    assert again == spec
    assert changes.refused_changes(again, spec) == changes.felt_changes(again, spec) == []
