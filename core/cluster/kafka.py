"""What runs on the nodes: Kafka, its operator, Connect, topics, users, what they expose."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from core.cluster.fields import DnsLabel, Frozen, ListenerName, Seconds


class Listener(Frozen):
    """The Kafka listener that clients outside the cluster reach through the load balancer."""

    name: ListenerName = "nlb"
    port: Annotated[int, Field(ge=9092, le=65535)] = 9094
    tls: bool = True
    advertised_host: str = "kafka.stillwater.internal"
    first_advertised_port: Annotated[int, Field(ge=1024, le=60000)] = 10000
    bootstrap_port: Annotated[int, Field(ge=1024, le=65535)] = 9094


class InternalListener(Frozen):
    """The Kafka listener for clients inside the cluster: Connect's workers, and every user."""

    port: Annotated[int, Field(ge=9092, le=65535)] = 9093
    tls: bool = True
    authentication: Literal["none", "tls", "scram-sha-512"] = "none"

    @model_validator(mode="after")
    def _certificates_need_tls(self) -> Self:
        if self.authentication == "tls" and not self.tls:
            raise ValueError(
                "authentication tls shows a client's certificate, which only a listener with tls "
                "asks for; set tls to true or authentication to scram-sha-512"
            )
        return self


class Probe(Frozen):
    """When the kubelet asks, and how often it takes no for an answer."""

    initial_delay_seconds: Annotated[int, Field(ge=0)] = 15
    period_seconds: Seconds = 10
    timeout_seconds: Seconds = 5
    failure_threshold: Annotated[int, Field(ge=1)] = 3


class Probes(Frozen):
    """Kafka's probes. Strimzi has one set for brokers and controllers: no pool has its own."""

    readiness: Probe = Probe()
    # The shipped liveness script only looks for a Java process, which a broker is from its first
    # second on; a long log recovery cannot fail it.
    liveness: Probe = Probe()


class Metrics(Frozen):
    """What Kafka and Connect expose to Prometheus; nothing is exposed that no list names."""

    enabled: bool = True
    # Regular expressions over metric names, added to the list this project reads itself.
    allow: tuple[str, ...] = ()
    # Whether the Prometheus operator is there, for which pods are described and alerts written.
    prometheus_operator: bool = False
    # Whether Grafana's sidecar is there, which loads dashboards from labelled ConfigMaps.
    dashboards: bool = False

    @field_validator("allow")
    @classmethod
    def _are_expressions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for expression in value:
            try:
                re.compile(expression)
            except re.error as error:
                raise ValueError(f"{expression!r} is no regular expression: {error}") from None
        return value


class Kafka(Frozen):
    """Kafka's own settings."""

    version: str = "4.2.0"
    metadata_version: str = "4.2-IV1"
    default_replication_factor: Annotated[int, Field(ge=1)] = 3
    min_insync_replicas: Annotated[int, Field(ge=1)] = 2
    listener: Listener = Listener()
    internal_listener: InternalListener = InternalListener()
    probes: Probes = Probes()
    # Merged over the defaults; keys that Strimzi owns are refused by Strimzi itself.
    config: dict[str, str | int | bool] = Field(default_factory=dict)


class Strimzi(Frozen):
    """Who runs the cluster operator: this project, from its chart, or somebody before it."""

    operator: Literal["chart", "external"] = "chart"
    namespace: DnsLabel = "strimzi"
    replicas: Annotated[int, Field(ge=1, le=5)] = 2


class Connect(Frozen):
    """A Kafka Connect cluster beside Kafka, on the system nodes."""

    replicas: Annotated[int, Field(ge=1, le=50)] = 3
    heap_mib: Annotated[int, Field(ge=128)] = 1024
    memory_request_mib: Annotated[int, Field(ge=256)] = 2048
    cpu_request_millis: Annotated[int, Field(ge=50)] = 500
    grace_seconds: Seconds = 60
    # Until then a worker that starts, or rebalances for long, is not restarted for it.
    startup_seconds: Annotated[int, Field(ge=30, le=3600)] = 120
    # An image with connectors in it; none: Strimzi's own.
    image: str | None = None
    # Merged over the defaults; keys that Strimzi owns are refused by Strimzi itself.
    config: dict[str, str | int | bool] = Field(default_factory=dict)


class Topic(Frozen):
    """A topic; it outlives its entry here, because deleting it loses data."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 12
    # None: Kafka's default_replication_factor.
    replication_factor: Annotated[int | None, Field(ge=1, le=32)] = None
    config: dict[str, str | int | bool] = Field(default_factory=dict)


class Acl(Frozen):
    """What a user may do with a topic, a consumer group, or the cluster."""

    resource: Literal["topic", "group", "cluster", "transactionalId"]
    # "*" is every resource of its kind; the cluster has no name.
    name: str = "*"
    prefix: bool = False
    operations: Annotated[
        tuple[
            Literal[
                "All",
                "Alter",
                "AlterConfigs",
                "ClusterAction",
                "Create",
                "Delete",
                "Describe",
                "DescribeConfigs",
                "IdempotentWrite",
                "Read",
                "Write",
            ],
            ...,
        ],
        Field(min_length=1),
    ]


class User(Frozen):
    """A client with a name: how it authenticates is the internal listener's choice."""

    name: DnsLabel
    acls: tuple[Acl, ...] = ()
    producer_bytes_per_s: Annotated[int | None, Field(ge=1)] = None
    consumer_bytes_per_s: Annotated[int | None, Field(ge=1)] = None
