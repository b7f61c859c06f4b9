"""Decides about sets of volumes: one change at most for each, or none and why, within a budget.

What hurts most comes first: something stands in the way; a volume fills; a rotation is near; more
is asked than the volumes give; nothing has been asked of them for long. The single writer of a
volume is its KafkaNodePool; whatever was changed elsewhere neither Strimzi nor the EBS driver puts
right, so it is told with its remedy. How long a broker is away was measured of those before it. The
budget is what all volumes may cost a month above what the ClusterSpec asks for; without a price it
lets only what a volume needs before it is full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum

from core.cost.pricing import PriceBook, fetch_command
from core.ground.window import clock
from core.volumes import speed
from core.volumes.growth import Growth, growth, more_brokers, smaller
from core.volumes.series import UNKNOWN, unknowns
from core.volumes.sizing import GP3_ITEMS, Gp3, Performance, cents, change_usd, refusals
from core.volumes.speed import SLOTS_NEEDED, Speed, bargain, describe
from core.volumes.views import (
    ModificationState,
    Trouble,
    VolumeSet,
    VolumeView,
    free_slots,
    next_slot_at,
)


class DecisionKind(StrEnum):
    """What a decision does. Only those that `changes` change anything."""

    KEEP = "keep"
    GROW = "grow"
    RAISE = "raise"
    LOWER = "lower"
    ROTATION = "raise for a rotation"
    WAIT = "wait"
    ADVISE = "advise"
    REFUSE = "refuse"
    UNKNOWN = "unknown"

    @property
    def changes(self) -> bool:
        return self in {
            DecisionKind.GROW,
            DecisionKind.RAISE,
            DecisionKind.LOWER,
            DecisionKind.ROTATION,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeDecision:
    """What becomes of one set of volumes, why, and what that costs more or less a month."""

    pool: str
    number: int
    kind: DecisionKind
    reason: str
    # Where something changes: what every volume of the set becomes.
    target: Gp3 | None = None
    # None where the price book does not know.
    monthly_usd_change: Decimal | None = Decimal(0)
    # It may use the slot that is kept for this.
    emergency: bool = False
    # What stands in the way, for alerts: instance, budget, slots, ceiling, frozen, trouble's kind;
    # unknown, where a figure is missing that somebody should have.
    refused_by: str = ""
    # When to look again, where that is known.
    until: float | None = None

    @property
    def name(self) -> str:
        return f"volume {self.number} of pool {self.pool}"


NOT_APPLIED = "not-applied"
IGNORED = "storage-ignored"
CLASS_DRIFT = "class-drift"
# Strimzi reconciles every two minutes, and the driver waits two seconds for more to change.
SETTLING_SECONDS = 600.0


def troubles(set_: VolumeSet, now: float) -> tuple[Trouble, ...]:
    """Return everything that is wrong with the volumes of a set."""
    found = (trouble for volume in set_.volumes for trouble in _volume_troubles(set_, volume, now))
    return (*_ignored_storage(set_), *found)


def _ignored_storage(set_: VolumeSet) -> Iterator[Trouble]:
    """Say that no change of the pool is obeyed, and what its storage must be for one to be."""
    if set_.ignored:
        yield Trouble(
            IGNORED,
            f"Strimzi's operator ignores every change of the storage of pool {set_.pool}, growth "
            f"included, and says: {set_.ignored.rstrip('.')}",
            f"correct another volume of KafkaNodePool {set_.pool} first: it asks for less there "
            f"than its claims have",
        )


def _volume_troubles(set_: VolumeSet, volume: VolumeView, now: float) -> Iterator[Trouble]:
    yield from volume.troubles
    latest = volume.history.latest
    if latest is not None and (
        latest.state in {ModificationState.MODIFYING, ModificationState.OPTIMIZING}
        or now - latest.started_at < SETTLING_SECONDS
    ):
        return
    yield from _unapplied_changes(set_, volume)
    yield from _drifts(volume)


def _unapplied_changes(set_: VolumeSet, volume: VolumeView) -> Iterator[Trouble]:
    claim, wanted = volume.claim, class_of(set_.asked.performance)
    if (volume.requested_gib, volume.wanted_class) != (set_.asked.size_gib, wanted):
        yield Trouble(
            NOT_APPLIED,
            f"claim {claim} asks for {volume.requested_gib} GiB of class "
            f"{volume.wanted_class or '(none)'}, and its pool for {set_.asked.size_gib} GiB of "
            f"{wanted}",
            "see why Strimzi's operator has not written it: its log and the KafkaNodePool's status",
        )
    elif volume.given_gib < volume.requested_gib:
        yield Trouble(
            "resize-stuck",
            f"claim {claim} asks for {volume.requested_gib} GiB and has {volume.given_gib}",
            f"see `kubectl describe pvc {claim}` and the EBS driver's log",
        )
    elif volume.given_class != volume.wanted_class:
        yield Trouble(
            "class-stuck",
            f"claim {claim} asks for class {volume.wanted_class} and has "
            f"{volume.given_class or '(none)'}",
            f"see `kubectl describe pvc {claim}` and the EBS driver's log",
        )


def _drifts(volume: VolumeView) -> Iterator[Trouble]:
    actual = volume.actual
    given = performance_of(volume.given_class)
    if given is not None and given != actual.performance:
        yield Trouble(
            CLASS_DRIFT,
            f"{volume.volume_id} has {actual.performance} and its class {volume.given_class} "
            "another performance: it was changed in EC2, and the driver never repairs that",
            f"modify {volume.volume_id} back to {given}, which takes one of its four modifications",
            blocks=False,
        )


def performance_of(class_name: str) -> Performance | None:
    """Return what a VolumeAttributesClass of ours gives, by its name; None for another's.

    >>> performance_of("gp3-4000-250")
    Performance(iops=4000, throughput_mib_per_s=250)
    """
    kind, _, rest = class_name.partition("-")
    iops, _, throughput = rest.partition("-")
    if kind != "gp3" or not (iops.isdigit() and throughput.isdigit()):
        return None
    return Performance(int(iops), int(throughput))


def class_of(performance: Performance) -> str:
    """Return the VolumeAttributesClass of a performance.

    >>> class_of(Performance(4000, 250))
    'gp3-4000-250'
    """
    return f"gp3-{performance.iops}-{performance.throughput_mib_per_s}"


def decide(set_: VolumeSet, book: PriceBook, now: float) -> tuple[VolumeDecision, ...]:
    """Return what to do with a set, and beside it what a person should know; at least one."""
    grown = growth(set_)
    quicker = speed.faster(set_, book, now)
    wrong = troubles(set_, now)
    unmeasured = tuple(
        _decision(set_, DecisionKind.UNKNOWN, each.sentence, UNKNOWN if each.alarming else "")
        for each in unknowns(set_, now)
    )
    beside = tuple(_advice(set_, grown, quicker, book))
    raised = _pool_raised(set_)
    if raised is not None:
        return (raised, *beside, *unmeasured)
    change = _change(set_, grown, quicker, book, now)
    if change is not None:
        return (_possible(set_, change, wrong, now, book), *beside, *unmeasured)
    told = (
        _decision(set_, DecisionKind.ADVISE, f"{each.sentence}; {each.remedy}", each.kind)
        for each in wrong
    )
    found = (*beside, *told, *unmeasured)
    return found or (_decision(set_, DecisionKind.KEEP, f"{set_.name} has what it needs"),)


def slots(set_: VolumeSet, now: float) -> int:
    """Return how often a set may still be changed today: as often as the worst of its volumes."""
    return min((free_slots(v.history, now) for v in set_.volumes), default=0)


def _pool_raised(set_: VolumeSet) -> VolumeDecision | None:
    """Set a pool to what its volumes have already: any other change of its storage waits for that.

    Somebody grew a claim or a volume beyond its pool, or made the pool smaller. Strimzi obeys no
    pool that asks for less than it had. No volume is modified by it, so it takes no slot, costs
    nothing more, and waits for no trouble: it is the cure of those.
    """
    if set_.held_gib <= set_.asked.size_gib:
        return None
    largest = max(set_.volumes, key=lambda v: v.held_gib)
    reason = (
        f"KafkaNodePool {set_.pool} asks for {set_.asked.size_gib} GiB, and {largest.volume_id} of "
        f"claim {largest.claim} has {set_.held_gib} GiB: the pool is set to that, since no volume "
        f"gets smaller"
    )
    if set_.frozen:
        waits = f"{set_.name} is frozen ({set_.frozen}). Then: {reason}"
        return _decision(set_, DecisionKind.WAIT, waits, "frozen")
    return VolumeDecision(
        pool=set_.pool,
        number=set_.number,
        kind=DecisionKind.GROW,
        reason=reason,
        target=Gp3(set_.held_gib, set_.asked.performance),
        monthly_usd_change=Decimal(0),
        emergency=True,
    )


def _change(
    set_: VolumeSet, grown: Growth | None, quicker: Speed | None, book: PriceBook, now: float
) -> VolumeDecision | None:
    """Return the change that is wanted, whether or not it may be made now."""
    size = set_.asked.size_gib
    performance = set_.asked.performance
    reasons = []
    kind = None
    if grown is not None and grown.size_gib > size:
        size, kind = grown.size_gib, DecisionKind.GROW
        reasons.append(f"{size} GiB instead of {set_.asked.size_gib}: {grown.reason}")
    if quicker is not None and quicker.performance is not None:
        # Size and performance in one change of the claim are one modification (EBS-CSI#2113).
        performance = quicker.performance
        kind = kind or DecisionKind.RAISE
        reasons.append(f"{performance} instead of {set_.asked.performance}: {quicker.reason}")
    if kind is None and not set_.policy.grow_only and (found := bargain(set_, book)) is not None:
        performance, kind = found.performance, DecisionKind.ROTATION
        reasons.append(describe(found))
    if kind is None and quicker is None and (less := _slower(set_, now)) is not None:
        performance, kind = less.performance or performance, DecisionKind.LOWER
        reasons.append(f"{performance} instead of {set_.asked.performance}: {less.reason}")
    if kind is None:
        return None
    target = Gp3(size, performance)
    each_usd = change_usd(set_.asked, target, book)
    return VolumeDecision(
        pool=set_.pool,
        number=set_.number,
        kind=kind,
        reason="; ".join(reasons),
        target=target,
        monthly_usd_change=None if each_usd is None else cents(each_usd * len(set_.volumes)),
        emergency=bool(grown and grown.emergency and kind is DecisionKind.GROW),
    )


def _slower(set_: VolumeSet, now: float) -> Speed | None:
    """Return what to lower to; after a rotation at once, else after a quiet period."""
    if set_.rotation is not None:
        if not set_.rotation.over:
            return None
        raised = [
            m for v in set_.volumes if (m := v.history.latest) and m.kind == DecisionKind.ROTATION
        ]
        before = [m.original.performance for m in raised if m.original is not None]
        if before and before[0].covers(set_.floor):
            return Speed(before[0], f"the rotation of {set_.rotation.pod} is over")
    return speed.slower(set_, now)


def _possible(
    set_: VolumeSet, change: VolumeDecision, wrong: tuple[Trouble, ...], now: float, book: PriceBook
) -> VolumeDecision:
    """Return a change if it may be made now, else what it waits for."""
    obstacle = next(_obstacles(set_, change.target or set_.asked, wrong), None)
    if obstacle is not None:
        by, sentence = obstacle
        return _decision(set_, DecisionKind.WAIT, f"{sentence}. Then: {change.reason}", by, change)
    free = slots(set_, now)
    if free <= _reserved_slots(set_, change):
        return _out_of_slots(set_, change, free, now, book)
    return change


def _obstacles(
    set_: VolumeSet, target: Gp3, wrong: tuple[Trouble, ...]
) -> Iterator[tuple[str, str]]:
    if set_.frozen:
        yield "frozen", f"{set_.name} is frozen ({set_.frozen})"
    for each in wrong:
        if each.blocks:
            yield each.kind, f"{each.sentence}; {each.remedy}"
    for volume in set_.volumes:
        if (running := volume.history.under_way) is not None:
            yield (
                "under-way",
                (
                    f"the modification of {volume.volume_id} to {running.target.size_gib} GiB, "
                    f"{running.target.performance} is {running.word}, and EC2 "
                    f"starts no other before it is completed"
                ),
            )
    for sentence in refusals(target):
        yield "gp3", sentence
    if set_.classes is not None and target.performance not in set_.classes:
        yield (
            "class-missing",
            (
                f"no VolumeAttributesClass of the EBS driver gives {target.performance}; set "
                "volumes.mode to apply and run `stillwater up`, which makes those that pool "
                f"{set_.pool} may need"
            ),
        )


def _reserved_slots(set_: VolumeSet, change: VolumeDecision) -> int:
    """Return how many slots a change must leave."""
    if change.emergency:
        return 0
    if change.kind is DecisionKind.ROTATION:
        return max(SLOTS_NEEDED - 1, set_.policy.reserved_slots)
    return set_.policy.reserved_slots


def _out_of_slots(
    set_: VolumeSet, change: VolumeDecision, free: int, now: float, book: PriceBook
) -> VolumeDecision:
    until = max((next_slot_at(v.history, now) for v in set_.volumes), default=now)
    hours = max(0.0, until - now) / 3600
    kept = "" if change.emergency else f" {set_.policy.reserved_slots} of them for an emergency,"
    left = f"{free} of 4 modifications in 24 hours are left,{kept}"
    last = (
        f". Wait until {clock(until)}, shorten the retention of its largest topics, or "
        f"{more_brokers(set_, book)}"
        if change.emergency
        else ""
    )
    sentence = f"{left} and the next is free in {hours:.1f} h{last}. Then: {change.reason}"
    return _decision(set_, DecisionKind.WAIT, sentence, "slots", change, until)


def _advice(
    set_: VolumeSet, grown: Growth | None, quicker: Speed | None, book: PriceBook
) -> Iterator[VolumeDecision]:
    """Return what no modification mends."""
    if grown is not None and grown.capped:
        yield _decision(
            set_,
            DecisionKind.ADVISE,
            f"{grown.reason}, and the policy allows no more than {set_.policy.largest_gib} GiB; "
            f"raise max_size_gib, add a volume, or add a broker",
            "ceiling",
        )
    if quicker is not None and quicker.performance is None:
        yield _decision(set_, DecisionKind.REFUSE, quicker.reason, quicker.refused_by)
    if grown is None and (less := smaller(set_, book)) is not None:
        yield _decision(set_, DecisionKind.ADVISE, less)


def _decision(
    set_: VolumeSet,
    kind: DecisionKind,
    reason: str,
    by: str = "",
    change: VolumeDecision | None = None,
    until: float | None = None,
) -> VolumeDecision:
    return VolumeDecision(
        pool=set_.pool,
        number=set_.number,
        kind=kind,
        reason=reason,
        target=None if change is None else change.target,
        monthly_usd_change=Decimal(0) if change is None else change.monthly_usd_change,
        emergency=change is not None and change.emergency,
        refused_by=by,
        until=until,
    )


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
        refused = None if budget_usd is None else _plan_refusal(decision, spent, budget_usd, book)
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


def above_spec(set_: VolumeSet, book: PriceBook) -> Decimal | None:
    """Return what a set costs a month above what the ClusterSpec asks for; None: unknown."""
    each = change_usd(Gp3(set_.spec.size_gib, set_.floor), set_.asked, book)
    return None if each is None else each * len(set_.volumes)


def _together(amounts: Iterable[Decimal | None]) -> Decimal | None:
    found = list(amounts)
    known = [each for each in found if each is not None]
    return sum(known, Decimal(0)) if len(known) == len(found) else None


def _plan_refusal(
    decision: VolumeDecision, spent: Decimal | None, budget_usd: Decimal, book: PriceBook
) -> VolumeDecision | None:
    """Return the refusal of a change that a budget does not bear, None for one that it does."""
    cost = decision.monthly_usd_change
    if cost is not None and spent is not None:
        if cost <= 0 or spent + cost <= budget_usd:
            return None
        said = (
            f"it costs ${cost} a month more, and of the budget of ${budget_usd} above the spec "
            f"${cents(spent)} is spent; raise max_monthly_increase_usd or the spec"
        )
    # Less costs less, whatever the price; and a full volume stops its broker.
    elif decision.kind is DecisionKind.LOWER or (decision.emergency and budget_usd > 0):
        return None
    else:
        said = (
            f"it is unknown whether the budget of ${budget_usd} above the spec allows it: a price "
            f"of gp3 is missing; fetch it with `{fetch_command(book.region)}` and run `stillwater "
            "up`"
        )
    reason = f"{said}. Wanted was: {decision.reason}"
    return replace(decision, kind=DecisionKind.REFUSE, refused_by="budget", reason=reason)


def _urgency(decision: VolumeDecision) -> tuple[bool, int, Decimal]:
    place = ORDER.index(decision.kind) if decision.kind in ORDER else len(ORDER)
    # What lowers the bill comes before all: it pays for the rest.
    cost = decision.monthly_usd_change or Decimal(0)
    if decision.kind is DecisionKind.LOWER:
        return False, place, cost
    return not decision.emergency, place, cost


def decision_lines(decisions: Iterable[VolumeDecision]) -> list[str]:
    """Return a line per decision: what, of which volumes, the cost, why."""
    return [
        f"{d.kind.value}: {d.name}"
        + (f" ({d.monthly_usd_change:+} USD a month)" if d.monthly_usd_change else "")
        + f": {d.reason}"
        for d in decisions
    ]
