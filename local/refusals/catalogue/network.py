"""Rules of security groups and routes to endpoints."""

from __future__ import annotations

from local.refusals.calls import Parameters, reads
from local.refusals.catalogue.parameters import Inputs


@reads(
    *("cidrIpv4", "cidrIpv6", "description", "fromPort", "ipProtocol"),
    *("referencedSecurityGroupId", "securityGroupId", "toPort"),
)
def rule_parameters(inputs: Inputs) -> Parameters:
    """Return a rule of a security group as the calls that add it and remove it take it."""
    description = {"Description": inputs["description"]} if inputs.get("description") else {}
    permission: Parameters = {"IpProtocol": str(inputs["ipProtocol"])}
    for key, member in (("fromPort", "FromPort"), ("toPort", "ToPort")):
        if inputs.get(key) is not None:
            permission[member] = int(inputs[key])
    if inputs.get("cidrIpv4"):
        permission["IpRanges"] = [{"CidrIp": inputs["cidrIpv4"], **description}]
    if inputs.get("cidrIpv6"):
        permission["Ipv6Ranges"] = [{"CidrIpv6": inputs["cidrIpv6"], **description}]
    if inputs.get("referencedSecurityGroupId"):
        group = {"GroupId": inputs["referencedSecurityGroupId"], **description}
        permission["UserIdGroupPairs"] = [group]
    return {"GroupId": inputs["securityGroupId"], "IpPermissions": [permission]}


@reads("routeTableId")
def endpoint_route_table(inputs: Inputs) -> Parameters:
    """Return the table that an endpoint gets a route in."""
    return {"AddRouteTableIds": [inputs["routeTableId"]]}
