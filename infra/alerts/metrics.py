"""Lists the metrics Kafka and Connect expose to Prometheus: no default has what counts.

Strimzi's own list leaves out both metadata error counters of brokers (KIP-859), replication lag and
offline log directories (strimzi-kafka-operator 1.2.0, DEFAULT_METRICS_ALLOW_LIST). Entries are
regular expressions over the names of the Strimzi Metrics Reporter. It compares them with a name
before Prometheus's own ending is put on (seen with reporter 0.2.0 and Kafka 4.2.0), so an entry
that insists on `_total` or `_info` lets nothing through: both forms are written. What it tells of
its own process (jvm_*, process_*) is always there.
"""

from __future__ import annotations

from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from core.cluster import ClusterSpec, Metrics
from core.ground import naming

REPORTER = "strimziMetricsReporter"
# The port of that name on every container whose reporter is on.
PORT_NAME = "tcp-prometheus"
POD_MONITOR_API = "monitoring.coreos.com/v1"

KAFKA_ALLOW = (
    # Is this node well? State, log recovery (gone once done), directories lost with a volume.
    "kafka_server_kafkaserver_brokerstate",
    "kafka_log_logmanager_(offlinelogdirectorycount|remaining(logs|segments)torecover)",
    # KIP-859: a node that could not load or apply metadata. All are 0, or somebody is called.
    "kafka_server_broker_metadata_metrics_.*",
    "kafka_controller_kafkacontroller_metadataerrorcount",
    # Who is registered, fenced, stopping; a rotation's gate and its timeline.
    "kafka_controller_kafkacontroller_(active|fenced|controlledshutdown)brokercount",
    "kafka_controller_kafkacontroller_(activecontroller|offlinepartitions|globalpartition)count",
    "kafka_controller_kafkacontroller_(brokerregistrationstate|timesincelastheartbeatreceivedms)",
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
    "kafka_controller_kafkacontroller_last(applied|committed)record(offset|lagms|timestamp)",
    "kafka_controller_kafkacontroller_(newactivecontrollerscount|eventqueueoperationstimedoutcount)",
    "kafka_controller_controllerstats_uncleanleaderelectionspersec(_total)?",
    # The quorum.
    "kafka_server_raft_metrics_(current_(leader|epoch|vote|state(_info)?)|high_watermark)",
    "kafka_server_raft_metrics_(log_end_offset|election_latency_(avg|max)|number_unknown_.*)",
    # Replication, seen from the leaders, and how far a returning broker is behind.
    "kafka_server_replicamanager_.*",
    "kafka_cluster_partition_(underreplicated|underminisr|atminisr|insyncreplicascount)",
    "kafka_server_replicafetchermanager_(maxlag|minfetchrate|failedpartitionscount)",
    # What a resync moves and what it costs.
    "kafka_server_brokertopicmetrics_(bytes|replicationbytes|reassignmentbytes)(in|out)persec(_total)?",
    "kafka_server_brokertopicmetrics_(messagesin|failed(produce|fetch)requests)persec(_total)?",
    "kafka_log_log_size",
    # Clients: latency, idle threads, connections.
    "kafka_network_requestmetrics_(requests|errors)persec(_total)?",
    "kafka_network_requestmetrics_totaltimems.*",
    "kafka_network_socketserver_networkprocessoravgidlepercent",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent.*",
    "kafka_server_socket_server_metrics_connection_count",
)
CONNECT_ALLOW = (
    "kafka_connect_connect_worker_metrics_.*",
    "kafka_connect_connect_worker_rebalance_metrics_.*",
    "kafka_connect_connect_coordinator_metrics_(assigned_.*|last_.*|failed_rebalance)",
    "kafka_connect_connector_(task_)?metrics_status(_info)?",
    "kafka_connect_(source|sink)_task_metrics_.*",
    "kafka_connect_task_error_metrics_.*",
)


def metrics_config(metrics: Metrics, allow: tuple[str, ...]) -> dict[str, Any]:
    """Return a resource's `metricsConfig` as a mapping to merge; empty when metrics are off."""
    if not metrics.enabled:
        return {}
    values = {"allowList": [*allow, *metrics.allow]}
    return {"metricsConfig": {"type": REPORTER, "values": values}}


def pod_monitor(
    name: str,
    spec: ClusterSpec,
    resource: str,
    strimzi_kind: str,
    opts: pulumi.ResourceOptions,
) -> CustomResource:
    """Return the PodMonitor of one Strimzi resource's pods (a Kafka or a KafkaConnect)."""
    return CustomResource(
        name,
        api_version=POD_MONITOR_API,
        kind="PodMonitor",
        metadata={
            "name": f"{resource}-{strimzi_kind.lower()}",
            "namespace": spec.kubernetes.namespace,
        },
        spec=pod_monitor_spec(resource, strimzi_kind),
        opts=opts,
    )


def operator_monitor(name: str, spec: ClusterSpec, opts: pulumi.ResourceOptions) -> CustomResource:
    """Return the PodMonitor of Strimzi's operator, which knows when certificates end."""
    return CustomResource(
        name,
        api_version=POD_MONITOR_API,
        kind="PodMonitor",
        metadata={"name": naming.STRIMZI_OPERATOR, "namespace": spec.strimzi.namespace},
        spec={
            "selector": {"matchLabels": naming.OPERATOR_LABELS},
            "podMetricsEndpoints": [{"port": "http", "path": "/metrics"}],
        },
        opts=opts,
    )


def pod_monitor_spec(resource: str, strimzi_kind: str) -> dict[str, Any]:
    return {
        "selector": {
            "matchLabels": {
                naming.CLUSTER_LABEL: resource,
                "strimzi.io/kind": strimzi_kind,
            }
        },
        "podMetricsEndpoints": [
            {
                "port": PORT_NAME,
                "path": "/metrics",
                # Rules and dashboards speak of pools, zones and nodes, not of addresses.
                "relabelings": [
                    {
                        "action": "labelmap",
                        "regex": "__meta_kubernetes_pod_label_strimzi_io_(cluster|pool_name)",
                        "replacement": "$1",
                    },
                    {
                        "action": "replace",
                        "sourceLabels": ["__meta_kubernetes_pod_node_name"],
                        "targetLabel": "node",
                    },
                ],
            }
        ],
    }
