"""The terminate lifecycle of an Auto Scaling group, as handlers and NTH meet it."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

pytestmark = pytest.mark.integration

RETAIN = {"RetentionTriggers": {"TerminateHookAbandon": "retain"}}


def only(members: dict[str, str]) -> str:
    (instance,) = members
    return instance


def test_an_instance_waits_until_both_hooks_say_continue(cloud: Any) -> None:
    group = cloud.group(cloud.network(), "drain", "gate")
    instance = only(cloud.members(group))
    cloud.terminate(instance)
    cloud.complete(group, "drain", instance)
    assert cloud.members(group)[instance] == "Terminating:Wait"
    cloud.complete(group, "gate", instance)
    assert cloud.members(group)[instance] == "Terminating:Proceed"
    cloud.eventually(lambda: instance not in cloud.members(group))
    found = cloud.ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]
    assert (found["State"]["Name"], found["PrivateDnsName"]) == ("terminated", "")


def test_an_abandoned_instance_is_retained_and_released_through_fresh_hooks(cloud: Any) -> None:
    group = cloud.group(cloud.network(), "drain", "gate", InstanceLifecyclePolicy=RETAIN)
    instance = only(cloud.members(group))
    cloud.terminate(instance)
    cloud.complete(group, "gate", instance, "ABANDON")
    assert cloud.members(group)[instance] == "Terminating:Retained"
    cloud.eventually(lambda: "InService" in cloud.members(group).values())
    state = cloud.ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]
    assert state["State"]["Name"] == "running"
    with pytest.raises(ClientError, match="ValidationError"):
        cloud.terminate(instance, decrement=True)
    cloud.terminate(instance)
    assert cloud.members(group)[instance] == "Terminating:Wait"
    for hook in ("drain", "gate"):
        cloud.complete(group, hook, instance)
    cloud.eventually(lambda: list(cloud.members(group).values()) == ["InService"])


def test_a_hook_nobody_answers_takes_its_default_result(cloud: Any) -> None:
    group = cloud.group(cloud.network(), "gate", seconds=1, InstanceLifecyclePolicy=RETAIN)
    instance = only(cloud.members(group))
    cloud.terminate(instance)
    cloud.eventually(lambda: cloud.members(group)[instance] == "Terminating:Retained")


def test_the_replacement_runs_in_the_groups_own_subnet_before_the_old_one_goes(cloud: Any) -> None:
    subnet = cloud.network("c")[0]
    group = cloud.group([subnet], "gate")
    instance = only(cloud.members(group))
    cloud.terminate(instance)
    cloud.eventually(
        lambda: sorted(cloud.members(group).values()) == ["InService", "Terminating:Wait"]
    )
    new = next(iter(cloud.members(group).keys() - {instance}))
    found = cloud.ec2.describe_instances(InstanceIds=[new])["Reservations"][0]["Instances"][0]
    assert (found["SubnetId"], found["Placement"]["AvailabilityZone"]) == (subnet, "us-east-1c")
    assert found["PrivateIpAddress"].startswith(f"10.{cloud.place.number}.")


def test_a_lowered_capacity_goes_through_the_hooks_too(cloud: Any) -> None:
    group = cloud.group(cloud.network(), "gate", MinSize=0)
    cloud.autoscaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=0)
    assert list(cloud.members(group).values()) == ["Terminating:Wait"]


def test_a_deleted_hook_lets_its_instance_go(cloud: Any) -> None:
    group = cloud.group(cloud.network(), "gate", InstanceLifecyclePolicy=RETAIN)
    instance = only(cloud.members(group))
    cloud.terminate(instance)
    cloud.autoscaling.delete_lifecycle_hook(AutoScalingGroupName=group, LifecycleHookName="gate")
    cloud.eventually(lambda: instance not in cloud.members(group))


def test_an_instance_terminated_through_ec2_skips_the_hooks_and_is_replaced(cloud: Any) -> None:
    group = cloud.group(cloud.network(), "drain", "gate")
    instance = only(cloud.members(group))
    cloud.ec2.terminate_instances(InstanceIds=[instance])
    cloud.eventually(
        lambda: (
            instance not in cloud.members(group)
            and list(cloud.members(group).values()) == ["InService"]
        )
    )


def test_a_launch_that_fails_is_announced_and_tried_again(cloud: Any) -> None:
    listener = cloud.listen({"detail-type": ["EC2 Instance Launch Unsuccessful"]})
    group = cloud.group(cloud.network(), size=0, MaxSize=1)
    broken = cloud.template(SecurityGroupIds=["sg-00000000000000000"])
    cloud.autoscaling.update_auto_scaling_group(
        AutoScalingGroupName=group,
        LaunchTemplate={"LaunchTemplateId": broken, "Version": "1"},
        DesiredCapacity=1,
    )
    (event,) = cloud.eventually(lambda: cloud.received(listener))
    assert event["detail"]["EC2InstanceId"] == ""
    assert "sg-00000000000000000" in event["detail"]["StatusMessage"]
    cloud.autoscaling.update_auto_scaling_group(
        AutoScalingGroupName=group,
        LaunchTemplate={"LaunchTemplateId": cloud.template(), "Version": "1"},
    )
    cloud.eventually(lambda: list(cloud.members(group).values()) == ["InService"])


def test_instances_spread_over_the_subnets_and_share_no_address(cloud: Any) -> None:
    group = cloud.group(cloud.network("abc"), "gate")
    found = [
        instance
        for reservation in cloud.ec2.describe_instances(InstanceIds=list(cloud.members(group)))[
            "Reservations"
        ]
        for instance in reservation["Instances"]
    ]
    assert {entry["Placement"]["AvailabilityZone"] for entry in found} == {
        "us-east-1a",
        "us-east-1b",
        "us-east-1c",
    }
    assert len({entry["PrivateDnsName"] for entry in found}) == 3


def test_tags_of_template_and_group_reach_the_instance_and_the_group_wins(cloud: Any) -> None:
    template = cloud.template(
        TagSpecifications=[
            {
                "ResourceType": "instance",
                "Tags": [{"Key": "from", "Value": "template"}, {"Key": "pool", "Value": "broker"}],
            }
        ],
        UserData="aGVsbG8=",
    )
    group = cloud.group(
        cloud.network(),
        LaunchTemplate={"LaunchTemplateId": template, "Version": "1"},
        Tags=[
            {"Key": "from", "Value": "group", "PropagateAtLaunch": True},
            {"Key": "secret", "Value": "x", "PropagateAtLaunch": False},
        ],
    )
    instance = only(cloud.members(group))
    found = cloud.ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]
    tags = {tag["Key"]: tag["Value"] for tag in found["Tags"]}
    assert (tags["from"], tags["pool"], "secret" in tags) == ("group", "broker", False)
    data = cloud.ec2.describe_instance_attribute(InstanceId=instance, Attribute="userData")
    assert data["UserData"]["Value"] == "aGVsbG8="


def test_policies_and_hooks_read_back_as_they_were_put(cloud: Any) -> None:
    queue = cloud.queue()
    group = cloud.group(
        cloud.network(),
        InstanceMaintenancePolicy={"MinHealthyPercentage": 100, "MaxHealthyPercentage": 200},
        InstanceLifecyclePolicy=RETAIN,
    )
    cloud.autoscaling.put_lifecycle_hook(
        AutoScalingGroupName=group,
        LifecycleHookName="drain",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        HeartbeatTimeout=600,
        DefaultResult="ABANDON",
        NotificationTargetARN=cloud.queue_arn(queue),
        RoleARN="arn:aws:iam::123456789012:role/notify",
        NotificationMetadata="broker",
    )
    (hook,) = cloud.autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=group)[
        "LifecycleHooks"
    ]
    assert hook["NotificationTargetARN"] == cloud.queue_arn(queue)
    assert (hook["RoleARN"], hook["NotificationMetadata"], hook["GlobalTimeout"]) == (
        "arn:aws:iam::123456789012:role/notify",
        "broker",
        60_000,
    )
    (found,) = cloud.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group])[
        "AutoScalingGroups"
    ]
    assert found["InstanceMaintenancePolicy"]["MaxHealthyPercentage"] == 200
    assert found["InstanceLifecyclePolicy"] == RETAIN
    assert [body["Event"] for body in cloud.received(queue)] == ["autoscaling:TEST_NOTIFICATION"]
    cloud.terminate(only(cloud.members(group)))
    (notice,) = cloud.received(queue)
    assert (notice["LifecycleHookName"], notice["NotificationMetadata"]) == ("drain", "broker")


def test_a_group_that_retains_cannot_be_deleted_by_force(cloud: Any) -> None:
    group = cloud.group(cloud.network(), "gate", InstanceLifecyclePolicy=RETAIN)
    with pytest.raises(ClientError, match="ResourceInUse"):
        cloud.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=group)
    with pytest.raises(ClientError, match="retention trigger is set to retain"):
        cloud.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=group, ForceDelete=True)
    cloud.autoscaling.update_auto_scaling_group(
        AutoScalingGroupName=group,
        InstanceLifecyclePolicy={"RetentionTriggers": {"TerminateHookAbandon": "terminate"}},
    )
    instance = only(cloud.members(group))
    cloud.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=group, ForceDelete=True)
    assert cloud.members(group)[instance] == "Terminating:Wait"
    cloud.complete(group, "gate", instance, "ABANDON")
    cloud.eventually(
        lambda: (
            not cloud.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group])[
                "AutoScalingGroups"
            ]
        )
    )


def test_activities_and_journal_tell_what_happened(cloud: Any) -> None:
    group = cloud.group(cloud.network(), "gate")
    instance = only(cloud.members(group))
    cloud.terminate(instance)
    found = cloud.autoscaling.describe_scaling_activities(AutoScalingGroupName=group)["Activities"]
    assert [(entry["Description"].split(":")[0], entry["StatusCode"]) for entry in found] == [
        ("Launching a new EC2 instance", "PreInService"),
        ("Terminating EC2 instance", "MidTerminatingLifecycleAction"),
        ("Launching a new EC2 instance", "Successful"),
    ]
    cloud.complete(group, "gate", instance)
    cloud.eventually(lambda: cloud.facts("instance_terminated", instance=instance))
    for event in ("instance_launched", "terminate_called", "lifecycle_action", "hook_completed"):
        assert len(cloud.facts(event, instance=instance)) == 1, event
