"""cli.doctor.account: what AWS says, in core's words; what is absent is absent, not an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from cli.doctor.account import LiveAccount
from cli.target import Target
from core.checks.balancing import name_in
from core.checks.expected import expectation_of
from core.checks.facts import Alarm, Queue, hook_of
from core.model.nodes import LifecycleHook
from tests.unit.infra.programs import spec

REGION = "us-east-1"
SPEC = spec()
EXPECTED = expectation_of(SPEC, ["test-orders-sweep-silent", "test-orders-mute"])
GROUP = "test-orders-broker-a"


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield boto3.Session("key", "secret", region_name=REGION)


def read(session: boto3.Session) -> dict[str, Mapping[str, Any]]:
    account = LiveAccount(Target(SPEC, session), EXPECTED)
    return {part: found for _, reader in account.readers() for part, found in reader()}


def subnet(session: boto3.Session) -> str:
    ec2 = session.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/20", AvailabilityZone="us-east-1b")
    return str(made["Subnet"]["SubnetId"])


def test_an_empty_account_is_read_whole_and_holds_nothing(session: boto3.Session) -> None:
    found = read(session)
    assert set(found) == {
        "groups",
        "hooks",
        "balancers",
        "listeners",
        "target_groups",
        "queues",
        "alarms",
    }
    assert all(members == {} for members in found.values()), found


def test_a_group_stands_in_the_zones_of_its_subnets_whatever_its_tag_says(
    session: boto3.Session,
) -> None:
    scaling = session.client("autoscaling")
    scaling.create_launch_configuration(
        LaunchConfigurationName="l", ImageId="ami-12c6146b", InstanceType="m7g.large"
    )
    scaling.create_auto_scaling_group(
        AutoScalingGroupName=GROUP,
        LaunchConfigurationName="l",
        MinSize=0,
        MaxSize=2,
        VPCZoneIdentifier=subnet(session),
        Tags=[
            {
                "Key": "k8s.io/cluster-autoscaler/node-template/label/topology.kubernetes.io/zone",
                "Value": "us-east-1a",
            }
        ],
    )
    scaling.put_lifecycle_hook(
        AutoScalingGroupName=GROUP,
        LifecycleHookName="drain",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        HeartbeatTimeout=300,
        DefaultResult="CONTINUE",
    )
    scaling.put_lifecycle_hook(
        AutoScalingGroupName=GROUP,
        LifecycleHookName="somebody-elses",
        LifecycleTransition="autoscaling:EC2_INSTANCE_LAUNCHING",
    )
    found = read(session)
    group = found["groups"][GROUP]
    assert (group.zones, group.zone_tag) == (frozenset({"us-east-1b"}), "us-east-1a")
    assert (group.on_abandon, group.healthy_percent) == (None, None)
    # moto answers every hook with a target.
    hooks = {name: replace(hook, target=None) for name, hook in found["hooks"].items()}
    assert hooks == {
        hook_of("drain", GROUP): LifecycleHook(
            name="drain",
            transition="autoscaling:EC2_INSTANCE_TERMINATING",
            default_result="CONTINUE",
            heartbeat_seconds=300,
        )
    }


def test_a_listener_leads_to_a_target_group_by_name(session: boto3.Session) -> None:
    balancing, where = session.client("elbv2"), subnet(session)
    balancer = balancing.create_load_balancer(
        Name="test-orders-nlb", Type="network", Scheme="internal", Subnets=[where]
    )["LoadBalancers"][0]
    group = balancing.create_target_group(
        Name="test-orders-10",
        Protocol="TCP",
        Port=9094,
        VpcId=balancer["VpcId"],
        TargetType="ip",
        HealthCheckIntervalSeconds=30,
    )["TargetGroups"][0]
    balancing.create_listener(
        LoadBalancerArn=balancer["LoadBalancerArn"],
        Protocol="TCP",
        Port=10010,
        DefaultActions=[{"Type": "forward", "TargetGroupArn": group["TargetGroupArn"]}],
    )
    balancing.create_target_group(
        Name="somebody-elses", Protocol="TCP", Port=1, VpcId=balancer["VpcId"]
    )
    found = read(session)
    assert found["balancers"]["test-orders-nlb"].zones == frozenset({"us-east-1b"})
    assert found["listeners"]["10010"].target_group == "test-orders-10"
    assert set(found["target_groups"]) == {"test-orders-10"}
    assert found["target_groups"]["test-orders-10"].interval_seconds == 30


def test_a_queue_without_dead_letters_says_so(session: boto3.Session) -> None:
    sqs = session.client("sqs")
    sqs.create_queue(QueueName="test-orders-nth", Attributes={"VisibilityTimeout": "11"})
    sqs.create_queue(QueueName="test-orders-nth-dlq")
    queues = read(session)["queues"]
    assert queues["test-orders-nth"] == Queue(
        retention_seconds=345_600,
        visibility_seconds=11,
        dead_letters=None,
        max_receive_count=None,
    )
    # Nobody but a person receives there.
    assert queues["test-orders-nth-dlq"].visibility_seconds is None


def test_an_alarm_that_tells_nobody_does_not_act(session: boto3.Session) -> None:
    cloudwatch = session.client("cloudwatch")
    topic = "arn:aws:sns:us-east-1:123456789012:alerts"
    for name, actions in (("sweep-silent", [topic]), ("mute", [])):
        cloudwatch.put_metric_alarm(
            AlarmName=f"test-orders-{name}",
            Namespace="n",
            MetricName="m",
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=0,
            ComparisonOperator="GreaterThanThreshold",
            AlarmActions=actions,
        )
    assert read(session)["alarms"] == {
        "test-orders-sweep-silent": Alarm(acts=True),
        "test-orders-mute": Alarm(acts=False),
    }


def test_a_refusal_is_not_taken_for_absence(
    session: boto3.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = LiveAccount(Target(SPEC, session), EXPECTED)

    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetQueueUrl")

    monkeypatch.setattr(account._sqs, "get_queue_url", refuse)
    with pytest.raises(ClientError):
        account._queues()


def test_a_target_groups_name_is_in_its_arn() -> None:
    arn = "arn:aws:elasticloadbalancing:us-east-1:1:targetgroup/test-orders-10/0123"
    assert name_in(arn) == "test-orders-10"
