"""What AWS refuses of resources beside each other, of steps between two values, of deletions."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.pulumi.aws_adapter import Aws
from local.pulumi.aws_eks import ClusterAdapter
from local.pulumi.aws_provider import AwsProvider
from local.pulumi.provider import Existing, Resource
from local.refusals import gate, together
from local.refusals.refusal import Refused, Wanted
from local.store import ResourceStore

HERE, THERE = "vpc-0aaaaaaaaaaaaaaa1", "vpc-0bbbbbbbbbbbbbbb1"
GROUP_ARN = (
    "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/brokers/0123456789abcdef"
)
ROLE_ARN = "arn:aws:iam::123456789012:role/r"
LETTERS = "arn:aws:sqs:us-east-1:123456789012:d"
TARGETS = "lb/targetGroup:TargetGroup"
SUBNET, BALANCER = "ec2/subnet:Subnet", "lb/loadBalancer:LoadBalancer"
CLUSTER, NODES = "eks/cluster:Cluster", "eks/nodeGroup:NodeGroup"
ROLE, QUEUE = "iam/role:Role", "sqs/queue:Queue"


def one(token: str, name: str = "x", /, **inputs: Any) -> Wanted:
    return Wanted(f"aws:{token}", name, inputs)


def subnet(number: int, vpc: str = HERE, zone: str = "us-east-1a") -> Wanted:
    block = f"10.0.{number}.0/24"
    return one(SUBNET, f"subnet-{number}", vpcId=vpc, cidrBlock=block, availabilityZone=zone)


def balancer(*numbers: int) -> Wanted:
    return one(BALANCER, "nlb", name="nlb", subnets=[f"subnet-{n}" for n in numbers])


def trusting(service: str, *actions: str) -> Wanted:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": list(actions or ("sts:AssumeRole",)),
    }
    return one(ROLE, name="r", assumeRolePolicy=json.dumps({"Statement": [statement]}))


def pods(*actions: str) -> list[Wanted]:
    kind = "eks/podIdentityAssociation:PodIdentityAssociation"
    return [trusting("pods.eks.amazonaws.com", *actions), one(kind, roleArn=ROLE_ARN)]


def listening(vpc: str) -> list[Wanted]:
    action = {"type": "forward", "targetGroupArn": GROUP_ARN}
    arn = (
        "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/nlb/0123456789abcdef"
    )
    return [
        subnet(1),
        balancer(1),
        one(TARGETS, name="brokers", vpcId=vpc, protocol="TCP"),
        one("lb/listener:Listener", loadBalancerArn=arn, protocol="TCP", defaultActions=[action]),
    ]


def redriving(permission: str, *sources: str) -> list[Wanted]:
    allowed: dict[str, Any] = {"redrivePermission": permission}
    if sources:
        allowed["sourceQueueArns"] = list(sources)
    policy = {"deadLetterTargetArn": LETTERS, "maxReceiveCount": 5}
    return [
        one(QUEUE, name="d", redriveAllowPolicy=json.dumps(allowed)),
        one(QUEUE, name="q", redrivePolicy=json.dumps(policy)),
    ]


REFUSED = {
    "a group of another VPC than its balancer": (listening(THERE), "ValidationError"),
    "a balancer twice in a zone": (
        [subnet(1), subnet(2), balancer(1, 2)],
        "InvalidConfigurationRequest",
    ),
    "a balancer in two VPCs": (
        [subnet(1), subnet(2, THERE, "us-east-1b"), balancer(1, 2)],
        "InvalidConfigurationRequest",
    ),
    "a cluster in one zone": (
        [
            subnet(1),
            subnet(2),
            one(CLUSTER, name="c", vpcConfig={"subnetIds": ["subnet-1", "subnet-2"]}),
        ],
        "InvalidParameterException",
    ),
    "a route table of another VPC": (
        [
            subnet(1),
            one("ec2/routeTable:RouteTable", "rtb-1", vpcId=THERE),
            one(
                "ec2/routeTableAssociation:RouteTableAssociation",
                subnetId="subnet-1",
                routeTableId="rtb-1",
            ),
        ],
        "InvalidParameterValue",
    ),
    "a function's role for machines": (
        [
            trusting("ec2.amazonaws.com"),
            one("lambda/function:Function", name="f", role=ROLE_ARN),
        ],
        "InvalidParameterValueException",
    ),
    "a pod's role without its tags": (pods("sts:AssumeRole"), "InvalidParameterException"),
}
TAKEN = {
    "a group of its balancer's VPC": listening(HERE),
    "a balancer in two zones": [subnet(1), subnet(2, zone="us-east-1b"), balancer(1, 2)],
    "a pod's role": pods("sts:AssumeRole", "sts:TagSession"),
    "dead letters of this queue": redriving("byQueue", "arn:aws:sqs:us-east-1:123456789012:q"),
    "a role that nobody here knows": [one("lambda/function:Function", name="f", role=ROLE_ARN)],
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_does_not_go_beside_the_others_is_refused(kind: str) -> None:
    resources, code = REFUSED[kind]
    assert {refusal.code for refusal in together.refusals(resources)} == {code}


@pytest.mark.parametrize("kind", TAKEN)
def test_what_goes_beside_the_others_is_taken(kind: str) -> None:
    assert list(together.refusals(TAKEN[kind])) == []


@pytest.mark.parametrize(
    ("token", "key", "old", "new", "refused"),
    [
        (CLUSTER, "version", "1.35", "1.33", True),
        (CLUSTER, "version", "1.35", "1.34", False),
        (CLUSTER, "version", "1.33", "1.35", True),
        (CLUSTER, "version", "1.34", "1.35", False),
        (
            CLUSTER,
            "accessConfig",
            {"authenticationMode": "API"},
            {"authenticationMode": "CONFIG_MAP"},
            True,
        ),
        (
            CLUSTER,
            "accessConfig",
            {"authenticationMode": "CONFIG_MAP"},
            {"authenticationMode": "API"},
            False,
        ),
        (NODES, "version", "1.35", "1.33", True),
        (NODES, "version", "1.35", "1.34", False),
        (NODES, "version", "1.33", "1.35", False),
        (
            "dynamodb/table:Table",
            "ttl",
            {"enabled": True, "attributeName": "expires"},
            {"enabled": True, "attributeName": "gone_at"},
            True,
        ),
        (
            "dynamodb/table:Table",
            "ttl",
            {"enabled": True, "attributeName": "expires"},
            {"enabled": False, "attributeName": "expires"},
            False,
        ),
        (
            "s3/bucketVersioning:BucketVersioning",
            "versioningConfiguration",
            {"status": "Enabled"},
            {"status": "Disabled"},
            True,
        ),
    ],
)
def test_a_step_that_aws_does_not_take_is_refused(
    token: str, key: str, old: Any, new: Any, refused: bool
) -> None:
    found = gate.change_refusals(one(token, **{key: old}), one(token, **{key: new}))
    assert bool(found) == refused, found


LEFT = {
    "a protected table": (one("dynamodb/table:Table", "t", deletionProtectionEnabled=True), []),
    "a VPC with a subnet": (one("ec2/vpc:Vpc", HERE), [subnet(1)]),
    "a subnet of a balancer": (subnet(1), [balancer(1)]),
    "a group of a listener": (
        one(TARGETS, GROUP_ARN),
        [one("lb/listener:Listener", defaultActions=[{"targetGroupArn": GROUP_ARN}])],
    ),
    "a rule with a target": (
        one("cloudwatch/eventRule:EventRule", "r", name="r"),
        [one("cloudwatch/eventTarget:EventTarget", rule="r")],
    ),
    "a cluster with nodes": (one(CLUSTER, "c", name="c"), [one(NODES, clusterName="c")]),
    "a role with a policy of its own": (
        one(ROLE, "r", name="r"),
        [one("iam/rolePolicy:RolePolicy", role="r")],
    ),
    "a policy that is attached": (
        one("iam/policy:Policy", "arn:aws:iam::123456789012:policy/p"),
        [
            one(
                "iam/rolePolicyAttachment:RolePolicyAttachment",
                policyArn="arn:aws:iam::123456789012:policy/p",
            )
        ],
    ),
    "a gateway before a NAT gateway's address": (
        one("ec2/internetGateway:InternetGateway", "igw-1", vpcId=HERE),
        [subnet(1), one("ec2/natGateway:NatGateway", "nat-1", subnetId="subnet-1")],
    ),
    "a gateway before a public balancer": (
        one("ec2/internetGateway:InternetGateway", "igw-1", vpcId=HERE),
        [subnet(1), balancer(1)],
    ),
    "a bucket with an object": (
        one("s3/bucket:Bucket", "b", bucket="b"),
        [one("s3/bucketObjectv2:BucketObjectv2", bucket="b", key="k")],
    ),
}


@pytest.mark.parametrize("kind", LEFT)
def test_what_is_protected_or_held_is_not_deleted(kind: str) -> None:
    leaving, others = LEFT[kind]
    assert gate.deletion_refusals(leaving, others)


@pytest.mark.parametrize("kind", list(LEFT)[1:])
def test_what_nothing_holds_is_deleted(kind: str) -> None:
    leaving, _ = LEFT[kind]
    assert gate.deletion_refusals(leaving, [one("ec2/vpc:Vpc", THERE)]) == []


def test_a_gateway_that_nothing_public_needs_is_detached() -> None:
    gateway, _ = LEFT["a gateway before a public balancer"]
    inside = replace(balancer(1), inputs={**balancer(1).inputs, "internal": True})
    private = one("ec2/natGateway:NatGateway", subnetId="subnet-1", connectivityType="private")
    assert gate.deletion_refusals(gateway, [subnet(1), inside, private]) == []


def test_a_bucket_that_is_emptied_first_is_deleted() -> None:
    bucket = one("s3/bucket:Bucket", "b", bucket="b", forceDestroy=True)
    assert gate.deletion_refusals(bucket, LEFT["a bucket with an object"][1]) == []


def test_the_provider_keeps_what_others_hold(tmp_path: Path) -> None:
    provider = AwsProvider(Aws(), ResourceStore(tmp_path))
    vpc, inner = "aws:ec2/vpc:Vpc", f"aws:{SUBNET}"
    provider.store.put(vpc, HERE, {"cidrBlock": "10.0.0.0/16"})
    provider.store.put(inner, "subnet-1", dict(subnet(1).inputs))
    resource = Resource(f"urn:pulumi:local-kafka::stillwater::{vpc}::net")
    with pytest.raises(Refused, match="DependencyViolation"):
        provider.delete(Existing(resource, HERE, {"cidrBlock": "10.0.0.0/16"}, {}))
    assert provider.store.get(vpc, HERE) is not None


class Subnets:
    """AWS as far as a cluster's update asks it: the ids of subnets end with their zone's letter."""

    def client(self, _service: str) -> Subnets:
        return self

    def describe_subnets(self, **asked: list[str]) -> dict[str, Any]:
        return {"Subnets": [{"AvailabilityZone": f"us-east-1{s[-1]}"} for s in asked["SubnetIds"]]}


@pytest.mark.parametrize(
    ("subnets", "refused"),
    [
        (["subnet-1a", "subnet-1b", "subnet-1c"], True),
        (["subnet-1a"], True),
        (["subnet-2b", "subnet-2a", "subnet-3a"], False),
    ],
)
def test_a_cluster_keeps_the_zones_that_it_was_made_with(subnets: list[str], refused: bool) -> None:
    vpc = {"vpcConfig": {"subnetIds": ["subnet-1a", "subnet-1b"]}}
    known = {"clusterSecurityGroupId": "sg-1", "vpcId": HERE}
    stands = Existing(
        Resource(f"urn:pulumi:s::p::aws:{CLUSTER}::c"), "c", vpc, {"vpcConfig": known}
    )
    aws: Any = Subnets()
    says = "exact set of AZs 'us-east-1a,us-east-1b'"
    with pytest.raises(Refused, match=says) if refused else contextlib.nullcontext():
        ClusterAdapter().update(aws, stands, {"vpcConfig": {"subnetIds": subnets}})
