"""The storage job: per volume what is paid for, what of it is used, and what it should be.

    usage + samples -> billed, used, load -> core.volumes.sizing, volume by volume -> table

What a volume should be is decided in core.volumes, as the advisor decides it. EBS never shrinks:
what is too large is replaced by a pool with smaller volumes; copying between zones, and both pools
running meanwhile, are the remedy's price.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from core.cost.pricing import PriceBook
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
from core.volumes.speed import ThrottleLimit, helps, limited_by, next_step
from core.volumes.views import FillForecast, Load
from spark.rows import Found, row_from
from spark.samples import Series
from spark.schemas import STORAGE
from spark.transforms import volumes
from spark.transforms.volumes import LAST_DAYS, SNAPSHOT, Finding, with_measures

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
    found = with_measures(volumes.billed_volumes(usage), samples)
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
    if row.kind == "gp3":
        iops, throughput = volumes.performance(row.billed_iops, row.billed_gib_per_s)
    else:
        iops, throughput = round(row.billed_iops or 0), 0
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
        STORAGE,
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
