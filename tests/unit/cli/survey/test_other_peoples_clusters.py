"""Clusters as other people build them: what an expert would say of each, and not a word more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cli.survey import command
from core.survey.finding import Finding, Weight
from core.survey.judge import findings
from tests.unit.cli.survey import worlds
from tests.unit.cli.survey.worlds import World, bare, managed, own_groups, provisioned, workload

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def surveyed(world: World) -> list[Finding]:
    return findings(command.read(world, world.client, None))


def checks(world: World) -> set[str]:
    return {each.check for each in surveyed(world)}


def kafka_spec(world: World) -> dict[str, Any]:
    spec: dict[str, Any] = world.only("kafkas")["spec"]["kafka"]
    return spec


def olm() -> World:
    """Strimzi by OLM for every namespace, in a namespace of its own, by digest."""
    world = own_groups(bare())
    operator = world.kinds["deployments"][0]
    template, (container,) = (
        operator["spec"]["template"],
        operator["spec"]["template"]["spec"]["containers"],
    )
    container["image"] = "registry.redhat.io/amq-streams/strimzi-rhel9-operator@sha256:0a"
    field = {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}}
    container["env"] = [{"name": "STRIMZI_NAMESPACE", "valueFrom": field}]
    template["metadata"] = {"annotations": {"olm.targetNamespaces": ""}}
    return world


def olm_elsewhere() -> World:
    world = olm()
    template = world.kinds["deployments"][0]["spec"]["template"]
    template["metadata"]["annotations"]["olm.targetNamespaces"] = "ops,other"
    return world


def own_namespace_operator() -> World:
    """Strimzi as its YAML files install it: it watches where it stands, which is elsewhere."""
    world = own_groups(bare())
    field = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    world.kinds["deployments"][0] = workload(
        "strimzi-cluster-operator", "ops", "strimzi/operator:1.2.0", STRIMZI_NAMESPACE=field
    )
    return world


def terraform_aws_eks() -> World:
    """One managed node group over three zones, gp2 of the cluster's default class, two replicas."""
    world = managed(bare(), zones=("all",))
    world.kinds["storageclasses"] = [
        worlds.storage_class("fast", provisioner="kubernetes.io/aws-ebs", allowVolumeExpansion=None)
    ]
    for each in world.kinds["persistentvolumes"]:
        each["spec"]["persistentVolumeReclaimPolicy"] = "Delete"
    return world


def combined() -> World:
    world = bare()
    for kind in ("kafkanodepools", "pods", "nodes", "persistentvolumes", "persistentvolumeclaims"):
        world.kinds[kind] = []
    world.instances = {}
    worlds.pool(world, "orders", "shop-kafka", "dual", roles=("broker", "controller"))
    world.only("poddisruptionbudgets")["spec"]["minAvailable"] = 2
    world = own_groups(world)
    world.only("poddisruptionbudgets")["spec"]["minAvailable"] = 3
    return world


