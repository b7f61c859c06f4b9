"""The specification of incidents, lease and hooks, checked by Alloy where it is at hand."""

from pathlib import Path

import pytest

from tests.spec import check
from tests.spec.mutants import MUTANTS, Mutant


@pytest.fixture(autouse=True)
def alloy() -> None:
    """Alloy comes from Maven's repository; where it does not, what is lacking is the reason."""
    problem = check.missing()
    if problem:
        pytest.skip(problem)


def test_every_promise_of_the_specification_holds_in_its_scope() -> None:
    found = check.verdicts()
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert {"one_party_out", "never_two_holders", "gate_after_return"} <= set(found)


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_promise_notices_a_break_of_the_specification(mutant: Mutant, tmp_path: Path) -> None:
    assert check.verdicts(mutant.written(tmp_path))[mutant.broken]
