"""One broker, or a few side by side: what it does, what it waits for."""

from __future__ import annotations

from core.cluster import ClusterSpec
from infra.alerts.dashboards.panel import RATE, Dashboard, Panel, Prom, by_pod
from infra.alerts.rules import Scope
from infra.alerts.rules.alert import BROKER_STATE


def dashboard(spec: ClusterSpec) -> Dashboard:
    """Return the dashboard of single brokers."""
    scope = Scope(spec)
    chosen = scope.kafka.removesuffix("}") + ',pod=~"$pod"}'
    return Dashboard(
        key="broker",
        title="Kafka broker",
        description="What a broker does and what it waits for; choose one or several above.",
        panels=[*_state(chosen), *_load(chosen), *_waits(chosen)],
        pods=f"{BROKER_STATE}{scope.kafka}",
    )


def _both_ways(counter: str, mine: str) -> tuple[Prom, ...]:
    return tuple(
        Prom(
            expression=f"sum by (pod) (rate({counter}{way}persec_total{mine}[{RATE}]))",
            legend=f"{{{{pod}}}} {way}",
        )
        for way in ("in", "out")
    )


def _state(mine: str) -> list[Panel]:
    recovery = "kafka_log_logmanager_offlinelogdirectorycount"
    return [
        Panel(
            title="State",
            description="0 not running, 1 starting, 2 log recovery, 3 running, 6 pending "
            "controlled shutdown, 7 shutting down. A fenced broker stays at 3.",
            unit="short",
            queries=by_pod(f"max by (pod) ({BROKER_STATE}{mine})"),
        ),
        Panel(
            title="Leaders",
            description="Partitions the broker leads; a rotation takes it to 0 and back.",
            unit="short",
            queries=by_pod(f"sum by (pod) (kafka_server_replicamanager_leadercount{mine})"),
        ),
        Panel(
            title="Behind its leaders",
            description="The largest lag of a replica that the broker follows, in records.",
            unit="short",
            queries=by_pod(f"max by (pod) (kafka_server_replicafetchermanager_maxlag{mine})"),
        ),
        Panel(
            title="Directories lost",
            description="Log directories the broker closed after an error of their volume.",
            unit="short",
            queries=by_pod(f"max by (pod) ({recovery}{mine})"),
        ),
    ]


def _load(mine: str) -> list[Panel]:
    topics = "kafka_server_brokertopicmetrics"
    return [
        Panel(
            title="Clients' bytes",
            description="What clients write to and read from the broker.",
            unit="Bps",
            queries=_both_ways(f"{topics}_bytes", mine),
        ),
        Panel(
            title="Replication's bytes",
            description="What the broker fetches as a follower and gives as a leader.",
            unit="Bps",
            queries=_both_ways(f"{topics}_replicationbytes", mine),
        ),
        Panel(
            title="Connections",
            description="Open connections of clients and other brokers.",
            unit="short",
            queries=by_pod(
                f"sum by (pod) (kafka_server_socket_server_metrics_connection_count{mine})"
            ),
        ),
        Panel(
            title="Size of logs",
            description="Bytes of all the broker's replicas on its volumes.",
            unit="bytes",
            queries=by_pod(f"sum by (pod) (kafka_log_log_size{mine})"),
        ),
    ]


def _waits(mine: str) -> list[Panel]:
    idle = "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total"
    time_spent = "kafka_network_requestmetrics_totaltimems"
    return [
        Panel(
            title="Idle request handlers",
            description="The share of time handlers have nothing to do; an alert is below 20 %.",
            unit="percentunit",
            queries=by_pod(f"max by (pod) (rate({idle}{mine}[{RATE}])) / 1e9"),
        ),
        Panel(
            title="Idle network threads",
            description="The share of time network threads have nothing to do.",
            unit="percentunit",
            queries=by_pod(
                f"min by (pod) (kafka_network_socketserver_networkprocessoravgidlepercent{mine})"
            ),
        ),
        Panel(
            title="Time of a request",
            description="Milliseconds a produce or fetch of a consumer takes on average, waiting "
            "for replicas or data included.",
            unit="ms",
            queries=tuple(
                Prom(
                    expression=(
                        f"sum by (pod) (rate({time_spent}_sum{_of(mine, request)}[{RATE}]))"
                        f" / sum by (pod) (rate({time_spent}_count{_of(mine, request)}[{RATE}]))"
                    ),
                    legend=f"{{{{pod}}}} {request}",
                )
                for request in ("Produce", "FetchConsumer")
            ),
        ),
        Panel(
            title="Garbage collection",
            description="The share of time the broker's process collects garbage.",
            unit="percentunit",
            queries=by_pod(f"sum by (pod) (rate(jvm_gc_collection_seconds_sum{mine}[{RATE}]))"),
        ),
    ]


def _of(mine: str, request: str) -> str:
    return mine.removesuffix("}") + f',request="{request}"}}'
