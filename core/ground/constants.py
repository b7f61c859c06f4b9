"""Holds what is the same in every cluster and no setting, and the names of the functions' metrics.

infra builds with these values, and core.checks.expected compares a live cluster with them. The
metrics are counts that the handlers embed and infra.alerts reads. Their one dimension, `cluster`,
is `<environment>-<name>`: two environments of one account may have a cluster of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.ground import naming

# Of this code, wherever it runs: a function has no distribution that names it.
RELEASE = "0.2.0"

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


NAMESPACE = "Stillwater"
CLUSTER_DIMENSION = "cluster"

# An incident became known, whoever told of it.
INCIDENTS_OPENED = "IncidentsOpened"
# One of the side exits: the instance was kept, with whatever runs on it.
INCIDENTS_RETAINED = "IncidentsRetained"
# The other one: the instance ended before its broker could leave.
INCIDENTS_LOST = "IncidentsLost"
# A turn of the loop came to an answer.
DECISIONS_MADE = "DecisionsMade"
# The ledger refused or did not answer; a lost race (a failed condition) is none.
LEDGER_ERRORS = "LedgerErrors"
# Somebody was called.
PAGES_SENT = "PagesSent"
# Alarms on these call a person, so each is written down at once and not when a function ends.
CALLING = frozenset({INCIDENTS_RETAINED, INCIDENTS_LOST, PAGES_SENT})
# Slack could not be told, or not yet: the story was put back on its queue.
STORIES_DELAYED = "StoriesDelayed"
# The public webhook turned a caller away: by token, size or shape.
WEBHOOKS_REFUSED = "WebhooksRefused"
# How the cluster did when λ health was asked: 0 healthy, 1 impaired, 2 unhealthy or unknown.
CLUSTER_HEALTH = "ClusterHealth"
# A node pool's volumes were changed.
VOLUMES_CHANGED = "VolumesChanged"
# A change was wanted and not made: no modification left, too dear, beyond what a policy allows.
VOLUMES_OUT_OF_SLOTS = "VolumesOutOfSlots"
VOLUMES_REFUSED = "VolumesRefused"
# More is asked than the instance gives its volumes.
VOLUMES_INSTANCE_BOUND = "VolumesInstanceBound"
# A volume is not what its claim and class say.
VOLUMES_DRIFTED = "VolumesDrifted"
# A change was asked for and does not come about.
VOLUMES_STUCK = "VolumesStuck"
# How full volumes are, or what is asked of them, nobody says.
VOLUMES_UNKNOWN = "VolumesUnknown"

ALL = (
    INCIDENTS_OPENED,
    INCIDENTS_RETAINED,
    INCIDENTS_LOST,
    DECISIONS_MADE,
    LEDGER_ERRORS,
    PAGES_SENT,
    STORIES_DELAYED,
    WEBHOOKS_REFUSED,
    CLUSTER_HEALTH,
    VOLUMES_CHANGED,
    VOLUMES_OUT_OF_SLOTS,
    VOLUMES_REFUSED,
    VOLUMES_INSTANCE_BOUND,
    VOLUMES_DRIFTED,
    VOLUMES_STUCK,
    VOLUMES_UNKNOWN,
)

# Where runbooks are read, unless a description names an address of its own.
RUNBOOKS = "docs/runbooks"

# When EventBridge calls the functions that are called at fixed times.
SCHEDULES: Mapping[str, str] = {
    "sweep": "rate(1 minute)",
    # Often enough to be a second pair of eyes beside Prometheus, and less than a cent a day.
    "health": "rate(5 minutes)",
    "volumes": "rate(5 minutes)",
    "samples": "rate(1 hour)",
}
_MINUTES = {"minute": 1, "minutes": 1, "hour": 60}
# CloudWatch bills each metric that λ volumes asks for, and each answer is of a whole hour.
LOOKS_PER_LOAD = 3


def schedule_minutes(function: str) -> int:
    """Return how many minutes lie between two scheduled calls of a function.

    >>> schedule_minutes("health")
    5
    """
    number, unit = SCHEDULES[function].removeprefix("rate(").removesuffix(")").split()
    return int(number) * _MINUTES[unit]
