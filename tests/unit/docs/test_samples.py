"""Samples on pages: a survey's output, AWS's announcements, and a role for FIS."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from cli.survey import command
from cli.terminal import show_findings
from core.events import Interruption, Kind, VolumeNotice, parse
from core.incidents.decide import why_unanswered
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
