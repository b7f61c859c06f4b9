"""Layer 2: how AWS's announcements arrive, who drains nodes, where volumes come from."""

from __future__ import annotations

import pulumi

from infra.nodes import group_arns
from infra.nth import NodeTerminationHandler, NodeTerminationHandlerArgs
from infra.storage import KafkaStorage, StorageArgs
from infra.termination import Termination, TerminationArgs
from stacks.layer import Layer


def build(layer: Layer) -> None:
    spec = layer.spec
    termination = Termination(
        "termination",
        TerminationArgs(prefix=spec.prefix, timings=spec.timings, drain_route=spec.drain_route),
        opts=layer.on_aws,
    )
    handler = NodeTerminationHandler(
        "nth",
        NodeTerminationHandlerArgs(
            prefix=spec.prefix,
            region=spec.region,
            eks_cluster=spec.prefix,
            queue_url=termination.nth_queue.url,
            queue_arn=termination.nth_queue.arn,
            group_arns=group_arns(spec, layer.account),
            timings=spec.timings,
            drain_route=spec.drain_route,
        ),
        opts=layer.on_both,
    )
    KafkaStorage(
        "storage",
        StorageArgs(pools=spec.pools, tags=layer.tags.everywhere),
        opts=layer.on_both,
    )
    pulumi.export("events_queue_url", termination.events_queue.url)
    pulumi.export("events_queue_arn", termination.events_queue.arn)
    pulumi.export("nth_queue_url", termination.nth_queue.url)
    pulumi.export("nth_queue_arn", termination.nth_queue.arn)
    pulumi.export("nth_release", handler.release_name)
