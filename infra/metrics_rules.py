"""What Prometheus calls somebody for: brokers, the quorum, KIP-859, volumes, Connect workers.

No rule reads a pod's name. Strimzi's examples do, by a pattern that no node pool's pod matches, and
so never fire (strimzi#13163); ours go by the labels the PodMonitors give, and by how many pods the
description promises. KIP-859's counters start again at 0 with their process, so any value above 0
counts, not an increase. Every alert has a page of its own name in docs/runbooks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from core import naming
from core.cluster import ClusterSpec
from infra.metrics import POD_MONITOR_API

RUNBOOKS = "docs/runbooks"
FULL_SHARE = 0.15


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One alert; `minutes` is how long it must hold."""

    name: str
    expression: str
    minutes: int
    severity: Literal["critical", "warning"]
    summary: str

    @property
    def runbook(self) -> str:
        return f"{RUNBOOKS}/{self.name}.md"

    def rule(self) -> dict[str, Any]:
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": f"{self.minutes}m",
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "runbook": self.runbook},
        }


def prometheus_rule(name: str, spec: ClusterSpec, opts: pulumi.ResourceOptions) -> CustomResource:
    """Return the PrometheusRule of a cluster."""
    return CustomResource(
        name,
        api_version=POD_MONITOR_API,
        kind="PrometheusRule",
        metadata={"name": f"{spec.name}-kafka", "namespace": spec.kubernetes.namespace},
        spec={
            "groups": [{"name": f"{spec.name}-kafka", "rules": [a.rule() for a in alerts(spec)]}]
        },
        opts=opts,
    )


def alerts(spec: ClusterSpec) -> list[Alert]:
    """Return every alert of a cluster."""
    mine = f'{{namespace="{spec.kubernetes.namespace}",cluster="{spec.name}"}}'
    found = [*_quorum(spec, mine), *_metadata(mine), *_replicas(mine), *_brokers(spec, mine)]
    return [*found, *_connect(spec)]


def _quorum(spec: ClusterSpec, mine: str) -> Iterator[Alert]:
    controllers = _nodes(spec, controllers=True)
    yield Alert(
        name="KafkaNoActiveController",
        expression="(sum(kafka_controller_kafkacontroller_activecontrollercount"
        f"{mine}) or vector(0)) != 1",
        minutes=1,
        severity="critical",
        summary="{{ $value }} controllers are active, and there must be one: nothing is decided.",
    )
    yield Alert(
        name="KafkaControllerMissing",
        expression=_fewer(
            f"kafka_controller_kafkacontroller_activecontrollercount{mine}", controllers
        ),
        minutes=10,
        severity="warning",
        summary=f"{{{{ $value }}}} of {controllers} controllers answer.",
    )
    yield Alert(
        name="KafkaBrokerFenced",
        expression=f"max(kafka_controller_kafkacontroller_fencedbrokercount{mine}) > 0",
        minutes=10,
        severity="warning",
        summary="{{ $value }} brokers are fenced: they run, and no partition counts on them.",
    )


def _metadata(mine: str) -> Iterator[Alert]:
    """Yield KIP-859's three: a node that reads the cluster's metadata wrongly."""
    counters = {
        "KafkaMetadataLoadError": "kafka_server_broker_metadata_metrics_metadata_load_error_count",
        "KafkaMetadataApplyError": (
            "kafka_server_broker_metadata_metrics_metadata_apply_error_count"
        ),
        "KafkaControllerMetadataError": "kafka_controller_kafkacontroller_metadataerrorcount",
    }
    for name, counter in counters.items():
        yield Alert(
            name=name,
            expression=f"max by (pod, node) ({counter}{mine}) > 0",
            minutes=0,
            severity="critical",
            summary="{{ $labels.pod }} met {{ $value }} errors in the metadata log; read its log "
            "before a restart erases the count.",
        )


