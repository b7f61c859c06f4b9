"""cli.project.release and action.yaml: this very release is installed, and a pull request told."""

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from cli.project import init as command
from cli.project import release
from cli.project.init import Given
from cli.project.release import Origin
from core.ground.constants import RELEASE
from infra.spec import ROOT
from tests.every_case import every_case

WHEEL = "stillwater_kafka-1.2.3-py3-none-any.whl"
ADDRESS = f"https://wheels.example.com/a/{WHEEL}"


def from_file(path: Path, version: str = "1.2.3") -> Origin:
    return release.parse_origin(version, json.dumps({"url": path.as_uri(), "archive_info": {}}))


@pytest.mark.parametrize(
    ("direct_url", "line", "report", "twin"),
    [
        (None, "stillwater-kafka==1.2.3", ["stillwater-kafka[report]==1.2.3"],
            ["stillwater-kafka[twin]==1.2.3"]),
        ({"url": f"file:///a%20b/{WHEEL}", "archive_info": {}}, f"./wheels/{WHEEL}",
            [f"/a b/{WHEEL}[report]"],
            [f"/a b/{WHEEL}[twin]", "/a b/stillwater_kafka_twin-1.2.3-py3-none-any.whl"]),
        ({"url": ADDRESS, "archive_info": {"hashes": {"sha256": "0"}}},
            f"stillwater-kafka @ {ADDRESS}", [f"stillwater-kafka[report] @ {ADDRESS}"],
            [f"stillwater-kafka[twin] @ {ADDRESS}", ADDRESS.replace("a-1", "a_twin-1")]),
        ({"url": "file:///src", "dir_info": {"editable": True}}, f"./wheels/{WHEEL}",
            ["/src[report]"], ["/src[twin]", "/src/local"]),
    ],
    ids=["index", "file", "address", "checkout"],
)  # fmt: skip
def test_a_release_is_named_by_where_it_came_from(
    direct_url: object, line: str, report: list[str], twin: list[str]
) -> None:
    came = release.parse_origin("1.2.3", json.dumps(direct_url) if direct_url else None)
    assert came.requirement == line
    assert shlex.split(came.installing("report"))[4:] == report
    assert shlex.split(came.installing("twin"))[4:] == twin


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "downloads" / WHEEL
    path.parent.mkdir()
    path.write_bytes(b"PK\xff")
    return path


def init(directory: Path, came: Origin) -> str:
    console = Console(file=io.StringIO())
    command.init(directory, Given(region="us-east-1", name="orders"), console, came=came)
    return console.file.getvalue()


def test_a_wheel_is_kept_where_requirements_name_it(tmp_path: Path, wheel: Path) -> None:
    said = init(tmp_path / "own", from_file(wheel))
    pins = (tmp_path / "own" / "requirements.txt").read_text()
    (line,) = [line for line in pins.splitlines() if not line.startswith("#")]
    assert (tmp_path / "own" / line).read_bytes() == wheel.read_bytes()
    assert "`wheels/`" in (tmp_path / "own" / "README.md").read_text()
    assert "Put" not in said


def test_an_upgrade_brings_its_wheel(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    init(own, from_file(wheel))
    newer = wheel.with_name(WHEEL.replace("1.2.3", "1.3.0"))
    newer.write_bytes(b"newer")
    monkeypatch.chdir(own)
    release.upgrade(write=True, came=from_file(newer, "1.3.0"))
    assert release.pinned_release(own / "requirements.txt") == "1.3.0"
    assert (own / "wheels" / newer.name).read_bytes() == b"newer"
    newer.unlink()
    (own / "wheels" / newer.name).unlink()
    (own / "requirements.txt").write_text(f"./wheels/{WHEEL}[report]\n")
    done = release.upgrade(write=True, came=from_file(newer, "1.3.0"))
    assert (own / "requirements.txt").read_text() == f"./wheels/{newer.name}[report]\n"
    assert f"Put {newer.name} into" in "\n".join(done.sentences())


@pytest.mark.parametrize(
    "line",
    [
        "{}==0.4.0",
        "{}[report,twin]==0.4.0",
        "./wheels/{wheel}-0.4.0-py3-none-any.whl[report]",
        "{} @ https://x.example/{wheel}-0.4.0-py3-none-any.whl",
    ],
)
@pytest.mark.parametrize("name", ["stillwater", "stillwater-kafka"])
def test_a_pin_is_found_and_renewed_however_it_is_written(
    tmp_path: Path, line: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = line.format(name, wheel=name.replace("-", "_"))
    pins = tmp_path / "requirements.txt"
    (tmp_path / "Pulumi.yaml").write_text("name: x\n")
    pins.write_text(f"# stillwater==9.9.9\nboto3==1.0\n{written}\n")
    assert release.pinned_release(pins) == "0.4.0"
    monkeypatch.chdir(tmp_path)
    release.upgrade(write=True, came=Origin("0.5.0"))
    named = line.format("stillwater-kafka", wheel="stillwater_kafka").replace("0.4.0", "0.5.0")
    assert pins.read_text() == f"# stillwater==9.9.9\nboto3==1.0\n{named}\n"


# `stillwater` alone, behind an install: what an index has under that name is somebody else's.
_NAMESAKE = re.compile(r"(?:pip|pipx|uv)\b[^`\n]*\binstall\b[^`\n]*[ '\"]stillwater(?![\w-])(?! @)")
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "cli").rglob("*"),
    *(ROOT / "infra").rglob("*.py"),
    ROOT / "action.yaml",
    ROOT / "Dockerfile",
]


