"""Whether a broker that leaves comes back: what its pod asks for, and what the cluster refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.checks.finding import Weight
from tests.every_case import every_case
from tests.unit.cli.survey.changes import (
    ALIKE,
    container_of,
    deployment,
    first,
    of_driver,
    without,
)
from tests.unit.cli.survey.changes_of_machines import deleted, nodes_labelled
from tests.unit.cli.survey.machines import managed, provisioned
from tests.unit.cli.survey.manifests import Item, meta, service_of, storage_class
from tests.unit.cli.survey.others import bound, checks, every, kafka_spec, own, surveyed
from tests.unit.cli.survey.worlds import Change, World, bare

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
AUTO_MODE_GATES = "eks.amazonaws.com/pod-readiness-gate-inject"
MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
SHARE = "share.coordinator.state.topic"
REMOTE = "rlmm.config.remote.log.metadata.topic"


def configured(**settings: Any) -> Change:
    given = {key.replace("_", "."): value for key, value in settings.items()}
    return lambda world: kafka_spec(world)["config"].update(given)


def pods(**spec: Any) -> Change:
    return lambda world: every(world, "pods", **spec)


def apart(term: Item) -> Change:
    return pods(affinity={"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, **term}]}})


def marked(annotation: str) -> Change:
    return first("pods", lambda item: item["metadata"]["annotations"].update({annotation: "true"}))


def heap(options: str) -> Change:
    given = [{"name": "KAFKA_HEAP_OPTS", "value": options}]
    return first("pods", lambda item: item["spec"]["containers"][0].update(env=given))


def ended(reason: str, code: int) -> Change:
    last = {"terminated": {"reason": reason, "exitCode": code}}
    status = [{"name": "kafka", "restartCount": 1, "lastState": last}]
    return first("pods", lambda item: item["status"].update(containerStatuses=status))


def choosing(key: str, value: str) -> Change:
    """Let every pod require a label of its node by affinity."""
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    wanted = {REQUIRED: {"nodeSelectorTerms": [term]}}

    def made(world: World) -> None:
        for each in world.kinds["pods"]:
            each["spec"]["affinity"]["nodeAffinity"] = wanted

    return made


def pinned(world: World) -> None:
    for each in world.kinds["pods"]:
        each["spec"]["nodeSelector"] = {HOST: each["spec"]["nodeName"]}
    for each in world.kinds["nodes"]:
        each["metadata"]["labels"][HOST] = each["metadata"]["name"]


def pinned_by_field(world: World) -> None:
    for each in world.kinds["pods"]:
        name = {"key": "metadata.name", "operator": "In", "values": [each["spec"]["nodeName"]]}
        wanted = {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [name]}]}}
        each["spec"]["affinity"]["nodeAffinity"] = wanted


def of_versions(*versions: str) -> Change:
    def made(world: World) -> None:
        for index, each in enumerate(world.kinds["nodes"]):
            given = {"kubeletVersion": f"{versions[index % len(versions)]}-eks-0a1b"}
            each["status"]["nodeInfo"] = given

    return made


def claim(**status: Any) -> Change:
    return first("persistentvolumeclaims", lambda item: item.update(status=status))


def of_class(**parameters: str) -> Change:
    made = storage_class("fast", parameters=parameters)
    return lambda world: world.kinds.update(storageclasses=[made])


def asked(kind: str, *resources: str, answered: bool = False, **more: Any) -> Change:
    """Add a webhook, whose Service is gone unless somebody answers."""
    operations = more.pop("operations", ["CREATE"])
    webhook = {
        "name": "it.example.io",
        "rules": [
            {"apiGroups": [""], "resources": list(resources), "operations": operations},
        ],
        "clientConfig": {"service": {"namespace": "ops", "name": "it"}},
        **more,
    }

    def made(world: World) -> None:
        if answered:
            world.add("services", {"metadata": meta("it", "ops"), "spec": {}})
        world.add(kind, {"metadata": meta("it"), "webhooks": [webhook]})

    return made


def quota(namespace: str, most: str) -> Change:
    status = {"hard": {"pods": most, "limits.memory": "96Gi"}, "used": {"pods": "6"}}
    item = {"metadata": meta("q", namespace), "status": status}
    return lambda world: world.add("resourcequotas", item)


def enforced(level: str) -> Change:
    given = {"pod-security.kubernetes.io/enforce": level}
    return lambda world: world.only("namespaces")["metadata"].update(labels=given)


def restricted(world: World) -> None:
    """As Strimzi's restricted provider makes pods."""
    every(world, "pods", securityContext={"seccompProfile": {"type": "RuntimeDefault"}})
    own = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
    }
    for each in world.kinds["pods"]:
        for container in each["spec"]["containers"]:
            container["securityContext"] = own


