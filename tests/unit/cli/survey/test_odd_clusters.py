"""Clusters that sleep, move, hide or are not Strimzi's: no crash, no good news of the unseen."""

from functools import partial
from typing import Any

import pytest

from core.checks.finding import Finding, Weight
from tests.every_case import every_case
from tests.unit.cli.survey import machines, others, worlds
from tests.unit.cli.survey.changes import added, both, container_of, deleted
from tests.unit.cli.survey.machines import own_groups, provisioned
from tests.unit.cli.survey.manifests import Item, meta, service_of, workload
from tests.unit.cli.survey.others import changed, checks, kafka_spec, own, rows, surveyed
from tests.unit.cli.survey.worlds import Change, World, at, bare

FARGATE = "aws:///eu-north-1a/0a1b/fargate-ip-10-0-0-1.eu-north-1.compute.internal"
LONG = "k" * 63
LBC = "aws-load-balancer-controller@sha256:0a"
GATES = [{"conditionType": "target-health.elbv2.k8s.aws/boot"}]


sized = partial(at, "groups.*")
with_keepers = both(others.keepers, at("kafkas.0.spec.zookeeper", {"replicas": 3}))


def annotated(key: str, value: str) -> Change:
    return at("kafkas.0.metadata.annotations", {f"strimzi.io/{key}": value})


def shared_group(world: World) -> None:
    """Brokers and controllers of one zone in one group of two."""
    world.groups = {f"asg-{zone}": machines.group(f"asg-{zone}", [zone]) for zone in worlds.ZONES}
    sized(DesiredCapacity=2, MaxSize=4)(world)
    world.hooks = {name: [machines.hook()] for name in world.groups}
    for each in world.kinds["nodes"]:
        _, zone, instance = each["spec"]["providerID"].rsplit("/", 2)
        world.member_of[instance] = f"asg-{zone}"


def mixed(**shares: int) -> Change:
    return sized(MixedInstancesPolicy={"InstancesDistribution": shares})


def undescribed(world: World) -> None:
    known = dict(list(world.groups.items())[1:])
    world.describe_auto_scaling_groups = lambda **_: {"AutoScalingGroups": list(known.values())}


def unavailable(position: int) -> Change:
    return at(f"deployments.{position}.status", {"replicas": 1, "unavailableReplicas": 1})


def budget_of(**spec: Any) -> Change:
    def change(world: World) -> None:
        budget = world.only("poddisruptionbudgets")["spec"]
        budget.pop("minAvailable", None)
        budget.update(spec)

    return change


def racks(key: str, of_nodes: str) -> Change:
    def change(world: World) -> None:
        kafka_spec(world)["rack"] = {"topologyKey": key}
        for each, rack in zip(world.kinds["nodes"], of_nodes, strict=True):
            each["metadata"]["labels"][key] = rack

    return change


