"""The way clients take to the brokers: one internal network load balancer, one port per broker.

Every broker has a listener, a target group and a TargetGroupBinding of its own, since a Kafka
client must reach the very broker that leads a partition; the bootstrap has one of each over all of
them. The load balancer controller moves pods in and out and holds a pod's readiness until AWS says
healthy, which only works for bindings that exist before the pod. Spare ids have theirs already.
Security groups, PrivateLink and private DNS decide who reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
from pulumi_kubernetes.apiextensions import CustomResource

from core.cluster import ClusterSpec, NodePool, Route, routes
from core.ground import naming
from core.ground.constants import (
    DNS_FAILOVER_OF_BOOTSTRAP,
    DNS_FAILOVER_OF_BROKER,
    GATE_LABEL,
    UNHEALTHY_THRESHOLD,
)
from infra.tags import cluster_tags


def access(
    name: str,
    spec: ClusterSpec,
    vpc_id: pulumi.Input[str],
    cluster_security_group_id: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
) -> aws.ec2.SecurityGroup:
    """Return the balancer's security group: clients in, brokers out, and the brokers' own door.

    The brokers see the balancer's address, because an IP group over TCP keeps no client's.
    """
    listener = spec.kafka.listener
    group = aws.ec2.SecurityGroup(
        f"{name}-group",
        name=f"{spec.prefix}-nlb",
        description="Clients of Kafka to the network load balancer",
        vpc_id=vpc_id,
        opts=opts,
    )
    ports = {naming.BOOTSTRAP: (listener.bootstrap_port, listener.bootstrap_port)}
    ports |= {pool.name: _ports(spec, pool) for pool in spec.pools if pool.role.is_broker}
    blocks = {"vpc": spec.network.vpc_cidr}
    # Subnets of a further block of the VPC hold clients like any other's.
    blocks |= {block.replace("/", "-"): block for block in spec.network.secondary_cidrs}
    blocks |= {block.replace("/", "-"): block for block in spec.load_balancer.client_cidrs}
    for source, block in blocks.items():
        for role, (first, last) in ports.items():
            aws.vpc.SecurityGroupIngressRule(
                f"{name}-{role}-from-{source}",
                security_group_id=group.id,
                description=f"Clients in {block} to {role}",
                ip_protocol="tcp",
                from_port=first,
                to_port=last,
                cidr_ipv4=block,
                opts=opts,
            )
    aws.vpc.SecurityGroupEgressRule(
        f"{name}-to-brokers",
        security_group_id=group.id,
        description="Brokers, their connections and their health checks",
        referenced_security_group_id=cluster_security_group_id,
        ip_protocol="tcp",
        from_port=listener.port,
        to_port=listener.port,
        opts=opts,
    )
    aws.vpc.SecurityGroupIngressRule(
        f"{name}-brokers-from-nlb",
        security_group_id=cluster_security_group_id,
        description="Brokers from the network load balancer",
        referenced_security_group_id=group.id,
        ip_protocol="tcp",
        from_port=listener.port,
        to_port=listener.port,
        opts=opts,
    )
    return group


def advertised_ports(spec: ClusterSpec) -> tuple[int, int]:
    """Return the first and last port any broker may ever be advertised at."""
    pools = [_ports(spec, pool) for pool in spec.pools if pool.role.is_broker]
    return min(first for first, _ in pools), max(last for _, last in pools)


def _ports(spec: ClusterSpec, pool: NodePool) -> tuple[int, int]:
    """Return the first and last port a broker of a pool may ever be advertised at."""
    ids = list(spec.node_ids_of(pool).values())
    first = spec.kafka.listener.first_advertised_port
    return (
        naming.advertised_port(first, ids[0].start),
        naming.advertised_port(first, ids[-1][-1]),
    )


def endpoint_service(
    name: str,
    spec: ClusterSpec,
    balancer: aws.lb.LoadBalancer,
    opts: pulumi.ResourceOptions,
) -> aws.ec2.VpcEndpointService:
    """Return the PrivateLink service of the balancer, for the principals of the spec alone."""
    return aws.ec2.VpcEndpointService(
        f"{name}-endpoint-service",
        network_load_balancer_arns=[balancer.arn],
        allowed_principals=list(spec.load_balancer.endpoint_principals),
        # Naming somebody is accepting them.
        acceptance_required=False,
        supported_ip_address_types=["ipv4"],
        tags=cluster_tags(spec).name_tags(f"{spec.prefix}-kafka"),
        opts=opts,
    )


def private_record(
    name: str,
    zone_name: str,
    host: str,
    balancer: aws.lb.LoadBalancer,
    vpc_id: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
) -> aws.route53.Record:
    """Return the record by which clients in the VPC find the balancer under the brokers' name."""
    zone = aws.route53.Zone(
        f"{name}-zone",
        name=zone_name,
        comment="Kafka's name inside the VPC",
        vpcs=[{"vpc_id": vpc_id}],
        opts=opts,
    )
    return aws.route53.Record(
        f"{name}-record",
        zone_id=zone.id,
        name=host,
        type="A",
        aliases=[
            {
                "name": balancer.dns_name,
                "zone_id": balancer.zone_id,
                # A zone without a healthy bootstrap leaves the answer.
                "evaluate_target_health": True,
            }
        ],
        opts=opts,
    )