def zookeeper_era() -> World:
    """Strimzi 0.3x: v1beta2, no node pools, no roles on pods, ZooKeeper's pods beside Kafka's."""
    world = bare(version="v1beta2")
    world.kinds["kafkanodepools"] = []
    world.kinds["pods"] = world.kinds["pods"][:3]
    for each in world.kinds["pods"]:
        labels = each["metadata"]["labels"]
        each["metadata"]["labels"] = {k: v for k, v in labels.items() if "role" not in k}
        each["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    keeper = worlds.kafka_pod("orders-zookeeper-0", "orders", "shop-kafka", ())
    keeper["metadata"]["labels"]["strimzi.io/name"] = "orders-zookeeper"
    world.add("pods", keeper)
    kafka_spec(world)["replicas"] = 3
    world.only("kafkas")["spec"]["zookeeper"] = {"replicas": 3}
    world.only("poddisruptionbudgets")["spec"] = {
        "selector": {"matchLabels": {"strimzi.io/name": "orders-kafka"}},
        "maxUnavailable": 0,
    }
    world = own_groups(world)
    del world.only("poddisruptionbudgets")["spec"]["minAvailable"]
    return world


def local_nvme() -> World:
    world = own_groups(bare())
    for each, held in zip(world.kinds["persistentvolumes"], world.kinds["nodes"], strict=True):
        name = held["metadata"]["name"]
        term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
        each["spec"] |= {
            "csi": None,
            "local": {"path": "/mnt/nvme"},
            "persistentVolumeReclaimPolicy": "Delete",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
        }
    world.kinds["storageclasses"] = [
        worlds.storage_class("fast", provisioner="kubernetes.io/no-provisioner")
        | {"allowVolumeExpansion": False}
    ]
    return world


def karpenter_before_v1() -> World:
    world = bare()
    world.versions["karpenter.sh"] = "v1beta1"
    provisioned(
        world, disruption={"consolidationPolicy": "WhenUnderutilized", "expireAfter": "Never"}
    )
    del world.only("nodepools")["spec"]["template"]["spec"]["expireAfter"]
    return world


def karpenter_with_reasons() -> World:
    """Drift only, one at a time: a budget of 0 for what is empty or underutilized."""
    never = {"nodes": "0", "reasons": ["Empty", "Underutilized"]}
    budgets = [never, {"nodes": "1", "reasons": ["Drifted"]}]
    return provisioned(
        bare(),
        disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": budgets},
    )


def karpenter_weekend() -> World:
    """A budget that holds at night does not hold by day."""
    night = {"nodes": "0", "schedule": "0 22 * * *", "duration": "8h"}
    return provisioned(
        bare(),
        disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": [night]},
    )


def autoscaled(*args: str, safe: str | None = None) -> World:
    world = own_groups(bare())
    image = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0"
    world.add(
        "deployments", workload("scaler", "kube-system", image, "./cluster-autoscaler", *args)
    )
    for each in world.kinds["pods"]:
        each["metadata"]["annotations"] = {SAFE: safe} if safe else {}
    return world


def spot() -> World:
    world = own_groups(bare())
    for each in world.instances.values():
        each["InstanceLifecycle"] = "spot"
    return world


def two_kafkas() -> World:
    """A second Kafka of the same name elsewhere: open to all, its grace Kubernetes' own."""
    world = bare()
    world.add("kafkas", worlds.kafka("orders", "lab", listeners=[{"name": "plain", "port": 9092}]))
    worlds.pool(world, "orders", "lab", "mains", roles=("broker",))
    worlds.budget(world, "orders", "lab", minAvailable=2)
    for each in world.kinds["pods"]:
        if each["metadata"]["namespace"] == "lab":
            each["spec"]["terminationGracePeriodSeconds"] = 30
            each["metadata"]["name"] += "-lab"
    return provisioned(world)


def argued_handler() -> World:
    """Settings as arguments, as one's own manifests may have them."""
    world = own_groups(bare())
    world.kinds["deployments"] = [
        each for each in world.kinds["deployments"] if each["metadata"]["name"] != "nth"
    ]
    image = "mirror.example/aws-node-termination-handler:v1.25.6"
    flags = ("--enable-sqs-termination-draining=true", "--check-tag-before-draining=false")
    flags = (*flags, "--node-termination-grace-period", "900", f"--queue-url={worlds.QUEUE_URL}")
    world.add("deployments", workload("nth", "ops", image, *flags))
    return world


def imds_beside_managed_groups() -> World:
    world = managed(bare())
    image = "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.6"
    world.add("daemonsets", workload("nth", "kube-system", image))
    return world


def karpenter_that_never_consolidates() -> World:
    return provisioned(
        bare(),
        disruption={
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": "Never",
        },
    )


def windows_beside() -> World:
    """NTH's chart for two operating systems: a DaemonSet each."""
    world = own_groups(bare())
    image = "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.6-windows"
    other = world.add("daemonsets", workload("nth-win", "ops", image))
    other["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/os": "windows"}
    return world


def mirrored_operator() -> World:
    world = own_groups(bare())
    (container,) = world.kinds["deployments"][0]["spec"]["template"]["spec"]["containers"]
    container["image"] = "registry.example/platform/strimzi-kafka-operator:1.2.0-hardened"
    return world


def changed(build: Callable[[], World], change: Callable[[World], object]) -> Callable[[], World]:
    def made() -> World:
        world = build()
        change(world)
        return world

    return made


def own() -> World:
    return own_groups(bare())


def every(world: World, kind: str, **spec: Any) -> None:
    for each in world.kinds[kind]:
        each["spec"].update(spec)


def old_hook(world: World) -> None:
    """NTH's README: 300 s, then CONTINUE, and a queue that forgets as soon."""
    for name, item in world.groups.items():
        del item["InstanceLifecyclePolicy"]
        world.hooks[name] = [worlds.hook(HeartbeatTimeout=300, DefaultResult="CONTINUE")]
    world.kept_seconds = 300


def webhook_gone(world: World) -> None:
    world.kinds["services"] = []
    world.kinds["deployments"] = [
        each for each in world.kinds["deployments"] if "cleaner" not in str(each)
    ]
    world.only("poddisruptionbudgets")["spec"]["minAvailable"] = 5


def bitnami(world: World) -> None:
    world.add("statefulsets", workload("kafka", "legacy", "docker.io/bitnami/kafka:3.7"))
    world.add("statefulsets", workload("ui", "legacy", "provectuslabs/kafka-ui:v0.7"))
    world.add("statefulsets", workload("exporter", "legacy", "danielqsj/kafka-exporter"))
    world.add("kafkaclusters", {"metadata": worlds.meta("koper", "legacy")})


def said_by_strimzi(world: World, kind: str) -> None:
    said = {"type": kind, "status": "True", "message": "the pool has 2 nodes"}
    world.only("kafkas")["status"] = {"conditions": [said]}


def bound(world: World) -> None:
    """A TargetGroupBinding made after the pods."""
    worlds.bind(world, "aws-load-balancer-controller:v2.8.1", "shop-kafka", "orders")


HEALTHY: dict[str, Callable[[], World]] = {
    "groups of one's own, termination handler, Drain Cleaner that lets the budget answer": own,
    "Strimzi by OLM for every namespace": olm,
    "settings as arguments": argued_handler,
    "a warning of Strimzi's": changed(own, lambda w: said_by_strimzi(w, "Warning")),
    "Strimzi from a mirror": mirrored_operator,
    "a termination handler for Windows beside it": windows_beside,
    "Karpenter that never consolidates": karpenter_that_never_consolidates,
    "Karpenter alone, tamed": lambda: provisioned(bare()),
    "Karpenter before v1, tamed": changed(
        karpenter_before_v1,
        lambda w: w.only("nodepools")["spec"]["disruption"].update(consolidationPolicy="WhenEmpty"),
    ),
    "Karpenter with budgets by reason": karpenter_with_reasons,
    "v1beta2 beside v1": lambda: own_groups(bare(version="v1beta2")),
    "Cluster Autoscaler as it comes": autoscaled,
    "Cluster Autoscaler kept off": lambda: autoscaled(
        "--skip-nodes-with-custom-controller-pods=false", safe="false"
    ),
    "nodes by OIDC listeners": changed(
        own,
        lambda w: kafka_spec(w).update(
            listeners=[{"name": "ext", "authentication": {"type": "custom"}}]
        ),
    ),
    "rules that filter by prefix": changed(
        own, lambda w: w.rules.__setitem__(0, {"source": [{"prefix": "aws."}]})
    ),
}
SAID: dict[str, tuple[Callable[[], World], set[str]]] = {
    "terraform-aws-eks's defaults": (
        terraform_aws_eks,
        {"group-zones", "managed-node-group", "reclaim", "expansion", "gp2"},
    ),
    "managed node groups, one per zone": (lambda: managed(bare()), {"managed-node-group"}),
    "managed node groups that update by halves": (
        lambda: managed(bare(), updateConfig={"maxUnavailablePercentage": 100}),
        {"managed-node-group", "managed-update"},
    ),
    "a daemon that managed node groups do not need": (
        imds_beside_managed_groups,
        {"managed-node-group", "cleaner-denies"},
    ),
    "Karpenter as it comes": (
        lambda: provisioned(
            bare(),
            template={"expireAfter": "720h"},
            disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"},
        ),
        {"karpenter-expiry", "karpenter-consolidation"},
    ),
    "Karpenter before v1 as it comes": (karpenter_before_v1, {"karpenter-consolidation"}),
    "Karpenter with a budget for the night": (karpenter_weekend, {"karpenter-consolidation"}),
    "Auto Mode": (
        lambda: provisioned(
            bare(),
            auto=True,
            template={"expireAfter": "336h", "terminationGracePeriod": "24h0m0s"},
            disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"},
        ),
        {"auto-mode", "karpenter-consolidation"},
    ),
    "NTH's README": (changed(own, old_hook), {"hook-default", "hook-heartbeat", "nth-queue"}),
    "no rack": (changed(own, lambda w: kafka_spec(w).pop("rack")), {"rack"}),
    "disks of the nodes": (local_nvme, {"local-volume"}),
    "an operator by OLM for others": (olm_elsewhere, {"operator-missing"}),
    "an operator of its own namespace": (own_namespace_operator, {"operator-missing"}),
    "combined roles": (combined, {"combined"}),
    "ZooKeeper": (zookeeper_era, {"zookeeper"}),
    "a budget of a share": (
        changed(
            lambda: provisioned(bare()),
            lambda w: w.only("poddisruptionbudgets")["spec"].update(minAvailable="50%"),
        ),
        set(),
    ),
    "a budget of a share and no cleaner": (
        changed(
            lambda: provisioned(bare()),
            lambda w: (
                w.only("poddisruptionbudgets")["spec"].update(minAvailable="50%"),
                webhook_gone(w),
                w.only("poddisruptionbudgets")["spec"].update(minAvailable="50%"),
            ),
        ),
        {"webhook-dead", "budget-blocks"},
    ),
    "half of the pods at once": (
        changed(
            lambda: provisioned(bare()),
            lambda w: w.only("poddisruptionbudgets")["spec"].update(minAvailable=3),
        ),
        {"budget-loose"},
    ),
    "Drain Cleaner that denies beside NTH": (
        changed(
            own,
            lambda w: [
                c.update(env=[])
                for d in w.kinds["deployments"]
                for c in d["spec"]["template"]["spec"]["containers"]
                if "cleaner" in c["image"]
            ],
        ),
        {"cleaner-denies"},
    ),
    "Drain Cleaner uninstalled, its webhook left": (
        changed(own, webhook_gone),
        {"webhook-dead"},
    ),
    "Cluster Autoscaler that takes custom kinds": (
        lambda: autoscaled("--skip-nodes-with-custom-controller-pods=false"),
        {"autoscaler"},
    ),
    "brokers that say they are safe to evict": (
        lambda: autoscaled(safe="true"),
        {"autoscaler"},
    ),
    "spot": (spot, {"spot"}),
    "two Kafkas of one name": (two_kafkas, {"listener", "grace"}),
    "another Kafka beside it": (changed(own, bitnami), {"not-strimzi"}),
    "a binding after the pods": (changed(own, bound), {"gate-missing", "lbc-backoff"}),
    "no EventBridge rule": (changed(own, lambda w: w.rules.clear()), {"nth-deaf"}),
    "a rule for spot alone": (
        changed(own, lambda w: w.rules.__setitem__(0, {"source": ["aws.ec2"]})),
        {"nth-deaf"},
    ),
    "Strimzi says why": (
        changed(own, lambda w: said_by_strimzi(w, "NotReady")),
        {"not-running"},
    ),
    "a broker that does not come back": (
        changed(
            own, lambda w: w.kinds["pods"][0]["status"]["conditions"][0].update(status="False")
        ),
        {"not-running"},
    ),
    "no volumes": (
        changed(own, lambda w: every(w, "pods", volumes=[{"name": "d", "emptyDir": {}}])),
        {"ephemeral"},
    ),
    "EFS": (
        changed(own, lambda w: every(w, "persistentvolumes", csi={"driver": "efs.csi.aws.com"})),
        {"network-file-system"},
    ),
}


@pytest.mark.parametrize("build", HEALTHY.values(), ids=HEALTHY.keys())
def test_of_a_healthy_cluster_nothing_is_said(build: Callable[[], World]) -> None:
    assert surveyed(build()) == []


@pytest.mark.parametrize(("build", "said"), SAID.values(), ids=SAID.keys())
def test_an_expert_would_say_the_same(build: Callable[[], World], said: set[str]) -> None:
    assert checks(build()) == said


def test_what_is_found_of_two_kafkas_names_the_one_it_is_of() -> None:
    found = surveyed(two_kafkas())
    assert {each.subject for each in found} == {"Kafka lab/orders"}


@pytest.mark.parametrize(
    "kind",
    ["pods", "nodes", "deployments", "statefulsets", "kafkatopics", "storageclasses", "kafkas"],
)
def test_what_may_not_be_listed_is_unknown_with_the_reason(kind: str) -> None:
    world = own()
    world.refused = {kind}
    found = surveyed(world)
    unread = [each for each in found if each.weight is Weight.UNKNOWN]
    assert unread
    assert all("403" in each.evidence for each in unread)
    # Nothing is made of what could not be read.
    assert set(found) == set(unread)


def test_a_setting_from_another_object_is_not_guessed() -> None:
    world = own()
    (container,) = world.kinds["deployments"][-1]["spec"]["template"]["spec"]["containers"]
    container["env"] += [
        {"name": name, "value": "-1"} for name in ("POD_TERMINATION_GRACE_PERIOD", "MANAGED_TAG")
    ]
    container["envFrom"] = [{"configMapRef": {"name": "x"}}]
    (found, *_) = surveyed(world)
    assert found.weight is Weight.UNKNOWN
    assert "HEARTBEAT_INTERVAL" in found.evidence


def test_nodes_of_another_account_are_not_taken_for_nodes_without_a_group() -> None:
    world = own()
    world.instances, world.member_of = {}, {}
    found = surveyed(world)
    assert {each.weight for each in found} == {Weight.UNKNOWN}
    assert "another account" in found[0].evidence
