"""Refuses a ClusterSpec whose keys are each in order and AWS or Kafka would still refuse.

Judged apart from the model, so that an older spec can be read and taken down by a newer release.
Names: Strimzi's KafkaCluster and ListenersUtils, Kafka's LogConfig, Secrets Manager's user guide.
Instance types: AL2023's system requirements, EC2's user guide, DescribeInstanceTypes as in moto
5.2.5. A pod that finds no address or no room on its node is Pending for ever.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from core.cluster import addresses, kafka_settings, limits, tagging
from core.cluster.fields import is_loopback
from core.cluster.limits import Request
from core.cluster.nodes import NodePool
from core.cluster.spec import ClusterSpec
from core.ground import instances, naming, regions
from core.ground.constants import INTERNAL_LISTENER
from core.ground.instances import InstanceType
from core.settings.prometheus import PrometheusWorkspace

# Ports of every Kafka pod are called tcp-<name>, and no two ports of a Service have one name.
TAKEN_PORT_NAMES = frozenset({"ctrlplane", "kafkaagent", "prometheus", "replication"})
# A listener that is called so at its port keeps names of the days before listeners had any.
OLD_LISTENERS = {("plain", 9092), ("tls", 9093)}
# Of the 4 KB that a function's environment has, what is left for the labels of every query.
LABELS_LIMIT = 1000
# What Strimzi calls the Secrets of a cluster, behind its name and a hyphen.
SECRETS_OF_A_CLUSTER = frozenset(
    {
        *("cluster-ca", "cluster-ca-cert", "clients-ca", "clients-ca-cert"),
        *("cluster-operator-certs", "entity-topic-operator-certs", "entity-user-operator-certs"),
        # Of the authorities that every node trusts.
        "trustbundle",
        *("kafka-brokers", "kafka-exporter-certs", "cruise-control-certs", "cruise-control-api"),
    }
)
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_LIKE_AN_ARN = re.compile(r".*-[A-Za-z0-9]{6}")


def name_problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each name that is somebody else's, or known to nobody."""
    yield from _listener(spec)
    yield from _namespaces(spec)
    yield from _topic_settings(spec)
    yield from _secret(spec)
    yield from _labels(spec)
    yield from _secrets_of_strimzi(spec)
    yield from _topics_of_connect(spec)
    yield from _acls(spec)