NOT_READY = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
ODD: dict[str, Change] = {
    "hibernated => asleep": both(
        at("kafkanodepools.*.spec", replicas=0), at("pods", [])),
    "no pods though some are wanted => not-running": at("pods", []),
    "groups of none => group-shrinks group-maximum": sized(
        DesiredCapacity=0, MaxSize=0),
    "nodes that are not listed => node-unseen": lambda w: w.kinds["nodes"].pop(),
    "Fargate => machine-unknown": at("nodes.*.spec", providerID=FARGATE),
    "nodes of no provider => machine-unknown": at("nodes.*.spec", {}),
    "nodes of no provider and no zone => machine-unknown zone-unknown": both(
        at("nodes.*.spec", providerID=None), at("nodes.*.metadata.labels", {})),
    "a node that does not answer => node-not-ready": at("nodes.0.status", NOT_READY),
    "a node that says nothing => node-not-ready": at("nodes.0.status", {}),
    "a pod that says nothing => pod-silent": at("pods.0.status", {}),
    "a pod on its way out => not-running": deleted("pods"),
    "half spot => group-spot": mixed(OnDemandPercentageAboveBaseCapacity=50),
    "mixed types, nothing said of spot =>": mixed(),
    "node pools that share a group =>": shared_group,
    "groups over three zones => group-zones": sized(
        AvailabilityZones=list(worlds.ZONES)),
    "groups without tags =>": lambda w: [g.pop("Tags") for g in w.groups.values()],
    "a group that is not described => unread": undescribed,
    "paused, in capitals => paused": annotated("pause-reconciliation", "True"),
    "ZooKeeper's leftovers after the migration =>": both(
        with_keepers, annotated("kraft", "Enabled")),
    "in the middle of the migration => migrating": both(
        with_keepers, annotated("kraft", "migration")),
    "a migration that is not finalized => migrating": at(
        "kafkas.0.status", {"kafkaMetadataState": "KRaftPostMigration"}),
    "a replication factor in words => setting-odd": lambda w: kafka_spec(w)["config"].update(
        {"default.replication.factor": "three"}),
    "no configuration at all => min-insync replication": lambda w: kafka_spec(w).pop("config"),
    "no spec at all => unread": at("kafkas.0.spec", {}),
    "no listeners =>": at("kafkas.0.spec.kafka.listeners", None),
    "a handler without its queue => nth-queueless": container_of(
        "termination-handler", lambda c: c.update(
            env=[each for each in c["env"] if each["name"] != "QUEUE_URL"])),
    "a handler that does not run => nth-down": unavailable(-1),
    "an operator that does not run => operator-down": unavailable(0),
    "a balancer's controller by digest => lbc-unknown": both(
        lambda w: worlds.bind(w, LBC, "shop-kafka", "orders"),
        at("pods.*.spec", readinessGates=GATES)),
    "claims that are not listed => claim-unseen": at("persistentvolumeclaims", []),
    "volumes that are not listed => volume-unseen": at("persistentvolumes", []),
    "a class that is not listed => class-unseen": at("storageclasses", []),
    "zones by their ids =>": lambda w: [
        each["metadata"]["labels"].update({"topology.kubernetes.io/zone": f"eun1-az{n % 3}"})
        for n, each in enumerate(w.kinds["nodes"])
    ],
    "volumes of a kind from before there were drivers => volume-driver": at(
        "persistentvolumes.*.spec", csi=None, portworxVolume={"volumeID": "1"}),
    "CephFS from before there were drivers => network-file-system": at(
        "persistentvolumes.*.spec", csi=None, cephfs={"monitors": []}),
    "settings that are null => min-insync": lambda w: kafka_spec(w)["config"].update(
        {"min.insync.replicas": None}),
    "a topic that the operator leaves alone =>": lambda w: w.add("kafkatopics",
        {
            "metadata": {"name": "t", "namespace": "shop-kafka",
                "labels": {"strimzi.io/cluster": "orders"},
                "annotations": {"strimzi.io/managed": "false"}}, "spec": {"replicas": 1}}),
    "racks that no label names => rack-unknown": at(
        "kafkas.0.spec.kafka.rack", {"type": "environment-variable"}),
    "racks by zones' ids =>": racks("topology.k8s.aws/zone-id", "012012"),
    "racks that two zones share => rack": racks("example.com/rack", "001001"),
    "machines that EC2 does not know => instance-unseen": lambda w: w.instances.pop(
        "i-orders-mains-0"),
    "a pod that the kubelet has evicted => not-running": at(
        "pods.0.status", {"phase": "Failed", "reason": "Evicted"}),
    "templates that follow $Latest => group-latest": sized(
        LaunchTemplate={"LaunchTemplateId": "lt", "Version": "$Latest"}),
    "clients by nodes' ports => targets-by-node": added("services",
        {"metadata": {"name": "out", "namespace": "shop-kafka"},
            "spec": {"type": "NodePort", "selector": {"strimzi.io/name": "orders-kafka"}}}),
    "a budget of no pod =>": budget_of(maxUnavailable=0),
    "a budget of a third =>": budget_of(maxUnavailable="34%"),
    "a budget over the namespace =>": budget_of(minAvailable=6, selector={}),
    "a budget over nothing => budget-missing": budget_of(minAvailable=6, selector=None),
    "Confluent's older image beside it => not-strimzi not-running": added(
        "statefulsets", workload(LONG, "legacy", "confluentinc/cp-enterprise-kafka:6.2")),
    "Bitnami's legacy beside it => not-strimzi not-running": added(
        "statefulsets", workload(LONG, "legacy", "docker.io/bitnamilegacy/kafka:3.6")),
    "a Kafka in a Deployment beside it => not-strimzi not-running": added(
        "deployments", workload(LONG, "legacy", "apache/kafka-native:4.1.0")),
}  # fmt: skip


@every_case(("change", "said"), rows(ODD), ids=ODD)
def test_what_is_odd_is_said(change: Change, said: set[str]) -> None:
    assert checks(changed(own, change)()) == said


@pytest.mark.parametrize("auto", [False, True], ids=["Karpenter", "Auto Mode"])
@pytest.mark.parametrize("gone", ["objects", "kind"])
def test_a_node_pool_that_is_not_listed_is_not_taken_as_harmless(gone: str, *, auto: bool) -> None:
    world = provisioned(bare(), auto=auto)
    if gone == "kind":
        del world.versions["karpenter.sh"]
    world.kinds["nodepools"] = []
    assert checks(world) == {"pool-unseen"} | ({"auto-mode"} if auto else set())


