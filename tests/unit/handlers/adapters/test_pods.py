"""handlers.adapters.pods: which pods count, what workers and exporters answer, and none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
)

from core.ground.errors import StillwaterError
from core.health.connect import CONNECTOR_PATH, HEALTH_PATH, Failure, RestResponse
from core.health.node import Metric
from core.health.pods import PodSeen
from handlers.adapters import pods
from handlers.adapters.pods import (
    LARGEST_ANSWER_BYTES,
    EksPods,
    PodExporters,
    ask,
    pod_seen,
    through,
)
from tests.every_case import every_case
from tests.tables import changed

RUNNING = {"running": {"startedAt": "2026-11-20T00:00:10Z"}}
GATE = "target-health.elbv2.k8s.aws/orders-broker-10"


def pod() -> dict[str, Any]:
    labels = {"strimzi.io/cluster": "orders", "strimzi.io/pool-name": "broker-a"}
    return {
        "metadata": {
            "name": "orders-broker-a-10",
            "labels": labels,
            "creationTimestamp": "2026-11-20T00:00:00Z",
        },
        "spec": {"nodeName": "ip-1", "readinessGates": [{"conditionType": GATE}]},
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "ContainersReady", "status": "True"},
                {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-20T01:00:00Z"},
                {"type": GATE, "status": "False"},
            ],
            "containerStatuses": [
                {
                    "name": "kafka",
                    "restartCount": 2,
                    "state": RUNNING,
                }
            ],
        },
    }


def test_a_pod_is_read_with_its_gates_and_its_process() -> None:
    assert pod_seen(pod()) == PodSeen(
        name="orders-broker-a-10",
        node_id=10,
        created_at=1_795_132_800.0,
        node_name="ip-1",
        ready=False,
        containers_ready=True,
        gates={GATE: False},
        started_at=1_795_132_810.0,
        restarts=2,
        unready_since=1_795_136_400.0,
    )


CRASHED = {"waiting": {"reason": "CrashLoopBackOff"}}


NO_ROOM = {"type": "PodScheduled", "status": "False", "message": "0/6 nodes are available"}
PODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # The kubelet lists containers by their names, and istio-proxy comes before kafka.
    "a proxy beside kafka": (
        {"status.containerStatuses": [
            {"name": "istio-proxy", "restartCount": 0, "state": RUNNING},
            {"name": "kafka", "restartCount": 7, "state": CRASHED}]},
        {"started_at": None, "waiting": "CrashLoopBackOff", "restarts": 7, "running": False}),
    "a container before kafka that never ends": (
        {"status.initContainerStatuses": [{"name": "kafka-init", "state": CRASHED}],
         "status.containerStatuses.0.state": {"waiting": {"reason": "PodInitializing"}}},
        {"waiting": "CrashLoopBackOff"}),
    "no node takes it": ({"spec": {}, "status": {"phase": "Pending", "conditions": [NO_ROOM]}},
        {"node_name": None, "unscheduled": "0/6 nodes are available", "running": False}),
    "a Connect worker, whose name ends in a number": (
        {"metadata.name": "orders-connect-connect-0", "metadata.labels": {
            "strimzi.io/cluster": "orders-connect", "strimzi.io/kind": "KafkaConnect"}},
        {"node_id": None}),
}  # fmt: skip


@every_case(("changes", "said"), PODS.values(), ids=PODS)
def test_what_a_pod_says_is_seen(changes: dict[str, Any], said: dict[str, Any]) -> None:
    found = pod_seen(changed(pod(), changes))
    assert {name: getattr(found, name) for name in said} == said


def test_what_is_neither_or_is_over_does_not_count() -> None:
    labels = {"strimzi.io/cluster": "orders", "strimzi.io/kind": "Kafka"}
    other = {"metadata.name": "orders-entity-operator-5d4", "metadata.labels": labels}
    for changes in (other, {"status.phase": "Failed"}):
        assert pod_seen(changed(pod(), changes)) is None


def test_both_clusters_pods_come_in_one_list() -> None:
    class FakeApi:
        def list(self, path: str, **query: str) -> list[dict[str, Any]]:
            assert path == "/api/v1/namespaces/kafka/pods"
            assert query == {"labelSelector": "strimzi.io/cluster in (orders,orders-connect)"}
            return [pod()]

    api: Any = FakeApi()
    assert [each.name for each in EksPods(api, "kafka", "orders").pods()] == ["orders-broker-a-10"]


CREATED = 1_795_132_800.0


@every_case(
    ("created", "running", "seen"),
    [
        (None, None, (None, None)),
        ("", None, (None, None)),
        ("yesterday", {"startedAt": "2026-11-20T00:00:00Z"}, (None, CREATED)),
        ("2026-11-20T00:00:00Z", {}, (CREATED, CREATED)),
        # Nothing says that it is young.
        (None, {"startedAt": None}, (None, 0.0)),
    ],
    ids=["no time", "an empty one", "no time but its start", "no start", "neither"],
)
def test_times_that_are_missing_are_not_made_up_to_be_young(
    created: object, running: dict[str, Any] | None, seen: tuple[float | None, float | None]
) -> None:
    states = [] if running is None else [{"name": "kafka", "state": {"running": running}}]
    times = {"metadata.creationTimestamp": created, "status.containerStatuses": states}
    found = pod_seen(changed(pod(), times))
    assert (found.created_at, found.started_at) == seen


POOL = urllib3.HTTPConnectionPool("127.0.0.1")


class Relay:
    """An API server that relays one answer, or fails."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, float]] = []

    def relay(self, path: str, seconds: float) -> Any:
        self.asked.append((path, seconds))
        return self.answer()


