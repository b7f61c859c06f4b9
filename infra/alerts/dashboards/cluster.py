"""The cluster at a glance: is it whole, what flows, how full is it."""

from __future__ import annotations

from core.cluster import ClusterSpec
from infra.alerts.dashboards.panel import RATE, Dashboard, Panel, Prom, by_pod
from infra.alerts.rules import Scope
from infra.alerts.rules.alert import ACTIVE_CONTROLLER, BROKER_STATE, METADATA_ERRORS


def dashboard(spec: ClusterSpec) -> Dashboard:
    """Return the dashboard of the whole cluster."""
    scope = Scope(spec)
    return Dashboard(
        key="cluster",
        title="Kafka cluster",
        description="Is the cluster whole, what flows through it, how full is it.",
        panels=[*_whole_cluster(scope), *_flow(scope), *_room(scope)],
    )


def _whole_cluster(scope: Scope) -> list[Panel]:
    mine = scope.kafka
    controller = "kafka_controller_kafkacontroller"
    figures = {
        "Brokers running": (
            f"count({BROKER_STATE}{mine} == 3) or vector(0)",
            f"Brokers in state 3 (running). The description has {scope.brokers}.",
        ),
        "Active controllers": (
            f"sum({ACTIVE_CONTROLLER}{mine}) or vector(0)",
            "Controllers that lead the quorum; exactly one must.",
        ),
        "Offline partitions": (
            f"max({controller}_offlinepartitionscount{mine})",
            "Partitions without a leader: neither read nor written.",
        ),
        "Under min ISR": (
            f"sum(kafka_server_replicamanager_underminisrpartitioncount{mine})",
            "Partitions that refuse acks=all: too few replicas in sync, as the leaders see it.",
        ),
        "Under-replicated": (
            f"sum(kafka_server_replicamanager_underreplicatedpartitions{mine})",
            "Partitions that lack a replica in sync, as their leaders see it.",
        ),
        "Fenced brokers": (
            f"max({controller}_fencedbrokercount{mine})",
            "Brokers that run and that no partition counts on.",
        ),
    }
    return [
        Panel(
            title=title,
            description=description,
            unit="short",
            kind="stat",
            width=4,
            queries=(Prom(expression=expression),),
        )
        for title, (expression, description) in figures.items()
    ]


def _flow(scope: Scope) -> list[Panel]:
    mine, topics = scope.kafka, "kafka_server_brokertopicmetrics"
    failed = (
        ("produce", f"{topics}_failedproducerequestspersec_total"),
        ("fetch", f"{topics}_failedfetchrequestspersec_total"),
    )
    return [
        Panel(
            title="Bytes in and out",
            description="What producers write and consumers read, without replication.",
            unit="Bps",
            queries=tuple(
                Prom(
                    expression=f"sum(rate({topics}_bytes{way}persec_total{mine}[{RATE}]))",
                    legend=way,
                )
                for way in ("in", "out")
            ),
        ),
        Panel(
            title="Messages in",
            description="Records that producers write, by broker.",
            unit="cps",
            queries=by_pod(f"sum by (pod) (rate({topics}_messagesinpersec_total{mine}[{RATE}]))"),
        ),
        Panel(
            title="Failed requests",
            description="Requests of clients that brokers refused or could not serve.",
            unit="reqps",
            queries=tuple(
                Prom(expression=f"sum(rate({name}{mine}[{RATE}]))", legend=legend)
                for legend, name in failed
            ),
        ),
        Panel(
            title="Metadata errors",
            description="KIP-859: records a node could not load or apply since its process "
            "started. All are 0, or somebody is called.",
            unit="short",
            queries=tuple(
                Prom(expression=f"max by (pod) ({name}{mine})", legend=f"{legend} {{{{pod}}}}")
                for legend, name in METADATA_ERRORS.items()
            ),
        ),
    ]


def _room(scope: Scope) -> list[Panel]:
    where = scope.volumes()
    return [
        Panel(
            title="Volumes",
            description="How full each volume of Kafka's is; an alert is at 85 %.",
            unit="percentunit",
            queries=(
                Prom(
                    expression=(
                        f"kubelet_volume_stats_used_bytes{where}"
                        f" / kubelet_volume_stats_capacity_bytes{where}"
                    ),
                    legend="{{persistentvolumeclaim}}",
                ),
            ),
        ),
        Panel(
            title="Certificates",
            description="Time left of Strimzi's authorities; the operator renews them 30 days "
            "ahead.",
            unit="s",
            queries=(
                Prom(
                    expression=f"{scope.certificate_seconds}",
                    legend="{{type}}",
                ),
            ),
        ),
    ]
