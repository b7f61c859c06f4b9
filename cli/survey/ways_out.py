"""Reads how subnets of nodes reach AWS into core.survey's facts, and changes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from cli.aws_pages import pages
from cli.survey.surroundings import subnets
from core.survey.account_facts import Subnet, VpcEndpoint, WayOut

EVERYWHERE = ("0.0.0.0/0", "::/0")
# What a route may lead to, by the key that names it.
TARGETS = (
    *("NatGatewayId", "GatewayId", "TransitGatewayId", "NetworkInterfaceId", "InstanceId"),
    *("EgressOnlyInternetGatewayId", "VpcPeeringConnectionId", "LocalGatewayId"),
    *("CarrierGatewayId", "CoreNetworkArn"),
)
NAT = "nat-"
# As in com.amazonaws.eu-north-1.ecr.api.
SERVICE = re.compile(r".*\.[a-z]{2,4}(?:-[a-z]+)+-\d\.(.+)")
GONE = {"failed", "deleting", "deleted"}


def ways_out(ec2: Any, known: Mapping[str, Subnet]) -> dict[str, WayOut]:
    """Return for each subnet where its default route leads; one without a table is left out."""
    tables = [
        table
        for table in pages(ec2, "describe_route_tables", "RouteTables", Filters=_of(known))
        for known_vpc in (str(table.get("VpcId") or ""),)
        if known_vpc
    ]
    found = {}
    for name, subnet in known.items():
        if (table := _table_of(name, subnet, tables)) is not None:
            found[name] = _way_out(table)
    return _with_nats(ec2, found)


def _of(known: Mapping[str, Subnet]) -> list[dict[str, Any]]:
    return [{"Name": "vpc-id", "Values": sorted({each.vpc for each in known.values()})}]


def _table_of(name: str, subnet: Subnet, tables: Iterable[Mapping[str, Any]]) -> Any:
    """Return the route table of a subnet: its own, else the main one of its VPC."""
    main = None
    for table in tables:
        for each in table.get("Associations") or ():
            if each.get("SubnetId") == name:
                return table
            if each.get("Main") and table["VpcId"] == subnet.vpc:
                main = table
    return main


def _way_out(table: Mapping[str, Any]) -> WayOut:
    named = str(table["RouteTableId"])
    for route in table.get("Routes") or ():
        where = (route.get("DestinationCidrBlock"), route.get("DestinationIpv6CidrBlock"))
        if not set(where) & set(EVERYWHERE):
            continue
        target = next((str(route[key]) for key in TARGETS if route.get(key)), "an unknown target")
        return WayOut(table=named, target=target, gone=route.get("State") == "blackhole")
    return WayOut(table=named)


def _with_nats(ec2: Any, found: Mapping[str, WayOut]) -> dict[str, WayOut]:
    """Return ways out with what EC2 says of the NAT gateways that they lead to."""
    names = sorted({w.target for w in found.values() if w.target and w.target.startswith(NAT)})
    if not names:
        return dict(found)
    chosen = [{"Name": "nat-gateway-id", "Values": names}]
    nats = {
        str(each["NatGatewayId"]): each
        for each in pages(ec2, "describe_nat_gateways", "NatGateways", Filter=chosen)
    }
    # One of a whole region names no subnet.
    stand = {str(each["SubnetId"]) for each in nats.values() if each.get("SubnetId")}
    zones = {name: each.zone for name, each in subnets(ec2, stand).items()} if stand else {}
    return {name: _with_nat(way, nats, zones) for name, way in found.items()}


def _with_nat(way: WayOut, nats: Mapping[str, Any], zones: Mapping[str, str]) -> WayOut:
    if way.target is None or not way.target.startswith(NAT):
        return way
    nat = nats.get(way.target)
    return WayOut(
        table=way.table,
        target=way.target,
        gone=way.gone or nat is None or nat.get("State") in GONE,
        nat_zone=None if nat is None else zones.get(str(nat.get("SubnetId"))),
    )


def endpoints(ec2: Any, known: Mapping[str, Subnet]) -> tuple[VpcEndpoint, ...]:
    """Return the ways to AWS's services of the VPCs that some subnets are in."""
    return tuple(
        VpcEndpoint(
            vpc=str(each["VpcId"]),
            service=found[1],
            available=str(each.get("State", "")).lower() == "available",
            tables=frozenset(each.get("RouteTableIds") or ())
            if each.get("VpcEndpointType") == "Gateway"
            else None,
        )
        for each in pages(ec2, "describe_vpc_endpoints", "VpcEndpoints", Filters=_of(known))
        if (found := SERVICE.fullmatch(str(each.get("ServiceName"))))
    )
