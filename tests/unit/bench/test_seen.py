"""What is read from the clients' samples: how long too few were in sync, and what moves hide."""

import pytest

from bench.fleet.seen import (
    MOVE_SETTLES_SECONDS,
    Stretch,
    figures,
    latencies,
    moves,
    refilled_bytes,
    seconds_below,
    smallest,
)


def isr(at: float, least: int, *led_by: int | None, lacking: int = 0) -> dict[str, object]:
    return {
        "kind": "isr", "at": at, "smallest": least, "led_by": list(led_by), "lacking": lacking
    }  # fmt: skip


def ack(at: float, ms: float) -> dict[str, object]:
    return {"kind": "ack", "at": at, "ms": ms}


ALL = Stretch(0, 100)


def test_too_few_in_sync_lasts_until_a_look_finds_enough() -> None:
    samples = [isr(0, 3), isr(10, 1), isr(12, 1), isr(15, 2), isr(20, 3)]
    assert seconds_below(samples, 2, ALL) == 5
    assert smallest(samples, ALL) == 1


def test_too_few_at_the_last_look_lasts_until_the_end() -> None:
    assert seconds_below([isr(90, 1)], 2, ALL) == 10


def test_what_is_outside_of_a_stretch_does_not_count() -> None:
    samples = [isr(5, 1), isr(50, 2)]
    assert seconds_below(samples, 2, Stretch(40, 60)) == 0
    assert smallest(samples, Stretch(60, 80)) is None


def test_what_is_refilled_is_what_was_acknowledged_without_a_replica() -> None:
    samples = [
        *(ack(1, 5), isr(2, 2, lacking=4), ack(3, 5), ack(4, 5)),
        *(isr(5, 1, lacking=8), ack(6, 5), isr(7, 3), ack(8, 5), ack(200, 5)),
    ]
    # Two records while 4 of 12 partitions lack one replica, one while 8 do.
    found = refilled_bytes(samples, ALL, partitions=12, record_bytes=300)
    assert found == (2 * 4 + 8) * 300 // 12


def test_a_move_of_leaders_spans_the_looks_around_it_and_what_settles() -> None:
    samples = [isr(0, 3, 1, 2), isr(10, 2, 1, 1), isr(20, 3, 1, 1)]
    assert moves(samples, ALL) == [Stretch(0, 10 + MOVE_SETTLES_SECONDS)]


@pytest.mark.parametrize("nobody", [None, -1])
def test_a_partition_without_a_leader_is_on_the_move_until_it_has_one(nobody: int | None) -> None:
    samples = [isr(0, 3, 1), isr(10, 2, nobody), isr(11, 2, nobody), isr(12, 2, 2)]
    assert [m.since for m in moves(samples, ALL)] == [0, 10, 11]


def test_a_latency_counts_where_its_record_was_sent() -> None:
    samples = [ack(1, 5.0), ack(15, 500.0), ack(50, 7.0), {"kind": "read", "at": 50, "ms": 9.0}]
    assert latencies(samples, "ack", Stretch(0, 60), [Stretch(10, 20)]) == [5.0, 7.0]


def test_the_figures_hold_rotation_against_steady() -> None:
    samples = [
        *[ack(at, 10.0) for at in range(10)],
        isr(20, 3, 1),
        ack(21, 400.0),
        isr(22, 1, 2),
        isr(24, 3, 2),
        ack(40, 20.0),
    ]
    found = figures(samples, Stretch(0, 20), Stretch(20, 80), 2)
    assert found["p99_ratio"] == 40.0
    assert found["p99_ratio_outside_moves"] == 2.0
    assert (found["leader_moves"], found["moves_s"]) == (1, 4.0)
    assert (found["min_isr_seen"], found["below_min_isr_s"]) == (1, 2.0)
    assert found["minutes"] == 1.0
