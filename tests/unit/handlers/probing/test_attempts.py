"""handlers.probing: what counts as an attempt, who leads what, and the probe's topic."""

import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownBrokerIdError,
)

from core.availability.budget import WINDOWS
from core.ground.errors import StillwaterError
from handlers import probing
from handlers.probing import Attempts, brokers_changed, replica_placement, run


def said(attempts: Attempts, name: str) -> float:
    lines = dict(line.rsplit(" ", 1) for line in attempts.page().splitlines() if line[0] != "#")
    return float(lines[name])


def failed(attempts: Attempts, step: str) -> float:
    return said(attempts, f'stillwater_probe_failed_total{{broker="10",step="{step}"}}')


@pytest.fixture
def attempts() -> Attempts:
    made = Attempts([10], 5.0)
    made.begin(10, 0, 100.0)
    return made


def test_what_is_read_back_in_time_is_no_failure_and_is_counted(attempts: Attempts) -> None:
    attempts.note_acked(10, 0, 100.2)
    attempts.read(10, 0, 100.3)
    attempts.expire(200.0)
    assert (failed(attempts, "produce"), failed(attempts, "consume")) == (0, 0)
    bucket = 'stillwater_probe_seconds_bucket{broker="10",step="produce",le="0.25"}'
    assert said(attempts, bucket) == 1
    assert said(attempts, 'stillwater_probe_seconds_sum{broker="10",step="consume"}') == 0.3


@pytest.mark.parametrize(
    ("acked", "read", "step"),
    [(None, None, "produce"), (0.1, None, "consume"), (0.1, 5.1, "consume")],
    ids=["never acknowledged", "never read", "read too late"],
)
def test_a_failure_is_counted_once_by_the_step_it_never_took(
    attempts: Attempts, acked: float | None, read: float | None, step: str
) -> None:
    if acked is not None:
        attempts.note_acked(10, 0, 100.0 + acked)
    if read is not None:
        attempts.read(10, 0, 100.0 + read)
    attempts.expire(104.9)
    assert failed(attempts, step) == 0
    for now in (105.1, 300.0):
        attempts.expire(now)
        attempts.read(10, 0, now)
        assert failed(attempts, step) == 1
    assert said(attempts, 'stillwater_probe_attempts_total{broker="10"}') == 1


def test_attempts_are_due_every_second_however_long_one_takes() -> None:
    now, begun = [0.0], list[tuple[int, float]]()

    def attempt(number: int, due: float) -> None:
        begun.append((number, due))
        now[0] += 4.0 if number == 1 else 0.0

    def pause(seconds: float) -> None:
        now[0] += seconds

    run(attempt, Attempts([10], 5.0), lambda: now[0] >= 7, pause, lambda: now[0])
    assert begun == [(number, float(number)) for number in range(7)]


@settings(max_examples=25)
@given(st.dictionaries(st.integers(0, 30), st.sampled_from("abc"), min_size=1), st.integers(1, 4))
def test_each_broker_leads_and_racks_spread(racks: dict[int, str], factor: int) -> None:
    found = replica_placement(racks, factor)
    assert set(found) == set(racks)
    for broker, replicas in found.items():
        assert replicas[0] == broker
        assert len(set(replicas)) == len(replicas) == min(factor, len(racks))
        if len(replicas) > 1 and len(set(racks.values())) > 1:
            assert racks[replicas[1]] != racks[broker]


def test_only_a_broker_that_joins_asks_for_a_new_start() -> None:
    assert brokers_changed([10, 20], [10, 20, 30])
    assert not brokers_changed([10, 20], [10])


def test_a_window_that_burns_at_its_rate_spends_its_share_of_the_budget() -> None:
    assert [round(window.burn_rate, 1) for window in WINDOWS] == [14.4, 6.0, 3.0, 1.0]


Ask = Callable[[KafkaError, int], dict[int, int]]
LEADERS = {0: 0, 1: 1}


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Ask a cluster that answers with an error so many times; each look takes 10 s."""

    def asked(error: KafkaError, times: int) -> dict[int, int]:
        errors = itertools.repeat(error, times)

        def ensure_once(_settings: Mapping[str, Any], _topic: str, _factor: int) -> dict[int, int]:
            for each in errors:
                raise each
            return LEADERS

        monkeypatch.setattr(probing, "_ensure_once", ensure_once)
        monkeypatch.setattr(time, "sleep", lambda _seconds: None)
        clock = itertools.count(0.0, 10.0)
        monkeypatch.setattr(time, "monotonic", lambda: next(clock))
        return probing.ensure_topic({}, "stillwater-probe", 3)

    return asked


def test_a_probe_that_starts_while_a_broker_is_down_asks_again(ask: Ask) -> None:
    assert ask(KafkaConnectionError("111 ECONNREFUSED"), 5) == LEADERS


@pytest.mark.parametrize("error", [TopicAlreadyExistsError("probe"), UnknownBrokerIdError(3)])
def test_what_a_late_answer_refuses_is_looked_at_again(ask: Ask, error: KafkaError) -> None:
    assert ask(error, 1) == LEADERS


def test_a_probe_that_nobody_answers_says_so_in_the_end(ask: Ask) -> None:
    with pytest.raises(StillwaterError, match=r"could not be kept: .*ECONNREFUSED"):
        ask(KafkaConnectionError("111 ECONNREFUSED"), 1_000)


def test_a_probe_without_its_rights_does_not_ask_again(ask: Ask) -> None:
    with pytest.raises(StillwaterError, match="TopicAuthorizationFailed"):
        ask(TopicAuthorizationFailedError("stillwater-probe"), 1)
