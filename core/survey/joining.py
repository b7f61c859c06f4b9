"""Judges whether a cluster lets a group's next machine join.

Source: EKS's access entries and the ConfigMap aws-auth, by which a node's role is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.survey.facts import Surveyed
from core.survey.finding import Finding, producer_may_stall
from core.survey.node_facts import NodeRole, ScalingGroup
from core.unknown import Unknown, mapping_of
from core.window import clock


def roles(seen: Surveyed) -> Iterator[Finding]:
    """Find groups whose next machine has no role, or one that the cluster does not know."""
    templates, role_of = mapping_of(seen.templates), mapping_of(seen.node_roles)
    for group in mapping_of(seen.groups).values():
        for profile in sorted({t.profile or "" for t in templates.get(group.name, ())}):
            if profile not in role_of:
                continue
            role = role_of[profile]
            if role is None:
                yield producer_may_stall(
                    "template-parts",
                    group.title,
                    f"its template names instance profile {profile}, which is gone or has no "
                    f"role: no replacement starts, or it does not join",
                    "name an instance profile with the nodes' role, before any node leaves",
                )
            elif not isinstance(seen.admitted_roles, Unknown):
                yield from _refused(group, role, seen.admitted_roles)


def _refused(
    group: ScalingGroup, role: NodeRole, admitted: Mapping[str, float | None]
) -> Iterator[Finding]:
    if role.name not in admitted:
        yield producer_may_stall(
            "node-role",
            group.title,
            f"machines that it starts have role {role.name}, which neither an access entry nor "
            f"aws-auth lets into the cluster: a replacement does not join",
            "make an access entry of type EC2_LINUX for that role, or name it in aws-auth",
        )
    elif (made := admitted[role.name]) is not None and made < role.created:
        yield producer_may_stall(
            "node-role-older",
            group.title,
            f"the access entry of its machines' role {role.name} was made at {clock(made)}, and "
            f"the role at {clock(role.created)}: the entry is for a role of that name that is "
            f"gone, and a replacement does not join",
            "delete the access entry and make it again for the role that is there",
        )
