"""Decides who reaches the load balancer, how: security groups, PrivateLink, private DNS."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from core import naming
from core.cluster import ClusterSpec, NodePool
from infra.tags import Tags


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
        tags=Tags.of(spec).with_name(f"{spec.prefix}-kafka"),
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
