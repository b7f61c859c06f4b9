"""Renders what a function is told: each field of its settings type by the field's own name."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pulumi

from core import naming
from core.cluster import ClusterSpec, Maintenance, NodePool
from core.cluster.rights import functions_authentication
from core.incidents.observation import Policy
from core.settings.functions import ApiServer, KafkaIdentity, KafkaNode
from core.settings.volumes import PoolSettings, PrometheusSettings, VolumeSettings
from core.timing import FACTS, drain_life_seconds
from core.volumes.limits import Gp3, Performance
from core.window import Window
from infra.functions.definition import Definition

SASL = {"scram-sha-512", "oauth", "aws-iam"}
Late = Mapping[str, pulumi.Input[Any]]


def settings(definition: Definition, spec: ClusterSpec, late: Late) -> pulumi.Output[Any]:
    """Return a function's settings; `late` are the fields that other resources say."""
    told = fields_of(definition, spec, late)
    return pulumi.Output.all(**told).apply(lambda found: definition.settings(**found))


def fields_of(definition: Definition, spec: ClusterSpec, late: Late) -> Late:
    """Return the fields of a function's settings, and no other."""
    known: Late = {**described(spec, definition.name), **late}
    return {
        each.name: known[each.name] for each in fields(definition.settings) if each.name in known
    }


def described(spec: ClusterSpec, function: str) -> dict[str, Any]:
    """Return every field of any function's settings that a description says by itself."""
    connect, timings = spec.connect, spec.timings
    slack = {} if spec.slack is None else spec.slack.model_dump()
    return {
        **slack,
        "prefix": spec.prefix,
        "cluster": spec.name,
        "region": spec.region,
        "namespace": spec.kubernetes.namespace,
        "kafka": kafka_identity(spec, function),
        "policy": policy(spec),
        "tick_interval_seconds": timings.tick_interval_seconds,
        "hold_limit_seconds": timings.hold_limit_seconds,
        "nodes": nodes(spec),
        "exporters": spec.metrics.enabled,
        "connect_workers": 0 if connect is None else connect.replicas,
        "connect_startup_seconds": 0 if connect is None else connect.startup_seconds,
        "connect_probe_seconds": timings.connect_probe_timeout_seconds,
        "volumes": volumes(spec),
        "prometheus": prometheus(spec),
    }


def in_cluster(
    spec: ClusterSpec,
    endpoint: pulumi.Input[str],
    authority: pulumi.Input[str],
    bootstrap: pulumi.Input[str],
) -> Late:
    """Return what other layers say of the API server and of Kafka."""
    addresses = pulumi.Output.from_input(bootstrap).apply(
        lambda known: tuple(address.strip() for address in known.split(","))
    )
    return {"api": api_server(spec, endpoint, authority), "kafka_bootstrap": addresses}


def api_server(
    spec: ClusterSpec, endpoint: pulumi.Input[str], authority: pulumi.Input[str]
) -> pulumi.Output[ApiServer]:
    """Return the API server, whose authority EKS tells in base64."""
    return pulumi.Output.all(endpoint, authority).apply(
        lambda known: ApiServer(
            eks_cluster=spec.prefix, endpoint=known[0], ca_pem=base64.b64decode(known[1]).decode()
        )
    )


def kafka_identity(spec: ClusterSpec, function: str) -> KafkaIdentity:
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


def kafka_secrets(spec: ClusterSpec, function: str) -> list[str]:
    """Return the Secrets that a function may read: the brokers' authorities, its credentials."""
    me = kafka_identity(spec, function)
    names = []
    if spec.kafka.listener.tls and me.authentication != "aws-iam":
        names.append(me.authority_secret)
    if me.authentication not in {"none", "aws-iam"}:
        names.append(me.secret)
    return names


def policy(spec: ClusterSpec) -> Policy:
    """Return what decisions obey."""
    timings = spec.timings
    hooks = timings.hook_heartbeat_timeout_seconds * timings.hook_heartbeats
    return Policy(
        drain_route=spec.drain_route,
        scale_in=spec.scale_in,
        isr_margin=spec.isr_margin,
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
        drain_life_seconds=drain_life_seconds(timings),
        gate=spec.gate,
        planned_margin_seconds=timings.planned_margin_seconds,
        maintenance=_window(spec.maintenance),
    )


def _window(maintenance: Maintenance | None) -> Window | None:
    if maintenance is None:
        return None
    return Window(
        days=frozenset(maintenance.days),
        start_minute=maintenance.start_minute,
        duration_minutes=maintenance.duration_minutes,
    )


def nodes(spec: ClusterSpec) -> tuple[KafkaNode, ...]:
    """Return every Kafka node.

    Strimzi gives a pool's nodes the first ids of those reserved in a zone.
    """
    return tuple(
        KafkaNode(
            node_id=node_id,
            node_pool=naming.kafka_node_pool(pool.name, zone),
            role=pool.role.value,
        )
        for pool in spec.pools
        for zone, reserved in spec.node_ids_of(pool).items()
        for node_id in reserved[: pool.nodes_per_zone]
    )


def volumes(spec: ClusterSpec) -> VolumeSettings:
    """Return the mode, the budget, and each node pool's policy."""
    return VolumeSettings(
        applies=spec.volumes.applies,
        frozen=spec.volumes.frozen,
        budget_usd=spec.volumes.max_monthly_increase_usd,
        pools={
            naming.kafka_node_pool(pool.name, zone): _pool(spec, pool)
            for pool in spec.pools
            for zone in spec.zones_of(pool)
        },
        prometheus=prometheus(spec),
    )


def prometheus(spec: ClusterSpec) -> PrometheusSettings | None:
    """Return where Prometheus is, and which series there are this cluster's."""
    asked = spec.metrics.prometheus
    return None if asked is None else PrometheusSettings(asked.address, asked.labels)


def _pool(spec: ClusterSpec, pool: NodePool) -> PoolSettings:
    return PoolSettings(
        policy=pool.policy(apply=spec.volumes.applies),
        volumes=tuple(
            Gp3(v.size_gib, Performance(v.iops, v.throughput_mib_per_s)) for v in pool.volumes
        ),
    )
