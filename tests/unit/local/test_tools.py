"""local.tools: keys, prerequisites and the cache, without building anything."""

import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from core.ground.errors import MissingPrerequisite, StillwaterError
from local.tools import build, prerequisites
from local.tools.build import BUILD, Progress, chart_path, making, tool_path
from local.tools.catalogue import (
    BINARIES,
    EVERY,
    FOR_TESTS,
    TOOLS,
    Tool,
)
from tests.every_case import every_case

ETCD = next(tool for tool in TOOLS if tool.name == "etcd")
GOOD = {
    "go": "go version go1.25.0 linux/amd64\n",
    "java": 'openjdk version "17.0.15" 2025-04-15\n',
    "mvn": "Apache Maven 3.8.7\n",
}


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of the test's own, and no pulumi of the user's."""
    monkeypatch.setenv("STILLWATER_CACHE", str(tmp_path))
    monkeypatch.delenv(BUILD, raising=False)  # `make test` says "never"; these tests build.
    monkeypatch.setattr(prerequisites, "own_pulumi", lambda: None)
    return tmp_path


# Catalogue


@pytest.mark.parametrize("tool", EVERY, ids=lambda tool: tool.name)
def test_a_tools_folder_pins_what_is_built_from_it(tool: Tool) -> None:
    go_mod = (tool.folder / "go.mod").read_text()
    assert tool.version[0].isdigit()
    assert all(f"{package}\n" in go_mod for package in tool.packages.values())
    assert (tool.folder / "go.sum").exists()


def test_a_replaced_module_has_the_version_of_its_replacement() -> None:
    controller = next(tool for tool in TOOLS if tool.name == "aws-load-balancer-controller")
    assert controller.version == "0.0.0-20260423195125-93ff3b5fdaad"


def test_kubernetes_and_pulumi_are_told_their_version() -> None:
    flags = {tool.name: tool.flags for tool in TOOLS}
    assert "gitVersion=v1.35.4 " in flags["kubernetes"]
    assert flags["kubernetes"].endswith("gitMinor=35")
    assert flags["pulumi"].endswith("version.Version=3.220.0")


def test_the_key_follows_sources_and_flags(tmp_path: Path) -> None:
    tool = replace(ETCD, folder=Path(shutil.copytree(ETCD.folder, tmp_path / "copy")))
    assert tool.key == ETCD.key
    assert replace(tool, link_flags="-X a=b").key != tool.key
    assert replace(tool, binaries=(replace(tool.binaries[0], estimate_seconds=9),)).key == tool.key
    assert replace(tool, build_tags=("small",)).key != tool.key
    with (tool.folder / "go.sum").open("a") as go_sum:
        go_sum.write("\n")
    assert tool.key != ETCD.key


# Prerequisites


def checked(**said: str | None) -> list[str]:
    answers = {**GOOD, **said}
    return prerequisites.check_prerequisites(lambda command: answers[command[0]])


@every_case(
    ("said", "words"),
    [
        ({"go": None}, ("Go 1.25", "no `go` is on the PATH", "go.dev")),
        ({"go": "go version go1.24.9 linux/amd64"}, ("Go 1.25", "1.24.9", "go.dev")),
        ({"java": 'java version "1.8.0_202"'}, ("Java 17", "1.8.0")),
        ({"mvn": "Segmentation fault"}, ("Maven 3.6", "does not tell")),
    ],
)
def test_a_missing_prerequisite_is_one_sentence(
    said: dict[str, str | None], words: tuple[str, ...]
) -> None:
    (sentence,) = checked(**said)
    for word in words:
        assert word in sentence
    assert sentence.endswith(".")


def test_every_missing_prerequisite_is_listed() -> None:
    assert len(checked(go=None, java=None, mvn=None)) == 3


def test_only_what_is_asked_for_is_required() -> None:
    prerequisites.require("Java", run=lambda command: GOOD["java"] if "java" in command else None)
    with pytest.raises(MissingPrerequisite, match=r"Go 1\.25"):
        prerequisites.require("Go", run=lambda _: None)


def test_an_old_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.version_info", (3, 10, 4))
    (sentence,) = checked()
    assert "Python 3.11 or newer is needed and this is 3.10.4" in sentence


@pytest.mark.parametrize(
    ("version", "taken"),
    [("v3.220.0", True), ("v3.300.1", True), ("v3.219.9", False), ("not a version", False)],
)
def test_the_users_pulumi_is_taken_when_it_is_new_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, taken: bool
) -> None:
    monkeypatch.undo()
    program = tmp_path / "pulumi"
    program.write_text(f"#!/bin/sh\necho {version}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    prerequisites.own_pulumi.cache_clear()
    try:
        assert prerequisites.own_pulumi() == (str(program) if taken else None)
    finally:
        prerequisites.own_pulumi.cache_clear()


# Paths


def test_what_only_a_test_runs_is_no_part_of_the_set_up() -> None:
    assert not {tool.name for tool in FOR_TESTS} & {tool.name for tool in TOOLS}
    assert BINARIES["promtool"] in FOR_TESTS


@pytest.mark.parametrize(
    ("look", "name"),
    [
        pytest.param(tool_path, "helm", id="program"),
        pytest.param(chart_path, "aws-node-termination-handler", id="chart"),
    ],
)
def test_what_was_not_built_is_said_with_the_remedy(look: Callable[[str], Path], name: str) -> None:
    with pytest.raises(
        StillwaterError, match=r"has not been built yet .* run `python -m local setup`"
    ):
        look(name)


def test_the_users_own_pulumi_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "own_pulumi", lambda: "/opt/pulumi")
    assert tool_path("pulumi") == Path("/opt/pulumi")
    seen: list[Progress] = []
    build.build(BINARIES["pulumi"], seen.append)
    assert [progress.state for progress in seen] == ["own"]


def test_a_cached_tool_needs_no_go(monkeypatch: pytest.MonkeyPatch) -> None:
    ETCD.home.mkdir(parents=True)
    monkeypatch.setenv("PATH", "")
    seen: list[Progress] = []
    build.build(ETCD, seen.append)
    assert [(p.name, p.state) for p in seen] == [("etcd", "cached")]


def test_building_without_go_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingPrerequisite, match="no `go` is on the PATH"):
        build.build(ETCD)


# A compiler that ends only once somebody has asked for the next program's sources.
SLOW_GO = """#!/bin/sh
echo "$@" >> "$ASKED"
case "$1" in
  version) echo "go version go1.25.0 linux/amd64" ;;
  build) for _ in $(seq 100); do grep -q "^list" "$ASKED" && exit 0; sleep 0.1; done; exit 1 ;;
