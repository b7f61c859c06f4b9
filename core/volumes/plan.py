"""Plans all volumes of a cluster: each set decided for itself, then the budget over all.

The budget is what all volumes together may cost a month above what the ClusterSpec asks for. What
hurts most is paid first. Where the price book knows no price, volumes are judged in GiB and IOPS;
a budget that nobody can hold them to lets only what a volume needs before it is full.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from core.cost.pricing import PriceBook, fetch_command
from core.volumes.deciding import decide
from core.volumes.decisions import DecisionKind, VolumeDecision
from core.volumes.limits import Gp3
from core.volumes.sizing import GP3_ITEMS, cents, change_usd
from core.volumes.views import VolumeSet

# The first is paid first.
ORDER = (DecisionKind.LOWER, DecisionKind.GROW, DecisionKind.RAISE, DecisionKind.ROTATION)


@dataclass(frozen=True, slots=True)
class VolumePlan:
    """What is to be done, in order, and what the volumes cost beyond the spec before and after."""

    decisions: tuple[VolumeDecision, ...]
    # None where a price is unknown.
    above_spec_usd: Decimal | None
    planned_usd: Decimal | None
    # What nobody knows, and the command that fetches it; empty where all is known.
    unpriced: str = ""

    @property
    def changes(self) -> tuple[VolumeDecision, ...]:
        return tuple(d for d in self.decisions if d.kind.changes)


def plan(
    sets: Sequence[VolumeSet], book: PriceBook, now: float, budget_usd: Decimal | None = None
) -> VolumePlan:
    """Return what to do with every set, within a budget; None is no limit."""
    before = spent = _together(above_spec(each, book) for each in sets)
    decided = [decision for each in sets for decision in decide(each, book, now)]
    paid: dict[int, VolumeDecision] = {}
    for number in sorted(range(len(decided)), key=lambda n: _urgency(decided[n])):
        decision = decided[number]
        if not decision.kind.changes:
            continue
        cost = decision.monthly_usd_change
        refused = None if budget_usd is None else _refusal(decision, spent, budget_usd, book)
        if refused is not None:
            paid[number] = refused
        else:
            spent = None if spent is None or cost is None else spent + cost
    missing = [item for item in GP3_ITEMS if book.find(item) is None]
    return VolumePlan(
        tuple(paid.get(number, decision) for number, decision in enumerate(decided)),
        None if before is None else cents(before),
        None if spent is None else cents(spent),
        book.unknown(missing) if missing else "",
    )


def above_spec(of: VolumeSet, book: PriceBook) -> Decimal | None:
    """Return what a set costs a month above what the ClusterSpec asks for; None: unknown."""
    each = change_usd(Gp3(of.spec.size_gib, of.floor), of.asked, book)
    return None if each is None else each * len(of.volumes)


def _together(amounts: Iterable[Decimal | None]) -> Decimal | None:
    found = list(amounts)
    known = [each for each in found if each is not None]
    return sum(known, Decimal(0)) if len(known) == len(found) else None


def _refusal(
    decision: VolumeDecision, spent: Decimal | None, budget_usd: Decimal, book: PriceBook
) -> VolumeDecision | None:
    """Return the refusal of a change that a budget does not bear, None for one that it does."""
    cost = decision.monthly_usd_change
    if cost is not None and spent is not None:
        dear = cost > 0 and spent + cost > budget_usd
        return _too_dear(decision, cost, spent, budget_usd) if dear else None
    # Less costs less, whatever the price; and a full volume stops its broker.
    if decision.kind is DecisionKind.LOWER or (decision.emergency and budget_usd > 0):
        return None
    return replace(
        decision,
        kind=DecisionKind.REFUSE,
        refused_by="budget",
        reason=(
            f"nobody can say whether the budget of ${budget_usd} above the spec bears it without a "
            f"price of gp3; fetch it with `{fetch_command(book.region)}` and run `stillwater up`. "
            f"Wanted was: {decision.reason}"
        ),
    )


def _urgency(decision: VolumeDecision) -> tuple[bool, int, Decimal]:
    place = ORDER.index(decision.kind) if decision.kind in ORDER else len(ORDER)
    # What lowers the bill comes before all: it pays for the rest.
    cost = decision.monthly_usd_change or Decimal(0)
    if decision.kind is DecisionKind.LOWER:
        return False, place, cost
    return not decision.emergency, place, cost


def _too_dear(
    decision: VolumeDecision, cost: Decimal, spent: Decimal, budget_usd: Decimal
) -> VolumeDecision:
    return replace(
        decision,
        kind=DecisionKind.REFUSE,
        refused_by="budget",
        reason=(
            f"it costs ${cost} a month more, and of the budget of "
            f"${budget_usd} above the spec ${cents(spent)} is spent; raise max_monthly_increase_usd"
            f" or the spec. Wanted was: {decision.reason}"
        ),
    )


def decision_lines(decisions: Iterable[VolumeDecision]) -> list[str]:
    """Return a line per decision: what, of which volumes, the cost, why."""
    return [
        f"{d.kind.value}: {d.name}"
        + (f" ({d.monthly_usd_change:+} USD a month)" if d.monthly_usd_change else "")
        + f": {d.reason}"
        for d in decisions
    ]
