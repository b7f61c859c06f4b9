"""Says of each day what a cluster's units cost, and which days stand out and why.

Unit costs are net and amortised, so that a discount or a commitment counts and a month's worth of
it is not paid on one day. What no provider of computing sold (taxes, credits, Marketplace, support)
has no cluster and is not in it. Units that were not measured are null, never 0.

A day stands out if it is far from the median of the last two weeks, in median absolute deviations
(times 1.4826, which makes them standard deviations for a normal scatter): the days before may hold
an outlier themselves. It must be far out, dear enough, and a visible share: one alone is noise. The
reason names the component, whose charges moved most, and what of ours happened that day.

A day is complete once a later one is on the bill, or its month is final (spark.months): AWS bills
with a day's delay, and half a day would look like a cheap one.
"""

from __future__ import annotations

import math
import statistics
from calendar import monthrange
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from core.cost.pricing import BYTES_PER_GIB
from spark.months import FEWEST_BEFORE, is_of_its_month
from spark.rows import NOTHING, Found, grouped, row_type, summed
from spark.rules.meters import Attribution
from spark.samples import LOG_SIZE, PARTITIONS, Series, day_of
from spark.tables import ANOMALIES, UNIT
from spark.transforms.transfer import DailyTraffic

_UnitRow = row_type(UNIT.schema)


@dataclass(frozen=True, slots=True)
class Size:
    """What a cluster held on a day, averaged over it, and how many there were of what at most."""

    retained_gib: float | None
    partitions: float | None
    brokers: int


def unit_rows(
    cost: Iterable[Found],
    traffic: DailyTraffic,
    samples: Iterable[Series],
    last_complete: date | None,
) -> list[Found]:
    """Return the UNIT table of COST rows: a row per cluster and day."""
    sizes = daily_sizes(samples)
    own = (row for row in cost if row.cluster is not None and is_of_its_month(row))
    found = []
    for key, rows in grouped(own, lambda row: (row.billing_period, row.day, row.cluster)).items():
        period, day, cluster = key
        paid, moved = summed(rows, "net_cost"), traffic.get((day, cluster))
        gib = None if moved is None else moved.produced_bytes / BYTES_PER_GIB
        size = sizes.get((day, cluster), Size(None, None, 0))
        brokers = size.brokers if (day, cluster) in sizes else None
        month_cost = float(paid) * monthrange(day.year, day.month)[1]
        found.append(
            _UnitRow(
                period,
                day,
                cluster,
                last_complete is not None and day <= last_complete,
                paid,
                gib,
                size.retained_gib,
                size.partitions,
                brokers,
                _per(float(paid), gib),
                _per(month_cost, size.retained_gib),
                _per(month_cost, size.partitions),
                _per(month_cost, brokers),
            )
        )
    return found


def daily_sizes(samples: Iterable[Series]) -> dict[tuple[date, str], Size]:
    """Return what each cluster held on each day.

    The controllers' own topic is on no list of partitions; a broker that is away counts when it is
    there.
    """
    sizes: dict[tuple[str, float], float] = defaultdict(float)
    partitions: dict[tuple[str, float], float] = defaultdict(float)
    brokers: dict[tuple[str, float], set[int]] = defaultdict(set)
    for series in samples:
        for at, value in series.points if series.name in (LOG_SIZE, PARTITIONS) else ():
            moment = (series.cluster or "", at)
            if series.name == LOG_SIZE:
                sizes[moment] += value
                continue
            partitions[moment] += value
            if series.node_id is not None:
                brokers[moment].add(series.node_id)
    days = grouped(sizes.keys() | partitions.keys(), lambda moment: (day_of(moment[1]), moment[0]))
    found = {}
    for key, moments in days.items():
        held = [sizes[moment] for moment in moments if moment in sizes]
        replicas = [partitions[moment] for moment in moments if moment in partitions]
        found[key] = Size(
            statistics.fmean(held) / BYTES_PER_GIB if held else None,
            max(replicas, default=None),
            max(len(brokers[moment]) for moment in moments),
        )
    return found


def _per(cost: float, units: float | None) -> float | None:
    return cost / units if units else None


DAYS_BEFORE = 14
MOST_DEVIATIONS = 4.0
LEAST_SHARE = 0.2
LEAST_DOLLARS = 1.0
NORMAL = 1.4826
# A series that never moved has no scatter: a fiftieth of its median stands in for it.
LEAST_SCATTER = 0.02
_AnomalyRow = row_type(ANOMALIES.schema)


