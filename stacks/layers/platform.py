"""Layer 2: how AWS's announcements arrive, who drains nodes, where volumes come from."""

from __future__ import annotations

import pulumi

from core import naming
from core.naming import FOUNDATION
from infra.charts.autoscaler import ClusterAutoscaler, ClusterAutoscalerArgs
from infra.charts.karpenter import Karpenter, KarpenterArgs
from infra.charts.lbc import LoadBalancerController, LoadBalancerControllerArgs
from infra.charts.nth import NodeTerminationHandler, NodeTerminationHandlerArgs
from infra.functions import packaging
from infra.functions.announcements import our_groups
from infra.functions.termination import Termination, TerminationArgs
from infra.functions.webhook import Webhook, WebhookArgs
from infra.kafka.snapshots import SnapshotResources, SnapshotsArgs
from infra.kafka.storage import KafkaStorage, StorageArgs
from infra.nodes.groups import group_arns
from stacks.layer import Layer


def build(layer: Layer) -> None:
    spec = layer.spec
    termination = Termination(
        "termination",
        TerminationArgs(
            prefix=spec.prefix,
            # Karpenter's machines are in none.
            groups=our_groups(spec.prefix, [pool.name for pool in spec.pools])
            if spec.node_provisioner == "asg"
            else [],
            timings=spec.timings,
            drain_route=spec.drain_route,
        ),
        opts=layer.on_aws,
    )
    webhook = Webhook(
        "webhook",
        WebhookArgs(spec=spec, account=layer.account, package=packaging.build()),
        opts=layer.on_both,
    )
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
        opts=layer.on_both,
    )
    controller = LoadBalancerController(
        "lbc",
        LoadBalancerControllerArgs(
            prefix=spec.prefix,
            region=spec.region,
            eks_cluster=spec.prefix,
            vpc_id=layer.earlier(FOUNDATION).text("vpc_id"),
            account=layer.account,
            namespace=spec.kubernetes.namespace,
            timings=spec.timings,
            cluster_tags=layer.tags.identity,
        ),
        opts=layer.on_both,
    )
    KafkaStorage(
        "storage",
        StorageArgs(
            pools=spec.pools,
            may_change=spec.volumes.applies,
            encryption_key=spec.encryption_key,
            tags=layer.tags.of_volume(spec.prefix),
        ),
        opts=layer.on_both,
    )
    SnapshotResources(
        "snapshots",
        SnapshotsArgs(
            prefix=spec.prefix,
            account=layer.account,
            schedule=spec.snapshots,
            tags=layer.tags.everywhere,
        ),
        opts=layer.on_both,
    )
    if spec.node_provisioner == "asg" and spec.cluster_autoscaler:
        ClusterAutoscaler(
            "autoscaler",
            ClusterAutoscalerArgs(
                prefix=spec.prefix,
                region=spec.region,
                eks_cluster=spec.prefix,
                account=layer.account,
                kafka_group_arns=group_arns(spec, layer.account),
                pod_grace_seconds=spec.timings.pod_grace_seconds,
            ),
            opts=layer.on_both,
        )
    if spec.node_provisioner == "karpenter":
        Karpenter(
            "karpenter",
            KarpenterArgs(
                prefix=spec.prefix,
                eks_cluster=spec.prefix,
                account=layer.account,
                encryption_key=spec.encryption_key,
            ),
            opts=layer.on_both,
        )
    pulumi.export("events_queue_url", termination.events_queue.url)
    pulumi.export("events_queue_arn", termination.events_queue.arn)
    pulumi.export("nth_queue_url", termination.handlers_queue.url)
    pulumi.export("nth_queue_arn", termination.handlers_queue.arn)
    pulumi.export("nth_release", handler.release_name)
    pulumi.export("lbc_release", controller.release_name)
