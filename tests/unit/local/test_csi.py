"""Volumes of claims: what a StorageClass asks of EC2, how they are bound, attached and grown."""

import threading
from typing import Any

import pytest

from core.ground.errors import InvalidInput, StillwaterError
from local.kubernetes import ebs
from local.kubernetes.csi import outstanding
from local.kubernetes.ebs import PROVISIONER_FINALIZER as GUARD
from local.kubernetes.ebs import (
    EbsCalls,
    Tasks,
    finalizers,
    request,
    size_gib,
    tags,
    to_delete,
)


class Ec2:
    """One volume, and who has it."""

    def __init__(self, *attachments: tuple[str, str]) -> None:
        self.attachments = [{"InstanceId": i, "Device": device} for i, device in attachments]
        self.created: list[dict[str, Any]] = []

    def describe_volumes(self, **query: Any) -> dict[str, Any]:
        names = [f["Name"] for f in query.get("Filters", [])]
        if names == ["tag:CSIVolumeName"]:
            return {"Volumes": self.created}
        if names == ["attachment.instance-id"]:
            wanted = query["Filters"][0]["Values"]
            mine = [a for a in self.attachments if a["InstanceId"] in wanted]
            return {"Volumes": [{"Attachments": mine}]}
        return {"Volumes": [{"VolumeId": "vol-1", "Attachments": self.attachments}]}

    def create_volume(self, **asked: Any) -> dict[str, Any]:
        self.created.append({"VolumeId": f"vol-{len(self.created)}", **asked})
        return self.created[-1]

    def attach_volume(self, *, VolumeId: str, InstanceId: str, Device: str) -> None:  # noqa: N803
        assert VolumeId == "vol-1"
        self.attachments.append({"InstanceId": InstanceId, "Device": Device})


@pytest.mark.parametrize(
    ("quantity", "gib"),
    [("10Gi", 10), ("1Ti", 1024), ("1G", 1), ("1073741825", 2), ("512Mi", 1), ("1.5Gi", 2)],
)
def test_a_size_is_rounded_up_to_whole_gib(quantity: str, gib: int) -> None:
    assert size_gib(quantity) == gib


def test_a_size_that_is_none_is_one_sentence() -> None:
    with pytest.raises(InvalidInput, match="'ten' is not the size"):
        size_gib("ten")


@pytest.mark.parametrize(
    ("parameters", "asked"),
    [
        (
            {"type": "gp3", "iops": "4000", "throughput": "500", "encrypted": "true"},
            {"VolumeType": "gp3", "Encrypted": True, "Iops": 4000, "Throughput": 500},
        ),
        ({}, {"VolumeType": "gp3", "Encrypted": False, "Iops": 3000, "Throughput": 125}),
        (
            {"type": "io2", "iopsPerGB": "50", "kmsKeyId": "arn:k"},
            {"VolumeType": "io2", "Encrypted": False, "Iops": 500, "KmsKeyId": "arn:k"},
        ),
    ],
    ids=["what it says", "the defaults", "IOPS by size"],
)
def test_parameters_become_a_request(parameters: dict[str, str], asked: dict[str, Any]) -> None:
    assert request(parameters, 10) == {"Size": 10, **asked}


def test_a_volume_says_for_which_claim_and_cluster_it_was_made() -> None:
    found = tags(
        {"tagSpecification_1": "team={{ .PVCNamespace }}/{{ .PVCName }}", "type": "gp3"},
        volume="pvc-u-1",
        claim="data-0-demo-10",
        namespace="kafka",
        cluster="demo",
    )
    assert found["kubernetes.io/created-for/pvc/name"] == "data-0-demo-10"
    assert found["kubernetes.io/cluster/demo"] == "owned"
    assert found["Name"] == "demo-dynamic-pvc-u-1"
    assert found["ebs.csi.aws.com/cluster"] == "true"
    assert found["team"] == "kafka/data-0-demo-10"


def test_a_volume_is_made_once_however_often_it_is_asked_for() -> None:
    ec2 = Ec2()
    ebs: Any = EbsCalls(ec2)  # type: ignore[arg-type]  # the calls it makes
    labels = {"CSIVolumeName": "pvc-u-1"}
    asked = {"Size": 1, "VolumeType": "gp3"}
    assert ebs.ensure("us-east-1a", asked, labels) == ebs.ensure("us-east-1a", asked, labels)
    assert len(ec2.created) == 1


