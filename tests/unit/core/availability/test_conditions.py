"""core.availability.operator: what a Kafka's status says, as Strimzi 1.2.0 writes it."""

from __future__ import annotations

from typing import Any

from core.availability.operator import kafka_conditions

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
