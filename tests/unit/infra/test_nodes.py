"""infra.nodes: one group per pool and zone, and nothing that kills a broker by default."""

from __future__ import annotations

from typing import Any

import pytest

from core.ground import naming
from tests.unit.infra.programs import ZONES
from tests.unit.infra.recording import Recorded, Resource

GROUP, HOOK = "autoscaling/group:Group", "autoscaling/lifecycleHook:LifecycleHook"
TEMPLATE = "ec2/launchTemplate:LaunchTemplate"


@pytest.fixture
def groups(layers: dict[str, Recorded]) -> list[Resource]:
    return layers["kafka"].of(GROUP)


def tags_of(group: Resource) -> dict[str, tuple[str, bool]]:
    return {t["key"]: (t["value"], t["propagateAtLaunch"]) for t in group.inputs["tags"]}


def test_each_pool_has_one_group_per_zone_on_one_subnet(groups: list[Resource]) -> None:
    places = {group.inputs["name"]: group.inputs["vpcZoneIdentifiers"] for group in groups}
    assert places == {
        naming.auto_scaling_group("test-orders", pool, zone): [f"subnet-network-{zone}-private"]
        for pool in ("controller", "broker")
        for zone in ZONES
    }


def test_every_node_may_stand_beside_its_replacement(groups: list[Resource]) -> None:
    for group in groups:
        wanted = group.inputs["desiredCapacity"]
        assert group.inputs["minSize"] == wanted
        assert group.inputs["maxSize"] == 2 * wanted
        assert group.inputs["instanceMaintenancePolicy"] == {
            "minHealthyPercentage": 100,
            "maxHealthyPercentage": 200,
        }


def test_an_abandoned_termination_keeps_the_instance(groups: list[Resource]) -> None:
    for group in groups:
        triggers = group.inputs["instanceLifecyclePolicy"]["retentionTriggers"]
        assert triggers == {"terminateHookAbandon": "retain"}


def test_two_hooks_hold_every_termination_and_give_up_by_abandoning(
    layers: dict[str, Recorded], groups: list[Resource]
) -> None:
    hooks = layers["operations"].of(HOOK)
    held = {(h.inputs["autoscalingGroupName"], h.inputs["name"]) for h in hooks}
    assert held == {(g.inputs["name"], hook) for g in groups for hook in ("drain", "gate")}
    assert {h.inputs["defaultResult"] for h in hooks} == {"ABANDON"}
    assert {h.inputs["lifecycleTransition"] for h in hooks} == {
        "autoscaling:EC2_INSTANCE_TERMINATING"
    }


def test_replacers_may_raise_desired_and_no_update_refreshes(groups: list[Resource]) -> None:
    for group in groups:
        assert group.ignore_changes == ("desiredCapacity",)
        assert "instanceRefresh" not in group.inputs


def test_instances_inherit_what_others_know_them_by(groups: list[Resource]) -> None:
    for group in groups:
        tags = tags_of(group)
        assert tags["kubernetes.io/cluster/test-orders"] == ("owned", True)
        assert tags[naming.managed_tag("test-orders")] == ("true", True)
        assert tags["stillwater:cluster"] == ("orders", True)
        assert tags["Name"] == (group.inputs["name"], True)


def test_an_empty_group_tells_the_autoscaler_its_zone_and_taint(groups: list[Resource]) -> None:
    template = "k8s.io/cluster-autoscaler/node-template"
    for group in groups:
        tags, zone = tags_of(group), group.inputs["vpcZoneIdentifiers"][0].split("-private")[0]
        zone = zone.removeprefix("subnet-network-")
        assert tags[f"{template}/label/topology.kubernetes.io/zone"] == (zone, False)
        assert tags[f"{template}/label/topology.ebs.csi.aws.com/zone"] == (zone, False)
        assert tags[f"{template}/taint/dedicated"] == ("kafka:NoSchedule", False)


def test_no_broker_ever_runs_on_spot(layers: dict[str, Recorded], groups: list[Resource]) -> None:
    for template in layers["kafka"].of(TEMPLATE):
        assert "instanceMarketOptions" not in template.inputs
    for group in groups:
        assert "mixedInstancesPolicy" not in group.inputs


def metadata_options(recorded: Recorded) -> list[dict[str, Any]]:
    return [template.inputs["metadataOptions"] for template in recorded.of(TEMPLATE)]


@pytest.mark.parametrize("layer", ["foundation", "kafka"])
def test_every_template_demands_imdsv2_and_encrypts_its_root(
    layers: dict[str, Recorded], layer: str
) -> None:
    for options in metadata_options(layers[layer]):
        assert options["httpTokens"] == "required"
        assert options["httpPutResponseHopLimit"] == 1
    for template in layers[layer].of(TEMPLATE):
        (root,) = template.inputs["blockDeviceMappings"]
        assert root["ebs"]["encrypted"] == "true"
        launched = {t["resourceType"] for t in template.inputs["tagSpecifications"]}
        assert launched == {"instance", "volume", "network-interface"}


def test_nodes_may_join_before_the_first_of_them_starts(layers: dict[str, Recorded]) -> None:
    kafka = layers["kafka"]
    entry = kafka.one("eks/accessEntry:AccessEntry")
    assert entry.inputs["type"] == "EC2_LINUX"
    for group in kafka.of(GROUP):
        assert entry.name in group.depends_on


def test_groups_are_exported_by_node_pool(layers: dict[str, Recorded]) -> None:
    exported = layers["kafka"].outputs["auto_scaling_groups"]
    assert exported["broker-a"] == "test-orders-broker-a"
    assert len(exported) == 6
