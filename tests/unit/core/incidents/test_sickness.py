"""Sickness is believed of two, and the first sentence names what keeps a broker away."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.events import Kind
from core.health.pods import trouble_of
from core.incidents.observation import NodeView, Observation, PodView, StatusView
from core.incidents.record import Incident, State, Transition
from core.incidents.replacement import causes, still_missing, why_unready
from core.incidents.sweep import Announce, Concern, Snapshot, sickness_findings
from handlers.adapters.claims import claim_troubles
from tests.every_case import every_case
from tests.unit.core.incidents.announced_incidents import POLICY, opened_incident
from tests.unit.views import node_view

NOW = 1_795_168_800.0
OLD_AGE = NOW - 90 * 86_400
# Two machines in each of three zones.
IDS = {f"i-{zone}{n}": f"us-east-1{zone}" for zone in "abc" for n in (1, 2)}


def node(instance_id: str, **changed: Any) -> NodeView:
    view = node_view(f"ip-{instance_id}", instance_id, IDS[instance_id], created_at=OLD_AGE)
    return replace(view, **changed)


def storage(seconds: float) -> dict[str, Any]:
    return {"sick": {"StorageReady": NOW - seconds}}


def unready(seconds: float) -> dict[str, Any]:
    return {"ready": False, "unready_since": NOW - seconds}


def checks(**failing: float) -> dict[str, StatusView]:
    """Return EC2's answer about everybody: i_a1=300 says that its system check fails for 300 s."""
    named = {key.replace("_", "-"): seconds for key, seconds in failing.items()}
    return {
        id_: StatusView(
            instance_id=id_, impaired={"system": NOW - named[id_]} if id_ in named else {}
        )
        for id_ in IDS
    }


def ward(
    ill: Mapping[str, Mapping[str, Any]],
    statuses: Mapping[str, StatusView] | None = None,
    **changed: Any,
) -> Snapshot:
    nodes = tuple(node(id_, **ill.get(id_, {})) for id_ in IDS)
    known = checks() if statuses is None else statuses
    states = dict.fromkeys(IDS, "running")
    return replace(Snapshot(now=NOW, nodes=nodes, states=states, statuses=known), **changed)


def incident(instance_id: str, kind: Kind) -> Incident:
    return Incident(
        id=instance_id,
        instance_id=instance_id,
        kind=kind,
        state=State.OPENED,
        opened_at=NOW,
        announced_at=NOW,
        announcements=(f"sweep:{kind.value}:{instance_id}:StorageReady",),
        transitions=(Transition(NOW, State.OPENED, "sweep", "It is sick."),),
    )


TREATED = (incident("i-a1", Kind.SICK_NODE),)


def leaving(found: Snapshot) -> list[str]:
    return [f.interruption.instance_id for f in sickness_findings(found) if isinstance(f, Announce)]


def concerns(found: Snapshot) -> list[str]:
    return [f.reason for f in sickness_findings(found) if isinstance(f, Concern)]


@every_case(
    ("ill", "failing", "leaves"),
    [
        pytest.param(storage(1799), {}, False, id="the agent alone, not for long enough"),
        pytest.param(storage(1800), {}, True, id="the agent alone, as long as EKS waits"),
        pytest.param(unready(1799), {}, False, id="the kubelet alone, not for long enough"),
        pytest.param(unready(1800), {}, True, id="the kubelet alone, for long"),
        pytest.param({}, {"i_a1": 599}, False, id="EC2 alone, while it may still recover it"),
        pytest.param({}, {"i_a1": 600}, True, id="EC2 alone, for long"),
        pytest.param(storage(120), {"i_a1": 120}, True, id="the agent and EC2"),
        pytest.param(storage(120) | unready(120), {}, True, id="the agent and the kubelet"),
        pytest.param(unready(130), {"i_a1": 119}, False, id="a reboot looks like both"),
        pytest.param({"sick": {"StorageReady": NOW - 300, "KernelReady": NOW - 300}}, {}, False,
            id="two conditions of one agent are one witness"),
    ],
)  # fmt: skip
def test_two_who_agree_are_believed_and_one_alone_must_last(
    ill: Mapping[str, Any], failing: Mapping[str, float], leaves: bool
) -> None:
    assert leaving(ward({"i-a1": ill}, checks(**failing))) == (["i-a1"] if leaves else [])


def test_another_machines_termination_keeps_no_sick_one_where_it_is() -> None:
    other = (incident("i-b1", Kind.ASG_TERMINATE),)
    assert leaving(ward({"i-a1": storage(1800)}, incidents=other)) == ["i-a1"]


