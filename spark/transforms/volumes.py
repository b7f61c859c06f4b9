"""Joins bill and samples per volume: what is paid for, what of it is used, and what it should be.

    usage + samples -> billed, used, load -> core.volumes.sizing, volume by volume -> STORAGE

A bill says GB-months, which AWS counts by the second of the calendar month: a day's share times
the month's days is the size. The largest of the last days is taken, since on its first and last
day a volume is billed for a part; quantities of performance are what is above gp3's included part.

What a volume should be is decided in core.volumes, as the advisor decides it. EBS never shrinks:
what is too large is replaced by a pool with smaller volumes; copying between zones, and both pools
running meanwhile, are the remedy's price.
"""

from __future__ import annotations

import math
import re
import statistics
from calendar import monthrange
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Any

from core.cost.pricing import GP3_INCLUDED_IOPS, GP3_INCLUDED_MIB_PER_S, PriceBook
from core.ground import instances
from core.settings.facts import Facts, Pool
from core.volumes.growth import DAY_SECONDS, WORTH_SHRINKING, payback, room
from core.volumes.sizing import (
    GP3_ITEMS,
    Goals,
    Gp3,
    Performance,
    Policy,
    Resync,
    Use,
    change_usd,
    goals_of,
    monthly_usd,
    right_size,
    step_for,
)
from core.volumes.speed import LEAST_SECONDS, ThrottleLimit, helps, limited_by, next_step
from core.volumes.views import FillForecast, Load
from spark.rows import Found, grouped, largest, row_from, summed
from spark.rules.meters import Component, VolumePart, billed_part
from spark.samples import (
    BYTES_IN,
    INSTANCE_EXCEEDED,
    REPLICATION_IN,
    VOLUME_BYTES,
    VOLUME_EXCEEDED,
    VOLUME_OPS,
    VOLUME_USED,
    Series,
    day_of,
    increases,
    of_all_topics,
)
from spark.tables import STORAGE

# Days looked at for a size; three of them hold a whole one.
LAST_DAYS = 3
SNAPSHOT = "snapshot"
P999 = 0.999
_HOUR_SECONDS = 3600


class Finding(StrEnum):
    """What is to be said of a volume, the dearest kind of waste first."""

    ORPHAN = "attached to nothing"
    ORPHAN_SNAPSHOT = "snapshot of a volume that is gone"
    MOVE_TO_GP3 = "move to gp3"
    SMALLER = "larger than needed"
    SLOWER = "faster than needed"
    LARGER = "too small"
    FASTER = "too slow"
    INSTANCE = "held back by its instance"
    FITS = "fits"
    NOT_MEASURED = "not measured"


