"""What happens to a drain of our own between its decision and the eviction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_own_drain import OPERATOR, station
from tests.unit.handlers.test_pause import paused
from tests.unit.handlers.walks import replace_machine


def changed(made: Station) -> None:
    """Another invocation takes the incident over."""
    made.ledger.put(made.ledger.get(OLD))  # type: ignore[arg-type]


def let_go(made: Station) -> None:
    """The lease is lost: its table was restored to an older moment, and another has it."""
    made.ledger.drop_lease(OLD, ended=True)
    made.ledger.take_lease("i-0b", made.now, 900, node_id=20)


@pytest.mark.parametrize(
    "meanwhile", [paused, changed, let_go], ids=["a pause", "another invocation", "no lease"]
)
def test_what_comes_between_decision_and_eviction_keeps_kafka(
    meanwhile: Callable[[Station], object],
) -> None:
    made = replace_machine(station(OPERATOR))
    assert made.cluster.evicted == ["operator"]
    real: Callable[..., Any] = made.ledger.take_lease

    def slow(*arguments: Any, **named: Any) -> Any:
        made.ledger.take_lease = real  # type: ignore[method-assign]
        granted = real(*arguments, **named)
        meanwhile(made)
        return granted

    made.ledger.take_lease = slow  # type: ignore[method-assign]
    made.tick()
    assert made.cluster.evicted == ["operator"]
