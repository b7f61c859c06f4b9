"""The nodes of Kafka in layer 3: in Auto Scaling groups, or launched by Karpenter."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from core.cluster.network import service_cidr
from core.ground.naming import FOUNDATION
from infra.eks.launch import ClusterAccess, image_id
from infra.nodes.groups import BrokerNodes, BrokerNodesArgs, MachinePool
from infra.nodes.karpenter import KarpenterNodes, KarpenterNodesArgs
from stacks.layer import Layer


def build(layer: Layer) -> tuple[pulumi.Resource, Mapping[str, pulumi.Output[str]]]:
    """Build the nodes; return them and their Auto Scaling groups, of which Karpenter has none."""
    spec, foundation = layer.spec, layer.earlier(FOUNDATION)
    security_group_id = foundation.text("cluster_security_group_id")
    if spec.node_provisioner == "karpenter":
        launched = KarpenterNodes(
            "nodes",
            KarpenterNodesArgs(
                spec=spec,
                cluster_security_group_id=security_group_id,
                private_subnet_ids=layer.private_subnet_ids(),
            ),
            opts=layer.both_opts,
        )
        return launched, {}
    grouped = BrokerNodes(
        "nodes",
        BrokerNodesArgs(
            prefix=spec.prefix,
            pools=[
                MachinePool(
                    name=pool.name,
                    zones=spec.zones_of(pool),
                    nodes_per_zone=pool.nodes_per_zone,
                    instance_type=pool.instance_type,
                    image_id=image_id(
                        spec.kubernetes.version,
                        pool.instance_type,
                        pulumi.InvokeOptions(provider=layer.aws),
                    ),
                )
                for pool in spec.pools
            ],
            cluster=ClusterAccess(
                name=spec.prefix,
                endpoint=foundation.text("eks_endpoint"),
                ca=foundation.text("eks_ca"),
                service_cidr=service_cidr(spec.network.blocks),
            ),
            security_group_ids=[security_group_id],
            private_subnet_ids=layer.private_subnet_ids(),
            node_shutdown_seconds=spec.timings.node_shutdown_seconds,
            encryption_key=spec.encryption_key,
            tags=layer.tags,
        ),
        opts=layer.aws_opts,
    )
    return grouped, grouped.group_names
