"""Renders what Strimzi's operator is told of the lease: a Lease of Kubernetes beside the Kafka.

It tells of a lease that is used, and of no other: who waits for its turn keeps nobody waiting. The
ledger's lease decides (core.availability.lease); this one is a notice, read by the plugin in the
operator (strimzi/), and lapses where nobody renews it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from core.availability.lease import Lease

# Ten turns of the loop, and longer than a function is away while it is deployed.
NOTICE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class DrainNotice:
    """Which Kafka nodes are out by our doing, since when, and who says so."""

    holders: tuple[str, ...]
    since: float  # epoch seconds, of the drain that began last
    renewed_at: float
    reason: str


def drain_notice(leases: Iterable[Lease], now: float) -> DrainNotice | None:
    """Return what there is to tell; None: no node is out by our doing."""
    used = [(lease, lease.out_at) for lease in leases if lease.out_at is not None]
    if not used:
        return None
    nodes = ", ".join(str(lease.node_id) for lease, _ in used if lease.node_id is not None)
    holders = tuple(lease.holder for lease, _ in used)
    what = f"Kafka node {nodes} is" if nodes else "A node of Kafka's is"
    return DrainNotice(
        holders=holders,
        since=max(out_at for _, out_at in used),
        renewed_at=now,
        reason=f"{what} taken out by Stillwater's incident {', '.join(holders)}.",
    )


def lease_spec(notice: DrainNotice | None) -> dict[str, object]:
    """Return the spec of coordination.k8s.io/v1's Lease as a merge patch; null takes a field away.

    A holder's name has no limit of length in Kubernetes; the first of a party stands for it.
    """
    if notice is None:
        return {"holderIdentity": None, "acquireTime": None, "renewTime": None}
    return {
        "holderIdentity": notice.holders[0],
        "acquireTime": _micro_time(notice.since),
        "renewTime": _micro_time(notice.renewed_at),
        "leaseDurationSeconds": NOTICE_SECONDS,
    }


def _micro_time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
