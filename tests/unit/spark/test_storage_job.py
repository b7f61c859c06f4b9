"""What is said of a volume: the same as the advisor says, and what no advisor sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row

from core.cost import pricing
from core.ground import instances
from core.settings.facts import Facts, Pool, Volume
from core.volumes.sizing import Goals, Gp3, Performance, Resync, Use, instance_ceiling, right_size
from spark.transforms import volumes

BOOK = pricing.book("us-east-1")
GIB = 1024**3
FACTS = Facts(
    cluster="harbour",
    archive_name="prod-harbour",
    region="us-east-1",
    zones=3,
    replication_factor=3,
    retention_seconds=86_400,
    resync_within_seconds=600,
    pools=(Pool("broker", True, "r7g.xlarge", 3, (Volume(500, 3000, 125),)),),
)


def billed(**changes: Any) -> Row:
    fields: dict[str, Any] = {
        "billing_period": "2026-11",
        "cluster": "harbour",
        "owner": "broker-a",
        "node_id": 10,
        "zone": "us-east-1a",
        "resource_id": "vol-1",
        "kind": "gp3",
        "days": 20,
        "last_day": date(2026, 11, 20),
        "size_gib": 1000.0,
        "billed_iops": 3000.0,
        "billed_gib_per_s": 125 / 1024,
        "gib_month_price": 0.08,
        "iops_month_price": 0.005,
        "billed_cost": Decimal(60),
        "used_bytes": 400 * GIB,
        "growth_bytes_per_day": 1.0 * GIB,
        "append_bytes_per_s": 30e6,
        "iops_p999": 900.0,
        "throughput_p999_bytes_per_s": 40e6,
        "volume_exceeded_share": 0.0,
        "instance_exceeded_share": 0.0,
    }
    return Row(**{**fields, **changes})


def advised(*rows: Row, facts: Facts = FACTS) -> list[Any]:
    return list(volumes.advised(list(rows), facts, BOOK, 300.0))


def test_a_volume_is_sized_exactly_as_the_advisor_sizes_it() -> None:
    (row,) = advised(billed())
    goals = Goals(ceiling=instance_ceiling(instances.table().types["r7g.xlarge"]))
    same = right_size(
        Gp3(1000, Performance(6000, 250)),
        Use(
            used_bytes=400 * GIB,
            growth_bytes_per_day=1.0 * GIB,
            iops_p999=900.0,
            throughput_p999_bytes_per_s=40e6,
        ),
        BOOK,
        goals,
        Resync(append_bytes_per_s=30e6, away_seconds=300.0, within_seconds=600),
    )
    wanted = Gp3(row.wanted_size_gib, Performance(row.wanted_iops, row.wanted_throughput_mib_per_s))
    assert wanted == same.wanted
    assert row.monthly_saving == pytest.approx(-same.monthly_usd_change, abs=Decimal("0.01"))
    assert row.finding == "larger than needed"


FULL = {"used_bytes": 800 * GIB}
INCLUDED = {"billed_iops": 0.0, "billed_gib_per_s": 0.0}
# Of a rate near its limit, at which more was never asked for.
NEAR = {
    **FULL,
    **INCLUDED,
    "append_bytes_per_s": None,
    "iops_p999": 2990.0,
    "throughput_p999_bytes_per_s": 124 * 1024**2,
}
ONE: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], str]] = {
    "performance that nobody measured is not taken away": (
        {"iops_p999": None, "throughput_p999_bytes_per_s": None},
        {"wanted_iops": 6000, "wanted_throughput_mib_per_s": 250},
        "",
    ),
    # 3,000 IOPS at 0.005 and 125 MiB/s at 0.04.
    "a full one that is too fast is slowed in place": (
        {**FULL, "append_bytes_per_s": None},
        {
            "finding": "faster than needed",
            "wanted_size_gib": 1000,
            "one_off_cost": 0,
            "monthly_saving": 20,
        },
        "",
    ),
    "one near its limit is not too slow": (
        NEAR,
        {"finding": "fits", "wanted_iops": 3000, "wanted_throughput_mib_per_s": 125},
        "",
    ),
    "nor is one of which nobody knows": (
        {**NEAR, "volume_exceeded_share": None},
        {"finding": "fits"},
        "demand above its limit was not measured",
    ),
    "the instance is the limit": (
        {**FULL, "instance_exceeded_share": 0.3},
        {"finding": "held back by its instance", "wanted_iops": None},
        "r7g.xlarge sustains",
    ),
    "a young one is known from the spec": (
        {"days": 1, "size_gib": 0.2, **INCLUDED},
        {"size_gib": 500, "known_from": "spec"},
        "",
    ),
    "without any sample none is forgotten": (
        {"used_bytes": None},
        {"finding": "not measured", "monthly_saving": 0},
        "pass --metrics",
    ),
}


@pytest.mark.parametrize("case", ONE)
def test_what_is_said_of_one_volume(case: str) -> None:
    changes, wanted, reason = ONE[case]
    (row,) = advised(billed(**changes))
    assert {name: getattr(row, name) for name in wanted} == wanted
    assert reason in row.reason


def test_no_more_is_asked_than_the_instance_sustains() -> None:
    (row,) = advised(billed(throughput_p999_bytes_per_s=400e6, used_bytes=800 * GIB))
    assert row.wanted_throughput_mib_per_s <= instances.table().types["r7g.xlarge"].ebs_mib_per_s


def test_a_volume_whose_claim_no_node_mounts_is_attached_to_nothing() -> None:
    rows = advised(billed(), billed(resource_id="vol-2", node_id=11, used_bytes=None))
    assert rows[1].finding == "attached to nothing"
    # 1,000 GiB and 3,000 IOPS above the included, at the bill's own prices.
    assert rows[1].monthly_saving == Decimal(95)


def test_without_samples_the_older_of_two_volumes_for_one_claim_is_left_behind() -> None:
    blind = {"used_bytes": None, "growth_bytes_per_day": None}
    older, newer = advised(
        billed(resource_id="vol-old", days=20, **blind),
        billed(resource_id="vol-new", days=4, **blind),
    )
    assert (older.finding, older.monthly_saving) == ("attached to nothing", Decimal(95))
    assert "is billed for 2 volumes where its spec has 1" in older.reason
    assert newer.finding == "not measured"


@pytest.mark.parametrize(
    "second",
    [
        pytest.param({"days": 20}, id="as-old"),
        pytest.param({"days": 4, "node_id": 11}, id="of-another-node"),
        pytest.param({"days": 4, "last_day": date(2026, 11, 9)}, id="gone"),
    ],
)
def test_without_samples_no_volume_is_left_behind_for_nothing(second: dict[str, Any]) -> None:
    blind = {"used_bytes": None, "growth_bytes_per_day": None}
    rows = advised(
        billed(resource_id="vol-1", **blind), billed(**{"resource_id": "vol-2", **blind, **second})
    )
    assert {row.finding for row in rows} == {"not measured"}


def test_two_volumes_of_a_node_share_its_fill_by_size() -> None:
    rows = advised(billed(size_gib=750.0), billed(resource_id="vol-2", size_gib=250.0))
    assert [row.used_bytes for row in rows] == [300 * GIB, 100 * GIB]


@pytest.mark.parametrize(
    ("kind", "price", "iops", "finding"),
    [
        ("gp2", 0.10, 0.0, "move to gp3"),
        ("io1", 0.125, 4000.0, "move to gp3"),
        ("st1", 0.045, 0.0, "fits"),
    ],
)
def test_dearer_kinds_move_to_gp3(kind: str, price: float, iops: float, finding: str) -> None:
    one = billed(
        kind=kind, gib_month_price=price, billed_iops=iops, iops_month_price=0.065,
        billed_gib_per_s=None,
    )  # fmt: skip
    (row,) = advised(one)
    assert row.finding == finding
    assert (row.monthly_saving > 0) == (finding == "move to gp3")
    if kind == "gp2":
        # 100 dollars; gp3 with gp2's 3,000 IOPS; 250 MiB/s are more than the instance's 149.
        assert row.wanted_throughput_mib_per_s == 149
        assert row.monthly_saving == pytest.approx(Decimal(100) - 80 - Decimal("0.96"))


def test_a_snapshot_outlives_its_volume_for_a_price() -> None:
    kept = billed(resource_id="snap-1", kind="snapshot", gib_month_price=0.05, billed_iops=None)
    alone = billed(
        resource_id="snap-2", kind="snapshot", gib_month_price=0.05, billed_iops=None, node_id=12
    )
    rows = {row.resource_id: row for row in advised(billed(), kept, alone)}
    assert rows["snap-1"].finding == "fits"
    assert rows["snap-2"].finding == "snapshot of a volume that is gone"
    assert rows["snap-2"].monthly_saving == Decimal(50)


def test_an_unknown_instance_sets_no_ceiling() -> None:
    pool = replace(FACTS.pools[0], instance_type="x9z.huge")
    fast = billed(
        throughput_p999_bytes_per_s=400e6, used_bytes=800 * GIB, volume_exceeded_share=0.5
    )
    (row,) = advised(fast, facts=replace(FACTS, pools=(pool,)))
    assert row.wanted_throughput_mib_per_s >= 458
