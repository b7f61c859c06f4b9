"""cli.project.release: what is told to be installed is this very release, never its namesake."""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path

import pytest
from rich.console import Console

from cli.project import init as command
from cli.project import release
from cli.project.init import Given
from cli.project.release import Origin
from infra.spec import ROOT
from tests.every_case import every_case

WHEEL = "stillwater_kafka-1.2.3-py3-none-any.whl"
ADDRESS = f"https://wheels.example.com/a/{WHEEL}"


def from_file(path: Path, version: str = "1.2.3") -> Origin:
    return release.parse_origin(version, json.dumps({"url": path.as_uri(), "archive_info": {}}))


@pytest.mark.parametrize(
    ("direct_url", "line", "report", "twin"),
    [
        (
            None,
            "stillwater-kafka==1.2.3",
            ["stillwater-kafka[report]==1.2.3"],
            ["stillwater-kafka[twin]==1.2.3"],
        ),
        (
            {"url": f"file:///a%20b/{WHEEL}", "archive_info": {}},
            f"./wheels/{WHEEL}",
            [f"/a b/{WHEEL}[report]"],
            [f"/a b/{WHEEL}[twin]", "/a b/stillwater_kafka_twin-1.2.3-py3-none-any.whl"],
        ),
        (
            {"url": ADDRESS, "archive_info": {"hashes": {"sha256": "0"}}},
            f"stillwater-kafka @ {ADDRESS}",
            [f"stillwater-kafka[report] @ {ADDRESS}"],
            [f"stillwater-kafka[twin] @ {ADDRESS}", ADDRESS.replace("a-1", "a_twin-1")],
        ),
        (
            {"url": "file:///src", "dir_info": {"editable": True}},
            f"./wheels/{WHEEL}",
            ["/src[report]"],
            ["/src[twin]", "/src/local"],
        ),
    ],
    ids=["index", "file", "address", "checkout"],
)
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
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_wheel_is_kept_where_requirements_name_it(tmp_path: Path, wheel: Path) -> None:
    said = init(tmp_path / "own", from_file(wheel))
    pins = (tmp_path / "own" / "requirements.txt").read_text()
    (line,) = [line for line in pins.splitlines() if not line.startswith("#")]
    assert (tmp_path / "own" / line).read_bytes() == wheel.read_bytes()
    assert "`wheels/`" in (tmp_path / "own" / "README.md").read_text()
    assert "Put" not in said


def test_a_wheel_that_is_gone_is_asked_for(tmp_path: Path, wheel: Path) -> None:
    wheel.unlink()
    said = init(tmp_path / "own", from_file(wheel))
    assert f"Put {WHEEL}" in said


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
