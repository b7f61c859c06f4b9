"""Every alert, in front of the real promtool: it fires when it must, says it, and else is quiet.

No twin: a rule needs series, and promtool makes them. They carry the names that node pools really
give: pods, claims and pod sets come from core.ground.naming.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from core.ground import naming
from core.settings.prometheus import ATTEMPTS
from core.settings.prometheus import FAILED as FAILED_ATTEMPTS
from infra.alerts.dashboards import rule_file
from tests.integration.conftest import Promtool
from tests.unit.infra.programs import prometheus_alerts, spec

pytestmark = pytest.mark.integration

CLUSTER, NAMESPACE, SECONDS_PER_DAY = "orders", "kafka", 86_400
CONNECT = naming.connect(CLUSTER)
# Node id -> node pool, of the cluster in tests/unit/infra/programs.py.
CONTROLLERS = {0: "controller-a", 1: "controller-b", 2: "controller-c"}
BROKERS = {10: "broker-a", 20: "broker-b", 30: "broker-c"}
POOLS = {**CONTROLLERS, **BROKERS}
STATE = "kafka_server_kafkaserver_brokerstate"
ACTIVE = "kafka_controller_kafkacontroller_activecontrollercount"
CONTROLLER = "kafka_controller_kafkacontroller"
REPLICAS = "kafka_server_replicamanager"
UNDER_MIN_ISR = f"{REPLICAS}_underminisrpartitioncount"
# Longer than any alert waits.
ALWAYS = 200

Series = Mapping[str, str]


def pod_name(node_id: int) -> str:
    return naming.pod(CLUSTER, POOLS[node_id], node_id)


def claim_name(node_id: int) -> str:
    return naming.claim(CLUSTER, POOLS[node_id], node_id, 0)


def series(metric: str, **labels: str) -> str:
    return f"{metric}{{{','.join(f'{key}={value!r}' for key, value in labels.items())}}}"


def node_said(metric: str, node_id: int, **labels: str) -> str:
    """Return a series as the PodMonitor of Kafka labels it."""
    return series(
        metric,
        namespace=NAMESPACE,
        cluster=CLUSTER,
        pool_name=POOLS[node_id],
        pod=pod_name(node_id),
        node=f"node-{node_id}",
        **labels,
    )


def worker_said(metric: str, number: int, **labels: str) -> str:
    pod = f"{naming.connect_component(CONNECT)}-{number}"
    return series(metric, namespace=NAMESPACE, cluster=CONNECT, pod=pod, **labels)


def pod_info(node_id: int) -> str:
    """Return what kube-state-metrics says of a pod; its own pod and namespace are labels too."""
    return series(
        "kube_pod_info",
        namespace=NAMESPACE,
        pod=pod_name(node_id),
        node=f"node-{node_id}",
        created_by_kind="StrimziPodSet",
        created_by_name=naming.pod_set(CLUSTER, POOLS[node_id]),
    )


def constant(value: float) -> str:
    return f"{float(value)}+0x{ALWAYS}"


def growing(per_minute: float, start: float = 0) -> str:
    return f"{start}{per_minute:+}x{ALWAYS}"


def each(metric: str, nodes: Mapping[int, str], value: float) -> Series:
    return {node_said(metric, node_id): constant(value) for node_id in nodes}


def volume(node_id: int, available: str, capacity: float = 100) -> Series:
    labels = {"namespace": NAMESPACE, "persistentvolumeclaim": claim_name(node_id)}
    return {
        series("kubelet_volume_stats_available_bytes", **labels): available,
        series("kubelet_volume_stats_capacity_bytes", **labels): constant(capacity),
    }


def resizing(value: float) -> Series:
    labels = {"namespace": NAMESPACE, "persistentvolumeclaim": claim_name(10)}
    name = "kube_persistentvolumeclaim_status_condition"
    return {series(name, **labels, condition="Resizing", status="true"): constant(value)}


def asked_series(counters: str, per_minute: float, *, volume_id: str = "vol-0a") -> Series:
    driver = {"instance_id": "i-0a", "volume_id": volume_id}
    volumes = {"persistentvolume": "pv-10", "csi_driver": "ebs.csi.aws.com"}
    return {
        series(f"{counters}_iops_seconds_total", **driver): growing(per_minute),
        series(f"{counters}_tp_seconds_total", **driver): constant(0),
        series("kube_persistentvolume_info", **volumes, csi_volume_handle="vol-0a"): constant(1),
        series(
            "kube_persistentvolume_claim_ref",
            persistentvolume="pv-10",
            claim_namespace=NAMESPACE,
            name=claim_name(10),
        ): constant(1),
    }


def certificate(days: float, cluster: str = CLUSTER) -> Series:
    name = "strimzi_certificate_expiration_timestamp_ms"
    labels = {"cluster": cluster, "resource_namespace": NAMESPACE, "type": "cluster-ca"}
    return {series(name, **labels): constant(days * SECONDS_PER_DAY * 1000)}


def cordon_series(node_id: int, *, since: int = 0, until: int = ALWAYS) -> Series:
    node = series("kube_node_spec_unschedulable", node=f"node-{node_id}")
    return {
        pod_info(node_id): constant(1),
        node: f"0x{since} 1x{until - since} 0x{ALWAYS}" if since else f"1x{until} 0x{ALWAYS}",
    }


def resource_state(namespace: str = NAMESPACE) -> str:
    """Return the operator's series of how its last reconciliation of the Kafka ended."""
    named = {"kind": "Kafka", "name": CLUSTER, "reason": "none"}
    return series("strimzi_resource_state", namespace="ops", resource_namespace=namespace, **named)


