"""action.yaml's comment on a pull request: its own script, as GitHub runs it, with a false gh."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[4]
STEPS = yaml.safe_load((REPOSITORY / "action.yaml").read_text())["runs"]["steps"]
TEMPLATE = REPOSITORY / "cli" / "project" / "templates" / "workflow.yaml"
WORKFLOW = yaml.safe_load(TEMPLATE.read_text())
PULL_REQUEST = "https://example.com/pull/7"
FALSE_GH = """#!/bin/sh
echo "$@" > "$SAID"
while [ "$1" != --body-file ]; do shift; done
cat > "$SAID.body"
"""
STILLWATER = f'#!/bin/sh\nexec {sys.executable} -m cli "$@"\n'


def commented(tmp_path: Path, stillwater: str = STILLWATER) -> tuple[int, Path]:
    """Run both steps; return the first's exit code and where the false gh wrote what it was."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gh").write_text(FALSE_GH)
    (programs / "stillwater").write_text(stillwater)
    for each in programs.iterdir():
        each.chmod(0o755)
    said = tmp_path / "said"
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "PREVIEW": "false",
        "PULL_REQUEST": PULL_REQUEST,
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "SAID": str(said),
    }
    # As GitHub runs `shell: bash`.
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
    told, comments = (
        subprocess.run([*command, step["run"]], cwd=tmp_path / "own", env=environment, check=False)
        for step in STEPS[-2:]
    )
    assert comments.returncode == 0
    return told.returncode, said


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


def test_output_cannot_leave_its_fence(tmp_path: Path) -> None:
    said = "~~~~\n~~~~~~\n</details>\n# Approved\n"
    _, told = commented(tmp_path, f"#!/bin/sh\ncat <<'END'\n{said}END\n")
    body = Path(f"{told}.body").read_text().splitlines()
    fences = [number for number, line in enumerate(body) if set(line) == {"~"}]
    longest = max(len(body[number]) for number in fences)
    opened, closed, *_ = [number for number in fences if len(body[number]) == longest]
    assert body[opened + 1 : closed] == said.splitlines()


def test_a_file_whose_name_is_no_environments_ends_the_step(tmp_path: Path) -> None:
    (tmp_path / "own" / "clusters" / "# Approved.yaml").write_text("")
    code, _ = commented(tmp_path)
    assert code == 1


def test_the_branchs_code_is_given_no_token() -> None:
    (running,) = [step for step in STEPS if 'stillwater "$@"' in step.get("run", "")]
    assert set(running["env"]) == {"PREVIEW"}
    described, previewed = (WORKFLOW["jobs"][job] for job in ("describe", "preview"))
    assert "id-token" not in described["permissions"]
    assert previewed["environment"] == "stillwater-preview"
    assert "pull-requests" not in previewed["permissions"]
    assert "secrets." not in TEMPLATE.read_text()


OURS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yaml"))


@pytest.mark.parametrize(
    "path", [*OURS, TEMPLATE, REPOSITORY / "action.yaml"], ids=lambda path: path.name
)
def test_an_action_of_others_is_named_by_its_commit_and_no_token_is_kept(path: Path) -> None:
    text = path.read_text()
    used = re.findall(r"uses: (?!\./)(.*)", text)
    assert used
    assert all(re.fullmatch(r"\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each) for each in used)
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")
    assert "pull_request_target" not in text
