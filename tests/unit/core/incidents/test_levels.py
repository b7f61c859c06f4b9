"""A level of adoption allows what writes our own ledger, queues and thread; more only from act."""

from __future__ import annotations

from typing import get_args

import pytest

from core.incidents.actions import (
    OF_OURS,
    Action,
    Heartbeat,
    Level,
    Page,
    Reach,
    SetDesired,
    TakeLease,
    is_allowed,
    withheld_actions,
)
from tests.every_case import every_case
from tests.unit.policies import policy_with


@every_case("kind", get_args(Action), ids=lambda kind: kind.__name__)
def test_below_act_only_what_is_ours_is_touched(kind: type[object]) -> None:
    action = object.__new__(kind)
    below: tuple[Level, ...] = ("watch", "gate")
    assert {is_allowed(action, level) for level in below} == {kind in OF_OURS}  # type: ignore[arg-type]
    assert is_allowed(action, "act")  # type: ignore[arg-type]


@pytest.mark.parametrize(("gated", "others"), [(True, "gate"), (False, "watch")])
def test_a_machine_in_no_named_group_is_left_to_others_by_whoever_acts(
    *, gated: bool, others: str
) -> None:
    acting = Reach("act", frozenset({"kafka-a"}), gated)
    assert acting.level_of("kafka-a") == "act"
    assert {acting.level_of(group) for group in ("eks-workers-0a1b", None)} == {others}
    assert Reach("watch", frozenset({"kafka-a"}), gated).level_of("kafka-a") == "watch"
    assert Reach().level_of(None) == "own"


@every_case(
    ("reach", "route"),
    [
        (Reach("watch"), "held"),
        (Reach("gate", frozenset(), gated=True), "asked"),
        (Reach("act", frozenset({"kafka-a"}), gated=True), "held"),
        (Reach("act", frozenset(), gated=True), "asked"),
        (Reach("act", frozenset()), "held"),
        (Reach(), "held"),
    ],
)
def test_nobody_is_sent_to_drain_where_the_gate_is_asked(reach: Reach, route: str) -> None:
    assert reach.policy("kafka-a", policy_with()).drain_route == route


def test_what_is_withheld_keeps_its_order() -> None:
    decided = (TakeLease(), SetDesired(2), Page("key", "reason"), Heartbeat("drain"))
    assert withheld_actions(decided, "watch") == (SetDesired(2), Heartbeat("drain"))
    assert withheld_actions(decided, "act") == ()
