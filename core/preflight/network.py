"""Decides what AWS would refuse of a VPC that is there already, for core.preflight.judge.

Sources: EKS's user guide (network-reqs.html: subnets, IPv4, DNS attributes), CreateCluster
(`serviceIpv4Cidr`), CreateVpcEndpoint (private DNS, a gateway's routes), CreateHostedZone of
Route 53 (`ConflictingDomainExists`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from core.preflight.account import NeededNetwork, StandingSubnet, StandingVpc


def subnets(
    wanted: NeededNetwork, found: Mapping[str, StandingSubnet], missing: str
) -> Iterator[str]:
    """Yield a sentence for each subnet that is not what it is named for."""
    for subnet, (zone, addresses) in wanted.subnets.items():
        there = found.get(subnet)
        if there is None:
            yield (
                f"{missing.format(subnet)}; name one of `aws ec2 describe-subnets` in "
                f"network.existing."
            )
        elif there.vpc != wanted.vpc:
            yield (
                f"Subnet {subnet} is of {there.vpc} and network.existing.vpc_id is {wanted.vpc}; "
                f"name a subnet of that VPC."
            )
        elif there.zone != zone:
            yield (
                f"Subnet {subnet} is in {there.zone} and network.existing.private_subnet_ids names "
                f"it for {zone}; name one there."
            )
        elif there.ipv6_only:
            yield (
                f"Subnet {subnet} has IPv6 addresses alone, and EKS and the load balancer take "
                f"IPv4 ones here; name one that has them."
            )
        elif there.free_addresses < addresses:
            yield (
                f"Subnet {subnet} has {there.free_addresses} free addresses, and the load "
                f"balancer, the control plane and the nodes there take {addresses} at the least; "
                f"name a larger subnet in network.existing, or free some."
            )


def refused(wanted: NeededNetwork, found: StandingVpc) -> Iterator[str]:
    """Yield a sentence for what AWS would not make in a VPC, or nodes not join from."""
    vpc = wanted.vpc
    for attribute in found.attributes_off:
        yield (
            f"{vpc} has {attribute} off, without which no node joins and no private name is "
            f"answered; set it by `aws ec2 modify-vpc-attribute`."
        )
    services = ipaddress.ip_network(wanted.services)
    for block in sorted(found.blocks):
        if ipaddress.ip_network(block).overlaps(services):
            yield (
                f"{vpc} has the block {block}, which overlaps {services}, where Kubernetes' "
                f"Services would be; name it in network.secondary_cidrs, and another is chosen."
            )
    for service in wanted.gateways:
        for table in sorted(found.gateways.get(service, frozenset()) & set(wanted.route_tables)):
            yield (
                f"{table} has a route to an endpoint of {service} already, and AWS enters none "
                f"twice; leave it out of network.existing.private_route_table_ids."
            )
    if taken := sorted(set(wanted.interfaces) & found.private_names):
        yield (
            f"{vpc} has endpoints with private DNS of {', '.join(taken)}, and AWS takes no second "
            f"of a name; set network.interface_endpoints to false and make those that are missing, "
            f"or delete these."
        )
    if wanted.private_zone in found.hosted_zones:
        yield (
            f"{vpc} has a private hosted zone {wanted.private_zone}, and Route 53 takes no second "
            f"of a name; leave load_balancer.private_zone out and make the record there."
        )


def noticed(wanted: NeededNetwork, found: StandingVpc) -> Iterator[str]:
    """Yield a sentence for each block that a VPC has not: rules would admit strangers by it."""
    for block in wanted.blocks:
        if block not in found.blocks:
            yield (
                f"network names the block {block} and {wanted.vpc} has "
                f"{', '.join(sorted(found.blocks))}; name those, so that clients there are let in."
            )