def selecting(labels: str) -> Change:
    given = {"name": "STRIMZI_CUSTOM_RESOURCE_SELECTOR", "value": labels}
    return container_of("strimzi/operator", lambda c: c["env"].append(given))


def down(name: str) -> Change:
    def made(world: World) -> None:
        for each in world.kinds["deployments"]:
            if each["metadata"]["name"] == name:
                each["status"] = {"replicas": 2, "unavailableReplicas": 2}

    return made


def in_tree(world: World) -> None:
    every(world, "persistentvolumes", csi=None, awsElasticBlockStore={"volumeID": "vol-1"})


def balancer(**spec: Any) -> Change:
    made = service_of("outside", "shop-kafka", {"strimzi.io/name": "orders-kafka"})
    made["spec"] |= {"type": "LoadBalancer", **spec}
    return lambda world: world.add("services", made)


def gated(world: World) -> None:
    bound(world)
    every(world, "pods", readinessGates=[{"conditionType": "target-health.elbv2.k8s.aws/boot"}])


def rarely_preferred(world: World) -> None:
    """Serve the bindings in another version than the one that the group prefers."""
    bound(world)
    world.versions["elbv2.k8s.aws"] = "v2"
    world.only_in["targetgroupbindings"] = "v1beta1"


FOUND: dict[str, tuple[Change, set[str]]] = {
    # Deleted, or about to be.
    "a Kafka that is deleted": (first("kafkas", deleted), {"deleted"}),
    "a node pool that is deleted": (first("kafkanodepools", deleted), {"deleted"}),
    "a namespace that ends": (
        lambda w: w.only("namespaces").update(status={"phase": "Terminating"}),
        {"deleted"},
    ),
    "a pod that is deleted with its claim": (
        marked("strimzi.io/delete-pod-and-pvc"),
        {"pod-marked"},
    ),
    "a pod that is rolled": (marked("strimzi.io/manual-rolling-update"), {"pod-marked"}),
    "an operator for pod sets alone": (
        container_of(
            "strimzi/operator",
            lambda c: c["env"].append(
                {"name": "STRIMZI_POD_SET_RECONCILIATION_ONLY", "value": "true"}
            ),
        ),
        {"operator-partial"},
    ),
    "an operator for other labels": (selecting("team=web"), {"operator-missing"}),
    "an operator for these labels": (
        lambda w: (
            selecting("team=data")(w),
            w.only("kafkas")["metadata"].update(labels={"team": "data"}),
        ),
        set(),
    ),
    # Settings.
    "share groups' state of one replica": (
        lambda w: kafka_spec(w)["config"].update({f"{SHARE}.replication.factor": 1}),
        {"replication"},
    ),
    "tiers' metadata of one replica": (
        lambda w: kafka_spec(w)["config"].update({f"{REMOTE}.replication.factor": 1}),
        {"replication"},
    ),
    "tiers": (configured(remote_log_storage_system_enable=True), set()),
    "more replicas than brokers": (configured(default_replication_factor=5), {"too-few-brokers"}),
    # Memory.
    "a heap of all the memory": (heap("-Xms8g -Xmx8g"), {"heap"}),
    "a heap of half the memory": (heap("-Xms4g -Xmx4096m"), set()),
    "a pod that the kernel ended": (ended("OOMKilled", 137), {"out-of-memory"}),
    "a pod that ended itself": (ended("Error", 1), set()),
    # Where it may run.
    "apart from pods that nobody has": (
        apart({"labelSelector": {"matchLabels": {"app": "kafka-2"}}}),
        {"anti-affinity"},
    ),
    "apart from no pods at all": (apart({}), {"anti-affinity"}),
    "apart by an expression": (
        apart(
            {
                "labelSelector": {
                    "matchExpressions": [
                        {"key": "strimzi.io/cluster", "operator": "In", "values": ["orders"]}
                    ]
                }
            }
        ),
        set(),
    ),
    "two to a host": (
        pods(
            affinity={},
            topologySpreadConstraints=[
                {
                    "topologyKey": HOST,
                    "maxSkew": 2,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": ALIKE,
                }
            ],
        ),
        {"anti-affinity"},
    ),
    "a label that the nodes lost": (pods(nodeSelector={"pool": "kafka"}), {"node-unfit"}),
    "a label that the nodes have": (
        lambda w: (pods(nodeSelector={"pool": "kafka"})(w), nodes_labelled(pool="kafka")(w)),
        set(),
    ),
    "an affinity that the nodes do not meet": (choosing("pool", "kafka"), {"node-unfit"}),
    "an affinity that the nodes meet": (
        lambda w: (choosing("pool", "kafka")(w), nodes_labelled(pool="kafka")(w)),
        set(),
    ),
    "hosts by name": (pinned, {"pinned"}),
    "nodes by name": (pinned_by_field, {"pinned"}),
    "pods that bear a cordon": (pods(tolerations=[{"operator": "Exists"}]), {"tolerates-cordon"}),
    "pods that bear what does not answer": (
        pods(tolerations=[{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}]),
        set(),
    ),
    "a priority below all others": (pods(priority=-10), {"priority"}),
    "a priority above others": (pods(priority=1_000_000), set()),
    "two versions of Kubernetes": (of_versions("v1.33.4", "v1.34.1"), {"version-skew"}),
    "two patches of one version": (of_versions("v1.34.0", "v1.34.1"), set()),
    # Volumes.
    "no driver": (without("ebs-csi"), {"csi-missing"}),
    "a driver that is down": (down("ebs-csi-controller"), {"csi-missing"}),
    "volumes of old without the driver": (
        lambda w: (in_tree(w), without("ebs-csi")(w)),
        {"csi-missing"},
    ),
    "volumes of old with the driver": (in_tree, set()),
    "a size that cannot be": (
        claim(allocatedResourceStatuses={"storage": "ControllerResizeInfeasible"}),
        {"claim-stuck"},
    ),
    "a class that cannot be": (claim(modifyVolumeStatus={"status": "Infeasible"}), {"claim-stuck"}),
    "a change that failed": (
        claim(conditions=[{"type": "ControllerResizeError", "status": "True"}]),
        {"claim-stuck"},
    ),
    "a claim that grows": (claim(conditions=[{"type": "Resizing", "status": "True"}]), set()),
    "magnetic disks": (of_class(type="sc1"), {"slow-volume"}),
    "io2": (of_class(type="io2"), set()),
    # What is asked before a pod is made.
    "a webhook for pods that is gone": (asked(MUTATING, "pods"), {"pods-refused"}),
    "one that validates": (asked(VALIDATING, "pods"), {"pods-refused"}),
    "one that lets pass": (asked(MUTATING, "pods", failurePolicy="Ignore"), set()),
    "one that answers": (asked(MUTATING, "pods", answered=True), set()),
    "one for other namespaces": (
        asked(MUTATING, "pods", namespaceSelector={"matchLabels": {"team": "web"}}),
        set(),
    ),
    "one for other pods": (
        asked(MUTATING, "pods", objectSelector={"matchLabels": {"app": "web"}}),
        set(),
    ),
    "one for Deployments": (asked(MUTATING, "deployments"), set()),
    "one for changes of pods": (asked(MUTATING, "pods", operations=["UPDATE"]), set()),
    "a quota below what runs": (quota("shop-kafka", "4"), {"quota"}),
    "a quota that is used up": (quota("shop-kafka", "6"), set()),
    "a quota elsewhere": (quota("web", "4"), set()),
    "Pod Security that came later": (enforced("restricted"), {"pods-refused"}),
    "Pod Security that lets them": (enforced("baseline"), set()),
    "Pod Security, and pods that meet it": (
        lambda w: (enforced("restricted")(w), restricted(w)),
        set(),
    ),
    "DNS that is down": (
        lambda w: (deployment("eks/coredns:v1.12")(w), down("it")(w)),
        {"essential-down"},
    ),
    "DNS that runs": (deployment("eks/coredns:v1.12"), set()),
    # Who sends clients.
    "a load balancer over nodes": (balancer(), {"targets-by-node"}),
    "a load balancer of somebody else's": (balancer(loadBalancerClass="tailscale"), set()),
    "bindings in another version": (rarely_preferred, {"gate-missing", "lbc-backoff"}),
    "a controller of load balancers that is down": (
        lambda w: (gated(w), down("lbc")(w)),
        {"lbc-down", "lbc-backoff"},
    ),
}


