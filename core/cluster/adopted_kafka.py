"""One Kafka of a cluster that exists, as a description names it, and why it cannot be spoken to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, field_validator

from core.cluster.adopted_names import INSIDE, Bootstrap, Called, KafkaName, Namespace
from core.cluster.fields import Frozen, KubernetesName, visible


class Section(BaseModel):
    """A section of a description that is not a ClusterSpec's, nor in its reference."""

    model_config = Frozen.model_config

    _all_is_seen = field_validator("*", mode="before")(visible)


class AdoptedKafka(Section):
    """One Kafka resource of Strimzi's, by where it is."""

    namespace: Namespace
    """Its namespace."""
    name: KafkaName
    """Its name there."""
    bootstrap: Bootstrap | None = None
    """HOST:PORT of a listener that the functions can reach; from `watch` on."""
    credentials_secret: KubernetesName | None = None
    """The Secret of a KafkaUser, in the same namespace, which the functions speak as."""
    authentication: Literal["none", "tls", "scram-sha-512"] = "none"
    """How that listener asks who somebody is."""
    tls: bool = True
    """Whether it is encrypted."""
    authority_secret: KubernetesName | None = None
    """The Secret with the brokers' authority; without it, Strimzi's own."""
    called: Called | None = None
    """What everything of ours is called by; without it, EKS cluster and Kafka: `shop-orders`."""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


def unspeakable(kafka: AdoptedKafka) -> Iterator[str]:
    """Yield why the functions could not speak to a Kafka."""
    for server in (kafka.bootstrap or "").split(","):
        host = server.rpartition(":")[0]
        # A Service of Strimzi's own, without what follows the namespace.
        short = host.startswith(f"{kafka.name}-kafka-") and host.endswith(f".{kafka.namespace}")
        if short or INSIDE.fullmatch(host):
            yield (
                f"bootstrap of Kafka {kafka.title} names {server}, which is known inside "
                f"the cluster alone, and the functions stand outside; name a listener that "
                f"their subnets reach, such as one behind a load balancer"
            )
    if kafka.authentication == "tls" and not kafka.tls:
        yield (
            f"Kafka {kafka.title} has authentication tls and tls false, and a certificate is "
            f"shown over TLS alone; set tls to true, or authentication to scram-sha-512 or none"
        )
    if kafka.authentication == "none" and kafka.credentials_secret is not None:
        yield (
            f"Kafka {kafka.title} has a credentials_secret and authentication none, so "
            f"that nobody would show it; set authentication to tls or scram-sha-512, or "
            f"remove credentials_secret"
        )
    if kafka.authentication != "none" and kafka.credentials_secret is None:
        yield (
            f"Kafka {kafka.title} asks for {kafka.authentication} and has no "
            f"credentials_secret; name the Secret of a KafkaUser in its namespace"
        )
