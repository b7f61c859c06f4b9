"""The two lifecycle hooks of every group: made once somebody answers them, gone before nobody does.

A hook without its functions holds every termination and releases none: after fifteen minutes the
instance is kept for good. So they belong to the layer of the functions, come after all of them and
go before any. Until then, and while a new pool waits for this layer, a node just goes: the
kubelet's own shutdown lets Kafka stop cleanly. ADR 0017.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from core import naming
from core.cluster import ClusterSpec
from core.constants import ABANDON, HOOKS, TERMINATING

TYPE = "stillwater:infra:DepartureHooks"


@dataclass(frozen=True, kw_only=True)
class DepartureHooksArgs:
    spec: ClusterSpec
    # Whoever answers what stands in a hook, with their rights.
    answering: Sequence[pulumi.Resource]


class DepartureHooks(pulumi.ComponentResource):
    """`drain` and `gate` on the group of each pool and zone; both end in ABANDON by default."""

    def __init__(
        self, name: str, args: DepartureHooksArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        spec = args.spec
        for pool in spec.pools:
            for zone in spec.zones_of(pool):
                for hook in HOOKS:
                    aws.autoscaling.LifecycleHook(
                        f"{name}-{zone}-{pool.name}-{hook}",
                        name=hook,
                        autoscaling_group_name=naming.auto_scaling_group(
                            spec.prefix, pool.name, zone
                        ),
                        lifecycle_transition=TERMINATING,
                        default_result=ABANDON,
                        heartbeat_timeout=spec.timings.hook_heartbeat_timeout_seconds,
                        opts=pulumi.ResourceOptions(
                            # A component's own order does not reach its children.
                            parent=self,
                            depends_on=list(args.answering),
                        ),
                    )
        self.register_outputs({})
