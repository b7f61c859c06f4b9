"""Decides about one set of volumes: one change at most, for one of four slots, or none and why.

The order is what hurts most first: something stands in the way; a volume fills; a rotation is near;
more is asked than the volumes give; nothing has been asked of them for long.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from core.cost.pricing import PriceBook
from core.volumes import speed
from core.volumes.decisions import DecisionKind, VolumeDecision
from core.volumes.for_rotation import SLOTS_NEEDED, bargain, describe
from core.volumes.growth import Growth, growth
from core.volumes.ledger import free_slots, next_slot_at
from core.volumes.limits import Gp3, refusals
from core.volumes.shrinking import smaller
from core.volumes.sizing import cents, change_usd
from core.volumes.speed import Speed
from core.volumes.troubles import troubles
from core.volumes.unknown import UNKNOWN, Unmeasured, unknowns
from core.volumes.views import Trouble, VolumeSet


def decide(of: VolumeSet, book: PriceBook, now: float) -> tuple[VolumeDecision, ...]:
    """Return what to do with a set, and beside it what a person should know; at least one."""
    grown = growth(of)
    quicker = speed.faster(of, book, now)
    wrong = troubles(of, now)
    unmeasured = tuple(_decision_without_figures(of, each) for each in unknowns(of, now))
    beside = tuple(_advice(of, grown, quicker, book))
    raised = _pool_raised(of)
    if raised is not None:
        return (raised, *beside, *unmeasured)
    change = _change(of, grown, quicker, book, now)
    if change is not None:
        return (_possible(of, change, wrong, now), *beside, *unmeasured)
    found = (*beside, *(_trouble(of, each) for each in wrong), *unmeasured)
    return found or (_plain(of, DecisionKind.KEEP, f"{of.name} has what it needs"),)


def slots(of: VolumeSet, now: float) -> int:
    """Return how often a set may still be changed today: as often as the worst of its volumes."""
    return min((free_slots(v.history, now) for v in of.volumes), default=0)


def _pool_raised(of: VolumeSet) -> VolumeDecision | None:
    """Set a pool to what its volumes have already: any other change of its storage waits for that.

    Somebody grew a claim or a volume beyond its pool, or made the pool smaller. Strimzi obeys no
    pool that asks for less than it had. No volume is modified by it, so it takes no slot, costs
    nothing more, and waits for no trouble: it is the cure of those.
    """
    if of.held_gib <= of.asked.size_gib:
        return None
    largest = max(of.volumes, key=lambda v: v.held_gib)
    reason = (
        f"KafkaNodePool {of.pool} asks for {of.asked.size_gib} GiB, and {largest.volume_id} of "
        f"claim {largest.claim} has {of.held_gib} GiB: the pool is set to that, since no volume "
        f"gets smaller"
    )
    if of.frozen:
        waits = f"{of.name} is frozen ({of.frozen}). Then: {reason}"
        return _refusal(of, DecisionKind.WAIT, waits, "frozen")
    return VolumeDecision(
        pool=of.pool,
        number=of.number,
        kind=DecisionKind.GROW,
        reason=reason,
        target=Gp3(of.held_gib, of.asked.performance),
        monthly_usd_change=Decimal(0),
        emergency=True,
    )


def _change(
    of: VolumeSet, grown: Growth | None, quicker: Speed | None, book: PriceBook, now: float
) -> VolumeDecision | None:
    """Return the change that is wanted, whether or not it may be made now."""
    size = of.asked.size_gib
    performance = of.asked.performance
    reasons = []
    kind = None
    if grown is not None and grown.size_gib > size:
        size, kind = grown.size_gib, DecisionKind.GROW
        reasons.append(f"{size} GiB instead of {of.asked.size_gib}: {grown.reason}")
    if quicker is not None and quicker.performance is not None:
        # Size and performance in one change of the claim are one modification (EBS-CSI#2113).
        performance = quicker.performance
        kind = kind or DecisionKind.RAISE
        reasons.append(f"{performance} instead of {of.asked.performance}: {quicker.reason}")
    if kind is None and not of.policy.grow_only and (found := bargain(of, book)) is not None:
        performance, kind = found.performance, DecisionKind.ROTATION
        reasons.append(describe(found))
    if kind is None and quicker is None and (less := _slower(of, now)) is not None:
        performance, kind = less.performance or performance, DecisionKind.LOWER
        reasons.append(f"{performance} instead of {of.asked.performance}: {less.reason}")
    if kind is None:
        return None
    target = Gp3(size, performance)
    each_usd = change_usd(of.asked, target, book)
    return VolumeDecision(
        pool=of.pool,
        number=of.number,
        kind=kind,
        reason="; ".join(reasons),
        target=target,
        monthly_usd_change=None if each_usd is None else cents(each_usd * len(of.volumes)),
        emergency=bool(grown and grown.emergency and kind is DecisionKind.GROW),
    )


def _slower(of: VolumeSet, now: float) -> Speed | None:
    """Return what to lower to; after a rotation at once, else after a quiet period."""
    if of.rotation is not None:
        if not of.rotation.over:
            return None
        raised = [
            m for v in of.volumes if (m := v.history.latest) and m.kind == DecisionKind.ROTATION
        ]
        before = [m.original.performance for m in raised if m.original is not None]
        if before:
            return Speed(before[0], f"the rotation of {of.rotation.pod} is over")
    return speed.slower(of, now)


def _possible(
    of: VolumeSet, change: VolumeDecision, wrong: tuple[Trouble, ...], now: float
) -> VolumeDecision:
    """Return a change if it may be made now, else what it waits for."""
    obstacle = next(_obstacles(of, change.target or of.asked, wrong), None)
    if obstacle is not None:
        by, sentence = obstacle
        return _refusal(of, DecisionKind.WAIT, f"{sentence}. Then: {change.reason}", by, change)
    free = slots(of, now)
    if free <= _reserved_slots(of, change):
        return _out_of_slots(of, change, free, now)
    return change


def _obstacles(of: VolumeSet, target: Gp3, wrong: tuple[Trouble, ...]) -> Iterator[tuple[str, str]]:
    if of.frozen:
        yield "frozen", f"{of.name} is frozen ({of.frozen})"
    for each in wrong:
        if each.blocks:
            yield each.kind, f"{each.sentence}; {each.remedy}"
    for volume in of.volumes:
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
    if of.classes is not None and target.performance not in of.classes:
        yield (
            "class-missing",
            (
                "no VolumeAttributesClass of the EBS driver gives "
                f"{target.performance}; set "
                f"volumes.mode to apply and run `stillwater up`, which makes those that pool "
                f"{of.pool} may need"
            ),
        )


def _trouble(of: VolumeSet, trouble: Trouble) -> VolumeDecision:
    return _refusal(of, DecisionKind.ADVISE, f"{trouble.sentence}; {trouble.remedy}", trouble.kind)


def _decision_without_figures(of: VolumeSet, each: Unmeasured) -> VolumeDecision:
    return _refusal(of, DecisionKind.UNKNOWN, each.sentence, UNKNOWN if each.alarming else "")


def _reserved_slots(of: VolumeSet, change: VolumeDecision) -> int:
    """Return how many slots a change must leave."""
    if change.emergency:
        return 0
    if change.kind is DecisionKind.ROTATION:
        return max(SLOTS_NEEDED - 1, of.policy.reserved_slots)
    return of.policy.reserved_slots


def _out_of_slots(of: VolumeSet, change: VolumeDecision, free: int, now: float) -> VolumeDecision:
    until = max((next_slot_at(v.history, now) for v in of.volumes), default=now)
    hours = max(0.0, until - now) / 3600
    kept = "" if change.emergency else f" {of.policy.reserved_slots} of them for an emergency,"
    left = f"{free} of 4 modifications in 24 hours are left,{kept}"
    last = (
        "; shorten the retention of its largest topics or add a broker meanwhile"
        if change.emergency
        else ""
    )
    sentence = f"{left} and the next is free in {hours:.1f} h{last}. Then: {change.reason}"
    return _refusal(of, DecisionKind.WAIT, sentence, "slots", change, until)


def _advice(
    of: VolumeSet, grown: Growth | None, quicker: Speed | None, book: PriceBook
) -> Iterator[VolumeDecision]:
    """Return what no modification mends."""
    if grown is not None and grown.capped:
        yield _refusal(
            of,
            DecisionKind.ADVISE,
            f"{grown.reason}, and the policy allows no more than {of.policy.largest_gib} GiB; "
            f"raise max_size_gib, add a volume, or add a broker",
            "ceiling",
        )
    if quicker is not None and quicker.performance is None:
        yield _refusal(of, DecisionKind.REFUSE, quicker.reason, quicker.refused_by)
    if grown is None and (less := smaller(of, book)) is not None:
        yield _plain(of, DecisionKind.ADVISE, less)


def _plain(of: VolumeSet, kind: DecisionKind, reason: str) -> VolumeDecision:
    return VolumeDecision(pool=of.pool, number=of.number, kind=kind, reason=reason)


def _refusal(
    of: VolumeSet,
    kind: DecisionKind,
    reason: str,
    by: str,
    change: VolumeDecision | None = None,
    until: float | None = None,
) -> VolumeDecision:
    return VolumeDecision(
        pool=of.pool,
        number=of.number,
        kind=kind,
        reason=reason,
        target=None if change is None else change.target,
        monthly_usd_change=Decimal(0) if change is None else change.monthly_usd_change,
        emergency=change is not None and change.emergency,
        refused_by=by,
        until=until,
    )