def name_doubts(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for a name that works, and may be taken for another."""
    host = spec.kafka.listener.advertised_host
    if is_loopback(host) and spec.environment != naming.TWIN_ENVIRONMENT:
        yield (
            f"kafka.listener.advertised_host is {host}, an address of the client's own machine; "
            "write a name of your DNS, such as kafka.example.internal."
        )
    if spec.slack is not None and _LIKE_AN_ARN.fullmatch(spec.slack.secret_name):
        yield (
            f"slack.secret_name {spec.slack.secret_name} ends like the ARN of a secret, and "
            "Secrets Manager may look for another one; give the secret another name."
        )


def _listener(spec: ClusterSpec) -> Iterator[str]:
    listener = spec.kafka.listener
    if listener.name == INTERNAL_LISTENER:
        yield (
            f"kafka.listener.name is {INTERNAL_LISTENER}, which is the name of "
            "kafka.internal_listener, and Strimzi wants a name for each; choose another, such as "
            "nlb."
        )
    if listener.name in TAKEN_PORT_NAMES:
        yield (
            f"kafka.listener.name is {listener.name}, and every Kafka pod has a port of Strimzi's "
            f"own called {naming.listener_port_name(listener.name)}; choose another, such as nlb."
        )
    if (listener.name, listener.port) in OLD_LISTENERS:
        yield (
            f"kafka.listener.name is {listener.name} at port {listener.port}, which Strimzi keeps "
            "for other Services; choose another name, such as nlb."
        )


def _namespaces(spec: ClusterSpec) -> Iterator[str]:
    made = [("kubernetes.namespace", spec.kubernetes.namespace, "Kafka", "kafka")]
    if spec.strimzi.operator == "chart":
        made.append(("strimzi.namespace", spec.strimzi.namespace, "the operator", "strimzi"))
    if len(made) > 1 and spec.strimzi.namespace == spec.kubernetes.namespace:
        yield (
            f"strimzi.namespace and kubernetes.namespace are both {spec.strimzi.namespace}, and "
            "each must be made once; choose another for one of them."
        )
    for setting, name, whose, other in made:
        if name == "default" or name.startswith("kube-"):
            yield (
                f"{setting} is {name}, which Kubernetes makes or keeps for itself, and this one is "
                f"made for {whose} alone; choose another name, such as {other}."
            )


def _secrets_of_strimzi(spec: ClusterSpec) -> Iterator[str]:
    """Refuse users whose Secret, which bears their name, would be one of the cluster's own."""
    of_pods = {
        naming.pod(spec.name, naming.kafka_node_pool(pool.name, zone), node_id)
        for pool in spec.pools
        for zone, ids in spec.node_ids_of(pool).items()
        for node_id in ids
    }
    for user in spec.users:
        own = user.name.removeprefix(f"{spec.name}-") in SECRETS_OF_A_CLUSTER
        if own or user.name in of_pods:
            yield (
                f"user {user.name} would have the Secret {user.name}, in which Strimzi keeps the "
                f"cluster's own keys; rename the user."
            )
        elif user.name == spec.kafka.functions.authority_secret_name:
            yield (
                f"user {user.name} would have the Secret {user.name}, which "
                f"kafka.functions.authority_secret_name names as that of the brokers' authorities; "
                f"rename the user."
            )


def _topics_of_connect(spec: ClusterSpec) -> Iterator[str]:
    taken = naming.connect_topics(spec.name) if spec.connect is not None else ()
    for topic in spec.topics:
        if topic.name in taken:
            yield (
                f"topics names {topic.name}, which Connect's workers make for themselves, "
                f"compacted; take it out."
            )


def _acls(spec: ClusterSpec) -> Iterator[str]:
    for user in spec.users:
        for acl in user.acls:
            if acl.resource != "topic" or acl.name in {None, "*"}:
                continue
            alone = acl.name in {".", ".."} and not acl.prefix
            if alone or not _TOPIC.fullmatch(str(acl.name)):
                yield (
                    f"user {user.name} has an ACL on the topic {acl.name!r}, which no topic can "
                    "have; use letters, digits, dots, hyphens and underscores."
                )


def _topic_settings(spec: ClusterSpec) -> Iterator[str]:
    known = kafka_settings.definitions("topic")
    for topic in spec.topics:
        for setting in topic.config:
            if setting not in known:
                close = difflib.get_close_matches(setting, known, n=1)
                meant = f"write {close[0]} if you mean that" if close else "take it out"
                yield (
                    f"topic {topic.name} sets {setting}, which Kafka does not know of a topic, so "
                    f"that it would not make it; {meant}."
                )


def _secret(spec: ClusterSpec) -> Iterator[str]:
    ours = naming.webhook_secret(spec.prefix)
    if spec.slack is not None and spec.slack.secret_name == ours:
        yield (
            f"slack.secret_name is {ours}, which is made here for the webhook's own token; keep "
            f"Slack's in another."
        )


def _labels(spec: ClusterSpec) -> Iterator[str]:
    prometheus = spec.metrics.prometheus
    if prometheus is None:
        return
    asked = prometheus.asked
    if (
        isinstance(asked, PrometheusWorkspace)
        and (refused := regions.refusal(asked.region)) is not None
    ):
        yield f"metrics.prometheus.address is in another partition: {refused}"
    for label in prometheus.labels:
        if label.startswith("__"):
            yield (
                f"metrics.prometheus.labels names {label}, and Prometheus keeps what begins with "
                f"two underscores for itself; take it out."
            )
    length = len(json.dumps(prometheus.labels))
    if length > LABELS_LIMIT:
        yield (
            f"metrics.prometheus.labels are {length} characters as JSON. The functions' "
            f"environment has {LABELS_LIMIT} for them; name only labels that other series lack."
        )


_ACCELERATED = (
    "its accelerators need an image with their drivers, and every node here runs the standard one"
)
_NOT_OPTIMIZED = (
    "every node here is launched EBS-optimized, which EC2 refuses of it as it does not support that"
)
# How instance types begin that no node here can be.
NEVER_NODES = {
    r"a1": "A1's processors are too old for Amazon Linux 2023, which every node runs",
    r"mac\d*(-\w+)?": "EC2 launches it on a Dedicated Host alone, and it runs macOS",
    r"(g\d\w*|gr\d\w*|p\d\w*(-\w+)?|dl\d\w*|trn\d\w*|inf\d|vt1|f\d)": _ACCELERATED,
    r"t[12]|[cm]1|m2|m3\.(medium|large)|c[cgr][12]|hs1": _NOT_OPTIMIZED,
}
_NOT_OPTIMIZED_SIZES = frozenset({"c3.large", "c3.8xlarge", "r3.large", "r3.8xlarge", "i2.8xlarge"})


def machine_problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each instance type that can be no node."""
    asked = {f"pool {pool.name}": pool.instance_type for pool in spec.pools}
    asked["the system nodes"] = spec.kubernetes.system_instance_type
    for whose, name in asked.items():
        why = _never(name)
        if why is not None:
            yield f"{name} of {whose} cannot be a node here: {why}; choose another type."


def _never(name: str) -> str | None:
    if name in _NOT_OPTIMIZED_SIZES:
        return _NOT_OPTIMIZED
    family = name.partition(".")[0]
    for pattern, why in NEVER_NODES.items():
        if re.fullmatch(pattern, family) or re.fullmatch(pattern, name):
            return why
    return None


# Cluster Autoscaler may double the groups of the system nodes (infra.eks.cluster).
GROWTH = 2


@dataclass(frozen=True, slots=True)
class _Pods:
    whose: str
    replicas: int
    request: Request = limits.NONE


def system_node_problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each kind of node that cannot run what must run on it."""
    known = instances.table().types
    daemons = len(limits.daemons(node_monitoring=spec.kubernetes.node_monitoring))
    for pool in spec.pools:
        kind = known.get(pool.instance_type)
        if kind is not None and daemons + 1 > kind.addressable_pods:
            yield (
                f"pool {pool.name} runs {daemons + 1} pods on a node, Kafka's among them, and an "
                f"{kind.name} has addresses for {kind.addressable_pods}. The last would wait "
                "forever; choose a larger instance type."
            )
    kind = known.get(spec.kubernetes.system_instance_type)
    if kind is not None:
        yield from _addresses(spec, kind, daemons) or _requests(spec, kind)


def _addresses(spec: ClusterSpec, kind: InstanceType, daemons: int) -> list[str]:
    pods, most = list(_pods(spec)), _most_nodes(spec)
    room = most * max(0, kind.addressable_pods - daemons)
    wanted = sum(each.replicas for each in pods)
    if wanted <= room:
        return []
    problem = (
        f"kubernetes.system_instance_type is {kind.name}, with addresses for "
        f"{kind.addressable_pods} pods, {daemons} of them every node's own. {most} such nodes take "
        f"{room} and {wanted} are needed ({_join_pods(pods)}). Choose a larger type or raise "
        "kubernetes.system_nodes_per_zone."
    )
    return [problem]


def _requests(spec: ClusterSpec, kind: InstanceType) -> Iterator[str]:
    """Yield what is requested beyond what the nodes have: of each alone, of a kind, and in all."""
    room, most = (
        limits.requested_room(kind, node_monitoring=spec.kubernetes.node_monitoring),
        _most_nodes(spec),
    )
    pods = [each for each in _pods(spec) if each.request != limits.NONE]
    fitting = True
    for each in pods:
        for unit, asked, has in _figures(each.request, room):
            if asked > has:
                fitting = False
                yield (
                    f"kubernetes.system_instance_type is {kind.name}, which leaves its pods {has} "
                    f"{unit} after the system and the pods of every node. Each pod of {each.whose} "
                    f"requests {asked}, so none could run; choose a larger type."
                )
    for each in pods if fitting else ():
        on_a_node = min(has // asked for _, asked, has in _figures(each.request, room) if asked)
        if each.replicas > most * on_a_node:
            fitting = False
            yield (
                f"{each.replicas} pods of {each.whose} are wanted, each with "
                f"{each.request.cpu_millis} m of CPU and {each.request.memory_mib} MiB, and the "
                f"{most} system nodes ({kind.name}) have room for {most * on_a_node}. The others "
                "would wait forever; ask for fewer, raise kubernetes.system_nodes_per_zone, or "
                "choose a larger kubernetes.system_instance_type."
            )
    wanted = Request(
        sum(each.replicas * each.request.cpu_millis for each in pods),
        sum(each.replicas * each.request.memory_mib for each in pods),
    )
    for unit, asked, has in _figures(
        wanted, Request(most * room.cpu_millis, most * room.memory_mib)
    ):
        if fitting and asked > has:
            yield (
                f"kubernetes.system_instance_type is {kind.name}, of which the {most} system nodes "
                f"have {has} {unit} for pods, and {asked} are requested ({_join_pods(pods)}). Some "
                "would wait forever; choose a larger type or raise "
                "kubernetes.system_nodes_per_zone."
            )


def _figures(asked: Request, has: Request) -> tuple[tuple[str, int, int], ...]:
    return (
        ("MiB of memory", asked.memory_mib, has.memory_mib),
        ("m of CPU", asked.cpu_millis, has.cpu_millis),
    )


def _most_nodes(spec: ClusterSpec) -> int:
    nodes = spec.kubernetes.system_nodes_per_zone * len(spec.availability_zones)
    grows = spec.node_provisioner == "asg" and spec.cluster_autoscaler
    return nodes * (GROWTH if grows else 1)


def _pods(spec: ClusterSpec) -> Iterator[_Pods]:
    """Yield what runs on the system nodes and not on every one of them."""
    yield _Pods("CoreDNS", 2, limits.COREDNS)
    yield _Pods("the EBS driver's controller", 2, limits.VOLUME_CONTROLLER)
    yield _Pods("the snapshot controller", 2)
    yield _Pods("the load balancer controller", 2, limits.LOAD_BALANCER_CONTROLLER)
    yield _Pods("Kafka's topic and user operators", 1)
    if spec.node_provisioner == "karpenter":
        yield _Pods("Karpenter", 2, limits.KARPENTER)
    else:
        yield _Pods("the node termination handler", 1, limits.TERMINATION_HANDLER)
        if spec.cluster_autoscaler:
            yield _Pods("Cluster Autoscaler", 2, limits.CLUSTER_AUTOSCALER)
    if spec.strimzi.operator == "chart":
        yield _Pods("Strimzi's operator", spec.strimzi.replicas, limits.OPERATOR)
    if spec.eviction_gate is not None:
        yield _Pods("the eviction gate", 2, limits.GATE)
    if spec.probe is not None:
        yield _Pods("the probe", 1, limits.PROBE)
    connect = spec.connect
    if connect is not None:
        each = Request(connect.cpu_request_millis, connect.memory_request_mib)
        yield _Pods("connect", connect.replicas, each)


def _join_pods(pods: list[_Pods]) -> str:
    return ", ".join(f"{each.replicas} of {each.whose}" for each in pods)


# EKS: "Subnets specified must be in at least two different AZs".
LEAST_ZONES = 2
# Settings of Kafka's that keys of their own decide; what else is decided by them goes by the key.
OWN_KEYS = {
    "default.replication.factor": "kafka.default_replication_factor",
    "min.insync.replicas": "kafka.min_insync_replicas",
    "broker.session.timeout.ms": "timings.broker_session_timeout_seconds",
    "broker.heartbeat.interval.ms": "timings.broker_heartbeat_interval_seconds",
    "connections.max.idle.ms": "timings.broker_connections_max_idle_seconds",
}


def problems(spec: ClusterSpec) -> list[str]:
    """Return a sentence for each contradiction, with its remedy."""
    refused = regions.refusal(spec.region)
    return [
        *([refused] if refused else []),
        *_zones(spec),
        *kafka_settings.release_problems(spec),
        *_own_keys(spec),
        *_topic_names(spec),
        *addresses.problems(spec),
        *system_node_problems(spec),
        *kafka_settings.operator_problems(spec),
        *name_problems(spec),
        *machine_problems(spec),
        *addresses.domain_problems(spec),
        *kafka_settings.problems(spec),
        *kafka_settings.pair_problems(spec),
        *limits.size_problems(spec),
        *_kubernetes_names(spec),
        *tagging.narrow_problems(spec.tags, snapshots=spec.snapshots is not None),
        *_connect(spec),
        *(sentence for pool in spec.pools for sentence in _policy(pool)),
    ]


def doubts(spec: ClusterSpec) -> list[str]:
    """Return a sentence for what this release's tables do not know; it may be right."""
    return [
        *regions.doubts(spec.region, spec.availability_zones),
        *kafka_settings.release_doubts(spec),
        *addresses.doubts(spec),
        *name_doubts(spec),
        *kafka_settings.doubts(spec),
        *tagging.doubts(spec.tags),
    ]


def _zones(spec: ClusterSpec) -> Iterator[str]:
    if len(spec.availability_zones) < LEAST_ZONES:
        yield (
            f"availability_zones names {len(spec.availability_zones)} zone, and EKS makes no "
            f"cluster in fewer than {LEAST_ZONES}; add one, and name the pools' own in their zones."
        )
    existing = spec.network.existing
    if existing is None:
        return
    for subnet, times in Counter(existing.private_subnet_ids.values()).items():
        if times > 1:
            yield (
                f"network.existing.private_subnet_ids names {subnet} for {times} zones, and a "
                f"subnet stands in one; name the subnet of each."
            )


def _own_keys(spec: ClusterSpec) -> Iterator[str]:
    ours = kafka_settings.default_config(spec)
    for setting, key in OWN_KEYS.items():
        written = spec.kafka.config.get(setting)
        if written is not None and str(written) != str(ours[setting]):
            yield (
                f"kafka.config sets {setting} to {written} and {key} makes it {ours[setting]}, "
                f"which is what everything else here goes by; set {key} alone."
            )


def _topic_names(spec: ClusterSpec) -> Iterator[str]:
    seen: dict[str, str] = {}
    for topic in spec.topics:
        if topic.name in {".", ".."}:
            yield f"topics names {topic.name}, which Kafka does not allow; give it another name."
        if topic.name.startswith("__"):
            yield (
                f"topics names {topic.name}: names with two underscores in front are Kafka's own; "
                f"give it another name."
            )
        # Kafka's metrics write a dot as an underscore, so it refuses the second of the two.
        other = seen.setdefault(topic.name.replace(".", "_"), topic.name)
        if other != topic.name:
            yield f"topics {other} and {topic.name} collide in Kafka's metrics; rename one."


def _kubernetes_names(spec: ClusterSpec) -> Iterator[str]:
    if any(pool.name == naming.SYSTEM_POOL for pool in spec.pools):
        yield (
            f"a pool is named {naming.SYSTEM_POOL}, which is what the nodes of everything that is "
            f"not Kafka are labelled; choose another name."
        )
    if any(pool.role.is_broker and pool.name == naming.BOOTSTRAP for pool in spec.pools):
        yield (
            f"a pool of brokers is named {naming.BOOTSTRAP}, the name of the load balancer's rules "
            "for the bootstrap port; choose another name."
        )


def _connect(spec: ClusterSpec) -> Iterator[str]:
    connect = spec.connect
    if connect is not None and connect.heap_mib >= connect.memory_request_mib:
        yield (
            f"connect.heap_mib {connect.heap_mib} leaves nothing of connect.memory_request_mib "
            f"{connect.memory_request_mib}, and the kernel kills the worker; lower heap_mib."
        )


def _policy(pool: NodePool) -> Iterator[str]:
    policy = pool.volume_policy
    for volume in pool.volumes:
        for key, most, asked in (
            ("max_size_gib", policy.max_size_gib, volume.size_gib),
            ("max_iops", policy.max_iops, volume.iops),
            (
                "max_throughput_mib_per_s",
                policy.max_throughput_mib_per_s,
                volume.throughput_mib_per_s,
            ),
        ):
            if asked > most:
                setting = key.removeprefix("max_")
                yield (
                    f"volume_policy.{key} {most} of pool {pool.name} is below the {setting} "
                    f"{asked} of one of its volumes, which is the policy's floor; raise {key}."
                )