def failures(namespace: str = NAMESPACE) -> str:
    """Return the operator's count of failed reconciliations of Kafkas."""
    name = "strimzi_reconciliations_failed_total"
    return series(name, kind="Kafka", namespace="ops", exported_namespace=namespace)


def pending(node_id: int) -> str:
    """Return kube-state-metrics' series of a pod that waits for its node."""
    pod = {"namespace": NAMESPACE, "pod": pod_name(node_id)}
    return series("kube_pod_status_phase", **pod, phase="Pending")


def phase(node_id: int, phase_name: str) -> Series:
    labels = {"namespace": NAMESPACE, "pod": pod_name(node_id), "phase": phase_name}
    return {series("kube_pod_status_phase", **labels): constant(1), pod_info(node_id): constant(1)}


def restarts(pod: str, per_minute: float) -> Series:
    labels = {"namespace": NAMESPACE, "pod": pod, "container": "kafka"}
    return {
        series("kube_pod_container_status_restarts_total", **labels): growing(per_minute),
        pod_info(10): constant(1),
    }


@dataclass(frozen=True, kw_only=True)
class Case:
    """What an alert is shown: `says` is its whole summary, `labels` what it carries with it."""

    fires: Series
    says: str
    quiet: Series
    labels: Series = field(default_factory=dict)
    # Minutes until the expression can hold: what a rate or a forecast needs to see first.
    lead: int = 0


def on_pod(node_id: int) -> dict[str, str]:
    return {"pod": pod_name(node_id), "node": f"node-{node_id}"}


def metadata_case(metric: str, node_id: int) -> Case:
    return Case(
        # From the first scrape on: a counter that starts above 0 has no increase to see.
        fires={node_said(metric, node_id): constant(2)},
        labels=on_pod(node_id),
        says=f"{pod_name(node_id)} met 2 errors in the metadata log; read its log before a "
        "restart erases the count.",
        quiet={node_said(metric, node_id): constant(0)},
    )


GATES = series("kube_deployment_status_replicas_available", deployment="stillwater-gate")
RAFT_END = "kafka_server_raft_metrics_log_end_offset"
ELECTIONS = f"{CONTROLLER}_newactivecontrollerscount"
FENCED = f"{CONTROLLER}_fencedbrokercount"
OFFLINE = f"{CONTROLLER}_offlinepartitionscount"
SHUTTING_DOWN = f"{CONTROLLER}_controlledshutdownbrokercount"
REGISTRATION = f"{CONTROLLER}_brokerregistrationstate"
UNDER_REPLICATED = f"{REPLICAS}_underreplicatedpartitions"
FAILED_FETCHER = "kafka_server_replicafetchermanager_failedpartitionscount"
UNCLEAN = "kafka_controller_controllerstats_uncleanleaderelectionspersec_total"
IDLE = "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total"
DIRECTORIES = "kafka_log_logmanager_offlinelogdirectorycount"
BROKER_METADATA = "kafka_server_broker_metadata_metrics_metadata"
TASKS = "kafka_connect_connect_worker_metrics_connector_failed_task_count"
REBALANCING = "kafka_connect_connect_worker_rebalance_metrics_rebalancing"
CLAIM_PHASE = "kube_persistentvolumeclaim_status_phase"
ONE_ACTIVE = {
    node_said(ACTIVE, 0): constant(1),
    node_said(ACTIVE, 1): constant(0),
    node_said(ACTIVE, 2): constant(0),
}
# What the controllers hold of the log; the last one is `behind` records short of the first.
NANOSECONDS_PER_MINUTE = 60e9


