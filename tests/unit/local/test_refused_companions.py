"""What resources refuse of each other: public policies, ways out, templates, versions, counts."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from local.refusals import gate, together
from local.refusals.refusal import Wanted
from tests.unit.local.aws_inputs import ADDON, ASSOCIATED, ASSOCIATION
from tests.unit.local.refused_identity import policies, role
from tests.unit.local.refused_policies import on_a_bucket
from tests.unit.local.seeded_inputs import TARGET_GROUP, TEMPLATE, template
from tests.unit.local.test_refused_parts import ENTERED, KUBERNETES, NODES

Made = tuple[str, str, Mapping[str, Any]]
POLICY = "s3/bucketPolicy:BucketPolicy"
BLOCK = "s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
VPC: Made = ("ec2/vpc:Vpc", "vpc-1", {"cidrBlock": "10.0.0.0/16"})
WAY_OUT: Made = ("ec2/internetGateway:InternetGateway", "igw-1", {"vpcId": "vpc-1"})
ELSEWHERE: Made = ("ec2/internetGateway:InternetGateway", "igw-2", {})
TABLE: Made = ("ec2/routeTable:RouteTable", "rtb-1", {"vpcId": "vpc-1"})
CLUSTER: Made = ("eks/cluster:Cluster", "c", {**KUBERNETES, "name": "c", "version": "1.35"})


def everybody(**condition: Mapping[str, Any]) -> Made:
    return (POLICY, "p", on_a_bucket(Principal="*", Condition=condition or None))


def subnet(number: int, zone: str = "us-east-1a") -> Made:
    inputs = {"vpcId": "vpc-1", "cidrBlock": f"10.0.{number}.0/24", "availabilityZone": zone}
    return ("ec2/subnet:Subnet", f"subnet-{number}", inputs)


def nat(number: int, place: str) -> Made:
    inputs = {"subnetId": place, "allocationId": f"eipalloc-{number}"}
    return ("ec2/natGateway:NatGateway", f"nat-{number}", inputs)


def route(block: str, **way: str) -> Made:
    return ("ec2/route:Route", "r", {"routeTableId": "rtb-1", "destinationCidrBlock": block, **way})


def nodes(launched: Mapping[str, Any], **group: Any) -> tuple[Made, ...]:
    named = {"launchTemplate": {"id": "lt-1", "version": "1"}}
    return (
        (TEMPLATE, "lt-1", template(**launched)),
        ("eks/nodeGroup:NodeGroup", "ng", {**NODES, **named, **group}),
    )


def proxy(version: str) -> Made:
    inputs = {"clusterName": "c", "addonName": "kube-proxy", "addonVersion": version}
    return (ADDON, "a", inputs)


def entry(kind: str) -> Made:
    return ("eks/accessEntry:AccessEntry", "e", {**ENTERED, "type": kind})


def group(*rules: Mapping[str, Any]) -> Made:
    inputs = {"name": "s", "vpcId": "vpc-1", "description": "d", "ingress": list(rules)}
    return ("ec2/securityGroup:SecurityGroup", "sg-1", inputs)


def opened(sources: int) -> Mapping[str, Any]:
    blocks = [f"10.0.{number}.0/24" for number in range(sources)]
    return {"protocol": "tcp", "fromPort": 1, "toPort": 1, "cidrBlocks": blocks}


def attached(count: int) -> list[Made]:
    token = "iam/rolePolicyAttachment:RolePolicyAttachment"
    arn = "arn:aws:iam::123456789012:policy/z"
    return [(token, f"a{n}", {"role": "r", "policyArn": f"{arn}{n}"}) for n in range(count)]


def script(text: str) -> Mapping[str, Any]:
    return {"userData": base64.b64encode(text.encode()).decode()}


ZONES = (VPC, WAY_OUT, subnet(1), subnet(2), subnet(3, "us-east-1b"))
STICKY = {**TARGET_GROUP, "name": "a", "targetType": "ip", "stickiness": {"type": "source_ip"}}
OWN_IMAGE = {"imageId": "ami-0123456789abcdef0"}
AL2023 = "AL2023_x86_64_STANDARD"
REFUSED: Mapping[str, tuple[tuple[Made, ...], str]] = {
    "everybody, under a block": (
        (everybody(), (BLOCK, "b", {"bucket": "b", "blockPublicPolicy": True})),
        "AccessDenied",
    ),
    "everybody, as buckets are made": ((everybody(),), "AccessDenied"),
    "everybody by TLS": ((everybody(Bool={"aws:SecureTransport": "true"}),), "AccessDenied"),
    "everybody from everywhere": (
        (everybody(IpAddress={"aws:SourceIp": "0.0.0.0/0"}),),
        "AccessDenied",
    ),
    "everybody of whatever name": (
        (everybody(StringLike={"aws:PrincipalArn": "*"}),),
        "AccessDenied",
    ),
    "six NAT gateways in a zone": (
        (*ZONES, *(nat(n, f"subnet-{1 + n % 2}") for n in range(6))),
        "NatGatewayLimitExceeded",
    ),
    "a NAT gateway without a way out": (
        (VPC, subnet(1), nat(1, "subnet-1")),
        "Gateway.NotAttached",
    ),
    "a route out for what is inside": (
        (VPC, WAY_OUT, TABLE, route("10.0.1.0/24", gatewayId="igw-1")),
        "InvalidParameterValue",
    ),
    "a route out for the VPC itself": (
        (VPC, TABLE, route("10.0.0.0/16", transitGatewayId="tgw-1")),
        "InvalidParameterValue",
    ),
    "a route to a gateway of no VPC": (
        (VPC, TABLE, ELSEWHERE, route("0.0.0.0/0", gatewayId="igw-2")),
        "InvalidParameterValue",
    ),
    **{
        f"nodes launched with {what}": (nodes(launched, **more), "InvalidParameterException")
        for what, launched, more in (
            ("a profile", {"iamInstanceProfile": {"name": "p"}}, {}),
            ("spot capacity", {"instanceMarketOptions": {"marketType": "spot"}}, {}),
            ("a subnet", {"networkInterfaces": [{"subnetId": "subnet-1"}]}, {}),
            ("a way to shut down", {"instanceInitiatedShutdownBehavior": "terminate"}, {}),
            ("hibernation", {"hibernationOptions": {"configured": True}}, {}),
            ("a type named twice", {"instanceType": "m7i.large"}, {"instanceTypes": ["m7i.large"]}),
            ("an image of two kinds", OWN_IMAGE, {"amiType": AL2023}),
            ("an image and a version", OWN_IMAGE, {"version": "1.35"}),
            ("no image of their own", {}, {"amiType": "CUSTOM"}),
            ("a script for EKS's image", script("#!/bin/bash\necho"), {"amiType": AL2023}),
        )
    },
    "a newer kube-proxy": ((CLUSTER, proxy("v1.36.0-eksbuild.1")), "InvalidParameterException"),
    "a kube-proxy four versions older": (
        (CLUSTER, proxy("v1.31.0-eksbuild.1")),
        "InvalidParameterException",
    ),
}
TAKEN: Mapping[str, tuple[Made, ...]] = {
    "everybody, where the bucket takes them": (
        everybody(),
        (BLOCK, "b", {"bucket": "b", "blockPublicPolicy": False}),
    ),
    "everybody of an organization": (everybody(StringEquals={"aws:PrincipalOrgID": "o-a"}),),
    "everybody from one network": (everybody(IpAddress={"aws:SourceIp": "192.0.2.0/24"}),),
    "everybody through one endpoint": (
        everybody(StringEquals={"aws:SourceVpce": "vpce-0123456789abcdef0"}),
    ),
    "nobody without TLS": (
        (
            POLICY,
            "p",
            on_a_bucket(
                Effect="Deny", Principal="*", Condition={"Bool": {"aws:SecureTransport": "false"}}
            ),
        ),
    ),
    "a service": (
        (POLICY, "p", on_a_bucket(Principal={"Service": "delivery.logs.amazonaws.com"})),
    ),
    "five NAT gateways in a zone and one beside": (
        *ZONES,
        *(nat(n, f"subnet-{1 + n % 2}") for n in range(5)),
        nat(9, "subnet-3"),
    ),
    "a route out": (VPC, WAY_OUT, TABLE, route("0.0.0.0/0", gatewayId="igw-1")),
    "a middlebox before a subnet": (
        VPC,
        TABLE,
        route("10.0.1.0/24", vpcEndpointId="vpce-0123456789abcdef0"),
    ),
    "nodes of EKS's image": nodes(
        {"vpcSecurityGroupIds": ["sg-0123456789abcdef0"]},
        instanceTypes=["m7i.large"],
        amiType=AL2023,
    ),
    "nodes of an image with a script": nodes({**OWN_IMAGE, **script("#!/bin/bash\necho")}),
    "nodes with parts of user data": nodes(script("MIME-Version: 1.0\n"), amiType=AL2023),
    "a kube-proxy of the cluster's version": (CLUSTER, proxy("v1.35.0-eksbuild.2")),
    "a kube-proxy three versions older": (CLUSTER, proxy("v1.32.0-eksbuild.2")),
    "an access policy for people": (entry("STANDARD"), (ASSOCIATION, "a", ASSOCIATED)),
    "sixty sources of one rule": (group(opened(60)),),
    "six policies listed and four attached": (
        ("iam/role:Role", "r", {**role(managedPolicyArns=policies(6)), "name": "r"}),
        *attached(4),
    ),
}


def wanted(made: tuple[Made, ...]) -> list[Wanted]:
    return [Wanted(f"aws:{token}", name, inputs) for token, name, inputs in made]


@pytest.mark.parametrize(("made", "code"), [pytest.param(*r, id=n) for n, r in REFUSED.items()])
def test_what_others_rule_out_is_refused(made: tuple[Made, ...], code: str) -> None:
    found = list(together.refusals(wanted(made)))
    assert [refusal for refusal in found if refusal.code == code], found


@pytest.mark.parametrize("made", [pytest.param(made, id=name) for name, made in TAKEN.items()])
def test_what_others_leave_room_for_is_taken(made: tuple[Made, ...]) -> None:
    found = gate.all_refusals(wanted(made))
    assert [refusal.sentence for refusal in found] == []
