"""server.config of one Kafka node, as the twin's operator writes it: a pure rendering.

Listener names are Strimzi's: CONTROLPLANE-9090 among controllers, REPLICATION-9091 among brokers,
<NAME>-<port> for the user's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from local.kafka.container import (
    CLIENT_CA_CERTS,
    CLUSTER_CA_CERTS,
    NODE_CERTS,
    POD_ADDRESS,
    RACK,
)
from local.kubernetes.strimzi_model import (
    ORGANIZATION,
    SCRAM,
    TLS,
    KafkaCluster,
    KafkaListener,
    KafkaPodNode,
)

CONTROL_PLANE, CONTROL_PLANE_PORT = "CONTROLPLANE-9090", 9090
REPLICATION, REPLICATION_PORT = "REPLICATION-9091", 9091

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"

# Beginnings of what concerns a node that is no broker (KafkaNodeConfigurationDiff).
CONTROLLER_SETTINGS = (
    *("alter.config.policy", "authorizer.", "auto.create.", "background.threads"),
    *("broker.heartbeat.", "broker.session.", "connection", "controlled.", "controller."),
    *("create.topic.", "default.replication.", "delete.topic.", "early.start.", "kafka.metrics."),
    *("leader.imbalance.", "listener.security.", "listeners", "log.dir", "max.connection"),
    *("metadata.", "metric", "min.insync.", "num.io.", "num.network.", "num.partitions"),
    *("offsets.topic.replication.", "principal.", "process.roles", "queued.max.", "reserved."),
    *("replica.selector.", "sasl.", "security.providers", "server.max.", "socket.", "ssl."),
    *("super.users", "transaction.state.log.min", "transaction.state.log.repl", "unclean."),
)

METRICS_PORT_NAME, METRICS_PORT = "tcp-prometheus", 9404
REPORTER = "io.strimzi.kafka.metrics.KafkaPrometheusMetricsReporter"
BROKER_REPORTER = "io.strimzi.kafka.metrics.YammerPrometheusMetricsReporter"


def volume_mount(volume_id: int) -> str:
    return f"/var/lib/kafka/data-{volume_id}"


def log_directory(node: KafkaPodNode, volume_id: int) -> str:
    """Return a subfolder: an ext4 volume's own lost+found would kill the broker."""
    return f"{volume_mount(volume_id)}/kafka-log{node.node_id}"


def listener_name(listener: KafkaListener) -> str:
    return f"{listener.name.upper()}-{listener.port}"


def server_config(cluster: KafkaCluster, node: KafkaPodNode) -> str:
    """Return the node's server.config; paths are the pod's, the address is filled in at start."""
    settings = own_settings(cluster, node) | described_settings(cluster)
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def own_settings(cluster: KafkaCluster, node: KafkaPodNode) -> dict[str, str]:
    """Return what the operator decides itself."""
    return {
        **dict(_identity(cluster, node)),
        **dict(_listeners(cluster, node)),
        **dict(_security(cluster, node)),
        **dict(_storage(node)),
        **reporters(cluster.metrics, brokers=True),
    }


def described_settings(cluster: KafkaCluster) -> dict[str, str]:
    """Return what the Kafka's own description says of its brokers' configuration."""
    return {key: plain(value) for key, value in cluster.config.items()}


def restarting_settings(cluster: KafkaCluster, node: KafkaPodNode) -> dict[str, str]:
    """Return what a pod's annotation names by its hash, so that a change restarts the pod.

    A broker is asked itself what it runs with. No controller is: what concerns it is named here.
    """
    own = own_settings(cluster, node)
    if node.is_broker:
        return own
    every = own | described_settings(cluster)
    return {key: value for key, value in every.items() if key.startswith(CONTROLLER_SETTINGS)}


def _identity(cluster: KafkaCluster, node: KafkaPodNode) -> Iterator[tuple[str, str]]:
    yield "node.id", str(node.node_id)
    yield "process.roles", ",".join(sorted(node.roles))
    yield (
        "controller.quorum.voters",
        ",".join(
            f"{voter.node_id}@{cluster.host(voter)}:{CONTROL_PLANE_PORT}"
            for voter in cluster.nodes
            if voter.is_controller
        ),
    )
    if node.is_broker and cluster.rack_label is not None:
        yield "broker.rack", RACK


