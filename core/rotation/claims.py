"""Decides whether a node that Karpenter launched can be rotated: successor first, or not at all.

There is no word for Karpenter to end one node gracefully. A NodeClaim that is deleted has its pods'
room made beside the drain, and the drain asks the gate; so the successor comes first as long as
the gate is asked, and nothing but its consent ends the wait. Otherwise the run does not begin.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.incidents.nodeclaims import DISRUPTED_TAINT, DO_NOT_DISRUPT, NodeClaim
from core.incidents.observation import PodView, Policy
from core.rotation.observation import RunObservation
from core.rotation.run_record import NodeTurn


def of_claim(
    claim: NodeClaim, turn: NodeTurn, seen: RunObservation, policy: Policy
) -> Iterator[str]:
    """Yield why a node's claim may not be deleted for its rotation."""
    of = f"NodeClaim {claim.name} of node {turn.node_id}"
    if policy.drain_route != "asked":
        yield (
            f"{of} would be drained before its successor is there: set `eviction_gate`, which a "
            f"drain of Karpenter's waits for, in a cluster of your own stacks."
        )
    if claim.grace_seconds is not None or claim.unreadable:
        yield (
            f"{of} has a terminationGracePeriod, or a field that cannot be read: Karpenter would "
            f"delete the broker past its disruption budget when it ends. Take it off the NodePool, "
            f"and end this one when Kafka can bear it."
        )
    node, pod = seen.node_of(turn.node_id), seen.pod_of(turn.node_id)
    # Karpenter reads the Node's once it has joined; a person may have meant either.
    if claim.do_not_disrupt or (node is not None and node.do_not_disrupt):
        yield f"{of} is marked {DO_NOT_DISRUPT}: take that off, or leave the node out."
    if pod is not None:
        yield from _of_pod(pod, seen.now)
    if claim.leaves:
        yield f"Karpenter ends {of} already; `stillwater incidents` says what about it."
    elif not claim.serves:
        yield f"{of} is not initialized yet."


def _of_pod(pod: PodView, now: float) -> Iterator[str]:
    """Yield why Karpenter would not evict a pod, whatever the gate answers."""
    if pod.undisturbed_until is not None and pod.undisturbed_until > now:
        yield (
            f"{pod.name} says {DO_NOT_DISRUPT}: Karpenter would neither make room for it nor evict "
            f"it. Take that off."
        )
    if pod.ignores_disruption:
        yield (
            f"{pod.name} tolerates the taint {DISRUPTED_TAINT}: Karpenter would end its node under "
            f"it and ask nobody. Narrow its tolerations."
        )


def drifted_nodes(seen: RunObservation) -> dict[int, str]:
    """Return the nodes that are not what Karpenter would launch today, and why, by Kafka's id."""
    found = {}
    for pod in seen.pods:
        node = seen.node_of(pod.node_id)
        claim = None if node is None else seen.claim_of(node.instance_id or "")
        if claim is not None and claim.says("Drifted"):
            found[pod.node_id] = f"drifted: {claim.conditions['Drifted'].reason}"
    return found
