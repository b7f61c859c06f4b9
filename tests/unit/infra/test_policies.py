"""Every policy document of every layer: no wildcard, nothing without TLS, nothing public."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi_aws as aws
import pytest

import infra
from infra.buckets import bucket_name
from infra.iam import NAMES_NO_ACCOUNT, managed_policy
from tests.unit.infra.recording import ACCOUNT, Recorded, Resource
from tests.unit.infra.variants import VARIANTS
from tests.unit.infra.variants import recorded as recorded_variant

INFRA = Path(infra.__path__[0])
# The calls that IAM cannot narrow to a resource.
WITHOUT_RESOURCE = {
    "autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeAutoScalingInstances",
    "autoscaling:DescribeLaunchConfigurations", "autoscaling:DescribeLifecycleHooks",
    "autoscaling:DescribeScalingActivities", "autoscaling:DescribeTags",
    "ec2:DescribeAvailabilityZones", "ec2:DescribeCapacityReservations", "ec2:DescribeImages",
    "ec2:DescribeInstanceStatus", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances", "ec2:DescribeLaunchTemplateVersions", "ec2:DescribeLaunchTemplates",
    "ec2:DescribeNetworkInterfaces", "ec2:DescribePlacementGroups",
    "ec2:DescribeReplaceRootVolumeTasks", "ec2:DescribeSecurityGroups", "ec2:DescribeSnapshots",
    "ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets", "cloudwatch:GetMetricData",
    "ec2:DescribeVolumes", "ec2:DescribeVolumesModifications", "ec2:DescribeVpcs",
    "ec2:GetInstanceTypesFromInstanceRequirements", "elasticloadbalancing:DescribeTargetGroups",
    "elasticloadbalancing:DescribeTargetHealth", "iam:ListInstanceProfiles", "pricing:GetProducts",
}  # fmt: skip
# What belongs to no account, or is public: its ARN has none.
WITHOUT_ACCOUNT = ("::image/", "::snapshot/")
RESOURCE_POLICIES = ("sqs/queuePolicy:QueuePolicy", "s3/bucketPolicy:BucketPolicy")


@pytest.fixture(scope="module")
def layers(layers: dict[str, Recorded]) -> dict[str, Recorded]:
    """The layers, and those of every other shape of cluster, by layer and shape."""
    others = {
        f"{layer} of {name}": recorded
        for name in VARIANTS
        if name != "asg"
        for layer, recorded in recorded_variant(name).items()
    }
    return {**layers, **others}


def role_policies(layers: dict[str, Recorded]) -> Iterator[Resource]:
    for recorded in layers.values():
        yield from recorded.of("iam/rolePolicy:RolePolicy")


def test_a_role_names_its_calls_and_resources_of_this_account(layers: dict[str, Recorded]) -> None:
    for policy in role_policies(layers):
        for statement in policy.policy_statements:
            assert not [a for a in statement["Action"] if "*" in a], policy.name
            if "*" in statement["Resource"] and statement["Effect"] == "Allow":
                assert set(statement["Action"]) <= WITHOUT_RESOURCE, policy.name
            for resource in statement["Resource"]:
                free = resource == "*" or any(part in resource for part in WITHOUT_ACCOUNT)
                # S3's ARNs have none either: our buckets' names end with it.
                ours = ":123456789012:" in resource or "-123456789012/" in f"{resource}/"
                assert free or ours, policy.name


def test_the_reason_for_a_wildcard_stands_beside_it() -> None:
    used = 0
    for path in sorted(INFRA.rglob("*.py")):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            if "iam.ANY_RESOURCE" in line:
                used += 1
                assert lines[number - 1].lstrip().startswith("#"), f"{path.name}:{number + 1}"
    # By any other way than this constant it would be found nowhere.
    assert used
    star = re.compile(r"resources=[\[(]\s*\"\*\"")
    others = [p for p in INFRA.rglob("*.py") if p.name != "iam.py"]
    assert not [p.name for p in others if star.search(p.read_text())]


def test_queues_and_buckets_refuse_what_comes_without_tls(layers: dict[str, Recorded]) -> None:
    for recorded in layers.values():
        for type_ in RESOURCE_POLICIES:
            for policy in recorded.of(type_):
                denied = [s for s in policy.policy_statements if s["Effect"] == "Deny"]
                assert denied[0]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
                assert denied[0]["Principal"] == "*"


def test_the_bill_is_versioned_encrypted_and_private(layers: dict[str, Recorded]) -> None:
    analytics = layers["analytics"]
    assert analytics.outputs["billing_bucket"] == "test-orders-billing-123456789012"
    versioning = analytics.one("s3/bucketVersioning:BucketVersioning").inputs
    assert versioning["versioningConfiguration"]["status"] == "Enabled"
    block = analytics.one("s3/bucketPublicAccessBlock:BucketPublicAccessBlock").inputs
    assert {key: value for key, value in block.items() if key != "bucket"} == {
        "blockPublicAcls": True,
        "blockPublicPolicy": True,
        "ignorePublicAcls": True,
        "restrictPublicBuckets": True,
    }
    assert analytics.of(
        "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
    )


def test_what_runs_leave_behind_expires_and_the_tables_do_not(layers: dict[str, Recorded]) -> None:
    lifecycle = layers["analytics"].one(
        "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
    )
    rules = {rule["id"]: rule for rule in lifecycle.inputs["rules"]}
    everything = rules.pop("old-versions")
    assert everything["noncurrentVersionExpiration"] == {"noncurrentDays": 90}
    assert everything["expiration"] == {"expiredObjectDeleteMarker": True}
    assert everything["filter"] == {"prefix": ""}
    expiring = [rule for rule in rules.values() if rule.get("expiration", {}).get("days")]
    expected = {"tables/runs/": 30, "logs/": 90, "metrics/hour-": 120}
    assert {rule["filter"]["prefix"]: rule["expiration"]["days"] for rule in expiring} == expected
    assert all(rule["noncurrentVersionExpiration"] == {"noncurrentDays": 1} for rule in expiring)


def test_an_idle_spark_application_stops_and_is_bounded(layers: dict[str, Recorded]) -> None:
    application = layers["analytics"].one("emrserverless/application:Application").inputs
    assert application["autoStopConfiguration"]["enabled"]
    assert application["maximumCapacity"]["cpu"] == "64 vCPU"


def test_a_bucket_name_fits_and_stays_apart_from_its_neighbours() -> None:
    long = "a" * 30 + "-" + "b" * 31
    names = {bucket_name(long, "billing", account) for account in ("123456789012", "210987654321")}
    assert len(names) == 2
    assert all(len(name) <= 63 for name in names)


def test_a_service_assumes_our_roles_for_what_it_names_alone(layers: dict[str, Recorded]) -> None:
    named: dict[str, set[str]] = {}
    for layer in layers.values():
        for role in layer.of("iam/role:Role"):
            (statement,) = json.loads(role.inputs["assumeRolePolicy"])["Statement"]
            ((kind, service),) = statement["Principal"].items()
            assert kind == "Service", role.name
            conditions = statement.get("Condition", {})
            equal = dict(conditions.get("StringEquals", {}))
            if service not in NAMES_NO_ACCOUNT:
                assert equal.pop("aws:SourceAccount") == ACCOUNT, role.name
            # EMR Serverless names the account, and no application.
            if service not in {*NAMES_NO_ACCOUNT, "emr-serverless.amazonaws.com"}:
                tags = {key.removeprefix("aws:RequestTag/"): value for key, value in equal.items()}
                sources = conditions.get("ArnLike", {}).get("aws:SourceArn", tags)
                assert sources, f"{role.name}: {service} names what it acts for"
                named.setdefault(service, set()).add(str(sources))
    ours = f":us-east-1:{ACCOUNT}:"
    assert named["eks.amazonaws.com"] == {f"arn:aws:eks{ours}cluster/test-orders"}
    assert named["dlm.amazonaws.com"] == {f"arn:aws:dlm{ours}policy/*"}
    assert named["scheduler.amazonaws.com"] == {f"arn:aws:scheduler{ours}schedule-group/default"}
    pods = named["pods.eks.amazonaws.com"]
    assert all("'eks-cluster-name': 'test-orders'" in each for each in pods)
    assert len(pods) > 2, "each service account has a role of its own"


def test_no_policy_of_ours_lets_keys_be_granted_further(layers: dict[str, Recorded]) -> None:
    for layer in layers.values():
        for resource in layer.resources:
            text = resource.inputs.get("policy")
            for statement in json.loads(text)["Statement"] if isinstance(text, str) else ():
                said = json.dumps(statement.get("Action"))
                granting = '"kms:CreateGrant"' in said or '"kms:*"' in said
                root = str(statement.get("Principal", {})).endswith(":root'}")
                assert not granting or root, (resource.name, statement)


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_a_policy_names_its_partition(partition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws, "get_partition", lambda **_: SimpleNamespace(partition=partition))
    nobody: Any = None
    expected = f"arn:{partition}:iam::aws:policy/AmazonEKSClusterPolicy"
    assert managed_policy("AmazonEKSClusterPolicy", nobody) == expected


@pytest.mark.parametrize("layer", ["kafka", "operations"])
def test_an_access_entry_goes_with_its_role(layers: dict[str, Recorded], layer: str) -> None:
    entries = layers[layer].of("eks/accessEntry:AccessEntry")
    roles = {role.inputs["name"] for role in layers[layer].of("iam/role:Role")}
    assert entries
    for entry in entries:
        name = entry.inputs["principalArn"].rpartition("/")[2]
        assert name in roles
        assert entry.replacement_trigger == f"AROA-{name}"
        assert entry.delete_before_replace
