"""The fault matrix: one row per fault, each with what happens and how it ends.

Rows whose test runs on the shared cluster with real nodes, pods and brokers name it; the others run
on a World (tests/integration/faults/world.py). docs/reference/faults.md shows the rows.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.integration.faults.world import World

Run = Callable[[World], None]


@dataclass(frozen=True, slots=True)
class Case:
    """A fault; `run` makes it happen, and the cluster must be whole when it returns."""

    name: str
    fault: str
    answer: str
    end: str
    run: Run


@dataclass(frozen=True, slots=True)
class TwinRow:
    """A fault that a test of its own shows on the shared cluster."""

    test: str  # file::function below tests/integration
    fault: str
    answer: str
    end: str


CASES: list[Case] = []


def case(fault: str, answer: str, end: str) -> Callable[[Run], Run]:
    """Add a function to the matrix."""

    def add(run: Run) -> Run:
        CASES.append(Case(run.__name__, fault, answer, end, run))
        return run

    return add
