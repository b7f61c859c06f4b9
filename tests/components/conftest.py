"""A twin with more language hosts beside the engine: `make test-components` builds them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from local import environment
from local import twin as twins
from local.tools import tool_path
from local.twin import Twin
from tests.integration.nodes import make_subnets

HOSTS = Path(__file__).with_name("language_host")
YAML_HOST = "pulumi-language-yaml"
GROUPS = ("kafka-us-east-1a", "kafka-us-east-1b")


@pytest.fixture(scope="session")
def twin() -> Iterator[Twin]:
    """A running twin whose engine runs programs in YAML, too."""
    with twins.running(lambda _sentence: None) as running:
        running.environment()  # puts the engine's folder there
        # A file of its own: it looks for Python's host beside where it really stands.
        shutil.copy2(tool_path(YAML_HOST), running.place.path("bin") / YAML_HOST)
        yield running


@pytest.fixture(scope="session")
def languages(twin: Twin) -> Twin:
    """The twin, whose engine runs programs in Go and TypeScript, too."""
    folder = twin.place.path("bin")
    built = folder / "pulumi-language-go"
    subprocess.run(["go", "build", "-trimpath", "-o", built, "."], cwd=HOSTS, check=True)
    shutil.copy2(built, folder / "pulumi-language-nodejs")
    return twin


@pytest.fixture
def groups(twin: Twin) -> Iterator[Any]:
    """The groups of the examples, which are somebody else's; ask it for one's hooks."""
    scaling, ec2 = twin.aws("autoscaling"), twin.aws("ec2")
    data = {"ImageId": ec2.describe_images()["Images"][0]["ImageId"], "InstanceType": "m7g.large"}
    ec2.create_launch_template(LaunchTemplateName="kafka", LaunchTemplateData=data)
    for group in GROUPS:
        scaling.create_auto_scaling_group(
            AutoScalingGroupName=group,
            LaunchTemplate={"LaunchTemplateName": "kafka"},
            MinSize=0,
            MaxSize=2,
            AvailabilityZones=[group.removeprefix("kafka-")],
        )

    def hooks() -> list[list[str]]:
        found = (scaling.describe_lifecycle_hooks(AutoScalingGroupName=each) for each in GROUPS)
        return [sorted(h["LifecycleHookName"] for h in each["LifecycleHooks"]) for each in found]

    yield hooks
    for group in GROUPS:
        scaling.delete_auto_scaling_group(AutoScalingGroupName=group, ForceDelete=True)
    ec2.delete_launch_template(LaunchTemplateName="kafka")


@pytest.fixture(scope="session")
def eks(twin: Twin) -> Mapping[str, Any]:
    """An EKS cluster that is somebody else's: what of it BrokerNodes is given."""
    ec2, subnets = twin.aws("ec2"), make_subnets(twin)
    vpc = ec2.describe_subnets(SubnetIds=[subnets["a"]])["Subnets"][0]["VpcId"]
    group = ec2.create_security_group(GroupName="shop", Description="shop", VpcId=vpc)
    made = twin.aws("eks").create_cluster(
        name="shop",
        roleArn=f"arn:aws:iam::{environment.ACCOUNT}:role/shop",
        resourcesVpcConfig={"subnetIds": list(subnets.values())},
    )["cluster"]
    # Where whatever is not Kafka runs.
    twin.aws("eks").create_nodegroup(
        clusterName="shop",
        nodegroupName="workers",
        subnets=[subnets["b"]],
        nodeRole=f"arn:aws:iam::{environment.ACCOUNT}:role/shop",
        scalingConfig={"minSize": 1, "maxSize": 1, "desiredSize": 1},
    )
    return {
        "endpoint": made["endpoint"],
        "certificateAuthority": made["certificateAuthority"]["data"],
        "subnetIds": {f"{environment.REGION}{letter}": subnets[letter] for letter in "ab"},
        "securityGroupIds": [group["GroupId"]],
        "imageId": ec2.describe_images()["Images"][0]["ImageId"],
    }
