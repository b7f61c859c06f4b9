"""Refuses a ClusterSpec whose keys are each in order and AWS or Kafka would still refuse.

Judged apart from the model, so that what was built from a spec can be read, and taken down,
whatever a newer release thinks of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from core.cluster import addresses, kafka_releases, kafka_settings, limits, machines, names, tagging
from core.cluster.nodes import NodePool
from core.cluster.spec import ClusterSpec
from core.ground import naming, regions

# EKS: "Subnets specified must be in at least two different AZs".
LEAST_ZONES = 2
# Settings of Kafka's that keys of their own decide; what else is decided by them goes by the key.
OWN_KEYS: dict[str, tuple[str, Callable[[ClusterSpec], int]]] = {
    "default.replication.factor": (
        "kafka.default_replication_factor",
        lambda spec: spec.kafka.default_replication_factor,
    ),
    "min.insync.replicas": (
        "kafka.min_insync_replicas",
        lambda spec: spec.kafka.min_insync_replicas,
    ),
    "broker.session.timeout.ms": (
        "timings.broker_session_timeout_seconds",
        lambda spec: spec.timings.broker_session_timeout_seconds * 1000,
    ),
    "broker.heartbeat.interval.ms": (
        "timings.broker_heartbeat_interval_seconds",
        lambda spec: spec.timings.broker_heartbeat_interval_seconds * 1000,
    ),
    "connections.max.idle.ms": (
        "timings.broker_connections_max_idle_seconds",
        lambda spec: spec.timings.broker_connections_max_idle_seconds * 1000,
    ),
}


def problems(spec: ClusterSpec) -> list[str]:
    """Return a sentence for each contradiction, with its remedy."""
    refused = regions.refusal(spec.region)
    return [
        *([refused] if refused else []),
        *_zones(spec),
        *kafka_releases.problems(spec),
        *_own_keys(spec),
        *_topic_names(spec),
        *addresses.problems(spec),
        *machines.system_node_problems(spec),
        *kafka_settings.operator_problems(spec),
        *names.problems(spec),
        *machines.problems(spec),
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
        *kafka_releases.doubts(spec),
        *addresses.doubts(spec),
        *names.doubts(spec),
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
    for setting, (key, value) in OWN_KEYS.items():
        if setting in spec.kafka.config and str(spec.kafka.config[setting]) != str(value(spec)):
            yield (
                f"kafka.config sets {setting} to {spec.kafka.config[setting]} and {key} makes it "
                f"{value(spec)}, which is what everything else here goes by; set {key} alone."
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
            f"a pool of brokers is named {naming.BOOTSTRAP}, which is what the load balancer's "
            f"rules for the bootstrap port are called; choose another name."
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
