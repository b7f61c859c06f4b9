"""handlers.adapters.kubernetes as it writes: taints, marks of a spare, attachments let go."""

from __future__ import annotations

from typing import Any

import pytest

from core.ground.errors import Conflict
from handlers.adapters.eks import EksApi
from tests.unit.handlers.adapters.fake_api import node, reader

pytestmark = pytest.mark.usefixtures("signing")

NODE_PATH = "/api/v1/nodes/a"
ATTACHMENTS_PATH = "/apis/storage.k8s.io/v1/volumeattachments"
OUT_OF_SERVICE = {
    "key": "node.kubernetes.io/out-of-service",
    "value": "nodeshutdown",
    "effect": "NoExecute",
}
DEDICATED = {"key": "dedicated", "value": "kafka", "effect": "NoSchedule"}


def read_node(*taints: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    found = node("a", "i-1", taints=list(taints))
    found["metadata"]["resourceVersion"] = "7"
    return {NODE_PATH: [found]}


def test_the_taint_is_added_to_those_a_node_has_in_the_version_it_was_read_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = reader(monkeypatch, read_node(DEDICATED))
    fake.nodes.set_out_of_service("a", "i-1", tainted=True)
    ((path, body),) = fake.pool.patched
    assert path == NODE_PATH
    assert body == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"taints": [DEDICATED, OUT_OF_SERVICE]},
    }


def test_taking_the_taint_off_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, read_node(OUT_OF_SERVICE, DEDICATED))
    fake.nodes.set_out_of_service("a", "i-1", tainted=False)
    assert fake.pool.patched[0][1]["spec"]["taints"] == [DEDICATED]


@pytest.mark.parametrize(
    ("taints", "tainted", "instance_id"),
    [
        pytest.param((OUT_OF_SERVICE,), True, "i-1", id="tainted already"),
        pytest.param((), False, "i-1", id="not tainted"),
        pytest.param((), True, "i-9", id="another instance has the name by now"),
    ],
)
def test_a_node_that_needs_no_change_is_not_written(
    monkeypatch: pytest.MonkeyPatch,
    taints: tuple[dict[str, str], ...],
    tainted: bool,
    instance_id: str,
) -> None:
    fake = reader(monkeypatch, read_node(*taints))
    fake.nodes.set_out_of_service("a", instance_id, tainted=tainted)
    assert fake.pool.patched == []


def test_a_node_that_is_gone_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, {})
    fake.nodes.set_out_of_service("a", "i-1", tainted=True)
    fake.nodes.mark_spare("a", None)


def test_a_node_changed_meanwhile_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, read_node())
    fake.pool.status = 409
    with pytest.raises(Conflict, match="changed by somebody else"):
        fake.nodes.mark_spare("a", "i-0a")


def test_a_spare_says_for_whom_it_is_kept_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, read_node())
    fake.nodes.mark_spare("a", "i-0a")
    fake.nodes.mark_spare("a", None)
    disabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
    assert [body["metadata"]["annotations"] for _, body in fake.pool.patched] == [
        {disabled: "true", "stillwater.dev/spare-for": "i-0a"},
        {disabled: None, "stillwater.dev/spare-for": None},
    ]


def attachment(name: str, node_name: str, attacher: str = "ebs.csi.aws.com") -> dict[str, Any]:
    source = {"persistentVolumeName": f"pv-{name}"}
    spec = {"attacher": attacher, "nodeName": node_name, "source": source}
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec}


def attached() -> list[dict[str, Any]]:
    items = [attachment("1", "a"), attachment("2", "b"), attachment("3", "a", "efs.csi.aws.com")]
    return [{"items": [*items, attachment("4", "a")]}]


def test_what_a_node_that_is_gone_still_holds_of_ebs_is_deleted_by_identity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = reader(monkeypatch, {ATTACHMENTS_PATH: attached()})
    fake.nodes.release_attachments("a")
    assert fake.pool.deleted == [
        (f"{ATTACHMENTS_PATH}/1", "uid-1"),
        (f"{ATTACHMENTS_PATH}/4", "uid-4"),
    ]


def test_a_node_that_stands_keeps_what_is_attached(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, {ATTACHMENTS_PATH: attached(), **read_node()})
    fake.nodes.release_attachments("a")
    assert fake.pool.deleted == []


def test_an_attachment_that_was_made_again_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, {})
    fake.pool.status = 409
    EksApi.delete(fake.nodes._api, f"{ATTACHMENTS_PATH}/1", "uid-1")
    assert len(fake.pool.deleted) == 1
