"""Machines below a Kafka: what ends them, who replaces them, and what never will."""

from collections.abc import Callable, Iterable
from typing import Any

from core.checks.finding import Weight
from tests.every_case import every_case
from tests.unit.cli.survey.changes import (
    HANDLER,
    added,
    both,
    deleted,
    deployment,
    each_group,
    group_of,
    instance,
    nodes_labelled,
    refreshing,
    without,
)
from tests.unit.cli.survey.changes_of_machines import action, karpenters, of_eks, policy, started_by
from tests.unit.cli.survey.machines import karpenter, provisioned
from tests.unit.cli.survey.manifests import Item, meta, workload
from tests.unit.cli.survey.others import (
    autoscaled,
    bound,
    changed,
    checks,
    every,
    own,
    rows,
    surveyed,
    zookeeper_era,
)
from tests.unit.cli.survey.worlds import ZONES, Change, World, at, bare, more

IN_SERVICE = {"InstanceId": "i-x", "LifecycleState": "InService", "HealthStatus": "Healthy"}
PENDING = {"InstanceId": "i-y", "LifecycleState": "Pending"}
TAKES_CUSTOM = "--skip-nodes-with-custom-controller-pods=false"
OCEAN = "us-docker.pkg.dev/spotit-today/container-labs/ocean-kubernetes-controller:2"
NO_ROOM = {"code": "InsufficientFreeAddresses", "message": "subnet-1 is full"}

CAPACITY_TYPE, ZONE = "karpenter.sh/capacity-type", "topology.kubernetes.io/zone"
UNDERUTILIZED = {"consolidationPolicy": "WhenEmptyOrUnderutilized"}
CPU = {"TargetValue": 50.0, "PredefinedMetricSpecification": {}}
EVICTING = {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}


def suspended(*processes: str) -> Change:
    given = [{"ProcessName": each} for each in processes]
    return each_group(SuspendedProcesses=given)


def checked(**said: str) -> Change:
    given = {key: {"Status": status} for key, status in said.items()}
    return lambda world: world.impaired.update({min(world.instances): given})


def requiring(key: str, operator: str, values: Iterable[str]) -> Item:
    return {"requirements": [{"key": key, "operator": operator, "values": list(values)}]}


def pool_status(**status: Any) -> Change:
    return at("nodepools.0.status", status)


SPOT_TOO = {"template": requiring(CAPACITY_TYPE, "In", ["spot", "on-demand"])}
WITHOUT_KARPENTER = without("karpenter/controller")


def nodes_noted(key: str) -> Change:
    return at("nodes.*.metadata.annotations", {key: "true"})


def controller(**env: str) -> Change:
    """Exchange Karpenter's controller."""
    return both(WITHOUT_KARPENTER, lambda world: world.add("deployments", karpenter(**env)))


def allowed(image: str, rule: Item, *, kind: str = "deployments", within: str = "") -> Change:
    """Run a program whose account has a role, everywhere or in one namespace."""

    item = workload("it", "tools", image)
    item["spec"]["template"]["spec"]["serviceAccountName"] = "cycler"
    if kind == "cronjobs":
        item["spec"] = {"jobTemplate": {"spec": item["spec"]}}
    named = meta("it", within or None)
    prefix, role = ("", "Role") if within else ("cluster", "ClusterRole")
    subject = {"kind": "ServiceAccount", "name": "cycler", "namespace": "tools"}
    binding = {"metadata": named, "roleRef": {"kind": role, "name": "it"}, "subjects": [subject]}
    return both(
        added(kind, item),
        added(f"{prefix}roles", {"metadata": named, "rules": [rule]}),
        added(f"{prefix}rolebindings", binding),
    )


def scaling_policy(**said: Any) -> Change:
    """Give the first group a scaling policy."""
    given = {"PolicyName": "cpu", "Enabled": True, **said}
    return lambda world: world.policies.update({min(world.groups): [given]})


TARGET = scaling_policy(PolicyType="TargetTrackingScaling", TargetTrackingConfiguration=CPU)


