"""The parts of an incident that begin together: each is None until its story has begun.

The ledger keeps their values flat beside the incident's own fields (core.incidents.codec).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

SOMEBODY = "Somebody in the cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drainer:
    """Who wants the node emptied, where nobody of ours is sent to drain it."""

    name: str
    asked_at: float | None = None  # epoch seconds, the gate, when last; None: it has not yet


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDisruption:
    """What Karpenter does to the node (core.incidents.nodeclaims)."""

    reason: str
    forced_at: float | None = None  # epoch seconds: from then on no budget is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """The drain that was sent: to its termination handler, or begun by us or a gate's yes."""

    first_at: float  # epoch seconds
    last_at: float
    times: int = 1
    reported_at: float | None = None  # when its handler first said that an attempt had ended

    def again(self, at: float) -> Forwarding:
        """Count one more, sent at that time."""
        return replace(self, last_at=max(self.last_at, at), times=self.times + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The node that takes the pod over."""

    node: str  # its name
    ready_at: float  # epoch seconds, when it was first found able to


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFailure:
    """The group launches no instance: no capacity, for example."""

    since: float  # epoch seconds
    cause: str  # the latest, in AWS's own words


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRefusal:
    """The group does not terminate the instance."""

    since: float  # epoch seconds
    words: str  # the group's own, the latest


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A person's word that the instance goes, whatever Kafka says."""

    by: str
    at: float  # epoch seconds, the latest time it was said
