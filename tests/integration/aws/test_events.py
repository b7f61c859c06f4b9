"""What EventBridge says in the twin, and that a broken target is nobody else's trouble."""

import json
from typing import Any

import pytest

pytestmark = pytest.mark.integration


def put(cloud: Any, source: str) -> None:
    cloud.events.put_events(
        Entries=[{"Source": source, "DetailType": "Test", "Detail": json.dumps({"n": 1})}]
    )


def test_the_envelope_names_the_account_and_the_instance_changes_state(cloud: Any) -> None:
    listener = cloud.listen({"source": ["aws.ec2", "aws.autoscaling"]})
    group = cloud.group(cloud.network(), "drain", "gate")
    (instance,) = cloud.members(group)
    cloud.terminate(instance)
    for hook in ("drain", "gate"):
        cloud.complete(group, hook, instance)
    cloud.eventually(lambda: instance not in cloud.members(group))
    found = cloud.received(listener)
    assert {event["account"] for event in found} == {"123456789012"}
    states = [
        event["detail"]["state"]
        for event in found
        if event["detail"].get("instance-id") == instance
    ]
    assert states == ["pending", "running", "shutting-down", "terminated"]
    asg = [event for event in found if event["detail"].get("EC2InstanceId") == instance]
    assert [event["detail-type"] for event in asg] == [
        "EC2 Instance Launch Successful",
        "EC2 Instance-terminate Lifecycle Action",
        "EC2 Instance-terminate Lifecycle Action",
        "EC2 Instance Terminate Successful",
    ]
    drain, gate = (event["detail"] for event in asg[1:3])
    assert (drain["Origin"], drain["Destination"]) == ("AutoScalingGroup", "EC2")
    assert drain["LifecycleActionToken"] != gate["LifecycleActionToken"]


def test_a_disabled_rule_delivers_nothing(cloud: Any) -> None:
    source = cloud.name("source")
    queue = cloud.queue()
    target = {"Id": "q", "Arn": cloud.queue_arn(queue)}
    rule = cloud.rule({"source": [source]}, target, state="DISABLED")
    put(cloud, source)
    assert cloud.received(queue) == []
    cloud.events.enable_rule(Name=rule)
    put(cloud, source)
    assert len(cloud.received(queue)) == 1


def test_a_missing_target_fails_alone_and_leaves_its_event_to_the_dead_letters(cloud: Any) -> None:
    source = cloud.name("source")
    good, dead = cloud.queue(), cloud.queue()
    cloud.rule(
        {"source": [source]},
        {
            "Id": "gone",
            "Arn": "arn:aws:sqs:us-east-1:123456789012:never-made",
            "DeadLetterConfig": {"Arn": cloud.queue_arn(dead)},
        },
        {"Id": "no", "Arn": "arn:aws:lambda:us-east-1:123456789012:function:never-made"},
        {"Id": "good", "Arn": cloud.queue_arn(good)},
    )
    put(cloud, source)
    assert len(cloud.received(good)) == 1
    assert len(cloud.received(dead)) == 1
