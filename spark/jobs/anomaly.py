"""The anomaly job: which days stand out, far from the median of the days before, and why.

Robust, since the days before may hold an outlier themselves: the median and the median absolute
deviation (times 1.4826, which makes it a standard deviation for a normal scatter) of the last two
weeks. A day must be far out, dear enough, and a visible share: one alone is noise. Complete days
only: the last day of a bill is half of one (spark.months). The reason names the component, whose
charges moved most, and what of ours happened that day.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from spark.months import FEWEST_BEFORE, is_of_its_month
from spark.rows import NOTHING, Found, grouped, row_type, summed
from spark.rules.names import Attribution
from spark.schemas import ANOMALIES

DAYS_BEFORE = 14
MOST_DEVIATIONS = 4.0
LEAST_SHARE = 0.2
LEAST_DOLLARS = 1.0
NORMAL = 1.4826
# A series that never moved has no scatter: a fiftieth of its median stands in for it.
LEAST_SCATTER = 0.02
_Row = row_type(ANOMALIES)


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
                _Row(
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
