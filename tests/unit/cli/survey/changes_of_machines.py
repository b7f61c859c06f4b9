"""Changes of machines below a healthy Kafka: groups, instances, pools, and who may drain them."""

import copy
from collections.abc import Callable, Iterable
from typing import Any

from tests.unit.cli.survey.machines import karpenter, managed, provisioned
from tests.unit.cli.survey.manifests import Item, meta, workload
from tests.unit.cli.survey.platforms import each_group
from tests.unit.cli.survey.worlds import Change, World, at, bare

DELETED = "2026-11-01T00:00:00Z"
CAPACITY_TYPE, ZONE = "karpenter.sh/capacity-type", "topology.kubernetes.io/zone"
UNDERUTILIZED = {"consolidationPolicy": "WhenEmptyOrUnderutilized"}
TRACKING = {"PolicyName": "cpu", "PolicyType": "TargetTrackingScaling"}
EVICTING = {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}


def karpenters(**spec: Any) -> Callable[[], World]:
    return lambda: provisioned(bare(), **copy.deepcopy(spec))


def of_eks(**said: Any) -> Callable[[], World]:
    return lambda: managed(bare(), **copy.deepcopy(said))


def suspended(*processes: str) -> Change:
    given = [{"ProcessName": each} for each in processes]
    return each_group(SuspendedProcesses=given)


def policy(world: World) -> None:
    world.policies[min(world.groups)] = [{**TRACKING, "TargetTrackingConfiguration": {}}]


def action(world: World) -> None:
    world.actions[min(world.groups)] = [{"ScheduledActionName": "night", "DesiredCapacity": 0}]


def instance(**said: Any) -> Change:
    return at("instances.first", **said)


def checked(**said: str) -> Change:
    given = {key: {"Status": status} for key, status in said.items()}
    return lambda world: world.impaired.update({min(world.instances): given})


def started_by(*tags: str) -> Change:
    """Take the groups away: somebody else has started the machines, and tagged them so."""

    def made(world: World) -> None:
        world.member_of, world.groups = {}, {}
        for each in world.instances.values():
            each["Tags"] = [{"Key": key, "Value": "x"} for key in tags]
        world.kinds["deployments"] = [
            each for each in world.kinds["deployments"] if each["metadata"]["name"] != "nth"
        ]

    return made


def of_pool(change: Callable[[Item], object]) -> Change:
    return lambda world: change(world.only("nodepools"))


def pool_status(**status: Any) -> Change:
    return of_pool(lambda item: item.update(status=status))


def deleted(item: Item) -> None:
    item["metadata"]["deletionTimestamp"] = DELETED


def requiring(key: str, operator: str, values: Iterable[str]) -> Item:
    return {"requirements": [{"key": key, "operator": operator, "values": list(values)}]}


def nodes_noted(key: str) -> Change:
    return at("nodes.*.metadata.annotations", {key: "true"})


def nodes_labelled(**labels: str) -> Change:
    return at("nodes.*.metadata.labels", **labels)


def controller(*, down: bool = False, **env: str) -> Change:
    """Exchange Karpenter's controller."""

    def made(world: World) -> None:
        without_controller(world)
        item = world.add("deployments", karpenter(**env))
        if down:
            item["status"] = {"replicas": 2, "unavailableReplicas": 2}

    return made


def without_controller(world: World) -> None:
    world.kinds["deployments"] = [
        each for each in world.kinds["deployments"] if each["metadata"]["name"] != "karpenter"
    ]


def allowed(image: str, rule: Item, *, kind: str = "deployments", within: str = "") -> Change:
    """Run a program whose account has a role, everywhere or in one namespace."""

    def made(world: World) -> None:
        item = workload("it", "tools", image)
        item["spec"]["template"]["spec"]["serviceAccountName"] = "cycler"
        if kind == "cronjobs":
            item["spec"] = {"jobTemplate": {"spec": item["spec"]}}
        world.add(kind, item)
        world.add("roles" if within else "clusterroles", {"metadata": meta("it"), "rules": [rule]})
        if within:
            world.only("roles")["metadata"]["namespace"] = within
        world.add(
            "rolebindings" if within else "clusterrolebindings",
            {
                "metadata": meta("it", within or None),
                "roleRef": {"kind": "Role" if within else "ClusterRole", "name": "it"},
                "subjects": [{"kind": "ServiceAccount", "name": "cycler", "namespace": "tools"}],
            },
        )

    return made
