"""Describes what runs on the nodes: Kafka, its operator, Connect, topics, clients and their rights.

Strimzi 1.x knows `tls`, `scram-sha-512` and `custom` (its CRD has no `oauth` any more): OAuth is
rendered as `custom`, with the handlers of Strimzi's own OAuth library, which is in its images.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from core.cluster import fields
from core.cluster.fields import (
    MOST_CPU_MILLIS,
    MOST_MIB,
    MOST_WHOLE,
    DnsLabel,
    Frozen,
    HostName,
    KubernetesName,
    ListenerName,
    Seconds,
)
from core.cluster.images import Image
from core.ground.errors import InvalidInput
from core.settings.prometheus import Address, parse_prometheus_address

# It stands in a JAAS configuration between quotes, and a function is told of one.
HttpsUrl = Annotated[
    str,
    StringConstraints(
        pattern=r"^https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[1-9][0-9]{0,4})?"
        r"([/?][^\s\"\\;]*)?$",
        max_length=400,
    ),
]
# What stands in a JAAS configuration between quotes.
Claim = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:/-]+$", max_length=200)]
# Strimzi's KafkaUserQuotas hold an Integer of Java's; one user beyond it stops the user operator.
MOST_BYTES_PER_S = 2**31 - 1
Resource = Literal["topic", "group", "cluster", "transactionalId"]
Operation = Literal[
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
]
# Source: org.apache.kafka.security.authorizer.AclEntry, supportedOperations; Kafka refuses others.
OPERATIONS: Mapping[Resource, tuple[Operation, ...]] = {
    "topic": (
        *("Read", "Write", "Create", "Describe", "Delete", "Alter"),
        *("DescribeConfigs", "AlterConfigs", "All"),
    ),
    "group": ("Read", "Describe", "Delete", "DescribeConfigs", "AlterConfigs", "All"),
    "cluster": (
        *("Create", "ClusterAction", "DescribeConfigs", "AlterConfigs", "IdempotentWrite"),
        *("Alter", "Describe", "All"),
    ),
    "transactionalId": ("Describe", "Write", "All"),
}
# On the cluster: Alter writes ACLs, so whoever has it may give itself every right.
TAKES_EVERYTHING: frozenset[Operation] = frozenset({"All", "Alter", "ClusterAction"})


class OAuth(Frozen):
    """The authorization server whose tokens a listener takes."""

    valid_issuer_url: HttpsUrl
    """Who must have issued a token: its `iss` claim."""
    jwks_url: HttpsUrl
    """Where the keys are that tokens are signed with."""
    user_name_claim: Claim = "sub"
    """The claim that names the user; ACLs are of this name."""
    audience: Claim | None = None
    """What must stand in a token's `aud` claim; without one, it is not looked at."""
    token_url: HttpsUrl | None = None
    """Where the functions get their own token; needed where `kafka.listener` asks for one."""


class Asking(Frozen):
    """What every listener asks of its clients."""

    tls: bool = True
    """Whether clients speak TLS, with certificates of the cluster's own authority."""
    authentication: Literal["tls", "scram-sha-512", "oauth", "none"] = "tls"
    """How clients say who they are: by certificate, by password, by token, or, with
    `anonymous_clients`, not at all.
    """
    anonymous_clients: bool = False
    """Required for `authentication: none`: any program that reaches the listener is a client."""
    oauth: OAuth | None = None
    """Whose tokens it takes, where `authentication` is `oauth`."""

    @model_validator(mode="after")
    def _can_ask(self) -> Self:
        problems = [problem for problem in self._problems() if problem]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _problems(self) -> tuple[str, ...]:
        asks = self.authentication
        return (
            "authentication tls needs a listener with tls; set tls to true, or authentication to "
            "scram-sha-512, or to none with anonymous_clients: true"
            if asks == "tls" and not self.tls
            else "",
            "authentication oauth sends a token in clear text; set tls to true"
            if asks == "oauth" and not self.tls
            else "",
            "authentication none lets any client in without a name; set anonymous_clients to "
            "true, or authentication to tls, scram-sha-512 or oauth"
            if asks == "none" and not self.anonymous_clients
            else "",
            f"anonymous_clients is true and authentication {asks} asks every client who it is; set "
            f"authentication to none, or leave anonymous_clients out"
            if asks != "none" and self.anonymous_clients
            else "",
            "authentication oauth needs oauth.valid_issuer_url and oauth.jwks_url"
            if asks == "oauth" and self.oauth is None
            else "",
            f"oauth stands with authentication {asks}; set authentication to oauth, or leave oauth "
            "out"
            if asks != "oauth" and self.oauth is not None
            else "",
        )


