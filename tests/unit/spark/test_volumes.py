"""What is said of a volume: the same as the advisor says, and what no advisor sees.

Report and advisor (λ volumes) are given what the twin's own ClusterSpec says, each through the
document that is rendered for it, and the same measurements: the one as rows of samples, the other
as a forecast and hours. They never contradict.
"""

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from core.cluster import parse
from core.cluster.operated import volumes as advisors_settings
from core.cluster.report_facts import report_facts
from core.cost import pricing
from core.ground import instances
from core.settings.facts import Facts, Pool, Volume
from core.settings.volumes import VolumeSettings
from core.volumes import series
from core.volumes.deciding import DecisionKind, VolumeDecision, decide
from core.volumes.sizing import (
    GIB,
    MIB,
    Goals,
    Gp3,
    Performance,
    Policy,
    Resync,
    Use,
    instance_ceiling,
    right_size,
)
from core.volumes.speed import ThrottleLimit, limited_by
from core.volumes.views import FillForecast, Load
from local.demo import spec as demo_spec
from local.place import Place
from spark.samples import Series
from spark.transforms import volumes
from spark.transforms.volumes import load_by_volume
from tests.every_case import every_case
from tests.unit.core.volumes.views import DAY, NOW, quiet_hours, view, volume_set
from tests.unit.spark import simulated

BOOK = pricing.book("us-east-1")
INSTANCE = instances.table().types["r7g.xlarge"]
POOL = Pool("broker", True, "r7g.xlarge", 3, (Volume(500, 3000, 125),))
FACTS = replace(simulated.FACTS, pools=(POOL,))
BILLED: Mapping[str, Any] = {
    "billing_period": "2026-11", "cluster": "harbour", "owner": "broker-a", "node_id": 10,
    "zone": "us-east-1a", "resource_id": "vol-1", "kind": "gp3", "days": 20,
    "last_day": date(2026, 11, 20), "size_gib": 1000.0, "billed_iops": 3000.0,
    "billed_gib_per_s": 125 / 1024, "gib_month_price": 0.08, "iops_month_price": 0.005,
    "billed_cost": Decimal(60), "used_bytes": 400 * GIB, "growth_bytes_per_day": 1.0 * GIB,
    "append_bytes_per_s": 30e6, "iops_p999": 900.0, "throughput_p999_bytes_per_s": 40e6,
    "volume_exceeded_share": 0.0, "instance_exceeded_share": 0.0,
}  # fmt: skip


def advised(*volumes_billed: Mapping[str, Any], facts: Facts = FACTS) -> list[Any]:
    """Return what the report says of volumes that differ so from BILLED."""
    rows = [Row(**{**BILLED, **changes}) for changes in volumes_billed]
    return list(volumes.advised(rows, facts, BOOK, 300.0))


# --- What is said of one.

