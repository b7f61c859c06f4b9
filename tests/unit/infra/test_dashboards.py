"""infra.alerts.dashboards: pages and alerts over metrics that exist and pass the list.

Whether Prometheus understands their queries is asked in tests/integration.

Whether they fire at all is asked of promtool, in tests/integration/test_alert_rules.py.

Kafka's and Connect's must exist and pass the allow list. Everything else is listed here, by its
exporter: a name that is in no list is one that nobody was seen to expose.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.cost import pricing
from core.ground import constants
from infra.alerts.dashboards import UID_LIMIT, cluster_values, dashboards, rule_file, uid
from infra.alerts.metrics import CONNECT_ALLOW, KAFKA_ALLOW
from tests.unit.infra.programs import description, prometheus_alerts, run_layer, spec
from tests.unit.infra.recording import Recorded
from tests.unit.infra.test_alerts import CONNECT, KAFKA, allowed

OTHERS = {
    "kubelet": {"kubelet_volume_stats_available_bytes", "kubelet_volume_stats_capacity_bytes",
        "kubelet_volume_stats_used_bytes"},
    "kube-state-metrics": {"kube_deployment_status_replicas_available",
        "kube_node_spec_unschedulable", "kube_persistentvolume_claim_ref",
        "kube_persistentvolume_info", "kube_persistentvolumeclaim_resource_requests_storage_bytes",
        "kube_persistentvolumeclaim_status_condition", "kube_persistentvolumeclaim_status_phase",
        "kube_pod_container_status_restarts_total", "kube_pod_info", "kube_pod_status_phase"},
    # The EBS CSI driver's node plugin, whose metrics infra.eks.cluster turns on.
    "aws-ebs-csi-driver": {"aws_ebs_csi_ec2_exceeded_iops_seconds_total",
        "aws_ebs_csi_ec2_exceeded_tp_seconds_total", "aws_ebs_csi_exceeded_iops_seconds_total",
        "aws_ebs_csi_exceeded_tp_seconds_total"},
    "strimzi-cluster-operator": {"strimzi_certificate_expiration_timestamp_ms",
        "strimzi_reconciliations_failed_total", "strimzi_resource_state"},
    # Every Java process of Kafka's, whatever the allow list says.
    "process": {"jvm_gc_collection_seconds_sum", "jvm_memory_used_bytes"},
}  # fmt: skip
PREFIXES = r"\b(?:kafka|kubelet|kube|aws|strimzi|jvm|process)_[a-z0-9_]+"


def names(expression: str) -> set[str]:
    """Return the metrics an expression reads; what is in quotes is a label's value."""
    return set(re.findall(PREFIXES, re.sub(r'"[^"]*"', '""', expression)))


def unknown(expression: str) -> list[str]:
    """Return what an expression reads and nobody exposes."""
    return sorted(name for name in names(expression) if not _exposed(name))


def _exposed(name: str) -> bool:
    if name.startswith("kafka_connect_"):
        return name in CONNECT and allowed(name, CONNECT_ALLOW)
    if name.startswith("kafka_"):
        return name in KAFKA and allowed(name, KAFKA_ALLOW)
    return any(name in exposed for exposed in OTHERS.values())


DASHBOARDS = dashboards(spec())
every_dashboard = pytest.mark.parametrize("name", DASHBOARDS)


def panels(name: str) -> list[dict[str, Any]]:
    return list(DASHBOARDS[name]["panels"])


def targets(name: str) -> Iterator[dict[str, Any]]:
    for panel in panels(name):
        yield from panel["targets"]


def test_there_are_four() -> None:
    assert list(DASHBOARDS) == ["cluster", "broker", "rotation", "cost"]


@every_dashboard
def test_a_query_reads_what_somebody_exposes_and_the_list_lets_through(name: str) -> None:
    for target in targets(name):
        if "expr" in target:
            assert unknown(target["expr"]) == []
            assert names(target["expr"]) or target["expr"].startswith("vector(")
        else:
            assert target["namespace"] == constants.NAMESPACE
            assert target["metricName"] in constants.ALL
            assert target["dimensions"] == {constants.CLUSTER_DIMENSION: ["test-orders"]}