class Acl(Frozen):
    """A user's rights on a topic, a consumer group, or the cluster."""

    resource: Resource
    """The kind of thing the operations are allowed on."""
    name: Annotated[
        str | None, StringConstraints(min_length=1, max_length=249, pattern=r"^[^\x00-\x1f\x7f]+$")
    ] = None
    """Its name, which everything but the cluster needs; `*` is every resource of its kind, present
    and to come.
    """
    prefix: bool = False
    """Whether the name is a prefix: every resource whose name begins with it."""
    operations: Annotated[tuple[Operation, ...], Field(min_length=1)]
    """The allowed operations."""

    @model_validator(mode="after")
    def _is_one_that_kafka_takes(self) -> Self:
        if self.resource == "cluster" and (self.name is not None or self.prefix):
            raise ValueError(
                f"the cluster has no name, and this ACL names {self.name!r}; leave name and prefix "
                f"out, or set resource to topic, group or transactionalId"
            )
        if self.resource != "cluster" and self.name is None:
            raise ValueError(
                f"an ACL on a {self.resource} needs a name; give one, one with prefix: true, or "
                f'"*" for every {self.resource}'
            )
        if self.name == "*" and self.prefix:
            raise ValueError(
                'name "*" with prefix is every name that begins with an asterisk; leave prefix out'
            )
        known = OPERATIONS[self.resource]
        wrong = [operation for operation in self.operations if operation not in known]
        if wrong:
            raise ValueError(
                f"Kafka knows no {wrong[0]} on a {self.resource}; it knows {', '.join(known)}"
            )
        return self

    @property
    def sentence(self) -> str:
        """Return what it allows, as a person says it: Read, Write on topics orders-*."""
        if self.resource == "cluster":
            where = "the cluster"
        elif self.name == "*":
            where = f"every {self.resource}"
        else:
            where = f"{self.resource} {self.name}{'*' if self.prefix else ''}"
        return f"{', '.join(self.operations)} on {where}"


class User(Frozen):
    """A client with a name."""

    name: DnsLabel
    """The user's name, and its Secret's."""
    authentication: Literal["tls", "scram-sha-512", "tls-external", "oauth"] | None = None
    """How it authenticates: by a certificate or a password of Strimzi's, by a certificate made
    elsewhere (subject `CN=` the name), or by a token. The default is that of
    `kafka.internal_listener`, else of `kafka.listener`.
    """
    acls: tuple[Acl, ...] = ()
    """The user's rights."""
    producer_bytes_per_s: Annotated[int | None, Field(ge=1, le=MOST_BYTES_PER_S)] = None
    """Quota on what it writes, per broker."""
    consumer_bytes_per_s: Annotated[int | None, Field(ge=1, le=MOST_BYTES_PER_S)] = None
    """Quota on what it reads, per broker."""


class Functions(Frozen):
    """Who this project's own functions are to Kafka.

    Left out, each function that asks Kafka is a user of its own, made with exactly its rights, and
    says who it is as `kafka.listener` asks.
    """

    authentication: Literal["tls", "scram-sha-512", "oauth", "aws-iam", "none"] | None = None
    """How they say who they are, where that is not what `kafka.listener` asks. `aws-iam`: by their
    AWS role, to Amazon MSK.
    """
    secret_name: KubernetesName | None = None
    """A Secret in `kubernetes.namespace` that another team fills, for all of them. It has
    `user.crt` and `user.key`, `tls.crt` and `tls.key`, `username` and `password`, or `client-id`
    and `client-secret`. No users are made then, and its owner grants the rights.
    """
    authority_secret_name: KubernetesName | None = None
    """A Secret with the authorities (`*.crt`) of the brokers' certificates; without one,
    Strimzi's `<cluster>-cluster-ca-cert`.
    """


# A short of Java's.
MOST_REPLICAS = 32_767


class Listener(Asking):
    """The Kafka listener that clients outside the cluster reach through the load balancer."""

    name: ListenerName = "nlb"
    """The listener's name in Kafka and in its Services. Strimzi's CRD admits no dash in it."""
    port: Annotated[int, Field(ge=9092, le=65535)] = 9094
    """The port brokers listen on; targets of the load balancer."""
    advertised_host: HostName = "kafka.stillwater.internal"
    """The name every broker and the bootstrap are reached by; it stands in their certificates.
    `load_balancer.private_zone` can hold its record.
    """
    first_advertised_port: Annotated[int, Field(ge=1024, le=60000)] = 10000
    """The load balancer's port for node id 0: broker N is reached at this port + N, for good."""
    bootstrap_port: Annotated[int, Field(ge=1024, le=65535)] = 9094
    """The load balancer's port for bootstrapping; any Ready broker answers."""