def ends(behind: int) -> dict[str, str]:
    # A broker far behind is none of the quorum's: it follows, and does not vote.
    return {
        **ONE_ACTIVE,
        node_said(RAFT_END, 0): growing(120, 10_000),
        node_said(RAFT_END, 1): growing(120, 10_000),
        node_said(RAFT_END, 2): growing(120, 10_000 - behind),
        node_said(RAFT_END, 10): constant(0),
    }


def unbound(phase_name: str) -> dict[str, str]:
    labels = {"namespace": NAMESPACE, "persistentvolumeclaim": claim_name(10)}
    return {series(CLAIM_PHASE, **labels, phase=phase_name): constant(1)}


def probe_series(failed_per_minute: float) -> dict[str, str]:
    """Return what a probe of three brokers says, an attempt a second with each."""
    labels = {"namespace": NAMESPACE, "cluster": CLUSTER, "broker": "10"}
    return {
        series(ATTEMPTS, **labels): growing(180),
        series(FAILED_ATTEMPTS, **labels, step="produce"): growing(failed_per_minute),
    }


CASES: Mapping[str, Case] = {
    "KafkaClientsFail": Case(
        fires=probe_series(6),
        lead=1,
        says="Attempts of the probe fail: 2 % in an hour or 5 % in six of the clients' error "
        "budget of 30 days, and burning still.",
        quiet=probe_series(0.1),
    ),
    "KafkaClientsFailSlowly": Case(
        fires=probe_series(0.9),
        lead=1,
        says="Attempts of the probe fail now and then: 10 % in a day or three of the clients' "
        "error budget of 30 days, and burning still.",
        quiet=probe_series(0.1),
    ),
    "KafkaProbeSilent": Case(
        fires={key: constant(5) for key in probe_series(0)},
        lead=6,
        says="The probe is silent: the service of clients is unknown, and no alert on it can fire.",
        quiet=probe_series(0),
    ),
    "KafkaNoActiveController": Case(
        fires={node_said(ACTIVE, node_id): constant(0) for node_id in CONTROLLERS},
        says="0 controllers are active, and there must be one: nothing is decided.",
        quiet=ONE_ACTIVE,
    ),
    "KafkaControllerMissing": Case(
        fires={node_said(ACTIVE, 0): constant(1), node_said(ACTIVE, 1): constant(0)},
        says="2 of 3 controllers answer.",
        quiet=ONE_ACTIVE,
    ),
    "KafkaControllerBehind": Case(
        fires=ends(5000),
        labels={"pod": pod_name(2)},
        says=f"{pod_name(2)} is 5000 records of the metadata log behind: it votes, and its vote "
        "makes no majority.",
        quiet=ends(100),
    ),
    "KafkaControllerElections": Case(
        fires={node_said(ELECTIONS, 0): growing(1)},
        lead=15,
        says="The controllers elected 17 leaders within an hour.",
        # A rotation of all three, one failed election included.
        quiet={node_said(ELECTIONS, 0): "1+0x30 2+0x3 3+0x3 4+0x3 5+0x160"},
    ),
    "KafkaBrokerFenced": Case(
        fires=each(FENCED, CONTROLLERS, 1),
        says="1 brokers are fenced: they run, and no partition counts on them.",
        quiet=each(FENCED, CONTROLLERS, 0),
    ),
    "KafkaMetadataLoadError": metadata_case(f"{BROKER_METADATA}_load_error_count", 20),
    "KafkaMetadataApplyError": metadata_case(f"{BROKER_METADATA}_apply_error_count", 20),
    "KafkaControllerMetadataError": metadata_case(f"{CONTROLLER}_metadataerrorcount", 1),
    "KafkaOfflinePartitions": Case(
        fires=each(OFFLINE, CONTROLLERS, 4),
        says="4 partitions have no leader: they are neither read nor written.",
        quiet=each(OFFLINE, CONTROLLERS, 0),
    ),
    "KafkaUnderMinIsr": Case(
        fires=each(UNDER_MIN_ISR, BROKERS, 2),
        says="6 partitions have too few replicas in sync to be written.",
        quiet=each(UNDER_MIN_ISR, BROKERS, 0),
    ),
    "KafkaUnderReplicated": Case(
        fires=each(UNDER_REPLICATED, BROKERS, 1),
        says="3 partitions lack a replica for an hour.",
        # A refill of forty minutes, which is what a rotation is.
        quiet={node_said(UNDER_REPLICATED, 20): "9+0x40 0+0x160"},
    ),
    "KafkaReplicaFetcherFailed": Case(
        fires={node_said(FAILED_FETCHER, 30): constant(3)},
        labels=on_pod(30),
        says=f"{pod_name(30)} gave up on following 3 partitions; it does not try again by itself.",
        quiet=each(FAILED_FETCHER, BROKERS, 0),
    ),
    "KafkaUncleanLeaderElection": Case(
        fires={node_said(UNCLEAN, 0): "0+0x5 1+0x195"},
        lead=6,
        says="A replica out of sync became leader: acknowledged records may be lost.",
        quiet=each(UNCLEAN, CONTROLLERS, 1),
    ),
    "KafkaBrokerMissing": Case(
        # The third is in log recovery: it is there, and does not serve.
        fires={
            node_said(STATE, 10): constant(3),
            node_said(STATE, 20): constant(3),
            node_said(STATE, 30): constant(2),
        },
        says="Fewer than 3 brokers run for a quarter of an hour.",
        quiet=each(STATE, BROKERS, 3),
    ),
    "KafkaPodPending": Case(
        fires=phase(10, "Pending"),
        labels={"namespace": NAMESPACE, "pod": pod_name(10)},
        says=f"{pod_name(10)} finds no node for ten minutes; its volume ties it to a zone.",
        quiet=phase(10, "Running"),
    ),
    "KafkaPodRestarting": Case(
        fires=restarts(pod_name(10), 0.25),
        lead=31,
        labels={"namespace": NAMESPACE, "pod": pod_name(10)},
        says=f"{pod_name(10)} restarted 7.5 times in half an hour.",
        # Somebody else's pod in the same namespace.
        quiet=restarts("orders-entity-operator-7d9f", 0.25),
    ),
    "KafkaRequestHandlersBusy": Case(
        fires={node_said(IDLE, 10): growing(0.1 * NANOSECONDS_PER_MINUTE)},
        lead=2,
        labels=on_pod(10),
        says=f"{pod_name(10)} has 10% of its request handlers idle: clients wait.",
        quiet={node_said(IDLE, 10): growing(0.9 * NANOSECONDS_PER_MINUTE)},
    ),
    "KafkaRotationStuck": Case(
        fires=cordon_series(10),
        labels={"namespace": NAMESPACE, **on_pod(10)},
        says=f"{pod_name(10)} is still on node-10, which is cordoned, twice as long as a drain "
        "may take.",
        # Gone within the drain's own limit, as most are.
        quiet=cordon_series(10, until=6),
    ),
    "KafkaEvictionGateAway": Case(
        fires={pod_info(10): constant(1), GATES: constant(0)},
        says="No replica of the eviction gate answers: Kafka pods cannot be evicted.",
        quiet={pod_info(10): constant(1), GATES: constant(1)},
    ),
    "KafkaControlledShutdownStuck": Case(
        fires=each(SHUTTING_DOWN, CONTROLLERS, 1),
        says="A broker hands over its leaders for longer than its pod's grace: it was killed, or "
        "is about to be.",
        quiet={node_said(SHUTTING_DOWN, 0): "1+0x4 0+0x196"},
    ),
    "KafkaUnderMinIsrInRotation": Case(
        fires={**cordon_series(10), node_said(UNDER_MIN_ISR, 20): constant(5)},
        says="5 partitions cannot be written while a node is drained: the drain took a replica "
        "that was needed.",
        # The same, and no node leaves: KafkaUnderMinIsr's business.
        quiet={pod_info(10): constant(1), node_said(UNDER_MIN_ISR, 20): constant(5)},
    ),
    "KafkaBrokerNotBack": Case(
        fires={
            node_said(REGISTRATION, 0, broker="10"): constant(10),
            node_said(REGISTRATION, 0, broker="20"): constant(30),
            node_said(REGISTRATION, 0, broker="99"): constant(-1),
        },
        labels={"broker": "10"},
        says="Broker 10 is registered and not active; a rotation waits no longer for it.",
        quiet={node_said(REGISTRATION, 0, broker="10"): "20+0x5 10+0x10 30+0x185"},
    ),
    "KafkaLogDirectoryOffline": Case(
        fires={node_said(DIRECTORIES, 10): constant(1)},
        labels=on_pod(10),
        says=f"{pod_name(10)} lost 1 of its volumes.",
        quiet=each(DIRECTORIES, BROKERS, 0),
    ),
    "KafkaVolumeNearlyFull": Case(
        fires=volume(10, constant(10)),
        labels={"namespace": NAMESPACE, "persistentvolumeclaim": claim_name(10)},
        says=f"{claim_name(10)} has 10% left.",
        quiet=volume(10, constant(40)),
    ),
    "KafkaVolumeFills": Case(
        fires=volume(10, growing(-0.1, 45)),
        lead=3,
        labels={"namespace": NAMESPACE, "persistentvolumeclaim": claim_name(10)},
        says=f"{claim_name(10)} is full within a day if it fills as it did for six hours.",
        # As quick, with room for more than that.
        quiet=volume(10, growing(-0.1, 90)),
    ),
    "KafkaVolumeFullSoon": Case(
        fires=volume(10, growing(-0.1, 29)),
        lead=2,
        labels={"namespace": NAMESPACE, "persistentvolumeclaim": claim_name(10)},
        says=f"{claim_name(10)} is full within six hours if it fills as it did for half an hour.",
        # As full, and slower.
        quiet=volume(10, growing(-0.01, 29)),
    ),
    "KafkaVolumeResizeStuck": Case(
        fires=resizing(1),
        labels={"persistentvolumeclaim": claim_name(10), "condition": "Resizing"},
        says=f"{claim_name(10)} has been Resizing for an hour.",
        quiet=resizing(0),
    ),
    "KafkaVolumeClaimUnbound": Case(
        fires=unbound("Lost"),
        labels={"persistentvolumeclaim": claim_name(10), "phase": "Lost"},
        says=f"{claim_name(10)} is Lost: its broker has no volume.",
        quiet=unbound("Bound"),
    ),
    "KafkaVolumeThrottled": Case(
        fires=asked_series("aws_ebs_csi_exceeded", 30),
        lead=2,
        labels={"name": claim_name(10), "persistentvolume": "pv-10", "volume_id": "vol-0a"},
        says=f"{claim_name(10)} is asked for more than the volume gives, 50% of the time.",
        # Another's volume in the same account, and the instance's limit, which is another alert.
        quiet={
            **asked_series("aws_ebs_csi_exceeded", 30, volume_id="vol-other"),
            **asked_series("aws_ebs_csi_ec2_exceeded", 30),
        },
    ),
    "KafkaInstanceThrottled": Case(
        fires=asked_series("aws_ebs_csi_ec2_exceeded", 30),
        lead=2,
        labels={"name": claim_name(10), "persistentvolume": "pv-10", "volume_id": "vol-0a"},
        says=f"The instance under {claim_name(10)} is asked for more than it gives its volumes, "
        "50% of the time.",
        quiet=asked_series("aws_ebs_csi_exceeded", 30),
    ),
    "KafkaCertificateExpires": Case(
        # The tests' clock starts at the epoch.
        fires=certificate(10),
        labels={"type": "cluster-ca"},
        says="The cluster-ca certificate ends in 9d 22h 58m 0s and was not renewed.",
        quiet={**certificate(365), **certificate(10, cluster="other")},
    ),
    "StrimziReconciliationFails": Case(
        fires={resource_state(): constant(0)},
        labels={"kind": "Kafka"},
        says="Strimzi fails to bring a Kafka to its description.",
        quiet={
            # A healthy rotation: a pod waits two minutes for its node, and the operator, seven
            # failures later, until its next turn.
            failures(): f"0x20 7x{ALWAYS}",
            resource_state(): f"1x20 0x5 1x{ALWAYS}",
            pending(10): f"0x19 1x2 0x{ALWAYS}",
            pod_info(10): constant(1),
            # Another namespace's.
            failures("other"): growing(0.5),
            resource_state("other"): constant(0),
        },
    ),
    "ConnectTaskFailed": Case(
        fires={worker_said(TASKS, 0, connector="s3-sink"): constant(1)},
        labels={"connector": "s3-sink"},
        says="1 tasks of connector s3-sink have failed.",
        quiet={worker_said(TASKS, 0, connector="s3-sink"): constant(0)},
    ),
    "ConnectWorkerMissing": Case(
        fires={worker_said(REBALANCING, 0): constant(0)},
        says="Fewer than 3 Connect workers answer.",
        quiet={worker_said(REBALANCING, number): constant(0) for number in range(3)},
    ),
    "ConnectRebalancing": Case(
        fires={worker_said(REBALANCING, number): constant(number == 0) for number in range(3)},
        says="Connect rebalances for a quarter of an hour: tasks stand still.",
        quiet={worker_said(REBALANCING, number): constant(0) for number in range(3)},
    ),
}


