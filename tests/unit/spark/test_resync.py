"""Rotations as the jobs see them, against a plain Python twin that lived through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from core.cost import pricing
from core.ground.errors import InvalidInput
from spark import samples
from spark.files import LocalFiles
from spark.samples import Series
from spark.transforms import rotations as job
from spark.transforms.rotations import forecast
from tests.unit.spark import simulated
from tests.unit.spark.simulated import FACTS, STEP_SECONDS, Rotation

BOOK = pricing.book("us-east-1")
# From a quick restart to half an hour away, slow and fast, in the order they happened.
ROTATIONS = tuple(
    Rotation(10 + 10 * number, simulated.at(11, 3 + number), away, append)
    for number, (away, append) in enumerate(
        [(240, 30e6), (60, 30e6), (1200, 30e6), (300, 90e6), (600, 5e6), (30, 120e6)]
    )
)


def samples_of(path: Path) -> list[Series]:
    return samples.read(str(path), FACTS.cluster)


def rotations_of(folder: Path) -> list[Any]:
    names = {"archive_name": FACTS.archive_name, "cluster": FACTS.cluster}
    return job.read_history(LocalFiles(), str(folder), **names)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Any]:
    folder = tmp_path_factory.mktemp("rotations")
    series = [one for rotation in ROTATIONS for one in simulated.series(rotation)]
    answer = simulated.write_metrics(folder / "metrics.json", series)
    simulated.write_history(folder / "history", ROTATIONS)
    rotations = rotations_of(folder / "history")
    return job.resync_rows(rotations, samples_of(answer), FACTS, BOOK)


def test_what_was_measured_is_what_happened_to_one_sample(found: Sequence[Any]) -> None:
    assert [row.node_id for row in found] == [rotation.node_id for rotation in ROTATIONS]
    for row, rotation in zip(found, ROTATIONS, strict=True):
        _, truth = simulated.live(rotation)
        step = rotation.copy_bytes_per_s * STEP_SECONDS
        assert row.measured_from == "metrics"
        assert row.resolution_seconds == STEP_SECONDS
        assert row.down_seconds == pytest.approx(rotation.away_seconds, abs=STEP_SECONDS)
        assert row.catch_up_seconds == pytest.approx(truth.catch_up_seconds, abs=STEP_SECONDS)
        assert row.moved_bytes == pytest.approx(truth.moved_bytes, abs=step)
        assert row.append_bytes_per_s == pytest.approx(rotation.append_bytes_per_s, rel=0.02)
        assert row.held_bytes == pytest.approx(rotation.held_bytes)


def test_the_model_tells_what_was_measured(found: Sequence[Any]) -> None:
    for row, rotation in zip(found, ROTATIONS, strict=True):
        _, truth = simulated.live(rotation)
        assert row.model_seconds == pytest.approx(
            truth.catch_up_seconds, rel=0.15, abs=2 * STEP_SECONDS
        )


def test_a_kept_volume_costs_next_to_nothing_and_an_empty_one_all_it_holds(
    found: Sequence[Any],
) -> None:
    for row, rotation in zip(found, ROTATIONS, strict=True):
        gib = Decimal(row.moved_bytes) / pricing.BYTES_PER_GIB
        assert row.gross_cost == pytest.approx(gib * Decimal("0.02"))
        step = Decimal(rotation.copy_bytes_per_s * STEP_SECONDS * 2) / pricing.BYTES_PER_GIB
        assert row.incremental_cost <= step * Decimal("0.02")
        # 900 GiB less what would have come anyway.
        late = Decimal(rotation.append_bytes_per_s * rotation.away_seconds)
        expected = (900 - late / pricing.BYTES_PER_GIB) * Decimal("0.02")
        assert row.empty_cost == pytest.approx(expected, rel=Decimal("0.02"))
        assert row.empty_seconds > row.catch_up_seconds * 5


def test_the_rate_is_the_tightest_limit_until_a_faster_one_was_seen(found: Sequence[Any]) -> None:
    assert found[0].rate_from == "the volumes' throughput"
    assert found[0].rate_bytes_per_s == 200 * 1024**2
    assert found[1].rate_from == "the fastest of 1 before"


def test_the_next_rotation_is_foretold_from_those_before(found: Sequence[Any]) -> None:
    ahead = forecast(found)
    assert ahead is not None
    assert ahead.rotations == len(ROTATIONS)
    assert ahead.down_seconds == pytest.approx(270, abs=STEP_SECONDS)
    assert ahead.low_seconds < ahead.down_seconds < ahead.high_seconds


def test_without_samples_the_ledger_alone_says_how_long_it_took(tmp_path: Path) -> None:
    rotation = ROTATIONS[0]
    simulated.write_history(tmp_path / "history", [rotation])
    nothing = samples_of(simulated.write_metrics(tmp_path / "none.json", []))
    (row,) = job.resync_rows(rotations_of(tmp_path / "history"), nothing, FACTS, BOOK)
    _, truth = simulated.live(rotation)
    assert row.measured_from == "ledger"
    assert row.total_seconds == rotation.away_seconds + truth.catch_up_seconds
    assert row.moved_bytes is None
    assert row.gross_cost is None


def test_another_clusters_rotations_stay_out(tmp_path: Path) -> None:
    simulated.write_history(tmp_path, ROTATIONS[:2])
    assert (
        job.read_history(LocalFiles(), str(tmp_path), archive_name="prod-other", cluster="b") == []
    )


def test_a_line_that_is_no_incident_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "incidents" / "closed_on=2026-11-03"
    folder.mkdir(parents=True)
    (folder / "i-1.jsonl").write_text("{not json\n")
    with pytest.raises(InvalidInput, match="holds a line that is not an incident"):
        job.read_history(LocalFiles(), str(tmp_path), archive_name="a", cluster="b")


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ('{"status": "error", "error": "query timed out"}', "query timed out"),
        ('{"status": "success", "data": {"resultType": "vector", "result": []}}', "holds a vector"),
        ("[1, 2]", "not an answer of the range-query API"),
    ],
)
def test_what_is_no_range_is_refused_with_what_to_ask(
    tmp_path: Path, answer: str, complaint: str
) -> None:
    path = tmp_path / "metrics.json"
    path.write_text(answer)
    with pytest.raises(InvalidInput, match=complaint):
        samples.read(str(path), "harbour")


def test_what_is_sampled_twice_counts_once(tmp_path: Path) -> None:
    short = [{**one, "values": one["values"][:4]} for one in simulated.series(ROTATIONS[0])]
    once = samples_of(simulated.write_metrics(tmp_path / "one.json", short))
    both = tmp_path / "both"
    both.mkdir()
    for name in ("one.json", "two.json"):
        simulated.write_metrics(both / name, short)
    assert samples_of(both) == once
    assert {len(series.points) for series in once} == {2, 4}


def test_an_instance_nobody_knows_is_limited_by_its_volumes() -> None:
    pool = replace(FACTS.pools[0], instance_type="x9z.huge")
    rate = job.rate_for("broker-a", [], replace(FACTS, pools=(pool,)))
    assert rate is not None
    assert rate.known_from == "the volumes' throughput"
    assert job.rate_for("broker-a", [], replace(FACTS, pools=())) is None