TYPE = "stillwater:infra:LoadBalancing"
BINDING_API = "elbv2.k8s.aws/v1beta1"
GATED = {naming.READINESS_GATE_LABEL: GATE_LABEL}


@dataclass(frozen=True, kw_only=True)
class LoadBalancingArgs:
    spec: ClusterSpec
    # What the bindings wait for: their namespace, say. Nothing else of the balancer does.
    bindings_after: Sequence[pulumi.Resource]
    vpc_id: pulumi.Input[str]
    cluster_security_group_id: pulumi.Input[str]
    private_subnet_ids: Mapping[str, pulumi.Input[str]]


class LoadBalancing(pulumi.ComponentResource):
    """An NLB with a route per broker id, spare ones included, and one for the bootstrap."""

    dns_name: pulumi.Output[str]
    security_group_id: pulumi.Output[str]
    target_group_arns: Mapping[str, pulumi.Output[str]]

    def __init__(
        self, name: str, args: LoadBalancingArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._args, self._spec = name, args, args.spec
        self._child = pulumi.ResourceOptions(parent=self)
        clients = access(name, args.spec, args.vpc_id, args.cluster_security_group_id, self._child)
        self.security_group_id = clients.id
        balancer = self._balancer(clients)
        arns = {}
        for route in routes(args.spec):
            group = self._target_group(route)
            listener = self._listener(route, balancer, group)
            self._binding(route, group, listener)
            arns[naming.target_group_role(route.node_id)] = group.arn
        if args.spec.load_balancer.endpoint_principals:
            endpoint_service(name, args.spec, balancer, self._child)
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

    def _balancer(self, group: aws.ec2.SecurityGroup) -> aws.lb.LoadBalancer:
        name = naming.load_balancer(self._spec.prefix)
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
            tags=cluster_tags(self._spec).name_tags(name),
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
            target_group_health={
                "dns_failover": {
                    "minimum_healthy_targets_count": (
                        DNS_FAILOVER_OF_BROKER if of_broker else DNS_FAILOVER_OF_BOOTSTRAP
                    ),
                    "minimum_healthy_targets_percentage": "off",
                },
                "unhealthy_state_routing": {
                    "minimum_healthy_targets_count": 1,
                    "minimum_healthy_targets_percentage": "off",
                },
            },
            tags=cluster_tags(self._spec).name_tags(name),
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
            default_actions=[{"type": "forward", "target_group_arn": group.arn}],
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
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[listener, *self._args.bindings_after]
            ),
        )
