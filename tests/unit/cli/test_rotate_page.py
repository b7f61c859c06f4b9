"""cli.rotate: a bar for each node, as planned and as it went."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from cli.rotate import plan_page, run_page
from cli.terminal import write_page
from core.ground.errors import StillwaterError
from core.rotation.run_record import Options, Phase, open_run
from tests.unit.core.availability.clusters import turn_of

BAR = re.compile(r'class="(\w+)" style="left:([\d.]+)%;width:([\d.]+)%"')


def bars(page: str) -> list[tuple[str, float, float]]:
    return [(kind, float(left), float(wide)) for kind, left, wide in BAR.findall(page)]


def plan_of(*batches: int) -> dict[str, object]:
    nodes = [
        {"node_id": 10 + n, "role": "broker", "zone": "us-east-1<a>", "seconds": 280.0, "batch": b}
        for n, b in enumerate(batches)
    ]
    return {
        "nodes": nodes,
        "seconds": 650.0,
        "interval_seconds": [600.0, 720.0],
        "notes": ["With --at-once zone & more."],
    }


def test_a_plan_shows_parties_one_after_another_and_who_stops_later_in_one() -> None:
    page = plan_page(plan_of(1, 1, 2))
    assert bars(page) == [
        ("takes", 0.0, pytest.approx(100 * 280 / 650, abs=0.01)),
        ("takes", 0.0, pytest.approx(100 * 370 / 650, abs=0.01)),
        ("takes", pytest.approx(100 * 370 / 650, abs=0.01), pytest.approx(43.08, abs=0.01)),
    ]
    assert "us-east-1&lt;a&gt;" in page
    assert "With --at-once zone &amp; more." in page
    assert "Between 10 min and 12 min" in page


def test_a_run_shows_where_the_time_of_each_node_went() -> None:
    run = open_run([turn_of(10), turn_of(20), turn_of(30)], Options(), "ada", 1000.0)
    first = replace(
        run.turn_of(10),
        phase=Phase.DONE,
        began_at=1000.0,
        machine_at=1020.0,
        released_at=1060.0,
        back_since=1080.0,
        done_at=1100.0,
    )
    # Its machine was ready before its turn.
    second = replace(run.turn_of(20), phase=Phase.LEAVING, began_at=1100.0, machine_at=1090.0)
    page = run_page(run.replace_turn(first).replace_turn(second), 1200.0)
    assert bars(page) == [
        ("machine", 0.0, 10.0),
        ("leaving", 10.0, 20.0),
        ("returning", 30.0, 10.0),
        ("holding", 40.0, 10.0),
        ("leaving", 50.0, 50.0),
    ]
    assert "<small>waits</small>" in page


def test_an_empty_plan_is_a_page_too() -> None:
    assert bars(plan_page({**plan_of(), "interval_seconds": None})) == []


def test_a_page_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StillwaterError, match="cannot be written: No such file or directory"):
        write_page(tmp_path / "nowhere" / "plan.html", "")
