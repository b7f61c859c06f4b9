"""Who may take a Kafka node out: one lease for the whole cluster, across zones and causes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to take one Kafka node out, held by one incident until it expires."""

    holder: str
    expires_at: float  # epoch seconds


@dataclass(frozen=True, slots=True)
class LeaseDecision:
    """What the lease is after somebody asked for it."""

    granted: bool
    lease: Lease
    reason: str


def valid_holder(lease: Lease | None, now: float) -> str | None:
    return lease.holder if lease is not None and now < lease.expires_at else None


def grant(lease: Lease | None, holder: str, now: float, ttl_seconds: float) -> LeaseDecision:
    """Give the cluster's one lease to `holder`, renew it, or refuse while another holds it.

    A renewal never shortens what was promised: clocks of two machines may disagree.
    """
    current = valid_holder(lease, now)
    if lease is not None and current is not None and current != holder:
        return LeaseDecision(
            granted=False,
            lease=lease,
            reason=f"{current} is taking a Kafka node out and holds the lease for another "
            f"{lease.expires_at - now:.0f} s.",
        )
    until = now + ttl_seconds
    if lease is not None and current == holder:
        until = max(until, lease.expires_at)
    return LeaseDecision(
        granted=True, lease=Lease(holder, until), reason=f"{holder} holds the lease."
    )


def release(lease: Lease | None, holder: str) -> Lease | None:
    """Return what is left after `holder` gives the lease back; another's lease stays."""
    return None if lease is None or lease.holder == holder else lease