FULL = {"used_bytes": 800 * GIB}
INCLUDED = {"billed_iops": 0.0, "billed_gib_per_s": 0.0}
# Of a rate near its limit, at which more was never asked for.
NEAR = {
    **FULL, **INCLUDED, "append_bytes_per_s": None, "iops_p999": 2990.0,
    "throughput_p999_bytes_per_s": 124 * MIB,
}  # fmt: skip
FAST = {**FULL, "throughput_p999_bytes_per_s": 400e6}
BLIND = {"used_bytes": None, "growth_bytes_per_day": None}
OLD_KIND = {"kind": "gp2", "gib_month_price": 0.10, "billed_iops": 0.0, "billed_gib_per_s": None}
SNAPSHOT = {"kind": "snapshot", "gib_month_price": 0.05, "billed_iops": None}
# What differs from BILLED, what the row says, and what its reason names.
ONE: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], str]] = {
    "performance that nobody measured is not taken away": (
        {"iops_p999": None, "throughput_p999_bytes_per_s": None},
        {"wanted_iops": 6000, "wanted_throughput_mib_per_s": 250},
        "",
    ),
    # 3,000 IOPS at 0.005 and 125 MiB/s at 0.04.
    "a full one that is too fast is slowed in place": (
        {**FULL, "append_bytes_per_s": None},
        {"finding": "faster than needed", "wanted_size_gib": 1000, "one_off_cost": 0,
         "monthly_saving": 20},
        "",
    ),
    "one near its limit is not too slow": (
        NEAR, {"finding": "fits", "wanted_iops": 3000, "wanted_throughput_mib_per_s": 125}, "",
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
    "no more is asked than the instance sustains": (
        FAST, {"wanted_throughput_mib_per_s": INSTANCE.ebs_mib_per_s}, "",
    ),
    "a young one is known from the spec": (
        {"days": 1, "size_gib": 0.2, **INCLUDED}, {"size_gib": 500, "known_from": "spec"}, "",
    ),
    "without any sample none is forgotten": (
        {"used_bytes": None}, {"finding": "not measured", "monthly_saving": 0}, "pass --metrics",
    ),
    # gp3 with gp2's 3,000 IOPS; 250 MiB/s are more than the instance's 149, at 0.04.
    "gp2 moves to gp3": (
        OLD_KIND,
        {"finding": "move to gp3", "wanted_throughput_mib_per_s": 149,
         "monthly_saving": Decimal(100) - 80 - Decimal("0.96")},
        "",
    ),
    "io1 moves to gp3": (
        {**OLD_KIND, "kind": "io1", "gib_month_price": 0.125, "billed_iops": 4000.0,
         "iops_month_price": 0.065},
        {"finding": "move to gp3"},
        "",
    ),
    "st1 is cheaper": (
        {**OLD_KIND, "kind": "st1", "gib_month_price": 0.045},
        {"finding": "fits", "monthly_saving": 0},
        "",
    ),
}  # fmt: skip


@every_case(("changes", "wanted", "reason"), ONE.values(), ids=ONE)
def test_what_is_said_of_one_volume(
    changes: Mapping[str, Any], wanted: Mapping[str, Any], reason: str
) -> None:
    (row,) = advised(changes)
    assert {name: getattr(row, name) for name in wanted} == wanted
    assert reason in row.reason
    assert row.finding != "move to gp3" or row.monthly_saving > 0


def test_an_unknown_instance_sets_no_ceiling() -> None:
    facts = replace(FACTS, pools=(replace(POOL, instance_type="x9z.huge"),))
    (row,) = advised({**FAST, "volume_exceeded_share": 0.5}, facts=facts)
    assert row.wanted_throughput_mib_per_s >= 458


def test_a_volume_is_sized_exactly_as_the_advisor_sizes_it() -> None:
    (row,) = advised({})
    same = right_size(
        Gp3(1000, Performance(6000, 250)),
        Use(used_bytes=400 * GIB, growth_bytes_per_day=1.0 * GIB, iops_p999=900.0,
            throughput_p999_bytes_per_s=40e6),
        BOOK,
        Goals(ceiling=instance_ceiling(INSTANCE)),
        Resync(append_bytes_per_s=30e6, away_seconds=300.0, within_seconds=600),
    )  # fmt: skip
    wanted = Gp3(row.wanted_size_gib, Performance(row.wanted_iops, row.wanted_throughput_mib_per_s))
    assert (row.finding, wanted) == ("larger than needed", same.wanted)
    assert row.monthly_saving == pytest.approx(-same.monthly_usd_change, abs=Decimal("0.01"))


# --- What is said of several.


def test_a_volume_whose_claim_no_node_mounts_is_attached_to_nothing() -> None:
    _, row = advised({}, {"resource_id": "vol-2", "node_id": 11, "used_bytes": None})
    # 1,000 GiB and 3,000 IOPS above the included, at the bill's own prices.
    assert (row.finding, row.monthly_saving) == ("attached to nothing", Decimal(95))


def test_without_samples_the_older_of_two_volumes_for_one_claim_is_left_behind() -> None:
    older, newer = advised(BLIND, {**BLIND, "resource_id": "vol-new", "days": 4})
    assert (older.finding, older.monthly_saving) == ("attached to nothing", Decimal(95))
    assert "is billed for 2 volumes where its spec has 1" in older.reason
    assert newer.finding == "not measured"


@every_case(
    "second",
    [{"days": 20}, {"days": 4, "node_id": 11}, {"days": 4, "last_day": date(2026, 11, 9)}],
    ids=["as old", "of another node", "gone"],
)
def test_without_samples_no_volume_is_left_behind_for_nothing(second: dict[str, Any]) -> None:
    rows = advised(BLIND, {**BLIND, "resource_id": "vol-2", **second})
    assert {row.finding for row in rows} == {"not measured"}


def test_two_volumes_of_a_node_share_its_fill_by_size() -> None:
    rows = advised({"size_gib": 750.0}, {"resource_id": "vol-2", "size_gib": 250.0})
    assert [row.used_bytes for row in rows] == [300 * GIB, 100 * GIB]


def test_a_snapshot_outlives_its_volume_for_a_price() -> None:
    kept, alone = {"resource_id": "snap-1"}, {"resource_id": "snap-2", "node_id": 12}
    found = advised({}, {**SNAPSHOT, **kept}, {**SNAPSHOT, **alone})
    rows = {row.resource_id: row for row in found}
    assert rows["snap-1"].finding == "fits"
    assert rows["snap-2"].finding == "snapshot of a volume that is gone"
    assert rows["snap-2"].monthly_saving == Decimal(50)


# --- Report and advisor.

FASTEST = Performance(4000, 250)
Described = tuple[Facts, VolumeSettings]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Described:
    """The twin's cluster, as the report and as the advisor are told of it."""
    spec = parse(demo_spec.spec(Place(99, tmp_path_factory.mktemp("twin"))))
    return report_facts(spec), advisors_settings(spec)


def both(
    described: Described, volume: Gp3, used: float, load: Load, per_day: float = 0.0
) -> tuple[VolumeDecision, Row]:
    """Return the advisor's decision and the report's row."""
    facts, settings = described
    one = replace(
        view(volume, instance_type="r7g.2xlarge"),
        forecast=FillForecast(used_bytes=used, long_rate=per_day / DAY),
        load=load,
    )
    policy = settings.pools["broker-a"].policy
    same = volume_set(one, asked=volume, spec=Gp3(1), policy=policy)
    billed = {
        "size_gib": float(volume.size_gib),
        "billed_iops": float(volume.iops - 3000),
        "billed_gib_per_s": (volume.throughput_mib_per_s - 125) / 1024,
        "used_bytes": used,
        "growth_bytes_per_day": per_day,
        "append_bytes_per_s": None,
        "iops_p999": load.iops_p999,
        "throughput_p999_bytes_per_s": load.bytes_per_s_p999,
        "volume_exceeded_share": load.volume_exceeded_share,
        "instance_exceeded_share": load.instance_exceeded_share,
    }
    (row,) = advised(billed, facts=facts)
    return decide(same, BOOK, NOW)[0], row


def performance(row: Row) -> Performance:
    return Performance(row.wanted_iops, row.wanted_throughput_mib_per_s)


def load_of(shares: tuple[Any, Any], iops: Any, bytes_per_s: Any, **more: Any) -> Load:
    """Return a load of which these shares of time exceeded the volume and its instance."""
    volume, instance = shares
    return Load(
        volume_exceeded_share=volume, instance_exceeded_share=instance, iops_p999=iops,
        bytes_per_s_p999=bytes_per_s, **more,
    )  # fmt: skip


def idle(iops: float = 100.0, mib_per_s: float = 10.0) -> Load:
    """A load that has been the same for days, and that nothing exceeded."""
    return load_of((0.0, 0.0), iops, mib_per_s * MIB, hours=quiet_hours(30, iops, mib_per_s))


@given(st.integers(20, 4000), st.floats(0.01, 0.99), st.floats(-0.05, 0.3))
def test_a_volume_is_too_small_for_both_or_for_neither_and_by_the_same(
    described: Described, size_gib: int, share: float, per_day_share: float
) -> None:
    used, per_day = float(round(share * size_gib * GIB)), per_day_share * size_gib * GIB
    decision, row = both(described, Gp3(size_gib), used, idle(), per_day)
    assert (decision.kind is DecisionKind.GROW) == (row.finding == "too small")
    if decision.target is not None and decision.kind is DecisionKind.GROW:
        assert row.wanted_size_gib == decision.target.size_gib
        assert decision.reason.partition("GiB used")[0].endswith(
            row.reason.partition("less than")[2].partition("GiB used")[0]
        )


@given(st.floats(1, 3300), st.floats(1, 205))
def test_a_volume_is_faster_than_needed_for_both_or_for_neither_and_by_the_same(
    described: Described, iops: float, mib_per_s: float
) -> None:
    # Half full and still: nothing is to be said of its size.
    decision, row = both(described, Gp3(100, FASTEST), 80.0 * GIB, idle(iops, mib_per_s))
    assert (decision.kind is DecisionKind.LOWER) == (row.finding == "faster than needed")
    if decision.target is not None:
        assert performance(row) == decision.target.performance
        assert row.monthly_saving == pytest.approx(-decision.monthly_usd_change, abs=0.01)


@given(
    shares=st.tuples(*[st.none() | st.floats(0, 0.5)] * 2),
    iops=st.none() | st.floats(1, 6000),
    bytes_per_s=st.none() | st.floats(1, 300).map(lambda mib: mib * MIB),
    now=st.sampled_from([Performance(), Performance(3000, 187), FASTEST]),
)
def test_a_volume_is_too_slow_for_both_or_for_neither_and_by_the_same(
    described: Described, shares: Any, iops: Any, bytes_per_s: Any, now: Performance
) -> None:
    load = load_of(shares, iops, bytes_per_s)
    decision, row = both(described, Gp3(100, now), 80.0 * GIB, load)
    is_raised, is_refused = (decision.kind is DecisionKind[n] for n in ("RAISE", "REFUSE"))
    by_instance = is_refused and decision.refused_by == "instance"
    if by_instance and decision.target is None:
        assert row.finding in {"held back by its instance", "too slow"}
    assert by_instance or row.finding != "held back by its instance"
    limit = described[1].pools["broker-a"].policy.exceeded_share
    is_bound = shares[1] is not None and shares[1] >= limit
    assert (row.finding == "too slow") == (is_raised or (is_refused and not is_bound))
    if is_raised and decision.target is not None:
        assert performance(row) == decision.target.performance


# --- The same minutes of the EBS driver's counters, for both.

START = datetime(2026, 11, 20, 14, tzinfo=UTC).timestamp()
MINUTES = 59


def rates_of(volume_minutes: int, instance_minutes: int) -> dict[str, list[float]]:
    """Return what each minute adds in a second, where more was asked for in so many of them."""
    dice = random.Random(volume_minutes)  # noqa: S311 - a load, no secret
    return {
        series.VOLUME_EXCEEDED[0]: [0.0] * MINUTES,
        series.VOLUME_EXCEEDED[1]: [float(n < volume_minutes) for n in range(MINUTES)],
        series.INSTANCE_EXCEEDED[0]: [float(n < instance_minutes) for n in range(MINUTES)],
        series.INSTANCE_EXCEEDED[1]: [0.0] * MINUTES,
        **{
            metric: [dice.uniform(0, 1000) for _ in range(MINUTES)]
            for metric in (*series.OPERATIONS, *series.BYTES)
        },
    }


HALF_SCRAPED = rates_of(30, 30)
del HALF_SCRAPED[series.VOLUME_EXCEEDED[0]], HALF_SCRAPED[series.INSTANCE_EXCEEDED[1]]
RATES = {
    "vol-quiet": (rates_of(0, 0), None),
    "vol-just-below": (rates_of(5, 0), None),
    "vol-throttled": (rates_of(6, 0), ThrottleLimit.VOLUME),
    "vol-of-a-small-instance": (rates_of(6, 30), ThrottleLimit.INSTANCE),
    "vol-half-scraped": (HALF_SCRAPED, None),
}


def counted(volume: str, metric: str, rates: list[float]) -> Series:
    values = accumulate((60 * rate for rate in rates), initial=1000.0)
    points = [(START + 60.0 * n, value) for n, value in enumerate(values)]
    return Series(name=metric.removesuffix("_total"), volume_id=volume, points=points)


def test_report_and_advisor_see_the_same_of_the_same_minutes() -> None:
    known = {volume: rates for volume, (rates, _) in RATES.items()}
    found = load_by_volume(
        [counted(v, *one) for v, rates in known.items() for one in rates.items()]
    )
    assert found.keys() == RATES.keys()
    for volume, (rates, limit) in RATES.items():
        # As Prometheus would give it.
        minutes = {m: {volume: {60.0 * n: r for n, r in enumerate(rates[m])}} for m in rates}
        advisor, row = series.load(volume, minutes), found[volume]
        shares = (row["volume_exceeded_share"], row["instance_exceeded_share"])
        for ours, theirs in zip(
            shares, (advisor.volume_exceeded_share, advisor.instance_exceeded_share), strict=True
        ):
            assert ours is None if theirs is None else ours == pytest.approx(theirs), volume
        # The percentile of an hour of minutes is as good as its highest.
        of = (row["iops_p999"], row["throughput_p999_bytes_per_s"])
        assert of == pytest.approx((advisor.iops_p999, advisor.bytes_per_s_p999), rel=0.03)
        assert limited_by(load_of(shares, *of), Policy()) is limit
