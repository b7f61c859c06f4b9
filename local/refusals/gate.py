"""Asks every oracle about one resource, or about all of an environment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

# Importing these modules enters their limits.
from local.refusals import (
    afterwards,
    calls,
    catalogue,
    clusters,
    dashboards,
    documents,
    event_patterns,
    grammar,
    instances,
    limits,
    messages,
    names,
    networks,
    parts,
    patterns,
    policies,
    ranges,
    stores,
    tags,
    together,
    traffic,
    watching,
)
from local.refusals.refusal import Refusal, Wanted

ORACLES = (
    catalogue,
    clusters,
    dashboards,
    documents,
    event_patterns,
    grammar,
    instances,
    messages,
    names,
    networks,
    parts,
    patterns,
    policies,
    ranges,
    stores,
    tags,
    traffic,
    watching,
)


def refusals(wanted: Wanted) -> list[Refusal]:
    """Return what AWS would refuse of one resource.

    A type that no table knows is refused as such: nobody has looked at what AWS says of it.
    """
    if wanted.type not in calls.TYPES and wanted.type not in calls.UNMODELLED:
        unknown = f"No table of local/refusals knows {wanted.type}; enter it in catalogue/."
        return [Refusal("create", "UnknownResourceType", unknown, resource=wanted.name)]
    found = [*limits.refusals(wanted), *afterwards.refusals(wanted)]
    if wanted.type in calls.TYPES:
        found += calls.refusals(wanted)
    return [replace(each, resource=wanted.name) for each in found]


def all_refusals(everything: Iterable[Wanted]) -> list[Refusal]:
    """Return what AWS would refuse of an environment: each resource alone, then all together."""
    known = list(everything)
    alone = [refusal for each in known for refusal in refusals(each)]
    return [*alone, *together.refusals(known)]
