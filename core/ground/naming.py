"""One source of every name: broker id -> zone -> pool -> pod -> claim -> Service -> target group.

Strimzi derives names from its resources and offers no way to ask for them, so they are repeated
here exactly (strimzi-kafka-operator 1.2.0: KafkaResources, ListenersUtils). Plain strings and
integers in and out, but for a NodePlace: Lambda code imports this module, and never pydantic.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

# The stacks of one environment, in the order in which each builds on the ones before.
FOUNDATION, PLATFORM, KAFKA, OPERATIONS, ANALYTICS = LAYERS = (
    "foundation",
    "platform",
    "kafka",
    "operations",
    "analytics",
)
# The environment that is a twin of AWS and EKS on this machine.
TWIN_ENVIRONMENT = "local"
DRAIN_HOOK = "drain"
GATE_HOOK = "gate"
DEDICATED_TAINT_KEY = "dedicated"
DEDICATED_TAINT_VALUE = "kafka"
ZONE_LABEL = "topology.kubernetes.io/zone"
EBS_ZONE_LABEL = "topology.ebs.csi.aws.com/zone"
# Made by the probe itself: a partition for every broker.
PROBE_TOPIC = "stillwater-probe"
CLUSTER_LABEL = "strimzi.io/cluster"
POOL_LABEL = "strimzi.io/pool-name"
POD_NAME_LABEL = "strimzi.io/pod-name"
KIND_LABEL = "strimzi.io/kind"
CONNECT_KIND = "KafkaConnect"
BROKER_ROLE_LABEL = "strimzi.io/broker-role"
CONTROLLER_ROLE_LABEL = "strimzi.io/controller-role"
# Of what a pod was made, on itself and on what its StrimziPodSet wants: all but its resources, and
# those. A broker's ordinary configuration is in neither.
REVISION_ANNOTATION = "strimzi.io/revision"
RESOURCE_REVISION_ANNOTATION = "strimzi.io/resource-revision"
# Asks the operator to restart a pod or the pods of a set: a person's, or Drain Cleaner's.
ROLL_ANNOTATION = "strimzi.io/manual-rolling-update"
DELETE_POD_ANNOTATION = "strimzi.io/delete-pod-and-pvc"
# The operator's release, Deployment and ServiceAccount, and who it says manages its objects.
STRIMZI_OPERATOR = "strimzi-cluster-operator"
OPERATOR_LABELS = {"strimzi.io/kind": "cluster-operator"}
# A namespace with this label has its pods' readiness held back until the load balancer agrees.
READINESS_GATE_LABEL = "elbv2.k8s.aws/pod-readiness-gate-inject"
# A pod with this label may be evicted beside others of its party; its value names the incident.
MAY_LEAVE_LABEL = "stillwater.dev/may-leave"
# What else our functions write on objects of Kubernetes: admission lets λ tick change no more.
# On the budget over those who stay; written again, it is counted again.
COUNTED_ANNOTATION = "stillwater.dev/counted"
OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"
# Cluster Autoscaler takes no node that says so; the second says for whom, so that nobody else's
# mark is ever taken off.
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SPARE_ANNOTATION = "stillwater.dev/spare-for"
# On a node that was cordoned for an incident: nobody else's cordon is ever taken off.
CORDON_ANNOTATION = "stillwater.dev/cordoned-for"
NODE_MARKS = (SCALE_DOWN_DISABLED, SPARE_ANNOTATION, CORDON_ANNOTATION)
STORAGE_CLASS = "gp3-kafka"
# With it brokers let a consumer that says its rack (client.rack) read from the replica there.
REPLICA_SELECTOR = "replica.selector.class"
FOLLOWER_FETCHING = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
NODE_POOL_LABEL = "stillwater.dev/pool"
# The pool of everything that is not Kafka; EKS itself looks after its nodes.
SYSTEM_POOL = "system"
# The part of names that is the bootstrap's, where a broker's or a pool's stands.
BOOTSTRAP = "bootstrap"
# Tags of ours, on everything of a cluster and on the instances of a pool; bills are split by them.
CLUSTER_TAG = "stillwater:cluster"
ENVIRONMENT_TAG = "stillwater:environment"
POOL_TAG = "stillwater:pool"
EBS_CSI_DRIVER = "ebs.csi.aws.com"
# Tags of a group from which Cluster Autoscaler builds a node it has never seen.
NODE_TEMPLATE = "k8s.io/cluster-autoscaler/node-template"
# AWS limits a target group's name to 32 characters.
TARGET_GROUP_NAME_LIMIT = 32


def zone_suffix(zone: str) -> str:
    """Return the letter of an availability zone: us-east-1a -> a."""
    return zone[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlace:
    """One node of the spec: its pool in its zone, and its role."""

    node_id: int
    node_pool: str
    role: Literal["broker", "controller", "combined"]


def kafka_node_pool(pool: str, zone: str) -> str:
    """Return the KafkaNodePool of a pool in one zone: (broker, us-east-1a) -> broker-a."""
    return f"{pool}-{zone_suffix(zone)}"


def node_ids(first_node_id: int, node_ids_per_zone: int, zone_index: int) -> range:
    """Return the node ids reserved for a pool in its zone number `zone_index`."""
    start = first_node_id + zone_index * node_ids_per_zone
    return range(start, start + node_ids_per_zone)


def next_node_ids_annotation(ids: range) -> str:
    """Return the value of strimzi.io/next-node-ids for a reserved range: [10-19]."""
    return f"[{ids.start}-{ids.stop - 1}]" if len(ids) > 1 else f"[{ids.start}]"


def pod(cluster: str, node_pool: str, node_id: int) -> str:
    return f"{cluster}-{node_pool}-{node_id}"


def pod_set(cluster: str, node_pool: str) -> str:
    """Return the StrimziPodSet that owns a KafkaNodePool's pods."""
    return f"{cluster}-{node_pool}"