def scheduled_action(**said: int) -> Change:
    """Give the first group a scheduled action."""
    given = {"ScheduledActionName": "night", "Recurrence": "0 20 * * *", **said}
    return lambda world: world.actions.update({min(world.groups): [given]})


def condition(kind: str, status: str) -> Change:
    return more("nodes.0.status.conditions", {"type": kind, "status": status})


TAINT = {"key": "kafka", "effect": "NoSchedule"}
TAINTED = at("nodes.0.spec", taints=[TAINT])
GROUPS: dict[str, Change] = {
    "a group that is deleted => group-deleted": group_of(Status="Delete in progress"),
    "VPC Lattice's opinion => group-health": group_of(HealthCheckType="EC2,VPC_LATTICE"),
    "EBS's opinion => group-health": group_of(HealthCheckType="EC2,EBS"),
    "a policy whose process is suspended =>": both(
        suspended("AlarmNotification"), policy),
    "a policy beside another suspended process => group-scales-in": both(
        suspended("ScheduledActions"), policy),
    "an action whose process is suspended =>": both(
        suspended("ScheduledActions"), action),
    "launch before terminate =>": group_of(InstanceMaintenancePolicy={"MinHealthyPercentage": 100}),
    "capacity rebalancing, on demand =>": group_of(CapacityRebalance=True),
    "a warm pool of stopped machines =>": group_of(
        WarmPoolConfiguration={"MinSize": 1, "PoolState": "Stopped"}),
    "no maximum lifetime =>": group_of(MaxInstanceLifetime=0),
    "a refresh that bakes => group-refreshing": refreshing("Baking"),
    "a refresh that is rolled back => group-refreshing": refreshing("RollbackInProgress"),
    "a refresh that failed =>": refreshing("Failed"),
    "no starts => group-suspended": suspended("Launch"),
    "no rebalancing of one zone =>": suspended("AZRebalance"),
    "fewer nodes than it wants => group-short": lambda w: (
        each_group(DesiredCapacity=2, MaxSize=4)(w), group_of(Instances=[IN_SERVICE])(w)),
    "as many as it wants =>": group_of(Instances=[IN_SERVICE]),
    "one that starts =>": group_of(DesiredCapacity=2, MaxSize=4, Instances=[IN_SERVICE, PENDING]),
    # Machines.
    "a host that fails => machine-impaired": checked(SystemStatus="impaired", InstanceStatus="ok"),
    "volumes that stall => machine-impaired": checked(AttachedEbsStatus="impaired"),
    "a machine that starts =>": checked(SystemStatus="initializing"),
    "a machine that EC2 shuts down => machine-ending": instance(State={"Name": "shutting-down"}),
    "a machine that runs =>": instance(State={"Name": "running"}),
    "a capacity block => spot": instance(InstanceLifecycle="capacity-block"),
    "a machine of a reservation that AWS may interrupt => spot": instance(
        InstanceLifecycle="interruptible-capacity-reservation"),
    "machines of nobody => node-alone": started_by(),
    "Spot Ocean's machines => node-elsewhere evictor": lambda w: (
        started_by("spotinst:aws:ec2:group:id")(w), deployment(OCEAN)(w)),
    "CAST AI's machines => node-elsewhere": started_by("cast:cluster-id"),
    "an EC2 Fleet's machines => node-elsewhere": started_by("aws:ec2:fleet-id"),
    "Cluster API's machines => node-elsewhere": started_by(
        "sigs.k8s.io/cluster-api-provider-aws/cluster/shop"),
    # Who drains.
    "a drainer that nobody knows => evictor": allowed("example/node-cycler:3", EVICTING),
    "a drainer by the clock => evictor": allowed("bitnami/kubectl:1.33", EVICTING, kind="cronjobs"),
    "a drainer of Kafka's namespace alone => evictor": allowed(
        "example/cycler:3", EVICTING, within="shop-kafka"),
    "a drainer of another namespace =>": allowed("example/cycler:3", EVICTING, within="web"),
    "who deletes nodes => evictor": allowed(
        "example/reaper:1", {"resources": ["nodes"], "verbs": ["get", "delete"]}),
    "who reads pods =>": allowed(
        "example/viewer:1", {"resources": ["pods", "nodes"], "verbs": ["get", "list"]}),
    "who may do anything =>": allowed(
        "quay.io/argoproj/argocd:v3", {"resources": ["*"], "verbs": ["*"]}),
    "two termination handlers => nth-several nth-mode nth-timeout": lambda w: w.add(
        "daemonsets", workload("imds", "kube-system", HANDLER)),
    "a target of processor time => group-scales-in": TARGET,
    "a target that only raises =>": scaling_policy(PolicyType="TargetTrackingScaling",
        TargetTrackingConfiguration={**CPU, "DisableScaleIn": True}),
    "steps down => group-scales-in": scaling_policy(PolicyType="StepScaling",
        AdjustmentType="ChangeInCapacity",
        StepAdjustments=[{"ScalingAdjustment": 1}, {"ScalingAdjustment": -1}]),
    "steps up =>": scaling_policy(PolicyType="StepScaling", AdjustmentType="ChangeInCapacity",
        StepAdjustments=[{"ScalingAdjustment": 1}]),
    "an exact size => group-scales-in": scaling_policy(
        AdjustmentType="ExactCapacity", ScalingAdjustment=1),
    "a policy that is off =>": scaling_policy(
        AdjustmentType="ExactCapacity", ScalingAdjustment=1, Enabled=False),
    "a forecast =>": scaling_policy(PolicyType="PredictiveScaling"),
    "instances protected from scale-in =>": both(
        TARGET, group_of(Instances=[{"InstanceId": "i-x", "ProtectedFromScaleIn": True}])),
    "nights without nodes => group-scales-in": scheduled_action(MinSize=0, DesiredCapacity=0),
    "nights with fewer at most => group-scales-in": scheduled_action(MaxSize=0),
    "nights with as many =>": scheduled_action(MinSize=1, DesiredCapacity=1, MaxSize=2),
    "a warm pool that takes nodes back => group-warm-pool": group_of(
        WarmPoolConfiguration={"InstanceReusePolicy": {"ReuseOnScaleIn": True}}),
    "a cordoned node => node-leaving": at("nodes.0.spec", unschedulable=True),
    "a node that is deleted => node-leaving": deleted("nodes"),
    "a node that an autoscaler has chosen => node-leaving": at(
        "nodes.0.spec", taints=[{"key": "ToBeDeletedByClusterAutoscaler"}]),
    "a tainted node =>": both(
        TAINTED, at("pods.*.spec", tolerations=[{**TAINT, "operator": "Exists"}])),
    "a node with a taint that its pods do not tolerate => node-unfit": TAINTED,
    "a full disk => node-unwell": condition("DiskPressure", "True"),
    "a sick kernel => node-unwell": condition("KernelReady", "False"),
    "a node as it should be =>": condition("KernelReady", "True"),
    "a condition of somebody's own =>": condition("FrequentKubeletRestart", "False"),
    "brokers without memory of their own => best-effort": at(
        "pods.*.status", qosClass="BestEffort"),
    "brokers with a limit above their request =>": at("pods.*.status", qosClass="Burstable"),
    "a budget that lets what is not ready go => budget-unready": at(
        "poddisruptionbudgets.*.spec", unhealthyPodEvictionPolicy="AlwaysAllow"),
    "a budget that says what is usual =>": at(
        "poddisruptionbudgets.*.spec", unhealthyPodEvictionPolicy="IfHealthyBudget"),
    "a binding to nodes => targets-by-node lbc-backoff": both(
        bound, at("targetgroupbindings.*.spec.targetType", "instance")),
    "the Vertical Pod Autoscaler => evictor": deployment(
        "registry.k8s.io/autoscaling/vpa-updater:1.5.1"),
    "CAST AI => evictor": deployment("us-docker.pkg.dev/castai-hub/library/evictor:0.31"),
}  # fmt: skip
EKS: dict[str, Callable[[], World]] = {
    "degraded => managed-degraded": of_eks(status="DEGRADED", health={"issues": [NO_ROOM]}),
    "active =>": of_eks(status="ACTIVE", health={"issues": []}),
    "deleted => managed-deleting": of_eks(status="DELETING"),
    "half deleted => managed-degraded": of_eks(status="DELETE_FAILED"),
    "spot => group-spot": of_eks(capacityType="SPOT"),
    "on demand, of its own template =>": of_eks(
        capacityType="ON_DEMAND", launchTemplate={"id": "lt-1", "version": "3"}
    ),
    "half of two at once =>": of_eks(updateConfig={"maxUnavailablePercentage": 50}),
    "repaired by EKS => managed-repair": of_eks(nodeRepairConfig={"enabled": True}),
    "updated now => managed-updating": of_eks(status="UPDATING"),
    "below pods that bear a cordon => tolerates-cordon": changed(
        of_eks(), at("pods.*.spec", tolerations=[{"operator": "Exists"}])
    ),
    "two at once => managed-update": of_eks(updateConfig={"maxUnavailable": 2}),
}
PROVISIONED: dict[str, Callable[[], World], Change | None] = {
    "a static pool =>": karpenters(disruption=UNDERUTILIZED, replicas=6),
    "a static pool that shrinks => karpenter-shrinks": karpenters(replicas=4),
    "a static pool without room => karpenter-stuck": changed(
        karpenters(replicas=6, limits={"nodes": "6"}), pool_status(nodes=6)),
    "nodes that say do-not-disrupt =>": changed(
        karpenters(disruption=UNDERUTILIZED), nodes_noted("karpenter.sh/do-not-disrupt")),
    "a pool that is deleted => karpenter-deleted": changed(karpenters(), deleted("nodepools")),
    "a pool that is not ready => karpenter-stuck": changed(karpenters(),
        pool_status(conditions=[{"type": "Ready", "status": "False", "message": "no class"}])),
    "a pool that is ready =>": changed(
        karpenters(), pool_status(conditions=[{"type": "Ready", "status": "True"}])),
    "a pool at its limit => karpenter-stuck": changed(
        karpenters(limits={"cpu": "48"}), pool_status(resources={"cpu": "48", "nodes": "6"})),
    "a pool that is stopped by its limit => karpenter-stuck": karpenters(limits={"cpu": "0"}),
    "a pool without room for one more => karpenter-stuck": changed(
        karpenters(limits={"memory": "100Gi"}),
        pool_status(resources={"memory": "96Gi", "nodes": "6"})),
    "a pool of all zones but one => karpenter-moved": karpenters(
        template=requiring(ZONE, "NotIn", ["eu-north-1b"])),
    "a budget of one by night => karpenter-drift": karpenters(
        disruption={"budgets": [{"nodes": "1", "schedule": "@daily"}]}),
    "a pool with room =>": changed(karpenters(limits={"cpu": "1000", "memory": "4000Gi"}),
        pool_status(resources={"cpu": "48000m", "memory": "192Gi", "nodes": "6"})),
    "a pool that may start spot => karpenter-spot": karpenters(**SPOT_TOO),
    "a pool that may start spot, for pods that ask for none =>": changed(karpenters(**SPOT_TOO),
        lambda w: (nodes_labelled(**{CAPACITY_TYPE: "on-demand"})(w),
            every(w, "pods", nodeSelector={CAPACITY_TYPE: "on-demand"}))),
    "a pool on demand =>": karpenters(
        template=requiring(CAPACITY_TYPE, "In", ["on-demand", "reserved"])),
    "a pool of anything but spot =>": karpenters(
        template=requiring(CAPACITY_TYPE, "NotIn", ["spot"])),
    "a pool that lost a zone => karpenter-moved": karpenters(
        template=requiring(ZONE, "In", ZONES[:2])),
    "a pool of these zones =>": karpenters(template=requiring(ZONE, "In", ZONES)),
    "drift without a budget => karpenter-drift": karpenters(
        disruption={"budgets": [{"nodes": "0", "reasons": ["Underutilized"]}]}),
    "drift by halves => karpenter-drift": karpenters(disruption={"budgets": [{"nodes": "50%"}]}),
    "one at a time =>": karpenters(disruption={"budgets": [{"nodes": "1"}]}),
    "a tenth of six =>": karpenters(),
    "a tenth of sixty => karpenter-drift": changed(
        karpenters(), pool_status(resources={"nodes": "60"})),
    "a controller that hears nothing => karpenter-deaf": changed(
        karpenters(), controller(INTERRUPTION_QUEUE="")),
    "a controller of old, told by a ConfigMap => unread": changed(
        karpenters(), controller(CLUSTER_NAME="", INTERRUPTION_QUEUE="")),
    "no controller => karpenter-missing": changed(karpenters(), WITHOUT_KARPENTER),
    "a controller that is down => karpenter-missing": changed(karpenters(),
        at("deployments.-1.status", {"replicas": 2, "unavailableReplicas": 2})),
    "Auto Mode with two minutes for a drain => auto-mode karpenter-grace": lambda: provisioned(
        bare(), auto=True, template={"terminationGracePeriod": "2m"}),
    "nodes without addresses => subnet-full": changed(
        karpenters(), at("around.subnets.subnet-c", ("eu-north-1c", 0))),
    "Karpenter's mark on a node => node-leaving": changed(karpenters(),
        at("nodes.0.spec", taints=[{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}])),
    "a controller that repairs nodes by itself => karpenter-repair": changed(
        karpenters(), controller(FEATURE_GATES="SpotToSpotConsolidation=false,NodeRepair=true")),
    # Cluster Autoscaler.
    "Cluster Autoscaler and a StatefulSet => zookeeper strimzi-before-v1 autoscaler": changed(
        zookeeper_era,
        lambda w: w.add("deployments",
            workload("scaler", "ops", "registry.k8s.io/autoscaling/cluster-autoscaler:v1.29.0"))),
    "Cluster Autoscaler kept off by its nodes =>": changed(lambda: autoscaled(TAKES_CUSTOM),
        nodes_noted("cluster-autoscaler.kubernetes.io/scale-down-disabled")),
    "Cluster Autoscaler that only adds =>": lambda: autoscaled(
        "--scale-down-enabled=false", TAKES_CUSTOM),
}  # fmt: skip


