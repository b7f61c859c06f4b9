"""A doctor of clusters that exist, and handlers that see our hooks on the machines themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.checks.test_adopted_drift import NTH, told

LOCAL = replace(NTH, title="ops/nth-imds", queue_mode=False, queue_url=None)


@pytest.mark.parametrize(
    ("level", "handler", "said"),
    [
        ("act", replace(LOCAL, sees_hooks=True), 1),
        ("act", replace(LOCAL, sees_hooks=True, drains=False), 0),
        # Spot's notices and the like are no hooks of ours.
        ("act", LOCAL, 0),
        ("gate", replace(LOCAL, sees_hooks=True), 0),
    ],
    ids=["it drains", "it only cordons", "other notices", "no hooks yet"],
)
def test_a_handler_that_drains_what_is_held_is_found_where_hooks_are_ours(
    level: str, handler: object, said: int
) -> None:
    at_once = "by the instance metadata: none, found ops/nth-imds drains at once what is held"
    assert told(level, handlers=(NTH, handler)) == [f"lifecycle draining {at_once}"] * said
