"""Decides the settings of brokers that a description does not say: Kafka's own are not enough."""

from __future__ import annotations

from core import naming
from core.cluster.spec import ClusterSpec

# What producers with acks=all wait for at every move of leaders, where Kafka keeps its own second
# and half second (docs/reference/rotation-measured.md): a follower asks again so much later after
# an error, and a fetch that finds nothing is answered after so long. Until then its thread asks the
# broker for no partition that it has begun to lead.
FETCH_BACKOFF_MS, FETCH_WAIT_MS = 100, 100


def default_config(spec: ClusterSpec) -> dict[str, str | int | bool]:
    """Return every setting that is written for a broker where `kafka.config` has none."""
    factor, minimum = spec.kafka.default_replication_factor, spec.kafka.min_insync_replicas
    timings = spec.timings
    return {
        # Each broker's rack is its zone: consumers that say theirs read from the replica in it.
        naming.REPLICA_SELECTOR: naming.FOLLOWER_FETCHING,
        "default.replication.factor": factor,
        "min.insync.replicas": minimum,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": minimum,
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": minimum,
        # Kafka's own prefix for the settings of tiered storage's metadata; unused without it.
        "rlmm.config.remote.log.metadata.topic.replication.factor": factor,
        "broker.session.timeout.ms": timings.broker_session_timeout_seconds * 1000,
        "broker.heartbeat.interval.ms": timings.broker_heartbeat_interval_seconds * 1000,
        "replica.fetch.backoff.ms": FETCH_BACKOFF_MS,
        "replica.fetch.wait.max.ms": FETCH_WAIT_MS,
        "connections.max.idle.ms": timings.broker_connections_max_idle_seconds * 1000,
    }