def test_no_page_and_no_sentence_installs_the_namesake() -> None:
    told = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in PAGES
        if path.is_file() and path.suffix != ".pyc" and path.name != "release.py"
        for found in _NAMESAKE.finditer(path.read_text("utf-8"))
    ]
    assert told == []


@every_case(
    ("text", "namesake"),
    [
        ("pip install stillwater", True),
        ("pip install --upgrade stillwater", True),
        ("pip install 'stillwater[report]'", True),
        ("pipx install stillwater==0.1.0", True),
        ("pip install PATH/stillwater-0.1.0-py3-none-any.whl", False),
        ("pip install 'PATH/stillwater-0.1.0-py3-none-any.whl[report]'", False),
        ("pip install -r requirements.txt", False),
    ],
)
def test_the_namesake_is_told_from_the_wheel(text: str, *, namesake: bool) -> None:
    assert bool(_NAMESAKE.search(text)) is namesake


REPOSITORY = Path(__file__).resolve().parents[4]


def test_a_function_names_the_release_it_is_of() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["version"] == RELEASE


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


@pytest.fixture
def own(tmp_path: Path, written: Path) -> Path:
    shutil.copytree(written, tmp_path / "own")
    return tmp_path


def test_a_pull_request_is_told_what_check_and_estimate_say(own: Path) -> None:
    code, said = commented(own)
    assert code == 0
    assert said.read_text().startswith(f"pr comment {PULL_REQUEST} --edit-last --create-if-none")
    body = Path(f"{said}.body").read_text()
    assert body.startswith("### prod\n")
    assert "✓ <code>stillwater check prod</code>" in body
    assert "✓ <code>stillwater estimate prod</code>" in body
    assert "USD" in body
    assert (own / "summary").read_text() == body


def test_a_description_that_is_wrong_fails_the_step_and_the_comment_says_why(own: Path) -> None:
    described = own / "own" / "clusters" / "prod.yaml"
    described.write_text(described.read_text().replace("eu-west-1a", "us-east-1a", 1))
    code, said = commented(own)
    assert code == 1
    body = Path(f"{said}.body").read_text()
    assert "✗ <code>stillwater check prod</code>" in body
    assert "us-east-1a" in body


def test_output_cannot_leave_its_fence(own: Path) -> None:
    said = "~~~~\n~~~~~~\n</details>\n# Approved\n"
    _, told = commented(own, f"#!/bin/sh\ncat <<'END'\n{said}END\n")
    body = Path(f"{told}.body").read_text().splitlines()
    fences = [number for number, line in enumerate(body) if set(line) == {"~"}]
    longest = max(len(body[number]) for number in fences)
    opened, closed, *_ = [number for number in fences if len(body[number]) == longest]
    assert body[opened + 1 : closed] == said.splitlines()


def test_a_file_whose_name_is_no_environments_ends_the_step(own: Path) -> None:
    (own / "own" / "clusters" / "# Approved.yaml").write_text("")
    code, _ = commented(own)
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
    "path",
    [*OURS, TEMPLATE, TEMPLATE.with_name("fleet-workflow.yaml"), REPOSITORY / "action.yaml"],
    ids=lambda path: path.name,
)
def test_an_action_of_others_is_named_by_its_commit_and_no_token_is_kept(path: Path) -> None:
    text = path.read_text()
    used = re.findall(r"uses: (?!\./)(.*)", text)
    assert used
    assert all(re.fullmatch(r"\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each) for each in used)
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")
    assert "pull_request_target" not in text
