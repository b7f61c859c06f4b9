"""Two ask the eviction gate at the same moment, and what the ledger says last is what counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.handlers.asking import Door

OTHER = "i-0b"


def first(door: Door, call: str, meanwhile: Callable[[], object]) -> None:
    """Let something happen directly before a call to the ledger."""
    real = getattr(door.station.ledger, call)

    def slow(*arguments: Any, **named: Any) -> Any:
        setattr(door.station.ledger, call, real)
        meanwhile()
        return real(*arguments, **named)

    setattr(door.station.ledger, call, slow)


@pytest.mark.parametrize("call", ["take_lease", "begin_drain"])
def test_a_lease_that_another_has_by_then_lets_nobody_through(door: Door, call: str) -> None:
    ledger = door.station.ledger

    def taken_over() -> None:
        ledger.drop_lease("i-0a")
        ledger.take_lease(OTHER, door.station.now, 900, node_id=20)

    first(door, call, taken_over)
    answer = door.ask()
    assert not answer.allowed
    assert OTHER in answer.reason
    assert [lease.holder for lease in ledger.leases()] == [OTHER]
    assert door.station.incident().forwarded_at is None


@pytest.fixture
def door() -> Door:
    made = Door()
    made.spare()
    return made
