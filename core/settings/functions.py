"""Defines what each function is told: a frozen type apiece, rendered by infra, read by handlers.

A function gets only what it reads. Fields marked KEPT are too long for a function's environment and
wait in the ledger's table (infra.functions.function, handlers.store.table). What each asks of
Kafka stands in core.cluster.rights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from core.ground.constants import RUNBOOKS
from core.ground.naming import NODE_POOL_LABEL, NodePlace
from core.incidents.actions import OWN, Level, Reach
from core.incidents.observation import Ownership, Policy, cluster_ownership
from core.settings.prometheus import ProbeBudget

KEPT: Mapping[str, Any] = {"kept": True}
# A tick takes seconds. One that takes longer than this is taken for dead and its incident carried
# on; where it was only slow, versions in the ledger and idempotent effects keep that harmless.
LONGEST_TICK_SECONDS = 45.0


def kept_fields(kind: type) -> frozenset[str]:
    """Return the fields of a settings type that wait in the ledger's table."""
    return frozenset(each.name for each in fields(kind) if each.metadata.get("kept"))


def late_seconds(tick_interval_seconds: float) -> float:
    """Return how late a tick is when it is taken for lost."""
    return max(3 * tick_interval_seconds, LONGEST_TICK_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServer:
    """The cluster's API server, and the authority that signed its certificate."""

    eks_cluster: str
    endpoint: str
    ca_pem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaIdentity:
    """How a function connects to Kafka. Nothing of it is secret: Secrets are named, not held."""

    security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    authentication: Literal["none", "tls", "scram-sha-512", "oauth", "aws-iam"]
    namespace: str
    secret: str
    authority_secret: str
    token_url: str | None = None


@dataclass(frozen=True, kw_only=True)
class FunctionSettings:
    """What every function is told."""

    prefix: str
    cluster: str
    region: str
    ledger_table: str


@dataclass(frozen=True, kw_only=True)
class OfInstances(FunctionSettings):
    """What a function that asks for instances is told: whose they are."""

    # None: a cluster of ours, which carries our tag.
    instances: Ownership | None = None

    @property
    def whose(self) -> Ownership:
        return self.instances or cluster_ownership(self.prefix)


@dataclass(frozen=True, kw_only=True)
class InCluster(FunctionSettings):
    """What a function that speaks to the API server is told."""

    namespace: str
    api: ApiServer = field(metadata=KEPT)
    # Labels that tell pools of nodes apart, the first that a node has; and the values that mean
    # Kafka's pools, none: every value.
    pool_labels: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {NODE_POOL_LABEL: ()}, metadata=KEPT
    )


@dataclass(frozen=True, kw_only=True)
class OfClaims(InCluster):
    """What a function that reads Karpenter's NodeClaims is told: whether there are any."""

    node_claims: bool = False


@dataclass(frozen=True, kw_only=True)
class InKafka(InCluster):
    """What a function that speaks to Kafka is told."""

    # One of each pool and zone, of a host's name that may have 253 characters.
    kafka_bootstrap: tuple[str, ...] = field(metadata=KEPT)
    kafka: KafkaIdentity


@dataclass(frozen=True, kw_only=True)
class Writing(OfInstances):
    """What a function that writes incidents is told: whom it tells of them."""

    ticks_queue_url: str
    # None: Slack is off.
    stories_queue_url: str | None = None


@dataclass(frozen=True, kw_only=True)
class Deciding(Writing, OfClaims, InKafka):
    """What a program that decides about incidents is told."""

    policy: Policy
    level: Level = OWN
    # Whether an eviction gate answers.
    gated: bool = False

    @property
    def reach(self) -> Reach:
        """What may be done: of a cluster that exists, to the groups that were named."""
        named = None if self.instances is None else frozenset(self.instances.scaling_groups)
        return Reach(self.level, named, self.gated)


@dataclass(frozen=True, kw_only=True)
class InterruptionSettings(Writing):
    """λ interruption."""

    # None: it is called by the prefix.
    eks_cluster: str | None = None


@dataclass(frozen=True, kw_only=True)
class TickSettings(Deciding):
    """λ tick."""

    # None: no termination handler drains for us.
    nth_queue_url: str | None = None
    # None: the alerts are off.
    alerts_topic_arn: str | None = None
    runbooks_url: str = RUNBOOKS
    # None: there is no probe, or no Prometheus that knows what it counted.
    probe_budget: ProbeBudget | None = None

    @property
    def drains(self) -> bool:
        """Say whether it empties nodes itself."""
        return self.policy.drain_route == "evict"

    @property
    def ends_claims(self) -> bool:
        """Whether a rotation deletes NodeClaims: of our own stacks', with a gate that is asked."""
        return self.node_claims and self.level == OWN and self.policy.drain_route == "asked"

    @property
    def lease_seconds(self) -> float:
        """How long a lease outlives its last renewal.

        A holder that has not ticked for a whole heartbeat timeout has lost its hooks, too.
        """
        return self.policy.heartbeat_timeout_seconds


@dataclass(frozen=True, kw_only=True)
class GateSettings(Deciding):
    """The eviction gate, which runs in the cluster."""

    # The greatest age of a reading that an answer rests on.
    reading_age_seconds: float
    # Accounts whose deletions are the operator's own rolls.
    operators: tuple[str, ...]
    gate_name: str
    gate_namespace: str
    port: int

    @property
    def lease_seconds(self) -> float:
        """How long a lease that was taken and not used keeps others waiting: one answer's time."""
        return self.policy.tick_interval_seconds


@dataclass(frozen=True, kw_only=True)
class SweepSettings(Writing, OfClaims):
    """λ sweep."""

    archive_bucket: str
    tick_interval_seconds: float


@dataclass(frozen=True, kw_only=True)
class RotateSettings(OfInstances, OfClaims, InKafka):
    """λ rotate."""

    ticks_queue_url: str
    policy: Policy
    # None: there is no probe, or no Prometheus that knows what it counted.
    probe_budget: ProbeBudget | None = None


@dataclass(frozen=True, kw_only=True)
class HealthSettings(InKafka):
    """λ health; without metrics, no exporter is asked."""

    nodes: tuple[NodePlace, ...] = field(metadata=KEPT)
    exporters: bool
    connect_workers: int
    connect_startup_seconds: float
    connect_probe_seconds: float


@dataclass(frozen=True, kw_only=True)
class SlackSettings(FunctionSettings):
    """λ slack."""

    stories_queue_url: str
    channel: str
    secret_name: str
    api_url: str
    hold_limit_seconds: float
    runbooks_url: str = RUNBOOKS


@dataclass(frozen=True, kw_only=True)
class WebhookSettings(FunctionSettings):
    """λ webhook."""

    ticks_queue_url: str
    secret_arn: str
