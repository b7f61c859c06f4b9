"""The probe's topic while brokers are away: what passes by itself is asked again."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownBrokerIdError,
)

from core.ground.errors import StillwaterError
from handlers import probing

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
def test_what_a_late_answer_or_an_early_name_refuses_is_looked_at_again(
    ask: Ask, error: KafkaError
) -> None:
    assert ask(error, 1) == LEADERS


def test_a_probe_that_nobody_answers_says_so_in_the_end(ask: Ask) -> None:
    with pytest.raises(StillwaterError, match=r"could not be kept: .*ECONNREFUSED"):
        ask(KafkaConnectionError("111 ECONNREFUSED"), 1_000)


def test_a_probe_without_its_rights_does_not_ask_again(ask: Ask) -> None:
    with pytest.raises(StillwaterError, match="TopicAuthorizationFailed"):
        ask(TopicAuthorizationFailedError("stillwater-probe"), 1)
