"""Judges whether a cluster lets a group's next machine join.

Source: EKS's access entries and the ConfigMap aws-auth, by which a node's role is known.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.facts import Surveyed
from core.survey.finding import Finding, producer_may_stall
from core.unknown import Unknown, mapping_of


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
            elif not isinstance(seen.admitted_roles, Unknown) and role not in seen.admitted_roles:
                yield producer_may_stall(
                    "node-role",
                    group.title,
                    f"machines that it starts have role {role}, which neither an access entry nor "
                    f"aws-auth lets into the cluster: a replacement does not join",
                    "make an access entry of type EC2_LINUX for that role, or name it in aws-auth",
                )
