"""core.ground.errors: one family, complete sentences."""

from __future__ import annotations

import pytest

from core.ground.errors import Conflict, InvalidInput, MissingPrerequisite, StillwaterError


@pytest.mark.parametrize("kind", [InvalidInput, MissingPrerequisite, Conflict])
def test_every_error_is_of_the_family(kind: type[Exception]) -> None:
    assert issubclass(kind, StillwaterError)


def test_invalid_input_keeps_every_problem_and_shows_one_per_line() -> None:
    error = InvalidInput(problem for problem in ["First.", "Second."])
    assert error.problems == ("First.", "Second.")
    assert str(error) == "First.\nSecond."
