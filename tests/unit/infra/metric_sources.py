"""Which names rules and dashboards may read, and who exposes them.

Kafka's and Connect's must exist and pass the allow list. Everything else is listed here, by its
exporter: a name that is in no list is one that nobody was seen to expose.
"""

from __future__ import annotations

import re

from infra.alerts.metrics import CONNECT_ALLOW, KAFKA_ALLOW
from tests.unit.infra.test_alerts import CONNECT, KAFKA, allowed

OTHERS = {
    "kubelet": {
        "kubelet_volume_stats_available_bytes",
        "kubelet_volume_stats_capacity_bytes",
        "kubelet_volume_stats_used_bytes",
    },
    "kube-state-metrics": {
        "kube_deployment_status_replicas_available",
        "kube_node_spec_unschedulable",
        "kube_persistentvolume_claim_ref",
        "kube_persistentvolume_info",
        "kube_persistentvolumeclaim_resource_requests_storage_bytes",
        "kube_persistentvolumeclaim_status_condition",
        "kube_persistentvolumeclaim_status_phase",
        "kube_pod_container_status_restarts_total",
        "kube_pod_info",
        "kube_pod_status_phase",
    },
    # The EBS CSI driver's node plugin, whose metrics infra.eks.cluster turns on.
    "aws-ebs-csi-driver": {
        "aws_ebs_csi_ec2_exceeded_iops_seconds_total",
        "aws_ebs_csi_ec2_exceeded_tp_seconds_total",
        "aws_ebs_csi_exceeded_iops_seconds_total",
        "aws_ebs_csi_exceeded_tp_seconds_total",
    },
    "strimzi-cluster-operator": {
        "strimzi_certificate_expiration_timestamp_ms",
        "strimzi_reconciliations_failed_total",
        "strimzi_resource_state",
    },
    # Every Java process of Kafka's, whatever the allow list says.
    "process": {"jvm_gc_collection_seconds_sum", "jvm_memory_used_bytes"},
}
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
