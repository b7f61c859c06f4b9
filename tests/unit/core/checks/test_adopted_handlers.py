"""A doctor of clusters that exist, and handlers that see our hooks on the machines themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.checks.adopted import findings
from tests.unit.core.checks.test_adopted_drift import FUNCTIONS, NTH, QUEUES, adopted, standing

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
    stands = standing(level, handlers=(NTH, handler))
    found = findings(adopted(level), stands, FUNCTIONS, QUEUES)
    assert [each.found for each in found] == ["ops/nth-imds drains at once what is held"] * said
