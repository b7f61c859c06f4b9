"""Limits on ports, on blocks of addresses, and on what one network interface takes."""

from __future__ import annotations

from collections.abc import Iterator

from local.refusals.cidrs import Network, is_within, network
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
_OF_NAT64 = "64:ff9b::/96"


@limit("ec2/route:Route", source=f"{_EC2}API_CreateRoute.html")
def destination_of_nobody(wanted: Wanted) -> Iterator[Refusal]:
    """None of the services' own, and of IPv6 through a NAT gateway what it translates alone."""
    for key in ("destinationCidrBlock", "destinationIpv6CidrBlock"):
        block = network(wanted.inputs.get(key))
        if block is None:
            # None given, or none at all, which is refused elsewhere.
            continue
        by_nat = wanted.inputs.get("natGatewayId") and block.version == 6
        if is_within(block, *_OF_SERVICES) or (by_nat and not is_within(block, _OF_NAT64)):
            message = f"The destination CIDR block {wanted.inputs[key]} is not supported here."
            yield Refusal("CreateRoute", "InvalidParameterValue", message, key)


def _of_nobody(block: Network) -> bool:
    first = block.network_address
    return first.is_loopback or first.is_link_local or first.is_multicast or first.packed[0] == 0


@limit(
    "ec2/vpc:Vpc",
    "ec2/subnet:Subnet",
    source="https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html",
)
def block_of_a_network(wanted: Wanted) -> Iterator[Refusal]:
    """Between /16 and /28, and not of those that no machine has an address in."""
    block = wanted.inputs.get("cidrBlock")
    found = network(block)
    right = found and str(found) == block and 16 <= found.prefixlen <= 28 and not _of_nobody(found)
    if block and not right:
        kind = "Vpc" if wanted.type.endswith(":Vpc") else "Subnet"
        message = f"The CIDR '{block}' is invalid."
        yield Refusal(f"Create{kind}", f"Invalid{kind}.Range", message, "cidrBlock")


_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")


@limit(
    "eks/cluster:Cluster",
    source="https://docs.aws.amazon.com/eks/latest/APIReference/API_KubernetesNetworkConfigRequest.html",
)
def services_of_a_cluster(wanted: Wanted) -> Iterator[Refusal]:
    """A private block between /12 and /24."""
    block = (wanted.inputs.get("kubernetesNetworkConfig") or {}).get("serviceIpv4Cidr")
    found = network(block, strict=True)
    if block and not (found and 12 <= found.prefixlen <= 24 and is_within(found, *_PRIVATE)):
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
