"""Layer 2: how AWS's announcements arrive, who drains nodes, where volumes come from."""

from __future__ import annotations

import pulumi

from core.ground import naming
from core.ground.naming import FOUNDATION
from infra.charts.autoscaler import ClusterAutoscaler
from infra.charts.karpenter import Karpenter
from infra.charts.lbc import LoadBalancerController
from infra.charts.nth import NodeTerminationHandler, NodeTerminationHandlerArgs
from infra.functions.termination import Termination, TerminationArgs, our_groups
from infra.functions.webhook import Webhook
from infra.kafka.storage import KafkaStorage, SnapshotResources
from infra.nodes.groups import group_arns
from stacks.layer import Layer


def build(layer: Layer) -> None:
    spec = layer.spec
    termination = Termination(
        "termination",
        TerminationArgs(
            prefix=spec.prefix,
            account=layer.account,
            # Karpenter's machines are in none.
            groups=our_groups(spec.prefix, [pool.name for pool in spec.pools])
            if spec.node_provisioner == "asg"
            else [],
            timings=spec.timings,
            drain_route=spec.drain_route,
        ),
        opts=layer.aws_opts,
    )
    webhook = Webhook("webhook", spec, layer.account, opts=layer.both_opts)
    handler = NodeTerminationHandler(
        "nth",
        NodeTerminationHandlerArgs(
            prefix=spec.prefix,
            region=spec.region,
            eks_cluster=spec.prefix,
            queue_url=termination.handlers_queue.url,
            queue_arn=termination.handlers_queue.arn,
            group_arns=group_arns(spec, layer.account),
            timings=spec.timings,
            drain_route=spec.drain_route,
            webhook=webhook,
            managed_tag=naming.managed_tag(spec.prefix),
        ),
        opts=layer.both_opts,
    )
    controller = LoadBalancerController(
        "lbc",
        spec,
        layer.account,
        layer.earlier(FOUNDATION).text("vpc_id"),
        opts=layer.both_opts,
    )
    KafkaStorage("storage", spec, opts=layer.both_opts)
    SnapshotResources("snapshots", spec, layer.account, opts=layer.both_opts)
    if spec.node_provisioner == "asg" and spec.cluster_autoscaler:
        ClusterAutoscaler("autoscaler", spec, layer.account, opts=layer.both_opts)
    if spec.node_provisioner == "karpenter":
        Karpenter("karpenter", spec, layer.account, opts=layer.both_opts)
    pulumi.export("events_queue_url", termination.events_queue.url)
    pulumi.export("events_queue_arn", termination.events_queue.arn)
    pulumi.export("nth_queue_url", termination.handlers_queue.url)
    pulumi.export("nth_queue_arn", termination.handlers_queue.arn)
    pulumi.export("nth_release", handler.release_name)
    pulumi.export("lbc_release", controller.release_name)
