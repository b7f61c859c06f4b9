"""What selectors of Kubernetes' match."""

from __future__ import annotations

from typing import Any

import pytest

from core.ground.placement import is_selected

LABELS = {"app": "kafka", "cpu": "8", "zone": "a"}


def expression(operator: str, key: str = "cpu", *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "kafka"}}, True),
        ({"matchLabels": {"app": "other"}}, False),
        (expression("In", "zone", "a", "b"), True),
        (expression("NotIn", "zone", "a"), False),
        (expression("Exists", "zone"), True),
        (expression("DoesNotExist", "zone"), False),
        (expression("Gt", "cpu", "4"), True),
        (expression("Lt", "cpu", "4"), False),
        (expression("Gt", "app", "4"), False),
        (expression("AnotherDay"), True),
    ],
)
def test_a_selector_takes_whom_it_says_and_nobody_by_a_label_that_is_no_number(
    selector: dict[str, Any] | None, wanted: bool
) -> None:
    assert is_selected(LABELS, selector) is wanted
