"""cli.project: a directory is written whole or not at all, and found by whoever stands in it."""

import dataclasses
import io
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from cli import stack_settings
from cli.fleet.reading import read_file
from cli.main import app
from cli.project import init as command
from cli.project import release
from cli.project.init import Given, InitAnswers, render, write
from cli.project.release import Origin
from cli.stack_settings import find, project_at
from core.ground.errors import InvalidInput, StillwaterError
from core.ground.naming import LAYERS
from infra import spec as specs
from infra.spec import ROOT
from tests.every_case import every_case
from tests.person import Keyboard

RELEASE = Origin("1")
ANSWERS = InitAnswers(
    name="orders",
    environment="prod",
    region="us-east-1",
    zones=("us-east-1a", "us-east-1b", "us-east-1c"),
    brokers=3,
    produce_mib_per_s=60,
    readers=2,
    retention_hours=24,
    vpc_cidr="10.40.0.0/16",
)


def answers(**changed: Any) -> InitAnswers:
    return dataclasses.replace(ANSWERS, **changed)


def files(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): path.read_text()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_what_is_written_is_an_environment_that_check_accepts(tmp_path: Path) -> None:
    write(tmp_path, render(answers(), Origin("1.2.3")), force=False)
    found = stack_settings.read_described("prod", project_at(tmp_path))
    (pool,) = [pool for pool in found.spec.pools if pool.role.is_broker]
    assert (pool.instance_type, pool.volumes[0].size_gib) == ("r7g.xlarge", 8450)
    path = tmp_path / "clusters" / "prod.yaml"
    assert specs.doubts_in(path, specs.read(path)) == []
    assert "stillwater-kafka==1.2.3" in (tmp_path / "requirements.txt").read_text()
    assert not [name for name in files(tmp_path) if name.endswith(".part")]


@pytest.mark.parametrize("zones", ["abcd", "abcdef"])
def test_a_cluster_may_stand_in_more_zones_than_its_quorum(zones: str) -> None:
    named = tuple(f"us-east-1{letter}" for letter in zones)
    spec = render(answers(zones=named, brokers=2 * len(named)), RELEASE).spec
    assert (spec.controllers, spec.brokers) == (3, 2 * len(named))


def test_a_fleet_is_written_of_what_is_described_and_production_goes_last(tmp_path: Path) -> None:
    def typed(*more: str) -> str:
        done = CliRunner().invoke(app, ["init", str(tmp_path), "--fleet", *more])
        return " ".join(f"{done.exception or done.output}".split())

    assert "describes no environment, nor does a directory in it" in typed()
    for place, environment in (("team_a", "prod"), ("2: eu", "prod"), ("2: eu", "stage")):
        write(tmp_path / place, render(answers(environment=environment), RELEASE), force=False)
    assert "3 environments, a wave each" in typed()
    file = read_file(tmp_path / "fleet.yaml")
    waves = [wave.environments for wave in file.waves]
    assert waves == [("stage",), ("2-eu-prod",), ("team-a-prod",)]
    named = file.environments["2-eu-prod"]
    assert (named.directory, named.environment) == ("2: eu", "prod")
    workflow = yaml.safe_load((tmp_path / ".github/workflows/stillwater-fleet.yaml").read_text())
    (job,) = workflow["jobs"].values()
    assert "stillwater fleet advance fleet.yaml" in [step.get("run") for step in job["steps"]]
    assert "--force replaces it" in typed()
    assert "Wrote" in typed("--force")


def test_a_second_environment_shares_the_directory_and_leaves_it_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, render(answers(), RELEASE), force=False)
    (tmp_path / "README.md").write_text("ours")
    kept = write(tmp_path, render(answers(environment="staging"), RELEASE), force=False)
    assert kept == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "ours"
    assert project_at(tmp_path).environments() == ["prod", "staging"]


def test_an_environment_that_is_there_is_written_over_only_when_told(tmp_path: Path) -> None:
    write(tmp_path, render(answers(), RELEASE), force=False)
    before = files(tmp_path)
    with pytest.raises(InvalidInput, match=r"clusters/prod.yaml.* already, and nothing"):
        write(tmp_path, render(answers(brokers=6), RELEASE), force=False)
    assert files(tmp_path) == before
    write(tmp_path, render(answers(brokers=6), RELEASE), force=True)
    assert stack_settings.read_described("prod", project_at(tmp_path)).spec.brokers == 6


def test_prices_that_cannot_be_read_leave_nothing_written(tmp_path: Path) -> None:
    (tmp_path / "prices.json").write_text("{}")
    done = CliRunner().invoke(app, ["init", str(tmp_path), "--region", "us-east-1"])
    assert 'has no "regions" object' in str(done.exception)
    assert [*files(tmp_path)] == ["prices.json"]


def test_a_failed_disk_leaves_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, real = [], command.tempfile.NamedTemporaryFile

    def full(*arguments: Any, **named: Any) -> Any:
        opened.append(named)
        if len(opened) > 4:
            raise OSError(28, "No space left on device")
        return real(*arguments, **named)

    monkeypatch.setattr(command.tempfile, "NamedTemporaryFile", full)
    with pytest.raises(InvalidInput, match="No space left on device"):
        write(tmp_path, render(answers(), RELEASE), force=False)
    assert files(tmp_path) == {}


