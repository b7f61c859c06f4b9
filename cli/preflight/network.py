"""Reads a VPC that is there already, and its subnets, for cli.preflight.asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.survey import surroundings
from core.model.account import StandingVpc, Subnet

if TYPE_CHECKING:
    from cli.preflight.asked import AccountClients

# In the answer's spelling and in the program's.
_ATTRIBUTES = {"EnableDnsSupport": "enableDnsSupport", "EnableDnsHostnames": "enableDnsHostnames"}


def subnets(asked: AccountClients) -> dict[str, Subnet]:
    """Return the named subnets that there are."""
    if asked.needs.network is None:
        return {}
    return surroundings.subnets(asked.client("ec2"), sorted(asked.needs.network.subnets))


def vpc(asked: AccountClients) -> StandingVpc | None:
    """Return the named VPC; None where none is named, or there is no such one."""
    wanted = asked.needs.network
    if wanted is None:
        return None
    ec2 = asked.client("ec2")
    found = ec2.describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [wanted.vpc]}])["Vpcs"]
    if not found:
        return None
    endpoints = list(
        asked.pages(
            "ec2",
            "describe_vpc_endpoints",
            "VpcEndpoints",
            Filters=[{"Name": "vpc-id", "Values": [wanted.vpc]}],
        )
    )
    gateways: dict[str, frozenset[str]] = {}
    for each in endpoints:
        tables = frozenset(each.get("RouteTableIds") or ())
        gateways[each["ServiceName"]] = gateways.get(each["ServiceName"], frozenset()) | tables
    return StandingVpc(
        blocks=_blocks(found[0]),
        attributes_off=tuple(
            spelled
            for answered, spelled in _ATTRIBUTES.items()
            if not ec2.describe_vpc_attribute(VpcId=wanted.vpc, Attribute=spelled)[answered][
                "Value"
            ]
        ),
        gateways=gateways,
        private_names=frozenset(
            each["ServiceName"]
            for each in endpoints
            if each.get("VpcEndpointType") == "Interface" and each.get("PrivateDnsEnabled")
        ),
        hosted_zones=_hosted_zones(asked, wanted.vpc) if wanted.private_zone else frozenset(),
    )


def _blocks(found: dict[str, Any]) -> frozenset[str]:
    others = found.get("CidrBlockAssociationSet") or ()
    standing = {
        str(each["CidrBlock"]) for each in others if each["CidrBlockState"]["State"] == "associated"
    }
    return frozenset({str(found["CidrBlock"]), *standing})


def _hosted_zones(asked: AccountClients, vpc_id: str) -> frozenset[str]:
    names, token = set[str](), dict[str, str]()
    while True:
        answer = asked.client("route53").list_hosted_zones_by_vpc(
            VPCId=vpc_id, VPCRegion=asked.needs.region, **token
        )
        names |= {str(each["Name"]).rstrip(".").lower() for each in answer["HostedZoneSummaries"]}
        if not answer.get("NextToken"):
            return frozenset(names)
        token = {"NextToken": answer["NextToken"]}