class Response:
    def __init__(self, status: int, body: str, content_type: str = "application/json") -> None:
        self.status, self.body = status, body.encode()
        self.headers = {"content-type": content_type}
        self.closed = False

    def read(self, most: int) -> bytes:
        return self.body[:most]

    def close(self) -> None:
        self.closed = True


def relayed(answer: Callable[[], Any]) -> RestResponse:
    api: Any = Relay(answer)
    return through(api, "kafka", "orders-connect-connect-0")(HEALTH_PATH, 12)


def status_of_api(code: int, message: str) -> Callable[[], Response]:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message}
    return lambda: Response(code, json.dumps(body))


def test_a_pod_is_asked_by_name_and_port_through_the_api_server() -> None:
    api: Any = Relay(lambda: Response(200, "{}"))
    through(api, "kafka", "orders-connect-connect-0")(HEALTH_PATH, 12)
    assert api.asked == [
        ("/api/v1/namespaces/kafka/pods/orders-connect-connect-0:8083/proxy/health", 12)
    ]


def test_what_the_worker_says_is_kept_as_it_came() -> None:
    response = Response(503, '{"status":"starting"}')
    answer = relayed(lambda: response)
    assert (answer.status, answer.document) == (503, {"status": "starting"})
    assert (answer.failure, response.closed) == (None, True)


def test_nobody_reads_more_than_a_worker_would_ever_say() -> None:
    answer = relayed(lambda: Response(200, "x" * 10 * LARGEST_ANSWER_BYTES, "text/html"))
    assert len(answer.body) == LARGEST_ANSWER_BYTES


@pytest.mark.parametrize(
    ("code", "message", "failure"),
    [
        (503, "error trying to reach service: dial tcp 10.0.0.1:8083: connect: connection refused",
         Failure.REFUSED),
        (503, "error trying to reach service: dial tcp 10.0.0.1:8083: i/o timeout",
         Failure.UNREACHABLE),
        (403, 'pods "orders-connect-connect-0:8083" is forbidden', Failure.UNREACHABLE),
        (404, 'pods "orders-connect-connect-0" not found', Failure.UNREACHABLE),
    ],
)  # fmt: skip
def test_the_api_servers_word_is_not_the_workers(code: int, message: str, failure: Failure) -> None:
    answer = relayed(status_of_api(code, message))
    assert (answer.status, answer.failure) == (None, failure)
    assert message in answer.detail


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ReadTimeoutError(POOL, "/", "read timed out"), Failure.TIMEOUT),
        (ConnectTimeoutError(None, "connect timed out"), Failure.UNREACHABLE),
        (StillwaterError("There are no AWS credentials."), Failure.UNREACHABLE),
    ],
)
def test_why_there_is_no_answer_is_told_apart(error: Exception, failure: Failure) -> None:
    def failing() -> Any:
        raise error

    answer = relayed(failing)
    assert (answer.failure, answer.detail) == (failure, str(error))


