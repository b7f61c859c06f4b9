"""Where the parallel bench puts partitions makes each zone a party; what a plan says of a run."""

from dataclasses import replace
from typing import Any

import pytest

from core.rotation.run_record import NodeTurn, Options, Phase, Run, open_run

BROKERS = [10, 11, 20, 21, 30, 31]


@pytest.fixture(scope="module")
def parallel() -> Any:
    """The bench, with the twin below it: seconds for every worker that only collects this file."""
    from bench import parallel  # noqa: PLC0415

    return parallel


def test_each_zone_has_its_own_two_brokers(parallel: Any) -> None:
    from bench.fleet.ground import brokers_of  # noqa: PLC0415 - as above

    pool = {"first_node_id": 10, "node_ids_per_zone": 10, "nodes_per_zone": 2}
    assert sorted(brokers_of(pool)) == BROKERS
    assert parallel.zones_of(BROKERS) == [[10, 11], [20, 21], [30, 31]]


def test_apart_no_two_brokers_of_a_zone_hold_the_same_partition(parallel: Any) -> None:
    load, placed = parallel.load, parallel.apart(parallel.zones_of(BROKERS))
    assert len(placed) == load.PARTITIONS
    for replicas in placed.values():
        assert len({broker // 10 for broker in replicas}) == load.REPLICATION_FACTOR
    # Each broker leads, and holds, as much as any other.
    leads = [sum(replicas[0] == broker for replicas in placed.values()) for broker in BROKERS]
    assert set(leads) == {load.PARTITIONS // len(BROKERS)}


def test_a_party_that_was_cut_is_seen_though_others_went_together(parallel: Any) -> None:
    whole = _run({10: (0, 70), 11: (0, 80), 20: (80, 150), 21: (80, 160)}, per_party=2)
    assert parallel.figures(whole)["parties"] == 2
    cut = replace(whole, turns=(*whole.turns[:2], *(replace(t, party=()) for t in whole.turns[2:])))
    assert parallel.figures(cut)["parties"] == 3


def test_a_plan_foretells_the_run_from_its_first_party(parallel: Any) -> None:
    # Two zones of two. The first took 80 s, as its slower turn; the second is not seen yet.
    by_zone_at_once = _run({10: (0, 70), 11: (0, 80), 20: (80, 500), 21: (80, 600)}, per_party=2)
    assert parallel.foretold(by_zone_at_once) == pytest.approx(160)
    alone = _run({10: (0, 70), 11: (70, 500), 20: (500, 501)}, per_party=1)
    assert parallel.foretold(alone) == pytest.approx(210)


def _run(took: dict[int, tuple[float, float]], per_party: int) -> Run:
    ids = sorted(took)
    turns = tuple(
        NodeTurn(
            node_id=node_id,
            pod=f"harbour-broker-{node_id}",
            role="broker",
            pool="broker",
            zone="us-east-1a",
            instance_id=f"i-{node_id}",
            why="asked for",
            phase=Phase.DONE,
            began_at=took[node_id][0],
            since=took[node_id][0],
            done_at=took[node_id][1],
            party=tuple(ids[place - place % per_party :][:per_party]) if per_party > 1 else (),
        )
        for place, node_id in enumerate(ids)
    )
    return open_run(turns, Options(), "me", 0.0)
