"""Asks the table of rules of whatever facts there are, worst first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

# Each enters its rules.
from core.checks import (
    account,
    advice,
    balancing,
    coming_back,
    evictions,
    groups,
    handlers,
    kafka,
    machines,
    new_cluster,
    others,
    placement,
    pods,
    room,
    strimzi,
)
from core.checks.finding import Finding, in_order, not_judged, unknown
from core.checks.rule import RULES, Rule
from core.ground.errors import one_line
from core.ground.unknown import Unknown
from core.model.facts import NOT_ASKED, ClusterFacts

MODULES = (
    *(account, advice, balancing, coming_back, evictions, groups, handlers, kafka, machines),
    *(new_cluster, others, placement, pods, room, strimzi),
)


def findings(seen: ClusterFacts) -> list[Finding]:
    """Return everything found, worst first, with what could not be read."""
    found = [each for rule in RULES if rule.is_asked_of(seen) for each in _findings_of(rule, seen)]
    return in_order([*_unread(seen), *found])


def _findings_of(rule: Rule, seen: ClusterFacts) -> list[Finding]:
    """Return what a rule finds, or that it cannot: one odd answer costs no other rule's word."""
    try:
        return list(rule.judge(seen))
    except Exception as error:  # noqa: BLE001 - whatever the answer is, it is not good news
        return [
            not_judged(
                "unjudged",
                rule.title,
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
