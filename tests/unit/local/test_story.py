"""The demo's story: moments, lanes and figures of what was written down, the balancer's lag too."""

from typing import Any

import pytest

from core.incidents.record import State, Transition
from local.demo import story
from local.demo.story import chain, outran_balancer

T0 = 1000.0


def test_a_sentence_is_told_only_for_events_that_belong_to_the_story() -> None:
    told = story.sentence({"event": "node_ready", "node": "ip-10-11-0-5.ec2.internal", "at": T0})
    assert told == "Node ip-10-11-0-5.ec2.internal is Ready"
    assert story.sentence({"event": "lambda_invoked", "at": T0}) is None


def test_a_missing_field_reads_as_a_question_mark() -> None:
    assert story.sentence({"event": "pod_gone", "pod": "harbour-broker-a-10"}) == (
        "harbour-broker-a-10 has stopped and is off ?"
    )


def test_moments_count_from_the_terminate_call_and_leave_out_what_was_before() -> None:
    records = [
        {"at": T0 - 5, "source": "kubelet", "event": "node_ready", "node": "old"},
        {"at": T0 + 2, "source": "kubelet", "event": "node_ready", "node": "new"},
    ]
    assert [(m.at_s, m.text) for m in story.journal_moments(records, T0)] == [
        (2.0, "Node new is Ready")
    ]


def test_states_follow_each_other_without_a_gap() -> None:
    transitions = [
        Transition(T0 + 1, State.OPENED, "interruption", "announced"),
        Transition(T0 + 4, State.DRAINING, "tick", "allowed"),
    ]
    spans = story.state_spans(transitions, T0, T0 + 9)
    assert [(s.label, s.start_s, s.end_s) for s in spans] == [
        ("opened", 1.0, 4.0),
        ("draining", 4.0, 9.0),
    ]


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        pytest.param([[], [10], [10], []], T0 + 3, id="left and came back"),
        pytest.param([[], [10], [10]], None, id="has not come back"),
        pytest.param([[], [], []], None, id="never left"),
        pytest.param([[], [20], []], None, id="another broker left"),
    ],
)
def test_a_broker_is_back_when_it_had_left_and_is_missing_no_more(
    missing: list[list[int]], expected: float | None
) -> None:
    samples = [{"at": T0 + i, "missing": m} for i, m in enumerate(missing)]
    assert story.back_in_isr_at(samples, 10, T0) == expected


def test_percentiles_of_nothing_are_zero_and_of_something_are_its_ranks() -> None:
    assert story.percentiles([]) == story.Percentiles(0.0, 0.0, 0.0)
    assert story.percentiles([float(n) for n in range(1, 101)]) == story.Percentiles(
        51.0, 100.0, 100.0
    )


def test_the_broker_counts_as_down_from_its_eviction_to_its_readiness() -> None:
    records = [
        {"at": T0 + 3, "event": "node_ready"},
        {"at": T0 + 5, "event": "node_cordoned"},
        {"at": T0 + 6, "event": "pod_stopping"},
        {"at": T0 + 9, "event": "hook_completed"},
        {"at": T0 + 20, "event": "pod_ready"},
    ]
    lanes = {s.lane: (s.start_s, s.end_s) for s in story.spans(records, [], T0, T0 + 30)}
    assert lanes["broker's pod"] == (6.0, 20.0)
    assert lanes["NTH drains"] == (5.0, 9.0)
    assert lanes["new node"] == (3.0, 30.0)


OWN, BOOTSTRAP = "local-harbour-10", "local-harbour-bootstrap"
POD, OLD, NEW = "harbour-broker-a-10", "10.11.8.2", "10.11.8.9"


def pod(at: float, event: str, address: str = NEW) -> dict[str, Any]:
    return {"at": at, "event": event, "pod": POD, "address": address}


def target(at: float, event: str, group: str, address: str = NEW) -> dict[str, Any]:
    return {"at": at, "event": event, "group": group, "target": address}


RESTART = [
    pod(10.0, "pod_containers_ready", OLD),
    target(10.1, "target_healthy", OWN, OLD),
    pod(11.0, "pod_ready", OLD),
    pod(100.0, "pod_containers_ready"),
    target(100.1, "target_registered", OWN),
    target(101.0, "target_registered", BOOTSTRAP),
    target(106.2, "target_healthy", OWN),
    target(107.2, "target_healthy", BOOTSTRAP),
    pod(110.0, "pod_ready"),
]


def test_each_step_counts_from_the_last_start_to_the_slowest_group() -> None:
    measured = chain(RESTART, 10, [OWN, BOOTSTRAP])
    assert measured == {"registered_after_s": 1.0, "healthy_after_s": 7.2, "ready_after_s": 10.0}
    assert not outran_balancer(measured)


def test_a_pod_that_is_ready_before_one_of_its_groups_agrees_outran_it() -> None:
    early = [*RESTART[:-1], pod(106.5, "pod_ready")]
    early.sort(key=lambda record: record["at"])
    assert outran_balancer(chain(early, 10, [OWN, BOOTSTRAP]))


def test_a_group_that_never_agreed_is_not_overlooked() -> None:
    without = [r for r in RESTART if r.get("group") != BOOTSTRAP]
    measured = chain(without, 10, [OWN, BOOTSTRAP])
    assert measured["healthy_after_s"] is None
    assert outran_balancer(measured)


def test_a_broker_that_did_not_start_has_no_chain() -> None:
    assert chain(RESTART, 20, [OWN, BOOTSTRAP])["ready_after_s"] is None
