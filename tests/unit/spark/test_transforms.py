"""Whose an instance's cost is, what crossed zones, and how rotations went.

Shares of a bill are never more than was billed. Rotations are held against a plain Python twin that
lived through them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.cost import pricing
from core.ground.errors import InvalidInput
from spark import samples
from spark.files import LocalFiles
from spark.rules.meters import Flow
from spark.samples import BYTES_OUT, Series, seconds_of
from spark.transforms import rotations as job
from spark.transforms.grain import cost_rows
from spark.transforms.rotations import forecast
from spark.transforms.transfer import BYTES_PER_GB, Traffic, traffic, transfer_rows
from tests.every_case import every_case
from tests.unit.spark import bills, simulated
from tests.unit.spark.simulated import FACTS, STEP_SECONDS, Rotation

DAY = date(2026, 10, 3)


def of_a_day(cost: Decimal, **more: Any) -> Mapping[str, Any]:
    """Return a row of the cost grain, on one day of one cluster."""
    money = dict.fromkeys(("billed_cost", "amortised_cost", "net_cost"), cost)
    own = {"billing_period": "2026-10", "day": DAY, "cluster": "orders", "currency": "USD"}
    return {**own, **money, **more}


# --- Brokers: over a rotation and after it.

TWO_BROKERS = [("vol-10", "broker-a", 10), ("vol-11", "broker-a", 11)]
THREE_INSTANCES = [(name, "broker-a", None) for name in ("i-gone", "i-now", "i-too")]


@every_case(
    ("resources", "history", "by_node"),
    [
        # A broker's cost runs on over its instance's replacement.
        ([TWO_BROKERS[0], *THREE_INSTANCES[:2]], {"i-gone": 10}, {10: 3}),
        # Of two brokers in a zone only what the ledger knows is said.
        ([*TWO_BROKERS, *THREE_INSTANCES], {"i-gone": 11}, {10: 1, 11: 2, None: 2}),
        # What is no instance stays as the bill says.
        ([TWO_BROKERS[0], ("arn:lb", "whole cluster", None)], {}, {10: 1, None: 1}),
    ],
)
def test_an_instances_cost_is_the_brokers_that_it_carried(
    resources: Sequence[tuple[str, str, int | None]],
    history: Mapping[str, int],
    by_node: Mapping[int | None, int],
) -> None:
    bought = {"component": "broker compute", "attribution": "node pool", "charges": 24}
    rows = [
        of_a_day(
            Decimal(1), **bought, owner=owner, node_id=node,
            instance_id=resource if resource.startswith("i-") else None,
        )
        for resource, owner, node in resources
    ]  # fmt: skip
    past = [SimpleNamespace(instance_id=i, node_id=n) for i, n in history.items()]
    table = cost_rows(bills.grain(*rows), past).to_pylist()
    assert sum(row["billed_cost"] for row in table) == len(resources)
    assert {row["node_id"]: int(row["billed_cost"]) for row in table} == by_node


# --- What crossed zones, shared out by the brokers' counters.

Billed = Mapping[Flow, int]
Explained = Mapping[str, tuple[int, str]]
OPEN = "between zones, flow not known"
BETWEEN = Flow.UNEXPLAINED
PRODUCED, REPLICATED = {"produce": (20, "shared")}, {"replicate": (120, "shared")}
REST = {OPEN: (20, "billed")}


def seen(
    produced: int, replicated: int, consumed: int, zones: int = 3, follower: bool | None = None
) -> dict[Any, Traffic]:
    """Return what the brokers counted, in GB, and whether they allow reads from followers."""
    counted = (each * BYTES_PER_GB for each in (produced, replicated, consumed))
    return {(DAY, "orders"): Traffic(*counted, zones, follower)}


# GB that were billed, what counters say, and what each flow had by which certainty. Of 30 GB
# produced and 60 consumed two thirds cross; 60 replicated cross whole, billed twice.
FLOWS: Mapping[str, tuple[Billed, Any, Explained]] = {
    "what counters say was billed": (
        {BETWEEN: 200},
        seen(30, 60, 60),
        {**PRODUCED, **REPLICATED, "consume": (40, "at most"), **REST},
    ),
    # Of 40 GB that would cross 15 were billed beside what was produced and replicated.
    "where brokers let them consumers have what the bill leaves": (
        {BETWEEN: 155},
        seen(30, 60, 60, follower=True),
        {**PRODUCED, **REPLICATED, "consume": (15, "at most")},
    ),
    "and never more than all of them would cross with": (
        {BETWEEN: 200},
        seen(30, 60, 60, follower=True),
        {**PRODUCED, **REPLICATED, "consume": (40, "at most"), **REST},
    ),
    "where brokers do not what they cross with is known": (
        {BETWEEN: 200},
        seen(30, 60, 60, follower=False),
        {**PRODUCED, **REPLICATED, "consume": (40, "shared"), **REST},
    ),
    "counters that saw more than was billed share out the bill": (
        {BETWEEN: 90},
        seen(30, 60, 60),
        {"produce": (10, "shared"), "replicate": (60, "shared"), "consume": (20, "at most")},
    ),
    "in one zone nothing is explained": (
        {BETWEEN: 10}, seen(30, 60, 60, zones=1), {OPEN: (10, "billed")},
    ),
    "without counters neither": ({BETWEEN: 10}, {}, {OPEN: (10, "billed")}),
    "what its own meter names is never shared out": (
        {
            BETWEEN: 60, Flow.PEERING: 5, Flow.LOAD_BALANCER_ZONES: 7, Flow.PRIVATELINK: 1,
            Flow.LOAD_BALANCER: 0,
        },
        seen(30, 10, 0),
        {
            **PRODUCED, "replicate": (20, "shared"), **REST, "peering": (5, "billed"),
            "load balancer between zones": (7, "billed"), "PrivateLink": (1, "billed"),
            "load balancer": (0, "billed"),
        },
    ),
}  # fmt: skip


@every_case(("billed", "counters", "wanted"), FLOWS.values(), ids=FLOWS)
def test_each_flow_has_its_bytes_and_all_of_them_the_bill(
    billed: Billed, counters: Any, wanted: Explained
) -> None:
    # At a cent a GB.
    moved = [
        of_a_day(Decimal(gb) / 100, flow=flow.value, gigabytes=Decimal(gb))
        for flow, gb in billed.items()
    ]
    found = {row.flow: row for row in transfer_rows(bills.grain(*moved), counters)}
    bytes_of = {
        flow: (round(r.billed_bytes / BYTES_PER_GB), r.certainty) for flow, r in found.items()
    }
    assert bytes_of == wanted
    whole = Decimal(sum(billed.values()))
    assert sum(row.billed_bytes for row in found.values()) == whole * BYTES_PER_GB
    assert sum(row.billed_cost for row in found.values()) == whole / 100
    # Fetching from the own zone would leave out what consumers cost, and nothing else.
    for flow, row in found.items():
        assert row.rack_aware_saving == (row.billed_cost if flow == "consume" else 0)


def test_what_the_brokers_allow_stands_beside_their_counters() -> None:
    hours = [seconds_of(datetime(2026, 10, 3, hour, tzinfo=UTC)) or 0.0 for hour in (1, 2)]
    points = list(zip(hours, (5.0, 12.0), strict=True))
    counted = Series(name=BYTES_OUT, cluster="orders", points=points)
    for allowed in (True, False, None):
        found = traffic([counted], 3, follower_fetching=allowed)
        assert found == {(DAY, "orders"): Traffic(0, 0, 7, 3, allowed)}


# --- Rotations.

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


def rotations_of(folder: Path, archive_name: str = FACTS.archive_name) -> list[Any]:
    names = {"archive_name": archive_name, "cluster": FACTS.cluster}
    return job.read_history(LocalFiles(), str(folder), **names)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Any]:
    folder = tmp_path_factory.mktemp("rotations")
    series = [one for rotation in ROTATIONS for one in simulated.series(rotation)]
    answer = simulated.write_metrics(folder / "metrics.json", series)
    rotations = rotations_of(simulated.write_history(folder / "history", ROTATIONS))
    return job.resync_rows(rotations, samples_of(answer), FACTS, BOOK)


def test_what_was_measured_is_what_happened_to_one_sample(found: Sequence[Any]) -> None:
    assert [row.node_id for row in found] == [rotation.node_id for rotation in ROTATIONS]
    for row, rotation in zip(found, ROTATIONS, strict=True):
        _, truth = simulated.live(rotation)
        copied = rotation.copy_bytes_per_s * STEP_SECONDS
        assert (row.measured_from, row.resolution_seconds) == ("metrics", STEP_SECONDS)
        assert row.down_seconds == pytest.approx(rotation.away_seconds, abs=STEP_SECONDS)
        assert row.catch_up_seconds == pytest.approx(truth.catch_up_seconds, abs=STEP_SECONDS)
        assert row.moved_bytes == pytest.approx(truth.moved_bytes, abs=copied)
        assert row.append_bytes_per_s == pytest.approx(rotation.append_bytes_per_s, rel=0.02)
        assert row.held_bytes == pytest.approx(rotation.held_bytes)
        # The model tells what was measured.
        close = pytest.approx(truth.catch_up_seconds, rel=0.15, abs=2 * STEP_SECONDS)
        assert row.model_seconds == close


def test_a_kept_volume_costs_little_and_an_empty_one_all_it_holds(found: Sequence[Any]) -> None:
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
    # An instance that nobody knows is limited by its volumes.
    pool = replace(FACTS.pools[0], instance_type="x9z.huge")
    rate = job.rate_for("broker-a", [], replace(FACTS, pools=(pool,)))
    assert rate is not None
    assert rate.known_from == "the volumes' throughput"
    assert job.rate_for("broker-a", [], replace(FACTS, pools=())) is None


def test_the_next_rotation_is_foretold_from_those_before(found: Sequence[Any]) -> None:
    ahead = forecast(found)
    assert ahead is not None
    assert ahead.rotations == len(ROTATIONS)
    assert ahead.down_seconds == pytest.approx(270, abs=STEP_SECONDS)
    assert ahead.low_seconds < ahead.down_seconds < ahead.high_seconds


def test_without_samples_the_ledger_alone_says_how_long_it_took(tmp_path: Path) -> None:
    rotation = ROTATIONS[0]
    past = rotations_of(simulated.write_history(tmp_path / "history", [rotation]))
    nothing = samples_of(simulated.write_metrics(tmp_path / "none.json", []))
    (row,) = job.resync_rows(past, nothing, FACTS, BOOK)
    _, truth = simulated.live(rotation)
    assert row.total_seconds == rotation.away_seconds + truth.catch_up_seconds
    assert (row.measured_from, row.moved_bytes, row.gross_cost) == ("ledger", None, None)


def test_anothers_rotations_stay_out_and_a_line_that_is_none_is_named(tmp_path: Path) -> None:
    simulated.write_history(tmp_path, ROTATIONS[:2])
    assert rotations_of(tmp_path, "prod-other") == []
    folder = tmp_path / "incidents" / "closed_on=2026-11-03"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "i-1.jsonl").write_text("{not json\n")
    with pytest.raises(InvalidInput, match="holds a line that is not an incident"):
        rotations_of(tmp_path)


@every_case(
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
        samples_of(path)


def test_what_is_sampled_twice_counts_once(tmp_path: Path) -> None:
    short = [{**one, "values": one["values"][:4]} for one in simulated.series(ROTATIONS[0])]
    once = samples_of(simulated.write_metrics(tmp_path / "one.json", short))
    both = tmp_path / "both"
    both.mkdir()
    for name in ("one.json", "two.json"):
        simulated.write_metrics(both / name, short)
    assert samples_of(both) == once
    assert {len(series.points) for series in once} == {2, 4}
