"""The two lifecycle hooks of every group: made once somebody answers them, gone before nobody does.

A hook without its functions holds every termination and releases none: after fifteen minutes the
instance is kept for good. So they belong to the layer of the functions, come after all of them and
go before any. Until then, and while a new pool waits for this layer, a node just goes: the
kubelet's own shutdown lets Kafka stop cleanly. ADR 0017.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from core import naming
from core.cluster import ClusterSpec
from core.constants import ABANDON, HOOKS, TERMINATING

TYPE = "stillwater:infra:DepartureHooks"


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
        super().__init__(TYPE, name, None, opts)
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
