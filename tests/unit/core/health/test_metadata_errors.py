"""core.health.kafka: what a snapshot keeps, whom it vetoes, and what is not known."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.health.kafka import (
    ErrorCounts,
    ErrorSnapshot,
    metadata_errors_verdict,
    snapshot,
    snapshot_from_dict,
    vetoes,
)
from core.health.node import Metric, MetricSample, NodeMetrics
from core.health.verdict import Health

CLEAN = ErrorCounts(load=0, apply=0, controller=0)
COUNTS = st.builds(
    ErrorCounts, *(st.one_of(st.none(), st.integers(0, 5)) for _ in ("load", "apply", "controller"))
)
SNAPSHOTS = st.builds(
    ErrorSnapshot,
    st.floats(0, 2e9),
    st.dictionaries(st.integers(0, 30), COUNTS, max_size=5),
    st.dictionaries(st.integers(0, 30), st.text(max_size=20), max_size=3),
)


def metrics(**values: int) -> NodeMetrics:
    return NodeMetrics(
        tuple(MetricSample(Metric[k.upper()], float(v), {}) for k, v in values.items())
    )


BROKER = metrics(metadata_load_errors=0, metadata_apply_errors=0)


@given(SNAPSHOTS)
def test_the_ledger_gives_back_what_it_was_given(taken: ErrorSnapshot) -> None:
    assert snapshot_from_dict(json.loads(json.dumps(taken.to_dict()))) == taken


def test_no_errors_veto_nothing() -> None:
    assert vetoes(ErrorSnapshot(1.0, {10: CLEAN, 0: ErrorCounts(controller=0)})) == ()


@pytest.mark.parametrize(
    ("counts", "runbook"),
    [
        (ErrorCounts(load=1, apply=0), "KafkaMetadataLoadError"),
        (ErrorCounts(load=0, apply=1), "KafkaMetadataApplyError"),
        (ErrorCounts(controller=3), "KafkaControllerMetadataError"),
    ],
)
def test_an_error_of_each_kind_vetoes_and_names_the_node_and_the_runbook(
    counts: ErrorCounts, runbook: str
) -> None:
    (said,) = vetoes(ErrorSnapshot(1.0, {10: CLEAN, 11: counts}))
    assert said.startswith("Node 11 ")
    assert runbook in said
    assert said.endswith(".")


def test_what_was_acknowledged_vetoes_no_more() -> None:
    found = ErrorSnapshot(2.0, {11: ErrorCounts(load=2)})
    assert vetoes(found, acknowledged=found) == ()


def test_one_error_more_than_acknowledged_vetoes_again() -> None:
    seen = ErrorSnapshot(1.0, {11: ErrorCounts(load=2, apply=0)})
    assert vetoes(ErrorSnapshot(2.0, {11: ErrorCounts(load=2, apply=1)}), seen)


def test_errors_acknowledged_of_one_node_are_not_those_of_another() -> None:
    seen = ErrorSnapshot(1.0, {11: ErrorCounts(load=2)})
    assert len(vetoes(ErrorSnapshot(2.0, {12: ErrorCounts(load=1)}), seen)) == 1


@given(SNAPSHOTS)
def test_acknowledging_everything_always_lifts_the_veto(taken: ErrorSnapshot) -> None:
    assert vetoes(taken, acknowledged=taken) == ()


@given(SNAPSHOTS)
def test_a_veto_stands_for_every_node_with_an_error_and_for_no_other(taken: ErrorSnapshot) -> None:
    assert len(vetoes(taken)) == sum(counts.any for counts in taken.nodes.values())


def test_a_node_that_exports_no_counter_is_silent_and_not_clean() -> None:
    taken = snapshot(5.0, {10: BROKER, 11: metrics(leaders=3)}, {12: "It is frozen."})
    assert set(taken.nodes) == {10}
    assert set(taken.silent) == {11, 12}
    assert "allow list" in taken.silent[11]


def test_counters_a_role_has_not_are_not_missed() -> None:
    assert metadata_errors_verdict(10, "broker", BROKER).health is Health.HEALTHY
    assert (
        metadata_errors_verdict(0, "controller", metrics(metadata_errors=0)).health
        is Health.HEALTHY
    )
    found = metadata_errors_verdict(0, "combined", BROKER)
    assert (found.health, found.missing) == (Health.UNKNOWN, ("MetadataErrorCount",))


def test_a_node_that_does_not_answer_is_unknown() -> None:
    assert metadata_errors_verdict(10, "broker", None).health is Health.UNKNOWN


def test_an_error_outweighs_a_counter_that_is_missing() -> None:
    assert (
        metadata_errors_verdict(10, "broker", metrics(metadata_load_errors=1)).health
        is Health.DEGRADED
    )
