"""Clusters that sleep, move, hide or answer in part: no crash, and no good news of the unseen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from core.checks.finding import Weight
from tests.every_case import every_case
from tests.unit.cli.survey import machines, others, worlds
from tests.unit.cli.survey.machines import managed, provisioned
from tests.unit.cli.survey.manifests import workload
from tests.unit.cli.survey.others import changed, checks, every, kafka_spec, own, surveyed
from tests.unit.cli.survey.worlds import World, bare

FARGATE = "aws:///eu-north-1a/0a1b/fargate-ip-10-0-0-1.eu-north-1.compute.internal"
LONG = "k" * 63


def annotated(world: World, **marks: str) -> None:
    noted = {f"strimzi.io/{key.replace('_', '-')}": value for key, value in marks.items()}
    world.only("kafkas")["metadata"]["annotations"] = noted


def keepers(world: World) -> None:
    others.keepers(world)
    world.only("kafkas")["spec"]["zookeeper"] = {"replicas": 3}


def asleep(world: World) -> None:
    every(world, "kafkanodepools", replicas=0)
    world.kinds["pods"] = []


def sized(world: World, **sizes: Any) -> None:
    for group in world.groups.values():
        group.update(sizes)


def shared_group(world: World) -> None:
    """Brokers and controllers of one zone in one group of two."""
    world.groups = {f"asg-{zone}": machines.group(f"asg-{zone}", [zone]) for zone in worlds.ZONES}
    sized(world, DesiredCapacity=2, MaxSize=4)
    world.hooks = {name: [machines.hook()] for name in world.groups}
    for each in world.kinds["nodes"]:
        _, zone, instance = each["spec"]["providerID"].rsplit("/", 2)
        world.member_of[instance] = f"asg-{zone}"


def mixed(on_demand_percent: int | None) -> Callable[[World], None]:
    shares = {"OnDemandPercentageAboveBaseCapacity": on_demand_percent}
    given = {} if on_demand_percent is None else shares
    return lambda world: sized(world, MixedInstancesPolicy={"InstancesDistribution": given})


def undescribed(world: World) -> None:
    known = dict(list(world.groups.items())[1:])
    world.describe_auto_scaling_groups = lambda **_: {  # type: ignore[method-assign]
        "AutoScalingGroups": list(known.values())
    }


def without_queue(world: World) -> None:
    (container,) = world.kinds["deployments"][-1]["spec"]["template"]["spec"]["containers"]
    container["env"] = [each for each in container["env"] if each["name"] != "QUEUE_URL"]


def unavailable(position: int) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.kinds["deployments"][position]["status"] = {"replicas": 1, "unavailableReplicas": 1}

    return change


def by_digest(world: World) -> None:
    image = "aws-load-balancer-controller@sha256:0a"
    worlds.bind(world, image, "shop-kafka", "orders")
    gate = {"conditionType": "target-health.elbv2.k8s.aws/boot"}
    every(world, "pods", readinessGates=[gate])


def budget_of(**spec: Any) -> Callable[[World], None]:
    def change(world: World) -> None:
        budget = world.only("poddisruptionbudgets")["spec"]
        budget.pop("minAvailable", None)
        budget.update(spec)

    return change


def labelled(kind: str, **labels: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        for each in world.kinds[kind]:
            each["metadata"]["labels"] = labels

    return change


def other(kind: str, image: str) -> Callable[[World], object]:
    return lambda world: world.add(kind, workload(LONG, "legacy", image))


def status_of(kind: str, status: dict[str, Any]) -> Callable[[World], None]:
    return lambda world: world.kinds[kind][0].update(status=status)


def racks(key: str, of_nodes: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        kafka_spec(world)["rack"] = {"topologyKey": key}
        for each, rack in zip(world.kinds["nodes"], of_nodes, strict=True):
            each["metadata"]["labels"][key] = rack

    return change


NOT_READY = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
ODD: dict[str, tuple[Callable[[World], object], set[str]]] = {
    "hibernated": (asleep, {"asleep"}),
    "no pods though some are wanted": (lambda w: w.kinds.update(pods=[]), {"not-running"}),
    "groups of none": (
        lambda w: sized(w, DesiredCapacity=0, MaxSize=0),
        {"group-shrinks", "group-maximum"},
    ),
    "nodes that are not listed": (lambda w: w.kinds["nodes"].pop(), {"node-unseen"}),
    "Fargate": (lambda w: every(w, "nodes", providerID=FARGATE), {"machine-unknown"}),
    "nodes of no provider": (
        lambda w: [each.update(spec={}) for each in w.kinds["nodes"]],
        {"machine-unknown"},
    ),
    "nodes of no provider and no zone": (
        lambda w: (every(w, "nodes", providerID=None), labelled("nodes")(w)),
        {"machine-unknown", "zone-unknown"},
    ),
    "a node that does not answer": (status_of("nodes", NOT_READY), {"node-not-ready"}),
    "a node that says nothing": (status_of("nodes", {}), {"node-not-ready"}),
    "a pod that says nothing": (status_of("pods", {}), {"pod-silent"}),
    "a pod on its way out": (
        lambda w: w.kinds["pods"][0]["metadata"].update(deletionTimestamp="2026-11-23T00:00:00Z"),
        {"not-running"},
    ),
    "half spot": (mixed(50), {"group-spot"}),
    "mixed types, all on demand": (mixed(100), set()),
    "mixed types, nothing said of spot": (mixed(None), set()),
    "node pools that share a group": (shared_group, set()),
    "groups over three zones": (
        lambda w: sized(w, AvailabilityZones=list(worlds.ZONES)),
        {"group-zones"},
    ),
    "groups without tags": (lambda w: [g.pop("Tags") for g in w.groups.values()], set()),
    "a group that is not described": (undescribed, {"unread"}),
    "paused, in capitals": (
        lambda w: annotated(w, pause_reconciliation="True"),
        {"paused"},
    ),
    "ZooKeeper's leftovers after the migration": (
        lambda w: (keepers(w), annotated(w, kraft="Enabled")),
        set(),
    ),
    "in the middle of the migration": (
        lambda w: (keepers(w), annotated(w, kraft="migration")),
        {"migrating"},
    ),
    "a migration that is not finalized": (
        lambda w: w.only("kafkas").update(status={"kafkaMetadataState": "KRaftPostMigration"}),
        {"migrating"},
    ),
    "a replication factor in words": (
        lambda w: kafka_spec(w)["config"].update({"default.replication.factor": "three"}),
        {"setting-odd"},
    ),
    "no configuration at all": (
        lambda w: kafka_spec(w).pop("config"),
        {"min-insync", "replication"},
    ),
    "no spec at all": (lambda w: w.only("kafkas").update(spec={}), {"unread"}),
    "no listeners": (lambda w: kafka_spec(w).update(listeners=None), set()),
    "a handler without its queue": (without_queue, {"nth-queueless"}),
    "a handler that does not run": (unavailable(-1), {"nth-down"}),
    "an operator that does not run": (unavailable(0), {"operator-down"}),
    "a balancer's controller by digest": (by_digest, {"lbc-unknown"}),
    "claims that are not listed": (
        lambda w: w.kinds.update(persistentvolumeclaims=[]),
        {"claim-unseen"},
    ),
    "volumes that are not listed": (
        lambda w: w.kinds.update(persistentvolumes=[]),
        {"volume-unseen"},
    ),
    "a class that is not listed": (lambda w: w.kinds.update(storageclasses=[]), {"class-unseen"}),
    "zones by their ids": (
        lambda w: [
            each["metadata"]["labels"].update({"topology.kubernetes.io/zone": f"eun1-az{n % 3}"})
            for n, each in enumerate(w.kinds["nodes"])
        ],
        set(),
    ),
    "volumes of a kind from before there were drivers": (
        lambda w: [
            each["spec"].update(csi=None, portworxVolume={"volumeID": "1"})
            for each in w.kinds["persistentvolumes"]
        ],
        {"volume-driver"},
    ),
    "CephFS from before there were drivers": (
        lambda w: every(w, "persistentvolumes", csi=None, cephfs={"monitors": []}),
        {"network-file-system"},
    ),
    "EBS from before there were drivers": (
        lambda w: every(w, "persistentvolumes", csi=None, awsElasticBlockStore={"volumeID": "v"}),
        set(),
    ),
    "settings that are null": (
        lambda w: kafka_spec(w)["config"].update({"min.insync.replicas": None}),
        {"min-insync"},
    ),
    "a topic that the operator leaves alone": (
        lambda w: w.add(
            "kafkatopics",
            {
                "metadata": {
                    "name": "t",
                    "namespace": "shop-kafka",
                    "labels": {"strimzi.io/cluster": "orders"},
                    "annotations": {"strimzi.io/managed": "false"},
                },
                "spec": {"replicas": 1},
            },
        ),
        set(),
    ),
    "racks that no label names": (
        lambda w: kafka_spec(w).update(rack={"type": "environment-variable"}),
        {"rack-unknown"},
    ),
    "racks by zones' ids": (racks("topology.k8s.aws/zone-id", "012012"), set()),
    "racks that two zones share": (racks("example.com/rack", "001001"), {"rack"}),
    "machines that EC2 does not know": (
        lambda w: w.instances.pop("i-orders-mains-0"),
        {"instance-unseen"},
    ),
    "a pod that the kubelet has evicted": (
        lambda w: w.kinds["pods"][0].update(status={"phase": "Failed", "reason": "Evicted"}),
        {"not-running"},
    ),
    "templates that follow $Latest": (
        lambda w: sized(w, LaunchTemplate={"LaunchTemplateId": "lt", "Version": "$Latest"}),
        {"group-latest"},
    ),
    "clients by nodes' ports": (
        lambda w: w.add(
            "services",
            {
                "metadata": {"name": "out", "namespace": "shop-kafka"},
                "spec": {"type": "NodePort", "selector": {"strimzi.io/name": "orders-kafka"}},
            },
        ),
        {"targets-by-node"},
    ),
    "a budget of no pod": (budget_of(maxUnavailable=0), set()),
    "a budget of a third": (budget_of(maxUnavailable="34%"), set()),
    "a budget over the namespace": (budget_of(minAvailable=6, selector={}), set()),
    "a budget over nothing": (budget_of(minAvailable=6, selector=None), {"budget-missing"}),
    "Redpanda beside it": (
        other("statefulsets", "docker.redpanda.com/redpandadata/redpanda:v24"),
        {"not-strimzi", "not-running"},
    ),
    "Confluent's older image beside it": (
        other("statefulsets", "confluentinc/cp-enterprise-kafka:6.2"),
        {"not-strimzi", "not-running"},
    ),
    "Bitnami's legacy beside it": (
        other("statefulsets", "docker.io/bitnamilegacy/kafka:3.6"),
        {"not-strimzi", "not-running"},
    ),
    "a Kafka in a Deployment beside it": (
        other("deployments", "apache/kafka-native:4.1.0"),
        {"not-strimzi", "not-running"},
    ),
}


@every_case(("change", "said"), ODD.values(), ids=ODD.keys())
def test_of_an_odd_cluster_what_is_odd_is_said(
    change: Callable[[World], object], said: set[str]
) -> None:
    assert checks(changed(own, change)()) == said


@pytest.mark.parametrize("auto", [False, True], ids=["Karpenter", "Auto Mode"])
@pytest.mark.parametrize("gone", ["objects", "kind"])
def test_a_node_pool_that_is_not_listed_is_not_taken_for_a_harmless_one(
    gone: str, *, auto: bool
) -> None:
    world = provisioned(bare(), auto=auto)
    if gone == "kind":
        del world.versions["karpenter.sh"]
    world.kinds["nodepools"] = []
    assert checks(world) == {"pool-unseen"} | ({"auto-mode"} if auto else set())


CALLS = (
    *("describe_auto_scaling_groups", "describe_auto_scaling_instances", "describe_instances"),
    *("describe_lifecycle_hooks", "describe_nodegroup", "describe_rule", "get_queue_attributes"),
    *("list_rule_names_by_target", "describe_policies", "describe_scheduled_actions"),
    *("describe_instance_refreshes", "describe_instance_status"),
)


@every_case("call", CALLS)
def test_a_call_that_is_denied_is_unknown_and_nothing_is_made_of_it(call: str) -> None:
    world = managed(bare()) if call == "describe_nodegroup" else own()

    def denied(*_: Any, **__: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, call)

    setattr(world, call, denied)
    found = surveyed(world)
    unread = [each for each in found if each.weight is Weight.UNKNOWN]
    assert unread
    assert all("AccessDenied" in each.evidence for each in unread)
    assert {each.check for each in found} - {"managed-node-group"} == {"unread"}


ZONE = "topology.kubernetes.io/zone"
UNFORESEEN: dict[str, tuple[Callable[[World], object], set[str]]] = {
    "a zone that is a list": (
        lambda w: w.kinds["nodes"][0]["metadata"]["labels"].update({ZONE: ["a"]}),
        {
            "placement: zones",
            "placement: quorum",
            "groups: groups",
            "room: addresses",
            "room: ways out",
        },
    ),
    "a budget that is an object": (
        lambda w: w.only("poddisruptionbudgets")["spec"].update(minAvailable={"a": 1}),
        {"evictions: budgets"},
    ),
    "a maximum that is a word": (
        lambda w: w.only("poddisruptionbudgets")["spec"].update(minAvailable="all"),
        {"evictions: budgets"},
    ),
}


@every_case(("change", "judges"), UNFORESEEN.values(), ids=UNFORESEEN.keys())
def test_an_answer_that_nobody_foresaw_costs_no_other_word(
    change: Callable[[World], object], judges: set[str]
) -> None:
    world = changed(own, change)()
    topic = {"metadata": {"name": "t", "namespace": "shop-kafka"}, "spec": {"replicas": 1}}
    topic["metadata"]["labels"] = {"strimzi.io/cluster": "orders"}
    world.add("kafkatopics", topic)
    found = surveyed(world)
    unjudged = [each for each in found if each.check == "unjudged"]
    assert {each.subject for each in unjudged} <= judges
    assert unjudged
    assert {each.weight for each in unjudged} == {Weight.UNKNOWN}
    assert "topic-replicas" in {each.check for each in found}


def test_names_of_sixty_three_characters_are_as_good_as_others() -> None:
    world = own()
    for kind in ("kafkas", "pods", "kafkanodepools", "poddisruptionbudgets"):
        for each in world.kinds[kind]:
            each["metadata"]["namespace"] = LONG
    for each in world.kinds["persistentvolumeclaims"]:
        each["metadata"]["namespace"] = LONG
    assert surveyed(world) == []
