"""Holds what is the same in every cluster and no setting: a reason chose it, not a preference.

infra builds with these values, and core.checks.expected compares a live cluster with them.
"""

from __future__ import annotations

from core.ground import naming

# KafkaBroker.shutdown waits so long for its controlled shutdown.
CONTROLLED_SHUTDOWN_SECONDS = 300
# Lifecycle hooks. ABANDON and a policy that retains: whatever fails keeps the broker.
HOOKS = (naming.DRAIN_HOOK, naming.GATE_HOOK)
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
ABANDON = "ABANDON"
RETAIN_INSTANCE = "retain"
# Beside every node there is room for its replacement, which is launched before the node is ended.
MAXIMUM_PER_NODE = 2
HEALTHY_PERCENT = (100, 200)
SUSPENDED_PROCESSES = ("AZRebalance",)

# Target groups: AWS's least, so that a broker that is gone is noticed as soon as can be.
UNHEALTHY_THRESHOLD = 2
# Only the bootstrap's group may take a zone out of the load balancer's name.
DNS_FAILOVER_OF_BROKER, DNS_FAILOVER_OF_BOOTSTRAP = "off", "1"

# Of the namespace's readiness gate label.
GATE_LABEL = "enabled"

# Strimzi's, for a Connect worker's REST API.
CONNECT_REST_PORT = 8083
# Taken in every broker's pod: Prometheus' and JMX's.
TAKEN_PORTS = {9404: "Prometheus", 9999: "JMX"}
# What Strimzi 1.2.0 runs (kafka-versions.yaml).
STRIMZI_KAFKA_VERSIONS = ("4.2.0", "4.2.1", "4.3.0", "4.3.1")

# Queues. A bad event is recorded as ignored at the first try; what fails so often is our fault.
EVENTS_MAX_RECEIVE_COUNT = 10
TICKS_MAX_RECEIVE_COUNT = 5
# What Slack refuses for good comes this often before it is a dead letter.
STORIES_MAX_RECEIVE_COUNT = 3
# Karpenter deletes what it cannot read, and a message it missed for so long is out of date.
KARPENTER_RETENTION_SECONDS = 300
KARPENTER_VISIBILITY_SECONDS = 30
KARPENTER_MAX_RECEIVE_COUNT = 10
# SQS's longest: a dead letter is evidence, and somebody may be on holiday.
DEAD_LETTER_RETENTION_SECONDS = 1_209_600

# Volumes outlive their claims.
RETAIN_VOLUME = "Retain"
# How many Kafka pods may be evicted at a time.
EVICTED_AT_A_TIME = 1

# The node termination handler must outlive a drain it has begun, or its own restart aborts it.
NTH_RELEASE, NTH_NAMESPACE = "aws-node-termination-handler", "kube-system"
NTH_EXIT_MARGIN_SECONDS = 30

INTERNAL_LISTENER = "internal"  # of clients inside the Kubernetes cluster
