"""Layer 1: the network, the EKS cluster, the nodes for everything that is not Kafka."""

from __future__ import annotations

import pulumi

from infra.eks.cluster import EksCluster
from infra.network import Endpoints, site
from stacks.layer import Layer


def build(layer: Layer) -> None:
    spec = layer.spec
    network = site(spec, layer.aws, layer.aws_opts)
    Endpoints("endpoints", spec, network, opts=layer.aws_opts)
    cluster = EksCluster("cluster", spec, network, layer.account, opts=layer.aws_opts)
    pulumi.export("vpc_id", network.vpc_id)
    pulumi.export("private_subnet_ids", dict(network.private_subnet_ids))
    pulumi.export("control_plane_subnet_ids", dict(network.control_plane_subnet_ids))
    pulumi.export("eks_cluster_name", cluster.name)
    pulumi.export("eks_endpoint", cluster.endpoint)
    pulumi.export("eks_ca", cluster.ca)
    pulumi.export("cluster_security_group_id", cluster.security_group_id)
