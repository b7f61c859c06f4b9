"""A level of adoption allows what writes our own ledger, queues and thread; more only from act."""

from __future__ import annotations

from typing import get_args

import pytest

from core.incidents.levels import OF_OURS, Level, allowed, level_of, withheld
from core.incidents.observation import Action, Heartbeat, Page, SetDesired, TakeLease


@pytest.mark.parametrize("kind", get_args(Action), ids=lambda kind: kind.__name__)
def test_below_act_only_what_is_ours_is_touched(kind: type[object]) -> None:
    action = object.__new__(kind)
    below: tuple[Level, ...] = ("watch", "gate")
    assert {allowed(action, level) for level in below} == {kind in OF_OURS}  # type: ignore[arg-type]
    assert allowed(action, "act")  # type: ignore[arg-type]


def test_a_machine_in_no_named_group_is_watched_by_whoever_acts() -> None:
    assert level_of("kafka-a", "act", {"kafka-a"}) == "act"
    assert {level_of(g, "act", {"kafka-a"}) for g in ("eks-workers-0a1b", None)} == {"gate"}
    assert level_of(None, "own", None) == "own"
    assert level_of("kafka-a", "watch", {"kafka-a"}) == "watch"


def test_what_is_withheld_keeps_its_order() -> None:
    decided = (TakeLease(), SetDesired(2), Page("key", "reason"), Heartbeat("drain"))
    assert withheld(decided, "watch") == (SetDesired(2), Heartbeat("drain"))
    assert withheld(decided, "act") == ()
