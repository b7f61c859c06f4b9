"""tests.every_case: every case of a table is tried, and a failure names each that fails."""

from __future__ import annotations

import pytest

from tests.every_case import every_case

TRIED: list[int] = []


@every_case("number", [1, 2, 3])
def over_numbers(number: int) -> None:
    TRIED.append(number)
    assert number == 2, "is not two"


@every_case(("left", "right"), [(1, 1), pytest.param(1, 2, id="apart")], ids=["same", "other"])
def over_pairs(left: int, right: int, *, request: object = None) -> None:
    with pytest.raises(ZeroDivisionError):
        assert left // (left - right)


def test_every_case_is_tried_and_each_that_fails_is_named() -> None:
    TRIED.clear()
    with pytest.raises(AssertionError) as failed:
        over_numbers()
    assert TRIED == [1, 2, 3]
    lines = [line for line in str(failed.value).splitlines() if line.startswith(("[", "2"))]
    assert lines[0] == "2 of 3 cases fail:"
    assert [line.partition(" ")[0] for line in lines[1:]] == ["[1]", "[3]"]
    assert "is not two" in lines[1]


def test_a_case_that_raises_nothing_where_it_should_is_a_failure_with_its_name() -> None:
    with pytest.raises(AssertionError, match=r"\[apart\] Failed: DID NOT RAISE"):
        over_pairs()


def test_a_table_without_a_case_fails() -> None:
    @every_case("number", [])
    def nothing(number: int) -> None:
        """Never called."""

    with pytest.raises(AssertionError, match="no case"):
        nothing()


def test_cases_may_be_found_when_the_test_runs() -> None:
    found: list[int] = []

    @every_case("number", lambda: found)
    def fails(number: int) -> None:
        raise ValueError(number)

    found.append(7)
    with pytest.raises(AssertionError, match=r"\[7\] ValueError: 7"):
        fails()


def test_cases_of_one_name_do_not_hide_each_other() -> None:
    @every_case("number", [1, 2], ids=["same", "same"])
    def fails(number: int) -> None:
        raise ValueError(number)

    with pytest.raises(AssertionError, match="2 of 2 cases fail"):
        fails()


@every_case("number", [1, 2])
def test_fixtures_are_handed_on(number: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert tmp_path_factory.getbasetemp().exists()
    assert number
