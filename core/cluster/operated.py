"""Decides what the functions, and all that stands around them, are told of a cluster.

One record, whoever made the cluster: rendered from a ClusterSpec here, and from the description of
a cluster that exists in core.cluster.adopted. infra.functions knows no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from core.cluster.images import EvictionGate
from core.cluster.limits import nodes
from core.cluster.nodes import NodePool
from core.cluster.operation import Alerts, Maintenance, Slack, Timings, memory_mib
from core.cluster.rights import calls, functions_authentication
from core.cluster.spec import ClusterSpec
from core.ground import naming
from core.health import node
from core.incidents.actions import ACTING, OWN, Level
from core.incidents.observation import Ownership, Policy
from core.settings.functions import KafkaIdentity
from core.settings.prometheus import Address, ProbeBudget
from core.settings.volumes import PoolSettings, PrometheusSettings, VolumeSettings
from core.timing import FACTS, drain_life_seconds, eviction_life_seconds

SASL = {"scram-sha-512", "oauth", "aws-iam"}


@dataclass(frozen=True, kw_only=True)
class Operated:
    """A cluster as the operations layer knows it: names, ids and figures."""

    # What everything of ours is called by.
    prefix: str
    # The Kafka, and where it is.
    name: str
    namespace: str
    eks_cluster: str
    region: str
    level: Level
    ephemeral: bool
    timings: Timings
    policy: Policy
    memory_mib: int
    webhook_concurrency: int = 0
    slack: Slack | None = None
    alerts: Alerts
    # Auto Scaling groups that may be changed, by name.
    scaling_groups: tuple[str, ...]
    # None: the instances carry our tag, and the nodes our label.
    instances: Ownership | None = None
    pool_labels: Mapping[str, tuple[str, ...]] | None = None
    # Whether Karpenter, or Auto Mode, launches Kafka's nodes.
    node_claims: bool = False
    # The queue of a termination handler that is theirs.
    handler_queue_url: str | None = None
    # Function -> who it is to Kafka, and the Secrets that it may read for that.
    identities: Mapping[str, KafkaIdentity]
    secrets: Mapping[str, tuple[str, ...]]
    nodes: tuple[naming.NodePlace, ...] = ()
    # Kafka's pods that serve metrics, spare ones included; none where metrics are off.
    exporters: tuple[str, ...] = ()
    # Connect's workers, by their pods.
    connect_workers: tuple[str, ...] = ()
    connect_startup_seconds: float = 0.0
    # None: λ volumes does not look.
    volumes: VolumeSettings | None = None
    # Where Prometheus is asked; None: CloudWatch alone.
    prometheus: Address | None = None
    # What a rotation may spend; None: no rotation looks.
    probe_budget: ProbeBudget | None = None
    # Who answers evictions; None: disruption budgets alone.
    eviction_gate: EvictionGate | None = None
    # What the queues with dead letters are for, beside the stories'.
    queues: tuple[str, ...]
    # Where Strimzi's own operator runs.
    operator_namespace: str

    @property
    def drains(self) -> bool:
        """Say whether nodes are emptied through the eviction API, and by no termination handler."""
        return self.acts and self.policy.drain_route == "evict"

    @property
    def installs_handler(self) -> bool:
        """Say whether a cluster that exists gets a termination handler of ours."""
        held = self.level != OWN and self.acts and not self.drains
        return held and self.handler_queue_url is None

    @property
    def ends_claims(self) -> bool:
        """Say whether a rotation may delete NodeClaims (core.rotation.preconditions)."""
        return self.node_claims and self.level == OWN and self.policy.drain_route == "asked"

    @property
    def acts(self) -> bool:
        """Say whether nodes may be held, drained and replaced."""
        return self.level in ACTING

    @property
    def gate_name(self) -> str:
        """Return what the eviction gate is called in the cluster."""
        return naming.GATE if self.level == OWN else naming.adopted_gate(self.prefix)

    def group(self, named: str) -> str:
        """Return a group of RBAC's: several Kafkas of one EKS cluster each have their own."""
        return named if self.level == OWN else named.replace(":", f":{self.prefix}:", 1)


def operated_cluster(spec: ClusterSpec) -> Operated:
    """Return what is operated of a cluster that our own stacks make."""
    connect = spec.connect
    workers = 0 if connect is None else connect.replicas
    identities = {each: _identity(spec, each) for each in calls(spec)}
    return Operated(
        prefix=spec.prefix,
        name=spec.name,
        namespace=spec.kubernetes.namespace,
        eks_cluster=spec.prefix,
        region=spec.region,
        level=OWN,
        ephemeral=spec.ephemeral,
        timings=spec.timings,
        policy=policy_of(spec),
        memory_mib=memory_mib(spec),
        webhook_concurrency=spec.webhook_concurrency,
        slack=spec.slack,
        alerts=spec.alerts,
        scaling_groups=_scaling_groups(spec),
        node_claims=spec.node_provisioner == "karpenter",
        identities=identities,
        secrets={each: secrets_of(identities[each]) for each in identities},
        nodes=nodes(spec),
        exporters=_exporters(spec),
        connect_workers=tuple(naming.connect_pod(spec.name, number) for number in range(workers)),
        connect_startup_seconds=0 if connect is None else connect.startup_seconds,
        volumes=volumes(spec),
        prometheus=spec.metrics.prometheus.asked if spec.metrics.prometheus else None,
        probe_budget=probe_budget(spec),
        eviction_gate=spec.eviction_gate,
        queues=(
            *("events", "nth", "ticks"),
            *(("karpenter",) if spec.node_provisioner == "karpenter" else ()),
        ),
        operator_namespace=spec.strimzi.namespace,
    )


