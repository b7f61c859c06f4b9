"""core.health.connect, on answers as real workers of Kafka 4.2.0 and 3.8.1 gave them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.health.connect import (
    CONNECTOR_PATH,
    HEALTH_PATH,
    Failure,
    Mode,
    RestResponse,
    Worker,
    next_path,
    worker_verdict,
)
from core.health.verdict import Health
from tests.every_case import every_case

YOUNG = Worker(name="w", running=True, running_seconds=20, startup_seconds=120)
OLD = replace(YOUNG, running_seconds=3_600)
ALONE = replace(OLD, mode=Mode.STANDALONE)

HEALTHY = RestResponse(
    path=HEALTH_PATH,
    seconds=0.02,
    status=200,
    content_type="application/json",
    body='{"status":"healthy","message":"Worker has completed startup and is ready to handle '
    'requests."}',
)
STARTING = RestResponse(
    path=HEALTH_PATH,
    seconds=10.12,
    status=503,
    content_type="application/json",
    body='{"status":"starting","message":"Worker is still starting up. The worker is currently '
    "initializing and reading to the end of internal topics, which began at "
    '2026-11-21T04:40:09.680Z."}',
)
UNHEALTHY = RestResponse(
    path=HEALTH_PATH,
    seconds=10.0,
    status=500,
    content_type="application/json",
    body='{"status":"unhealthy","message":"Worker was unable to handle this request and may be '
    "unable to handle other requests. The worker is currently ensuring membership in the cluster, "
    'which began at 2026-11-21T04:41:34.509Z."}',
)
NOT_THERE_YET = RestResponse(
    path=HEALTH_PATH,
    seconds=0.23,
    status=404,
    content_type="text/html;charset=iso-8859-1",
    body="<html>\n<head>\n<title>Error 404 Not Found</title>\n</head>\n</html>",
)
# 3.8.1; it names no type.
KNOWS_NO_HEALTH = RestResponse(
    path=HEALTH_PATH,
    seconds=0.17,
    status=404,
    body='{"error_code":404,"message":"HTTP 404 Not Found"}',
)
NO_SUCH_CONNECTOR = RestResponse(
    path=CONNECTOR_PATH,
    seconds=0.1,
    status=404,
    content_type="application/json",
    body='{"error_code":404,"message":"Connector stillwater-asks-for-health not found"}',
)
REFUSED = RestResponse(path=HEALTH_PATH, seconds=0.0, failure=Failure.REFUSED)
SILENT = RestResponse(path=HEALTH_PATH, seconds=12.0, failure=Failure.TIMEOUT)
CONNECTOR_SILENT = RestResponse(path=CONNECTOR_PATH, seconds=12.0, failure=Failure.TIMEOUT)
FAILED = replace(UNHEALTHY, body='{"error_code":500,"message":"Request timed out"}')
DENIED = replace(UNHEALTHY, status=403, body='{"error_code":403,"message":"Not this user"}')
REBALANCES = replace(
    NO_SUCH_CONNECTOR, status=409, body='{"error_code":409,"message":"Rebalance expected"}'
)
SOMEBODY_ELSES = replace(UNHEALTHY, body='{"detail":"bad gateway"}')
LOST = RestResponse(path=HEALTH_PATH, seconds=3.0, failure=Failure.UNREACHABLE, detail="no route")


@every_case(
    ("worker", "answers", "health", "words"),
    [
        (OLD, [HEALTHY], Health.HEALTHY, "200 healthy after 0.0 s"),
        (YOUNG, [STARTING], Health.STARTING, "reading to the end of internal topics"),
        (OLD, [STARTING], Health.UNHEALTHY, "may take 120 s to start"),
        (OLD, [UNHEALTHY], Health.UNHEALTHY, "ensuring membership in the cluster"),
        (YOUNG, [UNHEALTHY], Health.UNHEALTHY, "answered 500"),
        (YOUNG, [NOT_THERE_YET], Health.STARTING, "404 without JSON"),
        (OLD, [NOT_THERE_YET], Health.UNHEALTHY, "404 without JSON"),
        (YOUNG, [REFUSED], Health.STARTING, "refuses connections"),
        (OLD, [REFUSED], Health.UNHEALTHY, "refuses connections"),
        (OLD, [SILENT], Health.UNHEALTHY, "frozen"),
        (YOUNG, [SILENT], Health.UNHEALTHY, "frozen"),
        (OLD, [LOST], Health.UNKNOWN, "could not be asked: no route"),
        (OLD, [KNOWS_NO_HEALTH, NO_SUCH_CONNECTOR], Health.HEALTHY, "before Kafka 3.9"),
        (YOUNG, [KNOWS_NO_HEALTH, CONNECTOR_SILENT], Health.STARTING, "busy or blocked"),
        (OLD, [KNOWS_NO_HEALTH, CONNECTOR_SILENT], Health.UNHEALTHY, "busy or blocked"),
        (OLD, [FAILED], Health.UNHEALTHY, "answered 500: Request timed out"),
        (OLD, [DENIED], Health.UNKNOWN, "Kafka Connect's own refusal: Not this user"),
        (OLD, [KNOWS_NO_HEALTH, REBALANCES], Health.HEALTHY, "answered 409"),
        (OLD, [SOMEBODY_ELSES], Health.UNKNOWN, "no answer of Kafka Connect's"),
        (OLD, [], Health.UNKNOWN, "was not asked"),
        (replace(OLD, running=False), [HEALTHY], Health.UNHEALTHY, "has stopped"),
        (replace(OLD, running_seconds=None), [REFUSED], Health.UNHEALTHY, "not known"),
    ],
)
def test_what_a_worker_answers_decides(
    worker: Worker, answers: list[RestResponse], health: Health, words: str
) -> None:
    verdict = worker_verdict(worker, answers)
    assert (verdict.health, words in verdict.reason) == (health, True), verdict.reason
    assert bool(verdict.missing) == (health is Health.UNKNOWN)


def test_health_is_asked_first_and_a_connector_only_where_it_is_not_known() -> None:
    assert next_path([]) == HEALTH_PATH
    assert next_path([KNOWS_NO_HEALTH]) == CONNECTOR_PATH
    assert next_path([KNOWS_NO_HEALTH, NO_SUCH_CONNECTOR]) is None
    for enough in (HEALTHY, STARTING, UNHEALTHY, NOT_THERE_YET, REFUSED, SILENT, LOST):
        assert next_path([enough]) is None


def test_a_probe_that_gives_up_before_the_worker_answers_tells_nothing() -> None:
    # 500 and 503 come only after the worker's own 10 s.
    verdict = worker_verdict(OLD, [replace(SILENT, seconds=5.0)])
    assert verdict.health is Health.UNKNOWN
    assert "10 s" in verdict.reason


@pytest.mark.parametrize(
    ("kafka_answers", "health"),
    [(True, Health.HEALTHY), (False, Health.UNHEALTHY), (None, Health.UNKNOWN)],
)
def test_a_standalone_worker_is_believed_as_far_as_kafka_answers(
    kafka_answers: bool | None, health: Health
) -> None:
    verdict = worker_verdict(replace(ALONE, kafka_answers=kafka_answers), [HEALTHY])
    assert verdict.health is health
    if kafka_answers is None:
        assert verdict.missing == ("Kafka's admin API",)


def test_a_distributed_workers_word_needs_nobody_elses() -> None:
    assert worker_verdict(replace(OLD, kafka_answers=False), [HEALTHY]).healthy


@every_case(
    ("status", "body"),
    [
        (200, "<html>Welcome</html>"),
        (200, '{"status":"starting"}'),
        (200, "[]"),
        (302, ""),
        (401, '{"message":"who are you?"}'),
        (503, "upstream connect error"),
    ],
)
def test_what_no_worker_would_say_is_quoted_and_believed_of_nobody(status: int, body: str) -> None:
    answer = RestResponse(path=HEALTH_PATH, seconds=0.1, status=status, body=body)
    verdict = worker_verdict(OLD, [answer])
    assert verdict.health is Health.UNKNOWN
    assert (body or "nothing") in verdict.reason


def test_a_connector_that_fails_is_no_404() -> None:
    failed = replace(NO_SUCH_CONNECTOR, status=500, body='{"message":"Request timed out"}')
    verdict = worker_verdict(OLD, [KNOWS_NO_HEALTH, failed])
    assert verdict.health is Health.UNHEALTHY
    assert "Request timed out" in verdict.reason


answers = st.builds(
    RestResponse,
    path=st.sampled_from([HEALTH_PATH, CONNECTOR_PATH]),
    seconds=st.floats(0, 60),
    status=st.one_of(st.none(), st.integers(100, 599)),
    content_type=st.text(max_size=20),
    body=st.one_of(st.text(max_size=60), st.sampled_from([HEALTHY.body, UNHEALTHY.body])),
    failure=st.one_of(st.none(), st.sampled_from(Failure)),
    detail=st.text(max_size=40),
)


@given(
    answer=answers,
    age=st.one_of(st.none(), st.floats(0, 10_000)),
    running=st.sampled_from([True, False, None]),
)
def test_nothing_but_a_good_answer_makes_a_worker_healthy(
    answer: RestResponse, age: float | None, running: bool | None
) -> None:
    worker = Worker(name="w", running=running, running_seconds=age)
    verdict = worker_verdict(worker, [answer])
    assert verdict.reason.startswith("Worker w ")
    assert verdict.reason.endswith(".")
    if verdict.healthy:
        assert answer.failure is None
        assert answer.status == 200 or (answer.path, answer.status) == (CONNECTOR_PATH, 404)
