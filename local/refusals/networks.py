"""Limits on ports, on blocks of addresses, and on what one network interface takes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from local.refusals.limits import limit, outside
from local.refusals.refusal import Refusal, Wanted

SECURITY_GROUPS_PER_INTERFACE = 5
_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_PORTED = frozenset({"tcp", "udp"})
# What a rule may call a protocol by its number, or otherwise: EC2 keeps the name.
_PROTOCOLS = {"1": "icmp", "6": "tcp", "17": "udp", "58": "icmpv6", "all": "-1"}


def protocol(written: object) -> str:
    """Return a rule's protocol as EC2 keeps it: 6 is tcp.

    >>> protocol("6"), protocol("-1"), protocol("50")
    ('tcp', '-1', '50')
    """
    said = str(written).lower()
    return _PROTOCOLS.get(said, said)


@limit(
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule",
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    source="https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_IpPermission.html",
)
def ports_of_a_rule(wanted: Wanted) -> Iterator[Refusal]:
    """The first before the last, none beyond 65,535."""
    first, last = wanted.inputs.get("fromPort"), wanted.inputs.get("toPort")
    if first is None or last is None or protocol(wanted.inputs.get("ipProtocol")) not in _PORTED:
        return
    if outside(first, 0, 65_535) or outside(last, 0, 65_535) or int(first) > int(last):
        message = f"Invalid value '{first}-{last}' for portRange: from-port must be less than or "
        message += "equal to to-port and both between 0 and 65535"
        yield Refusal("AuthorizeSecurityGroupIngress", "InvalidParameterValue", message, "fromPort")


@limit(
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule",
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    source="https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_IpPermission.html",
)
def types_of_icmp(wanted: Wanted) -> Iterator[Refusal]:
    """A type and a code of a byte each, or -1 for all; of all types, all codes."""
    if protocol(wanted.inputs.get("ipProtocol")) not in {"icmp", "icmpv6"}:
        return
    kind, code = (wanted.inputs.get(key) for key in ("fromPort", "toPort"))
    for key, value, wrong in (
        ("fromPort", kind, outside(kind, -1, 255)),
        ("toPort", code, outside(code, -1, 255) or (kind == -1 and code not in (None, -1))),
    ):
        if wrong:
            message = f"ICMP type/code {value} is not valid"
            yield Refusal("AuthorizeSecurityGroupIngress", "InvalidParameterValue", message, key)


# VPC user guide, "Route tables": what AWS's own services answer at inside every VPC.
_OF_SERVICES = ("169.254.168.0/22", "fd00:ec2::/32")
_OF_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@limit("ec2/route:Route", source=f"{_EC2}API_CreateRoute.html")
def destination_of_nobody(wanted: Wanted) -> Iterator[Refusal]:
    """None of the services' own, and of IPv6 through a NAT gateway what it translates alone."""
    for key in ("destinationCidrBlock", "destinationIpv6CidrBlock"):
        try:
            block = ipaddress.ip_network(str(wanted.inputs.get(key)), strict=False)
        except ValueError:
            # None given, or none at all, which is refused elsewhere.
            continue
        own = any(_is_within(block, ipaddress.ip_network(each)) for each in _OF_SERVICES)
        by_nat = wanted.inputs.get("natGatewayId") and block.version == 6
        if own or (by_nat and not _is_within(block, _OF_NAT64)):
            message = f"The destination CIDR block {wanted.inputs[key]} is not supported here."
            yield Refusal("CreateRoute", "InvalidParameterValue", message, key)


_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _is_within(block: _Network, around: _Network) -> bool:
    if isinstance(block, ipaddress.IPv4Network) and isinstance(around, ipaddress.IPv4Network):
        return block.subnet_of(around)
    if isinstance(block, ipaddress.IPv6Network) and isinstance(around, ipaddress.IPv6Network):
        return block.subnet_of(around)
    return False


def _of_nobody(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    first = network.network_address
    return first.is_loopback or first.is_link_local or first.is_multicast or first.packed[0] == 0


@limit(
    "ec2/vpc:Vpc",
    "ec2/subnet:Subnet",
    source="https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html",
)
def block_of_a_network(wanted: Wanted) -> Iterator[Refusal]:
    """Between /16 and /28, and not of those that no machine has an address in."""
    block = wanted.inputs.get("cidrBlock")
    network = ipaddress.ip_network(str(block), strict=False) if block else None
    if network and (
        str(network) != block or not 16 <= network.prefixlen <= 28 or _of_nobody(network)
    ):
        vpc = wanted.type.endswith(":Vpc")
        code, operation = ("InvalidVpc.Range", "CreateVpc")
        if not vpc:
            code, operation = ("InvalidSubnet.Range", "CreateSubnet")
        yield Refusal(operation, code, f"The CIDR '{block}' is invalid.", "cidrBlock")


_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")


@limit(
    "eks/cluster:Cluster",
    source="https://docs.aws.amazon.com/eks/latest/APIReference/API_KubernetesNetworkConfigRequest.html",
)
def services_of_a_cluster(wanted: Wanted) -> Iterator[Refusal]:
    """A private block between /12 and /24."""
    block = (wanted.inputs.get("kubernetesNetworkConfig") or {}).get("serviceIpv4Cidr")
    if not block:
        return
    try:
        network = ipaddress.IPv4Network(str(block))
    except ValueError:
        network = ipaddress.IPv4Network("0.0.0.0/0")
    inside = any(network.subnet_of(ipaddress.IPv4Network(each)) for each in _PRIVATE)
    if not (12 <= network.prefixlen <= 24 and inside):
        message = f"serviceIpv4Cidr {block} must be within 10.0.0.0/8, 172.16.0.0/12 or "
        message += "192.168.0.0/16, between /24 and /12"
        at = "kubernetesNetworkConfig"
        yield Refusal("CreateCluster", "InvalidParameterException", message, at)


@limit(
    "ec2/launchTemplate:LaunchTemplate",
    "ec2/vpcEndpoint:VpcEndpoint",
    "lambda/function:Function",
    "lb/loadBalancer:LoadBalancer",
    source="https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html",
)
def security_groups_of_an_interface(wanted: Wanted) -> Iterator[Refusal]:
    """Five on a network interface."""
    inputs = wanted.inputs
    groups = (
        inputs.get("vpcSecurityGroupIds")
        or inputs.get("securityGroupIds")
        or inputs.get("securityGroups")
        or (inputs.get("vpcConfig") or {}).get("securityGroupIds")
        or ()
    )
    if len(groups) > SECURITY_GROUPS_PER_INTERFACE:
        message = "You have exceeded the maximum number of security groups per network interface"
        code = "SecurityGroupsPerInterfaceLimitExceeded"
        yield Refusal("CreateNetworkInterface", code, message, "securityGroups")
