"""The two lifecycle hooks of a group, ours or theirs: made once somebody answers them.

A hook without its functions holds every termination and releases none: after fifteen minutes the
instance is kept for good. So they belong to the layer of the functions, come after all of them and
go before any. Until then a node just goes: the kubelet's own shutdown lets Kafka stop cleanly (ADR
0017). A group that is not ours stays as it is: `pulumi destroy` takes its hooks back, and Auto
Scaling lets go of an instance that waits in a hook which is deleted. Whether ABANDON keeps an
instance is the group's own setting (its instance lifecycle policy), which its owner makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from core.cluster import ClusterSpec
from core.ground import naming
from core.ground.constants import ABANDON, HOOKS, TERMINATING
from core.ground.naming import CLUSTER_TAG

DEPARTURE_TYPE = "stillwater:infra:DepartureHooks"


class DepartureHooks(pulumi.ComponentResource):
    """`drain` and `gate` on the group of each pool and zone; both end in ABANDON by default."""

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        answering: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`answering` is whoever answers what stands in a hook, with their rights."""
        super().__init__(DEPARTURE_TYPE, name, None, opts)
        # A component's own order does not reach its children.
        child = pulumi.ResourceOptions(parent=self, depends_on=list(answering))
        for pool in spec.pools:
            for zone in spec.zones_of(pool):
                group = naming.auto_scaling_group(spec.prefix, pool.name, zone)
                seconds = spec.timings.hook_heartbeat_timeout_seconds
                add_hooks(f"{name}-{zone}-{pool.name}", group, seconds, child)
        self.register_outputs({})


def add_hooks(
    below: str, group: pulumi.Input[str], heartbeat_seconds: int, opts: pulumi.ResourceOptions
) -> None:
    """Put both hooks on a group; an instance whose hook nobody completes is kept."""
    for hook in HOOKS:
        aws.autoscaling.LifecycleHook(
            f"{below}-{hook}",
            name=hook,
            autoscaling_group_name=group,
            lifecycle_transition=TERMINATING,
            default_result=ABANDON,
            heartbeat_timeout=heartbeat_seconds,
            opts=opts,
        )


HOOKS_TYPE = "stillwater:infra:Hooks"


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
        super().__init__(HOOKS_TYPE, name, None, opts)
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
