"""Kafka's nodes as Karpenter launches them: a NodePool per pool and zone, a node class per pool.

Nothing voluntary takes a broker's node unasked: nodes never expire, only a node without pods is
ended, one at a time, and drift disrupts none (`stillwater rotate` goes node by node) but behind the
eviction gate and in the maintenance window. What AWS or a person ends is drained like any other,
without the hold that lifecycle hooks give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from core.cluster import ClusterSpec, NodePool
from core.ground import naming
from infra.eks import launch
from infra.eks.launch import METADATA_HOP_LIMIT, ROOT_DEVICE, ROOT_SIZE_GIB
from infra.nodes.groups import node_identity
from infra.tags import cluster_tags
from infra.versions import KARPENTER_API, KARPENTER_AWS_API

TYPE = "stillwater:infra:KarpenterNodes"
# Longer than a broker is away from its node while it moves: the empty node may be its next one.
EMPTY_FOR = "1h"
NEVER = "Never"


@dataclass(frozen=True, kw_only=True)
class KarpenterNodesArgs:
    spec: ClusterSpec
    cluster_security_group_id: pulumi.Input[str]
    private_subnet_ids: Mapping[str, pulumi.Input[str]]


class KarpenterNodes(pulumi.ComponentResource):
    """NodePools named like KafkaNodePools (`broker-a`), whose nodes they are."""

    def __init__(
        self, name: str, args: KarpenterNodesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._args = name, args
        profile, ready_to_join = node_identity(
            name, prefix=args.spec.prefix, eks_cluster=args.spec.prefix, parent=self
        )
        for pool in args.spec.pools:
            image = launch.image_id(
                args.spec.kubernetes.version,
                pool.instance_type,
                pulumi.InvokeOptions(parent=self),
            )
            node_class = self._object(
                f"{pool.name}-class",
                (KARPENTER_AWS_API, "EC2NodeClass", pool.name),
                node_class_spec(args, pool, image, profile.name),
                ready_to_join,
            )
            for zone in args.spec.zones_of(pool):
                self._object(
                    f"{zone}-{pool.name}",
                    (KARPENTER_API, "NodePool", naming.kafka_node_pool(pool.name, zone)),
                    node_pool_spec(pool, zone, budgets(args.spec)),
                    [node_class],
                )
        self.register_outputs({})

    def _object(
        self,
        role: str,
        named: tuple[str, str, str],
        spec: Mapping[str, Any],
        after: Sequence[pulumi.Resource],
    ) -> CustomResource:
        api_version, kind, object_name = named
        return CustomResource(
            f"{self._name}-{role}",
            api_version=api_version,
            kind=kind,
            metadata={"name": object_name},
            spec=dict(spec),
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(after)),
        )


def node_class_spec(
    args: KarpenterNodesArgs,
    pool: NodePool,
    image_id: pulumi.Input[str],
    instance_profile: pulumi.Input[str],
) -> dict[str, Any]:
    """Return the EC2NodeClass of a pool: what our launch template says, in Karpenter's words."""
    name, key = f"{args.spec.prefix}-{pool.name}", args.spec.encryption_key
    kubelet = {"config": launch.kubelet_config(args.spec.timings.node_shutdown_seconds)}
    return {
        "amiFamily": "AL2023",
        # By id: two nodes launched between two runs of `pulumi up` have the same image.
        "amiSelectorTerms": [{"id": image_id}],
        "instanceProfile": instance_profile,
        "subnetSelectorTerms": [
            {"id": args.private_subnet_ids[zone]} for zone in args.spec.zones_of(pool)
        ],
        "securityGroupSelectorTerms": [{"id": args.cluster_security_group_id}],
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpTokens": "required",
            "httpPutResponseHopLimit": METADATA_HOP_LIMIT,
        },
        "blockDeviceMappings": [
            {
                "deviceName": ROOT_DEVICE,
                "rootVolume": True,
                "ebs": {
                    "volumeType": "gp3",
                    "volumeSize": f"{ROOT_SIZE_GIB}Gi",
                    "encrypted": True,
                    **({} if key is None else {"kmsKeyID": key}),
                    "deleteOnTermination": True,
                },
            }
        ],
        # Not the handlers' tag: what has no lifecycle hook cannot be held by them.
        "tags": {**cluster_tags(args.spec).name_tags(name), naming.POOL_TAG: pool.name},
        # Merged with what Karpenter tells its nodes itself: cluster, labels, taints.
        "userData": launch.multipart({"kubelet": kubelet}),
    }


def node_pool_spec(
    pool: NodePool, zone: str, budgets: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the NodePool of a pool in one zone."""
    return {
        "template": {
            "metadata": {"labels": {naming.NODE_POOL_LABEL: pool.name}},
            "spec": {
                "nodeClassRef": {
                    "group": KARPENTER_AWS_API.partition("/")[0],
                    "kind": "EC2NodeClass",
                    "name": pool.name,
                },
                "requirements": [
                    _is(naming.ZONE_LABEL, zone),
                    # A broker is never worth a discount.
                    _is("karpenter.sh/capacity-type", "on-demand"),
                    _is("node.kubernetes.io/instance-type", pool.instance_type),
                    _is("kubernetes.io/os", "linux"),
                    _is(
                        "kubernetes.io/arch",
                        "arm64" if launch.is_arm(pool.instance_type) else "amd64",
                    ),
                ],
                "taints": [
                    {
                        "key": naming.DEDICATED_TAINT_KEY,
                        "value": naming.DEDICATED_TAINT_VALUE,
                        "effect": "NoSchedule",
                    }
                ],
                # The default, 720h, is a forceful end: no budget and no replacement before it.
                "expireAfter": NEVER,
                # terminationGracePeriod stays unset: set, it deletes a broker past its
                # PodDisruptionBudget, and lets drift do so too.
            },
        },
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": EMPTY_FOR,
            "budgets": [dict(each) for each in budgets],
        },
    }


def budgets(spec: ClusterSpec) -> list[dict[str, Any]]:
    """Return how many nodes of a NodePool Karpenter may end of its own accord, and when.

    A budget is per NodePool: one of each zone would be two brokers too many. So what has drifted
    goes only where the gate makes drains wait for each other, and only in the maintenance window.
    Of the budgets that are active the smallest counts; their schedules are UTC.
    """
    if spec.maintenance is None or spec.eviction_gate is None:
        return [_ONE_EMPTY, {"nodes": "0", "reasons": ["Drifted", "Underutilized"]}]
    return [
        _ONE_EMPTY,
        {"nodes": "0", "reasons": ["Underutilized"]},
        {"nodes": "1", "reasons": ["Drifted"]},
        *(_closed_budget(*stretch) for stretch in spec.maintenance.window.closed_spans()),
    ]


_ONE_EMPTY = {"nodes": "1", "reasons": ["Empty"]}


def _closed_budget(start: int, minutes: int) -> dict[str, Any]:
    """Return the budget of a stretch in which nothing that has drifted goes."""
    day, minute = divmod(start, 1440)
    # Cron's week begins with Sunday.
    schedule = f"{minute % 60} {minute // 60} * * {(day + 1) % 7}"
    duration = f"{minutes // 60}h{minutes % 60}m"
    return {"nodes": "0", "reasons": ["Drifted"], "schedule": schedule, "duration": duration}


def _is(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": [value]}