def probe_budget(spec: ClusterSpec) -> ProbeBudget | None:
    """Return what a rotation may spend of the clients' error budget."""
    counted = spec.metrics.prometheus
    if spec.probe is None or counted is None:
        return None
    return ProbeBudget(
        address=counted.address,
        labels=counted.labels,
        objective_percent=spec.probe.objective_percent,
        rotation_percent=spec.probe.rotation_budget_percent,
    )


def policy_of(spec: ClusterSpec) -> Policy:
    """Return what decisions about a cluster of ours obey."""
    # Karpenter drains its own nodes: nobody of ours is sent, and the gate is asked.
    asked = spec.node_provisioner == "karpenter" and spec.eviction_gate is not None
    return policy(
        spec.timings,
        drain_route="asked" if asked else spec.drain_route,
        scale_in=spec.scale_in,
        isr_margin=spec.isr_margin,
        gate=spec.gate,
        maintenance=spec.maintenance,
        stops_together=spec.strimzi.own_budgets,
    )


def _scaling_groups(spec: ClusterSpec) -> tuple[str, ...]:
    """Return the groups of Kafka's nodes; Karpenter launches its own without any."""
    if spec.node_provisioner != "asg":
        return ()
    return tuple(
        naming.auto_scaling_group(spec.prefix, pool.name, zone)
        for pool in spec.pools
        for zone in spec.zones_of(pool)
    )


def _identity(spec: ClusterSpec, function: str) -> KafkaIdentity:
    """Return who a function is to Kafka: the Secret is its own, unless one is named for all.

    No key, password or token passes through here: a function reads its own from the API server,
    when it asks Kafka, so that a renewed one needs no deployment.
    """
    how, functions = functions_authentication(spec.kafka), spec.kafka.functions
    oauth = spec.kafka.listener.oauth
    transport = "SSL" if spec.kafka.listener.tls else "PLAINTEXT"
    return KafkaIdentity(
        security=f"SASL_{transport}" if how in SASL else transport,  # type: ignore[arg-type]
        authentication=how,  # type: ignore[arg-type]
        namespace=spec.kubernetes.namespace,
        secret=functions.secret_name or naming.function_user(spec.name, function),
        authority_secret=functions.authority_secret_name or naming.cluster_ca_secret(spec.name),
        token_url=oauth.token_url if oauth else None,
    )


def secrets_of(me: KafkaIdentity) -> tuple[str, ...]:
    """Return the Secrets behind an identity: the brokers' authorities, its credentials."""
    names = []
    if me.security.endswith("SSL") and me.authentication != "aws-iam":
        names.append(me.authority_secret)
    if me.authentication not in {"none", "aws-iam"}:
        names.append(me.secret)
    return tuple(names)


def _exporters(spec: ClusterSpec) -> tuple[str, ...]:
    """Return the name under which the API server's proxy knows each Kafka pod's metrics."""
    if not spec.metrics.enabled:
        return ()
    pods = [
        naming.pod(spec.name, naming.kafka_node_pool(pool.name, zone), node_id)
        for pool in spec.pools
        for zone, ids in spec.node_ids_of(pool).items()
        for node_id in ids[: pool.nodes_per_zone + pool.spare_nodes_per_zone]
    ]
    return tuple(f"{pod}:{node.PORT}" for pod in pods)


def policy(
    timings: Timings,
    *,
    drain_route: Literal["held", "direct", "evict", "asked"],
    scale_in: Literal["restore", "release"],
    isr_margin: int,
    gate: Literal["isr", "ready"],
    maintenance: Maintenance | None,
    stops_together: bool = False,
) -> Policy:
    """Return what decisions obey."""
    hooks = timings.hook_heartbeat_timeout_seconds * timings.hook_heartbeats
    return Policy(
        drain_route=drain_route,
        scale_in=scale_in,
        isr_margin=isr_margin,
        tick_interval_seconds=timings.tick_interval_seconds,
        hold_limit_seconds=timings.hold_limit_seconds,
        heartbeat_timeout_seconds=timings.hook_heartbeat_timeout_seconds,
        hook_limit_seconds=min(hooks, float(FACTS["aws_hook_limit_seconds"])),
        # A shorter hold could not tell a broker that froze: it is fenced only by then.
        post_condition_hold_seconds=max(
            timings.post_condition_hold_seconds, timings.broker_session_timeout_seconds
        ),
        post_condition_wait_seconds=timings.post_condition_wait_seconds,
        forward_again_seconds=timings.nth_drain_timeout_seconds
        + timings.nth_visibility_timeout_seconds,
        drain_life_seconds=float(
            eviction_life_seconds(timings)
            if drain_route == "evict"
            else drain_life_seconds(timings)
        ),
        gate=gate,
        planned_margin_seconds=timings.planned_margin_seconds,
        maintenance=None if maintenance is None else maintenance.window,
        stops_together=stops_together,
    )


def volumes(spec: ClusterSpec) -> VolumeSettings:
    """Return the mode, the budget, and each node pool's policy."""
    prometheus = spec.metrics.prometheus
    return VolumeSettings(
        applies=spec.volumes.applies,
        frozen=spec.volumes.frozen,
        budget_usd=spec.volumes.max_monthly_increase_usd,
        pools={
            naming.kafka_node_pool(pool.name, zone): _pool(spec, pool)
            for pool in spec.pools
            for zone in spec.zones_of(pool)
        },
        prometheus=None
        if prometheus is None
        else PrometheusSettings(prometheus.address, prometheus.labels),
    )


def _pool(spec: ClusterSpec, pool: NodePool) -> PoolSettings:
    return PoolSettings(
        policy=pool.policy(apply=spec.volumes.applies),
        volumes=tuple(volume.gp3 for volume in pool.volumes),
    )
