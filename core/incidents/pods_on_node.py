"""The pods on one node as a drain of our own sees them: which leave, which stay, which end there.

handlers.adapters.node_drain reads them, core.incidents.own_drain decides about them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOnNode:
    """One pod that has not ended, of whatever namespace."""

    namespace: str
    name: str
    uid: str
    # A DaemonSet's, or the kubelet's own (a mirror pod): an eviction brings it back at once.
    stays: bool = False
    # Somebody makes it anew elsewhere; without an owner it is gone for good.
    owned: bool = True
    stopping: bool = False
    # Of the Kafka that is looked after: it never goes unasked.
    kafka: bool = False

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"
