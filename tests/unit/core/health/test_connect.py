"""core.health.connect: what workers and exporters answer, and what a pod may wait for."""

from dataclasses import replace
from pathlib import Path

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
from core.health.node import DRAFT, Metric, NodeMetrics, metric_of, parse, wanted_names
from core.health.pods import PodSeen, no_pod, pod_verdict
from core.health.verdict import Health
from infra.alerts.metrics import KAFKA_ALLOW
from tests.every_case import every_case
from tests.unit.infra.test_alerts import allowed

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
        (OLD, [LOST], Health.UNKNOWN, "did not answer: no route"),
        (OLD, [KNOWS_NO_HEALTH, NO_SUCH_CONNECTOR], Health.HEALTHY, "before Kafka 3.9"),
        (YOUNG, [KNOWS_NO_HEALTH, CONNECTOR_SILENT], Health.STARTING, "busy or blocked"),
        (OLD, [KNOWS_NO_HEALTH, CONNECTOR_SILENT], Health.UNHEALTHY, "busy or blocked"),
        (OLD, [FAILED], Health.UNHEALTHY, "answered 500: Request timed out"),
        (OLD, [DENIED], Health.UNKNOWN, "Kafka Connect's own refusal: Not this user"),
        (OLD, [KNOWS_NO_HEALTH, REBALANCES], Health.HEALTHY, "answered 409"),
        (OLD, [SOMEBODY_ELSES], Health.UNKNOWN, "not an answer of Kafka Connect's"),
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
def test_a_standalone_worker_counts_by_kafka(kafka_answers: bool | None, health: Health) -> None:
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


NOW = 10_000.0
READY = PodSeen(
    name="orders-broker-a-10",
    node_id=10,
    created_at=NOW - 4_000,
    node_name="ip-1",
    ready=True,
    containers_ready=True,
    gates={"target-health/orders-broker-10": True},
    started_at=NOW - 3_990,
)
SHUT = {"target-health/orders-broker-10": False}


@every_case(
    ("changes", "health", "words"),
    [
        ({}, Health.HEALTHY, "Ready on ip-1"),
        ({"stopping": True}, Health.DEGRADED, "being stopped"),
        ({"node_name": None, "started_at": None, "ready": False, "unscheduled": "0/6 nodes."},
            Health.UNHEALTHY, "is not scheduled: 0/6 nodes, for 4000 s"),
        ({"node_name": None, "started_at": None, "ready": False, "created_at": NOW - 5},
            Health.STARTING, "is not scheduled, for 5 s"),
        (
            {"ready": False, "started_at": None, "waiting": "CrashLoopBackOff", "stuck": True,
                "restarts": 7}, Health.UNHEALTHY, "after 7 restarts: CrashLoopBackOff"),
        ({"ready": False, "started_at": NOW - 9}, Health.STARTING, "is not Ready, for 9 s"),
        ({"ready": False}, Health.UNHEALTHY, "is not Ready, for 3990 s"),
        ({"ready": False, "unready_since": NOW - 5}, Health.UNHEALTHY, "is not Ready, for 5 s"),
        ({"ready": False, "gates": SHUT, "unready_since": NOW - 7}, Health.DEGRADED,
            "gate target-health/orders-broker-10, for 7 s"),
        ({"ready": False, "gates": SHUT}, Health.DEGRADED, "gate target-health/orders-broker-10"),
        ({"ready": False, "gates": SHUT, "started_at": NOW - 9}, Health.STARTING, "gate"),
    ],
)  # fmt: skip
def test_a_pods_verdict_says_why(changes: dict[str, object], health: Health, words: str) -> None:
    verdict = pod_verdict(replace(READY, **changes), NOW)
    assert (verdict.health, words in verdict.reason) == (health, True), verdict.reason


def test_how_long_a_pod_may_start_is_its_own() -> None:
    starting = replace(READY, ready=False, started_at=NOW - 400)
    assert pod_verdict(starting, NOW).health is Health.UNHEALTHY
    assert pod_verdict(starting, NOW, 500).health is Health.STARTING


def test_a_container_that_waits_does_not_run() -> None:
    assert replace(READY, started_at=None).running_seconds(NOW) is None
    assert READY.running_seconds(NOW) == 3_990


def test_what_has_no_pod_is_unhealthy() -> None:
    assert no_pod("Kafka node 20").health is Health.UNHEALTHY


DATA = Path(__file__).parents[3] / "data" / "exporters"
EXPORTERS = ("strimzi-reporter", "jmx-exporter")
# Gone once a recovery is done, and none was under way.
PASSING = {Metric.LOGS_TO_RECOVER, Metric.SEGMENTS_TO_RECOVER}
# The allow list did not name these yet when the reporter was recorded.
BY_JMX_ALONE = {Metric.CONTROLLER_APPLY_LAG_MS, Metric.CONTROLLER_APPLIED_OFFSET}


def told(role: str, exporter: str) -> NodeMetrics:
    return parse((DATA / f"{role}-{exporter}.txt").read_text())


