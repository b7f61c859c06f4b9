"""core.availability.operator: what a Kafka's status says, and what Strimzi is about to do."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.availability.operator import (
    OperatorTask,
    Revisions,
    kafka_conditions,
    operator_tasks,
    read_operator,
)
from core.incidents.observation import PodView

NOW = 1_800_000_000.0
ROLL = {"strimzi.io/manual-rolling-update": "true"}
RECORDED = Path(__file__).parents[5] / "shared" / "data" / "strimzi-1.2.0"


def reconciled(*conditions: dict[str, str], observed: int | None = 3) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    status = {"observedGeneration": observed, "conditions": list(conditions or (ready,))}
    return {"metadata": {"name": "orders", "generation": 3}, "status": status}


def pool(observed: int | None = 1) -> dict[str, Any]:
    status = {"observedGeneration": observed}
    return {"metadata": {"name": "a", "generation": 1}, "status": status}


def pod_set(current: int = 1, observed: int = 1, **annotations: str) -> dict[str, Any]:
    marks = {"strimzi.io/revision": "r1", "strimzi.io/resource-revision": "s1"}
    return {
        "metadata": {"name": "orders-a", "generation": 1, "annotations": annotations},
        "spec": {"pods": [{"metadata": {"name": "orders-a-10", "annotations": marks}}]},
        "status": {"observedGeneration": observed, "pods": 1, "currentPods": current},
    }


POD = PodView(
    name="orders-a-10",
    node_id=10,
    role="broker",
    node_name="n",
    ready=True,
    revisions=Revisions("r1", "s1"),
)


def tasks(
    resource: dict[str, Any] | None = None,
    pools: tuple[dict[str, Any], ...] = (pool(),),
    sets: tuple[dict[str, Any], ...] = (pod_set(),),
    pods: tuple[PodView, ...] = (POD,),
    ours: frozenset[str] = frozenset(),
) -> list[OperatorTask]:
    view = read_operator(resource or reconciled(), pools, sets)
    return list(operator_tasks(view, pods, ours, NOW))


def test_an_operator_that_has_finished_has_nothing_to_do() -> None:
    assert tasks() == []


NOT_READY = {
    "type": "NotReady",
    "status": "True",
    "reason": "FatalProblem",
    "message": "Pod orders-a-10 is unschedulable or is not starting",
    "lastTransitionTime": "2027-01-15T07:00:00.123456789Z",
}
PAUSED = {
    "type": "ReconciliationPaused",
    "status": "True",
    "lastTransitionTime": "2027-01-15T07:00:00Z",
}
CAUSES: dict[str, tuple[dict[str, Any], str]] = {
    "description": ({"pods": (replace(POD, revisions=Revisions("r0", "s1")),)},
        "restart pod orders-a-10: its description has changed"),
    "resources": ({"pods": (replace(POD, revisions=Revisions("r1", "s0")),)},
        "restart pod orders-a-10: its resources have changed"),
    "a pod marked by hand": ({"pods": (replace(POD, roll_asked=True),)},
        "restart pod orders-a-10: somebody asked for it"),
    "a pod set marked by hand": ({"sets": (pod_set(**ROLL),)}, "the pods of orders-a, as asked"),
    "configuration": ({"resource": reconciled(observed=2)}, "older generation"),
    "never reconciled": ({"resource": reconciled(observed=None)}, "older generation"),
    "a pool changed just now": ({"pools": (pool(observed=None),)}, "KafkaNodePool a"),
    "a pod set changed just now": ({"sets": (pod_set(observed=0),)}, "StrimziPodSet orders-a"),
    "counted by its controller alone": ({"sets": (pod_set(current=0),)}, "1 of the pods of"),
    "a failed reconciliation": ({"resource": reconciled(NOT_READY)},
        "FatalProblem: Pod orders-a-10"),
    "paused": ({"resource": reconciled(PAUSED)}, "strimzi.io/pause-reconciliation"),
    "a deletion by somebody else": ({"pods": (replace(POD, ready=False, stopping=True),)},
        "orders-a-10 is being deleted, and no incident"),
    "scaled down": ({"sets": ()}, "remove pod orders-a-10"),
}  # fmt: skip


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_of_a_restart_is_seen(cause: str) -> None:
    changed, sentence = CAUSES[cause]
    (task,) = tasks(**changed)
    assert sentence in task.sentence


def test_a_pod_that_an_incident_of_ours_takes_out_is_nobody_elses_doing() -> None:
    leaving = replace(POD, ready=False, stopping=True)
    assert tasks(pods=(leaving,), ours=frozenset({POD.name})) == []


def test_work_that_failed_or_is_paused_has_no_end_of_its_own() -> None:
    """A roll that goes on has one, however long it takes; a time that is not known is none."""
    for condition in (NOT_READY, PAUSED):
        (task,) = tasks(reconciled(condition))
        assert task.is_stalled(NOW)
        assert not task.is_stalled(NOW - 8 * 3600)
        untimed = {**condition, "lastTransitionTime": "soon"}
        assert not any(each.is_stalled(NOW) for each in tasks(reconciled(untimed)))
    (rolling,) = tasks(reconciled(observed=2))
    assert not rolling.is_stalled(NOW + 86_400)


def test_a_pod_past_its_time_to_stop_is_stalled() -> None:
    stuck = replace(POD, ready=False, stopping=True, out_since=NOW - 601)
    (task,) = tasks(pods=(stuck,))
    assert task.is_stalled(NOW)
    (stopping,) = tasks(pods=(replace(stuck, out_since=NOW + 300),))
    assert not stopping.is_stalled(NOW)


def test_what_cannot_be_read_raises() -> None:
    broken = copy.deepcopy(reconciled())
    broken["status"]["observedGeneration"] = "three"
    with pytest.raises(ValueError, match="three"):
        read_operator(broken, (), ())


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded objects of Strimzi are not here")
def test_the_recorded_objects_of_the_real_operator_are_read() -> None:
    def recorded(name: str) -> list[dict[str, Any]]:
        return list(yaml.safe_load_all((RECORDED / f"{name}.yaml").read_text()))

    (resource,) = recorded("kafkas")
    view = read_operator(resource, recorded("kafkanodepools"), recorded("strimzipodsets"))
    assert view.kafka.not_ready.reason == "RuntimeException"
    assert (view.kafka.generation_observed, view.pools_behind) == (True, ())
    wanted = {name: to_be for each in view.pod_sets for name, to_be in each.pods.items()}
    assert len(wanted) == 6
    assert None not in {mark for to_be in wanted.values() for mark in to_be}
    assert [each.outdated for each in view.pod_sets] == [0] * 6


SINCE = "2026-11-28T13:58:33.916448010Z"
IGNORED = (
    "The desired Kafka storage configuration in the KafkaNodePool resource kafka/broker-a contains "
    "changes which are not allowed. As a result, all storage changes will be ignored."
)


def kafka(
    *conditions: dict[str, Any], generation: int = 3, observed: int | None = 3, **marks: str
) -> dict[str, Any]:
    annotations = {f"strimzi.io/{key.replace('_', '-')}": value for key, value in marks.items()}
    return {
        "metadata": {"name": "orders", "generation": generation, "annotations": annotations},
        "status": {"conditions": list(conditions), "observedGeneration": observed},
    }


def condition(kind: str, status: str = "True", **told: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "lastTransitionTime": SINCE, **told}


READY = condition("Ready")


def test_a_kafka_that_the_operator_has_carried_out_is_ready() -> None:
    found = kafka_conditions(kafka(READY))
    assert found.ready
    assert (found.not_ready, found.warnings, found.paused) == (None, (), False)


def test_ready_with_the_old_generation_is_a_roll() -> None:
    found = kafka_conditions(kafka(READY, generation=4))
    assert found.ready
    assert not found.generation_observed


def test_trouble_is_the_condition_not_ready_with_its_reason_and_since_when() -> None:
    trouble = condition("NotReady", reason="FatalProblem", message="Pod is\n unschedulable")
    found = kafka_conditions(kafka(trouble))
    assert not found.ready
    assert found.not_ready is not None
    assert str(found.not_ready) == "FatalProblem: Pod is unschedulable"
    assert found.not_ready.since is not None
    assert int(found.not_ready.since) == 1795874313


def test_a_warning_beside_ready_says_what_was_ignored() -> None:
    ignored = condition("Warning", reason="KafkaStorage", message=IGNORED)
    found = kafka_conditions(kafka(ignored, READY))
    assert [each.message for each in found.ignored] == [IGNORED]
    assert found.objections == found.ignored


def test_advice_about_what_was_done_is_no_refusal() -> None:
    advice = condition("Warning", reason="KafkaMetadataVersion", message="It is older.")
    found = kafka_conditions(kafka(advice, READY))
    assert len(found.warnings) == 1
    assert found.ignored == found.objections == ()


def test_a_warning_of_another_kind_is_an_objection_and_nothing_that_was_ignored() -> None:
    ephemeral = condition("Warning", reason="KafkaStorage", message="A single broker loses them.")
    found = kafka_conditions(kafka(ephemeral, condition("Warning", reason="DeprecatedFields")))
    assert len(found.objections) == 2
    assert found.ignored == ()


def test_a_paused_kafka_says_so_by_its_annotation_or_its_condition() -> None:
    assert kafka_conditions(kafka(READY, pause_reconciliation="TRUE")).paused
    assert kafka_conditions(kafka(condition("ReconciliationPaused"))).paused


def test_a_condition_that_does_not_hold_says_nothing() -> None:
    found = kafka_conditions(kafka(condition("Ready", "False"), condition("NotReady", "False")))
    assert not found.ready
    assert found.not_ready is None


def test_a_kafka_without_a_status_is_not_observed() -> None:
    found = kafka_conditions({"metadata": {"name": "orders", "generation": 1}})
    assert (found.ready, found.generation_observed) == (False, False)


def test_a_rebalance_that_moves_replicas_is_work_of_any_pod() -> None:
    def rebalance(state: str) -> dict[str, Any]:
        held = [{"type": state, "status": "True"}, {"type": "Ready", "status": "False"}]
        return {"metadata": {"name": state.lower()}, "status": {"conditions": held}}

    states = ("New", "ProposalReady", "Rebalancing", "Stopped", "Ready")
    view = read_operator(
        reconciled(), (), (), [{"metadata": {"name": "new"}}, *map(rebalance, states)]
    )
    (task,) = operator_tasks(view, (), (), 0.0)
    assert task.pods == frozenset()
    assert task.sentence.startswith(
        "Cruise Control moves replicas for KafkaRebalance rebalancing. Wait until it is Ready"
    )