@every_case(
    ("cause", "failure"),
    [
        (ConnectionRefusedError(111, "refused"), Failure.REFUSED),
        (ConnectionResetError(104, "reset"), Failure.REFUSED),
        (OSError(113, "no route to host"), Failure.UNREACHABLE),
    ],
)
@every_case("kind", [NewConnectionError, ProtocolError])
def test_a_port_nobody_listens_on_is_no_host_that_is_away(
    kind: type[Exception], cause: OSError, failure: Failure
) -> None:
    def failing() -> Any:
        error = NewConnectionError(POOL, "x") if kind is NewConnectionError else ProtocolError("x")
        raise error from cause

    assert pods.timed_answer(HEALTH_PATH, failing).failure is failure


def test_a_worker_that_knows_no_health_is_asked_again_in_the_time_that_is_left() -> None:
    asked: list[tuple[str, float]] = []

    def fetch(path: str, seconds: float) -> RestResponse:
        asked.append((path, seconds))
        return RestResponse(path=path, seconds=0.0, status=404, body='{"error_code":404}')

    assert [answer.path for answer in ask(fetch, 12)] == [HEALTH_PATH, CONNECTOR_PATH]
    assert 11 < asked[1][1] <= asked[0][1] <= 12


DATA = Path(__file__).parents[3] / "data" / "exporters"
BROKER = (DATA / "broker-strimzi-reporter.txt").read_text()
PROXY = "/api/v1/namespaces/kafka/pods/orders-broker-a-{}:9404/proxy/metrics"


class Exporters:
    """Answers each path with a text, or with what is to be raised."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def text(self, path: str, timeout_seconds: float) -> str:
        assert timeout_seconds <= 3.0
        self.asked.append(path)
        bare, _, query = path.partition("?")
        told = self.answers.get(bare)
        if told is None:
            raise StillwaterError(f"The Kubernetes API answered 503 to GET {bare}.")
        return "" if query and told.startswith("kafka_server_KafkaServer") else told


def scraped(answers: dict[str, str], *pods: str) -> tuple[Exporters, object]:
    api = Exporters(answers)
    return api, PodExporters(api, "kafka").scrape(pods)


def test_a_pod_is_asked_through_the_proxy_for_what_is_wanted_alone() -> None:
    api, _ = scraped({PROXY.format(10): BROKER}, "orders-broker-a-10")
    (asked,) = api.asked
    assert asked.startswith(PROXY.format(10) + "?")
    assert "name%5B%5D=kafka_server_kafkaserver_brokerstate" in asked


def test_each_node_tells_its_own() -> None:
    answers = {PROXY.format(10): BROKER, PROXY.format(11): BROKER.replace("state 3.0", "state 2.0")}
    _, found = scraped(answers, "orders-broker-a-10", "orders-broker-a-11")
    states = {i: m.count(Metric.BROKER_STATE) for i, m in found.metrics.items()}
    assert states == {10: 3, 11: 2}


def test_one_that_does_not_answer_is_silent_and_the_others_still_tell() -> None:
    _, found = scraped({PROXY.format(10): BROKER}, "orders-broker-a-10", "orders-broker-a-11")
    assert set(found.metrics) == {10}
    assert "orders-broker-a-11" in found.silent[11]


def test_an_exporter_with_its_own_spelling_is_asked_for_everything() -> None:
    answers = {PROXY.format(10): 'kafka_server_KafkaServer_Value{name="BrokerState"} 3'}
    api, found = scraped(answers, "orders-broker-a-10")
    assert len(api.asked) == 2
    assert found.metrics[10].count(Metric.BROKER_STATE) == 3


def test_an_exporter_that_tells_nothing_of_it_is_silent() -> None:
    _, found = scraped({PROXY.format(10): "jvm_threads 3"}, "orders-broker-a-10")
    assert "allow list" in found.silent[10]
