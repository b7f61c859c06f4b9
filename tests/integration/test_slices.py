"""Every long test has its day, the days are alike, and what fails is tried once more, alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import alone, slices

pytestmark = pytest.mark.integration
REPOSITORY = Path(__file__).parents[2]
ALONE = "Passed only when alone: it waits for the clock somewhere, mend that"
GROUPS = {f"test_{number}": f"group {number % 9}" for number in range(70)}


@given(
    st.dictionaries(st.sampled_from([*GROUPS]), st.sampled_from([*"abc"]), max_size=20),
    st.dictionaries(st.sampled_from([*GROUPS, *"abc"]), st.floats(0, 1000)),
)
def test_every_test_is_in_one_slice_of_a_week_or_more(
    groups: dict[str, str], kept: dict[str, float]
) -> None:
    found = slices.cycle(groups, kept)
    assert len(found) >= 7
    assert sorted(test for each in found for test in each) == sorted(groups)


def test_slices_are_alike_and_new_tests_count_as_the_usual_one() -> None:
    kept = {test: 20.0 + number for number, test in enumerate(GROUPS) if number % 5}
    found = slices.cycle(GROUPS, kept)
    loads = [sum(kept.get(test, 54.5) for test in each) for each in found]
    assert max(loads) < 1.1 * min(loads)


def test_the_cycle_has_more_days_where_a_week_is_too_short_and_one_long_test_has_its_own() -> None:
    kept = {**dict.fromkeys(GROUPS, 120.0), "test_0": 5000.0, "group 1": 300.0}
    found = slices.cycle(GROUPS, kept)
    assert ["test_0"] in found
    for each in found:
        if each != ["test_0"]:
            assert sum(kept[test] for test in each) <= slices.WORKERS * slices.LIMIT_SECONDS
            beside = [test for test in each if GROUPS[test] == "group 1"]
            assert len(beside) <= (slices.LIMIT_SECONDS - kept["group 1"]) // 120


def test_a_day_runs_its_slice_alone_says_which_and_what_each_took(tmp_path: Path) -> None:
    marked = "import pytest\n@pytest.mark.xdist_group('g{0}')\ndef test_{0}(): pass\n"
    (tmp_path / "test_long.py").write_text("".join(marked.format(n) for n in range(7)))
    one = ("-n", "1", "--dist", "loadgroup", "-p", "tests.slices", "-p", "no:cacheprovider")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *one, "-c", "/dev/null", "--rootdir", tmp_path, tmp_path],
        env={**os.environ, "DAY": "10", "KEEP": ""},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "slice 3 of 7 by the day:\n   test_long.py::test_3\n" in ran.stderr
    assert "    0 s  test_long.py::test_3\n" in ran.stdout
    assert "1 passed" in ran.stdout


@pytest.mark.parametrize(
    ("again", "code", "says"),
    [
        ("", 0, f"{ALONE}: a, b c\n"),
        ("b c\n", 1, f"Failed beside others and alone: b c\n{ALONE}: a\n"),
        ("a\nb c\n", 1, "Failed beside others and alone: a, b c\n"),
        ("", 2, ""),
    ],
)
def test_what_failed_is_run_once_more_and_both_outcomes_are_said(
    again: str, code: int, says: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def run(command: list[str], **_: object) -> SimpleNamespace:
        assert command[1:] == ["-m", "pytest", "a", "b c"]
        alone.LIST.write_text(again)
        return SimpleNamespace(returncode=code)

    monkeypatch.setattr(alone, "LIST", tmp_path / "failed.txt")
    monkeypatch.setattr(subprocess, "run", run)
    alone.add("a")
    alone.add("b c")
    assert alone.main() == code
    assert capsys.readouterr().out == f"Failed beside others, run again, alone: a, b c\n{says}"


def test_nothing_is_run_again_where_nothing_or_much_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alone, "LIST", tmp_path / "failed.txt")
    assert alone.main() == 1
    for test in "abcd":
        alone.add(test)
    assert alone.main() == 1
