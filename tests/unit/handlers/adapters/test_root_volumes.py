"""EC2's tasks are found by the incident that asked, and refusals are told from what may pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from core.ground.naming import INCIDENT_TAG
from core.incidents.observation import RootTask
from handlers.adapters import templates
from handlers.adapters.templates import RootVolumes

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
def test_what_another_attempt_may_mend_or_is_under_way_is_no_refusal(
    ec2: Stubber, code: str
) -> None:
    ec2.add_client_error(CREATE, code, "later")
    with pytest.raises(ClientError):
        RootVolumes("us-east-1").replace("i-0a", "ami-1", "i-0a", trial=False)