def _replicas(mine: str) -> Iterator[Alert]:
    yield Alert(
        name="KafkaOfflinePartitions",
        expression=f"max(kafka_controller_kafkacontroller_offlinepartitionscount{mine}) > 0",
        minutes=1,
        severity="critical",
        summary="{{ $value }} partitions have no leader: they are neither read nor written.",
    )
    yield Alert(
        name="KafkaUnderMinIsr",
        expression=f"sum(kafka_server_replicamanager_underminisrpartitioncount{mine}) > 0",
        minutes=1,
        severity="critical",
        summary="{{ $value }} partitions have too few replicas in sync to be written.",
    )
    yield Alert(
        name="KafkaUnderReplicated",
        expression=f"sum(kafka_server_replicamanager_underreplicatedpartitions{mine}) > 0",
        # A broker that refills after a rotation is what this project does all day.
        minutes=60,
        severity="warning",
        summary="{{ $value }} partitions lack a replica for an hour.",
    )
    yield Alert(
        name="KafkaUncleanLeaderElection",
        expression="sum(increase(kafka_controller_controllerstats_uncleanleaderelectionspersec_total"
        f"{mine}[15m])) > 0",
        minutes=0,
        severity="critical",
        summary="A replica out of sync became leader: acknowledged records may be lost.",
    )


def _brokers(spec: ClusterSpec, mine: str) -> Iterator[Alert]:
    brokers, state = _nodes(spec, controllers=False), "kafka_server_kafkaserver_brokerstate"
    yield Alert(
        name="KafkaBrokerMissing",
        expression=_fewer(f"{state}{mine} == 3", brokers),
        minutes=15,
        severity="critical",
        summary=f"Fewer than {brokers} brokers run for a quarter of an hour.",
    )
    yield Alert(
        name="KafkaLogDirectoryOffline",
        expression=f"max by (pod, node) (kafka_log_logmanager_offlinelogdirectorycount{mine}) > 0",
        minutes=0,
        severity="critical",
        summary="{{ $labels.pod }} lost {{ $value }} of its volumes.",
    )
    claims = f'persistentvolumeclaim=~"data-[0-9]+-{spec.name}-.+"'
    where = f'{{namespace="{spec.kubernetes.namespace}",{claims}}}'
    yield Alert(
        name="KafkaVolumeNearlyFull",
        expression=f"kubelet_volume_stats_available_bytes{where}"
        f" / kubelet_volume_stats_capacity_bytes{where} < {FULL_SHARE}",
        minutes=5,
        severity="warning",
        summary="{{ $labels.persistentvolumeclaim }} has {{ $value | humanizePercentage }} left.",
    )


def _connect(spec: ClusterSpec) -> Iterator[Alert]:
    if spec.connect is None:
        return
    name = naming.connect(spec.name)
    mine = f'{{namespace="{spec.kubernetes.namespace}",cluster="{name}"}}'
    tasks = "kafka_connect_connect_worker_metrics_connector_failed_task_count"
    rebalancing = "kafka_connect_connect_worker_rebalance_metrics_rebalancing"
    yield Alert(
        name="ConnectTaskFailed",
        # GET /health stays 200: it knows the worker and none of its tasks (KIP-1017).
        expression=f"sum by (connector) ({tasks}{mine}) > 0",
        minutes=5,
        severity="warning",
        summary="{{ $value }} tasks of connector {{ $labels.connector }} have failed.",
    )
    yield Alert(
        name="ConnectWorkerMissing",
        expression=_fewer(f"{rebalancing}{mine}", spec.connect.replicas),
        minutes=10,
        severity="warning",
        summary=f"Fewer than {spec.connect.replicas} Connect workers answer.",
    )
    yield Alert(
        name="ConnectRebalancing",
        expression=f"max({rebalancing}{mine}) == 1",
        minutes=15,
        severity="warning",
        summary="Connect rebalances for a quarter of an hour: tasks stand still.",
    )


def _fewer(series: str, promised: int) -> str:
    # A count over nothing is no number at all, and would never be below anything.
    return f"(count({series}) or vector(0)) < {promised}"


def _nodes(spec: ClusterSpec, *, controllers: bool) -> int:
    """Return how many Kafka nodes have a side: the controller's or the broker's."""
    return len(spec.availability_zones) * sum(
        pool.nodes_per_zone
        for pool in spec.pools
        if (pool.role.is_controller if controllers else pool.role.is_broker)
    )
