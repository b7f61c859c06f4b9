"""Machines below a Kafka: what ends them, who replaces them, and what never will."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.checks.finding import Weight
from tests.every_case import every_case
from tests.unit.cli.survey.changes import deployment, group_of, refreshing
from tests.unit.cli.survey.changes_of_machines import (
    CAPACITY_TYPE,
    EVICTING,
    UNDERUTILIZED,
    ZONE,
    action,
    allowed,
    checked,
    controller,
    deleted,
    every_group,
    instance,
    karpenters,
    nodes_labelled,
    nodes_noted,
    of_eks,
    of_pool,
    policy,
    pool_status,
    requiring,
    started_by,
    suspended,
    without_controller,
)
from tests.unit.cli.survey.machines import managed, provisioned
from tests.unit.cli.survey.manifests import Item, workload
from tests.unit.cli.survey.others import (
    autoscaled,
    bound,
    changed,
    checks,
    every,
    own,
    surveyed,
    zookeeper_era,
)
from tests.unit.cli.survey.worlds import ZONES, Change, World, bare

NTH = "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.6"
IN_SERVICE = {"InstanceId": "i-x", "LifecycleState": "InService", "HealthStatus": "Healthy"}
PENDING = {"InstanceId": "i-y", "LifecycleState": "Pending"}
SPOT_TOO = {"template": requiring(CAPACITY_TYPE, "In", ["spot", "on-demand"])}
TAKES_CUSTOM = "--skip-nodes-with-custom-controller-pods=false"
OCEAN = "us-docker.pkg.dev/spotit-today/container-labs/ocean-kubernetes-controller:2"
NO_ROOM = {"code": "InsufficientFreeAddresses", "message": "subnet-1 is full"}

GROUPS: dict[str, tuple[Change, set[str]]] = {
    "a group that is deleted": (group_of(Status="Delete in progress"), {"group-deleted"}),
    "VPC Lattice's opinion": (group_of(HealthCheckType="EC2,VPC_LATTICE"), {"group-health"}),
    "EBS's opinion": (group_of(HealthCheckType="EC2,EBS"), {"group-health"}),
    "a policy whose process is suspended": (
        lambda w: (suspended("AlarmNotification")(w), policy(w)),
        set(),
    ),
    "a policy beside another suspended process": (
        lambda w: (suspended("ScheduledActions")(w), policy(w)),
        {"group-scales-in"},
    ),
    "an action whose process is suspended": (
        lambda w: (suspended("ScheduledActions")(w), action(w)),
        set(),
    ),
    "launch before terminate": (
        group_of(InstanceMaintenancePolicy={"MinHealthyPercentage": 100}),
        set(),
    ),
    "capacity rebalancing, on demand": (group_of(CapacityRebalance=True), set()),
    "a warm pool of stopped machines": (
        group_of(WarmPoolConfiguration={"MinSize": 1, "PoolState": "Stopped"}),
        set(),
    ),
    "no maximum lifetime": (group_of(MaxInstanceLifetime=0), set()),
    "a refresh that bakes": (refreshing("Baking"), {"group-refreshing"}),
    "a refresh that is rolled back": (refreshing("RollbackInProgress"), {"group-refreshing"}),
    "a refresh that failed": (refreshing("Failed"), set()),
    "no starts": (suspended("Launch"), {"group-suspended"}),
    "no rebalancing of one zone": (suspended("AZRebalance"), set()),
    "fewer nodes than it wants": (
        lambda w: (
            every_group(DesiredCapacity=2, MaxSize=4)(w),
            group_of(Instances=[IN_SERVICE])(w),
        ),
        {"group-short"},
    ),
    "as many as it wants": (group_of(Instances=[IN_SERVICE]), set()),
    "one that starts": (
        group_of(DesiredCapacity=2, MaxSize=4, Instances=[IN_SERVICE, PENDING]),
        set(),
    ),
    # Machines.
    "a host that fails": (
        checked(SystemStatus="impaired", InstanceStatus="ok"),
        {"machine-impaired"},
    ),
    "volumes that stall": (checked(AttachedEbsStatus="impaired"), {"machine-impaired"}),
    "a machine that starts": (checked(SystemStatus="initializing"), set()),
    "a machine that EC2 shuts down": (
        instance(State={"Name": "shutting-down"}),
        {"machine-ending"},
    ),
    "a machine that runs": (instance(State={"Name": "running"}), set()),
    "a capacity block": (instance(InstanceLifecycle="capacity-block"), {"spot"}),
    "a machine of a reservation that AWS may interrupt": (
        instance(InstanceLifecycle="interruptible-capacity-reservation"),
        {"spot"},
    ),
    "machines of nobody": (started_by(), {"node-alone"}),
    "Spot Ocean's machines": (
        lambda w: (started_by("spotinst:aws:ec2:group:id")(w), deployment(OCEAN)(w)),
        {"node-elsewhere", "evictor"},
    ),
    "CAST AI's machines": (started_by("cast:cluster-id"), {"node-elsewhere"}),
    "an EC2 Fleet's machines": (started_by("aws:ec2:fleet-id"), {"node-elsewhere"}),
    "Cluster API's machines": (
        started_by("sigs.k8s.io/cluster-api-provider-aws/cluster/shop"),
        {"node-elsewhere"},
    ),
    # Who drains.
    "a drainer that nobody knows": (allowed("example/node-cycler:3", EVICTING), {"evictor"}),
    "a drainer by the clock": (
        allowed("bitnami/kubectl:1.33", EVICTING, kind="cronjobs"),
        {"evictor"},
    ),
    "a drainer of Kafka's namespace alone": (
        allowed("example/cycler:3", EVICTING, within="shop-kafka"),
        {"evictor"},
    ),
    "a drainer of another namespace": (allowed("example/cycler:3", EVICTING, within="web"), set()),
    "who deletes nodes": (
        allowed("example/reaper:1", {"resources": ["nodes"], "verbs": ["get", "delete"]}),
        {"evictor"},
    ),
    "who reads pods": (
        allowed("example/viewer:1", {"resources": ["pods", "nodes"], "verbs": ["get", "list"]}),
        set(),
    ),
    "who may do anything": (
        allowed("quay.io/argoproj/argocd:v3", {"resources": ["*"], "verbs": ["*"]}),
        set(),
    ),
    "two termination handlers": (
        lambda w: w.add("daemonsets", workload("imds", "kube-system", NTH)),
        {"nth-several", "nth-mode", "nth-timeout"},
    ),
}
EKS: dict[str, tuple[Callable[[], World], set[str]]] = {
    "degraded": (of_eks(status="DEGRADED", health={"issues": [NO_ROOM]}), {"managed-degraded"}),
    "active": (of_eks(status="ACTIVE", health={"issues": []}), set()),
    "deleted": (of_eks(status="DELETING"), {"managed-deleting"}),
    "half deleted": (of_eks(status="DELETE_FAILED"), {"managed-degraded"}),
    "spot": (of_eks(capacityType="SPOT"), {"group-spot"}),
    "on demand, of its own template": (
        of_eks(capacityType="ON_DEMAND", launchTemplate={"id": "lt-1", "version": "3"}),
        set(),
    ),
    "half of two at once": (of_eks(updateConfig={"maxUnavailablePercentage": 50}), set()),
    "two at once": (of_eks(updateConfig={"maxUnavailable": 2}), {"managed-update"}),
}
PROVISIONED: dict[str, tuple[Callable[[], World], Change | None, set[str]]] = {
    "a static pool": (karpenters(disruption=UNDERUTILIZED, replicas=6), None, set()),
    "a static pool that shrinks": (karpenters(replicas=4), None, {"karpenter-shrinks"}),
    "a static pool without room": (
        karpenters(replicas=6, limits={"nodes": "6"}),
        pool_status(nodes=6),
        {"karpenter-stuck"},
    ),
    "nodes that say do-not-disrupt": (
        karpenters(disruption=UNDERUTILIZED),
        nodes_noted("karpenter.sh/do-not-disrupt"),
        set(),
    ),
    "a pool that is deleted": (karpenters(), of_pool(deleted), {"karpenter-deleted"}),
    "a pool that is not ready": (
        karpenters(),
        pool_status(conditions=[{"type": "Ready", "status": "False", "message": "no class"}]),
        {"karpenter-stuck"},
    ),
    "a pool that is ready": (
        karpenters(),
        pool_status(conditions=[{"type": "Ready", "status": "True"}]),
        set(),
    ),
    "a pool at its limit": (
        karpenters(limits={"cpu": "48"}),
        pool_status(resources={"cpu": "48", "nodes": "6"}),
        {"karpenter-stuck"},
    ),
    "a pool that is stopped by its limit": (
        karpenters(limits={"cpu": "0"}),
        None,
        {"karpenter-stuck"},
    ),
    "a pool without room for one more": (
        karpenters(limits={"memory": "100Gi"}),
        pool_status(resources={"memory": "96Gi", "nodes": "6"}),
        {"karpenter-stuck"},
    ),
    "a pool of all zones but one": (
        karpenters(template=requiring(ZONE, "NotIn", ["eu-north-1b"])),
        None,
        {"karpenter-moved"},
    ),
    "a budget of one by night": (
        karpenters(disruption={"budgets": [{"nodes": "1", "schedule": "@daily"}]}),
        None,
        {"karpenter-drift"},
    ),
    "a pool with room": (
        karpenters(limits={"cpu": "1000", "memory": "4000Gi"}),
        pool_status(resources={"cpu": "48000m", "memory": "192Gi", "nodes": "6"}),
        set(),
    ),
    "a pool that may start spot": (karpenters(**SPOT_TOO), None, {"karpenter-spot"}),
    "a pool that may start spot, for pods that ask for none": (
        karpenters(**SPOT_TOO),
        lambda w: (
            nodes_labelled(**{CAPACITY_TYPE: "on-demand"})(w),
            every(w, "pods", nodeSelector={CAPACITY_TYPE: "on-demand"}),
        ),
        set(),
    ),
    "a pool on demand": (
        karpenters(template=requiring(CAPACITY_TYPE, "In", ["on-demand", "reserved"])),
        None,
        set(),
    ),
    "a pool of anything but spot": (
        karpenters(template=requiring(CAPACITY_TYPE, "NotIn", ["spot"])),
        None,
        set(),
    ),
    "a pool that lost a zone": (
        karpenters(template=requiring(ZONE, "In", ZONES[:2])),
        None,
        {"karpenter-moved"},
    ),
    "a pool of these zones": (karpenters(template=requiring(ZONE, "In", ZONES)), None, set()),
    "drift without a budget": (
        karpenters(disruption={"budgets": [{"nodes": "0", "reasons": ["Underutilized"]}]}),
        None,
        {"karpenter-drift"},
    ),
    "drift by halves": (
        karpenters(disruption={"budgets": [{"nodes": "50%"}]}),
        None,
        {"karpenter-drift"},
    ),
    "one at a time": (karpenters(disruption={"budgets": [{"nodes": "1"}]}), None, set()),
    "a tenth of six": (karpenters(), None, set()),
    "a tenth of sixty": (karpenters(), pool_status(resources={"nodes": "60"}), {"karpenter-drift"}),
    "a controller that hears nothing": (
        karpenters(),
        controller(INTERRUPTION_QUEUE=""),
        {"karpenter-deaf"},
    ),
    "a controller of old, told by a ConfigMap": (
        karpenters(),
        controller(CLUSTER_NAME="", INTERRUPTION_QUEUE=""),
        {"unread"},
    ),
    "no controller": (karpenters(), without_controller, {"karpenter-missing"}),
    "a controller that is down": (karpenters(), controller(down=True), {"karpenter-missing"}),
    "Auto Mode with two minutes for a drain": (
        lambda: provisioned(bare(), auto=True, template={"terminationGracePeriod": "2m"}),
        None,
        {"auto-mode", "karpenter-grace"},
    ),
    # Cluster Autoscaler.
    "Cluster Autoscaler and pods of a StatefulSet": (
        zookeeper_era,
        lambda w: w.add(
            "deployments",
            workload("scaler", "ops", "registry.k8s.io/autoscaling/cluster-autoscaler:v1.29.0"),
        ),
        {"zookeeper", "strimzi-before-v1", "autoscaler"},
    ),
    "Cluster Autoscaler kept off by its nodes": (
        lambda: autoscaled(TAKES_CUSTOM),
        nodes_noted("cluster-autoscaler.kubernetes.io/scale-down-disabled"),
        set(),
    ),
    "Cluster Autoscaler that only adds": (
        lambda: autoscaled("--scale-down-enabled=false", TAKES_CUSTOM),
        None,
        set(),
    ),
}


@every_case(("change", "said"), GROUPS.values(), ids=GROUPS.keys())
def test_what_ends_a_broker_is_found_of_groups_and_machines(change: Change, said: set[str]) -> None:
    world = own()
    change(world)
    assert checks(world) == said


@every_case(("build", "said"), EKS.values(), ids=EKS.keys())
def test_the_state_of_managed_groups_is_found(build: Callable[[], World], said: set[str]) -> None:
    assert checks(build()) == {"managed-node-group", *said}


@every_case(("build", "change", "said"), PROVISIONED.values(), ids=PROVISIONED.keys())
def test_of_provisioners_what_they_do_by_themselves_is_found(
    build: Callable[[], World], change: Change | None, said: set[str]
) -> None:
    world = build()
    if change is not None:
        change(world)
    assert checks(world) == said


def test_what_eks_says_of_a_group_is_in_the_finding() -> None:
    world = of_eks(status="DEGRADED", health={"issues": [NO_ROOM]})()
    found = surveyed(world)[0]
    assert "InsufficientFreeAddresses: subnet-1 is full" in found.evidence


def test_a_share_that_is_one_node_today_is_not_called_no_budget() -> None:
    (found,) = surveyed(karpenters(disruption=UNDERUTILIZED)())
    assert "a budget of 10% is one node at a time while the pool is small" in found.evidence


CPU = {"TargetValue": 50.0, "PredefinedMetricSpecification": {}}


def scaling_policy(**said: Any) -> Callable[[World], object]:
    """Give the first group a scaling policy."""
    given = {"PolicyName": "cpu", "Enabled": True, **said}
    return lambda world: world.policies.update({min(world.groups): [given]})


def scheduled_action(**said: int) -> Callable[[World], object]:
    """Give the first group a scheduled action."""
    given = {"ScheduledActionName": "night", "Recurrence": "0 20 * * *", **said}
    return lambda world: world.actions.update({min(world.groups): [given]})


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
    scaling_policy(PolicyType="TargetTrackingScaling", TargetTrackingConfiguration=CPU)(world)
    group_of(Instances=[{"InstanceId": "i-x", "ProtectedFromScaleIn": True}])(world)


ENDS: dict[str, tuple[Callable[[World], object], set[str]]] = {
    "a target of processor time": (
        scaling_policy(PolicyType="TargetTrackingScaling", TargetTrackingConfiguration=CPU),
        {"group-scales-in"},
    ),
    "a target that only raises": (
        scaling_policy(
            PolicyType="TargetTrackingScaling",
            TargetTrackingConfiguration={**CPU, "DisableScaleIn": True},
        ),
        set(),
    ),
    "steps down": (
        scaling_policy(
            PolicyType="StepScaling",
            AdjustmentType="ChangeInCapacity",
            StepAdjustments=[{"ScalingAdjustment": 1}, {"ScalingAdjustment": -1}],
        ),
        {"group-scales-in"},
    ),
    "steps up": (
        scaling_policy(
            PolicyType="StepScaling",
            AdjustmentType="ChangeInCapacity",
            StepAdjustments=[{"ScalingAdjustment": 1}],
        ),
        set(),
    ),
    "an exact size": (
        scaling_policy(AdjustmentType="ExactCapacity", ScalingAdjustment=1),
        {"group-scales-in"},
    ),
    "a policy that is off": (
        scaling_policy(AdjustmentType="ExactCapacity", ScalingAdjustment=1, Enabled=False),
        set(),
    ),
    "a forecast": (scaling_policy(PolicyType="PredictiveScaling"), set()),
    "instances protected from scale-in": (protected, set()),
    "nights without nodes": (scheduled_action(MinSize=0, DesiredCapacity=0), {"group-scales-in"}),
    "nights with fewer at most": (scheduled_action(MaxSize=0), {"group-scales-in"}),
    "nights with as many": (scheduled_action(MinSize=1, DesiredCapacity=1, MaxSize=2), set()),
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
def test_who_ends_nodes_or_pods_is_found(change: Callable[[World], object], said: set[str]) -> None:
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
