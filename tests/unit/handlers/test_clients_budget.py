"""handlers.rotation.turns: what the probe counted, or a sentence why nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.availability.budget import Spent
from core.ground.errors import StillwaterError
from core.settings.prometheus import FAILED, ProbeBudget
from handlers.adapters.prometheus import Prometheus
from handlers.rotation.turns import ClientsBudget
from tests.unit.handlers.adapters.test_prometheus import NOW, Said, vector

SETTINGS = ProbeBudget(
    address="http://prometheus.monitoring.svc:9090",
    labels={"env": "prod"},
    objective_percent=99.9,
    rotation_percent=10,
)


def read(answer: Callable[[str], Any], since: float) -> tuple[Spent, Said]:
    said = Said(answer)
    budget = ClientsBudget(Prometheus(said), SETTINGS, "kafka", "orders")
    return budget.spending(since, NOW), said


def refusing(_query: str) -> Any:
    raise StillwaterError("Prometheus does not answer.")


def test_what_failed_is_asked_of_this_cluster_since_the_run_went_on() -> None:
    spent, said = read(lambda query: vector(({}, "12" if FAILED in query else "10800")), NOW - 3600)
    assert (spent.attempts, spent.failed, spent.seconds) == (10_800, 12, 3600)
    assert (spent.objective_percent, spent.allowed_percent, spent.silence) == (99.9, 10, "")
    (attempts, _) = [query["query"] for _, query, _ in said.asked]
    assert 'namespace="kafka",cluster="orders",env="prod"}[3600s]' in attempts


def test_a_run_that_has_just_begun_is_judged_by_five_minutes() -> None:
    assert read(lambda _query: vector(({}, "900")), NOW - 1)[0].seconds == 300


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refusing, "does not answer"),
        (lambda _query: vector(), "no attempt"),
        (lambda _query: vector(({}, "0")), "no attempt"),
    ],
    ids=["no answer", "no series", "no attempts"],
)
def test_what_nobody_counted_is_said_and_is_no_zero(
    answer: Callable[[str], Any], said: str
) -> None:
    assert said in read(answer, NOW - 3600)[0].silence
