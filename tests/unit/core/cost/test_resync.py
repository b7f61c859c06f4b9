"""The way back into every ISR, against a clock that moves in small steps, and by its identities."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cost.resync import (
    CatchUp,
    Divergence,
    Flow,
    after_loss,
    after_outage,
    held_bytes,
    slowest,
)
from core.ground.errors import InvalidInput
from tests.every_case import every_case

MB = 1e6
rates = st.floats(0.1 * MB, 500 * MB)
outages = st.floats(1, 3_600)
retentions = st.floats(7_200, 1_000_000)
STEPS = 2_000


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """Draw flows that end: replication brings in at least a tenth more than is appended."""
    appended = draw(rates)
    return Flow(
        append_bytes_per_s=appended, replication_bytes_per_s=appended * draw(st.floats(1.1, 20))
    )


def ended(way: CatchUp | Divergence) -> CatchUp:
    assert isinstance(way, CatchUp), way
    return way


def step_by_step(flow: Flow, behind: float, step: float) -> tuple[float, float]:
    """Let a clock run: each step appends, then copies what the rate allows; return when, how much.

    The plain restatement: no formula of the model is in it.
    """
    clock = copied = 0.0
    while behind > 0:
        rate = flow.replication_bytes_per_s
        behind += flow.append_bytes_per_s * step
        behind -= rate * step
        copied += rate * step
        clock += step
    return clock, copied


@given(flows(), st.floats(1 * MB, 1e12))
def test_the_model_is_what_a_clock_in_small_steps_comes_to(flow: Flow, held: float) -> None:
    way = ended(after_loss(flow, outage_seconds=0, held_bytes=held))
    step = way.seconds / STEPS
    seconds, copied = step_by_step(flow, held, step)
    fastest = flow.replication_bytes_per_s
    slowest_gain = flow.replication_bytes_per_s - flow.append_bytes_per_s
    slack = step * (1 + fastest / slowest_gain)
    assert abs(seconds - way.seconds) <= slack
    assert abs(copied - way.gross_bytes) <= fastest * slack


@given(flows(), outages, retentions)
def test_a_kept_volume_never_takes_longer_or_moves_more_than_an_empty_one(
    flow: Flow, outage: float, retention: float
) -> None:
    held = held_bytes(flow.append_bytes_per_s, retention)
    kept = ended(after_outage(flow, outage_seconds=outage, held_bytes=held))
    empty = ended(after_loss(flow, outage_seconds=outage, held_bytes=held))
    assert kept.seconds <= empty.seconds
    assert kept.gross_bytes <= empty.gross_bytes


@given(rates, st.floats(1.1, 20), outages, retentions)
def test_times_and_bytes_are_to_each_other_as_retention_to_outage(
    appended: float, headroom: float, outage: float, retention: float
) -> None:
    flow = Flow(append_bytes_per_s=appended, replication_bytes_per_s=appended * headroom)
    held = held_bytes(appended, retention)
    kept = ended(after_outage(flow, outage_seconds=outage, held_bytes=held))
    empty = ended(after_loss(flow, outage_seconds=outage, held_bytes=held))
    ratio = max(1.0, retention / outage)
    assert empty.seconds / kept.seconds == pytest.approx(ratio)
    assert empty.gross_bytes / kept.gross_bytes == pytest.approx(ratio)


@given(flows(), outages, retentions)
def test_what_a_kept_volume_missed_would_have_been_copied_anyway(
    flow: Flow, outage: float, retention: float
) -> None:
    held = held_bytes(flow.append_bytes_per_s, retention)
    assert ended(after_outage(flow, outage_seconds=outage, held_bytes=held)).incremental_bytes == 0


@given(flows(), outages, retentions)
def test_an_empty_volume_costs_all_it_held_but_what_was_late(
    flow: Flow, outage: float, retention: float
) -> None:
    held = held_bytes(flow.append_bytes_per_s, retention)
    way = ended(after_loss(flow, outage_seconds=outage, held_bytes=held))
    as_usual = flow.append_bytes_per_s * (outage + way.seconds)
    assert way.incremental_bytes == pytest.approx(way.gross_bytes - as_usual, rel=1e-6)


@given(rates, st.floats(0, 1), outages)
def test_replication_no_faster_than_what_is_appended_never_ends_and_says_so(
    appended: float, share: float, outage: float
) -> None:
    flow = Flow(
        append_bytes_per_s=appended,
        replication_bytes_per_s=appended * share,
        limited_by="follower.replication.throttled.rate",
    )
    way = after_outage(flow, outage_seconds=outage)
    assert isinstance(way, Divergence)
    assert "follower.replication.throttled.rate" in way.sentence
    assert f"above {appended / MB:.2f} MB/s" in way.sentence


def test_the_worked_example_of_a_production_broker() -> None:
    flow = Flow(append_bytes_per_s=30 * MB, replication_bytes_per_s=200 * MB)
    held = held_bytes(flow.append_bytes_per_s, 72 * 3_600)
    kept = ended(after_outage(flow, outage_seconds=300, held_bytes=held))
    empty = ended(after_loss(flow, outage_seconds=300, held_bytes=held))
    assert kept.seconds == pytest.approx(53, abs=0.5)
    assert kept.gross_bytes == pytest.approx(10.6e9, rel=0.01)
    assert empty.seconds == pytest.approx(12.7 * 3_600, rel=0.01)


def test_an_outage_beyond_retention_is_a_lost_volume_with_less_to_copy() -> None:
    flow = Flow(append_bytes_per_s=1 * MB, replication_bytes_per_s=5 * MB)
    held = held_bytes(flow.append_bytes_per_s, 600)
    kept = ended(after_outage(flow, outage_seconds=900, held_bytes=held))
    assert kept == after_loss(flow, outage_seconds=900, held_bytes=held)
    assert kept.incremental_bytes == -300 * MB


def test_nothing_appended_while_away_is_no_way_at_all() -> None:
    flow = Flow(append_bytes_per_s=0, replication_bytes_per_s=0)
    assert ended(after_outage(flow, outage_seconds=300)).seconds == 0


def test_a_cap_in_bytes_holds_less_than_retention_would() -> None:
    assert held_bytes(10 * MB, 3_600, cap_bytes=5e9) == 5e9
    assert held_bytes(1 * MB, 3_600, cap_bytes=5e9) == 3.6e9


def test_the_limit_that_decides_is_named() -> None:
    limits = {"gp3 throughput": 125 * MB, "the instance's network": 90 * MB}
    assert slowest(limits) == ("the instance's network", 90 * MB)


@every_case(
    ("ask", "named"),
    [
        pytest.param(
            lambda: Flow(append_bytes_per_s=-1, replication_bytes_per_s=1),
            "append_bytes_per_s is -1",
            id="negative flow",
        ),
        pytest.param(
            lambda: Flow(append_bytes_per_s=1, replication_bytes_per_s=math.nan),
            "replication_bytes_per_s is nan",
            id="no number",
        ),
        pytest.param(lambda: held_bytes(1, 1, cap_bytes=-1), "cap_bytes is -1", id="negative cap"),
        pytest.param(lambda: slowest({}), "No limit of replication is known", id="no limit"),
        pytest.param(
            lambda: after_outage(
                Flow(append_bytes_per_s=1, replication_bytes_per_s=2), outage_seconds=-1
            ),
            "outage_seconds is -1",
            id="negative outage",
        ),
    ],
)
def test_a_figure_that_cannot_be_is_refused_by_name(ask: object, named: str) -> None:
    assert callable(ask)
    with pytest.raises(InvalidInput, match=named):
        ask()
