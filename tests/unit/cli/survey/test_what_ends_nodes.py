"""Clusters in which something of the account's or the kubelet's ends brokers: each is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.checks.finding import Weight
from tests.every_case import every_case
from tests.unit.cli.survey.machines import managed, provisioned
from tests.unit.cli.survey.manifests import Item, workload
from tests.unit.cli.survey.others import bound, changed, checks, every, own, surveyed
from tests.unit.cli.survey.worlds import World, bare

CPU = {"TargetValue": 50.0, "PredefinedMetricSpecification": {}}


def policy(**said: Any) -> Callable[[World], object]:
    """Give the first group a scaling policy."""
    given = {"PolicyName": "cpu", "Enabled": True, **said}
    return lambda world: world.policies.update({min(world.groups): [given]})


def action(**said: int) -> Callable[[World], object]:
    """Give the first group a scheduled action."""
    given = {"ScheduledActionName": "night", "Recurrence": "0 20 * * *", **said}
    return lambda world: world.actions.update({min(world.groups): [given]})


def group_of(**said: Any) -> Callable[[World], object]:
    return lambda world: world.groups[min(world.groups)].update(said)


def node(change: Callable[[Item], object]) -> Callable[[World], object]:
    return lambda world: change(world.kinds["nodes"][0])


def condition(kind: str, status: str) -> Callable[[World], object]:
    given = {"type": kind, "status": status}
    return node(lambda item: item["status"]["conditions"].append(given))


def tainted(key: str, *, tolerated: bool) -> Callable[[World], object]:
    def change(world: World) -> None:
        taint = {"key": key, "effect": "NoSchedule"}
        world.kinds["nodes"][0]["spec"]["taints"] = [taint]
        if tolerated:
            every(world, "pods", tolerations=[{**taint, "operator": "Exists"}])

    return change


def evictor(image: str) -> Callable[[World], object]:
    return lambda world: world.add("deployments", workload("it", "ops", image))


def by_node(world: World) -> None:
    bound(world)
    for each in world.kinds["targetgroupbindings"]:
        each["spec"]["targetType"] = "instance"


def protected(world: World) -> None:
    policy(PolicyType="TargetTrackingScaling", TargetTrackingConfiguration=CPU)(world)
    group_of(Instances=[{"InstanceId": "i-x", "ProtectedFromScaleIn": True}])(world)


ENDS: dict[str, tuple[Callable[[World], object], set[str]]] = {
    "a target of processor time": (
        policy(PolicyType="TargetTrackingScaling", TargetTrackingConfiguration=CPU),
        {"group-scales-in"},
    ),
    "a target that only raises": (
        policy(
            PolicyType="TargetTrackingScaling",
            TargetTrackingConfiguration={**CPU, "DisableScaleIn": True},
        ),
        set(),
    ),
    "steps down": (
        policy(
            PolicyType="StepScaling",
            AdjustmentType="ChangeInCapacity",
            StepAdjustments=[{"ScalingAdjustment": 1}, {"ScalingAdjustment": -1}],
        ),
        {"group-scales-in"},
    ),
    "steps up": (
        policy(
            PolicyType="StepScaling",
            AdjustmentType="ChangeInCapacity",
            StepAdjustments=[{"ScalingAdjustment": 1}],
        ),
        set(),
    ),
    "an exact size": (
        policy(AdjustmentType="ExactCapacity", ScalingAdjustment=1),
        {"group-scales-in"},
    ),
    "a policy that is off": (
        policy(AdjustmentType="ExactCapacity", ScalingAdjustment=1, Enabled=False),
        set(),
    ),
    "a forecast": (policy(PolicyType="PredictiveScaling"), set()),
    "instances protected from scale-in": (protected, set()),
    "nights without nodes": (action(MinSize=0, DesiredCapacity=0), {"group-scales-in"}),
    "nights with fewer at most": (action(MaxSize=0), {"group-scales-in"}),
    "nights with as many": (action(MinSize=1, DesiredCapacity=1, MaxSize=2), set()),
    "a warm pool that takes nodes back": (
        group_of(WarmPoolConfiguration={"InstanceReusePolicy": {"ReuseOnScaleIn": True}}),
        {"group-warm-pool"},
    ),
    "a warm pool": (group_of(WarmPoolConfiguration={"MinSize": 1}), set()),
    "a cordoned node": (
        node(lambda item: item["spec"].update(unschedulable=True)),
        {"node-leaving"},
    ),
    "a node that is deleted": (
        node(lambda item: item["metadata"].update(deletionTimestamp="2026-11-01T00:00:00Z")),
        {"node-leaving"},
    ),
    "a node that an autoscaler has chosen": (
        node(lambda item: item["spec"].update(taints=[{"key": "ToBeDeletedByClusterAutoscaler"}])),
        {"node-leaving"},
    ),
    "a tainted node": (tainted("kafka", tolerated=True), set()),
    "a node with a taint that its pods do not tolerate": (
        tainted("kafka", tolerated=False),
        {"node-unfit"},
    ),
    "a full disk": (condition("DiskPressure", "True"), {"node-unwell"}),
    "a sick kernel": (condition("KernelReady", "False"), {"node-unwell"}),
    "a node as it should be": (condition("KernelReady", "True"), set()),
    "a condition of somebody's own": (condition("FrequentKubeletRestart", "False"), set()),
    "brokers without memory of their own": (
        lambda world: [p["status"].update(qosClass="BestEffort") for p in world.kinds["pods"]],
        {"best-effort"},
    ),
    "brokers with a limit above their request": (
        lambda world: [p["status"].update(qosClass="Burstable") for p in world.kinds["pods"]],
        set(),
    ),
    "a budget that lets what is not ready go": (
        lambda world: every(
            world, "poddisruptionbudgets", unhealthyPodEvictionPolicy="AlwaysAllow"
        ),
        {"budget-unready"},
    ),
    "a budget that says what is usual": (
        lambda world: every(
            world, "poddisruptionbudgets", unhealthyPodEvictionPolicy="IfHealthyBudget"
        ),
        set(),
    ),
    "a binding to nodes": (by_node, {"targets-by-node", "lbc-backoff"}),
    "the Vertical Pod Autoscaler": (
        evictor("registry.k8s.io/autoscaling/vpa-updater:1.5.1"),
        {"evictor"},
    ),
    "CAST AI": (evictor("us-docker.pkg.dev/castai-hub/library/evictor:0.31"), {"evictor"}),
    "Spot Ocean": (
        evictor("us-docker.pkg.dev/spotit-today/container-labs/ocean-kubernetes-controller:2"),
        {"evictor"},
    ),
}


@every_case(("change", "said"), ENDS.values(), ids=ENDS.keys())
def test_whatever_ends_nodes_or_pods_is_found(
    change: Callable[[World], object], said: set[str]
) -> None:
    assert checks(changed(own, change)()) == said


def test_eks_repairing_a_managed_group_is_found() -> None:
    found = checks(managed(bare(), nodeRepairConfig={"enabled": True}))
    assert found == {"managed-node-group", "managed-repair"}


def test_karpenters_mark_is_a_node_that_leaves() -> None:
    world = provisioned(bare())
    taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    world.kinds["nodes"][0]["spec"]["taints"] = [taint]
    assert checks(world) == {"node-leaving"}


def test_of_many_pages_the_last_is_read_and_the_groups_name_is_in_the_finding() -> None:
    world = own()
    last = max(world.groups)
    world.actions[last] = [{"ScheduledActionName": "weekend", "DesiredCapacity": 0}]
    (found,) = surveyed(world)
    assert (found.weight, found.subject) == (Weight.BROKER, f"Auto Scaling group {last}")
    assert "scheduled action weekend lowers its size, and 1 of its nodes" in found.evidence
