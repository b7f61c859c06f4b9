"""The two lifecycle hooks on groups that are not ours, as resources of their own.

The groups stay as they are: what is made here is taken back by `pulumi destroy`, and Auto Scaling
lets go of an instance that waits in a hook which is deleted. Whether ABANDON keeps an instance is a
setting of the group itself (its instance lifecycle policy), which its owner makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from core.naming import CLUSTER_TAG
from infra.nodes.hooks import add_hooks

TYPE = "stillwater:infra:Hooks"


@dataclass(frozen=True, kw_only=True)
class HooksArgs:
    """Auto Scaling groups by name, and what they are tagged as."""

    # Below keys that stand in the names of what is made; a name may be known later.
    scaling_groups: Mapping[str, pulumi.Input[str]]
    heartbeat_timeout_seconds: int
    # The value of the tag stillwater:cluster: whose hooks these are.
    cluster: str
    # Whoever answers what stands in a hook, with their rights.
    answering: Sequence[pulumi.Resource] = ()


class Hooks(pulumi.ComponentResource):
    """`drain` and `gate`, and the tag that says whose they are, on each group."""

    def __init__(
        self, name: str, args: HooksArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        # A component's own order does not reach its children.
        child = pulumi.ResourceOptions(parent=self, depends_on=list(args.answering))
        for key, group in args.scaling_groups.items():
            aws.autoscaling.Tag(
                f"{name}-{key}-tag",
                autoscaling_group_name=group,
                # Not at launch: instances are known by their group.
                tag={"key": CLUSTER_TAG, "value": args.cluster, "propagate_at_launch": False},
                opts=child,
            )
            add_hooks(f"{name}-{key}", group, args.heartbeat_timeout_seconds, child)
        self.register_outputs({})