@every_case(("change", "said"), rows(GROUPS), ids=GROUPS)
def test_what_ends_a_broker_is_found_of_groups_and_machines(change: Change, said: set[str]) -> None:
    world = own()
    change(world)
    assert checks(world) == said


@every_case(("build", "said"), rows(EKS), ids=EKS)
def test_the_state_of_managed_groups_is_found(build: Callable[[], World], said: set[str]) -> None:
    assert checks(build()) == {"managed-node-group", *said}


@every_case(("build", "said"), rows(PROVISIONED), ids=PROVISIONED)
def test_what_provisioners_do_is_found(build: Callable[[], World], said: set[str]) -> None:
    assert checks(build()) == said


def test_what_eks_says_of_a_group_is_in_the_finding() -> None:
    world = of_eks(status="DEGRADED", health={"issues": [NO_ROOM]})()
    found = surveyed(world)[0]
    assert "InsufficientFreeAddresses: subnet-1 is full" in found.evidence


def test_a_share_that_is_one_node_today_is_not_called_no_budget() -> None:
    (found,) = surveyed(karpenters(disruption=UNDERUTILIZED)())
    assert "a budget of 10% is one node at a time while the pool is small" in found.evidence


def test_of_many_pages_the_last_is_read_and_the_groups_name_is_in_the_finding() -> None:
    world = own()
    last = max(world.groups)
    world.actions[last] = [{"ScheduledActionName": "weekend", "DesiredCapacity": 0}]
    (found,) = surveyed(world)
    assert (found.weight, found.subject) == (Weight.BROKER, f"Auto Scaling group {last}")
    assert "scheduled action weekend lowers its size, and 1 of its nodes" in found.evidence
