"""Reads the controllers that a broker needs to come back: of nodes, of volumes, of the network."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cli.survey.listing import title_of, variable
from cli.survey.tools import down, running, setting
from core.checks.room import VPC_CNI
from core.ground.errors import StillwaterError
from core.model.workloads import Essential, NodeProvisioner, VolumeController
from infra.eks.api import Object

# Karpenter's own image, and the one of its first provider for AWS.
KARPENTER = re.compile(r"karpenter(-aws|/controller|-controller)?([:@]|$)")
# What no pod starts, or finds another, without.
ESSENTIALS = {
    "coredns": "the cluster's DNS",
    "amazon-k8s-cni": VPC_CNI,
    "kube-proxy": "kube-proxy",
    "cilium": "Cilium",
    "calico/node": "Calico",
    "k8s-dns-node-cache": "the node-local cache of the cluster's DNS",
}

# The VPC CNI's word for giving pods addresses of the subnets that ENIConfigs name.
CUSTOM_NETWORKING = "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"
# And for taking them by blocks of 16.
PREFIXES = "ENABLE_PREFIX_DELEGATION"


def node_provisioners(found: Iterable[Object]) -> tuple[NodeProvisioner, ...]:
    return tuple(
        NodeProvisioner(
            title=title_of(item),
            queue=_interruptions(item, container),
            down=down(item),
            repairs="NodeRepair=true" in variable(container, "FEATURE_GATES"),
        )
        for item, container in running(found, KARPENTER)
    )


def essentials(found: Iterable[Object]) -> tuple[Essential, ...]:
    return tuple(
        Essential(
            title=title_of(item),
            what=what,
            down=down(item),
            elsewhere=variable(container, CUSTOM_NETWORKING).lower() == "true",
            by_prefix=variable(container, PREFIXES).lower() == "true",
        )
        for image, what in ESSENTIALS.items()
        for item, container in running(found, rf"(^|/){image}([:@]|$)")
    )


def _interruptions(item: Object, container: Object) -> str | None:
    """Return the queue of a Karpenter; raise where its settings are not in its environment."""
    # It cannot run without: before 0.33 a ConfigMap had all of its settings.
    if not setting(container, "CLUSTER_NAME", ""):
        raise StillwaterError(f"the settings of {title_of(item)} are in another object")
    return setting(container, "INTERRUPTION_QUEUE", "") or None


def volume_controllers(found: Iterable[Object]) -> tuple[VolumeController, ...]:
    """Return installations of the part of EBS's driver that attaches: its provisioner is beside."""
    return tuple(
        VolumeController(title=title_of(item), down=down(item))
        for item, container in running(found, r"aws-ebs-csi-driver")
        # The part on every node only mounts.
        if (container.get("args") or [""])[0] != "node"
    )
