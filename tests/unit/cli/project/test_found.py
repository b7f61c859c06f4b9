"""cli.project: commands are about the project one stands in, and a newer release says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli import stack_settings
from cli.project import release
from cli.project.release import Origin
from cli.stack_settings import find
from core.ground.errors import InvalidInput
from infra.spec import ROOT

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


def test_the_nearest_project_at_or_above_is_the_one(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: x\nstackConfigDir: config\n")
    below = tmp_path / "clusters" / "deep"
    below.mkdir(parents=True)
    assert find(below).settings == tmp_path / "config"


def test_without_one_a_checkout_is_meant_and_an_installed_package_says_what_to_do(
    tmp_path: Path,
) -> None:
    assert find(tmp_path).root == ROOT
    with pytest.raises(InvalidInput, match=r"`stillwater init DIRECTORY`"):
        find(tmp_path, package=tmp_path)


def test_a_project_file_that_is_no_yaml_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: [")
    with pytest.raises(InvalidInput, match="cannot be read as YAML"):
        find(tmp_path)


def test_check_takes_the_name_of_an_environment_for_its_description(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    example = Path("stacks/config/clusters/example.yaml")
    assert stack_settings.spec_file(Path("example")) == example
    assert stack_settings.spec_file(Path("missing.yaml")) == Path("missing.yaml")
    with pytest.raises(InvalidInput, match="There is no environment missing"):
        stack_settings.spec_file(Path("missing"))


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("0.1.0", "0.10.0", ["0.10.0", "0.2.0"]),
        ("0.2.0", "0.10.0", ["0.10.0"]),
        ("0.1.0", "0.2.0", ["0.2.0"]),
        ("0.10.0", "0.10.0", []),
    ],
)
def test_the_notes_are_those_between_two_releases(
    before: str, now: str, expected: list[str]
) -> None:
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