def _listeners(cluster: KafkaCluster, node: KafkaPodNode) -> Iterator[tuple[str, str]]:
    bound: dict[str, str] = {}
    advertised: dict[str, str] = {}
    if node.is_controller:
        bound[CONTROL_PLANE] = f"{POD_ADDRESS}:{CONTROL_PLANE_PORT}"
        advertised[CONTROL_PLANE] = f"{cluster.service_host(node)}:{CONTROL_PLANE_PORT}"
    if node.is_broker:
        bound[REPLICATION] = f"{POD_ADDRESS}:{REPLICATION_PORT}"
        advertised[REPLICATION] = f"{cluster.service_host(node)}:{REPLICATION_PORT}"
        for listener in cluster.listeners:
            name = listener_name(listener)
            host = listener.host_of(node.node_id) or cluster.service_host(node)
            advertised[name] = f"{host}:{listener.port_of(node.node_id)}"
            bound[name] = f"{POD_ADDRESS}:{listener.port}"
    yield "listeners", _named_addresses(bound)
    yield "advertised.listeners", _named_addresses(advertised)
    yield "controller.listener.names", CONTROL_PLANE
    if node.is_broker:
        yield "inter.broker.listener.name", REPLICATION


def _security(cluster: KafkaCluster, node: KafkaPodNode) -> Iterator[tuple[str, str]]:
    """Ask everybody for a certificate where nodes speak to each other, clients as they are told."""
    if not cluster.asks:
        names = [CONTROL_PLANE, REPLICATION, *(listener_name(x) for x in cluster.listeners)]
        yield "listener.security.protocol.map", ",".join(f"{name}:PLAINTEXT" for name in names)
        return
    protocols = {CONTROL_PLANE: "SSL", REPLICATION: "SSL"}
    for what, path in (("keystore", NODE_CERTS), ("truststore", CLUSTER_CA_CERTS)):
        yield f"ssl.{what}.type", "PEM"
        yield f"ssl.{what}.location", f"{path}.pem"
    for name in (CONTROL_PLANE, *([REPLICATION] if node.is_broker else [])):
        yield f"listener.name.{name.lower()}.ssl.client.auth", "required"
    for listener in cluster.listeners:
        name, prefix = listener_name(listener), f"listener.name.{listener_name(listener).lower()}"
        asks_password = listener.authentication == SCRAM
        transport = "SSL" if listener.tls else "PLAINTEXT"
        protocols[name] = f"SASL_{transport}" if asks_password else transport
        if not node.is_broker:
            continue
        if listener.authentication == TLS:
            yield f"{prefix}.ssl.client.auth", "required"
            yield f"{prefix}.ssl.truststore.type", "PEM"
            yield f"{prefix}.ssl.truststore.location", f"{CLIENT_CA_CERTS}.pem"
        elif asks_password:
            yield f"{prefix}.sasl.enabled.mechanisms", "SCRAM-SHA-512"
            yield f"{prefix}.scram-sha-512.sasl.jaas.config", f"{SCRAM_MODULE} required;"
    yield "listener.security.protocol.map", ",".join(f"{n}:{p}" for n, p in protocols.items())
    if cluster.authorized:
        yield "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        yield "super.users", ";".join(f"User:{name}" for name in super_users(cluster.name))


def super_users(cluster: str) -> list[str]:
    """Return whom no ACL holds: Strimzi's own parts, whether they run or not (KafkaCluster)."""
    parts = ("kafka", "entity-topic-operator", "entity-user-operator", "kafka-exporter")
    names = [*(f"{cluster}-{part}" for part in parts), f"{cluster}-cruise-control"]
    return [f"CN={name},O={ORGANIZATION}" for name in (*names, "cluster-operator")]


def _storage(node: KafkaPodNode) -> Iterator[tuple[str, str]]:
    yield "log.dirs", ",".join(log_directory(node, volume["id"]) for volume in node.volumes)
    shared = [volume["id"] for volume in node.volumes if volume.get("kraftMetadata") == "shared"]
    if shared:
        yield "metadata.log.dir", log_directory(node, shared[0])


def reporters(allow: Sequence[str], *, brokers: bool) -> dict[str, str]:
    """Return the settings of Strimzi's metrics reporter; none when nothing is allowed."""
    if not allow:
        return {}
    settings = {
        "metric.reporters": REPORTER,
        "prometheus.metrics.reporter.listener": f"http://{POD_ADDRESS}:{METRICS_PORT}",
        # A properties file takes a backslash for its own.
        "prometheus.metrics.reporter.allowlist": ",".join(allow).replace("\\", "\\\\"),
    }
    return {**settings, "kafka.metrics.reporters": BROKER_REPORTER} if brokers else settings


def _named_addresses(addresses: dict[str, str]) -> str:
    return ",".join(f"{name}://{address}" for name, address in addresses.items())


def plain(value: object) -> str:
    """Return a config value as Kafka writes it: true, not True."""
    return str(value).lower() if isinstance(value, bool) else str(value)