class InternalListener(Asking):
    """The Kafka listener for clients inside the cluster: Connect's workers among them."""

    port: Annotated[int, Field(ge=9092, le=65535)] = 9093
    """The port brokers listen on for pods of the cluster."""


class Probe(Frozen):
    """When the kubelet asks, and how often it takes no for an answer."""

    initial_delay_seconds: Annotated[int, Field(ge=0, le=MOST_WHOLE)] = 15
    """How long after its start a container is probed first."""
    period_seconds: Seconds = 10
    """How often it is probed."""
    timeout_seconds: Seconds = 5
    """How long an answer may take; none by then is a no."""
    failure_threshold: Annotated[int, Field(ge=1, le=MOST_WHOLE)] = 3
    """How many times in a row no is the answer before the kubelet acts."""


class Probes(Frozen):
    """Kafka's probes. Strimzi has one set for brokers and controllers: no pool has its own."""

    readiness: Probe = Probe()
    """Whether the node may be sent traffic."""
    liveness: Probe = Probe()
    """Whether the container is restarted. The shipped script only looks for a Java process, which a
    broker is from its first second on; a long log recovery cannot fail it.
    """


class Prometheus(Frozen):
    """The Prometheus that λ volumes asks for the fill and the load of volumes."""

    address: str
    """`http://NAME.NAMESPACE.svc:PORT`, a Service asked through the API server, or
    `https://aps-workspaces.REGION.amazonaws.com/workspaces/ws-ID`, asked under the function's role.
    """
    labels: dict[Annotated[str, StringConstraints(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")], str] = (
        Field(default_factory=dict)
    )
    """Put into every query, where one Prometheus holds several clusters: `cluster: prod`."""

    @property
    def asked(self) -> Address:
        return parse_prometheus_address(self.address)

    @field_validator("address")
    @classmethod
    def _can_be_asked(cls, value: str) -> str:
        try:
            parse_prometheus_address(value)
        except InvalidInput as error:
            raise ValueError("; ".join(error.problems)) from None
        return value


class Metrics(Frozen):
    """What Kafka and Connect expose to Prometheus; nothing is exposed that no list names."""

    enabled: bool = True
    """Whether Kafka and Connect run Prometheus's JMX reporter at all."""
    allow: tuple[str, ...] = ()
    """Regular expressions over metric names, added to the list this project reads itself."""
    prometheus_operator: bool = False
    """Whether the Prometheus operator is there, for which pods are described and alerts written."""
    dashboards: bool = False
    """Whether Grafana\'s sidecar is there, which loads dashboards from labelled ConfigMaps."""
    prometheus: Prometheus | None = None
    """The source of volume usage and load. null: the brokers and CloudWatch, which do not have the
    usage of controllers.
    """

    @field_validator("allow")
    @classmethod
    def _are_expressions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for expression in value:
            if (problem := fields.expression_problem(expression)) is not None:
                raise ValueError(problem)
        return value


class Rebalance(Frozen):
    """Cruise Control, which Strimzi's operator runs and which alone moves partitions."""

    throttle_mib_per_s: Annotated[int, Field(ge=1, le=10_000)] = 50
    """How much each broker may receive and send while replicas move."""
    automatic: bool = False
    """Whether Strimzi's operator moves replicas by itself, onto added brokers and off brokers that
    are to go. Without it `stillwater grow` and `stillwater shrink` show a plan and ask you first.
    """
    cpu_request_millis: Annotated[int, Field(ge=50, le=MOST_CPU_MILLIS)] = 500
    """Cruise Control's CPU request, in thousandths of a core."""
    memory_request_mib: Annotated[int, Field(ge=512, le=MOST_MIB)] = 1024
    """Cruise Control's memory, request and limit."""


class Kafka(Frozen):
    """Kafka's own settings."""

    version: str = "4.2.0"
    """Kafka's version; the operator's chart must know it."""
    metadata_version: str = "4.2-IV1"
    """The format of the metadata log. Raised after `version`, once every node runs it; it is the
    step that cannot be undone.
    """
    default_replication_factor: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] = 3
    """Replicas of a topic that says nothing else, Kafka's own topics included."""
    min_insync_replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] = 2
    """How many of them must be in sync for a write with `acks=all`."""
    listener: Listener = Listener()
    """For clients outside the cluster."""
    internal_listener: InternalListener = InternalListener()
    """For clients inside the cluster."""
    authorization: Literal["simple", "none"] = "simple"
    """`simple`: a client may do what its ACLs say and nothing else; Strimzi's own components alone
    may do everything. `none`: every client may do everything.
    """
    functions: Functions = Functions()
    """Who this project's own functions are."""
    probes: Probes = Probes()
    """The probes of Kafka's containers."""
    rebalance: Rebalance | None = None
    """Cruise Control. null: you move partitions yourself when brokers come or go."""
    config: dict[str, str | int | bool] = Field(default_factory=dict)
    """Broker settings, merged over the defaults; keys that Strimzi owns are refused by Strimzi
    itself.
    """


