"""handlers.adapters.kubernetes as it writes: taints, cordons, evictions, attachments let go."""

from typing import Any

import pytest

from core.ground.errors import Conflict, StillwaterError
from core.ground.naming import CORDON_ANNOTATION
from core.incidents.observation import PodOnNode
from handlers.adapters.eks import EksApi
from handlers.adapters.kubernetes import EksDrain
from tests.every_case import every_case
from tests.unit.handlers.adapters.fake_api import FakePool, attachment, node, reader

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


@pytest.mark.parametrize("tainted", [True, False])
def test_the_taint_comes_and_goes_beside_those_of_the_node_in_its_version(
    monkeypatch: pytest.MonkeyPatch, tainted: bool
) -> None:
    both = [DEDICATED, OUT_OF_SERVICE]
    before, after = ([DEDICATED], both) if tainted else (both, [DEDICATED])
    fake = reader(monkeypatch, read_node(*before))
    fake.nodes.set_out_of_service("a", "i-1", tainted=tainted)
    body = {"metadata": {"resourceVersion": "7"}, "spec": {"taints": after}}
    assert fake.pool.patched == [(NODE_PATH, body)]


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
    with pytest.raises(Conflict, match="was changed meanwhile"):
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


def test_what_a_gone_node_holds_is_deleted_by_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [attachment("1", "a"), attachment("2", "b"), attachment("3", "a", "efs.csi.aws.com")]
    attached = {ATTACHMENTS_PATH: [{"items": [*items, attachment("4", "a")]}]}
    gone = [(f"{ATTACHMENTS_PATH}/{name}", f"uid-{name}") for name in ("1", "4")]
    for pages, deleted in ((attached, gone), ({**attached, **read_node()}, [])):
        fake = reader(monkeypatch, pages)
        fake.nodes.release_attachments("a")
        assert fake.pool.deleted == deleted


def test_an_attachment_that_was_made_again_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = reader(monkeypatch, {})
    fake.pool.status = 409
    EksApi.delete(fake.nodes._api, f"{ATTACHMENTS_PATH}/1", "uid-1")
    assert len(fake.pool.deleted) == 1


EVICTION = "/api/v1/namespaces/kafka/pods/orders-broker-a-10/eviction"


def drain(
    monkeypatch: pytest.MonkeyPatch, pages: dict[str, list[dict[str, Any]]]
) -> tuple[EksDrain, FakePool]:
    fake = reader(monkeypatch, pages)
    return EksDrain(fake.nodes._api, "kafka", "orders"), fake.pool


def pod(name: str, *owners: str, phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    owned = {"ownerReferences": [{"kind": kind} for kind in owners]} if owners else {}
    return {
        "metadata": {"namespace": "kafka", "name": name, "uid": name, **owned, **metadata},
        "status": {"phase": phase},
    }


def test_the_pods_on_a_node_are_told_apart_by_their_makers(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {"strimzi.io/cluster": "orders", "strimzi.io/pool-name": "broker-a"}
    theirs = {"strimzi.io/cluster": "trial", "strimzi.io/pool-name": "broker-a"}
    items = [
        pod("orders-broker-a-10", "StrimziPodSet", labels=ours),
        pod("trial-broker-a-1", "StrimziPodSet", labels=theirs),
        pod("orders-broker-a-11", "StrimziPodSet", labels=ours, namespace="lab"),
        pod("agent", "DaemonSet"),
        pod("static", "Node", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("debug"),
        pod("going", "ReplicaSet", deletionTimestamp="2026-11-20T10:00:00Z"),
        pod("done", "Job", phase="Succeeded"),
    ]
    made, pool = drain(monkeypatch, {"/api/v1/pods": [{"items": items}]})
    found = {each.name: each for each in made.pods_on("a")}
    assert pool.asked[0][1]["fieldSelector"] == ["spec.nodeName=a"]
    assert found["orders-broker-a-10"] == PodOnNode(
        namespace="kafka", name="orders-broker-a-10", uid="orders-broker-a-10", kafka=True
    )
    assert {name for name, each in found.items() if each.kafka} == {"orders-broker-a-10"}
    assert {name for name, each in found.items() if each.stays} == {"agent", "static"}
    assert {name for name, each in found.items() if not each.owned} == {"debug"}
    assert {name for name, each in found.items() if each.stopping} == {"going"}
    assert "done" not in found


def marked(**spec: Any) -> dict[str, list[dict[str, Any]]]:
    found = node("a", "i-1", **spec)
    found["metadata"] |= {"resourceVersion": "7", "annotations": spec.pop("marks", {})}
    return {NODE_PATH: [found]}


def test_a_cordon_names_its_incident_and_another_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    made, pool = drain(monkeypatch, marked())
    made.cordon("a", "i-1")
    ((path, body),) = pool.patched
    assert path == NODE_PATH
    assert body == {
        "metadata": {"resourceVersion": "7", "annotations": {CORDON_ANNOTATION: "i-1"}},
        "spec": {"unschedulable": True},
    }
    made, pool = drain(monkeypatch, marked(unschedulable=True))
    made.cordon("a", "i-1")
    made.uncordon("a", "i-1")  # somebody else's
    assert pool.patched == []


def test_only_the_incidents_own_cordon_is_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = marked(unschedulable=True)
    pages[NODE_PATH][0]["metadata"]["annotations"] = {CORDON_ANNOTATION: "i-1"}
    made, pool = drain(monkeypatch, pages)
    made.uncordon("a", "i-2")
    assert pool.patched == []
    made.uncordon("a", "i-1")
    assert pool.patched[0][1]["spec"] == {"unschedulable": None}
    pool.status = 409
    with pytest.raises(Conflict):
        made.uncordon("a", "i-1")


def test_an_eviction_names_the_very_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    made, pool = drain(monkeypatch, {})
    assert made.evict("kafka", "orders-broker-a-10", "u-1") is None
    ((path, body),) = pool.posted
    assert path == EVICTION
    assert body["kind"] == "Eviction"
    assert body["deleteOptions"] == {"preconditions": {"uid": "u-1"}}


@every_case(
    ("status", "message"),
    [
        (404, None),  # Who is gone needs no eviction.
        (409, None),
        (429, "Cannot evict pod as it would violate the pod's disruption budget."),
        (403, 'admission webhook "drain.strimzi.io" denied the request: it will be rolled.'),
    ],
)
def test_a_refusal_is_an_answer(
    monkeypatch: pytest.MonkeyPatch, status: int, message: str | None
) -> None:
    made, pool = drain(monkeypatch, {})
    pool.said = (status, {"message": message or "not this one"})
    assert made.evict("kafka", "orders-broker-a-10", "u-1") == message


@pytest.mark.parametrize("status", [403, 500])
def test_a_failure_is_none(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    made, pool = drain(monkeypatch, {})
    pool.said = (status, {"message": "pods is forbidden"})
    with pytest.raises(StillwaterError, match=str(status)):
        made.evict("kafka", "orders-broker-a-10", "u-1")
