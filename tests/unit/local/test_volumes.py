"""EBS volumes on the twin's EC2: their modifications, and root volumes that are replaced."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.ec2.responses import EC2Response

from local.aws import root_volumes
from local.aws.instances import Agenda
from local.aws.root_volumes import MAKING_SECONDS, SWAPPING_SECONDS, TROUBLE_TAG
from local.aws.volumes import VolumeShape, check
from local.kubernetes.cloud import InstanceCloud
from tests.every_case import every_case

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
VOLUME = VolumeShape(100, 3000, 125)


def ago(*hours: float) -> list[datetime]:
    return [NOW - timedelta(hours=each) for each in hours]


VALUE, RATE = "InvalidParameterValue", "VolumeModificationRateExceeded"


@every_case(
    ("target", "state", "hours", "code", "words"),
    [
        ((90, 3000, 125), None, (), VALUE, "smaller than existing"),
        ((100, 2999, 125), None, (), VALUE, "minimum is 3000"),
        ((100, 80_001, 125), None, (), VALUE, "maximum is 80000"),
        ((100, 3000, 2001), None, (), VALUE, "maximum is 2000"),
        ((100, 50_001, 125), None, (), VALUE, "500 IOPS per GiB"),
        ((100, 3000, 751), None, (), VALUE, "0.250000 MiBps per iops"),
        ((65_537, 3000, 125), None, (), "VolumeModificationSizeLimitExceeded", "65536"),
        ((110, 3000, 125), "optimizing", (1,), "IncorrectModificationState", "OPTIMIZING"),
        ((110, 3000, 125), "completed", (23, 10, 5, 1), RATE, "2026-11-20T13:00:00Z"),
    ],
)
def test_ec2_refuses_with_its_own_code(
    target: tuple[int, int, int],
    state: str | None,
    hours: tuple[float, ...],
    code: str,
    words: str,
) -> None:
    with pytest.raises(EC2ClientError) as refused:
        check("vol-1", VOLUME, VolumeShape(*target), state=state, starts=ago(*hours), now=NOW)
    assert refused.value.code == code
    assert words in refused.value.message


@pytest.mark.parametrize("hours", [(), (1,), (23, 10, 5), (25, 23, 10, 5), (24, 10, 5, 1)])
def test_a_fourth_modification_in_24_hours_is_allowed(hours: tuple[float, ...]) -> None:
    target = VolumeShape(110, 4000, 250)
    check("vol-1", VOLUME, target, state="completed", starts=ago(*hours), now=NOW)


class Ec2:
    """EC2, one instance of it, and time."""

    def __init__(self) -> None:
        self.agenda, self.now = Agenda(), time.time()
        self.facts: list[str] = []
        root_volumes.install(self.agenda, lambda *_, state, **__: self.facts.append(state))
        self.api: Any = boto3.client("ec2", region_name="us-east-1")
        self.image, self.newer = self.register("node-1"), self.register("node-2")
        self.id = self.launch()

    def register(self, name: str) -> str:
        return str(self.api.register_image(Name=name, RootDeviceName="/dev/xvda")["ImageId"])

    def launch(self, **tags: str) -> str:
        run = self.api.run_instances(
            ImageId=self.image,
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[
                {
                    "ResourceType": "instance",
                    "Tags": [
                        {"Key": key, "Value": value}
                        for key, value in {"Name": "node", **tags}.items()
                    ],
                }
            ],
        )
        return str(run["Instances"][0]["InstanceId"])

    def replace(self, instance_id: str | None = None, **asked: Any) -> dict[str, Any]:
        asked, self.now = {"ImageId": self.newer, **asked}, time.time()
        answer = self.api.create_replace_root_volume_task(
            InstanceId=instance_id or self.id, **asked
        )
        return dict(answer["ReplaceRootVolumeTask"])

    def state(self, task: dict[str, Any]) -> str:
        ids = [task["ReplaceRootVolumeTaskId"]]
        answer = self.api.describe_replace_root_volume_tasks(ReplaceRootVolumeTaskIds=ids)
        return str(answer["ReplaceRootVolumeTasks"][0]["TaskState"])

    def volumes(self, instance_id: str | None = None) -> list[str]:
        found = self.api.describe_instances(InstanceIds=[instance_id or self.id])
        instance = found["Reservations"][0]["Instances"][0]
        return [each["Ebs"]["VolumeId"] for each in instance["BlockDeviceMappings"]]

    def later(self, seconds: float) -> None:
        self.now += seconds
        self.agenda.run_due(self.now + 0.2)

    def error(self, **asked: Any) -> str:
        with pytest.raises(ClientError) as caught:
            self.replace(**asked)
        return str(caught.value.response["Error"]["Code"])


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ec2]:
    for name in ("create_replace_root_volume_task", "describe_replace_root_volume_tasks"):
        monkeypatch.setattr(EC2Response, name, None, raising=False)
    with mock_aws():
        yield Ec2()


def test_a_task_passes_through_its_states_and_the_instance_keeps_what_is_no_root(ec2: Ec2) -> None:
    zone = ec2.api.describe_instances(InstanceIds=[ec2.id])["Reservations"][0]["Instances"][0]
    data = ec2.api.create_volume(AvailabilityZone=zone["Placement"]["AvailabilityZone"], Size=9)
    ec2.api.attach_volume(VolumeId=data["VolumeId"], InstanceId=ec2.id, Device="/dev/xvdb")
    old = ec2.volumes()
    task = ec2.replace(DeleteReplacedRootVolume=True)
    assert (task["TaskState"], task["ImageId"]) == ("pending", ec2.newer)
    ec2.later(MAKING_SECONDS)
    assert ec2.state(task) == "in-progress"
    assert ec2.volumes() == old
    ec2.later(SWAPPING_SECONDS)
    assert ec2.state(task) == "succeeded"
    new = ec2.volumes()
    assert set(old) & set(new) == {data["VolumeId"]}
    assert len(new) == len(old)
    (gone,) = set(old) - set(new)
    with pytest.raises(ClientError, match=r"InvalidVolume\.NotFound"):
        ec2.api.describe_volumes(VolumeIds=[gone])
    assert ec2.facts == ["in-progress", "succeeded"]
    found = ec2.api.describe_instances(InstanceIds=[ec2.id])["Reservations"][0]["Instances"][0]
    assert found["ImageId"] == ec2.newer


def test_a_replaced_volume_that_is_not_to_be_deleted_stays_and_is_free(ec2: Ec2) -> None:
    (old,) = ec2.volumes()
    ec2.replace()
    ec2.later(MAKING_SECONDS + SWAPPING_SECONDS)
    kept = ec2.api.describe_volumes(VolumeIds=[old])["Volumes"][0]
    assert (kept["State"], kept["Attachments"]) == ("available", [])


@pytest.mark.parametrize(
    ("trouble", "states", "volumes"),
    [
        ("failed", ["failing", "failed"], 1),
        ("failed-detached", ["in-progress", "failing-detached", "failed-detached"], 0),
    ],
)
def test_a_task_that_fails_says_whether_the_old_volume_is_still_there(
    ec2: Ec2, trouble: str, states: list[str], volumes: int
) -> None:
    instance_id = ec2.launch(**{TROUBLE_TAG: trouble})
    task = ec2.replace(instance_id)
    ec2.later(MAKING_SECONDS + SWAPPING_SECONDS)
    assert (ec2.facts, ec2.state(task)) == (states, trouble)
    assert len(ec2.volumes(instance_id)) == volumes


def test_one_task_at_a_time_and_only_of_an_instance_that_runs(ec2: Ec2) -> None:
    ec2.replace()
    assert ec2.error() == "IncorrectState"
    ec2.later(MAKING_SECONDS + SWAPPING_SECONDS)
    ec2.replace()
    ec2.later(MAKING_SECONDS + SWAPPING_SECONDS)
    ec2.api.stop_instances(InstanceIds=[ec2.id])
    assert ec2.error() == "IncorrectInstanceState"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"ImageId": "ami-0000000000000000f"}, "InvalidAMIID.NotFound"),
        ({"SnapshotId": "snap-1"}, "InvalidParameterCombination"),
        ({"instance_id": "i-0000000000000000f"}, "InvalidInstanceID.NotFound"),
        ({"DryRun": True}, "DryRunOperation"),
    ],
)
def test_what_is_asked_wrongly_is_refused_by_its_code(
    ec2: Ec2, asked: dict[str, Any], code: str
) -> None:
    assert ec2.error(**asked) == code


def test_an_image_of_another_architecture_is_refused(ec2: Ec2) -> None:
    arm = ec2.register("arm")
    # moto registers every image as x86_64.
    ec2_backends[DEFAULT_ACCOUNT_ID]["us-east-1"].amis[arm].architecture = "arm64"
    assert ec2.error(ImageId=arm) == "InvalidParameterValue"


def test_an_instance_that_ends_in_the_middle_ends_its_task(ec2: Ec2) -> None:
    task = ec2.replace()
    ec2.later(MAKING_SECONDS)
    ec2.api.terminate_instances(InstanceIds=[ec2.id])
    ec2.later(SWAPPING_SECONDS)
    assert ec2.state(task) == "failed"


def test_tasks_are_listed_by_their_instance_and_an_unknown_one_is_an_error(ec2: Ec2) -> None:
    other = ec2.launch()
    ec2.replace()
    ec2.replace(other)
    listed = ec2.api.describe_replace_root_volume_tasks(
        Filters=[{"Name": "instance-id", "Values": [other]}]
    )
    assert [task["InstanceId"] for task in listed["ReplaceRootVolumeTasks"]] == [other]
    with pytest.raises(ClientError, match="does not exist"):
        ec2.api.describe_replace_root_volume_tasks(ReplaceRootVolumeTaskIds=["replacevol-1"])


def test_the_same_request_under_its_token_is_the_same_task(ec2: Ec2) -> None:
    first = ec2.replace(ClientToken="i-1")
    again = ec2.replace(ClientToken="i-1")
    assert again["ReplaceRootVolumeTaskId"] == first["ReplaceRootVolumeTaskId"]
    assert ec2.error(ClientToken="i-1", ImageId=ec2.image) == "IdempotentParameterMismatch"
    ec2.later(MAKING_SECONDS + SWAPPING_SECONDS)
    ec2.replace(ClientToken="i-1")
    assert ec2.facts == ["in-progress", "succeeded"]


def test_the_kubelet_sees_each_boot_by_its_root_volume(ec2: Ec2) -> None:
    owned = {"kubernetes.io/cluster/c": "owned"}
    well, failed, dark, slow = (
        ec2.launch(**owned, **({TROUBLE_TAG: trouble} if trouble else {}))
        for trouble in ("", "failed", "failed-detached", "slow")
    )
    cloud = InstanceCloud(ec2.api)
    cloud.states()
    before = {id_: cloud.boot(id_) for id_ in (well, failed, dark, slow)}
    assert None not in before.values()
    for id_ in before:
        ec2.replace(id_)
    ec2.later(MAKING_SECONDS + SWAPPING_SECONDS)
    cloud.states()
    after = {id_: cloud.boot(id_) for id_ in before}
    assert after[well] not in {None, before[well]}
    assert after[failed] not in {None, before[failed]}
    assert (after[dark], after[slow]) == (None, None)