@every_case("exporter", EXPORTERS)
def test_every_metric_is_found_with_either_exporter(exporter: str) -> None:
    samples = told("controller", exporter).samples + told("broker", exporter).samples
    missing = set(Metric) - {sample.metric for sample in samples} - PASSING
    assert missing <= (BY_JMX_ALONE if exporter == "strimzi-reporter" else set())


@pytest.mark.parametrize("role", ["controller", "broker"])
def test_both_exporters_say_the_same_of_what_does_not_move(role: str) -> None:
    one, other = (told(role, exporter) for exporter in EXPORTERS)
    for metric in (Metric.BROKER_STATE, Metric.RAFT_LEADER, Metric.METADATA_ERRORS, Metric.LEADERS):
        assert one.value(metric) == other.value(metric)
    assert one.sums_by_label(Metric.REGISTRATION_STATE, "broker") == other.sums_by_label(
        Metric.REGISTRATION_STATE, "broker"
    )


@every_case("exporter", EXPORTERS)
def test_the_state_in_the_quorum_is_a_word(exporter: str) -> None:
    assert told("controller", exporter).raft_state == "leader"
    assert told("broker", exporter).raft_state == "observer"


def test_the_exporter_without_rules_is_read_too() -> None:
    text = """
kafka_server_KafkaServer_Value{name="BrokerState",} 3.0
kafka_controller_KafkaController_Value{name="BrokerRegistrationState",broker="11",} 10.0
kafka_server_broker_metadata_metrics_metadata_load_error_count 2.0
kafka_log_LogManager_Value{dir="/data-1/kafka-log11",name="remainingLogsToRecover",} 37.0
kafka_server_BrokerTopicMetrics_Count{name="ReplicationBytesInPerSec",} 1234.0
kafka_raft_state{state="follower",} 1.0
"""
    found = parse(text)
    assert found.count(Metric.BROKER_STATE) == 3
    assert found.sums_by_label(Metric.REGISTRATION_STATE, "broker") == {"11": 10.0}
    assert found.count(Metric.METADATA_LOAD_ERRORS) == 2
    assert found.sums_by_label(Metric.LOGS_TO_RECOVER, "dir") == {"/data-1/kafka-log11": 37.0}
    assert found.count(Metric.REPLICATION_BYTES_IN) == 1234
    assert found.raft_state == "follower"


@every_case(("name", "metric"), DRAFT.items())
def test_the_names_of_the_draft_are_mapped_to_what_shipped(name: str, metric: Metric) -> None:
    assert metric_of(f"kafka_{name}") is metric


def test_threads_of_one_directory_are_summed_and_directories_kept_apart() -> None:
    segments = "kafka_log_logmanager_remainingsegmentstorecover"
    found = parse(
        f'{segments}{{dir="/a",threadNum="0"}} 3\n{segments}{{dir="/a",threadNum="1"}} 4\n'
        f'{segments}{{dir="/b",threadNum="0"}} 5\n'
    )
    assert found.sums_by_label(Metric.SEGMENTS_TO_RECOVER, "dir") == {"/a": 7.0, "/b": 5.0}


def test_what_an_exporter_does_not_tell_is_none_and_never_zero() -> None:
    found = parse("# TYPE jvm_threads gauge\njvm_threads 7\nkafka_server_raft_metrics_x NaN\n")
    assert found.value(Metric.FENCED_BROKERS) is None
    assert found.count(Metric.METADATA_ERRORS) is None
    assert found.raft_state is None
    assert found.sums_by_label(Metric.REGISTRATION_STATE, "broker") == {}


def test_a_value_that_is_no_number_is_left_out() -> None:
    assert parse("kafka_server_raft_metrics_current_leader NaN\n").samples == ()
    assert parse("kafka_server_kafkaserver_brokerstate three\n").samples == ()


@every_case("line", ["", "{", "a b c d", 'x{y="z" 3', "kafka_", "# HELP"])
def test_a_line_in_no_format_is_passed_over(line: str) -> None:
    assert parse(f"{line}\nkafka_server_kafkaserver_brokerstate 3").count(Metric.BROKER_STATE) == 3


@every_case("metric", Metric)
def test_the_project_exports_every_metric_it_reads(metric: Metric) -> None:
    counter = "persec" if "_brokertopicmetrics_" in metric.value else ""
    assert allowed(f"kafka_{metric.value}{counter}", KAFKA_ALLOW)


@every_case("exporter", EXPORTERS)
@every_case("role", ["controller", "broker"])
def test_an_exporter_asked_by_name_leaves_nothing_out(role: str, exporter: str) -> None:
    wanted = set(wanted_names())
    for line in (DATA / f"{role}-{exporter}.txt").read_text().splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if not line.startswith("#") and metric_of(name) is not None:
            # Prometheus's client takes a name with or without the ending of its kind.
            assert {name, name.removesuffix("_total")} & wanted, name