SPEC = spec(
    connect={},
    probe={"image": "registry.example/team/stillwater:1"},
    eviction_gate={"image": "registry.example/team/gate:1"},
)
ALERTS = prometheus_alerts(SPEC)


@pytest.fixture
def check(promtool: Promtool, tmp_path: Path) -> Callable[[Mapping[str, Any], list[Any]], None]:
    """Run tests of rules: of the alerts that they ask for, and of what is recorded for these."""

    def run(rules: Mapping[str, Any], tests: list[Any]) -> None:
        asked = {each["alertname"] for test in tests for each in test["alert_rule_test"]}
        groups = [
            {**group, "rules": [r for r in group["rules"] if r.get("alert") in {None, *asked}]}
            for group in rules["groups"]
        ]
        # JSON is YAML.
        (tmp_path / "rules.yaml").write_text(json.dumps({"groups": groups}))
        content = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
        (tmp_path / "tests.yaml").write_text(json.dumps(content))
        promtool("test", "rules", tmp_path / "tests.yaml")

    return run


def shown(values: Series, *expected: tuple[str, int, list[Any]]) -> dict[str, Any]:
    """Return a test: what Prometheus holds, and which alerts fire at which minute."""
    return {
        "interval": "1m",
        "input_series": [{"series": key, "values": value} for key, value in values.items()],
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": name, "exp_alerts": firing}
            for name, minute, firing in expected
        ],
    }


