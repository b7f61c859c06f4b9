"""The specification of incidents, lease and hooks, checked by Alloy where it is at hand."""

from __future__ import annotations

import pytest

from tests.spec import check


def test_every_promise_of_the_specification_holds_in_its_scope() -> None:
    problem = check.missing()
    if problem:
        pytest.skip(problem)
    found = check.verdicts()
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert {"at_most_one_out", "never_two_holders", "gate_after_return"} <= set(found)
