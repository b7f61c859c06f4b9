"""Who may take a Kafka node out: one lease for the whole cluster, across zones and causes.

Held by one incident at a time, or by several of one party: brokers that a run lets go together,
because no partition is on two of them (core.rotation.parallel).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to take one Kafka node out, held by one incident until it expires."""

    holder: str
    expires_at: float  # epoch seconds
    node_id: int | None = None  # Kafka's, of the holder
    party: str | None = None  # whose members may hold it together; None: nobody beside it


@dataclass(frozen=True, slots=True)
class LeaseDecision:
    """Who holds the lease after somebody asked for it."""

    granted: bool
    leases: tuple[Lease, ...]
    reason: str


def valid_leases(leases: Iterable[Lease], now: float) -> tuple[Lease, ...]:
    return tuple(lease for lease in leases if now < lease.expires_at)


def valid_holder(leases: Iterable[Lease], now: float) -> str | None:
    """Return who holds the lease, or the first of those who hold it together."""
    return next((lease.holder for lease in valid_leases(leases, now)), None)


def in_the_way(leases: Iterable[Lease], holder: str, party: str | None, now: float) -> str | None:
    """Return who holds the lease as an incident sees it: itself, or one that keeps it waiting.

    None: it is free, or only companions of the same party hold it.
    """
    valid = valid_leases(leases, now)
    if any(lease.holder == holder for lease in valid):
        return holder
    return next((lease.holder for lease in valid if not _together(lease, party)), None)


def companions(
    leases: Iterable[Lease], holder: str, party: str | None, now: float
) -> frozenset[int]:
    """Return the Kafka nodes that others of the same party take out at this time."""
    return frozenset(
        lease.node_id
        for lease in valid_leases(leases, now)
        if lease.holder != holder and _together(lease, party) and lease.node_id is not None
    )


def _together(lease: Lease, party: str | None) -> bool:
    return party is not None and lease.party == party


def grant(
    leases: Iterable[Lease],
    holder: str,
    now: float,
    ttl_seconds: float,
    *,
    party: str | None = None,
    node_id: int | None = None,
) -> LeaseDecision:
    """Give the cluster's lease to `holder`, renew it, or refuse while another holds it.

    Another of the same party is no hindrance. A renewal never shortens what was promised: clocks
    of two machines may disagree.
    """
    valid = valid_leases(leases, now)
    others = tuple(lease for lease in valid if lease.holder != holder)
    for lease in others:
        if not _together(lease, party):
            return LeaseDecision(
                granted=False,
                leases=valid,
                reason=f"{lease.holder} is taking a Kafka node out and holds the lease for another "
                f"{lease.expires_at - now:.0f} s.",
            )
    mine = (lease.expires_at for lease in valid if lease.holder == holder)
    until = max((now + ttl_seconds, *mine))
    return LeaseDecision(
        granted=True,
        leases=(*others, Lease(holder, until, node_id, party)),
        reason=f"{holder} holds the lease.",
    )


def release(leases: Iterable[Lease], holder: str) -> tuple[Lease, ...]:
    """Return what is left after `holder` gives the lease back; another's lease stays."""
    return tuple(lease for lease in leases if lease.holder != holder)