def minutes_held(name: str) -> int:
    """Return how long an alert must hold before it fires."""
    return int(ALERTS[name]["for"].removesuffix("m"))


def firing(name: str) -> dict[str, Any]:
    case = CASES[name]
    rule = ALERTS[name]
    return {
        "exp_labels": {**rule["labels"], **case.labels},
        "exp_annotations": {**rule["annotations"], "summary": case.says},
    }


def test_every_alert_has_a_case() -> None:
    assert set(CASES) == set(ALERTS)


def test_prometheus_takes_the_rules_and_finds_nothing_to_say(
    promtool: Promtool, tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(json.dumps(rule_file(SPEC)))
    promtool("check", "rules", "--lint=all", "--lint-fatal", tmp_path / "rules.yaml")


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_when_it_must_and_not_before_and_is_quiet_otherwise(
    name: str, check: Callable[..., None]
) -> None:
    case, minutes = CASES[name], minutes_held(name)
    expected = [(name, case.lead + minutes + 2, [firing(name)])]
    if minutes:
        expected.append((name, minutes - 1, []))
    never = [(name, minute, list[Any]()) for minute in range(0, ALWAYS, 10)]
    check(rule_file(SPEC), [shown(case.fires, *expected), shown(case.quiet, *never)])


def test_failures_count_where_the_state_has_changed_again_and_no_pod_waits(
    check: Callable[..., None],
) -> None:
    name = "StrimziReconciliationFails"
    failing = {failures(): growing(0.5), resource_state(): f"1x4 0x1 1x4 0x1 1x{ALWAYS}"}
    waiting = {pod_info(10): constant(1), pending(10): constant(1)}
    check(
        rule_file(SPEC),
        [
            shown(failing, (name, 60, [firing(name)])),
            shown({**failing, **waiting}, *((name, minute, []) for minute in range(0, 90, 10))),
        ],
    )


@pytest.mark.parametrize(
    "name", ["KafkaBrokerMissing", "KafkaControllerMissing", "ConnectWorkerMissing"]
)
def test_a_cluster_that_says_nothing_at_all_is_missed(
    name: str, check: Callable[..., None]
) -> None:
    test = shown({"up": constant(1)}, (name, minutes_held(name) + 2, [with_nobody(name)]))
    check(rule_file(SPEC), [test])


def with_nobody(name: str) -> dict[str, Any]:
    rule = ALERTS[name]
    summary = rule["annotations"]["summary"].replace("{{ $value }}", "0")
    return {
        "exp_labels": rule["labels"],
        "exp_annotations": {**rule["annotations"], "summary": summary},
    }
