"""Clusters of others whose webhooks trust nobody any more, and brokers others may push away."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from cli.survey.kafka import lapsed_trust
from core.checks.finding import Finding
from tests.every_case import every_case
from tests.unit.certificates import issue
from tests.unit.cli.survey import worlds
from tests.unit.cli.survey.further_changes import policy
from tests.unit.cli.survey.hidden_changes import Change
from tests.unit.cli.survey.manifests import Item, meta, workload
from tests.unit.cli.survey.others import (
    changed,
    checks,
    every,
    own,
    surveyed,
    zookeeper_era,
)
from tests.unit.cli.survey.worlds import World

NGINX = "registry.k8s.io/ingress-nginx/controller:v1.14.0"
OVER, AHEAD = datetime(2021, 1, 1, tzinfo=UTC), datetime(2090, 1, 1, tzinfo=UTC)


def bundle(*ends: datetime) -> str:
    pems = "".join(issue("ca", None, each).certificate_pem for each in ends)
    return base64.b64encode(pems.encode()).decode()


def trusting(*ends: datetime, closed: bool = False) -> Change:
    """Have Drain Cleaner's webhook trust authorities that end so."""

    def made(world: World) -> None:
        (webhook,) = world.only("validatingwebhookconfigurations")["webhooks"]
        webhook["clientConfig"]["caBundle"] = bundle(*ends)
        webhook["failurePolicy"] = "Fail" if closed else "Ignore"

    return made


def asked_for_pods(url: str | None, *ends: datetime) -> Change:
    """Add a webhook that is asked before any pod is created."""
    service = {"namespace": "ops", "name": "strimzi-drain-cleaner"}
    whom: Item = {"url": url} if url else {"service": service}
    rule = {"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"]}
    webhook = {"name": "it", "rules": [rule], "clientConfig": {**whom, "caBundle": bundle(*ends)}}
    item = {"metadata": meta("it"), "webhooks": [webhook]}
    return lambda world: world.add("mutatingwebhookconfigurations", item)


def rival(priority: int, *, node: str | None = "elsewhere", **spec: Any) -> Change:
    """Add a pod of somebody else's."""
    named = {"nodeName": node} if node else {}
    item = {
        "metadata": meta("it", "shop"),
        "spec": {"containers": [], "priority": priority, **named, **spec},
    }
    return lambda world: world.add("neighbours", item)


def tainted(world: World) -> None:
    taint = {"key": "kafka", "value": "yes", "effect": "NoSchedule"}
    every(world, "nodes", taints=[taint])
    every(world, "pods", tolerations=[{"key": "kafka", "operator": "Exists"}])


def policy_of(group: str, resource: str, operation: str = "CREATE", **more: Any) -> Change:
    """Bind a policy about a resource of an API group."""
    rule = {"apiGroups": [group], "resources": [resource], "operations": [operation]}
    return policy(resource, resourceRules=[rule], **more)


def outside_system(world: World) -> None:
    """Add the system's namespace, which policies leave out by its name."""
    labels = {"kubernetes.io/metadata.name": "kube-system"}
    world.add("namespaces", {"metadata": meta("kube-system", labels=labels)})


WITHOUT_SYSTEM = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
    ]
}


def both(*changes: Change) -> Change:
    return lambda world: [change(world) for change in changes]


def streaming(service: str, replicas: int, *, named: str = "$(POD_NAMESPACE)/tcp") -> Change:
    """Have nginx send a TCP port to a Service, by a ConfigMap."""

    def made(world: World) -> None:
        proxy = workload("nginx", "ingress", NGINX, f"--tcp-services-configmap={named}")
        proxy["spec"]["replicas"] = replicas
        world.add("deployments", proxy)
        ports = {"9094": f"{service}:9094", "22": "somebody's own words"}
        world.add("configmaps", {"metadata": meta("tcp", "ingress"), "data": ports})

    return made