def operator_account(namespace: str) -> str:
    """Return Strimzi's operator in a namespace, as Kubernetes names who asks."""
    return f"system:serviceaccount:{namespace}:{STRIMZI_OPERATOR}"


def node_id_of_pod(pod_name: str) -> int | None:
    """Return the Kafka node id a pod's name ends with, or None when it ends with none."""
    tail = pod_name.rpartition("-")[2]
    return int(tail) if tail.isascii() and tail.isdigit() else None


def claim(cluster: str, node_pool: str, node_id: int, volume_id: int) -> str:
    """Return the PersistentVolumeClaim of one JBOD volume."""
    return f"data-{volume_id}-{pod(cluster, node_pool, node_id)}"


def bootstrap_service(cluster: str) -> str:
    return f"{cluster}-kafka-bootstrap"


def cluster_ca_secret(cluster: str) -> str:
    """Return the Secret with the authority that signs the brokers' certificates."""
    return f"{cluster}-cluster-ca-cert"


def clients_ca_secret(cluster: str) -> str:
    """Return the Secret with the authority that signs the users' certificates."""
    return f"{cluster}-clients-ca-cert"


def headless_service(cluster: str) -> str:
    return f"{cluster}-kafka-brokers"


REBALANCE_TEMPLATE_ANNOTATION = "strimzi.io/rebalance-template"


def rebalance_template(cluster: str) -> str:
    """Return the KafkaRebalance that others take their settings from."""
    return f"{cluster}-rebalance-template"


def kafka_component(cluster: str) -> str:
    """Return what a Kafka's disruption budget, service account and pods' selector are called by."""
    return f"{cluster}-kafka"


def budget_of_the_staying(cluster: str) -> str:
    """Return the disruption budget over the Kafka pods that nobody has let go."""
    return f"{cluster}-staying"


def budget_of_the_leaving(cluster: str) -> str:
    """Return the disruption budget over the Kafka pods of the party that may leave."""
    return f"{cluster}-leaving"


