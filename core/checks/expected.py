"""Builds the snapshot a ClusterSpec asks for: what `pulumi up` left, if nobody touched it since.

Built from the same names, timings and fixed values as infra/, and compared by core.checks.drift.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from core.checks import facts
from core.checks.drift import Expectation
from core.checks.facts import TargetGroup
from core.checks.table import described_kafka
from core.cluster.addresses import Route, routes
from core.cluster.nodes import NodePool
from core.cluster.spec import ClusterSpec
from core.ground import constants, naming
from core.model.nodes import ZONE_TAG, LifecycleHook, ScalingGroup
from core.model.workloads import DisruptionBudget, TerminationHandler


def expectation_of(spec: ClusterSpec, alarms: Iterable[str]) -> Expectation:
    """Return what a spec's account and cluster hold when nothing has drifted.

    `alarms` are the names of the spec's alarms, which whoever makes them knows.
    """
    grouped = spec.node_provisioner == "asg"
    return Expectation(
        environment=spec.environment,
        cluster=spec.name,
        namespace=spec.kubernetes.namespace,
        spare_services=frozenset(route.service for route in routes(spec) if route.spare),
        queues_of_functions=frozenset(
            each
            for role in ("ticks", "stories")
            for queue in (naming.queue(spec.prefix, role),)
            for each in (queue, naming.dead_letter_queue(queue))
        ),
        nodes=frozenset(
            node_id
            for pool in spec.pools
            for ids in spec.node_ids_of(pool).values()
            for node_id in ids[: pool.nodes_per_zone]
        ),
        connect=spec.connect is not None,
        disks=sum(spec.nodes_of(pool) * len(pool.volumes) for pool in spec.pools),
        snapshot=facts.Snapshot(
            groups=_groups(spec) if grouped else None,
            hooks=_hooks(spec) if grouped else None,
            balancers={
                naming.load_balancer(spec.prefix): facts.Balancer(
                    zones=frozenset(spec.availability_zones)
                )
            },
            target_groups={
                _target_group_name(spec, route): _target_group(spec, route)
                for route in routes(spec)
            },
            listeners={
                str(route.port): facts.BalancerListener(
                    target_group=_target_group_name(spec, route),
                    idle_timeout_seconds=spec.timings.nlb_idle_timeout_seconds,
                )
                for route in routes(spec)
            },
            queues=_queues(spec),
            alarms={name: facts.Alarm(acts=True) for name in alarms} or None,
            namespaces={
                spec.kubernetes.namespace: facts.Namespace(gate_label=constants.GATE_LABEL)
            },
            bindings={route.binding: _binding(spec, route) for route in routes(spec)},
            services={},
            pods={},
            volumes={},
            budgets=_budgets(spec),
            termination_handlers={constants.NTH_RELEASE: _termination_handler(spec)},
            drain_cleaners={},
            connect_bindings={},
            second_handlers={},
            kafkas={spec.name: described_kafka(spec)},
        ),
    )


def _pools(spec: ClusterSpec) -> Mapping[str, tuple[NodePool, str]]:
    """Return pool and zone of each Auto Scaling group."""
    return {
        naming.auto_scaling_group(spec.prefix, pool.name, zone): (pool, zone)
        for pool in spec.pools
        for zone in spec.zones_of(pool)
    }


def _groups(spec: ClusterSpec) -> Mapping[str, ScalingGroup]:
    return {
        name: ScalingGroup(
            name=name,
            minimum=pool.nodes_per_zone,
            maximum=constants.MAXIMUM_PER_NODE * pool.nodes_per_zone,
            zones=frozenset({zone}),
            tags={ZONE_TAG: zone},
            on_abandon=constants.RETAIN_INSTANCE,
            healthy_percent=constants.HEALTHY_PERCENT,
            suspended=frozenset(constants.SUSPENDED_PROCESSES),
        )
        for name, (pool, zone) in _pools(spec).items()
    }


def _hooks(spec: ClusterSpec) -> Mapping[str, LifecycleHook]:
    return {
        facts.hook_of(name, group): LifecycleHook(
            name=name,
            default_result=constants.ABANDON,
            heartbeat_seconds=spec.timings.hook_heartbeat_timeout_seconds,
        )
        for group in _pools(spec)
        for name in constants.HOOKS
    }


def _target_group_name(spec: ClusterSpec, route: Route) -> str:
    return naming.target_group(spec.prefix, naming.target_group_role(route.node_id))


def _target_group(spec: ClusterSpec, route: Route) -> TargetGroup:
    timings, per_broker = spec.timings, route.node_id is not None
    return TargetGroup(
        name=_target_group_name(spec, route),
        interval_seconds=timings.nlb_health_interval_seconds,
        timeout_seconds=timings.nlb_health_timeout_seconds,
        healthy_threshold=timings.nlb_healthy_threshold,
        unhealthy_threshold=constants.UNHEALTHY_THRESHOLD,
        deregistration_seconds=timings.nlb_deregistration_seconds,
        connection_termination="true",
        cross_zone="true" if per_broker else "false",
        dns_failover=(
            constants.DNS_FAILOVER_OF_BROKER if per_broker else constants.DNS_FAILOVER_OF_BOOTSTRAP
        ),
    )


def _binding(spec: ClusterSpec, route: Route) -> facts.Binding:
    return facts.Binding(
        target_group=_target_group_name(spec, route),
        service=route.service,
        port=naming.listener_port_name(spec.kafka.listener.name),
        target_type="ip",
    )


def _queues(spec: ClusterSpec) -> Mapping[str, facts.Queue]:
    timings = spec.timings
    visibility, retention = (
        timings.queue_visibility_timeout_seconds,
        timings.events_queue_retention_seconds,
    )
    fed = {
        "events": (visibility, retention, constants.EVENTS_MAX_RECEIVE_COUNT),
        "nth": (
            timings.nth_visibility_timeout_seconds,
            timings.nth_retention_seconds(spec.drain_route),
            timings.nth_max_receive_count,
        ),
        "ticks": (visibility, retention, constants.TICKS_MAX_RECEIVE_COUNT),
    }
    if spec.slack is not None:
        fed["stories"] = (visibility, retention, constants.STORIES_MAX_RECEIVE_COUNT)
    if spec.node_provisioner == "karpenter":
        fed["karpenter"] = (
            constants.KARPENTER_VISIBILITY_SECONDS,
            constants.KARPENTER_RETENTION_SECONDS,
            constants.KARPENTER_MAX_RECEIVE_COUNT,
        )
    found = {}
    for role, (visible, kept, receives) in fed.items():
        name = naming.queue(spec.prefix, role)
        found[name] = facts.Queue(
            retention_seconds=kept,
            visibility_seconds=visible,
            dead_letters=naming.dead_letter_queue(name),
            max_receive_count=receives,
        )
        found[naming.dead_letter_queue(name)] = facts.Queue(
            retention_seconds=constants.DEAD_LETTER_RETENTION_SECONDS,
            visibility_seconds=None,
            dead_letters=None,
            max_receive_count=None,
        )
    return found


def _budgets(spec: ClusterSpec) -> dict[str, DisruptionBudget]:
    nodes = sum(spec.nodes_of(pool) for pool in spec.pools)
    # Brokers and controllers are counted together.
    available = max(0, nodes - constants.EVICTED_AT_A_TIME)
    wanted = (
        {
            naming.budget_of_the_staying(spec.name): available,
            naming.budget_of_the_leaving(spec.name): 0,
        }
        if spec.strimzi.own_budgets
        else {naming.kafka_component(spec.name): available}
    )
    return {
        name: DisruptionBudget(
            namespace=spec.kubernetes.namespace, name=name, least_available=str(least)
        )
        for name, least in wanted.items()
    }


def _termination_handler(spec: ClusterSpec) -> TerminationHandler:
    drain = spec.timings.nth_drain_timeout_seconds
    return TerminationHandler(
        title=f"{constants.NTH_NAMESPACE}/{constants.NTH_RELEASE}",
        drain_timeout_seconds=drain,
        grace_seconds=drain + constants.NTH_EXIT_MARGIN_SECONDS,
    )
