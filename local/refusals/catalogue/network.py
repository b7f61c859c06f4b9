"""VPCs, their subnets and routes, security groups and endpoints."""

from __future__ import annotations

from local.refusals.calls import Parameters, call, enter
from local.refusals.catalogue.parameters import Inputs


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


_RULE = (
    "cidrIpv4",
    "cidrIpv6",
    "description",
    "fromPort",
    "ipProtocol",
    "referencedSecurityGroupId",
    "securityGroupId",
    "toPort",
)


enter(
    "ec2/defaultSecurityGroup:DefaultSecurityGroup",
    call("ec2", "CreateTags", build=lambda _: {"Resources": ["sg-0123456789abcdef0"]}),
    vpcId="adopts the group that the VPC has",
)
enter("ec2/eip:Eip", call("ec2", "AllocateAddress", tagged="elastic-ip"))
enter(
    "ec2/internetGateway:InternetGateway",
    call("ec2", "CreateInternetGateway", tagged="internet-gateway"),
    vpcId="attached by a call of its own, which takes ids alone",
)
enter("ec2/natGateway:NatGateway", call("ec2", "CreateNatGateway", tagged="natgateway"))
enter("ec2/route:Route", call("ec2", "CreateRoute"))
enter("ec2/routeTable:RouteTable", call("ec2", "CreateRouteTable", tagged="route-table"))
enter("ec2/routeTableAssociation:RouteTableAssociation", call("ec2", "AssociateRouteTable"))
enter(
    "ec2/securityGroup:SecurityGroup",
    call(
        "ec2",
        "CreateSecurityGroup",
        "description",
        names={"name": "GroupName"},
        tagged="security-group",
        # What the provider says where the program says nothing.
        build=lambda i: {"Description": i.get("description", "Managed by Pulumi")},
    ),
)
enter("ec2/subnet:Subnet", call("ec2", "CreateSubnet", tagged="subnet"))
enter(
    "ec2/vpc:Vpc",
    call("ec2", "CreateVpc", tagged="vpc"),
    enableDnsHostnames="ModifyVpcAttribute, a boolean",
    enableDnsSupport="ModifyVpcAttribute, a boolean",
)
enter("ec2/vpcEndpoint:VpcEndpoint", call("ec2", "CreateVpcEndpoint", tagged="vpc-endpoint"))
enter(
    "ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation",
    call(
        "ec2",
        "ModifyVpcEndpoint",
        "routeTableId",
        build=lambda i: {"AddRouteTableIds": [i["routeTableId"]]},
    ),
)
enter(
    "ec2/vpcEndpointService:VpcEndpointService",
    call("ec2", "CreateVpcEndpointServiceConfiguration", tagged="vpc-endpoint-service"),
    allowedPrincipals="ModifyVpcEndpointServicePermissions, ARNs that the spec has checked",
)
enter(
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule",
    call(
        "ec2",
        "AuthorizeSecurityGroupEgress",
        *_RULE,
        build=rule_parameters,
        tagged="security-group-rule",
    ),
)
enter(
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    call(
        "ec2",
        "AuthorizeSecurityGroupIngress",
        *_RULE,
        build=rule_parameters,
        tagged="security-group-rule",
    ),
)