# EBS:VolumeUsage.gp2; io1 is `piops`, and magnetic has no ending.
_STORAGE = re.compile(r"^EBS:VolumeUsage(?:\.(\w+))?$")
_BY_COMPONENT = {
    Component.GP3_STORAGE.value: "storage",
    Component.GP3_IOPS.value: "iops",
    Component.GP3_THROUGHPUT.value: "throughput",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """One volume or snapshot of a bill: what it is, what it costs, and what was measured of it.

    What was not measured is None.
    """

    billing_period: str
    resource_id: str
    kind: str
    cluster: str | None
    owner: str | None
    node_id: int | None
    zone: str | None
    days: int
    last_day: date
    size_gib: float | None
    billed_iops: float | None
    billed_gib_per_s: float | None
    gib_month_price: float | None
    iops_month_price: float | None
    billed_cost: Decimal
    # Of its node: what the claims hold, how fast that grows, and what the node takes in.
    used_bytes: int | None = None
    growth_bytes_per_day: float | None = None
    append_bytes_per_s: float | None = None
    # The 99.9th percentile of its rates, and its worst hour beyond a limit.
    iops_p999: float | None = None
    throughput_p999_bytes_per_s: float | None = None
    volume_exceeded_share: float | None = None
    instance_exceeded_share: float | None = None


def meter_of(usage_type: str | None, component: str) -> tuple[str | None, str | None]:
    """Return which part of a volume a charge is for, and of storage the volume's type.

    FOCUS, which may name no usage type, says gp3 by the component.
    """
    if usage_type is None:
        part = _BY_COMPONENT.get(component)
        return part, "gp3" if part == "storage" else None
    part = billed_part(usage_type)
    if part is VolumePart.SNAPSHOT:
        return "storage", SNAPSHOT
    found = _STORAGE.search(usage_type)
    if found:
        return "storage", "io1" if found[1] == "piops" else found[1] or "standard"
    return part and part.value, None


def billed_volumes(usage: Iterable[Found]) -> list[Volume]:
    """Return the volumes and snapshots of USAGE rows."""
    known = [
        (row, *meter_of(row.usage_type, row.component))
        for row in usage
        if row.resource_id is not None
    ]
    of_resource = grouped((each for each in known if each[1]), lambda each: each[0].resource_id)
    found = (_billed_volume(resource, rows) for resource, rows in of_resource.items())
    return sorted((each for each in found if each is not None), key=lambda v: v.resource_id)


def _billed_volume(
    resource_id: str, charges: Sequence[tuple[Found, str | None, str | None]]
) -> Volume | None:
    kind = largest(kind for _, _, kind in charges)
    rows = [row for row, _, _ in charges]
    days = {row.day for row in rows if row.day is not None}
    if kind is None or not days:
        return None
    recent = sorted(days, reverse=True)[:LAST_DAYS]

    def provisioned(part: str) -> float | None:
        """Return what was so on the fullest of the last days; a day is 1/28 to 1/31 month."""
        of_days = (
            float(summed(own, "quantity")) * monthrange(day.year, day.month)[1]
            for day in recent
            if (own := [row for row, of, _ in charges if of == part and row.day == day])
        )
        return max(of_days, default=None)

    def price(part: str) -> float | None:
        own = [row for row, of, _ in charges if of == part]
        quantity = float(summed(own, "quantity"))
        return float(summed(own, "billed_cost")) / quantity if quantity else None

    return Volume(
        billing_period=max(row.billing_period for row in rows),
        resource_id=resource_id,
        kind=kind,
        cluster=largest(row.cluster for row in rows),
        owner=largest(row.owner for row in rows),
        node_id=largest(row.node_id for row in rows),
        zone=largest(row.zone for row in rows),
        days=len(days),
        last_day=max(days),
        size_gib=provisioned("storage"),
        billed_iops=provisioned("iops"),
        billed_gib_per_s=provisioned("throughput"),
        gib_month_price=price("storage"),
        iops_month_price=price("iops"),
        billed_cost=summed(rows, "billed_cost"),
    )


def with_measures(volumes: Iterable[Volume], samples: Sequence[Series]) -> list[Volume]:
    """Return volumes with what was measured of each, and of its node's claims."""
    used, loads = used_by_node(samples), load_by_volume(samples)
    return [
        replace(
            volume,
            **(used.get((volume.owner, volume.node_id), {}) if volume.node_id is not None else {}),
            **loads.get(volume.resource_id, {}),
        )
        for volume in volumes
    ]


def used_by_node(samples: Sequence[Series]) -> dict[tuple[str | None, int | None], dict[str, Any]]:
    """Return what the claims of each Kafka node hold, by its pool and id, as fields of Volume."""
    appended = _append_rates(samples)
    claims = [series for series in samples if series.name == VOLUME_USED]
    found = {}
    for (pool, node_id), own in grouped(claims, lambda s: (s.pool, s.node_id)).items():
        # The last sample of each claim on a day, added up over the node's claims.
        days: dict[date, float] = defaultdict(float)
        for claim in grouped(own, lambda s: s.claim).values():
            last: dict[date, tuple[float, float]] = {}
            for series in claim:
                for point in series.points:
                    last[day_of(point[0])] = max(last.get(day_of(point[0]), point), point)
            for day, (_, value) in last.items():
                days[day] += value
        if days:
            found[pool, node_id] = {
                "used_bytes": int(days[max(days)]),
                "growth_bytes_per_day": _slope(days),
                "append_bytes_per_s": appended.get(node_id),
            }
    return found


def _slope(days: Mapping[date, float]) -> float:
    """Return what a value grows by a day; of a single day nothing is known, which is 0."""
    if len(days) < 2:
        return 0.0
    places = [float(day.toordinal()) for day in days]
    return statistics.linear_regression(places, list(days.values())).slope


def _append_rates(samples: Iterable[Series]) -> dict[int | None, float]:
    """Return what each node took in, of its clients and of leaders, on its busiest day."""
    taken: dict[tuple[int | None, date], float] = defaultdict(float)
    seconds: dict[tuple[int | None, date], float] = defaultdict(float)
    for series in of_all_topics(samples, BYTES_IN, REPLICATION_IN):
        for each in increases(series):
            key = (series.node_id, day_of(each.at))
            taken[key] += each.value
            seconds[key] += each.seconds if series.name == REPLICATION_IN else 0.0
    rates: dict[int | None, float] = {}
    for (node_id, day), bytes_in in taken.items():
        if known := seconds[node_id, day]:
            rates[node_id] = max(rates.get(node_id, 0.0), bytes_in / known)
    return rates


def load_by_volume(samples: Iterable[Series]) -> dict[str, dict[str, Any]]:
    """Return what was measured of each volume's load, as fields of Volume."""
    counted = (*VOLUME_OPS, *VOLUME_BYTES, *VOLUME_EXCEEDED, *INSTANCE_EXCEEDED)
    own = [s for s in samples if s.volume_id is not None and s.name in counted]
    return {
        volume_id: _load(series)
        for volume_id, series in grouped(own, lambda s: s.volume_id or "").items()
    }


def _load(own: Iterable[Series]) -> dict[str, float | None]:
    rates: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    seconds: dict[float, float] = {}
    for series in own:
        for each in increases(series):
            rates[series.name][each.at] += each.value / each.seconds
            seconds[each.at] = max(seconds.get(each.at, 0.0), each.seconds)
    return {
        "iops_p999": _percentile(_added(rates, VOLUME_OPS), P999),
        "throughput_p999_bytes_per_s": _percentile(_added(rates, VOLUME_BYTES), P999),
        "volume_exceeded_share": _worst_hour(rates, VOLUME_EXCEEDED, seconds),
        "instance_exceeded_share": _worst_hour(rates, INSTANCE_EXCEEDED, seconds),
    }


def _added(rates: Mapping[str, Mapping[float, float]], names: Sequence[str]) -> list[float]:
    moments = {at for name in names for at in rates.get(name, ())}
    return sorted(sum(rates.get(name, {}).get(at, 0.0) for name in names) for at in moments)


def _percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the value at a share of the way, between two values in proportion."""
    if not ordered:
        return None
    place = (len(ordered) - 1) * share
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


def _worst_hour(
    rates: Mapping[str, Mapping[float, float]], names: Sequence[str], seconds: Mapping[float, float]
) -> float | None:
    """Return the share of an hour in which a limit was exceeded; a few minutes are no whole one.

    Both limits must be measured: the operations and the bytes.
    """
    first, second = (rates.get(name, {}) for name in names)
    exceeded: dict[int, float] = defaultdict(float)
    measured: dict[int, float] = defaultdict(float)
    for at in first.keys() & second.keys():
        hour = int(at // _HOUR_SECONDS)
        exceeded[hour] += min(max(first[at], second[at]), 1.0) * seconds[at]
        measured[hour] += seconds[at]
    return max((exceeded[h] / max(measured[h], LEAST_SECONDS) for h in measured), default=None)


def performance(row_iops: float | None, row_gib_per_s: float | None) -> tuple[int, int]:
    """Return the provisioned IOPS and MiB/s of a gp3 volume by what was billed above the included.

    The bill counts throughput in GiB/s although its text says MiBps.
    """
    return (
        GP3_INCLUDED_IOPS + round(row_iops or 0),
        GP3_INCLUDED_MIB_PER_S + round((row_gib_per_s or 0) * 1024),
    )


BILL, SPEC = "bill", "spec"
# What a rotation takes where none was seen.
AWAY_SECONDS = 300.0
NOTHING = Decimal(0)
_PLACES = Decimal("1e-6")


@dataclass(frozen=True, slots=True)
class Advice:
    """What is to be said of one volume."""

    finding: Finding
    reason: str
    wanted: Gp3 | None = None
    monthly_saving: Decimal = NOTHING
    one_off_cost: Decimal = NOTHING


@dataclass(frozen=True, slots=True)
class Known:
    """One volume as provisioned, and where that is known from."""

    volume: Gp3
    known_from: str
    pool: Pool | None


def storage_rows(
    usage: Iterable[Found],
    samples: Sequence[Series],
    facts: Facts,
    book: PriceBook,
    away_seconds: float = AWAY_SECONDS,
) -> list[Found]:
    """Return the STORAGE table of the volumes and snapshots in USAGE rows of one cluster."""
    found = with_measures(billed_volumes(usage), samples)
    return list(advised(found, facts, book, away_seconds))


def advised(
    rows: Sequence[Found], facts: Facts, book: PriceBook, away_seconds: float
) -> Iterator[Found]:
    """Yield what is to be said of each volume of one cluster, as rows of STORAGE."""
    measured = any(row.used_bytes is not None for row in rows)
    alive = {(row.owner, row.node_id) for row in rows if row.kind != SNAPSHOT}
    siblings: Counter[tuple[str, int]] = Counter()
    for row in rows:
        if row.kind != SNAPSHOT and row.node_id is not None:
            siblings[row.owner, row.node_id] += row.size_gib or 0
    left_behind = {} if measured else _left_behind(rows, facts)
    for row in rows:
        known = _known_volume(row, facts)
        share = (row.size_gib or 0) / (siblings[row.owner, row.node_id] or 1)
        if row.kind == SNAPSHOT:
            advice = _snapshot(row, alive)
        elif measured and row.used_bytes is None and row.node_id is not None:
            advice = Advice(
                Finding.ORPHAN,
                f"billed until {row.last_day}, and no node mounts a claim of {row.owner} "
                f"{row.node_id}; delete it once its data is in no one's interest",
                monthly_saving=_monthly(row),
            )
        elif row.resource_id in left_behind:
            advice = Advice(
                Finding.ORPHAN, left_behind[row.resource_id], monthly_saving=_monthly(row)
            )
        elif row.kind != "gp3":
            advice = _move(row, known, book)
        else:
            advice = _size(row, known, share, facts, book, away_seconds)
        yield _row(row, known, share, advice)


def _left_behind(rows: Sequence[Found], facts: Facts) -> dict[str, str]:
    """Return, with the reason, the volumes that a node is billed for beyond those of its spec.

    What a bill alone can tell: a claim that was made anew leaves its old volume retained, and of
    two the one that was billed on more days is the older. Of as many days neither is said.
    """
    today = max((row.last_day for row in rows), default=None)
    nodes: dict[tuple[str, int], list[Found]] = {}
    for row in rows:
        if row.kind != SNAPSHOT and row.node_id is not None and row.last_day == today:
            nodes.setdefault((row.owner, row.node_id), []).append(row)
    found = {}
    for (owner, node_id), volumes_of in nodes.items():
        pool = facts.pool_of(owner)
        wanted = len(pool.volumes) if pool else len(volumes_of)
        oldest = sorted(volumes_of, key=lambda row: -row.days)
        surplus = len(oldest) - wanted
        if wanted < 1 or surplus < 1 or oldest[surplus - 1].days == oldest[surplus].days:
            continue
        for row in oldest[:surplus]:
            found[row.resource_id] = (
                f"{owner} {node_id} is billed for {len(oldest)} volumes where its spec has "
                f"{wanted}, and this one is older; delete it once its data is not needed"
            )
    return found


def _known_volume(row: Found, facts: Facts) -> Known:
    """Return what is provisioned; the spec knows it of a volume too young for the bill to."""
    pool = facts.pool_of(row.owner)
    if row.days < LAST_DAYS and pool is not None and row.kind == "gp3" and pool.volumes:
        one = pool.volumes[0]
        return Known(Gp3(one.size_gib, Performance(one.iops, one.throughput_mib_per_s)), SPEC, pool)
    iops, throughput = round(row.billed_iops or 0), 0
    if row.kind == "gp3":
        iops, throughput = performance(row.billed_iops, row.billed_gib_per_s)
    return Known(Gp3(round(row.size_gib or 0), Performance(iops, throughput)), BILL, pool)


def _monthly(row: Found) -> Decimal:
    """Return what a volume costs a whole month at the prices of its bill."""
    dollars = (row.size_gib or 0) * (row.gib_month_price or 0)
    dollars += (row.billed_iops or 0) * (row.iops_month_price or 0)
    return Decimal(repr(dollars)).quantize(_PLACES)


def _snapshot(row: Found, alive: set[tuple[str, int]]) -> Advice:
    if row.node_id is None or (row.owner, row.node_id) in alive:
        return Advice(Finding.FITS, "its volume is there")
    return Advice(
        Finding.ORPHAN_SNAPSHOT,
        f"no volume of {row.owner} {row.node_id} is billed any more",
        monthly_saving=_monthly(row),
    )


def _goals(known: Known) -> Goals:
    """Return the goals of a volume: its pool's policy, within what its instance sustains."""
    pool = known.pool
    if pool is None:
        return Goals()
    instance = instances.table().types.get(pool.instance_type)
    beside = [Performance(v.iops, v.throughput_mib_per_s) for v in pool.volumes[1:]]
    return goals_of(pool.policy, instance, beside)


def _type_of(known: Known) -> str | None:
    return known.pool.instance_type if known.pool else None


def _use(row: Found, share: float) -> Use:
    """Return what was measured; claims name no volume, so a node's fill is shared out by size."""
    return Use(
        used_bytes=round(row.used_bytes * share),
        growth_bytes_per_day=row.growth_bytes_per_day * share,
        iops_p999=row.iops_p999,
        throughput_p999_bytes_per_s=row.throughput_p999_bytes_per_s,
    )


def _size(
    row: Found, known: Known, share: float, facts: Facts, book: PriceBook, away_seconds: float
) -> Advice:
    if row.used_bytes is None:
        return Advice(Finding.NOT_MEASURED, "no sample of its fill: pass --metrics")
    resync = None
    if row.append_bytes_per_s is not None:
        resync = Resync(
            append_bytes_per_s=row.append_bytes_per_s * share,
            away_seconds=away_seconds,
            within_seconds=facts.resync_within_seconds,
        )
    use, now = _use(row, share), known.volume
    goals = _goals(known)
    sized = right_size(now, use, book, goals, resync)
    wanted = sized.wanted
    # Of performance nobody measured nothing can be taken away.
    loads = row.iops_p999 is not None and row.throughput_p999_bytes_per_s is not None
    if not loads:
        kept = Performance(
            max(now.iops, wanted.iops), max(now.throughput_mib_per_s, wanted.throughput_mib_per_s)
        )
        wanted = Gp3(wanted.size_gib, kept)
    reason = "; ".join(sized.reasons)
    # When it is too small the advisor's own rule says; before, it has room for some days.
    ahead = FillForecast(
        used_bytes=float(use.used_bytes), long_rate=use.growth_bytes_per_day / DAY_SECONDS
    )
    policy = known.pool.policy if known.pool else Policy()
    grown = room(row.resource_id, ahead, now.size_gib, policy)
    slow = _slow(row, now, goals, policy, _type_of(known), book)
    if not now.performance.covers(wanted.performance):
        # A rate near the limit, or a resync that would like more, is no limit that was exceeded.
        wanted = Gp3(wanted.size_gib, now.performance)
    if grown is not None and not grown.capped:
        faster = slow.wanted if slow is not None and slow.wanted is not None else wanted
        return Advice(Finding.LARGER, f"{grown.reason}; {reason}", faster.resized(grown.size_gib))
    if slow is not None:
        return slow
    wanted = wanted.resized(min(wanted.size_gib, now.size_gib))
    saving = change_usd(wanted, now, book)
    is_small = wanted.size_gib <= now.size_gib * WORTH_SHRINKING and wanted != now
    if is_small and (saving is None or saving > 0):
        moved = payback(now, wanted, use.used_bytes, _type_of(known), book)
        once = NOTHING if moved is None else moved.once_usd
        pays = "" if moved is None else f"; the move pays after {moved.months:.1f} months"
        why = f"{reason}{pays}{_unpriced(saving)}"
        return Advice(Finding.SMALLER, why, wanted, saving or NOTHING, once)
    here = wanted.resized(now.size_gib)
    saving = change_usd(here, now, book)
    if here != now and (saving is None or saving > 0):
        return Advice(Finding.SLOWER, f"{reason}{_unpriced(saving)}", here, saving or NOTHING)
    if row.volume_exceeded_share is None:
        reason += "; demand above its limit was not measured"
    return Advice(Finding.FITS, reason, now)


def _unpriced(saving: Decimal | None) -> str:
    return "; what that saves is not known without a price" if saving is None else ""


def _slow(
    row: Found, now: Gp3, goals: Goals, policy: Policy, instance_type: str | None, book: PriceBook
) -> Advice | None:
    """Return what is to be said where more was asked than there is, by the advisor's own rule."""
    load = Load(
        volume_exceeded_share=row.volume_exceeded_share,
        instance_exceeded_share=row.instance_exceeded_share,
        iops_p999=row.iops_p999,
        bytes_per_s_p999=row.throughput_p999_bytes_per_s,
    )
    limit = limited_by(load, policy)
    if limit is None:
        return None
    if limit is ThrottleLimit.INSTANCE:
        return Advice(
            Finding.INSTANCE,
            "its instance had demand above it gives its volumes in "
            f"{row.instance_exceeded_share:.0%} of an hour, so a faster volume brings nothing: "
            f"{helps(instance_type, book)}",
        )
    had = now.performance
    why = f"demand was above {had} in {row.volume_exceeded_share:.0%} of an hour"
    most = Performance(
        max(goals.floor.iops, goals.ceiling.iops),
        max(goals.floor.throughput_mib_per_s, goals.ceiling.throughput_mib_per_s),
    )
    step = next_step(
        now.performance, load, goals.floor, most, now.size_gib, goals.performance_margin
    )
    if step is None:
        return Advice(Finding.FASTER, f"{why}, and there is no more than {most} here", now)
    reason = f"{step} instead of {now.performance}: {why}"
    return Advice(Finding.FASTER, reason, Gp3(now.size_gib, step))


def _move(row: Found, known: Known, book: PriceBook) -> Advice:
    """Return what gp3 would cost for the same size and at least the same performance."""
    needed = _performance_of(row.kind, known.volume)
    size = known.volume.size_gib
    wanted = Gp3(size, step_for(needed, Performance(), _goals(known).ceiling, size))
    if any(book.find(item) is None for item in GP3_ITEMS):
        reason = f"whether gp3 is cheaper than {row.kind} is not known without gp3's price"
        return Advice(Finding.FITS, reason)
    saving = _monthly(row) - monthly_usd(wanted, book)
    if saving <= 0 or row.kind in {"st1", "sc1", "standard"}:
        return Advice(
            Finding.FITS, (f"{row.kind} does not cost more than gp3 here, or is another kind")
        )
    return Advice(
        Finding.MOVE_TO_GP3,
        f"gp3 with {wanted.performance} does what this "
        f"{row.kind} does; ModifyVolume changes it in place",
        wanted,
        saving,
    )


def _performance_of(kind: str, volume: Gp3) -> Performance:
    """Return what a volume of another type sustains (EBS volume types, user guide)."""
    if kind == "gp2":
        throughput = 128 if volume.size_gib <= 170 else 250
        return Performance(min(16_000, max(100, 3 * volume.size_gib)), throughput)
    # io1 and io2 promise their IOPS at 16 KiB each.
    return Performance(volume.iops, min(1000, volume.iops * 16 // 1024))


def _row(row: Found, known: Known, share: float, advice: Advice) -> Found:
    volume, wanted = known.volume, advice.wanted
    is_gp3 = row.kind == "gp3"
    used = None if row.used_bytes is None or row.kind == SNAPSHOT else round(row.used_bytes * share)
    return row_from(
        STORAGE.schema,
        row,
        size_gib=volume.size_gib,
        iops=volume.iops or None,
        throughput_mib_per_s=volume.throughput_mib_per_s if is_gp3 else None,
        known_from=known.known_from,
        used_bytes=used,
        growth_bytes_per_day=None if used is None else row.growth_bytes_per_day * share,
        finding=advice.finding.value,
        wanted_size_gib=wanted.size_gib if wanted else None,
        wanted_iops=wanted.iops if wanted else None,
        wanted_throughput_mib_per_s=wanted.throughput_mib_per_s if wanted else None,
        monthly_saving=advice.monthly_saving.quantize(_PLACES),
        one_off_cost=advice.one_off_cost.quantize(_PLACES),
        reason=advice.reason,
    )
