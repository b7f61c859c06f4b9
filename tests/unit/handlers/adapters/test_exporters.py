"""handlers.adapters.pods: whom it asks, what it makes of answers, and of none."""

from __future__ import annotations

from pathlib import Path

from core.ground.errors import StillwaterError
from core.health.node import Metric
from handlers.adapters.pods import PodExporters

DATA = Path(__file__).parents[3] / "data" / "exporters"
BROKER = (DATA / "broker-strimzi-reporter.txt").read_text()
PROXY = "/api/v1/namespaces/kafka/pods/orders-broker-a-{}:9404/proxy/metrics"


class FakeApi:
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


def scraped(answers: dict[str, str], *pods: str) -> tuple[FakeApi, object]:
    api = FakeApi(answers)
    return api, PodExporters(api, "kafka").scrape(pods)  # type: ignore[arg-type]


def test_a_pod_is_asked_through_the_proxy_for_what_is_wanted_alone() -> None:
    api, _ = scraped({PROXY.format(10): BROKER}, "orders-broker-a-10")
    (asked,) = api.asked
    assert asked.startswith(PROXY.format(10) + "?")
    assert "name%5B%5D=kafka_server_kafkaserver_brokerstate" in asked


def test_each_node_tells_its_own() -> None:
    answers = {PROXY.format(10): BROKER, PROXY.format(11): BROKER.replace("state 3.0", "state 2.0")}
    _, found = scraped(answers, "orders-broker-a-10", "orders-broker-a-11")
    states = {i: m.count(Metric.BROKER_STATE) for i, m in found.metrics.items()}  # type: ignore[attr-defined]
    assert states == {10: 3, 11: 2}


def test_one_that_does_not_answer_is_silent_and_the_others_still_tell() -> None:
    _, found = scraped({PROXY.format(10): BROKER}, "orders-broker-a-10", "orders-broker-a-11")
    assert set(found.metrics) == {10}  # type: ignore[attr-defined]
    assert "orders-broker-a-11" in found.silent[11]  # type: ignore[attr-defined]


def test_an_exporter_with_its_own_spelling_is_asked_for_everything() -> None:
    answers = {PROXY.format(10): 'kafka_server_KafkaServer_Value{name="BrokerState"} 3'}
    api, found = scraped(answers, "orders-broker-a-10")
    assert len(api.asked) == 2
    assert found.metrics[10].count(Metric.BROKER_STATE) == 3  # type: ignore[attr-defined]


def test_an_exporter_that_tells_nothing_of_it_is_silent() -> None:
    _, found = scraped({PROXY.format(10): "jvm_threads 3"}, "orders-broker-a-10")
    assert "allow list" in found.silent[10]  # type: ignore[attr-defined]
