"""Limits on ports, on blocks of addresses, and on what one network interface takes."""

from __future__ import annotations

from collections.abc import Iterator

from local.refusals.cidrs import Network, is_within, network
from local.refusals.limits import first_of, limit, outside
from local.refusals.refusal import Refusal, Wanted

SECURITY_GROUPS_PER_INTERFACE = 5
_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_RULES = (
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule",
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule",
)
_SOURCES = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
# What a rule may call a protocol by its number, or otherwise: EC2 keeps the name.
_PROTOCOLS = {"1": "icmp", "6": "tcp", "17": "udp", "58": "icmpv6", "all": "-1"}


def protocol(written: object) -> str:
    """Return a rule's protocol as EC2 keeps it: 6 is tcp.

    >>> protocol("6"), protocol("-1"), protocol("50")
    ('tcp', '-1', '50')
    """
    said = str(written).lower()
    return _PROTOCOLS.get(said, said)


@limit(*_RULES, source=f"{_EC2}API_IpPermission.html")
def ports_of_a_rule(wanted: Wanted) -> Iterator[Refusal]:
    """Both of a protocol that has ports, the first before the last; types and codes of ICMP."""
    first, last = wanted.inputs.get("fromPort"), wanted.inputs.get("toPort")
    spoken = protocol(wanted.inputs.get("ipProtocol"))
    ported, icmp = spoken in {"tcp", "udp"}, spoken in {"icmp", "icmpv6"}
    ports = [int(each) for each in (first, last) if each is not None]
    yield from first_of(
        _authorizes(wanted),
        "InvalidParameterValue",
        (
            ported and len(ports) < 2,
            "Invalid value 'Must specify both from and to ports with TCP/UDP.' for portRange.",
            "fromPort",
        ),
        (
            ported and (ports != sorted(ports) or any(outside(each, 0, 65_535) for each in ports)),
            (
                f"Invalid value '{first}-{last}' for portRange: from-port must be less than or "
                "equal to to-port and both between 0 and 65535"
            ),
            "fromPort",
        ),
        # A type and a code of a byte each, or -1 for all; of all types, all codes.
        (
            icmp and outside(first, -1, 255),
            f"ICMP type/code {first} is not valid",
            "fromPort",
        ),
        (
            icmp and (outside(last, -1, 255) or (first == -1 and last not in (None, -1))),
            f"ICMP type/code {last} is not valid",
            "toPort",
        ),
    )
    if spoken == "-1" and {first, last} - {None, -1}:
        # EC2 makes the rule of all ports, and refuses the update that the next `up` then tries:
        # https://github.com/hashicorp/terraform-provider-aws/issues/30035
        message = "You may not specify all protocols and specific ports. Please specify each "
        message += "protocol and port range combination individually, or all protocols and no port "
        message += "range."
        yield Refusal("ModifySecurityGroupRules", "InvalidParameterValue", message, "fromPort")


def _authorizes(rule: Wanted) -> str:
    return f"AuthorizeSecurityGroup{'In' if 'Ingress' in rule.type else 'E'}gress"


@limit(*_RULES, source=f"{_EC2}API_IpRange.html")
def source_of_a_rule(wanted: Wanted) -> Iterator[Refusal]:
    """There is one source or destination, and a block is a block."""
    given = [key for key in _SOURCES if wanted.inputs.get(key) is not None]
    narrow, wide = wanted.inputs.get("cidrIpv4"), wanted.inputs.get("cidrIpv6")
    operation = _authorizes(wanted)
    if len(given) > 1:
        # The provider's own, before any call.
        message = f"2 attributes specified when one (and only one) of [{', '.join(_SOURCES)}] is "
        message += "required"
        yield Refusal(operation, "Invalid Attribute Combination", message, given[-1])
    if not given:
        message = "Missing source specification: include source security group or CIDR information"
        yield Refusal(operation, "MissingParameter", message)
    elif not _is_block(narrow):
        message = f"CIDR block {narrow} is malformed"
        yield Refusal(operation, "InvalidParameterValue", message, "cidrIpv4")
    elif not _is_ipv6(wide):
        message = f"CIDR block {wide} is no network of IPv6"
        yield Refusal(operation, "InvalidParameterValue", message, "cidrIpv6")
    elif _has_host_bits(narrow):
        # The provider's own, before any call: EC2 would keep the network and show another block
        # than the program's (terraform-provider-aws, IPv4CIDRNetworkAddress).
        message = "Attribute cidr_ipv4 value must be a valid IPv4 CIDR that represents a network "
        message += f"address, got: {narrow}"
        yield Refusal(operation, "Invalid Attribute Value", message, "cidrIpv4")


@limit("ec2/route:Route", source=f"{_EC2}API_CreateRoute.html")
def destination_of_a_route(wanted: Wanted) -> Iterator[Refusal]:
    """A block, of the kind that its input has."""
    wide = wanted.inputs.get("destinationIpv6CidrBlock")
    narrow = wanted.inputs.get("destinationCidrBlock")
    if not _is_ipv6(wide) or (narrow is not None and ":" in str(narrow)):
        message = f"{wide if not _is_ipv6(wide) else narrow} is no block of this kind"
        at = "destinationCidrBlock" if _is_ipv6(wide) else "destinationIpv6CidrBlock"
        yield Refusal("CreateRoute", "InvalidParameterValue", message, at)
    block = wanted.inputs.get("destinationCidrBlock")
    if not _is_block(block):
        message = f"Value ({block}) for parameter destinationCidrBlock is invalid. This is not a "
        message += "valid CIDR block."
        yield Refusal("CreateRoute", "InvalidParameterValue", message, "destinationCidrBlock")
    elif _has_host_bits(block):
        # The provider's own, as of a rule's block.
        message = f'"{block}" is not a valid IPv4 CIDR block; did you mean '
        message += f'"{network(block)}"?'
        yield Refusal("CreateRoute", "Invalid Attribute Value", message, "destinationCidrBlock")


def _is_ipv6(written: object) -> bool:
    """Say whether a block is one of IPv6's, without host bits; none at all is in order."""
    found = network(written, strict=True)
    return written is None or (found is not None and found.version == 6)


def _has_host_bits(written: object) -> bool:
    return written is not None and str(network(written)) != str(written)


def _is_block(written: object) -> bool:
    return written is None or ("/" in str(written) and network(written) is not None)


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
