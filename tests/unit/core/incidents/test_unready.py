"""The first sentence names what keeps a broker away; what is not Kafka's keeps no instance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from core.health.pods import trouble_of
from core.incidents.observation import NodeView, Observation, PodView
from core.incidents.record import Incident, State
from core.incidents.replacement import causes, still_missing, why_unready
from handlers.adapters.claims import claim_troubles
from tests.every_case import every_case
from tests.unit.core.incidents.announced_incidents import POLICY, opened_incident

NAME = "orders-broker-a-10"
NEW = NodeView(
    name="new",
    instance_id="i-new",
    zone="z",
    pool="broker",
    ready=True,
    schedulable=True,
    csi_ready=True,
)
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
    "a reason of a later kubelet": (
        shown(main=waiting("CreatePodSandboxError")),
        ("CreatePodSandboxError", f"`kubectl describe pod {NAME}` says why"),
    ),
    "an init container that crashes": (
        shown(
            init={**waiting("CrashLoopBackOff"), "lastState": ended(1, "Error")},
            main=BEHIND,
        ),
        (
            "CrashLoopBackOff",
            f"exit code 1 (Error); `kubectl logs {NAME} -c kafka-init --previous`",
        ),
    ),
    "an init container between two crashes": (
        shown(init={"state": ended(3, "Error")}, main=BEHIND),
        ("PodInitializing", "init container kafka-init has ended with exit code 3"),
    ),
    "an init container without its image": (
        shown(init=waiting("ImagePullBackOff"), main=BEHIND),
        ("ImagePullBackOff", "init container kafka-init waits in ImagePullBackOff"),
    ),
    "a broker that the kernel ended": (
        shown(main={**waiting("CrashLoopBackOff"), "lastState": ended(137, "OOMKilled")}),
        ("CrashLoopBackOff", "exit code 137 (OOMKilled)"),
    ),
    "no node": (
        shown(
            conditions=[
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/6 nodes are available: 1 Insufficient memory.",
                }
            ]
        ),
        ("Unschedulable", "0/6 nodes are available: 1 Insufficient memory"),
    ),
    "a readiness gate": (
        shown(
            main={"state": {"running": {}}},
            conditions=conditions(PodScheduled="True", ContainersReady="True", Ready="False"),
        ),
        ("", "its readiness gate target-health/orders is not met"),
    ),
    "nothing yet": (shown(main=waiting("ContainerCreating")), ("ContainerCreating", "")),
    "an init container that is done": (
        shown(init={"state": ended(0, "Completed")}, main={"state": {"running": {}}}),
        ("", ""),
    ),
}


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
