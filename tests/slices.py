"""Chooses a day's share of the long tests, and says what each took: pytest -p tests.slices -m long

Tests of one group (tests/integration/conftest.py) share a worker, and whatever the first of them
sets up. A slice takes as long as its longest group, or as all of it on every worker. A week has
every test once; where a slice would be longer than LIMIT_SECONDS, the cycle has more days.
seconds.json holds what was measured, KEEP=1 adds to it; what is not there counts as the median.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

SECONDS = Path(__file__).with_name("seconds.json")
WEEK, LIMIT_SECONDS, WORKERS = 7, 720.0, 2
# For as long as nothing is measured.
USUAL_SECONDS = 60.0
_took: defaultdict[str, float] = defaultdict(float)


def cycle(groups: Mapping[str, str], kept: Mapping[str, float]) -> list[list[str]]:
    """Return each day's tests, of tests and their groups; the longest tests choose first."""
    usual = statistics.median([kept[test] for test in groups if test in kept] or [USUAL_SECONDS])

    def length(tests: Iterable[str]) -> tuple[float, float]:
        workers: dict[str, float] = {}
        for test in tests:
            group = groups[test]
            workers.setdefault(group, kept.get(group, 0.0))
            workers[group] += kept.get(test, usual)
        total = sum(workers.values())
        return max(total / WORKERS, *workers.values()), total

    order = sorted(groups, key=lambda test: (-kept.get(test, usual), test))
    for days in range(WEEK, max(WEEK, len(groups)) + 1):
        slices: list[list[str]] = [[] for _ in range(days)]
        for test in order:
            least = min(range(days), key=lambda day: length([*slices[day], test]))
            slices[least].append(test)
        if all(len(each) < 2 or length(each)[0] <= LIMIT_SECONDS for each in slices):
            break
    return slices


def read() -> dict[str, float]:
    """Return the seconds of each test, and by its name those a group takes to begin."""
    return dict(json.loads(SECONDS.read_text())) if SECONDS.exists() else {}


def pytest_configure() -> None:
    """Let every worker have the same day, though midnight comes."""
    os.environ.setdefault("DAY", str(datetime.now(UTC).toordinal()))


# After -m has deselected, and the groups are known.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the day's tests, and say which they are."""
    named = {item.nodeid.partition("@")[0]: item for item in items}
    marks = {test: item.get_closest_marker("xdist_group") for test, item in named.items()}
    slices = cycle({test: mark.args[0] if mark else "" for test, mark in marks.items()}, read())
    number = int(os.environ["DAY"]) % len(slices)
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
        with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            # A worker's standard output is not its own.
            sys.stderr.write(
                f"Long tests, slice {number} of {len(slices)} by the day:\n"
                + "".join(f"   {test}\n" for test in slices[number])
            )
    items[:] = [item for test, item in named.items() if test in slices[number]]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up a test's seconds; the first of a group sets up what the group shares."""
    test, _, group = report.nodeid.partition("@")
    begins = report.when == "setup" and group not in _took
    _took[group if begins else test] += report.duration


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Say what each test took, and keep it if asked."""
    stats = terminalreporter.stats
    bad = [*stats.get("failed", []), *stats.get("error", [])]
    # A group whose test failed may not have begun whole; a test that was interrupted did not end.
    passed, failed = (
        {part for each in some for part in each.nodeid.split("@")}
        for some in (stats.get("passed", []), bad)
    )
    took = {name: round(_took[name]) for name in sorted(passed - failed)}
    for name, seconds in took.items():
        terminalreporter.write_line(f"{seconds:>5} s  {name}")
    if os.environ.get("KEEP"):
        SECONDS.write_text(json.dumps({**read(), **took}, indent=1, sort_keys=True) + "\n")
