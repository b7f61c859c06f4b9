"""The page of the fault matrix shows the rows that are tested, and every test it names exists."""

from __future__ import annotations

from tests.every_case import every_case
from tests.integration.faults import matrix
from tests.integration.faults.table import TwinRow

INTEGRATION = matrix.PAGE.parents[2] / "tests" / "integration"


def test_the_page_shows_the_matrix() -> None:
    write = "python -m tests.integration.faults.matrix"
    assert matrix.PAGE.read_text() == matrix.page(), f"run `{write}`"


def test_every_case_has_a_name_and_a_sentence_of_its_own() -> None:
    assert len({case.name for case in matrix.CASES}) == len(matrix.CASES) >= 25
    assert len({case.fault for case in matrix.CASES}) == len(matrix.CASES)


@every_case("row", matrix.TWIN_ROWS, ids=lambda row: row.test)
def test_a_test_of_the_last_table_exists(row: TwinRow) -> None:
    file, _, function = row.test.partition("::")
    assert f"\ndef {function}(" in (INTEGRATION / file).read_text()