def test_attaching_again_changes_nothing_and_each_volume_has_its_own_device() -> None:
    ec2 = Ec2(("i-1", "/dev/xvdaa"))
    ebs: Any = EbsCalls(ec2)  # type: ignore[arg-type]  # the calls it makes
    assert ebs.attach("vol-1", "i-1") == "/dev/xvdaa"
    assert len(ec2.attachments) == 1
    assert ebs._free_device("i-1") == "/dev/xvdab"


def stored(policy: str, phase: str, *held_by: str, going: bool = False) -> dict[str, Any]:
    """Return a PersistentVolume as the API server shows it."""
    metadata: dict[str, Any] = {"name": "pvc-u-1", "finalizers": list(held_by)}
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"persistentVolumeReclaimPolicy": policy}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


OTHER = "kubernetes.io/pv-protection"


@pytest.mark.parametrize(
    ("volume", "wanted"),
    [
        pytest.param(stored("Retain", "Bound", OTHER, GUARD), [OTHER], id="retained"),
        pytest.param(stored("Retain", "Released", GUARD, going=True), [], id="retained and going"),
        pytest.param(stored("Retain", "Bound", OTHER), None, id="retained, never guarded"),
        pytest.param(stored("Delete", "Bound", OTHER), [OTHER, GUARD], id="to be deleted"),
        pytest.param(stored("Delete", "Bound", GUARD), None, id="guarded"),
        pytest.param(stored("Delete", "Released", OTHER), None, id="released"),
    ],
)
def test_the_provisioner_holds_back_only_what_it_is_to_delete(
    volume: dict[str, Any], wanted: list[str] | None
) -> None:
    assert finalizers(volume) == wanted


@pytest.mark.parametrize(
    ("volume", "goes"),
    [
        pytest.param(stored("Delete", "Released"), True, id="released, made to be deleted later"),
        pytest.param(stored("Delete", "Released", GUARD, going=True), True, id="going, guarded"),
        pytest.param(stored("Delete", "Released", going=True), False, id="deleted already"),
        pytest.param(stored("Delete", "Bound", GUARD), False, id="in use"),
        pytest.param(stored("Retain", "Released"), False, id="retained"),
    ],
)
def test_a_released_volume_is_deleted_once_when_its_policy_says_so(
    volume: dict[str, Any], goes: bool
) -> None:
    assert to_delete(volume) is goes


def test_work_asked_for_while_it_runs_is_done_once_more_and_never_twice_at_once() -> None:
    started, go_on, done = threading.Event(), threading.Event(), threading.Event()
    runs: list[int] = []

    def work() -> None:
        runs.append(len(runs))
        started.set()
        assert go_on.wait(5)
        if len(runs) == 2:
            done.set()

    queue = Tasks()
    queue.request("key", work)
    assert started.wait(5)
    for _ in range(3):
        queue.request("key", work)
    assert len(runs) == 1
    go_on.set()
    assert done.wait(5)
    queue.request("another", done.clear)
    assert len(runs) == 2


def test_work_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ebs, "RETRY_SECONDS", 0.0)
    done = threading.Event()
    tries: list[str] = []

    def work() -> None:
        tries.append("once")
        if len(tries) < 3:
            raise StillwaterError("EC2 is busy.")
        done.set()

    Tasks().request("key", work)
    assert done.wait(5)
    assert len(tries) == 3


def claim(**changed: Any) -> dict[str, Any]:
    asked = {"size": "10Gi", "has": "10Gi", "wants": "gp3-3000-125", "given": "gp3-3000-125"}
    asked |= changed
    return {
        "spec": {
            "volumeName": asked.get("volume", "pv-1"),
            "volumeAttributesClassName": asked["wants"],
            "resources": {"requests": {"storage": asked["size"]}},
        },
        "status": {
            "phase": asked.get("phase", "Bound"),
            "capacity": {"storage": asked["has"]},
            "currentVolumeAttributesClassName": asked["given"],
        },
    }


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, False),
        ({"size": "11Gi"}, True),
        # EBS never shrinks; nor does a claim that was once larger ask for anything.
        ({"size": "9Gi"}, False),
        ({"wants": "gp3-4000-125"}, True),
        ({"wants": None}, False),
        ({"size": "11Gi", "phase": "Pending"}, False),
        ({"size": "11Gi", "volume": None}, False),
    ],
)
def test_a_claim_that_asks_for_more_or_for_another_class_is_worked_on(
    changed: dict[str, Any], expected: bool
) -> None:
    assert outstanding(claim(**changed)) is expected