@every_dashboard
def test_a_query_hears_one_cluster(name: str) -> None:
    for target in targets(name):
        expression = target.get("expr", 'namespace="kafka"')
        assert 'namespace="kafka"' in expression or expression.startswith("vector(")


@every_dashboard
def test_a_panel_has_a_unit_a_sentence_and_the_source_its_reader_chooses(name: str) -> None:
    variables = {v["name"]: v for v in DASHBOARDS[name]["templating"]["list"]}
    for panel in panels(name):
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["description"].endswith(".")
        assert panel["title"]
        for source in (panel["datasource"], *(t["datasource"] for t in panel["targets"])):
            variable = source["uid"].removeprefix("${").removesuffix("}")
            assert variables[variable]["type"] == "datasource"
            assert variables[variable]["query"] == source["type"] == panel["datasource"]["type"]


@every_dashboard
def test_panels_fill_lines_and_lie_on_nobody(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels(name):
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert at["x"] + at["w"] <= 24
        assert not cells & taken
        taken |= cells
    assert len({panel["id"] for panel in panels(name)}) == len(panels(name))
    assert len({panel["title"] for panel in panels(name)}) == len(panels(name))


def test_a_dashboards_address_is_its_clusters_and_fits() -> None:
    assert {d["uid"] for d in DASHBOARDS.values()} == {
        f"stillwater-test-orders-{name}" for name in DASHBOARDS
    }
    long = [uid("staging-" + "x" * 30 + letter, "cluster") for letter in "ab"]
    assert len(set(long)) == 2
    assert all(len(each) <= UID_LIMIT for each in long)


ELSEWHERE = {"region": "ap-east-2", "availability_zones": [f"ap-east-2{zone}" for zone in "abc"]}


def test_a_region_without_a_price_has_no_costs_and_everything_else() -> None:
    assert list(dashboards(spec(**ELSEWHERE))) == ["cluster", "broker", "rotation"]


def test_a_directorys_own_prices_bring_the_dashboard_of_costs(tmp_path: Path) -> None:
    own = tmp_path / "prices.json"
    document = json.loads(pricing.read_shipped(pricing.SHIPPED.name))
    document["regions"]["ap-east-2"] = document["regions"]["us-east-1"]
    own.write_text(json.dumps(document))
    assert "cost" in dashboards(spec(**ELSEWHERE), own)


def test_every_price_is_named_with_its_day() -> None:
    said = " ".join(panel["description"] for panel in panels("cost"))
    instances = {f"instance_hour:{pool.instance_type}" for pool in spec().pools}
    for item in (*instances, "gp3_gib_month", "inter_zone_gib", "nlb_hour"):
        assert f"{item} " in said
    assert "read 20" in said


def maps(recorded: Recorded) -> list[dict[str, Any]]:
    return [r.inputs for r in recorded.of("core/v1:ConfigMap") if r.name.startswith("dashboards-")]


def test_grafanas_sidecar_finds_them_where_it_is(layers: dict[str, Recorded]) -> None:
    references = {f"test-{name}": run.outputs for name, run in layers.items()}
    raw = description(metrics={"dashboards": True})
    found = maps(run_layer("kafka", raw, references))
    assert {m["metadata"]["name"] for m in found} == {
        f"orders-dashboard-{name}" for name in DASHBOARDS
    }
    for each in found:
        assert each["metadata"]["labels"] == {"grafana_dashboard": "1"}
        assert each["metadata"]["namespace"] == "kafka"
        ((file, content),) = each["data"].items()
        assert Path(file).suffix == ".json"
        assert json.loads(content)["uid"].startswith("stillwater-test-orders-")
        assert len(content.encode()) < 1_000_000  # a ConfigMap's limit
    assert maps(layers["kafka"]) == []


ALERTS = prometheus_alerts(spec(connect={}, eviction_gate={"image": "gate:1"}))
every_alert = pytest.mark.parametrize("name", ALERTS)


@every_alert
def test_an_alert_reads_what_somebody_exposes_and_the_list_lets_through(name: str) -> None:
    assert names(ALERTS[name]["expr"])
    assert unknown(ALERTS[name]["expr"]) == []


def test_a_name_nobody_exposes_is_found() -> None:
    expected = ["kafka_server_nothing", "kube_nothing_total"]
    assert unknown('sum(kafka_server_nothing{pod="kafka_x"}) + kube_nothing_total') == expected


@every_alert
def test_an_alert_hears_one_cluster_and_no_pods_name(name: str) -> None:
    # Strimzi's example rules match pods by a name that node pools do not give (strimzi#13163).
    expression = ALERTS[name]["expr"].replace(cluster_values(spec())["cordoned"], "")
    assert "pod=~" not in expression
    assert 'namespace="kafka"' in expression
    if name != "StrimziReconciliationFails":  # the operator counts by namespace alone
        assert '"orders' in expression or "-orders-" in expression


@every_alert
def test_an_alert_says_a_sentence_and_where_to_read_on(name: str) -> None:
    rule = ALERTS[name]
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["runbook_url"] == f"{spec().alerts.runbooks_url}/{name}.md"
    assert rule["labels"]["severity"] in {"critical", "warning"}


def test_no_alert_has_anothers_name() -> None:
    assert len(ALERTS) == sum(
        len(group["rules"])
        for group in rule_file(spec(connect={}, eviction_gate={"image": "gate:1"}))["groups"]
    )


def test_every_subject_is_watched_and_connect_where_it_is() -> None:
    with_connect, without = (
        [group["name"] for group in rule_file(described)["groups"]]
        for described in (spec(connect={}), spec())
    )
    subjects = ("controllers", "metadata", "replicas", "brokers", "rotation", "volumes")
    expected = [f"orders-{subject}" for subject in (*subjects, "certificates")]
    assert (with_connect, without) == ([*expected, "orders-connect"], expected)


def test_the_address_of_the_runbooks_is_the_descriptions() -> None:
    file = rule_file(spec(alerts={"runbooks_url": "https://wiki.example"}))
    pages = {rule["annotations"]["runbook_url"] for g in file["groups"] for rule in g["rules"]}
    assert all(page.startswith("https://wiki.example/") for page in pages)


@pytest.mark.parametrize(
    ("name", "promised"),
    [("KafkaBrokerMissing", 3), ("KafkaControllerMissing", 3), ("ConnectWorkerMissing", 3)],
)
def test_nobody_left_to_count_is_fewer_than_promised(name: str, promised: int) -> None:
    assert ALERTS[name]["expr"].endswith(f"or vector(0)) < {promised}")


def test_a_counter_that_a_restart_erases_is_read_as_it_stands() -> None:
    for name in ("KafkaMetadataLoadError", "KafkaMetadataApplyError"):
        assert "increase(" not in ALERTS[name]["expr"]
        assert ALERTS[name]["for"] == "0m"


def test_a_rotations_limits_are_the_descriptions_own() -> None:
    slow = {
        "nth_drain_timeout_seconds": 1200,
        "pod_grace_seconds": 901,
        "post_condition_wait_seconds": 3600,
    }
    slow_alerts = prometheus_alerts(spec(timings=slow))
    assert slow_alerts["KafkaRotationStuck"]["for"] == "40m"
    assert slow_alerts["KafkaControlledShutdownStuck"]["for"] == "17m"
    assert slow_alerts["KafkaBrokerNotBack"]["for"] == "60m"


def test_a_volumes_claims_are_matched_by_the_names_node_pools_give() -> None:
    (pattern,) = set(
        re.findall(r'persistentvolumeclaim=~"([^"]+)"', ALERTS["KafkaVolumeNearlyFull"]["expr"])
    )
    assert re.fullmatch(pattern, "data-0-orders-broker-a-10")
    assert re.fullmatch(pattern, "data-1-orders-controller-c-2")
    assert not re.fullmatch(pattern, "data-0-other-broker-a-10")
    # Another cluster of the namespace, whose name begins as this one's.
    assert not re.fullmatch(pattern, "data-0-orders-eu-broker-a-10")
