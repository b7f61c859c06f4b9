"""What becomes of all volumes of a cluster: each set decided for itself, then the budget over all.

The budget is what all volumes together may cost a month above what the ClusterSpec asks for. What
hurts most is paid first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from core.pricing import PriceBook
from core.volumes.deciding import decide
from core.volumes.decisions import Decision, Kind
from core.volumes.limits import Gp3
from core.volumes.sizing import cents, monthly_usd
from core.volumes.views import VolumeSet

# The first is paid first.
ORDER = (Kind.LOWER, Kind.GROW, Kind.RAISE, Kind.ROTATION)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done, in order, and what the volumes cost beyond the spec before and after."""

    decisions: tuple[Decision, ...]
    above_spec_usd: Decimal
    planned_usd: Decimal

    @property
    def changes(self) -> tuple[Decision, ...]:
        return tuple(d for d in self.decisions if d.kind.changes)


def plan(
    sets: Sequence[VolumeSet], book: PriceBook, now: float, budget_usd: Decimal | None = None
) -> Plan:
    """Return what to do with every set, within a budget; None is no limit."""
    spent = sum((above_spec(each, book) for each in sets), Decimal(0))
    before = spent
    decided = [decision for each in sets for decision in decide(each, book, now)]
    paid: dict[int, Decision] = {}
    for number in sorted(range(len(decided)), key=lambda n: _urgency(decided[n])):
        decision = decided[number]
        if not decision.kind.changes:
            continue
        cost = decision.monthly_usd_change
        if budget_usd is not None and cost > 0 and spent + cost > budget_usd:
            paid[number] = _too_dear(decision, spent, budget_usd)
        else:
            spent += cost
    return Plan(
        tuple(paid.get(number, decision) for number, decision in enumerate(decided)),
        cents(before),
        cents(spent),
    )


def above_spec(of: VolumeSet, book: PriceBook) -> Decimal:
    """Return what a set costs a month above what the ClusterSpec asks for."""
    spec = Gp3(of.spec.size_gib, of.floor)
    each = monthly_usd(of.asked, book) - monthly_usd(spec, book)
    return each * len(of.volumes)


def _urgency(decision: Decision) -> tuple[bool, int, Decimal]:
    place = ORDER.index(decision.kind) if decision.kind in ORDER else len(ORDER)
    # What lowers the bill comes before all: it pays for the rest.
    if decision.kind is Kind.LOWER:
        return False, place, decision.monthly_usd_change
    return not decision.emergency, place, decision.monthly_usd_change


def _too_dear(decision: Decision, spent: Decimal, budget_usd: Decimal) -> Decision:
    return replace(
        decision,
        kind=Kind.REFUSE,
        refused_by="budget",
        reason=(
            f"it costs ${decision.monthly_usd_change} a month more, and of the budget of "
            f"${budget_usd} above the spec ${cents(spent)} is spent; raise max_monthly_increase_usd"
            f" or the spec. Wanted was: {decision.reason}"
        ),
    )


def told(decisions: Iterable[Decision]) -> list[str]:
    """Return a line per decision: what, of which volumes, the cost, why."""
    return [
        f"{d.kind.value}: {d.name}"
        + (f" ({d.monthly_usd_change:+} USD a month)" if d.monthly_usd_change else "")
        + f": {d.reason}"
        for d in decisions
    ]
