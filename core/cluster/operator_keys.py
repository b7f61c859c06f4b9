"""Decides which settings and ports of Kafka and Connect the operator leaves to a user.

What it keeps to itself it drops without a word, so that a setting looks made and is not.
Sources: Strimzi 1.2.0's KafkaClusterSpec and the KafkaConnect definition (forbidden prefixes and
their exceptions), ListenersValidator (ports).
"""

from __future__ import annotations

from collections.abc import Iterator

from core.cluster.spec import ClusterSpec
from core.constants import TAKEN_PORTS

# What begins so is the operator's, but for the exceptions.
OF_KAFKA = (
    "advertised.",
    "authorizer.",
    "broker.",
    "controller.",
    "cruise.control.metrics.reporter.bootstrap.servers",
    "cruise.control.metrics.topic",
    "host.name",
    "inter.broker.listener.name",
    "listener.",
    "listeners",
    "log.dir",
    "metadata.log.dir",
    "node.id",
    "password.",
    "port",
    "process.roles",
    "sasl.",
    "security.",
    "ssl.",
    "super.user",
)
OF_CONNECT = (
    "bootstrap.servers",
    "config.storage.topic",
    "consumer.interceptor.classes",
    "group.id",
    "listeners",
    "offset.storage.topic",
    "plugin.path",
    "producer.interceptor.classes",
    "prometheus.metrics.reporter.",
    "rest.",
    "sasl.",
    "security.",
    "ssl.",
    "status.storage.topic",
)
_OF_TLS = frozenset({"ssl.cipher.suites", "ssl.enabled.protocols", "ssl.protocol"})
FREE_OF_KAFKA = _OF_TLS | {
    "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms",
    "controller.quorum.election.backoff.max.ms",
    "controller.quorum.election.timeout.ms",
    "controller.quorum.fetch.timeout.ms",
    "controller.socket.timeout.ms",
    "cruise.control.metrics.topic.auto.create.retries",
    "cruise.control.metrics.topic.auto.create.timeout.ms",
    "cruise.control.metrics.topic.min.insync.replicas",
    "cruise.control.metrics.topic.num.partitions",
    "cruise.control.metrics.topic.replication.factor",
    "cruise.control.metrics.topic.retention.ms",
    "sasl.server.max.receive.size",
    "ssl.secure.random.implementation",
}
FREE_OF_CONNECT = _OF_TLS | {"ssl.endpoint.identification.algorithm"}


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each setting or port that the operator would drop or refuse."""
    yield from _operators_own_keys("kafka.config", spec.kafka.config, OF_KAFKA, FREE_OF_KAFKA)
    if spec.connect is not None:
        yield from _operators_own_keys(
            "connect.config", spec.connect.config, OF_CONNECT, FREE_OF_CONNECT
        )
    ports = {
        "kafka.listener.port": spec.kafka.listener.port,
        "kafka.internal_listener.port": spec.kafka.internal_listener.port,
    }
    for key, port in ports.items():
        if port in TAKEN_PORTS:
            yield (
                f"{key} is {port}, at which {TAKEN_PORTS[port]} answers in a broker's pod; choose "
                f"another."
            )
    if len(set(ports.values())) < len(ports):
        yield (
            f"{' and '.join(ports)} are both {spec.kafka.listener.port}, and a broker answers one "
            f"listener at a port; change one."
        )


def _operators_own_keys(
    key: str, config: dict[str, str | int | bool], kept: tuple[str, ...], free: frozenset[str]
) -> Iterator[str]:
    for setting in config:
        begins = next((each for each in kept if setting.lower().startswith(each)), None)
        if begins is not None and setting not in free:
            yield (
                f"{key} sets {setting}, and the operator keeps what begins with {begins} to "
                f"itself and drops it; take it out."
            )
