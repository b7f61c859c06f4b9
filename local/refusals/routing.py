"""Checks gateways and routes against the VPC that they are in, and groups against their rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from local.refusals.cidrs import is_within, network
from local.refusals.refusal import Refusal, Wanted
from local.refusals.together import about, limit, of

_VPC = "https://docs.aws.amazon.com/vpc/latest/userguide/"
NAT_GATEWAYS_PER_ZONE = 5


def _vpcs_of_subnets(everything: Sequence[Wanted]) -> dict[str, str]:
    return {e.name: str(e.inputs.get("vpcId")) for e in of(everything, "ec2/subnet:Subnet")}


def _public_gateways(everything: Sequence[Wanted]) -> list[Wanted]:
    gateways = of(everything, "ec2/natGateway:NatGateway")
    return [each for each in gateways if each.inputs.get("connectivityType") != "private"]


@limit(f"{_VPC}amazon-vpc-limits.html")
def nat_gateways_of_a_zone(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """Five in an Availability Zone."""
    subnets = {each.name: each.inputs for each in of(everything, "ec2/subnet:Subnet")}
    counts: Counter[str] = Counter()
    for each in of(everything, "ec2/natGateway:NatGateway"):
        inputs = subnets.get(str(each.inputs.get("subnetId"))) or {}
        zone = str(inputs.get("availabilityZone") or inputs.get("availabilityZoneId") or "")
        counts[zone] += 1
        if zone and counts[zone] == NAT_GATEWAYS_PER_ZONE + 1:
            message = f"Performing this operation would exceed the limit of {NAT_GATEWAYS_PER_ZONE}"
            message += " NAT gateways"
            yield about(each, "CreateNatGateway", "NatGatewayLimitExceeded", message, "subnetId")


@limit(f"{_VPC}nat-gateway-troubleshooting.html")
def way_out_of_a_nat_gateway(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A public NAT gateway is made where its VPC has an internet gateway, and fails before."""
    known = {each.name for each in of(everything, "ec2/vpc:Vpc")}
    places = _vpcs_of_subnets(everything)
    ways_out = {
        e.inputs.get("vpcId") for e in of(everything, "ec2/internetGateway:InternetGateway")
    }
    for each in _public_gateways(everything):
        vpc = places.get(str(each.inputs.get("subnetId")))
        if vpc in known and vpc not in ways_out:
            message = f"Network {vpc} has no Internet gateway attached"
            yield about(each, "CreateNatGateway", "Gateway.NotAttached", message, "subnetId")


@limit(f"{_VPC}subnet-route-tables.html")
def routes_beside_the_local_one(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """What is inside the VPC goes its own way; a gateway of another VPC is none."""
    blocks = {e.name: e.inputs.get("cidrBlock") for e in of(everything, "ec2/vpc:Vpc")}
    tables = {e.name: e.inputs.get("vpcId") for e in of(everything, "ec2/routeTable:RouteTable")}
    gateways = {
        e.name: e.inputs.get("vpcId") for e in of(everything, "ec2/internetGateway:InternetGateway")
    }
    for each in of(everything, "ec2/route:Route"):
        vpc, way = tables.get(str(each.inputs.get("routeTableId"))), each.inputs.get("gatewayId")
        if way in gateways and gateways[way] is None and vpc is not None:
            message = f"route table {each.inputs.get('routeTableId')} and network gateway {way} "
            message += "belong to different networks"
            yield about(each, "CreateRoute", "InvalidParameterValue", message, "gatewayId")
        # A middlebox may stand in the way to one subnet; a gateway to elsewhere may not.
        elsewhere = str(way).startswith(("igw-", "vgw-")) or way in gateways
        elsewhere = elsewhere or any(each.inputs.get(key) for key in _ELSEWHERE)
        block = each.inputs.get("destinationCidrBlock")
        if elsewhere and is_within(network(block), blocks.get(str(vpc))):
            message = f"The destination CIDR block {block} is equal to or more specific than one "
            message += "of this VPC's CIDR blocks."
            at = "destinationCidrBlock"
            yield about(each, "CreateRoute", "InvalidParameterValue", message, at)


_ELSEWHERE = ("transitGatewayId", "vpcPeeringConnectionId", "egressOnlyGatewayId")
