"""Listings of an API server that forgets, or does not end."""

from __future__ import annotations

from typing import Any

import pytest

from cli.survey import tools
from infra.eks.api import ApiError
from tests.unit.cli.survey.others import checks, own, surveyed


def test_a_listing_whose_pages_expire_is_begun_anew() -> None:
    """A large cluster's API server forgets where a slow reader was."""
    world = own()
    answer = world._request

    def request(method: str, path: str, body: Any, query: dict[str, Any], **named: Any) -> Any:
        if "continue" in query:
            raise ApiError(410, "Expired", "the continue parameter is too old")
        whole = answer(method, path, body, query, **named)
        if path.endswith("/nodes") and "limit" in query:
            return {"items": whole["items"][:2], "metadata": {"continue": "next"}}
        return whole

    world._request = request  # type: ignore[method-assign]
    assert checks(world) == set()


def test_a_listing_without_end_ends() -> None:
    world = own()
    answer = world._request

    def request(method: str, path: str, body: Any, query: dict[str, Any], **named: Any) -> Any:
        found = answer(method, path, body, query, **named)
        return {**found, "metadata": {"continue": "same"}} if path.endswith("/nodes") else found

    world._request = request  # type: ignore[method-assign]
    (said,) = surveyed(world)
    assert "the same next page" in said.evidence


def test_who_may_list_the_budgets_of_one_namespace_alone_is_told_of_these() -> None:
    world = own()
    asked = world._request

    def request(method: str, path: str, *given: Any, **named: Any) -> Any:
        if path.endswith("/v1/poddisruptionbudgets"):
            raise ApiError(403, "Forbidden", "no")
        return asked(method, path, *given, **named)

    world._request = request  # type: ignore[method-assign]
    assert [each.name for each in tools.budgets(world, "shop-kafka")] == ["orders-kafka"]
    with pytest.raises(ApiError):
        tools.budgets(world, None)
