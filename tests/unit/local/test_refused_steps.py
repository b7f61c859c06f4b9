"""What AWS refuses of steps between two values, and of deletions beside what is left."""

# ruff: noqa: E501 - a case is a line
from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.pulumi.aws_adapter import Aws
from local.pulumi.aws_eks import ClusterAdapter
from local.pulumi.aws_provider import AwsProvider
from local.pulumi.provider import Existing, Resource
from local.refusals import changing
from local.refusals.refusal import Refused, Wanted
from local.store import ResourceStore
from tests.every_case import every_case
from tests.unit.local.aws_inputs import CLUSTER, GROUP_ARN, LISTENER, ROLES, SUBNET, TABLES, TARGETS
from tests.unit.local.aws_inputs import NODE_GROUP as NODES

HERE, THERE = "vpc-0aaaaaaaaaaaaaaa1", "vpc-0bbbbbbbbbbbbbbb1"
GATEWAYS, NAT = "ec2/internetGateway:InternetGateway", "ec2/natGateway:NatGateway"
POLICY = "arn:aws:iam::123456789012:policy/p"


def one(token: str, name: str = "x", /, **inputs: Any) -> Wanted:
    return Wanted(f"aws:{token}", name, inputs)


def subnet() -> Wanted:
    return one(SUBNET, "subnet-1", vpcId=HERE, cidrBlock="10.0.1.0/24")


def balancer(**more: Any) -> Wanted:
    return one("lb/loadBalancer:LoadBalancer", "nlb", name="nlb", subnets=["subnet-1"], **more)


def mode(name: str) -> dict[str, str]:
    return {"authenticationMode": name}


def lasting(name: str, *, enabled: bool = True) -> dict[str, Any]:
    return {"enabled": enabled, "attributeName": name}


VERSIONING = "s3/bucketVersioning:BucketVersioning"
ENABLED, DISABLED = {"status": "Enabled"}, {"status": "Disabled"}


@every_case(
    ("token", "key", "old", "new", "refused"),
    [
        (CLUSTER, "version", "1.35", "1.33", True),
        (CLUSTER, "version", "1.35", "1.34", False),
        (CLUSTER, "version", "1.33", "1.35", True),
        (CLUSTER, "version", "1.34", "1.35", False),
        (CLUSTER, "accessConfig", mode("API"), mode("CONFIG_MAP"), True),
        (CLUSTER, "accessConfig", mode("CONFIG_MAP"), mode("API"), False),
        (NODES, "version", "1.35", "1.33", True),
        (NODES, "version", "1.35", "1.34", False),
        (NODES, "version", "1.33", "1.35", False),
        (TABLES, "ttl", lasting("expires"), lasting("gone_at"), True),
        (TABLES, "ttl", lasting("expires"), lasting("expires", enabled=False), False),
        (VERSIONING, "versioningConfiguration", ENABLED, DISABLED, True),
    ],
)
def test_a_step_that_aws_does_not_take_is_refused(
    token: str, key: str, old: Any, new: Any, refused: bool
) -> None:
    found = list(changing.refusals(one(token, **{key: old}), one(token, **{key: new})))
    assert bool(found) == refused, found


# What is left beside: nothing, where the resource protects itself.
LEFT: dict[str, tuple[Wanted, list[Wanted]]] = {
    "a protected table": (one(TABLES, "t", deletionProtectionEnabled=True), []),
    "a VPC with a subnet": (one("ec2/vpc:Vpc", HERE), [subnet()]),
    "a subnet of a balancer": (subnet(), [balancer()]),
    "a group of a listener": (one(TARGETS, GROUP_ARN), [one(LISTENER, defaultActions=[{"targetGroupArn": GROUP_ARN}])]),
    "a rule with a target": (one("cloudwatch/eventRule:EventRule", "r", name="r"), [one("cloudwatch/eventTarget:EventTarget", rule="r")]),
    "a cluster with nodes": (one(CLUSTER, "c", name="c"), [one(NODES, clusterName="c")]),
    "a role with a policy of its own": (one(ROLES, "r", name="r"), [one("iam/rolePolicy:RolePolicy", role="r")]),
    "a policy that is attached": (one("iam/policy:Policy", POLICY), [one("iam/rolePolicyAttachment:RolePolicyAttachment", policyArn=POLICY)]),
    "a gateway before a NAT gateway's address": (one(GATEWAYS, "igw-1", vpcId=HERE), [subnet(), one(NAT, "nat-1", subnetId="subnet-1")]),
    "a gateway before a public balancer": (one(GATEWAYS, "igw-1", vpcId=HERE), [subnet(), balancer()]),
    "a bucket with an object": (one("s3/bucket:Bucket", "b", bucket="b"), [one("s3/bucketObjectv2:BucketObjectv2", bucket="b", key="k")]),
}  # fmt: skip


@every_case("kind", LEFT)
def test_what_is_protected_or_held_is_not_deleted(kind: str) -> None:
    leaving, others = LEFT[kind]
    assert list(changing.deletion_refusals(leaving, others))


@every_case("kind", list(LEFT)[1:])
def test_what_nothing_holds_is_deleted(kind: str) -> None:
    leaving, _ = LEFT[kind]
    assert list(changing.deletion_refusals(leaving, [one("ec2/vpc:Vpc", THERE)])) == []


def test_a_gateway_that_nothing_public_needs_is_detached() -> None:
    gateway, _ = LEFT["a gateway before a public balancer"]
    private = one(NAT, subnetId="subnet-1", connectivityType="private")
    assert (
        list(changing.deletion_refusals(gateway, [subnet(), balancer(internal=True), private]))
        == []
    )


def test_a_bucket_that_is_emptied_first_is_deleted() -> None:
    bucket, held = LEFT["a bucket with an object"]
    emptied = replace(bucket, inputs={**bucket.inputs, "forceDestroy": True})
    assert list(changing.deletion_refusals(emptied, held)) == []


def test_the_provider_keeps_what_others_hold(tmp_path: Path) -> None:
    provider = AwsProvider(Aws(), ResourceStore(tmp_path))
    vpc, inner = "aws:ec2/vpc:Vpc", f"aws:{SUBNET}"
    provider.store.put(vpc, HERE, {"cidrBlock": "10.0.0.0/16"})
    provider.store.put(inner, "subnet-1", dict(subnet().inputs))
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