@every_case(
    ("changed", "sentence"),
    [
        ({"name": "Orders!"}, "name"),
        ({"name": "a: b"}, "name"),
        ({"environment": "../x"}, "environment"),
        ({"environment": "x\nname: y"}, "environment"),
        ({"region": "cn-north-1"}, "Region cn-north-1 is of the China partition"),
        ({"region": "mars"}, "region"),
        (
            {"region": "us-east-1a"},
            "region is 'us-east-1a': name one such as eu-west-1; a zone has a letter more",
        ),
        ({"environment": "local"}, "environment 'local' is what every command calls the twin"),
        ({"region": ""}, "region is '': name one"),
        ({"zones": ("a]", "us-east-1b", "us-east-1c")}, "zone 'a]' is not in us-east-1"),
        ({"zones": ("us-east-1a", "us-east-1a", "us-east-1c")}, "us-east-1a is named twice"),
        ({"zones": ("eu-west-1a", "us-east-1b", "us-east-1c")}, "zone 'eu-west-1a' is not in"),
        ({"secrets_provider": "banana"}, "none that Pulumi knows"),
        ({"secrets_provider": "awskms://"}, "none that Pulumi knows"),
        ({"secrets_provider": "kms://alias/x"}, "none that Pulumi knows"),
        ({"zones": ("us-east-1a",)}, "name 3 or more"),
        ({"brokers": 4}, "4 brokers cannot stand evenly in 3 availability zones"),
        ({"brokers": 51}, "listeners"),
        ({"produce_mib_per_s": 5000}, "name 33 brokers or more"),
        ({"vpc_cidr": "10.0.0.0/33"}, "vpc_cidr"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_answers_are_sentences(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        render(answers(**changed), RELEASE)
    assert sentence in str(caught.value)
    assert all(problem.endswith(".") for problem in caught.value.problems)
    # A mistake is said once, in the words of what was typed.
    assert len(caught.value.problems) == 1


def test_every_problem_of_the_answers_is_said_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        render(answers(name="a b", brokers=4, secrets_provider="x"), RELEASE)
    assert len(caught.value.problems) == 3


@every_case(
    "provider",
    [
        "passphrase",
        "default",
        "awskms://alias/state?region=us-east-1",
        "awskms:///arn:aws:kms:us-east-1:111122223333:key/abc?awssdk=v2",
        "azurekeyvault://vault.vault.azure.net/keys/name",
        "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k",
        "hashivault://key",
    ],
)
def test_a_secrets_provider_that_pulumi_knows_is_taken(provider: str) -> None:
    assert render(answers(secrets_provider=provider), RELEASE).own


def person(monkeypatch: pytest.MonkeyPatch, reply: Callable[..., str]) -> Console:
    """Return a console at which somebody answers so."""
    console = Console(file=io.StringIO(), force_terminal=True, force_interactive=True)
    monkeypatch.setattr("sys.stdin", Keyboard())
    monkeypatch.setattr(console, "input", reply)
    return console


def test_a_typo_loses_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = iter(["", "", "us-east", "us-east-2", "a,b,c", "", "three", "3", "", "", ""])
    console = person(monkeypatch, lambda *_, **__: next(replies))
    found = command.complete_answers(tmp_path / "own", Given(), command._asking(console))
    assert (found.region, found.brokers) == ("us-east-2", 3)
    said = console.file.getvalue()
    assert "region is 'us-east'" in said
    assert "zone 'a' is not in us-east-2; one there is named as us-east-2a." in said
    assert "'three' is not a number" in said


def test_init_says_what_is_missing_and_how_a_shell_gets_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(file=io.StringIO(), width=40)
    monkeypatch.chdir(tmp_path)
    command.init(Path("an own"), Given(region="ca-west-1", name="orders"), console, came=RELEASE)
    command.init(Path(), Given(region="us-east-1", name="orders"), console, came=RELEASE)
    said = console.file.getvalue()
    assert ", at least " in said
    assert "`stillwater prices fetch --region ca-west-1`" in said
    assert "Next: cd 'an own'; look" in said
    assert "Next: look" in said


@pytest.mark.parametrize("name", ["no", "on", "null"])
def test_a_name_that_yaml_reads_as_something_else_is_still_a_name(name: str) -> None:
    assert yaml.safe_load(f"a: {command.scalar('-')}") == {"a": "-"}
    assert render(answers(name=name, environment=name), RELEASE).spec.prefix == f"{name}-{name}"


def test_a_secrets_provider_stands_in_every_stacks_settings(tmp_path: Path) -> None:
    key = "awskms://alias/state?region=us-east-1"
    write(tmp_path, render(answers(secrets_provider=key), RELEASE), force=False)
    assert stack_settings.read_described("prod", project_at(tmp_path)).secrets_provider == key
    for layer in LAYERS:
        stored = yaml.safe_load(project_at(tmp_path).file("prod", layer).read_text())
        assert stored["secretsprovider"] == key


def test_what_is_not_given_is_asked_of_a_person_and_has_a_default_for_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = {"The AWS region": "us-east-2", "Brokers": "6"}
    asked = []

    def reply(question: str, **_options: Any) -> str:
        asked.append(question)
        return next((r for q, r in replies.items() if question.startswith(q)), "")

    asking = command._asking(person(monkeypatch, reply))
    found = command.complete_answers(tmp_path / "Pay ments", Given(), asking)
    assert (found.name, found.region, found.brokers, len(asked)) == ("pay-ments", "us-east-2", 6, 8)
    assert found.zones == ("us-east-2a", "us-east-2b", "us-east-2c")

    machine = command._asking(Console(file=io.StringIO()))
    assert command.complete_answers(tmp_path, Given(region="ca-central-1"), machine).zones == (
        "ca-central-1a",
        "ca-central-1b",
        "ca-central-1d",
    )
    with pytest.raises(StillwaterError, match=r"--region\) is needed"):
        command.complete_answers(tmp_path, Given(), machine)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="is a file"):
        command.init(tmp_path / "file", Given(region="us-east-1"), Console(), came=RELEASE)


def test_the_command_that_init_names_comes_to_the_sum_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(app, ["init", "own", "--region", "us-east-1"]).output
    named = re.search(r"about ([\d,]+) USD a month", said)
    command = re.search(r"`stillwater (estimate [^`]+)`", said)
    assert named
    assert command
    monkeypatch.chdir(tmp_path / "own")
    shown = CliRunner().invoke(app, shlex.split(command[1])).output
    total = re.search(r"^ *a month +([\d,.]+) *$", shown, re.MULTILINE)
    assert total
    assert f"{float(total[1].replace(',', '')):,.0f}" == named[1]
    assert command[1].partition(" prod ")[2] in (tmp_path / "own" / "README.md").read_text()


CHANGELOG = """# Changelog
## Unreleased
- not yet
## 0.10.0 (2027-01-01)
- the tenth
## 0.2.0
### Breaking
- the second
## 0.1.0 (2026-11-21)
- the first
"""


def test_without_one_a_checkout_is_meant_or_a_package_says_what_to_do(tmp_path: Path) -> None:
    assert find(tmp_path).root == ROOT
    with pytest.raises(InvalidInput, match=r"`stillwater init DIRECTORY`"):
        find(tmp_path, package=tmp_path)


def test_a_project_file_that_is_no_yaml_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: [")
    with pytest.raises(InvalidInput, match="cannot be read as YAML"):
        find(tmp_path)


def test_check_takes_an_environments_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    example = Path("stacks/config/clusters/example.yaml")
    assert stack_settings.spec_file(Path("example")) == example
    assert stack_settings.spec_file(Path("missing.yaml")) == Path("missing.yaml")
    with pytest.raises(InvalidInput, match="The project has no environment missing"):
        stack_settings.spec_file(Path("missing"))
    write(tmp_path, render(answers(), RELEASE), force=False)
    # A directory of an environment's name is no description.
    (tmp_path / "prod").mkdir()
    monkeypatch.chdir(tmp_path)
    assert stack_settings.spec_file(Path("prod")) == Path("clusters/prod.yaml")
    for path in (tmp_path / "config").iterdir():
        path.write_text("config: {}")
    with pytest.raises(InvalidInput, match="has its ClusterSpec in no file"):
        stack_settings.spec_file(Path("prod"))


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("0.1.0", "0.10.0", ["0.10.0", "0.2.0"]),
        ("0.2.0", "0.10.0", ["0.10.0"]),
        ("0.1.0", "0.2.0", ["0.2.0"]),
        ("0.10.0", "0.10.0", []),
    ],
)
def test_the_notes_are_those_between_releases(before: str, now: str, expected: list[str]) -> None:
    assert [name for name, _ in release.releases_between(CHANGELOG, before, now)] == expected


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: x\n")
    (tmp_path / "notes.md").write_text(CHANGELOG)
    (tmp_path / "requirements.txt").write_text("# ours\nboto3==1.1\nstillwater[report]==0.1.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(release, "NOTES", tmp_path / "notes.md")
    return tmp_path


def said(now: str, *, write: bool = False) -> str:
    return "\n".join(release.upgrade(write=write, came=Origin(now)).sentences())


def test_an_upgrade_says_what_changes_and_names_the_release_when_told(own: Path) -> None:
    assert "- the second" in said("0.2.0")
    assert "stillwater[report]==0.1.0" in (own / "requirements.txt").read_text()
    said("0.2.0", write=True)
    assert (own / "requirements.txt").read_text() == (
        "# ours\nboto3==1.1\nstillwater-kafka[report]==0.2.0\n"
    )
    assert "nothing changes" in said("0.2.0")


def test_an_older_release_than_the_directorys_is_refused(own: Path) -> None:
    with pytest.raises(InvalidInput, match="which is older"):
        said("0.0.9")


def test_a_directory_that_names_no_release_is_told_what_to_add(own: Path) -> None:
    (own / "requirements.txt").write_text("boto3\n")
    with pytest.raises(InvalidInput, match="names no release of Stillwater"):
        said("0.2.0")
