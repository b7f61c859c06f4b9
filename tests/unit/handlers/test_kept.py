"""handlers.store.kept: what is too long for the environment, read once at start."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import InvalidInput
from handlers.store.kept import complete

NAMED = {
    "STILLWATER_KEPT": "settings#loop-0123",
    "STILLWATER_LEDGER_TABLE": "incidents",
    "STILLWATER_REGION": "us-east-1",
}


class OneItem:
    """DynamoDB with one item, or none."""

    def __init__(self, variables: dict[str, str] | None) -> None:
        self.variables = variables
        self.asked: list[Any] = []

    def get_item(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked["Key"])
        if self.variables is None:
            return {}
        content = {name: {"S": value} for name, value in self.variables.items()}
        return {"Item": {"variables": {"M": content}}}


def completed(environment: dict[str, str], client: Any) -> dict[str, str]:
    return dict(complete(environment, client=client))


def test_what_is_kept_joins_the_environment() -> None:
    table = OneItem({"STILLWATER_EKS_CA": "LS0t"})
    assert completed(NAMED, table) == {**NAMED, "STILLWATER_EKS_CA": "LS0t"}
    assert table.asked == [{"pk": {"S": "settings#loop-0123"}}]


def test_what_a_person_sets_on_the_function_holds() -> None:
    by_hand = {**NAMED, "STILLWATER_EKS_CA": "mine"}
    assert completed(by_hand, OneItem({"STILLWATER_EKS_CA": "LS0t"})) == by_hand


def test_an_environment_that_names_nothing_asks_nobody() -> None:
    table = OneItem(None)
    assert completed({"A": "1"}, table) == {"A": "1"}
    assert table.asked == []


def test_an_item_that_is_gone_is_a_sentence() -> None:
    with pytest.raises(InvalidInput, match=r"incidents has no item settings#loop-0123.*pulumi up"):
        completed(NAMED, OneItem(None))
