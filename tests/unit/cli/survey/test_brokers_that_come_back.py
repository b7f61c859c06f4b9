"""Whether a broker that leaves comes back: what its pod asks for, and what the cluster refuses."""

from collections.abc import Callable
from typing import Any

from core.checks.finding import Weight
from tests.every_case import every_case
from tests.unit.cli.survey.changes import ALIKE, container_of, deployment, first, of_driver, without
from tests.unit.cli.survey.changes_of_machines import deleted, nodes_labelled
from tests.unit.cli.survey.machines import managed, provisioned
from tests.unit.cli.survey.manifests import Item, meta, service_of, storage_class
from tests.unit.cli.survey.others import bound, checks, every, kafka_spec, own, rows, surveyed
from tests.unit.cli.survey.worlds import Change, World, at, bare

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
    return first("persistentvolumeclaims", lambda item: item.update(status=status))


def of_class(**parameters: str) -> Change:
    made = storage_class("fast", parameters=parameters)
    return lambda world: world.kinds.update(storageclasses=[made])


def asked(kind: str, *resources: str, answered: bool = False, **more: Any) -> Change:
    """Add a webhook, whose Service is gone unless somebody answers."""
    operations = more.pop("operations", ["CREATE"])
    webhook = {
        "name": "it.example.io",
        "rules": [{"apiGroups": [""], "resources": list(resources), "operations": operations}],
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
    return at("namespaces.0.metadata.labels", {"pod-security.kubernetes.io/enforce": level})


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


FOUND: dict[str, Change] = {
    # Deleted, or about to be.
    "a Kafka that is deleted => deleted": first("kafkas", deleted),
    "a node pool that is deleted => deleted": first("kafkanodepools", deleted),
    "a namespace that ends => deleted": lambda w: w.only("namespaces").update(
        status={"phase": "Terminating"}),
    "a pod that is deleted with its claim => pod-marked": marked("strimzi.io/delete-pod-and-pvc"),
    "a pod that is rolled => pod-marked": marked("strimzi.io/manual-rolling-update"),
    "an operator for pod sets alone => operator-partial": container_of("strimzi/operator",
        lambda c: c["env"].append(
            {"name": "STRIMZI_POD_SET_RECONCILIATION_ONLY", "value": "true"})),
    "an operator for other labels => operator-missing": selecting("team=web"),
    "an operator for these labels =>": lambda w: (selecting("team=data")(w),
        w.only("kafkas")["metadata"].update(labels={"team": "data"})),
    # Settings.
    "share groups' state of one replica => replication": lambda w: kafka_spec(w)["config"].update(
        {f"{SHARE}.replication.factor": 1}),
    "tiers' metadata of one replica => replication": lambda w: kafka_spec(w)["config"].update(
        {f"{REMOTE}.replication.factor": 1}),
    "tiers =>": configured(remote_log_storage_system_enable=True),
    "more replicas than brokers => too-few-brokers": configured(default_replication_factor=5),
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
    "a label that the nodes have =>": lambda w: (pods(nodeSelector={"pool": "kafka"})(w),
        nodes_labelled(pool="kafka")(w)),
    "an affinity that the nodes do not meet => node-unfit": choosing("pool", "kafka"),
    "an affinity that the nodes meet =>": lambda w: (choosing("pool", "kafka")(w),
        nodes_labelled(pool="kafka")(w)),
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
    "a driver that is down => csi-missing": down("ebs-csi-controller"),
    "volumes of old without the driver => csi-missing": lambda w: (in_tree(w),
        without("ebs-csi")(w)),
    "volumes of old with the driver =>": in_tree,
    "a size that cannot be => claim-stuck": claim(
        allocatedResourceStatuses={"storage": "ControllerResizeInfeasible"}),
    "a class that cannot be => claim-stuck": claim(modifyVolumeStatus={"status": "Infeasible"}),
    "a change that failed => claim-stuck": claim(
        conditions=[{"type": "ControllerResizeError", "status": "True"}]),
    "a claim that grows =>": claim(conditions=[{"type": "Resizing", "status": "True"}]),
    "magnetic disks => slow-volume": of_class(type="sc1"),
    "io2 =>": of_class(type="io2"),
    # What is asked before a pod is made.
    "a webhook for pods that is gone => pods-refused": asked(MUTATING, "pods"),
    "one that validates => pods-refused": asked(VALIDATING, "pods"),
    "one that lets pass =>": asked(MUTATING, "pods", failurePolicy="Ignore"),
    "one that answers =>": asked(MUTATING, "pods", answered=True),
    "one for other namespaces =>": asked(
        MUTATING, "pods", namespaceSelector={"matchLabels": {"team": "web"}}),
    "one for other pods =>": asked(
        MUTATING, "pods", objectSelector={"matchLabels": {"app": "web"}}),
    "one for Deployments =>": asked(MUTATING, "deployments"),
    "one for changes of pods =>": asked(MUTATING, "pods", operations=["UPDATE"]),
    "a quota below what runs => quota": quota("shop-kafka", "4"),
    "a quota that is used up =>": quota("shop-kafka", "6"),
    "a quota elsewhere =>": quota("web", "4"),
    "Pod Security that came later => pods-refused": enforced("restricted"),
    "Pod Security that lets them =>": enforced("baseline"),
    "Pod Security, and pods that meet it =>": lambda w: (enforced("restricted")(w), restricted(w)),
    "DNS that is down => essential-down": lambda w: (deployment("eks/coredns:v1.12")(w),
        down("it")(w)),
    "DNS that runs =>": deployment("eks/coredns:v1.12"),
    # Who sends clients.
    "a load balancer over nodes => targets-by-node": balancer(),
    "a load balancer of somebody else's =>": balancer(loadBalancerClass="tailscale"),
    "bindings in another version => gate-missing lbc-backoff": rarely_preferred,
    "a controller of load balancers that is down => lbc-down lbc-backoff": lambda w: (gated(w),
        down("lbc")(w)),
}  # fmt: skip


@every_case(("change", "said"), rows(FOUND), ids=FOUND)
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


def test_pods_that_bear_a_cordon_are_found_on_managed_node_groups_too() -> None:
    world = managed(bare())
    pods(tolerations=[{"operator": "Exists"}])(world)
    assert checks(world) == {"managed-node-group", "tolerates-cordon"}


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
