"""Refuses groups that another Stillwater manages, before anything is made.

Hooks go by name, so it would lose its own; and its drains would have to ask a gate that knows
nothing of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pulumi
import pulumi_aws as aws

from core.errors import InvalidInput
from core.naming import CLUSTER_TAG


def refuse_others(groups: Sequence[str], ours: Collection[str], opts: pulumi.InvokeOptions) -> None:
    """Raise InvalidInput for groups whose tag names neither of `ours`."""
    tags = {name: aws.autoscaling.get_group(name=name, opts=opts).tags for name in groups}
    owners = {
        name: tag.value for name, found in tags.items() for tag in found if tag.key == CLUSTER_TAG
    }
    problems = [
        f"Auto Scaling group {name} has the tag {CLUSTER_TAG}={owner}: another Stillwater manages "
        f"it; leave it to that one, or take it out of scaling_groups."
        for name, owner in owners.items()
        if owner not in ours
    ]
    if problems:
        raise InvalidInput(problems)