def connect(cluster: str) -> str:
    """Return the KafkaConnect beside a Kafka.

    Not the Kafka's own name: its pods would carry the Kafka's cluster label, and end in node ids.
    """
    return f"{cluster}-connect"


def connect_topics(cluster: str) -> tuple[str, str, str]:
    """Return the topics in which Connect's workers keep configuration, offsets and status."""
    group = connect(cluster)
    return f"{group}-configs", f"{group}-offsets", f"{group}-status"


def function_user(cluster: str, function: str) -> str:
    """Return the KafkaUser, and its Secret, as which a function speaks to Kafka."""
    return f"{cluster}-stillwater-{function}"


def probe(cluster: str) -> str:
    """Return the probe's Deployment, which is its KafkaUser and that one's Secret, too."""
    return f"{cluster}-stillwater-probe"


def connect_component(connect_name: str) -> str:
    """Return what a KafkaConnect's headless Service, budget and pods are called by."""
    return f"{connect_name}-connect"


def connect_init_binding(namespace: str, cluster: str) -> str:
    """Return the ClusterRoleBinding by which Connect's workers read the zone of their node."""
    return f"strimzi-{namespace}-{connect_component(connect(cluster))}-init"


def connect_pod(cluster: str, number: int) -> str:
    """Return a worker's pod of the KafkaConnect beside a Kafka, counted from 0."""
    return f"{connect_component(connect(cluster))}-{number}"


def pod_host(cluster: str, namespace: str, pod_name: str) -> str:
    """Return the stable DNS name of a Kafka pod behind the headless Service."""
    return f"{pod_name}.{headless_service(cluster)}.{namespace}.svc.cluster.local"


def listener_bootstrap_service(cluster: str, listener: str, port: int) -> str:
    """Return the bootstrap Service of a cluster-ip listener.

    A listener named `external` on port 9094 keeps the name Strimzi gave it before listeners had
    names, without the listener's part.
    """
    if listener == "external" and port == 9094:
        return f"{cluster}-kafka-external-bootstrap"
    return f"{cluster}-kafka-{listener}-bootstrap"


def listener_broker_service(
    cluster: str, node_pool: str, node_id: int, listener: str, port: int
) -> str:
    """Return the Service of one broker behind a cluster-ip listener (see above for `external`)."""
    if listener == "external" and port == 9094:
        return f"{cluster}-{node_pool}-{node_id}"
    return f"{cluster}-{node_pool}-{listener}-{node_id}"


def listener_port_name(listener: str) -> str:
    """Return the port name Services and pods use for a listener: tcp-<listener>."""
    return f"tcp-{listener}"


def queue(prefix: str, role: str) -> str:
    """Return the SQS queue of a role: events, ticks, nth, karpenter."""
    return f"{prefix}-{role}"


def dead_letter_queue(queue_name: str) -> str:
    return f"{queue_name}-dlq"


def function(prefix: str, role: str) -> str:
    """Return the Lambda function of a role: interruption, tick, sweep, rotate."""
    return f"{prefix}-{role}"


def alarm(prefix: str, key: str) -> str:
    """Return the CloudWatch alarm of a key: (prod-orders, ticks-age) -> prod-orders-ticks-age."""
    return f"{prefix}-{key}"


def ledger_table(prefix: str) -> str:
    return f"{prefix}-incidents"


def reports(prefix: str) -> str:
    """Return what the job that reads bills, its application and its schedule are called by."""
    return f"{prefix}-reports"


# Below the billing bucket: the tables of each run that somebody started by hand.
REPORT_RUNS = "tables/runs"
# Also there: what Prometheus remembered.
SAMPLES_FOLDER = "metrics"


def package_folder(package: str, python: str) -> str:
    """Return where a job's archive of a package for one Python is unpacked: package-numpy-cp311."""
    return f"package-{package}-cp{python.replace('.', '')}"


def is_package_folder(folder: str, python: str) -> bool:
    """Say whether a folder holds a package for a Python, as package_folder names it."""
    prefix, suffix = package_folder("/", python).split("/")
    return folder.startswith(prefix) and folder.endswith(suffix)


