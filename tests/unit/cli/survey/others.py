"""Clusters as other people build them, and what a survey says of one."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cli.survey import command
from core.checks.finding import Finding
from core.checks.table import findings
from tests.unit.cli.survey import worlds
from tests.unit.cli.survey.around import CLUSTER
from tests.unit.cli.survey.machines import managed, own_groups, provisioned
from tests.unit.cli.survey.manifests import storage_class, workload
from tests.unit.cli.survey.worlds import World, bare

T = TypeVar("T")


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


def keepers(
    world: World, *places: tuple[str, str], ready: str = "True", name: str = "orders-zookeeper"
) -> None:
    """Add ZooKeeper's pods on these nodes in these zones, or three, each on a node of its own."""
    usual = [(f"node-of-{name}-{n}", zone) for n, zone in enumerate(worlds.ZONES)]
    for number, (node, zone) in enumerate(places or usual):
        keeper = worlds.kafka_pod(f"{name}-{number}", "orders", "shop-kafka", ())
        keeper["metadata"]["labels"]["strimzi.io/name"] = name
        keeper["spec"]["nodeName"] = node
        keeper["status"]["conditions"][0]["status"] = ready
        world.add("pods", keeper)
        worlds.node(world, node, zone, f"i-{node}")


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


SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def autoscaled(*args: str, safe: str | None = None) -> World:
    world = own_groups(bare())
    image = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0"
    world.add(
        "deployments", workload("scaler", "kube-system", image, "./cluster-autoscaler", *args)
    )
    for each in world.kinds["pods"]:
        each["metadata"]["annotations"] = {SAFE: safe} if safe else {}
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


def bound(world: World) -> None:
    """A TargetGroupBinding made after the pods."""
    worlds.bind(world, "aws-load-balancer-controller:v2.8.1", "shop-kafka", "orders")