ZONE = "topology.kubernetes.io/zone"
UNFORESEEN: dict[str, tuple[Change, set[str]]] = {
    "a zone that is a list": (
        lambda w: w.kinds["nodes"][0]["metadata"]["labels"].update({ZONE: ["a"]}),
        {"placement: zones", "placement: quorum", "groups: groups", "room: addresses",
            "room: ways out"}),
    "a budget that is an object": (
        lambda w: w.only("poddisruptionbudgets")["spec"].update(minAvailable={"a": 1}),
        {"evictions: budgets"}),
    "a maximum that is a word": (
        lambda w: w.only("poddisruptionbudgets")["spec"].update(minAvailable="all"),
        {"evictions: budgets"}),
}  # fmt: skip


@every_case(("change", "judges"), UNFORESEEN.values(), ids=UNFORESEEN.keys())
def test_an_odd_answer_hides_nothing(change: Change, judges: set[str]) -> None:
    world = changed(own, change)()
    labels = {"strimzi.io/cluster": "orders"}
    topic = {"metadata": meta("t", "shop-kafka", labels=labels), "spec": {"replicas": 1}}
    world.add("kafkatopics", topic)
    found = surveyed(world)
    unjudged = [each for each in found if each.check == "unjudged"]
    assert {each.subject for each in unjudged} <= judges
    assert unjudged
    assert {each.weight for each in unjudged} == {Weight.UNKNOWN}
    assert "topic-replicas" in {each.check for each in found}


def test_names_of_sixty_three_characters_are_as_good_as_others() -> None:
    world = own()
    beside_them = ("poddisruptionbudgets", "persistentvolumeclaims")
    for kind in ("kafkas", "pods", "kafkanodepools", *beside_them):
        at(f"{kind}.*.metadata.namespace", LONG)(world)
    assert surveyed(world) == []


APACHE = "docker.io/apache/kafka:4.1.0"
SETTINGS = {"KAFKA_DEFAULT_REPLICATION_FACTOR": "3", "KAFKA_MIN_INSYNC_REPLICAS": "2"}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "log"}},
            }
        ]
    }
}


def beside(image: str = APACHE, **settings: str) -> World:
    """Return a Kafka of Strimzi's, and a StatefulSet of three brokers in which nothing is wrong."""
    world = bare()
    stateful = world.add("statefulsets", workload("log", "legacy", image, **(settings or SETTINGS)))
    stateful["spec"]["replicas"] = 3
    (container,) = stateful["spec"]["template"]["spec"]["containers"]
    container |= {"readinessProbe": {"exec": {"command": ["in-sync"]}}}
    for index, zone in enumerate(worlds.ZONES):
        worlds.node(world, f"node-of-log-{index}", zone, f"i-log-{index}")
        worlds.claim(world, f"data-log-{index}", "legacy")
        world.beside.append(_pod(index, dict(container)))
    own_groups(world)
    spec = {"selector": {"matchLabels": {"app": "log"}}, "maxUnavailable": 1}
    world.add("poddisruptionbudgets", {"metadata": meta("log", "legacy"), "spec": spec})
    world.add("services", service_of("log", "legacy", {"app": "log"}))
    return world


def _pod(index: int, container: Item) -> Item:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "log", "controller": True}
    name = f"log-{index}"
    return {
        "metadata": meta(name, "legacy", labels={"app": "log"}, ownerReferences=[owner]),
        "spec": {
            "containers": [container],
            "nodeName": f"node-of-{name}",
            "terminationGracePeriodSeconds": 600,
            "affinity": APART,
            "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": f"data-{name}"}}],
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


pods, container = partial(at, "beside.*.spec"), partial(at, "beside.*.spec.containers.0")


def one_zone(world: World) -> None:
    for node in world.kinds["nodes"]:
        if "log" in node["metadata"]["name"]:
            node["metadata"]["labels"][ZONE] = "eu-north-1a"