def auto_scaling_group(prefix: str, pool: str, zone: str) -> str:
    return f"{prefix}-{pool}-{zone_suffix(zone)}"


def group_pattern(scaling_group: str) -> str:
    """Return what a pool's groups match, whatever zone they are in: prod-orders-broker-?.

    A policy has 10,240 characters, in which the groups of fifty nodes would not all fit by name.
    """
    return f"{scaling_group.rpartition('-')[0]}-?"


def target_group(prefix: str, role: str) -> str:
    """Return a target group's name, shortened with a hash where AWS's 32 characters are short."""
    full = f"{prefix}-{role}"
    if len(full) <= TARGET_GROUP_NAME_LIMIT:
        return full
    digest = hashlib.sha256(full.encode()).hexdigest()[:8]
    return f"{full[: TARGET_GROUP_NAME_LIMIT - 9].rstrip('-')}-{digest}"


def target_group_role(node_id: int | None) -> str:
    """Return the part of a target group's name that says whose it is; None is the bootstrap's."""
    return BOOTSTRAP if node_id is None else str(node_id)


def target_group_pattern(prefix: str) -> str:
    """Return what every target group's name of a prefix matches, shortened or not."""
    return f"{prefix[: TARGET_GROUP_NAME_LIMIT - 9].rstrip('-')}-*"


def load_balancer(prefix: str) -> str:
    """Return the network load balancer's name, which AWS limits as it does a target group's."""
    return target_group(prefix, "nlb")


def target_group_binding(cluster: str, node_id: int | None) -> str:
    """Return the TargetGroupBinding of a broker, or of the bootstrap listener for None."""
    return f"{cluster}-bootstrap" if node_id is None else f"{cluster}-broker-{node_id}"


def readiness_gate(target_group_binding_name: str) -> str:
    return f"target-health.elbv2.k8s.aws/{target_group_binding_name}"


def advertised_port(first_advertised_port: int, node_id: int) -> int:
    """Return the load balancer port of one broker."""
    return first_advertised_port + node_id


# On a task that replaces a root volume, so that whoever did not live to record it finds it again.
INCIDENT_TAG = "stillwater.dev/incident"


def managed_tag(prefix: str) -> str:
    """Return the tag key by which NTH knows the instances of one cluster in a shared account."""
    return f"aws-node-termination-handler/{prefix}"


def webhook_secret(prefix: str) -> str:
    """Return the Secrets Manager secret that the webhook and NTH share."""
    return f"{prefix}/nth-webhook"


def adopted_handler(prefix: str) -> str:
    """Return what a termination handler of ours is called in a cluster that may have its own.

    >>> adopted_handler("shop-orders")
    'shop-orders-nth'
    """
    return f"{prefix}-nth"


# The eviction gate's Deployment, Service, ServiceAccount, Secret and webhook, in a cluster of ours.
GATE = "stillwater-gate"


def adopted_gate(prefix: str) -> str:
    """Return what the eviction gate of a Kafka that exists is called; an EKS cluster has several.

    >>> adopted_gate("shop-orders")
    'shop-orders-gate'
    """
    return f"{prefix}-gate"


def gate_host(name: str, namespace: str) -> str:
    """Return the name by which the API server knows an eviction gate."""
    return f"{name}.{namespace}.svc"


def incident_id(instance_id: str, round_number: int) -> str:
    """Return the id of an instance's incident; a retained instance may be announced again."""
    return instance_id if round_number == 1 else f"{instance_id}.{round_number}"


def round_of(id_: str) -> int:
    """Return the round that an incident's id names.

    >>> [round_of(id_) for id_ in ("i-0a", "i-0a.2")]
    [1, 2]
    """
    _, _, number = id_.partition(".")
    return int(number) if number else 1


def instance_of(id_: str) -> str:
    """Return the instance that an incident's id names.

    >>> instance_of("i-0a.2")
    'i-0a'
    """
    return id_.partition(".")[0]