@every_case(("change", "said"), FOUND.values(), ids=FOUND.keys())
def test_what_keeps_a_broker_from_coming_back_is_found(change: Change, said: set[str]) -> None:
    world = own()
    change(world)
    assert checks(world) == said


def auto_mode() -> World:
    """Auto Mode has EBS's driver and the controller of load balancers inside itself."""
    world = provisioned(bare(), auto=True)
    without("ebs-csi")(world)
    of_driver("ebs.csi.eks.amazonaws.com")(world)
    return world


def bound_by_auto_mode(*, label: bool) -> Callable[[], World]:
    def made() -> World:
        world = auto_mode()
        bound(world)
        without("aws-load-balancer-controller")(world)
        world.versions["eks.amazonaws.com"] = world.versions.pop("elbv2.k8s.aws")
        if label:
            world.only("namespaces")["metadata"]["labels"] = {AUTO_MODE_GATES: "enabled"}
        return world

    return made


BUILT: dict[str, tuple[Callable[[], World], set[str]]] = {
    "Auto Mode's own driver": (auto_mode, set()),
    "Auto Mode's bindings without its label": (
        bound_by_auto_mode(label=False),
        {"gate-missing", "gate-label"},
    ),
    "Auto Mode's bindings": (bound_by_auto_mode(label=True), {"gate-missing"}),
}


