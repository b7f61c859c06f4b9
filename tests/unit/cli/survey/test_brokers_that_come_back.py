"""Whether a broker that leaves comes back: what its pod asks for, and what the cluster refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.checks.finding import Weight
from tests.every_case import every_case
from tests.unit.cli.survey.changes_of_machines import deleted, nodes_labelled
from tests.unit.cli.survey.changes_of_pods import (
    AUTO_MODE_GATES,
    HOST,
    MUTATING,
    REMOTE,
    SHARE,
    VALIDATING,
    apart,
    asked,
    balancer,
    choosing,
    claim,
    configured,
    down,
    ended,
    enforced,
    gated,
    heap,
    in_tree,
    marked,
    of_class,
    of_versions,
    pinned,
    pinned_by_field,
    pods,
    quota,
    rarely_preferred,
    restricted,
    selecting,
)
from tests.unit.cli.survey.hidden_changes import (
    ALIKE,
    Change,
    container_of,
    deployment,
    first,
    of_driver,
    without,
)
from tests.unit.cli.survey.machines import managed, provisioned
from tests.unit.cli.survey.others import bound, checks, kafka_spec, own, surveyed
from tests.unit.cli.survey.worlds import World, bare

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
    "more replicas than brokers": (
        configured(default_replication_factor=5),
        {"too-few-brokers"},
    ),
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
def test_what_auto_mode_has_inside_itself_is_not_missed(
    build: Callable[[], World], said: set[str]
) -> None:
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