BROKEN: dict[str, Change] = {
    "nothing =>": lambda _: None,
    "Kubernetes' own grace => grace": pods(terminationGracePeriodSeconds=30),
    "a preStop that sleeps => grace": container(
        lifecycle={"preStop": {"exec": {"command": ["sh", "-c", "sleep 310"]}}}
    ),
    "a preStop of Kubernetes' own => grace": container(
        lifecycle={"preStop": {"sleep": {"seconds": 400}}}
    ),
    "no budget => budget-missing": lambda w: w.kinds["poddisruptionbudgets"].pop(),
    "a budget of none, beside Strimzi's Drain Cleaner => budget-blocks": lambda w: w.kinds[
        "poddisruptionbudgets"
    ][-1]["spec"].update(maxUnavailable=0),
    "no readiness probe => readiness": container(readinessProbe=None),
    "a probe of the port => readiness": container(readinessProbe={"tcpSocket": {"port": 9092}}),
    "nothing that keeps them apart => anti-affinity": pods(affinity=None),
    "two on one node => shared-node": lambda w: w.beside[0]["spec"].update(
        nodeName="node-of-log-1"
    ),
    "no volumes => ephemeral": pods(volumes=[]),
    "a pod that is missing => not-running": lambda w: w.beside.pop(),
    "all in one zone => zones group-moved": one_zone,
}


def of_it(found: list[Finding]) -> set[str]:
    return {each.check for each in found} - {"not-strimzi"}


@every_case(("change", "said"), rows(BROKEN), ids=BROKEN)
def test_what_kubernetes_tells_is_judged(change: Change, said: set[str]) -> None:
    assert of_it(surveyed(changed(beside, change)())) == said


WRITTEN: dict[str, dict[str, str]] = {
    "Bitnami's => min-insync": {"KAFKA_CFG_MIN_INSYNC_REPLICAS": "1"},
    "Apache's => unclean-election": {"KAFKA_UNCLEAN_LEADER_ELECTION_ENABLE": "true"},
    "two replicas => replication": SETTINGS | {"KAFKA_DEFAULT_REPLICATION_FACTOR": "2"},
    "none =>": {"KAFKA_HEAP_OPTS": "-Xmx1g"},
}


@every_case(("env", "said"), rows(WRITTEN), ids=WRITTEN)
def test_settings_that_its_environment_has_are_judged(env: dict[str, str], said: set[str]) -> None:
    assert of_it(surveyed(beside(**env))) == said


def unjudged(world: World) -> Finding:
    (said,) = (each for each in surveyed(world) if each.check == "not-strimzi")
    assert said.weight is Weight.UNKNOWN
    return said


def test_what_was_not_judged_is_named_with_how_clients_come_in() -> None:
    said = unjudged(beside(KAFKA_HEAP_OPTS="-Xmx1g")).evidence
    assert "default.replication.factor; min.insync.replicas" in said
    assert "what the readiness probe of log-0, log-1, log-2 means" in said
    assert said.endswith("Service legacy/log (inside the cluster alone)")


def test_redpanda_is_called_what_it_is_and_asked_for_nothing_of_kafkas() -> None:
    world = beside("docker.redpanda.com/redpandadata/redpanda:v25.1")
    pods(terminationGracePeriodSeconds=90)(world)
    assert "Redpanda and not Kafka" in unjudged(world).evidence
    assert of_it(surveyed(world)) == set()


def test_controllers_alone_need_no_brokers_grace() -> None:
    world = beside(KAFKA_PROCESS_ROLES="controller", **SETTINGS)
    pods(terminationGracePeriodSeconds=30)(world)
    assert of_it(surveyed(world)) == set()


def test_another_operators_pods_are_found_and_its_settings_read() -> None:
    world = beside()
    (stateful,) = world.kinds["statefulsets"]
    owner = {"apiVersion": "platform.confluent.io/v1beta1", "kind": "Kafka", "name": "log"}
    stateful["metadata"]["ownerReferences"] = [owner]
    world.versions["platform.confluent.io"] = "v1beta1"
    overrides = {"server": ["min.insync.replicas=1", "default.replication.factor=3"]}
    # Strimzi's Kafkas have the same kind in another group.
    listed, asked = world.kinds["kafkas"], world._request
    item = {"metadata": meta("log", "legacy"), "spec": {"configOverrides": overrides}}

    def request(method: str, path: str, *given: Any, **named: Any) -> Item:
        world.kinds["kafkas"] = [item] if "platform.confluent.io" in path else listed
        return asked(method, path, *given, **named)

    world._request = request
    found = surveyed(world)
    assert of_it(found) == {"min-insync"}
    (said,) = (each for each in found if each.check == "not-strimzi")
    assert said.subject == "Confluent for Kubernetes legacy/log"


def test_koperators_pods_stand_alone_and_are_found_by_their_label() -> None:
    world = beside()
    world.kinds["statefulsets"] = []
    for each in world.beside:
        each["metadata"]["labels"]["kafka_cr"] = "log"
        each["metadata"]["ownerReferences"] = []
    spec = {"brokers": [{}, {}, {}], "readOnlyConfig": "min.insync.replicas=1\n"}
    world.add("kafkaclusters", {"metadata": meta("log", "legacy"), "spec": spec})
    assert of_it(surveyed(world)) == {"min-insync"}
