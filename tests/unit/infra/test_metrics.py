"""infra.alerts.metrics: the allow list against the names that Kafka 4.2 really has.

data/*-metrics.txt are what Strimzi's reporter said of a running broker-and-controller and of a
running worker with a source and a sink, everything allowed.
"""

from __future__ import annotations

import re
from pathlib import Path

from core.cluster import Metrics
from infra.alerts.metrics import CONNECT_ALLOW, KAFKA_ALLOW, metrics_config, pod_monitor_spec
from local.kubernetes.strimzi_config import METRICS_PORT_NAME
from tests.every_case import every_case

DATA = Path(__file__).parent / "data"
KAFKA = (DATA / "kafka-4.2.0-metrics.txt").read_text().split()
CONNECT = (DATA / "connect-4.2.0-metrics.txt").read_text().split()
NEEDED = [
    "kafka_server_broker_metadata_metrics_metadata_load_error_count",
    "kafka_server_broker_metadata_metrics_metadata_apply_error_count",
    "kafka_controller_kafkacontroller_metadataerrorcount",
    "kafka_server_replicafetchermanager_maxlag",
    "kafka_log_logmanager_offlinelogdirectorycount",
    "kafka_log_logmanager_remaininglogstorecover",
    "kafka_controller_kafkacontroller_fencedbrokercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_controller_controllerstats_uncleanleaderelectionspersec_total",
    "kafka_server_raft_metrics_current_state_info",
    "kafka_server_raft_metrics_current_leader",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_replicamanager_underminisrpartitioncount",
    "kafka_cluster_partition_underreplicated",
    "kafka_server_brokertopicmetrics_replicationbytesinpersec_total",
    "kafka_server_kafkaserver_brokerstate",
]


def allowed(name: str, allow: tuple[str, ...]) -> bool:
    """Say whether a name is let through, as the reporter asks: before Prometheus's own ending."""
    bare = name.removesuffix("_total").removesuffix("_info")
    return any(re.fullmatch(expression, bare) for expression in allow)


@every_case("expression", KAFKA_ALLOW)
def test_every_entry_names_something_kafka_has(expression: str) -> None:
    assert any(re.fullmatch(expression, name) for name in KAFKA)


@every_case("expression", CONNECT_ALLOW)
def test_every_entry_names_something_a_worker_has(expression: str) -> None:
    assert any(re.fullmatch(expression, name) for name in CONNECT)


@every_case("name", NEEDED)
def test_what_a_rotation_and_an_alert_read_is_allowed(name: str) -> None:
    assert allowed(name, KAFKA_ALLOW)


def test_the_list_is_a_choice_and_not_everything() -> None:
    shown = [name for name in KAFKA if allowed(name, KAFKA_ALLOW)]
    assert 50 < len(shown) < len(KAFKA) / 4


def test_the_user_adds_to_the_list_and_may_turn_it_off() -> None:
    config = metrics_config(Metrics(allow=("kafka_server_quota_.*",)), KAFKA_ALLOW)["metricsConfig"]
    assert config["type"] == "strimziMetricsReporter"
    assert config["values"]["allowList"] == [*KAFKA_ALLOW, "kafka_server_quota_.*"]
    assert metrics_config(Metrics(enabled=False), KAFKA_ALLOW) == {}


def test_a_pod_monitor_finds_one_resources_pods_by_the_port_they_name() -> None:
    spec = pod_monitor_spec("orders", "Kafka")
    assert spec["selector"]["matchLabels"] == {
        "strimzi.io/cluster": "orders",
        "strimzi.io/kind": "Kafka",
    }
    (endpoint,) = spec["podMetricsEndpoints"]
    assert endpoint["port"] == METRICS_PORT_NAME