def test_what_was_sick_at_birth_is_a_persons() -> None:
    latched = {"created_at": NOW - 86_400, "sick": {"NetworkingReady": NOW - 86_400 + 30}}
    (said,) = concerns(ward({"i-a1": latched}))
    assert "restart its pod" in said
    young = {"created_at": NOW - 3000} | storage(1800)
    (said,) = concerns(ward({"i-a1": young}))
    assert "within an hour of its birth" in said
    assert leaving(ward({"i-a1": latched})) == leaving(ward({"i-a1": young})) == []


@pytest.mark.parametrize(
    "ids", [("i-a1", "i-a2"), ("i-a1", "i-b1", "i-c1")], ids=["a zone", "the cluster"]
)
def test_where_many_are_sick_nobody_leaves_and_somebody_is_told(ids: tuple[str, ...]) -> None:
    found = ward({id_: storage(7200) for id_ in ids})
    assert leaving(found) == []
    (said,) = concerns(found)
    assert "Replacing them would not help" in said


def test_a_sick_machine_in_a_zone_in_trouble_is_the_zones() -> None:
    found = ward({"i-a1": storage(7200)}, zones_in_trouble=frozenset({"us-east-1a"}))
    assert list(sickness_findings(found)) == []


def test_the_clearest_case_goes_first_and_nobody_beside_it() -> None:
    ill = {"i-a1": storage(7200), "i-b1": storage(300)}
    found = ward(ill, checks(i_b1=300))
    assert leaving(found) == ["i-b1", "i-a1"]
    beside = replace(found, incidents=(incident("i-b1", Kind.SICK_NODE),))
    assert list(sickness_findings(beside)) == []


def test_only_who_is_called_well_by_everybody_is_well_again() -> None:
    (said,) = sickness_findings(ward({}, incidents=TREATED))
    assert isinstance(said, Announce)
    assert said.interruption.closed
    assert said.interruption.instance_id == "i-a1"
    assert list(sickness_findings(ward({}, statuses={}, incidents=TREATED))) == []
    assert list(sickness_findings(ward({"i-a1": {"ready": False}}, incidents=TREATED))) == []
    assert list(sickness_findings(ward({"i-a1": storage(1)}, incidents=TREATED))) == []
    begun = replace(TREATED[0], terminate_asked_at=NOW)
    assert list(sickness_findings(ward({}, incidents=(begun,)))) == []
    drained = replace(TREATED[0], state=State.DRAINING)
    assert list(sickness_findings(ward({}, incidents=(drained,)))) == []
    retired = replace(TREATED[0], kind=Kind.SCHEDULED_CHANGE)
    assert list(sickness_findings(ward({}, incidents=(retired,)))) == []  # It leaves all the same.


def test_what_leaves_or_does_not_run_is_nobodys_patient() -> None:
    found = ward({"i-a1": storage(7200)})
    leaves = replace(found, incidents=(incident("i-a1", Kind.ASG_TERMINATE),))
    assert list(sickness_findings(leaves)) == []
    assert list(sickness_findings(replace(found, states={"i-a1": "stopped"}))) == []


@given(
    st.dictionaries(st.sampled_from(sorted(IDS)), st.sampled_from([storage(7200), unready(7200)])),
    st.sets(st.sampled_from(sorted(IDS.values()))),
)
def test_never_does_anybody_leave_where_a_third_is_sick(
    ill: Mapping[str, Mapping[str, Any]], zones: set[str]
) -> None:
    going = leaving(ward(ill, zones_in_trouble=frozenset(zones)))
    assert not going or len(ill) <= len(IDS) / 3
    for id_ in going:
        assert IDS[id_] not in zones
        assert sum(IDS[other] == IDS[id_] for other in ill) == 1


NAME = "orders-broker-a-10"
NEW = node_view("new", "i-new")
POD = PodView(name=NAME, node_id=10, role="broker", node_name="new", ready=True)
CLAIM = f"data-0-{NAME}"


def shown(*, init: Any = None, main: Any = None, **status: Any) -> dict[str, Any]:
    containers = {
        "initContainerStatuses": [{"name": "kafka-init", **init}] if init else [],
        "containerStatuses": [{"name": "kafka", **main}] if main else [],
    }
    return {
        "metadata": {"name": NAME},
        "spec": {"readinessGates": [{"conditionType": "target-health/orders"}]},
        "status": {**containers, **status},
    }


def waiting(reason: str, **more: Any) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, **more}}}


def ended(code: int, reason: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason}}


def conditions(**told: str) -> list[dict[str, str]]:
    return [{"type": kind, "status": status} for kind, status in told.items()]