@dataclass(frozen=True, slots=True)
class Score:
    """How far a value is from the usual, in money and in robust standard deviations."""

    usual: float
    excess: float
    score: float

    @property
    def stands_out(self) -> bool:
        is_far = abs(self.score) >= MOST_DEVIATIONS
        is_dear = abs(self.excess) >= LEAST_DOLLARS
        return is_far and is_dear and abs(self.excess) >= LEAST_SHARE * abs(self.usual)


@dataclass(frozen=True, slots=True)
class Moved:
    """Whose charges moved most on a day that stands out."""

    owner: str
    zone: str | None
    excess: float


def score(value: float, before: Sequence[float]) -> Score | None:
    """Return how far a value is from those before it; None until there are enough of them."""
    if len(before) < FEWEST_BEFORE:
        return None
    usual = statistics.median(before)
    deviation = statistics.median(abs(each - usual) for each in before) * NORMAL
    scatter = max(deviation, abs(usual) * LEAST_SCATTER, 1e-9)
    return Score(usual, value - usual, (value - usual) / scatter)


def anomaly_rows(
    cost: Iterable[Found], rotations: Iterable[Found], last_complete: date | None
) -> list[Found]:
    """Return the ANOMALIES table of COST rows: the days that stand out, and why; often none.

    Everybody else's days are not ours to explain: only Kafka's charges count.
    """
    if last_complete is None:
        return []
    own = [row for row in cost if _is_kafkas(row) and is_of_its_month(row)]
    months = {row.day: row.billing_period for row in sorted(own, key=lambda r: r.billing_period)}
    days = sorted(day for day in months if day <= last_complete)
    found = []
    for (cluster, component), rows in grouped(own, lambda r: (r.cluster, r.component)).items():
        of_day = grouped(rows, lambda row: row.day)
        # A day without a charge is a 0, not a gap.
        paid = [summed(of_day.get(day, ()), "net_cost") for day in days]
        values = [float(each) for each in paid]
        for place, day in enumerate(days):
            before = values[max(0, place - DAYS_BEFORE) : place]
            known = score(values[place], before)
            if known is None or not known.stands_out:
                continue
            moved = _moved_most(rows, day, known.excess, len(before))
            rotated = _rotations_near(rotations, cluster, day)
            found.append(
                _AnomalyRow(
                    months[day],
                    day,
                    cluster,
                    component,
                    paid[place],
                    _money(known.usual),
                    _money(known.excess),
                    known.score,
                    moved.owner if moved else None,
                    moved.zone if moved else None,
                    _money(moved.excess) if moved else None,
                    rotated,
                    _why(known.excess, moved, rotated),
                )
            )
    return found


def _is_kafkas(row: Found) -> bool:
    return bool(row.attribution != Attribution.NOBODY.value)


def _money(value: float) -> Decimal:
    return Decimal(repr(value)).quantize(Decimal("1e-18"))


def _moved_most(rows: Sequence[Found], day: date, excess: float, days_before: int) -> Moved | None:
    """Return the owner and zone whose charges of such a day are furthest from their own usual."""
    first = day - timedelta(days=DAYS_BEFORE)
    moved = []
    for (owner, zone), parts in grouped(rows, lambda row: (row.owner, row.zone)).items():
        of_day: dict[date, Decimal] = defaultdict(lambda: NOTHING)
        for row in parts:
            of_day[row.day] += row.net_cost
        charged = [float(paid) for on, paid in of_day.items() if first <= on < day]
        if not charged and day not in of_day:
            continue
        # A day without a charge of an owner counts as it does in the usual: it is a 0, not a gap.
        usual = statistics.median([*charged, *[0.0] * (days_before - len(charged))])
        moved.append(Moved(owner, zone, float(of_day.get(day, NOTHING)) - usual))
    # A fall is explained by what fell, a rise by what rose.
    way = math.copysign(1.0, excess)
    moved.sort(key=lambda each: (-each.excess * way, each.owner, each.zone or ""))
    return moved[0] if moved and moved[0].excess * way > 0 else None


def _rotations_near(rotations: Iterable[Found], cluster: str | None, day: date) -> int:
    """Return how many rotations touched a day: those that ended on it, or on the one before."""
    ended = {day, day - timedelta(days=1)}
    own = (row for row in rotations if row.cluster == cluster)
    return len({row.incident for row in own if row.closed_at.date() in ended})


def _why(excess: float, moved: Moved | None, rotations: int) -> str:
    """Say what is known of the reason."""
    said = "the charges that moved are spread over many"
    if moved is not None:
        where = "" if moved.zone is None else f" in {moved.zone}"
        share = max(0, min(100, math.floor(100 * moved.excess / excess + 0.5)))
        said = f"charges of {moved.owner}{where} account for {share} % of it"
    if rotations:
        times = "rotation" if rotations == 1 else "rotations"
        said += f"; {rotations} {times} on that day or the one before"
    return said
