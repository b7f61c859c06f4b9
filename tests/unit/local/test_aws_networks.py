"""What the twin answers about a VPC that is already there, and how it keeps an add-on."""

from collections.abc import Iterator

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local.kubernetes import crds
from local.pulumi.aws_adapter import Aws
from local.pulumi.aws_ec2 import DefaultSecurityGroupAdapter
from local.pulumi.aws_eks import AddonAdapter
from local.pulumi.aws_invokes import answer
from local.pulumi.aws_rows import ROWS, RowAdapter
from local.pulumi.provider import Existing, Resource

URN = "urn:pulumi:local-foundation::stillwater::aws:eks/addon:Addon::cluster-addon-coredns"

LIFECYCLE_TYPE = "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
LIFECYCLE = RowAdapter(f"aws:{LIFECYCLE_TYPE}", ROWS[LIFECYCLE_TYPE])


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield Aws()


def test_a_program_may_look_at_a_vpc_and_its_subnets(aws: Aws) -> None:
    ec2 = boto3.client("ec2", region_name="us-east-1")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24", AvailabilityZone="us-east-1b")[
        "Subnet"
    ]["SubnetId"]
    found = answer(aws, "aws:ec2/getVpc:getVpc", {"id": vpc})
    assert found["cidrBlock"] == "10.9.0.0/16"
    assert (found["enableDnsHostnames"], found["enableDnsSupport"]) == (True, True)
    inside = answer(aws, "aws:ec2/getSubnet:getSubnet", {"id": subnet})
    assert (inside["vpcId"], inside["availabilityZone"]) == (vpc, "us-east-1b")


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


def test_a_bucket_forgets_old_versions_until_the_setting_goes(aws: Aws) -> None:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="bills")
    rule = {
        "id": "old-versions",
        "status": "Enabled",
        "filter": {"prefix": ""},
        "noncurrentVersionExpiration": {"noncurrentDays": 90},
    }
    inputs = {"bucket": "bills", "rules": [rule]}
    made = LIFECYCLE.create(aws, Resource(URN), inputs)
    (kept,) = s3.get_bucket_lifecycle_configuration(Bucket="bills")["Rules"]
    assert (kept["ID"], kept["NoncurrentVersionExpiration"]) == (
        "old-versions",
        {"NoncurrentDays": 90},
    )
    LIFECYCLE.delete(aws, Existing(Resource(URN), made.id, inputs, {}))
    with pytest.raises(ClientError, match="lifecycle configuration"):
        s3.get_bucket_lifecycle_configuration(Bucket="bills")


def test_an_addon_keeps_the_version_it_was_given_and_takes_the_next(aws: Aws) -> None:
    inputs = {"clusterName": "orders", "addonName": "coredns", "addonVersion": "v1"}
    made = AddonAdapter().create(aws, Resource(URN), inputs)
    assert made.id == "orders:coredns"
    assert made.outputs["addonVersion"] == "v1"
    existing = Existing(Resource(URN), made.id, inputs, {**inputs, **made.outputs})
    assert AddonAdapter().update(aws, existing, {**inputs, "addonVersion": "v2"}) == {
        "addonVersion": "v2"
    }


def test_the_snapshot_kinds_are_named_as_the_api_server_demands() -> None:
    definitions = crds.snapshot_definitions()
    assert len(definitions) == 3
    for definition in definitions:
        names = definition["spec"]["names"]
        assert definition["metadata"]["name"] == f"{names['plural']}.snapshot.storage.k8s.io"
        # Kinds under k8s.io are refused without it.
        assert "api-approved.kubernetes.io" in definition["metadata"]["annotations"]
