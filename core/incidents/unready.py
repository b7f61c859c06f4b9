"""Says why a pod is not Ready, from everything read: itself, its claims, its machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from core.incidents.observation import NodeView, Observation, PodView
from core.incidents.replacement import barred


def why_unready(name: str | None, seen: Observation) -> str:
    """Return why a pod is not Ready, to go after that it is not; "": nothing says so."""
    pod = seen.pod_named(name)
    if pod is None:
        return ""
    return joined(causes(pod, seen.node_named(pod.node_name), seen.claim_troubles))


def causes(pod: PodView, node: NodeView | None, claims: Iterable[str] = ()) -> Iterator[str]:
    """Yield each cause as a clause, the pod's own first."""
    if pod.cause or pod.trouble:
        yield pod.cause or pod.trouble
    yield from claims
    if node is not None:
        # It is there already, so a cordon is in nobody's way.
        said = barred(replace(node, schedulable=True), None)
        if said:
            yield f"{node.name} {said}"


def joined(told: Iterable[str]) -> str:
    said = "; ".join(told)
    return f": {said}" if said else ""
