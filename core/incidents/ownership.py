"""Decides whose instances and groups are a cluster's, by what AWS has written on them.

A cluster of ours carries one tag of ours; one that exists is known by its groups' names and by the
tags that EKS and Karpenter write on what they launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.naming import managed_tag

GROUP_TAG = "aws:autoscaling:groupName"
# Tags that stand together: a key, and the values it may have; none: whatever it says.
Mark = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Ownership:
    """Tags of which one set is on everything of the cluster, and groups by name."""

    marks: tuple[Mark, ...] = ()
    scaling_groups: tuple[str, ...] = ()

    def of(self, tags: Mapping[str, str]) -> bool:
        """Say whether an instance with these tags is the cluster's."""
        if tags.get(GROUP_TAG) in self.scaling_groups:
            return True
        return any(
            all(key in tags and tags[key] in (values or (tags[key],)) for key, values in m.items())
            for m in self.marks
        )

    @property
    def of_instances(self) -> tuple[Mark, ...]:
        """Return the marks of instances: Auto Scaling writes the group's name on each."""
        by_name = ({GROUP_TAG: self.scaling_groups},) if self.scaling_groups else ()
        return (*self.marks, *by_name)

    @property
    def lacking(self) -> str:
        """Say what something of another's does not have."""
        named = [", ".join(mark) for mark in self.of_instances]
        return f"no tag {' nor '.join(named)}" + (" of this cluster" if len(named) > 1 else "")


def ours(prefix: str) -> Ownership:
    """Return how a cluster of ours is known."""
    return Ownership(marks=({managed_tag(prefix): ()},))
