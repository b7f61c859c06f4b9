"""Whole platforms, of many parts that are right: what is left to say, and nothing beside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.cli.survey.hidden_changes import apart
from tests.unit.cli.survey.machines import managed, own_groups, provisioned
from tests.unit.cli.survey.manifests import meta
from tests.unit.cli.survey.others import checks as found_of
from tests.unit.cli.survey.others import every, own
from tests.unit.cli.survey.platforms import (
    FOREIGN_KEY,
    each_group,
    free,
    machines,
    mixed,
    network,
    of_class,
    pod_set,
    reconciled,
    template,
)
from tests.unit.cli.survey.worlds import World, bare, bind

OWN_KEY = FOREIGN_KEY.replace("999988887777", "111122223333")
REQUIRED = {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled"}
LBC = "aws-load-balancer-controller:v3.5.0"
GATES = [{"conditionType": "target-health.elbv2.k8s.aws/boot"}]


def bottlerocket_with_karpenter() -> World:
    """Bottlerocket by version, Cilium in place of the VPC CNI, disks under a key of its own."""
    world = of_class(metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 1})
    network("quay.io/cilium/cilium:v1.18.3")(world)
    machines(MetadataOptions=REQUIRED)(world)
    for number in range(3):
        world.around.disks[f"vol-data-orders-mains-{number}"] = {"KmsKeyId": OWN_KEY}
    return world


def node_groups_behind_a_balancer() -> World:
    """A managed node group per zone, brokers behind readiness gates, machines with IMDSv2."""
    world = managed(bare())
    bind(world, LBC, "shop-kafka", "orders")
    every(world, "pods", readinessGates=GATES)
    template(MetadataOptions=REQUIRED)(world)
    machines(MetadataOptions=REQUIRED)(world)
    pod_set(status={"pods": 3, "currentPods": 3})(world)
    reconciled(12, 12)(world)
    return world


def auto_mode() -> World:
    """EKS Auto Mode with a NodeClass of its own."""
    named = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "kafka"}
    world = provisioned(bare(), auto=True, template={"nodeClassRef": named})
    world.versions["eks.amazonaws.com"] = "v1"
    subnets = [{"id": f"subnet-{zone}", "zone": f"eu-north-1{zone}"} for zone in "abc"]
    world.add(
        "nodeclasses", {"metadata": meta("kafka"), "spec": {}, "status": {"subnets": subnets}}
    )
    return world


def groups_of_many_kinds() -> World:
    """Several types by weight, capacity rebalance, a maintenance policy that starts first."""
    world = own()
    mixed(overrides=[{"InstanceType": "r7g.large"}, {"InstanceType": "r6g.large"}])(world)
    policy = {"MinHealthyPercentage": 100, "MaxHealthyPercentage": 200}
    each_group(InstanceMaintenancePolicy=policy, CapacityRebalance=True)(world)
    apart("topology.kubernetes.io/zone")(world)
    return world


def version_six() -> World:
    """An IPv6 cluster in subnets with one IPv4 address left, of which its pods need none."""
    world = own_groups(bare())
    world.around.cluster["kubernetesNetworkConfig"] = {"ipFamily": "ipv6"}
    free(1)(world)
    return world


PLATFORMS: dict[str, tuple[Callable[[], World], set[str]]] = {
    "Bottlerocket, Karpenter, Cilium": (bottlerocket_with_karpenter, set()),
    "node groups behind a balancer": (node_groups_behind_a_balancer, {"managed-node-group"}),
    "Auto Mode": (auto_mode, {"auto-mode"}),
    "groups of many kinds": (groups_of_many_kinds, set()),
    "IPv6": (version_six, {"subnet-tight"}),
}


@pytest.mark.parametrize(("build", "said"), PLATFORMS.values(), ids=PLATFORMS.keys())
def test_of_a_platform_that_is_right_only_what_is_worth_knowing_is_said(
    build: Callable[[], World], said: set[str]
) -> None:
    assert found_of(build()) == said
