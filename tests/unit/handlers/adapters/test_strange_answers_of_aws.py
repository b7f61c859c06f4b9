"""Answers of AWS in which one word, key or shape is new: read, or refused in a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from core.incidents.observation import cluster_ownership
from core.volumes.views import ModificationState
from handlers.adapters.aws import AwsCloud, Ec2Inventory
from handlers.adapters.templates import RootVolumes
from handlers.adapters.volumes import Ec2Ebs
from tests.every_case import every_case
from tests.unit.handlers.adapters.strange import changed, tracebacks

MOMENT = "2026-11-20T10:00:00Z"
AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
ANSWERS: Mapping[str, Any] = {
    "describe_instances": {
        "Reservations": [
            {
                "Instances": [
                    {
                        "InstanceId": "i-1",
                        "InstanceType": "m7i.large",
                        "State": {"Name": "running"},
                        "Placement": {"AvailabilityZone": "us-east-1a"},
                        "Tags": [{"Key": "k", "Value": "v"}],
                    }
                ]
            }
        ]
    },
    "describe_auto_scaling_groups": {
        "AutoScalingGroups": [
            {
                "AutoScalingGroupName": "g",
                "DesiredCapacity": 1,
                "MaxSize": 2,
                "AvailabilityZones": ["us-east-1a"],
                "Instances": [{"InstanceId": "i-1", "LifecycleState": "InService"}],
            }
        ]
    },
    "describe_volumes": {
        "Volumes": [
            {
                "VolumeId": "vol-1",
                "VolumeType": "gp3",
                "Size": 100,
                "Iops": 3000,
                "Throughput": 125,
                "AvailabilityZone": "us-east-1a",
                "Attachments": [{"InstanceId": "i-1", "State": "attached"}],
                "Tags": [{"Key": "k", "Value": "v"}],
            }
        ]
    },
    "describe_volumes_modifications": {
        "VolumesModifications": [
            {
                "VolumeId": "vol-1",
                "ModificationState": "optimizing",
                "StartTime": AT,
                **{f"{side}{what}": 1 for side in ("Target", "Original") for what in ("Size",)},
                **{f"{side}Iops": 3000 for side in ("Target", "Original")},
                **{f"{side}Throughput": 125 for side in ("Target", "Original")},
            }
        ]
    },
    "describe_instance_status": {
        "InstanceStatuses": [
            {
                "InstanceId": "i-1",
                "SystemStatus": {
                    "Status": "impaired",
                    "Details": [{"Status": "failed", "ImpairedSince": AT}],
                },
                "Events": [{"Code": "instance-stop", "InstanceEventId": "e", "NotBefore": AT}],
            }
        ]
    },
    "describe_availability_zones": {
        "AvailabilityZones": [{"ZoneId": "use1-az1", "ZoneName": "us-east-1a"}]
    },
    "describe_replace_root_volume_tasks": {
        "ReplaceRootVolumeTasks": [
            {
                "ReplaceRootVolumeTaskId": "r",
                "TaskState": "pending",
                "Tags": [{"Key": "stillwater:incident", "Value": "i-1"}],
            }
        ]
    },
}


class Client:
    """Answers every call, and every page of one."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = answers

    def __getattr__(self, call: str) -> Callable[..., Any]:
        return lambda **_: self.answers[call]

    def get_paginator(self, call: str) -> Any:
        return SimpleNamespace(paginate=lambda **_: [self.answers[call]])


def aws(answers: Mapping[str, Any]) -> Mapping[str, Callable[[], Any]]:
    client: Any = Client(answers)
    cloud, inventory = AwsCloud.__new__(AwsCloud), Ec2Inventory.__new__(Ec2Inventory)
    ebs, roots = Ec2Ebs.__new__(Ec2Ebs), RootVolumes.__new__(RootVolumes)
    for each in (cloud, inventory, ebs, roots):
        each._ec2 = client
    cloud._groups, cloud._zone_names = client, None
    return {
        "instance": lambda: cloud.instance("i-1"),
        "group": lambda: cloud.group("g"),
        "groups": lambda: cloud.groups_of(cluster_ownership("orders")),
        "volumes on": lambda: cloud.volumes_on("i-1"),
        "zones": cloud.zone_names,
        "volume": lambda: inventory.volume("vol-1"),
        "states": lambda: inventory.instance_states(cluster_ownership("orders")),
        "statuses": lambda: inventory.statuses(["i-1"]),
        "volumes": lambda: ebs.volumes(["vol-1"]),
        "modifications": lambda: ebs.modifications(["vol-1"]),
        "types": lambda: ebs.instance_types(["i-1"]),
        "task": lambda: roots.task_of("i-1", "i-1"),
    }


def changed_answers(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield what `changed` does, with moments as the client gives them."""
    plain = json.loads(json.dumps(document, default=lambda _: MOMENT))
    for what, copy in changed(plain):
        yield what, with_moments(copy)


def with_moments(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: with_moments(each) for key, each in value.items()}
    if isinstance(value, list):
        return [with_moments(each) for each in value]
    return AT if value == MOMENT else value


@every_case("call", ANSWERS)
def test_whatever_aws_answers_is_read_or_refused_in_a_sentence(call: str) -> None:
    found = [
        f"{call} {what}: {each}"
        for what, document in changed_answers(ANSWERS[call])
        for each in tracebacks(aws({**ANSWERS, call: document}))
    ]
    assert found == []


def test_a_state_of_a_modification_that_nobody_here_knows_is_under_way() -> None:
    (answer,) = ANSWERS["describe_volumes_modifications"]["VolumesModifications"]
    newer = {"VolumesModifications": [{**answer, "ModificationState": "rehearsing"}]}
    readers = aws({**ANSWERS, "describe_volumes_modifications": newer})
    found = readers["modifications"]()["vol-1"]
    assert (found.state, found.word) == (ModificationState.UNKNOWN, "rehearsing")
    assert not found.state.over
