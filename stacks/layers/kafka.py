"""Layer 3: the nodes of Kafka, then Kafka."""

from __future__ import annotations

import pulumi

from core.naming import FOUNDATION
from infra.bootstrap import ClusterAccess, service_cidr
from infra.kafka import Kafka, KafkaArgs, bootstrap_servers
from infra.nodes import BrokerNodes, BrokerNodesArgs
from stacks.layer import Layer


def build(layer: Layer) -> None:
    spec, foundation = layer.spec, layer.earlier(FOUNDATION)
    nodes = BrokerNodes(
        "nodes",
        BrokerNodesArgs(
            prefix=spec.prefix,
            kubernetes_version=spec.kubernetes.version,
            cluster=ClusterAccess(
                name=spec.prefix,
                endpoint=foundation.text("eks_endpoint"),
                ca=foundation.text("eks_ca"),
                service_cidr=service_cidr(spec.network.vpc_cidr),
            ),
            cluster_security_group_id=foundation.text("cluster_security_group_id"),
            private_subnet_ids=layer.private_subnet_ids(),
            pools=spec.pools,
            pod_grace_seconds=spec.timings.pod_grace_seconds,
            hook_heartbeat_timeout_seconds=spec.timings.hook_heartbeat_timeout_seconds,
            tags=layer.tags,
        ),
        opts=layer.on_aws,
    )
    # Kafka's pods need these nodes; on the way down they must be gone before the nodes are.
    kafka = Kafka(
        "kafka",
        KafkaArgs(spec=spec),
        opts=pulumi.ResourceOptions.merge(
            layer.on_both, pulumi.ResourceOptions(depends_on=[nodes])
        ),
    )
    pulumi.export("auto_scaling_groups", dict(nodes.group_names))
    pulumi.export("namespace", kafka.namespace)
    pulumi.export("bootstrap", ",".join(bootstrap_servers(spec)))
