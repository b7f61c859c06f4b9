"""infra.spec: what YAML or JSON reads as something that nobody meant, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.ground.errors import InvalidInput
from infra.spec import ROOT, doubts_in, read
from tests.every_case import every_case

EXAMPLE = (ROOT / "stacks" / "config" / "clusters" / "example.yaml").read_text()
ZONES = "availability_zones: [us-east-1a, us-east-1b, us-east-1c]"


def refusals(path: Path, content: bytes) -> list[str]:
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        read(path)
    return [problem.removeprefix(f"{path.parent}/") for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("first_node_id: 10", "first_node_id: 010", ":20: 010 begins with a zero, so that YAML"),
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
        (ZONES, "availability_zones: !!set {us-east-1a, us-east-1b}", "no setting is YAML's set"),
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
    found = refusals(tmp_path / "c.yaml", text.encode("utf-8", "surrogatepass"))
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
        ("c.yaml", b"", "c.yaml:1:1: a ClusterSpec must be a mapping of settings to values, and "),
        ("c.yaml", b"# nothing\n", "this file holds nothing"),
        ("c.yaml", b"- a\n", "this file holds a list"),
        ("c.yaml", b"7\n", "this file holds a number"),
        ("c.yaml", b"name = orders\n", "this file holds text"),
        ("c.yaml", b"\x00\x00\x00", "c.yaml:1:1: this is not valid YAML"),
        ("c.yaml", EXAMPLE.encode("utf-16"), "c.yaml:1:1: the ClusterSpec cannot be read: it is"),
        ("c.yaml", b"name: x\nteam: str\xc4\n", "c.yaml:2:10: the ClusterSpec cannot be read"),
        ("c.yaml", b"apiVersion: v1\nkind: Kafka\n", "c.yaml:1:1: this is a Kubernetes resource"),
        ("c.yaml", b"adopt:\n  level: act\n", "c.yaml:1:1: this describes a cluster that exists"),
        ("c.json", b'{"name": NaN}', "c.json:1:10: this is not valid JSON: NaN is no number"),
        ("c.json", b'{"a": -Infinity}', "-Infinity is no number"),
        ("c.json", b'{"a": ' + b"9" * 5000 + b"}", "c.json:1:7: this is not valid JSON: 9999"),
        ("c.json", b'{\n\t"name": "x",\n\t"name": "y"}', "c.json:3:2: name stands twice here"),
        ("c.JSON", b'{"name": "x",}', "c.JSON:1:14: this is not valid JSON"),
        ("c.json", b'{"name": "\\ud800"}', "half of a character"),
    ],
)  # fmt: skip
def test_what_is_no_description_is_a_sentence(
    name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    found = refusals(tmp_path / name, content)
    assert any(words in each for each in found), found


def test_what_is_missing_at_the_top_has_a_place_too(tmp_path: Path) -> None:
    found = refusals(tmp_path / "c.yaml", b"# of ours\n\nname: orders\n")
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
    found = refusals(tmp_path / "c.yaml", EXAMPLE.replace(old, new, 1).encode())
    assert all(len(sentence) < 700 for sentence in found), [len(each) for each in found]
    assert any("characters)" in sentence for sentence in found), [e[:300] for e in found]
