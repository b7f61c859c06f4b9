"""Decides what of a surveyed cluster should be known, worst first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from core.survey import balancing, kafka, leaving
from core.survey.facts import Surveyed, Unread
from core.survey.finding import Finding, Weight, unknown

_JUDGES = (
    kafka.replication,
    kafka.listeners,
    kafka.zones,
    kafka.running,
    kafka.grace,
    kafka.placement,
    kafka.volumes,
    leaving.groups,
    leaving.budgets,
    leaving.handlers,
    leaving.evictions,
    leaving.node_pools,
    leaving.orphans,
    balancing.readiness,
    balancing.controller,
)


def findings(seen: Surveyed) -> list[Finding]:
    """Return everything found, worst first; what could not be read last."""
    found = [*_unread(seen), *(each for judge in _JUDGES for each in judge(seen))]
    return sorted(found, key=lambda each: list(Weight).index(each.weight))


def _unread(seen: Surveyed) -> Iterator[Finding]:
    for field in fields(seen):
        part = getattr(seen, field.name)
        if isinstance(part, Unread):
            yield unknown(field.name.replace("_", " "), part)
