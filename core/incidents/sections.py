"""The sections of an incident: what one story is about, together; None until it begins.

The ledger keeps their values flat beside the incident's own fields (core.incidents.codec).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.stored import unread_keys

SOMEBODY = "Somebody in the cluster"  # a drainer that nobody can name


@dataclass(frozen=True, slots=True, kw_only=True)
class Drainer:
    """Who empties the node, where nobody of ours is sent to drain it."""

    name: str
    asked_at: float | None = None  # epoch seconds: when it last asked the gate to evict


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDisruption:
    """What Karpenter does to the node (core.incidents.nodeclaims)."""

    reason: str
    forced_at: float | None = None  # epoch seconds: from then on no budget is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """The drain that was sent: to the termination handler, or begun by us or by a gate's yes."""

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
    ready_at: float  # epoch seconds: when it was found Ready


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
    """A person's word that the instance may go, whatever Kafka says."""

    by: str
    at: float  # epoch seconds: when it was said last


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlace:
    """A root volume that is to be replaced under an instance, which stays."""

    image_id: str
    boot_id: str | None = None  # the machine's before it reboots
    tried_at: float | None = None  # when EC2 was asked whether it would
    asked_at: float | None = None  # when it was asked to
    task_id: str | None = None
    task_state: str | None = None  # EC2's word
    refusal: str | None = None  # why not: nothing is replaced, or the old root volume stays
    returned_at: float | None = None  # when the node was let take pods again
    unread: Mapping[str, Any] = unread_keys()

    @property
    def done(self) -> bool:
        """Say whether the instance has its new root volume."""
        return self.task_state == "succeeded"

    @property
    def over(self) -> bool:
        """Say whether nothing was replaced: nobody was let ask EC2, or its task failed."""
        failed = self.task_state == "failed"
        return failed or (self.refusal is not None and self.task_id is None)
