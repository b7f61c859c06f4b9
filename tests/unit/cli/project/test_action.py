"""action.yaml's comment on a pull request: its own script, as GitHub runs it, with a false gh."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[4]
STEPS = yaml.safe_load((REPOSITORY / "action.yaml").read_text())["runs"]["steps"]
PULL_REQUEST = "https://example.com/pull/7"
FALSE_GH = """#!/bin/sh
echo "$@" > "$SAID"
while [ "$1" != --body-file ]; do shift; done
cp "$2" "$SAID.body"
"""


def commented(tmp_path: Path, *, pull_request: str = PULL_REQUEST) -> tuple[int, Path]:
    """Run the step that comments; return its exit code and where the false gh wrote what it was."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gh").write_text(FALSE_GH)
    (programs / "stillwater").write_text(f'#!/bin/sh\nexec {sys.executable} -m cli "$@"\n')
    for each in programs.iterdir():
        each.chmod(0o755)
    said = tmp_path / "said"
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "PREVIEW": "false",
        "PULL_REQUEST": pull_request,
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "SAID": str(said),
    }
    # As GitHub runs `shell: bash`.
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[-1]["run"]]
    ran = subprocess.run(command, cwd=tmp_path / "own", env=environment, check=False)
    return ran.returncode, said


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory as `stillwater init` writes it."""
    directory = tmp_path_factory.mktemp("written") / "own"
    command = [sys.executable, "-m", "cli", "init", str(directory), "--region", "eu-west-1"]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    return directory


@pytest.fixture(autouse=True)
def _own(tmp_path: Path, written: Path) -> None:
    shutil.copytree(written, tmp_path / "own")


def test_a_pull_request_is_told_what_check_and_estimate_say(tmp_path: Path) -> None:
    code, said = commented(tmp_path)
    assert code == 0
    assert said.read_text().startswith(f"pr comment {PULL_REQUEST} --edit-last --create-if-none")
    body = Path(f"{said}.body").read_text()
    assert body.startswith("### prod\n")
    assert "✓ <code>stillwater check prod</code>" in body
    assert "✓ <code>stillwater estimate prod</code>" in body
    assert "USD" in body
    assert (tmp_path / "summary").read_text() == body


def test_a_description_that_is_wrong_fails_the_step_and_the_comment_says_why(
    tmp_path: Path,
) -> None:
    described = tmp_path / "own" / "clusters" / "prod.yaml"
    described.write_text(described.read_text().replace("eu-west-1a", "us-east-1a", 1))
    code, said = commented(tmp_path)
    assert code == 1
    body = Path(f"{said}.body").read_text()
    assert "✗ <code>stillwater check prod</code>" in body
    assert "us-east-1a" in body


def test_without_a_pull_request_the_summary_alone_is_written(tmp_path: Path) -> None:
    code, said = commented(tmp_path, pull_request="")
    assert code == 0
    assert not said.exists()
    assert "stillwater check prod" in (tmp_path / "summary").read_text()
