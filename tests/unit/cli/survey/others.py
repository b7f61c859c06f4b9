"""Clusters as other people build them, and what a survey says of one."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cli.survey import command
from core.checks.finding import Finding
from core.checks.table import findings
from tests.unit.cli.survey import machines, worlds
from tests.unit.cli.survey.around import CLUSTER
from tests.unit.cli.survey.machines import managed, own_groups, provisioned
from tests.unit.cli.survey.manifests import meta, storage_class, workload
from tests.unit.cli.survey.worlds import World, bare

T = TypeVar("T")
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def rows(table: Mapping[str, T]) -> list[tuple[T, set[str]]]:
    """Return what each row `NAME => CHECKS` is about, and the checks that a survey finds of it."""
    return [(case, set(row.partition("=>")[2].split())) for row, case in table.items()]


def surveyed(world: World) -> list[Finding]:
    return findings(command.read(world, world.client, None, CLUSTER))


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
        storage_class("fast", provisioner="kubernetes.io/aws-ebs", allowVolumeExpansion=None)
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


def keepers(world: World) -> None:
    """Add three ZooKeeper pods, each on a node of its own."""
    for number, zone in enumerate(worlds.ZONES):
        name = f"orders-zookeeper-{number}"
        keeper = worlds.kafka_pod(name, "orders", "shop-kafka", ())
        keeper["metadata"]["labels"]["strimzi.io/name"] = "orders-zookeeper"
        world.add("pods", keeper)
        worlds.node(world, f"node-of-{name}", zone, f"i-{name}")


def zookeeper_era() -> World:
    """Strimzi 0.3x: v1beta2, no node pools, no roles on pods, ZooKeeper's pods beside Kafka's."""
    world = bare(version="v1beta2")
    world.versions["core.strimzi.io"] = "v1beta2"
    world.kinds["deployments"][0] = workload(
        "strimzi-cluster-operator", "ops", "quay.io/strimzi/operator:0.45.1"
    )
    world.kinds["kafkanodepools"] = []
    world.kinds["pods"] = world.kinds["pods"][:3]
    for each in world.kinds["pods"]:
        labels = each["metadata"]["labels"]
        each["metadata"]["labels"] = {k: v for k, v in labels.items() if "role" not in k}
        each["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    keepers(world)
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
        storage_class("fast", provisioner="kubernetes.io/no-provisioner")
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
        bare(), disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": budgets}
    )


def karpenter_weekend() -> World:
    """A budget that holds at night does not hold by day."""
    night = {"nodes": "0", "schedule": "0 22 * * *", "duration": "8h"}
    return provisioned(
        bare(), disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": [night]}
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
        disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "Never"},
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
        world.hooks[name] = [machines.hook(HeartbeatTimeout=300, DefaultResult="CONTINUE")]
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
    world.add("kafkaclusters", {"metadata": meta("koper", "legacy")})


def said_by_strimzi(world: World, kind: str) -> None:
    said = {"type": kind, "status": "True", "message": "the pool has 2 nodes"}
    world.only("kafkas")["status"] = {"conditions": [said]}


def bound(world: World) -> None:
    """A TargetGroupBinding made after the pods."""
    worlds.bind(world, "aws-load-balancer-controller:v2.8.1", "shop-kafka", "orders")
