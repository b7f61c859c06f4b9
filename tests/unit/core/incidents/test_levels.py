"""A level of adoption allows what writes our own ledger, queues and thread; more only from act."""

from __future__ import annotations

from typing import get_args

import pytest

from core.incidents.levels import OF_OURS, Level, allowed, withheld
from core.incidents.observation import Action, Heartbeat, Page, SetDesired, TakeLease


@pytest.mark.parametrize("kind", get_args(Action), ids=lambda kind: kind.__name__)
def test_below_act_only_what_is_ours_is_touched(kind: type[object]) -> None:
    action = object.__new__(kind)
    below: tuple[Level, ...] = ("watch", "gate")
    assert {allowed(action, level) for level in below} == {kind in OF_OURS}  # type: ignore[arg-type]
    assert allowed(action, "act")  # type: ignore[arg-type]


def test_what_is_withheld_keeps_its_order() -> None:
    decided = (TakeLease(), SetDesired(2), Page("key", "reason"), Heartbeat("drain"))
    assert withheld(decided, "watch") == (SetDesired(2), Heartbeat("drain"))
    assert withheld(decided, "act") == ()
