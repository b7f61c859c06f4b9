"""handlers.adapters.aws: groups, hooks, root volumes and checks as EC2 tells and refuses."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError
from botocore.parsers import ResponseParserError
from botocore.stub import Stubber
from moto import mock_aws

from core.ground.naming import INCIDENT_TAG
from core.incidents.actions import HookResult
from core.incidents.observation import GroupView, RootTask, cluster_ownership
from handlers.adapters import templates
from handlers.adapters.aws import AwsCloud, Queue, _status, tick_message
from handlers.adapters.templates import RootVolumes
from tests.every_case import every_case

REGION = "us-east-1"
TAG = "aws-node-termination-handler/local-orders"


@pytest.fixture(scope="module", autouse=True)
def credentials() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("AWS_ENDPOINT_URL", raising=False)
        environment.setenv("AWS_ACCESS_KEY_ID", "testing")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        yield


@pytest.fixture(scope="module")
def group(credentials: None) -> Iterator[str]:
    with mock_aws():
        ec2 = boto3.client("ec2", region_name=REGION)
        ec2.create_launch_template(
            LaunchTemplateName="template",
            LaunchTemplateData={"ImageId": "ami-0123456789abcdef0", "InstanceType": "m7i.large"},
        )
        boto3.client("autoscaling", region_name=REGION).create_auto_scaling_group(
            AutoScalingGroupName="g",
            LaunchTemplate={"LaunchTemplateName": "template", "Version": "1"},
            MinSize=1,
            MaxSize=4,
            DesiredCapacity=2,
            AvailabilityZones=["us-east-1a"],
            Tags=[{"Key": TAG, "Value": "true", "PropagateAtLaunch": True}],
        )
        yield "g"


def test_a_group_and_its_instances_are_seen(group: str) -> None:
    cloud = AwsCloud(REGION)
    seen = cloud.group(group)
    assert (seen.desired, seen.maximum, seen.zones) == (2, 4, ("us-east-1a",))
    assert seen.staying() == set(seen.instances)
    assert cloud.groups_of(cluster_ownership("local-orders")) == (seen,)
    assert cloud.groups_of(cluster_ownership("another")) == ()
    assert cloud.group("none") is None
    one = min(seen.instances)
    instance = cloud.instance(one)
    assert (instance.state, instance.zone, instance.group) == ("running", "us-east-1a", "g")
    assert TAG in instance.tags
    assert instance.private_dns_name
    for unknown in ("i-0123456789abcdef0", "i-nonsense"):
        assert cloud.instance(unknown) is None
    cloud.protect(group, [one], protected=True)
    assert cloud.group(group).protected == {one}
    cloud.protect(group, [one], protected=False)
    cloud.protect(group, [], protected=False)


def test_the_desired_capacity_is_set_to_a_number(group: str) -> None:
    cloud = AwsCloud(REGION)
    cloud.set_desired(group, 3)
    cloud.set_desired(group, 3)
    assert cloud.group(group).desired == 3
    cloud.set_desired(group, 2)


HOOK_CALLS = [
    pytest.param("record_lifecycle_action_heartbeat", {}, id="heartbeat"),
    pytest.param("complete_lifecycle_action", {"LifecycleActionResult": "CONTINUE"}, id="complete"),
]


def call(cloud: AwsCloud, operation: str, token: str | None) -> bool:
    if operation == "complete_lifecycle_action":
        return cloud.complete_hook("g", "gate", "i-1", token, HookResult.CONTINUE)
    return cloud.heartbeat("g", "gate", "i-1", token)


@every_case(("operation", "extra"), HOOK_CALLS)
@every_case("token", [None, "0befcbdb-6ecd-498a-9ff7-ae9b54447cd6"])
def test_a_hook_is_named_by_its_token_where_one_is_known(
    operation: str, extra: dict[str, str], token: str | None
) -> None:
    cloud = AwsCloud(REGION)
    expected: dict[str, Any] = {
        "AutoScalingGroupName": "g",
        "LifecycleHookName": "gate",
        "InstanceId": "i-1",
        **extra,
    }
    if token:
        expected["LifecycleActionToken"] = token
    with Stubber(cloud._groups) as stub:
        stub.add_response(operation, {}, expected)
        assert call(cloud, operation, token) is True


@every_case(("operation", "extra"), HOOK_CALLS)
def test_a_hook_that_is_over_is_no_error(operation: str, extra: dict[str, str]) -> None:
    cloud = AwsCloud(REGION)
    with Stubber(cloud._groups) as stub:
        stub.add_client_error(operation, "ValidationError", "No active Lifecycle Action found")
        assert call(cloud, operation, None) is False
        stub.add_client_error(operation, "Throttling")
        with pytest.raises(cloud._groups.exceptions.ClientError):
            call(cloud, operation, None)


def test_instances_that_launch_or_serve_are_staying() -> None:
    states = {
        "a": "InService",
        "b": "Pending:Wait",
        "c": "Terminating:Wait",
        "d": "Terminating:Retained",
        "e": "Standby",
    }
    assert GroupView(name="g", desired=2, maximum=4, instances=states).staying() == {"a", "b"}


@every_case(("asked", "sent"), [(0.0, 0), (14.6, 15), (5000.0, 900), (-1.0, 0)])
def test_a_delay_is_what_sqs_can_keep(asked: float, sent: int) -> None:
    queue = Queue("https://sqs/q", REGION)
    message = {"QueueUrl": "https://sqs/q", "MessageBody": "x", "DelaySeconds": sent}
    answer = {"MessageId": "m", "ResponseMetadata": {"RequestId": "r"}}
    with Stubber(queue._sqs) as stub:
        stub.add_response("send_message", answer, message)
        queue.send("x", delay_seconds=asked)


def test_a_tick_names_the_version_it_is_for() -> None:
    assert json.loads(tick_message("i-1.2", 7)) == {"incident_id": "i-1.2", "version": 7}


def test_one_that_is_launched_keeps_no_other_from_its_protection() -> None:
    cloud, call, told = AwsCloud(REGION), "set_instance_protection", {"ProtectedFromScaleIn": True}
    with Stubber(cloud._groups) as stub:
        stub.add_client_error(call, "ValidationError", "The instance i-2 is not in InService.")
        stub.add_response(call, {}, {"AutoScalingGroupName": "g", "InstanceIds": ["i-1"], **told})
        stub.add_client_error(call, "ValidationError")
        cloud.protect("g", ["i-1", "i-2"], protected=True)
        stub.assert_no_pending_responses()


@pytest.mark.parametrize("decrement", [True, False])
def test_an_instance_is_terminated_through_its_group(decrement: bool) -> None:
    cloud = AwsCloud(REGION)
    asked = {"InstanceId": "i-1", "ShouldDecrementDesiredCapacity": decrement}
    with Stubber(cloud._once) as stub:
        stub.add_response("terminate_instance_in_auto_scaling_group", {}, asked)
        assert cloud.terminate_in_group("i-1", decrement=decrement) is None
        stub.add_client_error("terminate_instance_in_auto_scaling_group", "ValidationError")
        assert cloud.terminate_in_group("i-1", decrement=decrement)


def test_a_termination_that_aws_may_have_done_is_not_asked_for_again() -> None:
    cloud, call = AwsCloud(REGION), "terminate_instance_in_auto_scaling_group"
    assert cloud._once.meta.config.retries["total_max_attempts"] == 1
    with Stubber(cloud._once) as stub:
        stub.add_client_error(call, "InternalFailure", http_status_code=500)
        assert cloud.terminate_in_group("i-1", decrement=True) is None
        stub.add_client_error(call, "Throttling", http_status_code=400)
        with pytest.raises(ClientError, match="Throttling"):
            cloud.terminate_in_group("i-1", decrement=True)
    for error, done in (
        (ReadTimeoutError(endpoint_url="https://aws.test"), True),
        (ResponseParserError("a proxy's page"), True),
        (ConnectTimeoutError(endpoint_url="https://aws.test"), False),
    ):
        cloud._once = Mock(**{f"{call}.side_effect": error})
        if done:
            assert cloud.terminate_in_group("i-1", decrement=True) is None
        else:
            with pytest.raises(ConnectTimeoutError):
                cloud.terminate_in_group("i-1", decrement=True)


def test_only_the_drivers_volumes_hold_an_instance(group: str) -> None:
    cloud = AwsCloud(REGION)
    instance_id = min(cloud.group(group).instances)
    ec2 = boto3.client("ec2", region_name=REGION)
    tags = [{"Key": "ebs.csi.aws.com/cluster", "Value": "true"}]
    made = ec2.create_volume(
        AvailabilityZone="us-east-1a",
        Size=1,
        TagSpecifications=[{"ResourceType": "volume", "Tags": tags}],
    )["VolumeId"]
    assert cloud.volumes_on(instance_id) == ()
    ec2.attach_volume(VolumeId=made, InstanceId=instance_id, Device="/dev/xvdaa")
    assert cloud.volumes_on(instance_id) == (made,)
    ec2.detach_volume(VolumeId=made, InstanceId=instance_id)
    assert cloud.volumes_on(instance_id) == ()


def test_zones_are_known_by_their_ids(group: str) -> None:
    names = AwsCloud(REGION).zone_names()
    assert min(names.values()) == "us-east-1a"
    assert all(zone_id.startswith("use1-az") for zone_id in names)


EARLY, LATE = datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC)


@every_case(
    ("check", "since"),
    [
        ({"Status": "impaired", "Details": [{"ImpairedSince": LATE}]}, LATE.timestamp()),
        ({"Status": "impaired", "Details": [{}, {"ImpairedSince": LATE}, {"ImpairedSince": EARLY}]},
            EARLY.timestamp()),
        ({"Status": "impaired", "Details": []}, 0.0),
        ({"Status": "impaired", "Details": None}, 0.0),
        ({"Status": "impaired"}, 0.0),
        ({"Status": "ok", "Details": [{"ImpairedSince": LATE}]}, None),
        ({"Status": "insufficient-data"}, None),
    ],
)  # fmt: skip
def test_a_failed_check_needs_no_details(check: dict[str, Any], since: float | None) -> None:
    found = _status({"InstanceId": "i-0a", "SystemStatus": check})
    assert found.impaired == ({} if since is None else {"system": since})


ASKED = {"InstanceId": "i-0a", "ImageId": "ami-1"}
CREATE, DESCRIBE = "create_replace_root_volume_task", "describe_replace_root_volume_tasks"


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    client = boto3.client(
        "ec2", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    monkeypatch.setattr(templates.boto3, "client", lambda *_, **__: client)
    with Stubber(client) as stubbed:
        yield stubbed


def task(id_: str, state: str, incident: str, started: str) -> dict[str, Any]:
    return {
        "ReplaceRootVolumeTaskId": id_,
        "TaskState": state,
        "StartTime": started,
        "Tags": [{"Key": INCIDENT_TAG, "Value": incident}],
    }


def test_the_newest_task_of_an_incident_is_found_and_nobody_elses(ec2: Stubber) -> None:
    found = [
        task("replacevol-1", "failed", "i-0a", "2026-11-20T10:00:00Z"),
        task("replacevol-2", "in-progress", "i-0a", "2026-11-20T10:05:00Z"),
        task("replacevol-3", "succeeded", "i-0a.2", "2026-11-20T10:09:00Z"),
        {"ReplaceRootVolumeTaskId": "replacevol-4", "TaskState": "pending"},
    ]
    about = {"Filters": [{"Name": "instance-id", "Values": ["i-0a"]}]}
    ec2.add_response(DESCRIBE, {"ReplaceRootVolumeTasks": found}, about)
    assert RootVolumes("us-east-1").task_of("i-0a", "i-0a") == RootTask(
        "replacevol-2", "in-progress"
    )


def test_a_request_carries_the_incident_as_its_key_and_its_tag(ec2: Stubber) -> None:
    tags = [{"Key": INCIDENT_TAG, "Value": "i-0a.2"}]
    wanted = {
        **ASKED,
        "DeleteReplacedRootVolume": True,
        "ClientToken": "i-0a.2",
        "DryRun": False,
        "TagSpecifications": [{"ResourceType": "replace-root-volume-task", "Tags": tags}],
    }
    ec2.add_response(CREATE, {"ReplaceRootVolumeTask": {}}, wanted)
    assert RootVolumes("us-east-1").replace("i-0a", "ami-1", "i-0a.2", trial=False) is None
    ec2.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "trial", "said"),
    [
        ("DryRunOperation", True, None),
        ("UnauthorizedOperation", True, "UnauthorizedOperation: no"),
        ("IncorrectState", True, "IncorrectState: no"),
        ("InvalidAMIID.NotFound", False, "InvalidAMIID.NotFound: no"),
    ],
)
def test_a_refusal_is_an_answer(ec2: Stubber, code: str, *, trial: bool, said: str | None) -> None:
    ec2.add_client_error(CREATE, code, "no")
    assert RootVolumes("us-east-1").replace("i-0a", "ami-1", "i-0a", trial=trial) == said


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "IncorrectState"])
def test_what_may_be_mended_or_is_under_way_is_no_refusal(ec2: Stubber, code: str) -> None:
    ec2.add_client_error(CREATE, code, "later")
    with pytest.raises(ClientError):
        RootVolumes("us-east-1").replace("i-0a", "ami-1", "i-0a", trial=False)
