"""The way clients take to the brokers: one internal network load balancer, one port per broker.

Every broker has a listener, a target group and a TargetGroupBinding of its own, since a Kafka
client must reach the very broker that leads a partition; the bootstrap has one of each over all of
them. The load balancer controller moves pods in and out and holds a pod's readiness until AWS says
healthy, which only works for bindings that exist before the pod. Spare ids have theirs already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws
from pulumi_kubernetes.apiextensions import CustomResource

from core import naming
from core.cluster import ClusterSpec
from infra.loadbalancing_access import access, endpoint_service, private_record
from infra.tags import Tags

TYPE = "stillwater:infra:LoadBalancing"
BINDING_API = "elbv2.k8s.aws/v1beta1"
BOOTSTRAP: None = None
UNHEALTHY_THRESHOLD = 2
GATED = {naming.READINESS_GATE_LABEL: "enabled"}


@dataclass(frozen=True, kw_only=True)
class LoadBalancingArgs:
    spec: ClusterSpec
    # What the bindings live in; nothing else of the balancer waits for it.
    namespace: pulumi.Resource
    vpc_id: pulumi.Input[str]
    cluster_security_group_id: pulumi.Input[str]
    private_subnet_ids: Mapping[str, pulumi.Input[str]]
    tags: Tags


@dataclass(frozen=True, slots=True)
class Route:
    """One port of the load balancer and the Kubernetes Service whose pods it leads to."""

    # Names the route's resources, zone and pool first, so that adding either adds only its own.
    key: str
    node_id: int | None
    port: int
    service: str
    binding: str


class LoadBalancing(pulumi.ComponentResource):
    """An NLB with a route per broker id, spare ones included, and one for the bootstrap."""

    dns_name: pulumi.Output[str]
    target_group_arns: Mapping[str, pulumi.Output[str]]

    def __init__(
        self, name: str, args: LoadBalancingArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._args, self._spec = name, args, args.spec
        self._child = pulumi.ResourceOptions(parent=self)
        balancer = self._balancer()
        arns = {}
        for route in routes(args.spec):
            group = self._target_group(route)
            listener = self._listener(route, balancer, group)
            self._binding(route, group, listener)
            arns[naming.target_group_role(route.node_id)] = group.arn
        if args.spec.load_balancer.endpoint_principals:
            endpoint_service(name, args.spec, balancer, args.tags, self._child)
        if args.spec.load_balancer.private_zone is not None:
            private_record(
                name,
                args.spec.load_balancer.private_zone,
                args.spec.kafka.listener.advertised_host,
                balancer,
                args.vpc_id,
                self._child,
            )
        self.dns_name, self.target_group_arns = balancer.dns_name, arns
        self.register_outputs({"dns_name": self.dns_name, "target_group_arns": arns})

    def _balancer(self) -> aws.lb.LoadBalancer:
        name = naming.load_balancer(self._spec.prefix)
        group = access(
            self._name,
            self._spec,
            self._args.vpc_id,
            self._args.cluster_security_group_id,
            self._child,
        )
        return aws.lb.LoadBalancer(
            f"{self._name}-nlb",
            name=name,
            load_balancer_type="network",
            internal=True,
            # Every zone of the brokers: a target elsewhere is never in use and its gate never True.
            subnets=list(self._args.private_subnet_ids.values()),
            # A network load balancer made without one can never be given one.
            security_groups=[group.id],
            # Who may connect through PrivateLink is said by principal, not by address.
            enforce_security_group_inbound_rules_on_private_link_traffic="off",
            enable_cross_zone_load_balancing=False,
            enable_deletion_protection=not self._spec.ephemeral,
            tags=self._args.tags.named(name),
            opts=self._child,
        )

    def _target_group(self, route: Route) -> aws.lb.TargetGroup:
        timings, role = self._spec.timings, naming.target_group_role(route.node_id)
        name = naming.target_group(self._spec.prefix, role)
        of_broker = route.node_id is not None
        return aws.lb.TargetGroup(
            f"{self._name}-{route.key}-targets",
            name=name,
            vpc_id=self._args.vpc_id,
            target_type="ip",
            protocol="TCP",
            port=self._spec.kafka.listener.port,
            health_check=aws.lb.TargetGroupHealthCheckArgs(
                protocol="TCP",
                port="traffic-port",
                interval=timings.nlb_health_interval_seconds,
                # The default of 10 s exceeds the interval, which AWS refuses.
                timeout=timings.nlb_health_timeout_seconds,
                healthy_threshold=timings.nlb_healthy_threshold,
                unhealthy_threshold=UNHEALTHY_THRESHOLD,
            ),
            deregistration_delay=timings.nlb_deregistration_seconds,
            # The pod is gone by then; clients must not sit on a dead address.
            connection_termination=True,
            preserve_client_ip="false",
            # A broker stands in one zone, and clients of every zone must reach it.
            load_balancing_cross_zone_enabled="true" if of_broker else "false",
            # A zone stays in the balancer's name only while every group has a healthy target: with
            # one broker down, all zones would leave it. Only the bootstrap may decide about zones.
            target_group_health=_group_health("off" if of_broker else "1"),
            tags=self._args.tags.named(name),
            opts=self._child,
        )

    def _listener(
        self, route: Route, balancer: aws.lb.LoadBalancer, group: aws.lb.TargetGroup
    ) -> aws.lb.Listener:
        return aws.lb.Listener(
            f"{self._name}-{route.key}-listener",
            load_balancer_arn=balancer.arn,
            port=route.port,
            protocol="TCP",
            tcp_idle_timeout_seconds=self._spec.timings.nlb_idle_timeout_seconds,
            default_actions=[
                aws.lb.ListenerDefaultActionArgs(type="forward", target_group_arn=group.arn)
            ],
            opts=self._child,
        )

    def _binding(
        self, route: Route, group: aws.lb.TargetGroup, listener: aws.lb.Listener
    ) -> CustomResource:
        return CustomResource(
            f"{self._name}-{route.key}-binding",
            api_version=BINDING_API,
            kind="TargetGroupBinding",
            # The gate's name is the binding's: pods that run keep the gate of the name they know.
            metadata={"name": route.binding, "namespace": self._spec.kubernetes.namespace},
            spec={
                "serviceRef": {
                    "name": route.service,
                    "port": naming.listener_port_name(self._spec.kafka.listener.name),
                },
                "targetGroupARN": group.arn,
                # Its webhook would add them, and every later preview would show them as drift.
                "targetType": "ip",
                "ipAddressType": "ipv4",
                "targetGroupProtocol": "TCP",
                "vpcID": self._args.vpc_id,
            },
            # A target of a group without listener is not in use, and its gate never turns True.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[listener, self._args.namespace]),
        )


def routes(spec: ClusterSpec) -> list[Route]:
    """Return the bootstrap's route and every broker id's, spare ones included."""
    listener = spec.kafka.listener
    bootstrap = Route(
        "bootstrap",
        BOOTSTRAP,
        listener.bootstrap_port,
        naming.listener_bootstrap_service(spec.name, listener.name, listener.port),
        naming.target_group_binding(spec.name, BOOTSTRAP),
    )
    return [bootstrap, *_broker_routes(spec)]


def _broker_routes(spec: ClusterSpec) -> list[Route]:
    listener = spec.kafka.listener
    found = []
    for pool in spec.pools:
        if not pool.role.is_broker:
            continue
        prepared = pool.nodes_per_zone + pool.spare_nodes_per_zone
        for index, zone in enumerate(spec.availability_zones):
            ids = naming.node_ids(pool.first_node_id, pool.node_ids_per_zone, index)
            node_pool = naming.kafka_node_pool(pool.name, zone)
            found += [
                Route(
                    f"{zone}-{pool.name}-{node_id}",
                    node_id,
                    naming.advertised_port(listener.first_advertised_port, node_id),
                    naming.listener_broker_service(
                        spec.name, node_pool, node_id, listener.name, listener.port
                    ),
                    naming.target_group_binding(spec.name, node_id),
                )
                for node_id in ids[:prepared]
            ]
    return found


def _group_health(minimum: str) -> Any:
    return aws.lb.TargetGroupTargetGroupHealthArgs(
        dns_failover=aws.lb.TargetGroupTargetGroupHealthDnsFailoverArgs(
            minimum_healthy_targets_count=minimum, minimum_healthy_targets_percentage="off"
        ),
        unhealthy_state_routing=aws.lb.TargetGroupTargetGroupHealthUnhealthyStateRoutingArgs(
            minimum_healthy_targets_count=1, minimum_healthy_targets_percentage="off"
        ),
    )
