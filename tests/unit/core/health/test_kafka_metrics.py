"""kafka_metrics against what both exporters said of a controller and a broker (4.2.0)."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.health.node import DRAFT, Metric, NodeMetrics, metric_of, parse, wanted_names
from infra.alerts.metrics import KAFKA_ALLOW
from tests.every_case import every_case
from tests.unit.infra.test_metrics import allowed

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
