"""The twin's Strimzi stand-in, as far as it only computes: ids and rolling."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.kubernetes import strimzi_resources
from local.kubernetes.strimzi_model import annotated_ids, node_ids
from local.kubernetes.strimzi_roller import next_to_roll
from tests.unit.local.described_kafka import pool, rendered_pod


@pytest.mark.parametrize(
    ("annotation", "ids"),
    [
        pytest.param("[10-12]", [10, 11, 12], id="range"),
        pytest.param("[0, 2, 10-11]", [0, 2, 10, 11], id="mixed"),
        pytest.param("[5]", [5], id="one"),
        pytest.param("", [], id="none"),
        pytest.param("[12-10]", [12, 11, 10], id="down"),
        pytest.param("[10-12", [], id="not-closed"),
        pytest.param("[10 11]", [], id="no-comma"),
    ],
)
def test_an_annotation_names_ids(annotation: str, ids: list[int]) -> None:
    assert annotated_ids(annotation) == ids


def test_ids_come_from_the_annotation_then_the_lowest_free() -> None:
    assert node_ids([pool("a", "broker", replicas=3, ids="[10-11]"), pool("b", "broker")]) == {
        "a": [0, 10, 11],
        "b": [1],
    }


def test_a_node_keeps_its_id_when_the_annotation_changes() -> None:
    grown = pool("a", "broker", replicas=2, ids="[50-59]")
    grown["status"] = {"nodeIds": [10]}
    assert node_ids([grown]) == {"a": [10, 50]}


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sets(st.integers(0, 20), max_size=5), st.integers(0, 20)),
        min_size=1,
        max_size=4,
    )
)
def test_no_id_is_given_twice_and_every_pool_gets_its_number(
    drawn: list[tuple[int, set[int], int]],
) -> None:
    pools, taken = [], set[int]()
    for number, (replicas, known, first) in enumerate(drawn):
        one = pool(f"p{number}", "broker", replicas=replicas, ids=f"[{first}-{first + 2}]")
        one["status"] = {"nodeIds": sorted(known - taken)}
        taken |= known
        pools.append(one)
    given_ids = node_ids(pools)
    everything = [node_id for ids in given_ids.values() for node_id in ids]
    assert len(everything) == len(set(everything))
    assert [len(given_ids[f"p{n}"]) for n in range(len(drawn))] == [d[0] for d in drawn]


def live(node_id: int, *, ready: bool = True, old: bool = False, going: bool = False) -> Any:
    pod = rendered_pod(node_id)
    if old:
        pod["metadata"]["annotations"][strimzi_resources.REVISION] = "old"
    if going:
        pod["metadata"]["deletionTimestamp"] = "2026-11-20T00:00:00Z"
    pod["status"] = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return pod


def rolled(**pods: Any) -> str | None:
    wanted = {name: rendered_pod(int(name[1:])) for name in pods}
    return next_to_roll(wanted, {name: pod for name, pod in pods.items() if pod is not None})


@pytest.mark.parametrize(
    ("pods", "next_pod"),
    [
        pytest.param({"n0": live(0), "n10": live(10)}, None, id="nothing-outdated"),
        pytest.param({"n0": live(0, old=True), "n10": live(10, old=True)}, "n0", id="first"),
        pytest.param(
            {"n0": live(0, old=True), "n10": live(10, old=True, ready=False)}, "n10", id="unready"
        ),
        pytest.param(
            {"n0": live(0, old=True), "n10": live(10, ready=False)}, None, id="wait-ready"
        ),
        pytest.param({"n0": live(0, old=True), "n10": live(10, going=True)}, None, id="wait-going"),
        pytest.param({"n0": live(0, old=True), "n10": None}, None, id="wait-missing"),
    ],
)
def test_one_outdated_pod_restarts_while_all_others_are_ready(
    pods: dict[str, Any], next_pod: str | None
) -> None:
    assert rolled(**pods) == next_pod
