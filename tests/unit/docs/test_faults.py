"""The page of the fault matrix shows the rows that are tested, and every test it names exists."""

from __future__ import annotations

import functools
from typing import Any

from tests.every_case import every_case


@functools.cache
def matrix() -> Any:
    """The matrix, with the twin's tests: seconds for every worker that only collects this file."""
    from tests.integration.faults import matrix  # noqa: PLC0415

    return matrix


def test_the_page_shows_the_matrix() -> None:
    write = "python -m tests.integration.faults.matrix"
    assert matrix().PAGE.read_text() == matrix().page(), f"run `{write}`"


def test_every_case_has_a_name_and_a_sentence_of_its_own() -> None:
    cases = matrix().CASES
    assert len({case.name for case in cases}) == len(cases) >= 25
    assert len({case.fault for case in cases}) == len(cases)


@every_case("row", lambda: matrix().TWIN_ROWS, ids=lambda row: row.test)
def test_a_test_of_the_last_table_exists(row: Any) -> None:
    integration = matrix().PAGE.parents[2] / "tests" / "integration"
    file, _, function = row.test.partition("::")
    assert f"\ndef {function}(" in (integration / file).read_text()