BEHIND = waiting("PodInitializing")
TROUBLES = {
    "a container that cannot be made": (
        shown(main=waiting("CreateContainerError", message="context deadline exceeded")),
        ("CreateContainerError", "container kafka waits in CreateContainerError (context deadline"),
    ),
    "a reason of a later kubelet": (shown(main=waiting("CreatePodSandboxError")),
        ("CreatePodSandboxError", f"`kubectl describe pod {NAME}` says why")),
    "an init container that crashes": (
        shown(init={**waiting("CrashLoopBackOff"), "lastState": ended(1, "Error")}, main=BEHIND),
        ("CrashLoopBackOff",
            f"exit code 1 (Error); `kubectl logs {NAME} -c kafka-init --previous`")),
    "an init container between two crashes": (shown(init={"state": ended(3, "Error")}, main=BEHIND),
        ("PodInitializing", "init container kafka-init has ended with exit code 3")),
    "an init container without its image": (shown(init=waiting("ImagePullBackOff"), main=BEHIND),
        ("ImagePullBackOff", "init container kafka-init waits in ImagePullBackOff")),
    "a broker that the kernel ended": (
        shown(main={**waiting("CrashLoopBackOff"), "lastState": ended(137, "OOMKilled")}),
        ("CrashLoopBackOff", "exit code 137 (OOMKilled)")),
    "no node": (
        shown(
            conditions=[
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                    "message": "0/6 nodes are available: 1 Insufficient memory."}]),
        ("Unschedulable", "0/6 nodes are available: 1 Insufficient memory")),
    "a readiness gate": (
        shown(main={"state": {"running": {}}},
            conditions=conditions(PodScheduled="True", ContainersReady="True", Ready="False")),
        ("", "its readiness gate target-health/orders is not met")),
    "nothing yet": (shown(main=waiting("ContainerCreating")), ("ContainerCreating", "")),
    "an init container that is done": (
        shown(init={"state": ended(0, "Completed")}, main={"state": {"running": {}}}), ("", "")),
}  # fmt: skip


@every_case("case", TROUBLES)
def test_a_pod_says_why_it_does_not_start(case: str) -> None:
    pod, (word, cause) = TROUBLES[case]
    found = trouble_of(pod)
    assert found.word == word
    assert cause in found.cause
    assert bool(found.cause) == bool(cause)


CLAIMS = {
    "a resize that waits for its node": {
        "status": {"allocatedResourceStatuses": {"storage": "NodeResizePending"}}
    },
    "the same as a condition": {"status": {"conditions": conditions(NodeResizePending="True")}},
    "a resize that failed": {"status": {"conditions": conditions(NodeResizeError="True")}},
    "a file system": {"status": {"conditions": conditions(FileSystemResizePending="True")}},
    "a volume that is gone": {"status": {"phase": "Lost"}},
    "a claim that is deleted": {"metadata": {"name": CLAIM, "deletionTimestamp": "now"}},
}


@every_case("case", CLAIMS)
def test_a_claim_that_keeps_its_pod_waiting_is_named(case: str) -> None:
    (said,) = claim_troubles({"metadata": {"name": CLAIM}, **CLAIMS[case]})
    assert CLAIM in said
    assert not list(claim_troubles({"metadata": {"name": CLAIM}, "status": {"phase": "Bound"}}))


def gated(**changed: Any) -> tuple[Incident, Observation]:
    incident = replace(
        opened_incident(),
        state=State.GATING,
        zone="z",
        pool="broker",
        node_name="old",
        node_id=10,
        pod_name=NAME,
    )
    seen = Observation(now=1.0, instance=None, nodes=(NEW,), pods=(POD,))
    return incident, replace(seen, **changed)


READY = replace(POLICY, gate="ready")


def test_what_another_claim_has_attached_does_not_keep_the_instance() -> None:
    another = {"old": ("pvc-of-grafana",)}
    assert still_missing(*gated(attachments=another), READY) is None
    held = still_missing(*gated(attachments=another, volumes=("vol-1",)), READY)
    assert held == "Volume pvc-of-grafana is still attached to old."


def test_the_gate_names_why_the_broker_is_not_back() -> None:
    away = replace(POD, ready=False, trouble="ContainerCreating")
    seen = {
        "pods": (away,),
        "nodes": (replace(NEW, sick={"NetworkingReady": 0.0}),),
        "claim_troubles": (f"claim {CLAIM} says NodeResizePending",),
        "attachments": {"old": ("pvc-of-grafana",)},
    }
    said = still_missing(*gated(**seen), READY) or ""
    assert said.startswith("Volume pvc-of-grafana is still attached to old. Pod")
    for named in ("ContainerCreating", "NodeResizePending", "new reports NetworkingReady as False"):
        assert named in said


def test_a_cordon_keeps_no_pod_that_is_there() -> None:
    assert list(causes(POD, replace(NEW, schedulable=False))) == []
    _, seen = gated()
    assert why_unready("somebody-else", seen) == ""
