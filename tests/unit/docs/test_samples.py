"""Samples on pages: a survey, announcements, specs, figures and faults."""

import functools
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from cli.survey import command, page
from cli.terminal import show_findings
from core.cluster import ClusterSpec
from core.cluster import parse as parse_spec
from core.cluster.kafka import Kafka
from core.cost import pricing
from core.events import Interruption, Kind, VolumeNotice, parse
from core.ground import instances
from core.incidents.decide import why_unanswered
from infra.spec import problems_of
from infra.versions import STRIMZI_CHART_VERSION
from tests.every_case import every_case
from tests.unit.cli.survey.machines import own_groups
from tests.unit.cli.survey.test_survey import examined
from tests.unit.cli.survey.worlds import World, bare
from tests.unit.docs import markdown

PAGE = markdown.REPOSITORY / "docs" / "how-to" / "simulate-an-interruption.md"
OBJECTS: list[Any] = [json.loads(b.body) for b in markdown.blocks(PAGE) if b.language == "json"]


def _sample(**changes: Any) -> Any:
    (event,) = [each for each in OBJECTS if "detail-type" in each]
    (found,) = parse(json.dumps(event | {"detail": event["detail"] | changes}))
    return found


def test_the_sample_announces_a_scheduled_retirement() -> None:
    found = _sample()
    assert isinstance(found, Interruption)
    assert (found.kind, found.instance_id) == (Kind.SCHEDULED_CHANGE, "i-0123456789abcdef0")
    assert found.due_at is not None
    assert why_unanswered(found) is None


def test_the_closed_sample_calls_it_off() -> None:
    assert _sample(statusCode="closed").closed


def test_the_sample_of_a_volume_is_about_a_volume() -> None:
    found = _sample(
        service="EBS",
        eventTypeCategory="issue",
        eventTypeCode="AWS_EBS_VOLUME_LOST",
        affectedEntities=[{"entityValue": "vol-04e5b75b51ba5e835"}],
    )
    assert isinstance(found, VolumeNotice)
    assert found.change.harmful


@every_case(
    "statement",
    [s for each in OBJECTS if "Statement" in each for s in each["Statement"] if "Sid" in s],
    ids=lambda statement: statement["Sid"],
)
def test_what_fis_may_do_to_anything_is_to_look(statement: dict[str, Any]) -> None:
    actions = statement["Action"]
    named = [actions] if isinstance(actions, str) else actions
    assert not any("*" in action for action in named)
    if statement["Resource"] == "*":
        assert {a.partition(":")[2][:3] for a in named} <= {"Des", "Lis", "Get"}


def shop() -> World:
    """Return the cluster of the README's survey: a group without a hook, and a minimum of 1."""
    world = own_groups(bare())
    for instance in world.instances.values():
        instance["Tags"].append({"Key": "kubernetes.io/cluster/shop", "Value": "owned"})
    (kafka,) = world.kinds["kafkas"]
    kafka["spec"]["kafka"]["config"]["min.insync.replicas"] = 1
    world.hooks.pop(min(world.hooks))
    return world


def test_the_readme_shows_what_a_survey_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    done = examined(monkeypatch, shop())
    printed = Console(file=io.StringIO(), width=100)
    show_findings(done.findings, printed, command.verdict(done))
    assert isinstance(printed.file, io.StringIO)
    shown = [block.body for block in markdown.blocks(markdown.REPOSITORY / "README.md")]
    assert printed.file.getvalue().split() in [body.split() for body in shown]
    assert "<p>min.insync.replicas is 1" in page.render(done, 0.0)


EXAMPLE = markdown.REPOSITORY / "stacks" / "config" / "clusters" / "example.yaml"
KEYS = ClusterSpec.model_fields.keys()


def _pieces() -> list[Any]:
    return [
        pytest.param(piece, id=f"{markdown.name(page)}-{number}")
        for page in markdown.PAGES
        for number, block in enumerate(markdown.blocks(page))
        if block.language in ("yaml", "yml")
        # A block may hold several documents, as Kubernetes' objects do.
        for piece in yaml.safe_load_all(block.body)
        if isinstance(piece, dict) and piece.keys() <= KEYS
    ]


def merged(base: Any, piece: Any) -> Any:
    """Return the example with a piece written into it; pools are known by their names."""
    if isinstance(base, dict) and isinstance(piece, dict):
        return {**base, **{key: merged(base.get(key), value) for key, value in piece.items()}}
    if isinstance(base, list) and base and isinstance(base[0], dict) and "name" in base[0]:
        new = {each["name"]: each for each in piece}
        known = [merged(each, new.pop(each["name"], {})) for each in base]
        return [*known, *new.values()]
    return piece


@every_case("piece", _pieces())
def test_a_piece_fits_into_the_example(piece: dict[str, Any]) -> None:
    spec = parse_spec(merged(yaml.safe_load(EXAMPLE.read_text()), piece))
    assert problems_of(spec) == []


def test_there_are_pieces_to_try() -> None:
    assert len(_pieces()) >= 5


@every_case("page", markdown.PAGES, ids=markdown.name)
def test_an_image_of_kafka_is_the_one_the_cluster_runs(page: Path) -> None:
    images = re.findall(r"quay\.io/strimzi/kafka:([\w.]+)-kafka-([\w.]+)", page.read_text())
    assert set(images) <= {(STRIMZI_CHART_VERSION, Kafka().version)}


GUIDE = markdown.REPOSITORY / "docs" / "how-to" / "choose-instance-types.md"


def _number(cell: str) -> float:
    return float(cell.partition("/")[0].replace(",", ""))


def test_the_instance_types_of_the_guide_are_those_check_knows() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \|(.*)\|$", GUIDE.read_text(), re.MULTILINE)
    assert len(rows) >= 10
    book = pricing.book("us-east-1")
    for name, cells in rows:
        vcpus, memory_gib, megabytes, iops, _network, dollars = map(_number, cells.split("|"))
        known = instances.table().types[name]
        assert (known.vcpus, known.memory_mib / 1024, known.ebs_iops) == (vcpus, memory_gib, iops)
        assert round(known.ebs_mb_per_s) == megabytes
        assert float(book.instance_hour(name).usd) == dollars


def test_the_guide_says_how_many_types_check_knows() -> None:
    assert f"has {len(instances.table().types)} types" in GUIDE.read_text()


@functools.cache
def matrix() -> Any:
    """The matrix, with the twin's tests: seconds for every worker that only collects this file."""
    from tests.integration.faults import matrix  # noqa: PLC0415

    return matrix


def test_the_page_shows_the_matrix() -> None:
    write = "python -m tests.integration.faults.matrix"
    assert matrix().PAGE.read_text() == matrix().page(), f"run `{write}`"


def test_every_case_has_a_name_and_a_sentence_of_its_own() -> None:
    cases = matrix().CASES
    assert len({case.name for case in cases}) == len(cases) >= 25
    assert len({case.fault for case in cases}) == len(cases)


@every_case("row", lambda: matrix().TWIN_ROWS, ids=lambda row: row.test)
def test_a_test_of_the_last_table_exists(row: Any) -> None:
    integration = matrix().PAGE.parents[2] / "tests" / "integration"
    file, _, function = row.test.partition("::")
    assert f"\ndef {function}(" in (integration / file).read_text()
