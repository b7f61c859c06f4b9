"""Looks for a replica out of sync that a party of brokers does not account for.

None may be missing when brokers of a zone go together, and one that leaves an ISR while they are
away stops the run: core.rotation.parallel asks before, core.rotation.following meanwhile. One that
has left an ISR keeps a machine from being rebooted: core.incidents.in_place asks.
"""

from __future__ import annotations

from core.views import ClusterView


def outsider_missing(party: frozenset[int], kafka: ClusterView) -> str | None:
    """Name a replica out of sync that is on none of these brokers; None: there is none."""
    for partition in kafka.out_of_sync:
        others = sorted(set(partition.replicas) - set(partition.isr) - party)
        if others:
            return f"Broker {others[0]} is not in the ISR of partition {partition.name}."
    return None
