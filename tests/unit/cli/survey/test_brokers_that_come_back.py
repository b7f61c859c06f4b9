"""Whether a broker that leaves comes back: what its pod asks for, and what the cluster refuses."""

from collections.abc import Callable
from functools import partial
from typing import Any

from core.checks.finding import Weight
from tests.every_case import every_case
from tests.unit.cli.survey.changes import (
    ALIKE,
    MUTATING,
    added,
    both,
    container_of,
    deleted,
    deployment,
    nodes_labelled,
    of_driver,
    webhook,
    without,
)
from tests.unit.cli.survey.machines import provisioned
from tests.unit.cli.survey.manifests import Item, meta, service_of, storage_class
from tests.unit.cli.survey.others import bound, changed, checks, own, rows, surveyed
from tests.unit.cli.survey.worlds import Change, World, at, bare

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
AUTO_MODE_GATES = "eks.amazonaws.com/pod-readiness-gate-inject"
asked = partial(webhook, "", "pods", "CREATE")
ASKED = asked(kind=MUTATING)
SHARE = "share.coordinator.state.topic"
pods = partial(at, "pods.*.spec")
REMOTE = "rlmm.config.remote.log.metadata.topic"


def apart(term: Item) -> Change:
    return pods(affinity={"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, **term}]}})


def marked(annotation: str) -> Change:
    return at("pods.0.metadata.annotations", **{annotation: "true"})


def heap(options: str) -> Change:
    given = [{"name": "KAFKA_HEAP_OPTS", "value": options}]
    return at("pods.0.spec.containers.0.env", given)


def ended(reason: str, code: int) -> Change:
    last = {"terminated": {"reason": reason, "exitCode": code}}
    status = [{"name": "kafka", "restartCount": 1, "lastState": last}]
    return at("pods.0.status", containerStatuses=status)


def choosing(key: str, value: str) -> Change:
    """Let every pod require a label of its node by affinity."""
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    wanted = {REQUIRED: {"nodeSelectorTerms": [term]}}
    return at("pods.*.spec.affinity.nodeAffinity", wanted)


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
    return at("persistentvolumeclaims.0.status", status)


def of_class(kind: str) -> Change:
    return at("storageclasses", [storage_class("fast", parameters={"type": kind})])


IN_TREE = at("persistentvolumes.*.spec", csi=None, awsElasticBlockStore={"volumeID": "vol-1"})


def quota(namespace: str, most: str) -> Change:
    status = {"hard": {"pods": most, "limits.memory": "96Gi"}, "used": {"pods": "6"}}
    item = {"metadata": meta("q", namespace), "status": status}
    return added("resourcequotas", item)


# As Strimzi's restricted provider makes containers.
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
}


def enforced(level: str) -> Change:
    return at("namespaces.0.metadata.labels", {"pod-security.kubernetes.io/enforce": level})


def selecting(labels: str) -> Change:
    given = {"name": "STRIMZI_CUSTOM_RESOURCE_SELECTOR", "value": labels}
    return container_of("strimzi/operator", lambda c: c["env"].append(given))


def down(position: int) -> Change:
    return at(f"deployments.{position}.status", {"replicas": 2, "unavailableReplicas": 2})


def balancer(**spec: Any) -> Change:
    made = service_of("outside", "shop-kafka", {"strimzi.io/name": "orders-kafka"})
    made["spec"] |= {"type": "LoadBalancer", **spec}
    return added("services", made)


gated = both(bound, pods(readinessGates=[{"conditionType": "target-health.elbv2.k8s.aws/boot"}]))


FOUND: dict[str, Change] = {
    # Deleted, or about to be.
    "a Kafka that is deleted => deleted": deleted("kafkas"),
    "a node pool that is deleted => deleted": deleted("kafkanodepools"),
    "a namespace that ends => deleted": at(
        "namespaces.0.status", {"phase": "Terminating"}),
    "a pod that is deleted with its claim => pod-marked": marked("strimzi.io/delete-pod-and-pvc"),
    "a pod that is rolled => pod-marked": marked("strimzi.io/manual-rolling-update"),
    "an operator for pod sets alone => operator-partial": container_of("strimzi/operator",
        lambda c: c["env"].append(
            {"name": "STRIMZI_POD_SET_RECONCILIATION_ONLY", "value": "true"})),
    "an operator for other labels => operator-missing": selecting("team=web"),
    "an operator for these labels =>": both(
        selecting("team=data"), at("kafkas.0.metadata.labels", {"team": "data"})),
    # Settings.
    "share groups' state of one replica => replication": at(
        "kafkas.0.spec.kafka.config", **{f"{SHARE}.replication.factor": 1}),
    "tiers' metadata of one replica => replication": at(
        "kafkas.0.spec.kafka.config", **{f"{REMOTE}.replication.factor": 1}),
    "tiers =>": at(
        "kafkas.0.spec.kafka.config", **{"remote.log.storage.system.enable": True}),
    "more replicas than brokers => too-few-brokers": at(
        "kafkas.0.spec.kafka.config", **{"default.replication.factor": 5}),
    # Memory.
    "a heap of all the memory => heap": heap("-Xms8g -Xmx8g"),
    "a heap of half the memory =>": heap("-Xms4g -Xmx4096m"),
    "a pod that the kernel ended => out-of-memory": ended("OOMKilled", 137),
    "a pod that ended itself =>": ended("Error", 1),
    # Where it may run.
    "apart from pods that nobody has => anti-affinity": apart(
        {"labelSelector": {"matchLabels": {"app": "kafka-2"}}}),
    "apart from no pods at all => anti-affinity": apart({}),
    "apart by an expression =>": apart(
        {
            "labelSelector": {
                "matchExpressions": [
                    {"key": "strimzi.io/cluster", "operator": "In", "values": ["orders"]}]}}),
    "two to a host => anti-affinity": pods(affinity={},
        topologySpreadConstraints=[
            {"topologyKey": HOST, "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": ALIKE}]),
    "a label that the nodes lost => node-unfit": pods(nodeSelector={"pool": "kafka"}),
    "a label that the nodes have =>": both(
        pods(nodeSelector={"pool": "kafka"}), nodes_labelled(pool="kafka")),
    "an affinity that the nodes do not meet => node-unfit": choosing("pool", "kafka"),
    "an affinity that the nodes meet =>": both(
        choosing("pool", "kafka"), nodes_labelled(pool="kafka")),
    "hosts by name => pinned": pinned,
    "nodes by name => pinned": pinned_by_field,
    "pods that bear a cordon => tolerates-cordon": pods(tolerations=[{"operator": "Exists"}]),
    "pods that bear what does not answer =>": pods(
        tolerations=[{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}]),
    "a priority below all others => priority": pods(priority=-10),
    "a priority above others =>": pods(priority=1_000_000),
    "two versions of Kubernetes => version-skew": of_versions("v1.33.4", "v1.34.1"),
    "two patches of one version =>": of_versions("v1.34.0", "v1.34.1"),
    # Volumes.
    "no driver => csi-missing": without("ebs-csi"),
    "a driver that is down => csi-missing": down(3),
    "volumes of old without the driver => csi-missing": both(
        IN_TREE, without("ebs-csi")),
    "volumes of old with the driver =>": IN_TREE,
    "a size that cannot be => claim-stuck": claim(
        allocatedResourceStatuses={"storage": "ControllerResizeInfeasible"}),
    "a class that cannot be => claim-stuck": claim(modifyVolumeStatus={"status": "Infeasible"}),
    "a change that failed => claim-stuck": claim(
        conditions=[{"type": "ControllerResizeError", "status": "True"}]),
    "a claim that grows =>": claim(conditions=[{"type": "Resizing", "status": "True"}]),
    "magnetic disks => slow-volume": of_class("sc1"),
    "io2 =>": of_class("io2"),
    # What is asked before a pod is made.
    "a webhook for pods that is gone => pods-refused": ASKED,
    "one that validates => pods-refused": asked(),
    "one that lets pass =>": asked(kind=MUTATING, failurePolicy="Ignore"),
    "one that answers =>": both(ASKED,
        added("services", {"metadata": meta("gone", "ops"), "spec": {}})),
    "one for other namespaces =>": asked(
        kind=MUTATING, namespaceSelector={"matchLabels": {"team": "web"}}),
    "one for other pods =>": asked(
        kind=MUTATING, objectSelector={"matchLabels": {"app": "web"}}),
    "one for Deployments =>": webhook("", "deployments", "CREATE", kind=MUTATING),
    "one for changes of pods =>": webhook("", "pods", "UPDATE", kind=MUTATING),
    "a quota below what runs => quota": quota("shop-kafka", "4"),
    "a quota that is used up =>": quota("shop-kafka", "6"),
    "a quota elsewhere =>": quota("web", "4"),
    "Pod Security that came later => pods-refused": enforced("restricted"),
    "Pod Security that lets them =>": enforced("baseline"),
    "Pod Security, and pods that meet it =>": both(enforced("restricted"),
        pods(securityContext={"seccompProfile": {"type": "RuntimeDefault"}}),
        at("pods.*.spec.containers.*", securityContext=RESTRICTED)),
    "DNS that is down => essential-down": both(
        deployment("eks/coredns:v1.12"), down(-1)),
    "DNS that runs =>": deployment("eks/coredns:v1.12"),
    # Who sends clients.
    "a load balancer over nodes => targets-by-node": balancer(),
    "a load balancer of somebody else's =>": balancer(loadBalancerClass="tailscale"),
    "bindings in another version => gate-missing lbc-backoff": both(bound,
        at("versions", **{"elbv2.k8s.aws": "v2"}), at("only_in", targetgroupbindings="v1beta1")),
    "a controller of load balancers that is down => lbc-down lbc-backoff": both(
        gated, down(-1)),
}  # fmt: skip


@every_case(("change", "said"), rows(FOUND), ids=FOUND)
def test_what_keeps_a_broker_from_coming_back_is_found(change: Change, said: set[str]) -> None:
    assert checks(changed(own, change)()) == said


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


BUILT: dict[str, Callable[[], World]] = {
    "Auto Mode's own driver =>": auto_mode,
    "Auto Mode's bindings without its label => gate-missing gate-label": bound_by_auto_mode(
        label=False
    ),
    "Auto Mode's bindings => gate-missing": bound_by_auto_mode(label=True),
}


@every_case(("build", "said"), rows(BUILT), ids=BUILT)
def test_what_auto_mode_has_is_not_missed(build: Callable[[], World], said: set[str]) -> None:
    assert checks(build()) == {"auto-mode", *said}


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
    sometimes = asked(kind=MUTATING, matchConditions=[{"name": "x", "expression": "false"}])
    (found,) = surveyed(changed(own, sometimes)())
    assert (found.check, found.weight) == ("pods-refused", Weight.UNKNOWN)