FOUND: dict[str, tuple[Change, set[str]]] = {
    # Webhooks whose authority has ended.
    "an eviction webhook that trusts nobody any more": (trusting(OVER), {"webhook-dead"}),
    "one that trusts the next authority as well": (trusting(OVER, AHEAD), set()),
    "one whose authority lasts": (trusting(AHEAD, closed=True), set()),
    "a pod webhook that trusts nobody any more": (asked_for_pods(None, OVER), {"pods-refused"}),
    "a pod webhook that lasts": (asked_for_pods(None, AHEAD), set()),
    "one outside that trusts nobody any more": (
        asked_for_pods("https://mutate.example/pods", OVER),
        {"pods-refused"},
    ),
    "one outside that lasts": (
        asked_for_pods("https://mutate.example/pods", AHEAD),
        {"webhook-outside"},
    ),
    # Who may push a broker off its node.
    "a pod above Kafka's waits for room": (rival(1000, node=None), {"preempted"}),
    "one of Kubernetes' own waits for room": (rival(2_000_000_000, node=None), {"preempted"}),
    "a pod above Kafka's runs elsewhere": (rival(1000), {"preemptible"}),
    "one of Kubernetes' own runs elsewhere": (rival(2_000_000_000), set()),
    "one of the usual priority waits": (rival(0, node=None), set()),
    "one whose class pushes nobody away waits": (
        rival(1000, node=None, preemptionPolicy="Never"),
        set(),
    ),
    "one that fits on no node of Kafka's waits": (
        rival(1000, node=None, nodeSelector={"pool": "batch"}),
        set(),
    ),
    "one that a taint keeps off waits": (both(rival(1000, node=None), tainted), set()),
    "one that tolerates everything waits": (
        both(rival(1000, node=None, tolerations=[{"operator": "Exists"}]), tainted),
        {"preempted"},
    ),
    "Kafka's pods are above": (
        both(rival(1000, node=None), lambda world: every(world, "pods", priority=5000)),
        set(),
    ),
    # Policies in CEL that are asked about what Stillwater would make.
    "a policy for Deployments": (policy_of("apps", "deployments"), {"policy-install"}),
    "a policy for any resource": (policy_of("*", "*"), set()),
    "a policy for Deployments that only warns": (
        policy_of("apps", "deployments", actions=("Warn",)),
        set(),
    ),
    "a policy for their deletion": (policy_of("apps", "deployments", "DELETE"), set()),
    "a policy for Deployments outside kube-system": (
        both(outside_system, policy_of("apps", "deployments", namespaceSelector=WITHOUT_SYSTEM)),
        set(),
    ),
    "a policy for roles outside kube-system": (
        both(
            outside_system,
            policy_of(
                "rbac.authorization.k8s.io", "clusterroles", namespaceSelector=WITHOUT_SYSTEM
            ),
        ),
        {"policy-install"},
    ),
    # nginx's TCP ports.
    "clients by one nginx's TCP port": (
        streaming("shop-kafka/orders-kafka-bootstrap", 1),
        {"ingress-single"},
    ),
    "clients by two of it": (streaming("shop-kafka/orders-kafka-bootstrap", 2), set()),
    "a TCP port of somebody else's": (streaming("shop/postgres", 1), set()),
    "a ConfigMap that is gone": (
        streaming("shop-kafka/orders-kafka-bootstrap", 1, named="ops/none"),
        set(),
    ),
}


@every_case(("change", "said"), FOUND.values(), ids=FOUND)
def test_what_is_left_over_is_found_and_what_is_well_is_left_in_peace(
    change: Change, said: set[str]
) -> None:
    assert checks(changed(own, change)()) == said


def keepers(*places: tuple[str, str], ready: str = "True") -> Callable[[], World]:
    """Return a Kafka of before KRaft whose ZooKeeper pods stand on these nodes, in these zones."""
    world = zookeeper_era()
    world.kinds["pods"] = [p for p in world.kinds["pods"] if "zookeeper" not in str(p["metadata"])]
    for number, (node, zone) in enumerate(places):
        name = f"orders-zookeeper-{number}"
        keeper = worlds.kafka_pod(name, "orders", "shop-kafka", ())
        keeper["metadata"]["labels"]["strimzi.io/name"] = "orders-zookeeper"
        keeper["spec"]["nodeName"] = node
        keeper["status"]["conditions"][0]["status"] = ready
        world.add("pods", keeper)
        worlds.node(world, node, zone, f"i-{node}")
    return lambda: world


A, B, C = worlds.ZONES
ENSEMBLES: dict[str, tuple[Callable[[], World], str]] = {
    "over three zones": (keepers(("x", A), ("y", B), ("z", C)), ""),
    "two in one zone": (
        keepers(("x", A), ("y", A), ("z", C)),
        f"2 of 3 ZooKeeper pods stand on zone {A}",
    ),
    "two on one node": (keepers(("x", A), ("x", A), ("z", C)), "ZooKeeper pods stand on node x"),
    "all in one zone": (
        keepers(("x", A), ("y", A), ("z", A)),
        "3 of 3 ZooKeeper pods stand on zone",
    ),
    "one missing": (keepers(("x", A), ("y", B)), "2 of 3 ZooKeeper pods are ready: none"),
    "two missing": (keepers(("x", A)), "1 of 3 ZooKeeper pods are ready: they are no majority"),
    "none ready": (keepers(("x", A), ("y", B), ("z", C), ready="False"), "0 of 3"),
}


@pytest.mark.parametrize(("build", "words"), ENSEMBLES.values(), ids=ENSEMBLES)
def test_an_ensemble_is_judged_by_its_votes(build: Callable[[], World], words: str) -> None:
    said = [each.evidence for each in surveyed(build()) if each.check == "zookeeper-votes"]
    assert [words in each for each in said] == [True] * bool(words), said


def test_a_single_zookeeper_is_no_majority_of_anything() -> None:
    world = keepers(("x", A))()
    world.only("kafkas")["spec"]["zookeeper"] = {"replicas": 1}
    (said,) = [each for each in surveyed(world) if each.check == "zookeeper-votes"]
    assert "of which none can leave" in said.evidence


def test_who_is_named_by_what_the_scheduler_may_delete() -> None:
    (found,) = [each for each in _rivalled() if each.check == "preempted"]
    assert "shop/it wait for room" in found.evidence
    assert "orders-mains-0" in found.evidence


def _rivalled() -> list[Finding]:
    return surveyed(changed(own, rival(1000, node=None))())


@pytest.mark.parametrize("written", ["", "not base64!", base64.b64encode(b"no PEM").decode()])
def test_a_bundle_that_cannot_be_read_says_nothing(written: str) -> None:
    assert lapsed_trust({"caBundle": written}, 0.0) is None