class Strimzi(Frozen):
    """The owner of the cluster operator: this project, from its chart, or another before it."""

    operator: Literal["chart", "external"] = "chart"
    """`chart` installs the operator; `external` expects one that watches `kubernetes.namespace`."""
    namespace: DnsLabel = "strimzi"
    """Where the operator runs."""
    replicas: Annotated[int, Field(ge=1, le=5)] = 2
    """Operator pods; one leads, the others take over."""
    disruption_budgets: Literal["ours", "operator"] | None = None
    """Who makes Kafka's disruption budgets. `ours` let a zone's brokers leave together, and need an
    operator that makes none (STRIMZI_POD_DISRUPTION_BUDGET_GENERATION false). Without it: `ours`
    where the operator comes from our chart.
    """

    @property
    def own_budgets(self) -> bool:
        """Say whether this project makes the disruption budgets."""
        chosen = self.disruption_budgets or ("ours" if self.operator == "chart" else "operator")
        return chosen == "ours"


class Connect(Frozen):
    """A Kafka Connect cluster on the system nodes."""

    replicas: Annotated[int, Field(ge=1, le=50)] = 3
    """Workers."""
    heap_mib: Annotated[int, Field(ge=128, le=MOST_MIB)] = 1024
    """A worker's Java heap."""
    memory_request_mib: Annotated[int, Field(ge=256, le=MOST_MIB)] = 2048
    """A worker's memory, request and limit."""
    cpu_request_millis: Annotated[int, Field(ge=50, le=MOST_CPU_MILLIS)] = 500
    """A worker's CPU request, in thousandths of a core."""
    grace_seconds: Seconds = 60
    """How long a worker has to stop its tasks before it is killed."""
    startup_seconds: Annotated[int, Field(ge=30, le=3600)] = 120
    """Until then a worker that starts, or rebalances for long, is not restarted for it."""
    image: Image | None = None
    """An image with connectors in it; without one, Strimzi's, which has Kafka's own alone."""
    acls: tuple[Acl, ...] = ()
    """What its connectors need: topics, and groups `connect-NAME` of sinks. Its own topics and
    group it has already.
    """
    config: dict[str, str | int | bool] = Field(default_factory=dict)
    """Worker settings, merged over the defaults; keys that Strimzi owns are refused by Strimzi
    itself.
    """


class ClientProbe(Frozen):
    """A client in the cluster that produces to every broker once a second and reads that back.

    Its metrics are the applications' view.
    """

    image: Image
    """An image with this package in it: the eviction gate's, by `docker build --target gate`."""
    objective_percent: Annotated[float, Field(ge=95, le=99.999)] = 99.9
    """Which share of all attempts must succeed over 30 days; the rest is the error budget. Below
    95 the fastest alert could never fire.
    """
    rotation_budget_percent: Annotated[float, Field(gt=0, le=100)] = 10
    """How much of the budget of 30 days one rotation may spend before it stops itself; read from
    `metrics.prometheus`, without which no rotation looks.
    """
    latency_seconds: Annotated[float, Field(ge=1, le=60)] = 5
    """An attempt that is not read back by then has failed. A leader that moves as planned takes
    less than a second.
    """


class Topic(Frozen):
    """A topic; it outlives its entry here, because deleting it loses data."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
    """The topic's name in Kafka."""
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 12
    """Partitions. They can be added later, never taken away."""
    replication_factor: Annotated[int | None, Field(ge=1, le=32)] = None
    """Replicas of each partition; without one, `kafka.default_replication_factor`."""
    config: dict[str, str | int | bool] = Field(default_factory=dict)
    """Topic settings, such as `retention.ms`."""
