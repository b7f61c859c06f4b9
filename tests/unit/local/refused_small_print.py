"""Small print of networks, machines and names: just beyond it, and the nearest within."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    BALANCED,
    BALANCERS,
    FORWARD,
    GROUPS,
    LAUNCHING,
    LISTENING,
    NAT,
    OF_NODES,
    RECORD,
    RECORDED,
    ROLES,
    ROUTE,
    SECURITY_GROUP,
    TARGETS,
    without,
)
from tests.unit.local.seeded_inputs import (
    GROUP,
    INGRESS,
    ROLE,
    RULE,
    SCALING,
    TARGET_GROUP,
    TEMPLATE,
)
from tests.unit.local.test_refused_parts import (
    CLUSTER,
    KUBERNETES,
    LISTENER,
)

SUBNET, ENDPOINT, ADDRESS = "ec2/subnet:Subnet", "ec2/vpcEndpoint:VpcEndpoint", "ec2/eip:Eip"
VPC = {"vpcId": "vpc-0123456789abcdef0"}
VALUE, TOGETHER = "InvalidParameterValue", "InvalidParameterCombination"
ERROR, PARAMETER, EKS = "ValidationError", "InvalidParameter", "InvalidParameterException"
OTHER = FORWARD.replace("/a/", "/b/")
INBOUND = {"dnsOptions": {"privateDnsOnlyForInboundResolverEndpoint": True}}
ALIAS = {"name": "x", "zoneId": "Z1", "evaluateTargetHealth": True}


def rule(**changed: Any) -> Mapping[str, Any]:
    return {**RULE, **changed}


def portless(protocol: str) -> Mapping[str, Any]:
    return {**without(without(RULE, "fromPort"), "toPort"), "ipProtocol": protocol}


def to(block: str, way: str) -> Mapping[str, Any]:
    key = "destinationIpv6CidrBlock" if ":" in block else "destinationCidrBlock"
    ways = {"igw": "gatewayId", "nat": "natGatewayId"}
    return {"routeTableId": "rtb-1", key: block, ways[way]: f"{way}-1"}


def subnet(**more: Any) -> Mapping[str, Any]:
    return {**VPC, **more}


def mapped(**more: Any) -> Mapping[str, Any]:
    there = [{"subnetId": "subnet-1", **more}, {"subnetId": "subnet-2"}]
    return {"name": "a", "loadBalancerType": "network", "subnetMappings": there}


def addressed(*allocations: str) -> Mapping[str, Any]:
    there = [
        {"subnetId": f"subnet-{number}", "allocationId": each}
        for number, each in enumerate(allocations)
    ]
    return {"name": "a", "loadBalancerType": "network", "subnetMappings": there}


def group(protocol: str = "TCP", **more: Any) -> Mapping[str, Any]:
    return {**TARGET_GROUP, "targetType": "ip", "protocol": protocol, **more}


def sticky(protocol: str, kind: str, **more: Any) -> Mapping[str, Any]:
    return group(protocol, stickiness={"type": kind, "enabled": True, **more})


def forwarding(arn: str, *others: str) -> Mapping[str, Any]:
    groups = [{"arn": each} for each in others]
    action = {"type": "forward", "targetGroupArn": arn, "forward": {"targetGroups": groups}}
    return {**LISTENING, "defaultActions": [action]}


def targeted(count: int) -> Mapping[str, Any]:
    arns = [FORWARD.replace("/a/", f"/a{number}/") for number in range(count)]
    return {**LAUNCHING, "targetGroupArns": arns}


def refreshed(**told: int) -> Mapping[str, Any]:
    return {**LAUNCHING, "instanceRefresh": {"strategy": "Rolling", "preferences": told}}


def weighted(*weights: str | None) -> Mapping[str, Any]:
    kinds = ("m7i.large", "m7i.xlarge")
    overrides = [
        {"instanceType": kind, **({} if weight is None else {"weightedCapacity": weight})}
        for kind, weight in zip(kinds, weights, strict=True)
    ]
    named = {"launchTemplateSpecification": {"launchTemplateId": "lt-1", "version": "1"}}
    return {
        **SCALING,
        "mixedInstancesPolicy": {"launchTemplate": {**named, "overrides": overrides}},
    }


def cluster(**changed: Any) -> Mapping[str, Any]:
    return {**KUBERNETES, **changed}


def doors(**told: Any) -> Mapping[str, Any]:
    return cluster(vpcConfig={"subnetIds": ["subnet-1", "subnet-2"], **told})


def nodes(**changed: Any) -> Mapping[str, Any]:
    return {**OF_NODES, **changed}


def tainted(value: str) -> Mapping[str, Any]:
    return nodes(taints=[{"key": "dedicated", "value": value, "effect": "NO_SCHEDULE"}])


def text(*parts: int) -> Mapping[str, Any]:
    value = " ".join(f'"{"x" * length}"' for length in parts)
    return {**RECORDED, "type": "TXT", "ttl": 60, "records": [value]}


def prefixed(inputs: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    return {**without(dict(inputs), "name"), "namePrefix": prefix}


def endpoint(service: str, **more: Any) -> Mapping[str, Any]:
    name = f"com.amazonaws.us-east-1.{service}"
    kind = {"vpcEndpointType": "Interface", "subnetIds": ["subnet-1"], "privateDnsEnabled": True}
    return {**VPC, "serviceName": name, **kind, **more}


# A name -> the type, what is refused, with which code, and the nearest that is taken.
Row = tuple[str, Mapping[str, Any], str, Mapping[str, Any]]
ROWS: Mapping[str, Row] = {
    "a rule of protocol 6 without ports": (INGRESS, portless("6"), VALUE, portless("50")),
    "a rule of protocol 17 at port 70,000": (
        INGRESS,
        rule(ipProtocol="17", toPort=70_000),
        VALUE,
        rule(ipProtocol="17", toPort=65_535),
    ),
    "a rule of protocol 6 from a port to one before": (
        INGRESS,
        rule(ipProtocol="6", fromPort=90, toPort=80),
        VALUE,
        rule(ipProtocol="6", fromPort=80, toPort=90),
    ),
    "one code of every type of ICMP": (
        INGRESS,
        rule(ipProtocol="icmp", fromPort=-1, toPort=3),
        VALUE,
        rule(ipProtocol="icmp", fromPort=8, toPort=-1),
    ),
    "a route to where AWS's services answer": (
        ROUTE,
        to("169.254.170.0/24", "igw"),
        VALUE,
        to("100.64.0.0/10", "igw"),
    ),
    "a route to where AWS's services answer by IPv6": (
        ROUTE,
        to("fd00:ec2::254/128", "igw"),
        VALUE,
        to("fd00::/8", "igw"),
    ),
    "IPv6 through a NAT gateway": (ROUTE, to("::/0", "nat"), VALUE, to("64:ff9b::/96", "nat")),
    "a subnet of nothing": (SUBNET, subnet(), TOGETHER, subnet(cidrBlock="10.0.0.0/28")),
    "an address of EC2-Classic": (ADDRESS, {"domain": "standard"}, VALUE, {"domain": "vpc"}),
    "an endpoint inside a resolver alone, of a service without a gateway": (
        ENDPOINT,
        endpoint("ec2", **INBOUND),
        PARAMETER,
        endpoint("s3", **INBOUND),
    ),
    "an endpoint of a service that there is not": (
        ENDPOINT,
        endpoint("execute"),
        "InvalidServiceName",
        endpoint("execute-api"),
    ),
    "clients' addresses of HTTP": (
        TARGETS,
        group("HTTP", preserveClientIp="true"),
        ERROR,
        group("TLS", preserveClientIp="true"),
    ),
    "a check that takes longer than until the next": (
        TARGETS,
        group(healthCheck={"protocol": "TCP", "timeout": 31}),
        ERROR,
        group(healthCheck={"protocol": "TCP", "timeout": 30}),
    ),
    "a group beside another to forward to": (
        LISTENER,
        forwarding(FORWARD, OTHER),
        ERROR,
        forwarding(FORWARD, FORWARD),
    ),
    "51 target groups of a group": (GROUPS, targeted(51), ERROR, targeted(50)),
    "five groups of a control plane": (
        CLUSTER,
        doors(securityGroupIds=[f"sg-{number}" for number in range(5)]),
        EKS,
        doors(securityGroupIds=[f"sg-{number}" for number in range(4)]),
    ),
    "an office by IPv6 before a cluster of IPv4": (
        CLUSTER,
        doors(publicAccessCidrs=["2600:1f16::/32"]),
        EKS,
        {
            **doors(publicAccessCidrs=["2600:1f16::/32"]),
            "kubernetesNetworkConfig": {"ipFamily": "ipv6"},
        },
    ),
    "a cluster that not even its maker enters": (
        CLUSTER,
        cluster(
            accessConfig={
                "authenticationMode": "CONFIG_MAP",
                "bootstrapClusterCreatorAdminPermissions": False,
            }
        ),
        EKS,
        cluster(
            accessConfig={
                "authenticationMode": "API",
                "bootstrapClusterCreatorAdminPermissions": False,
            }
        ),
    ),
    "a text of 4,001 characters": (
        RECORD,
        text(*[250] * 16),
        "InvalidChangeBatch",
        text(*[250] * 15),
    ),
    "two aliases of one record": (
        RECORD,
        {**RECORDED, "aliases": [ALIAS, {**ALIAS, "name": "y"}]},
        "InvalidInput",
        {**RECORDED, "aliases": [ALIAS]},
    ),
    "a role's name that is drawn from 39 characters": (
        ROLES,
        prefixed(ROLE, "r" * 39),
        ERROR,
        prefixed(ROLE, "r" * 38),
    ),
    "a balancer's name that is drawn from 7 characters": (
        BALANCERS,
        prefixed(BALANCED, "kafka-x"),
        ERROR,
        prefixed(BALANCED, "kafka-"),
    ),
    "a security group's name that is drawn from an umlaut": (
        SECURITY_GROUP,
        {**VPC, "namePrefix": "Knöten-"},
        VALUE,
        {**VPC, "namePrefix": "nodes-"},
    ),
}
# What has no neighbour among them, and only looks like one of them.
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a rule of IPv6": (INGRESS, {**GROUP, "toPort": 443, "cidrIpv6": "2001:db8::/32"}),
    "a NAT gateway with seven addresses more": (
        NAT,
        {
            "subnetId": "subnet-1",
            "connectivityType": "private",
            "secondaryPrivateIpAddressCount": 7,
        },
    ),
    **{
        f"an endpoint of {service}": (ENDPOINT, endpoint(service))
        for service in ("ecs-agent", "email-smtp", "pipes-data", "sync-states", "eks-auth")
    },
    "a template's name that is drawn": (TEMPLATE, {"namePrefix": "nodes-"}),
}
