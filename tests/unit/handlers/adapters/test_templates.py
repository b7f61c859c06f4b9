"""What an instance was launched as and would be: what a template says beyond its image, and what
EC2 compares of an instance and an image."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from moto import mock_aws

from core.ground.naming import managed_tag
from core.incidents.observation import cluster_ownership
from core.rotation.plan import Launched, why_outdated, why_unknown
from handlers.adapters.templates import AwsTemplates

PREFIX, GROUP = "test-orders", "test-orders-broker-a"


class Account:
    """One group of one instance, and its launch template."""

    def __init__(self) -> None:
        self.ec2: Any = boto3.client("ec2", region_name="us-east-1")
        self.groups: Any = boto3.client("autoscaling", region_name="us-east-1")
        self.images = [
            str(self.ec2.register_image(Name=name, RootDeviceName="/dev/xvda")["ImageId"])
            for name in ("node-1", "node-2")
        ]
        self.data = {"ImageId": self.images[0], "InstanceType": "m7i.large", "UserData": "YQ=="}
        made = self.ec2.create_launch_template(LaunchTemplateName="t", LaunchTemplateData=self.data)
        self.template = made["LaunchTemplate"]["LaunchTemplateId"]
        self.group(LaunchTemplate={"LaunchTemplateId": self.template, "Version": "1"})

    def group(self, **launching: Any) -> None:
        self.groups.create_auto_scaling_group(
            AutoScalingGroupName=GROUP,
            **launching,
            MinSize=1,
            MaxSize=1,
            AvailabilityZones=["us-east-1a"],
            Tags=[{"Key": managed_tag(PREFIX), "Value": "", "PropagateAtLaunch": True}],
        )

    def next_version(self, **changed: str) -> None:
        self.ec2.create_launch_template_version(
            LaunchTemplateId=self.template, LaunchTemplateData={**self.data, **changed}
        )
        self.groups.update_auto_scaling_group(
            AutoScalingGroupName=GROUP,
            LaunchTemplate={"LaunchTemplateId": self.template, "Version": "2"},
        )

    def launched(self) -> Launched:
        (found,) = AwsTemplates("us-east-1").launched_instances(cluster_ownership(PREFIX)).values()
        return found


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "testing")
    with mock_aws():
        yield Account()


def test_ec2_is_asked_about_no_more_instances_than_a_filter_takes() -> None:
    templates, asked = AwsTemplates.__new__(AwsTemplates), list[int]()

    def paginate(Filters: Any) -> list[dict[str, Any]]:  # noqa: N803 - boto3's
        asked.append(len(Filters[0]["Values"]))
        return []

    templates._ec2 = Mock(**{"get_paginator.return_value.paginate": paginate})
    templates._running(f"i-{number}" for number in range(205))
    assert asked == [200, 5]


def test_another_image_alone_leaves_the_rest_of_the_template_as_it_was(account: Account) -> None:
    account.next_version(ImageId=account.images[1])
    found = account.launched()
    assert found.present.beyond_image == found.wanted.beyond_image
    assert found.wanted.image_id == account.images[1]
    has, needs = found.present.traits or {}, found.wanted.traits or {}
    assert has.keys() == needs.keys()
    assert has["platform"] == needs["platform"] == "Linux"
    assert found.managed is False
    assert "image " in (why_outdated(found, "v1.35.0", "1.35") or "")


def test_other_user_data_is_seen_beyond_the_image(account: Account) -> None:
    account.next_version(UserData="Yg==")
    found = account.launched()
    assert found.present.beyond_image != found.wanted.beyond_image
    assert "version 1 instead of 2" in (why_outdated(found, "v1.35.0", "1.35") or "")


def test_a_version_that_says_the_same_makes_nobody_outdated(account: Account) -> None:
    account.next_version()
    assert why_outdated(account.launched(), "v1.35.0", "1.35") is None


def test_a_group_of_several_types_has_its_template_in_its_policy(account: Account) -> None:
    named = {"LaunchTemplateId": account.template, "Version": "1"}
    types = [{"InstanceType": "m7i.large"}, {"InstanceType": "m7g.large"}]
    policy = {"LaunchTemplate": {"LaunchTemplateSpecification": named, "Overrides": types}}
    account.groups.delete_auto_scaling_group(AutoScalingGroupName=GROUP, ForceDelete=True)
    account.group(MixedInstancesPolicy=policy)
    found = account.launched()
    assert found.wanted.template_id == account.template
    assert found.wanted.instance_type is None  # It takes any of them.
    assert why_outdated(found, "v1.35.0", "1.35") is None


def test_a_group_of_a_launch_configuration_is_known_by_its_name(account: Account) -> None:
    account.groups.create_launch_configuration(
        LaunchConfigurationName="kafka-1", ImageId=account.images[0], InstanceType="m7i.large"
    )
    account.groups.delete_auto_scaling_group(AutoScalingGroupName=GROUP, ForceDelete=True)
    account.group(LaunchConfigurationName="kafka-1")
    found = account.launched()
    assert found.present.configuration == found.wanted.configuration == "kafka-1"
    assert why_unknown(found) is None


def test_an_image_that_is_not_to_be_seen_has_no_traits(account: Account) -> None:
    account.next_version(ImageId="ami-0000000000000000f")
    assert account.launched().wanted.traits is None
