"""Decides who may take a Kafka node out: one lease per cluster, across zones and causes.

Held by one incident at a time, or by several of one party: brokers that a run lets go together,
because Kafka consents to the absence of all of them (core.rotation.parallel). A party's name is the
set: the run, the zone, and the nodes.

A lease that was not used lapses. Once its holder has a node out, or has sent a drain that may take
one out, it does not: it stands until somebody has seen that the drain ended safely
(core.incidents.consenting), whatever became of the holder meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.ground.fields import unread_keys
from core.ground.naming import instance_of, round_of


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to take one Kafka node out, held by one incident until it lapses or has ended."""

    holder: str
    expires_at: float  # epoch seconds; counts only while the lease is unused
    node_id: int | None = None  # Kafka's, of the holder
    party: str | None = None  # who may hold it together (`party_name`); None: nobody beside it
    out_at: float | None = None  # since when the node is out, or may be
    forwarded_at: float | None = None  # when the termination handler was last sent the drain
    unread: Mapping[str, Any] = unread_keys()

    @property
    def nodes(self) -> frozenset[int]:
        """Return the Kafka nodes that may be out under it: its holder's, and its party's."""
        own = frozenset() if self.node_id is None else frozenset({self.node_id})
        return own | members(self.party)


def party_name(run_id: str, zone: str, node_ids: Iterable[int]) -> str:
    """Return what a party is called: brokers of a zone that a run takes together.

    >>> party_name("rotation-19700101-000000", "us-east-1a", (11, 10))
    'rotation-19700101-000000/us-east-1a/10+11'
    """
    return f"{run_id}/{zone}/{'+'.join(str(node_id) for node_id in sorted(node_ids))}"


def members(party: str | None) -> frozenset[int]:
    """Return the Kafka nodes of a party; a name of an earlier release says none.

    >>> sorted(members("rotation-19700101-000000/us-east-1a/10+11"))
    [10, 11]
    >>> members("rotation-19700101-000000/us-east-1a")
    frozenset()
    """
    named = (party or "").split("/")[2:]
    return frozenset(int(each) for each in "".join(named).split("+") if each.isdecimal())


@dataclass(frozen=True, slots=True)
class LeaseDecision:
    """Who holds the lease after somebody asked for it."""

    granted: bool
    leases: tuple[Lease, ...]
    reason: str


def valid_leases(leases: Iterable[Lease], now: float) -> tuple[Lease, ...]:
    return tuple(lease for lease in leases if lease.out_at is not None or now < lease.expires_at)


def lease_of(leases: Iterable[Lease], holder: str) -> Lease | None:
    return next((lease for lease in leases if lease.holder == holder), None)


def blocking_holder(
    leases: Iterable[Lease], holder: str, party: str | None, now: float
) -> str | None:
    """Return who holds the lease as an incident sees it: itself, or one that keeps it waiting.

    Who has a node out comes first, even before oneself: a two-minute warning waits for nobody.
    None: it is free, or only companions of the same party hold it.
    """
    valid = valid_leases(leases, now)
    hindering = [lease for lease in valid if hinders(lease, holder, party)]
    out = next((lease.holder for lease in hindering if lease.out_at is not None), None)
    if out is not None:
        return out
    if any(lease.holder == holder for lease in valid):
        return holder
    return next((lease.holder for lease in hindering), None)


def companions(
    leases: Iterable[Lease], holder: str, party: str | None, now: float
) -> frozenset[int]:
    """Return the Kafka nodes that others of the same party take out at this time."""
    return frozenset(
        lease.node_id
        for lease in valid_leases(leases, now)
        if not _same_instance(lease.holder, holder)
        and _together(lease, party)
        and lease.node_id is not None
    )


def hinders(lease: Lease, holder: str, party: str | None) -> bool:
    """Say whether a lease keeps an incident waiting: another instance's, of another party."""
    return not (_same_instance(lease.holder, holder) or _together(lease, party))


def _same_instance(one: str, other: str) -> bool:
    """Say whether two incidents are rounds of one instance: it does not wait for itself."""
    return instance_of(one) == instance_of(other)


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
    out: bool = False,
) -> LeaseDecision:
    """Give the cluster's lease to `holder`, renew it, or refuse while another holds it.

    Another of the same party is no hindrance. A renewal never shortens what was promised: clocks
    of two machines may disagree. `out` states a fact instead of asking: the holder's node is out
    already, so it is noted beside whoever holds the lease, and does not lapse.
    """
    leases = tuple(leases)
    valid = valid_leases(leases, now)
    mine = lease_of(valid, holder)
    if mine is not None and mine.out_at is not None:
        return LeaseDecision(granted=True, leases=leases, reason=f"{holder} has its node out.")
    others = tuple(lease for lease in valid if lease.holder != holder)
    refusal = None if out else _refusal(others, holder, party, now)
    if refusal:
        return LeaseDecision(granted=False, leases=valid, reason=refusal)
    until = max(now + ttl_seconds, mine.expires_at if mine else 0.0)
    held = mine or Lease(holder, until)
    taken = replace(
        held, expires_at=until, node_id=node_id, party=party, out_at=now if out else None
    )
    return LeaseDecision(granted=True, leases=(*others, taken), reason=f"{holder} holds the lease.")


def begin(
    leases: Iterable[Lease],
    holder: str,
    now: float,
    ttl_seconds: float,
    *,
    party: str | None = None,
    node_id: int | None = None,
    forced: bool = False,
) -> LeaseDecision:
    """Use the lease: note that the drain of `holder` is sent now, or refuse it.

    Refused to a holder whose lease has lapsed, and while another has a node out. `forced` is for
    what waits for nobody: a two-minute warning, and a node on which no Kafka runs.
    """
    leases = tuple(leases)
    valid = valid_leases(leases, now)
    mine = lease_of(valid, holder)
    others = tuple(lease for lease in valid if lease.holder != holder)
    refusal = None if forced else _refusal(others, holder, party, now)
    if refusal is None and mine is None and not forced:
        refusal = f"{holder} no longer holds the lease: it expired before the drain was sent."
    if refusal:
        return LeaseDecision(granted=False, leases=leases, reason=refusal)
    held = mine or Lease(holder, now + ttl_seconds, node_id, party)
    used = replace(held, out_at=now if held.out_at is None else held.out_at, forwarded_at=now)
    return LeaseDecision(granted=True, leases=(*others, used), reason=f"{holder} is drained.")


def _refusal(others: Iterable[Lease], holder: str, party: str | None, now: float) -> str | None:
    for lease in others:
        if not hinders(lease, holder, party):
            continue
        if lease.out_at is not None:
            return f"{lease.holder} has a Kafka node out, or may yet, and keeps the lease for it."
        return (
            f"{lease.holder} is taking a Kafka node out and holds the lease for another "
            f"{lease.expires_at - now:.0f} s."
        )
    return None


def release(leases: Iterable[Lease], holder: str, *, ended: bool = False) -> tuple[Lease, ...]:
    """Return what is left after `holder` gives the lease back; another's lease stays.

    A lease that was used stays, too, unless the holder says that its drain has `ended` safely;
    that ends the ones of the instance's earlier rounds with it, and none of a later round.
    """
    if ended:
        ends = {lease.holder for lease in leases if _same_instance(lease.holder, holder)}
        ends = {each for each in ends if round_of(each) <= round_of(holder)}
        return tuple(lease for lease in leases if lease.holder not in ends)
    return tuple(lease for lease in leases if lease.holder != holder or lease.out_at is not None)
