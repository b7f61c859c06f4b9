"""Decides what of a surveyed cluster should be known, worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields

from core.checks import (
    account,
    balancing,
    coming_back,
    evictions,
    groups,
    handlers,
    kafka,
    machines,
    others,
    placement,
    pods,
    room,
    strimzi,
)
from core.checks.finding import Finding, Weight, not_judged, unknown
from core.errors import one_line
from core.model.facts import NOT_ASKED, ClusterFacts
from core.unknown import Unknown

Judge = Callable[[ClusterFacts], Iterator[Finding]]
# What the account refuses a replacement, and what AWS has announced.
_AROUND: tuple[Judge, ...] = (
    room.addresses,
    room.machines,
    room.disks,
    room.ways_out,
    account.support,
    account.state,
    account.skew,
    account.insights,
    account.health,
    account.shifts,
)
_JUDGES: tuple[Judge, ...] = (
    kafka.running,
    kafka.replication,
    kafka.topics,
    kafka.listeners,
    kafka.operators,
    kafka.carried_out,
    kafka.eras,
    others.ensembles,
    strimzi.api_versions,
    strimzi.kubernetes,
    strimzi.images,
    strimzi.authorities,
    strimzi.certificates,
    strimzi.shrinking,
    others.whole_today,
    others.one_zone,
    others.ready_too_soon,
    others.images,
    others.moving_images,
    others.rolling,
    others.claims,
    others.settings,
    others.unjudged_parts,
    placement.zones,
    placement.quorum,
    placement.grace,
    placement.nodes,
    placement.ailing,
    placement.unwell,
    placement.spot,
    pods.memory,
    pods.liveness,
    pods.drivers,
    pods.marked_pods,
    pods.returning,
    pods.idle,
    pods.priority,
    pods.schedulers,
    evictions.preemption,
    pods.interfaces,
    pods.versions,
    others.meshes,
    pods.scalers,
    coming_back.volumes,
    room.impaired_disks,
    account.keys,
    groups.groups,
    groups.templates,
    groups.metadata,
    machines.roles,
    groups.node_classes,
    machines.orphans,
    machines.scheduled_findings,
    machines.now,
    machines.burstable,
    machines.marked,
    machines.places,
    evictions.budgets,
    evictions.webhooks,
    evictions.cleaners,
    evictions.autoscalers,
    evictions.evictors,
    handlers.handlers,
    others.neighbours,
    machines.node_pools,
    machines.controllers,
    coming_back.deletions,
    coming_back.refusals,
    coming_back.trust,
    coming_back.releases,
    coming_back.steps,
    coming_back.policies,
    coming_back.images,
    coming_back.fargate,
    coming_back.limits,
    coming_back.asked_outside,
    coming_back.essentials,
    coming_back.drivers,
    balancing.readiness,
    balancing.node_ports,
    balancing.controller,
    balancing.ingresses,
    balancing.attributes,
    balancing.unread_groups,
    *_AROUND,
    kafka.asleep,
    kafka.settings,
    kafka.nodes,
    kafka.volumes,
    kafka.node_pools,
)


def findings(seen: ClusterFacts) -> list[Finding]:
    """Return everything found, worst first; what could not be read last."""
    return _all_findings(_JUDGES, seen)


def around_findings(seen: ClusterFacts) -> list[Finding]:
    """Return what was found of a cluster's machines and of the account around it, worst first."""
    judges = (groups.by_themselves, groups.templates, machines.marked, account.keys)
    return _all_findings((*judges, *_AROUND), seen)


def _all_findings(judges: tuple[Judge, ...], seen: ClusterFacts) -> list[Finding]:
    return in_order(
        [*_unread(seen), *(each for judge in judges for each in _findings_of(judge, seen))]
    )


def in_order(found: list[Finding]) -> list[Finding]:
    """Return findings worst first."""
    return sorted(found, key=lambda each: list(Weight).index(each.weight))


def _findings_of(judge: Judge, seen: ClusterFacts) -> list[Finding]:
    """Return what a judge finds, or that it cannot: one odd answer costs no other judge's word."""
    try:
        return list(judge(seen))
    except Exception as error:  # noqa: BLE001 - whatever the answer is, it is not good news
        what = f"{judge.__module__.rpartition('.')[2]}: {judge.__name__.replace('_', ' ')}"
        return [
            not_judged(
                "unjudged",
                what,
                f"an answer is not as documented ({type(error).__name__}: {one_line(error)}): this "
                f"was not judged",
                "look at what it is about yourself, and tell the authors of Stillwater",
            )
        ]


def _unread(seen: ClusterFacts) -> Iterator[Finding]:
    """Yield a finding per reason: what one refusal hides is hidden together."""
    hidden: dict[Unknown, list[str]] = {}
    for field in fields(seen):
        part = getattr(seen, field.name)
        if isinstance(part, Unknown) and part is not NOT_ASKED:
            hidden.setdefault(part, []).append(field.name.replace("_", " "))
    for why, parts in hidden.items():
        yield unknown(", ".join(parts), why)
