"""Groups of instances and what they are launched from, clusters, rules, routes, grants on keys."""

from __future__ import annotations

from collections.abc import Iterable

from local.refusals.calls import Parameters, reads
from local.refusals.catalogue.parameters import Inputs
from local.refusals.documents import words
from local.refusals.model import input_shape
from local.shapes import coerce


def _tag_specifications(inputs: Inputs) -> list[Parameters]:
    return [
        {
            "ResourceType": each["resourceType"],
            "Tags": [{"Key": k, "Value": str(v)} for k, v in each["tags"].items()],
        }
        for each in inputs.get("tagSpecifications") or ()
        if each.get("tags")
    ]


_TEMPLATE = words("template_inputs")


def template_data(inputs: Inputs) -> Parameters:
    """Return a launch template's data: what an instance is made of."""
    shape = input_shape("ec2", "CreateLaunchTemplate").members["LaunchTemplateData"]
    spelled = {"vpcSecurityGroupIds": "securityGroupIds", "securityGroupNames": "securityGroups"}
    given = {
        spelled.get(key, key): inputs[key]
        for key in _TEMPLATE
        if key in inputs and key != "tagSpecifications"
    }
    if "networkInterfaces" in given:
        given["networkInterfaces"] = [
            {**each, "groups": each.get("securityGroups")} for each in given["networkInterfaces"]
        ]
    tagged = _tag_specifications(inputs)
    return {**coerce(shape, given), **({"TagSpecifications": tagged} if tagged else {})}


def group_tags(group: str, tags: Iterable[Inputs]) -> list[Parameters]:
    """Return tags of a group as the calls that put them and take them off have them."""
    return [
        {
            "ResourceId": group,
            "ResourceType": "auto-scaling-group",
            "Key": tag["key"],
            "Value": str(tag.get("value", "")),
            "PropagateAtLaunch": bool(tag.get("propagateAtLaunch")),
        }
        for tag in tags
    ]


@reads("tag", "autoscalingGroupName")
def group_tag(inputs: Inputs) -> Parameters:
    """Return a tag that is a resource of its own as those calls take it."""
    return {"Tags": group_tags(inputs["autoscalingGroupName"], [inputs["tag"]])}


@reads(*_TEMPLATE)
def launch_template(inputs: Inputs) -> Parameters:
    """Return a launch template's data as the call that makes it takes it."""
    return {"LaunchTemplateData": template_data(inputs)}


@reads("vpcZoneIdentifiers")
def group(inputs: Inputs) -> Parameters:
    """Return a group's subnets, which are one text."""
    return {"VPCZoneIdentifier": ",".join(inputs.get("vpcZoneIdentifiers") or ())}


@reads("encryptionConfig", "enabledClusterLogTypes", "vpcConfig")
def cluster(inputs: Inputs) -> Parameters:
    """Return a cluster's network, encryption and logs."""
    logs = {"types": list(inputs.get("enabledClusterLogTypes") or ()), "enabled": True}
    encryption = inputs.get("encryptionConfig")
    return {
        "resourcesVpcConfig": dict(inputs["vpcConfig"]),
        "encryptionConfig": [encryption] if encryption else None,
        "logging": {"clusterLogging": [logs]},
    }


_CONSTRAINTS = input_shape("kms", "CreateGrant").members["Constraints"]


@reads("constraints")
def grant(inputs: Inputs) -> Parameters:
    """Return a grant's constraints, of which the provider takes a list of one."""
    told = {key: value for each in inputs.get("constraints") or () for key, value in each.items()}
    return {"Constraints": coerce(_CONSTRAINTS, told)}


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
