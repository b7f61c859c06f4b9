"""How the twin keeps the group that a VPC comes with, and an add-on."""

from collections.abc import Iterator

import pytest
from moto import mock_aws

from local.pulumi.aws_adapter import Aws
from local.pulumi.aws_ec2 import DefaultSecurityGroupAdapter
from local.pulumi.aws_eks import AddonAdapter
from local.pulumi.provider import Existing, Resource

URN = "urn:pulumi:local-foundation::stillwater::aws:eks/addon:Addon::cluster-addon-coredns"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield Aws()


def test_the_group_a_vpc_comes_with_is_emptied_and_left_to_its_vpc(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    inputs = {"vpcId": vpc, "tags": {"team": "streaming"}}
    made = DefaultSecurityGroupAdapter().create(aws, Resource(URN), inputs)
    (group,) = ec2.describe_security_groups(GroupIds=[made.id])["SecurityGroups"]
    assert group["GroupName"] == "default"
    assert (group["IpPermissions"], group["IpPermissionsEgress"]) == ([], [])
    assert group["Tags"] == [{"Key": "team", "Value": "streaming"}]
    DefaultSecurityGroupAdapter().delete(aws, Existing(Resource(URN), made.id, inputs, {}))
    assert ec2.describe_security_groups(GroupIds=[made.id])["SecurityGroups"]


def test_an_addon_keeps_the_version_it_was_given_and_takes_the_next(aws: Aws) -> None:
    inputs = {"clusterName": "orders", "addonName": "coredns", "addonVersion": "v1"}
    made = AddonAdapter().create(aws, Resource(URN), inputs)
    assert made.id == "orders:coredns"
    assert made.outputs["addonVersion"] == "v1"
    existing = Existing(Resource(URN), made.id, inputs, {**inputs, **made.outputs})
    assert AddonAdapter().update(aws, existing, {**inputs, "addonVersion": "v2"}) == {
        "addonVersion": "v2"
    }