esac
"""


def test_go_fetches_the_next_programs_sources_while_one_compiles(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    go, asked = tmp_path / "bin" / "go", tmp_path / "asked"
    go.parent.mkdir()
    go.write_text(SLOW_GO)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("ASKED", str(asked))
    promtool = next(tool for tool in FOR_TESTS if tool.name == "promtool")
    build.build_all(tools=(ETCD, promtool))
    lines = asked.read_text().splitlines()
    (listed,) = [line for line in lines if line.startswith("list")]
    assert listed == (
        "list -deps -mod=readonly -tags remove_all_sd "
        "github.com/prometheus/prometheus/cmd/promtool "
        "github.com/prometheus/prometheus/cmd/prometheus"
    )
    assert sum(line.startswith("build") for line in lines) == 3


# The cache


def fail_if_waiting() -> None:
    raise AssertionError("nobody else builds")


def test_a_directory_appears_only_when_it_is_complete(cache: Path) -> None:
    home = cache / "tools" / "thing-1-abc"
    with making(home, fail_if_waiting) as staging:
        assert staging is not None
        (staging / "file").write_text("x")
        assert not home.exists()
    assert (home / "file").read_text() == "x"
    with making(home, fail_if_waiting) as staging:
        assert staging is None


def test_nothing_stays_of_a_failed_making(cache: Path) -> None:
    home = cache / "tools" / "thing-1-abc"

    def fail() -> None:
        with making(home, fail_if_waiting):
            raise StillwaterError("The build failed.")

    with pytest.raises(StillwaterError):
        fail()
    assert os.listdir(home.parent) == ["thing-1-abc.lock"]  # noqa: PTH208  # hidden ones too


def test_what_a_killed_maker_left_is_cleared(cache: Path) -> None:
    home = cache / "tools" / "thing-1-abc"
    (home.parent / ".thing-1-abc.left").mkdir(parents=True)
    with making(home, fail_if_waiting):
        pass
    assert not (home.parent / ".thing-1-abc.left").exists()


def test_a_second_maker_waits_and_finds_it_made(cache: Path) -> None:
    home = cache / "tools" / "thing-1-abc"
    waiting, found = threading.Event(), []

    def second() -> None:
        with making(home, waiting.set) as staging:
            found.append(staging)

    thread = threading.Thread(target=second)
    with making(home, fail_if_waiting):
        thread.start()
        assert waiting.wait(10)
    thread.join(10)
    assert found == [None]


def test_nothing_is_built_where_somebody_said_that_everything_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(BUILD, "never")
    made = tmp_path / "made"
    made.mkdir()
    with making(made, lambda: None) as staging:
        assert staging is None
    with (
        pytest.raises(StillwaterError, match="make test-tools"),
        making(tmp_path / "missing", lambda: None),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["made"]
