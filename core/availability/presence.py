"""Decides whether a Kafka node that left is back for good: for an incident's gate, and for runs."""

from __future__ import annotations

from collections.abc import Iterator

from core.views import ClusterView, Verdict


def is_back(
    node_id: int,
    cluster: ClusterView,
    *,
    back_since: float | None,
    now: float,
    hold_seconds: float,
) -> Verdict:
    """Say whether a node that left has fully returned, and stayed for `hold_seconds`.

    `back_since` is since when readings have shown it returned (`has_returned` below). Ready is not
    enough: a broker is unfenced long before it is in sync, and may be fenced again 20-50 s after it
    rejoined (strimzi#11736), so its ISR membership is read from the leaders and must last.
    """
    missing = check_returned(node_id, cluster)
    if not missing.allowed:
        return missing
    held_seconds = now - (now if back_since is None else back_since)
    if held_seconds < hold_seconds:
        return Verdict(
            allowed=False,
            reason=f"Node {node_id} is back in every ISR since {held_seconds:.0f} s; it must stay "
            f"for {hold_seconds:.0f} s before the next may leave.",
        )
    return Verdict(
        allowed=True,
        reason=f"Node {node_id} is back in every ISR since {held_seconds:.0f} s.",
    )


def check_returned(node_id: int, cluster: ClusterView) -> Verdict:
    """Say whether this one reading shows the node registered, in every ISR and caught up."""
    reason = next(_absences(node_id, cluster), None)
    if reason:
        return Verdict(allowed=False, reason=reason)
    return Verdict(allowed=True, reason=f"Node {node_id} is back in every ISR.")


def _absences(node_id: int, cluster: ClusterView) -> Iterator[str]:
    if cluster.without_quorum:
        yield f"Whether node {node_id} is back cannot be told: the controllers have no quorum."
        return
    if cluster.doubts:
        yield f"Whether node {node_id} is back cannot be told. {cluster.doubt}"
        return
    voter = next((v for v in cluster.voters if v.node_id == node_id), None)
    held = cluster.held_by(node_id)
    if voter is None or held or node_id in cluster.brokers:
        if node_id not in cluster.brokers and (held or voter is not None):
            yield f"Broker {node_id} has not registered yet."
        elif node_id not in cluster.brokers:
            # Which of the two it is to be, nobody says here.
            yield f"Node {node_id} has not registered as a broker yet, nor has it a vote."
        elif node_id in cluster.fenced:
            yield f"Broker {node_id} is registered and still fenced."
    if voter is not None and not voter.caught_up:
        yield f"Controller {node_id} has not caught up with the quorum's leader."
    behind = [p.name for p in held if node_id not in p.isr]
    if behind:
        yield (
            f"Broker {node_id} is not yet in the ISR of {len(behind)} of its {len(held)} "
            f"partitions, among them {behind[0]}."
        )