@every_case(("build", "said"), BUILT.values(), ids=BUILT.keys())
def test_what_auto_mode_has_is_not_missed(build: Callable[[], World], said: set[str]) -> None:
    assert checks(build()) == {"auto-mode", *said}


def test_pods_that_bear_a_cordon_are_found_on_managed_node_groups_too() -> None:
    world = managed(bare())
    pods(tolerations=[{"operator": "Exists"}])(world)
    assert checks(world) == {"managed-node-group", "tolerates-cordon"}


@pytest.mark.parametrize(
    "kind", ["clusterroles", "clusterrolebindings", "roles", "rolebindings", "resourcequotas"]
)
def test_what_may_not_be_listed_of_the_rest_is_unknown(kind: str) -> None:
    world = own()
    world.refused = {kind}
    assert checks(world) == {"unread"}


def test_a_refused_mutating_webhook_listing_is_unknown() -> None:
    world = own()
    world.refused = {MUTATING}
    (found,) = surveyed(world)
    assert found.subject == "eviction webhooks, injected namespaces, pod webhooks"


def test_a_tool_that_is_known_by_its_image_is_found_without_a_look_at_roles() -> None:
    world = own()
    deployment("ghcr.io/kubereboot/kured:1.20.0")(world)
    world.refused = {"clusterroles"}
    assert checks(world) == {"unread", "evictor"}


def test_a_webhook_on_conditions_is_no_certain_refusal() -> None:
    world = own()
    asked(MUTATING, "pods", matchConditions=[{"name": "x", "expression": "false"}])(world)
    (found,) = surveyed(world)
    assert (found.check, found.weight) == ("pods-refused", Weight.UNKNOWN)
