"""With `--json` stdout is JSON alone, a refusal included; who has no `--json` says why."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cli import provision
from cli.engine.events import HIDDEN, Difference, LayerResult, Operation, ResourceChange
from cli.main import app
from cli.project import release
from cli.project.release import Origin
from cli.terminal import FLAG
from core.ground.errors import StillwaterError
from reference import command_line
from tests.every_case import every_case
from tests.unit.cli.forked import COMMAND, run_forked
from tests.unit.cli.test_check import DESCRIPTION
from tests.unit.cli.test_provision import Api, Stacks, pipe, stacks, wanted
from tests.unit.cli.test_provision import said as printed

__all__ = ["stacks"]
COMMANDS = dict(command_line.commands(typer.main.get_command(app)))
SECRET = ResourceChange(
    urn="urn:pulumi:prod-kafka::s::kubernetes:core/v1:Secret::token",
    operation=Operation.UPDATE,
    differences=(Difference("stringData.token", HIDDEN, HIDDEN),),
)
GROUP = ResourceChange(
    urn="urn:pulumi:prod-kafka::s::stillwater:infra:BrokerNodes$aws:autoscaling/group:Group::a",
    operation=Operation.REPLACE,
    protected=True,
    because=("name",),
    differences=(Difference("maxSize", "3", "6"),),
    named="prod-orders-broker-a",
)
DONE = LayerResult(
    layer="kafka", seconds=2.04, same=7, outputs={"password": "hunter2"}, changes=(GROUP, SECRET)
)


@every_case("words", COMMANDS)
def test_every_command_has_json_that_is_explained_or_says_why_not(words: str) -> None:
    explained = words in command_line.DOCUMENTS
    takes_it = any(FLAG in each.opts for each in COMMANDS[words].params)
    assert explained == takes_it
    assert explained != (words in command_line.WITHOUT)
    assert {*command_line.DOCUMENTS, *command_line.WITHOUT} <= {*COMMANDS}


def test_a_run_is_counted_by_what_a_person_calls_a_resource_and_tells_no_output() -> None:
    said = provision.run_document("prod", "up", [DONE], diff=True)
    (layer,) = said["layers"]
    assert (said["changes"], layer["unchanged"], layer["seconds"]) == (2, 7, 2.0)
    assert layer["counts"] == {"create": 0, "update": 1, "delete": 0, "replace": 1}
    group, secret = layer["resources"]
    assert group["name"] == "prod-orders-broker-a"
    assert group["differences"] == [{"path": "maxSize", "before": "3", "after": "6"}]
    assert secret["differences"][0]["before"] == HIDDEN
    assert "hunter2" not in json.dumps(said)


def test_values_of_properties_are_told_when_asked_for_alone() -> None:
    (layer,) = provision.run_document("prod", "preview", [DONE], diff=False)["layers"]
    assert layer["resources"][0]["differences"] == [{"path": "maxSize"}]


def asked(**options: Any) -> provision.Asked:
    return provision.parse_targets((), (), refresh=False, diff=False, as_json=True, **options)


def test_a_preview_is_one_document_and_progress_is_elsewhere(
    stacks: type[Stacks], capsys: pytest.CaptureFixture[str]
) -> None:
    provision.preview("prod", pipe(), asked(yes=False))
    said = json.loads(capsys.readouterr().out)
    assert (said["operation"], said["refusals"], said["changes"]) == ("preview", [], 5)


def test_an_up_that_nobody_can_answer_for_writes_no_document(
    stacks: type[Stacks], capsys: pytest.CaptureFixture[str]
) -> None:
    people = pipe()
    with pytest.raises(StillwaterError, match="say --yes"):
        provision.up("prod", people, asked(yes=False))
    assert capsys.readouterr().out == ""
    assert "+ VPC vpc" in printed(people)


def test_an_up_with_nothing_to_do_is_a_document_without_changes(
    stacks: type[Stacks], capsys: pytest.CaptureFixture[str]
) -> None:
    stacks.changes = ()
    provision.up("prod", pipe(), asked(yes=False))
    assert json.loads(capsys.readouterr().out)["changes"] == 0
    assert stacks.called == ["preview"]


@pytest.mark.parametrize(
    ("volumes", "named"), [([], []), (None, None)], ids=["none are there", "they cannot be read"]
)
def test_a_destroy_names_the_volumes_or_says_that_they_are_not_known(
    stacks: type[Stacks],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    volumes: Any,
    named: Any,
) -> None:
    monkeypatch.setattr(provision, "_cluster_api", lambda *_: Api(volumes))
    monkeypatch.setattr(provision, "_teardown", lambda *_: None)
    provision.destroy("test", pipe(), asked(yes=True))
    said = json.loads(capsys.readouterr().out)["volumes"]
    assert (said["fate"], said["named"]) == ("deleted for good", named)
    assert (said["unread"] is None) == (named is not None)


def test_without_json_nothing_but_the_console_is_written_to(
    stacks: type[Stacks], capsys: pytest.CaptureFixture[str]
) -> None:
    provision.preview("prod", pipe(), wanted())
    assert capsys.readouterr().out == ""


def test_a_price_check_is_a_document_with_the_same_exit_code() -> None:
    done = CliRunner().invoke(app, ["prices", "check", "--older-than-days", "30", "--json"])
    said = json.loads(done.stdout)
    assert done.exit_code == 1
    assert said["disagreements"] is None
    assert {"item", "usd", "as_of", "days", "source"} == said["old"][0].keys()


def test_an_upgrade_is_a_document_with_the_notes_of_each_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: x\n")
    (tmp_path / "requirements.txt").write_text("stillwater==0.1.0\n")
    notes = tmp_path / "notes.md"
    notes.write_text("# Changelog\n## 0.2.0\n- the second\n## 0.1.0\n- the first\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(release, "NOTES", notes)
    monkeypatch.setattr(release, "installed_release", lambda: Origin("0.2.0"))
    done = CliRunner().invoke(app, ["upgrade", "--json"])
    said = json.loads(done.stdout)
    assert said["releases"] == [{"release": "0.2.0", "notes": "- the second"}]
    assert (said["before"], said["now"], said["wrote"]) == ("0.1.0", "0.2.0", [])


def test_a_plan_of_adoption_is_a_document(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(DESCRIPTION)
    done = CliRunner().invoke(app, ["adopt", "plan", str(path), "--json"])
    (said,) = json.loads(done.stdout)["descriptions"]
    assert (said["cluster"], said["level"], said["next"]["level"]) == ("shop", "survey", "watch")
    assert {"mark", "what", "detail"} == said["next"]["changes"][0].keys()


def run(*arguments: str, **environment: str) -> tuple[int, Any, str]:
    """Run the command as a program would; its whole stdout must be JSON."""
    own = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", **environment}
    done = run_forked(COMMAND, arguments, environment=own)
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("preview", "nowhere", "--json"), 1, "The project has no environment nowhere"),
        (("doctor", "nowhere", "--json"), 2, "The project has no environment nowhere"),
        (("estimate", "nothing.yaml", "--json"), 1, "cannot be read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_refusal_is_json_too_with_the_commands_own_exit_code(
    arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    returned, said, complained = run(*arguments)
    assert (returned, said["exit_code"]) == (code, code)
    assert sentence in said["error"]
    assert said["problems"]
    # For the person who reads the log.
    assert said["error"] in complained


def test_a_refusal_says_every_problem_apart() -> None:
    _, said, _ = run("destroy", "example", "--layer", "a", "--layer", "b", "--json")
    assert len(said["problems"]) == 2
