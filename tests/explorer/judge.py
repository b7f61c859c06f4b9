"""Judges a mutant: the unit tests of the decisions first, then the explorer; who notices kills it.

Nothing of ours may be imported before: a mutant is read in place of its module.
"""

from __future__ import annotations

import contextlib
import io
import time
from dataclasses import dataclass

import pytest

from tests.explorer.mutants import load

_CORE, _HANDLERS = "tests/unit/core", "tests/unit/handlers"
# What decides about a node that leaves, quick ones first; the rest of the suite is not asked.
UNIT_TESTS = (
    *(f"{_CORE}/{folder}" for folder in ("incidents", "availability", "gate")),
    *(
        f"{_HANDLERS}/test_{name}.py"
        for name in (
            *("act", "held", "never_two_out", "in_place", "sick_and_rebooted_machines"),
            *("hooks_that_refuse", "planned", "loss", "observe", "tick"),
            *("sweep", "closed_events", "calls_and_records"),
            *("budgets", "gate", "refills_and_machines_ahead"),
        )
    ),
    f"{_HANDLERS}/adapters/test_kubernetes.py",
    "tests/unit/explorer/test_fault_histories.py",
)
# Properties of many examples, which the explorer's walks stand for here.
SLOW = (
    f"{_CORE}/incidents/test_in_any_order.py",
    f"{_CORE}/availability/test_parties.py",
    f"{_CORE}/availability/test_wholeness.py",
)


@dataclass(slots=True, eq=False)
class _First:
    """Remembers the first test that failed."""

    name: str = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid


def judged(name: str, walks: int = 300) -> dict[str, str | float]:
    """Return who killed a mutant, and by what; nobody's name is empty."""
    began = time.process_time()
    load(name)
    first = _First()
    ignored = (f"--ignore={path}" for path in SLOW)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = pytest.main(["-x", "-q", *ignored, *UNIT_TESTS], plugins=[first])
    if code and not first.name:
        raise RuntimeError(f"Mutant {name!r}: pytest ended with {code}, and no test failed.")
    killed_by, by = ("unit tests", first.name) if code else ("", "")
    if not code:
        from tests.explorer.hunt import broken  # noqa: PLC0415 - reads the mutant

        rules = broken(walks)
        killed_by, by = ("explorer", rules[0]) if rules else ("", "")
    spent = round(time.process_time() - began, 1)
    return {"mutant": name, "killed_by": killed_by, "by": by, "cpu_s": spent}
