"""What the gate reports of Evictions, from objects as the API has them."""

from __future__ import annotations

from typing import Any

import pytest

from core.gate.asked import GateAnswer, Wish
from core.gate.responding import RESPONDER, EvictionTurn, calls, report

STARTED = "2026-11-23T10:00:00Z"
AT = 1795428000.0  # the same moment
POD = "0a0a0a0a-0000-4000-8000-000000000010"
NO, YES = GateAnswer(allowed=False, reason="Not yet."), GateAnswer(allowed=True, reason="It may.")


def eviction(
    state: str = "Active", intent: str = "Eviction", **own: Any
) -> dict[str, dict[str, Any]]:
    return {
        "metadata": {"name": "e-1", "namespace": "kafka", "uid": "u-1"},
        "spec": {"target": {"pod": {"name": "orders-a-10", "uid": POD}}},
        "status": {
            "requesters": [{"name": "karpenter.sh/drift", "intent": intent}],
            "targetResponders": [
                {"name": RESPONDER, "priority": 20000, "state": state},
                {
                    "name": "imperative-eviction.k8s.io/evictor",
                    "priority": 100,
                    "state": "Inactive",
                },
            ],
            "responders": [
                {"name": RESPONDER, "startTime": STARTED, **own},
                {"name": "imperative-eviction.k8s.io/evictor"},
            ],
        },
    }


def called(**own: Any) -> EvictionTurn:
    (found,) = calls([eviction(**own)])
    return found


def test_a_turn_is_asked_about_as_an_eviction_by_whoever_requested_it() -> None:
    asked = called().asked
    assert (asked.wish, asked.name, asked.namespace) == (Wish.EVICT, "orders-a-10", "kafka")
    assert asked.username == "karpenter.sh/drift"
    assert not asked.dry_run


@pytest.mark.parametrize("state", ["Inactive", "Interrupted", "Canceled", "Completed"])
def test_out_of_turn_nothing_is_answered(state: str) -> None:
    assert calls([eviction(state)]) == ()


def test_what_everybody_has_withdrawn_is_nobodys_wish() -> None:
    assert calls([eviction(intent="Withdrawn")]) == ()


def test_a_turn_that_is_completed_is_over() -> None:
    assert calls([eviction(completionTime=STARTED)]) == ()


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"status": {"targetResponders": "x"}},
        {**eviction(), "spec": {"target": {}}},
        eviction(startTime="soon"),
    ],
    ids=["empty", "no_list", "no_pod", "no_time"],
)
def test_what_cannot_be_read_is_nobodys_turn(broken: dict[str, Any]) -> None:
    assert calls([broken]) == ()


def test_a_denial_is_a_heartbeat_with_its_sentence() -> None:
    assert report(called(), POD, NO, AT + 5) == {
        "name": RESPONDER,
        "heartbeatTime": "2026-11-23T10:00:05Z",
        "message": "Not yet.",
    }


def test_heartbeats_keep_the_distance_that_the_api_asks_for() -> None:
    call = called(heartbeatTime="2026-11-23T10:01:00Z")
    assert report(call, POD, NO, AT + 89) is None
    assert report(call, POD, NO, AT + 90) is not None


def test_a_yes_ends_the_turn_however_fresh_the_heartbeat_is() -> None:
    call = called(heartbeatTime="2026-11-23T10:01:00Z")
    written = report(call, POD, YES, AT + 61)
    assert written is not None
    assert written["completionTime"] == written["heartbeatTime"] == "2026-11-23T10:01:01Z"


@pytest.mark.parametrize("uid", [None, "another"])
def test_a_pod_that_is_gone_ends_the_turn(uid: str | None) -> None:
    written = report(called(), uid, None, AT + 5)
    assert written is not None
    assert written["message"] == "Pod orders-a-10 is gone."
    assert "completionTime" in written


def test_a_clock_that_is_behind_writes_no_time_before_the_turn_began() -> None:
    written = report(called(), POD, NO, AT - 3)
    assert written is not None
    assert written["heartbeatTime"] == STARTED


def test_a_message_is_as_long_as_the_api_takes() -> None:
    written = report(called(), POD, GateAnswer(allowed=False, reason="x" * 5000), AT)
    assert written is not None
    assert len(written["message"]) == 4000
