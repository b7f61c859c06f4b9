"""infra.spec: where each problem stands, what stands twice, and what a key was meant to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.ground.errors import InvalidInput
from infra import spec
from infra.spec import ROOT, read

EXAMPLE = (ROOT / "stacks" / "config" / "clusters" / "example.yaml").read_text()


def refusals(tmp_path: Path, text: str, name: str = "c.yaml") -> list[str]:
    (tmp_path / name).write_text(text)
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


def test_an_item_of_a_list_has_its_own_place(tmp_path: Path) -> None:
    text = EXAMPLE.replace(
        "availability_zones: [us-east-1a, us-east-1b, us-east-1c]",
        "availability_zones: [us-east-1a, us-east-1b, us-east-1c, us-west-2a]",
    )
    found = refusals(tmp_path, text)
    column = text.splitlines()[line_of(text, "availability_zones:") - 1].index("us-west-2a") + 1
    assert found[0].startswith(f"c.yaml:{line_of(text, 'availability_zones:')}:{column}: ")


@pytest.mark.parametrize("name", ["c.yaml", "c.json"])
def test_a_key_that_stands_twice_is_refused(name: str, tmp_path: Path) -> None:
    text = '{"name": "orders",\n "kafka": {"version": "4.2.0",\n  "version": "4.3.0"}}'
    (found,) = refusals(tmp_path, text, name)
    assert found.startswith(f"{name}:3:3: version stands twice here, first in line 2")


def test_the_same_key_in_two_items_or_two_sections_is_not_twice(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(EXAMPLE)
    assert read(tmp_path / "c.yaml").name == "orders"


def test_a_merge_key_may_be_overridden(tmp_path: Path) -> None:
    text = "base: &base {a: 1, b: 2}\nother:\n  <<: *base\n  a: 3\n"
    (tmp_path / "c.yaml").write_text(text)
    assert spec.load_yaml(tmp_path / "c.yaml").content["other"] == {"a": 3, "b": 2}


LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: [", "c.yaml:1:8: this is not valid YAML"),
        ("name: orders\n\tregion: x\n", "c.yaml:2:1: this is not valid YAML"),
        ("a: 1\n---\nb: 2\n", "c.yaml:2:1: this is not valid YAML"),
        ("name: *nobody\n", "c.yaml:1:7: this is not valid YAML"),
        ("? [a, b]\n: 1\n", "is not valid YAML"),
        ("at: 2026-99-99\n", "c.yaml:1:5: '2026-99-99' cannot be read as timestamp"),
        ("pools: &p [*p]\n", "pools"),
        ("a: " + "[" * 500 + "]" * 500, "nested deeper"),
        (LAUGHS, "there is no such setting"),
    ],
    ids=["open", "tab", "two", "alias", "list key", "date", "itself", "deep", "laughs"],
)
def test_what_is_no_document_is_a_sentence_with_its_place(
    text: str, words: str, tmp_path: Path
) -> None:
    found = refusals(tmp_path, text)
    assert any(words in sentence for sentence in found), found


def test_broken_json_names_its_line_too(tmp_path: Path) -> None:
    (found,) = refusals(tmp_path, '{"name": "orders",\n "x" 4}', "c.json")
    assert found.startswith("c.json:2:6: this is not valid JSON")
