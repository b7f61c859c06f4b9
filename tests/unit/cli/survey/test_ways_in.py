"""How clients come in, what meshes, metrics and Strimzi do, and what bars a drain."""

from collections.abc import Callable
from typing import Any

from core.checks.finding import Weight
from tests.every_case import every_case
from tests.unit.cli.survey.changes import (
    MUTATING,
    added,
    both,
    container_of,
    endpoints,
    no_default_route,
    pod_set,
    policy,
    webhook,
)
from tests.unit.cli.survey.manifests import meta, workload
from tests.unit.cli.survey.others import changed, checks, own, rows, surveyed
from tests.unit.cli.survey.test_odd_clusters import beside, container, of_it
from tests.unit.cli.survey.worlds import Change, World, at, more

OPERATOR = "quay.io/strimzi/operator"
BEFORE_V1 = at("versions", **dict.fromkeys(("kafka.strimzi.io", "core.strimzi.io"), "v1beta2"))
NGINX = "registry.k8s.io/ingress-nginx/controller:v1.14.0"
PASSING = "--enable-ssl-passthrough"
PROXY = {"name": "istio-proxy", "image": "istio/proxyv2:1.27.0"}
NODE = "node-of-orders-mains-0"


def operator(image: str, **env: str) -> Change:
    return at("deployments.0", workload("strimzi-cluster-operator", "ops", image, **env))


def neighbour(*, grace: int = 30, owner: str | None = "ReplicaSet", **more: Any) -> Change:
    """Put a pod of somebody else beside the first broker."""
    owners = [{"kind": owner, "name": "it", "controller": True}] if owner else []
    item = {
        "metadata": meta(
            "web-0",
            "shop",
            labels={"app": "web", **more.pop("labels", {})},
            ownerReferences=owners,
            annotations=more.pop("annotations", {}),
        ),
        "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": grace, "containers": []},
        "status": more,
    }
    return added("neighbours", item)


def their_budget(name: str = "web", *, expected: int, desired: int, allowed: int) -> Change:
    item = {
        "metadata": meta(name, "shop"),
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {
            "observedGeneration": 1,
            "expectedPods": expected,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
        },
    }
    return added("poddisruptionbudgets", item)


# Ways in.
def listener(kind: str, **said: Any) -> Change:
    made = {"name": "out", "port": 9094, "type": kind, "tls": True, **said}
    made.setdefault("authentication", {"type": "tls"})
    return more("kafkas.0.spec.kafka.listeners", made)


def proxy(image: str, *args: str, replicas: int = 2, **status: Any) -> Change:
    item = workload("proxy", "edge", image, *args)
    item["spec"]["replicas"] = replicas
    return added("deployments", item | {"status": status})


def strimzis_service(kind: str) -> Change:
    item = {
        "metadata": meta("orders-mains-0", "shop-kafka", labels={"strimzi.io/cluster": "orders"}),
        "spec": {"type": kind, "selector": {"strimzi.io/name": "orders-kafka"}, "ports": []},
    }
    return added("services", item)


# Sizes, meshes, machines.
def scaler(kind: str, target: str, namespace: str, least: int = 3, most: int = 9) -> Change:
    item = {
        "metadata": meta("it", namespace),
        "spec": {
            "scaleTargetRef": {"kind": kind, "name": target},
            "minReplicas": least,
            "maxReplicas": most,
        },
    }
    return added("horizontalpodautoscalers", item)


def meshed(key: str, value: str) -> Change:
    """Label Kafka's namespace, in a cluster with Istio's injector."""
    injector = {"metadata": meta("istio-sidecar-injector-1-27")}
    return both(at("namespaces.0.metadata.labels", {key: value}), added(MUTATING, injector))


ENABLED = meshed("istio-injection", "enabled")
BESIDE_KAFKA = more("pods.*.spec.containers", PROXY)
# A sidecar that Kubernetes knows as one begins before Kafka.
NATIVE = at("pods.*.spec.initContainers", [PROXY])
CLAIMED = {"id": 0, "type": "persistent-claim", "deleteClaim": True}
OF_STRIMZI = {"strimzi.io/kind": "Kafka", "strimzi.io/name": "orders-zookeeper"}
LEASES = {"matchLabels": {"kubernetes.io/metadata.name": "web"}}
WAYS_IN: dict[str, Change] = {
    "a port of the nodes, by Strimzi => node-port": both(
        listener("nodeport"), strimzis_service("NodePort")),
    "a load balancer over nodes, by Strimzi => targets-by-node": both(
        listener("loadbalancer"), strimzis_service("LoadBalancer")),
    "an ingress by nginx =>": both(listener("ingress"), proxy(NGINX, PASSING)),
    "an ingress by one nginx => ingress-single": both(
        listener("ingress"), proxy(NGINX, PASSING, replicas=1)),
    "an ingress by nginx that ends TLS => ingress-tls": both(listener("ingress"), proxy(NGINX)),
    "an ingress by HAProxy =>": both(
        listener("ingress"), proxy("haproxytech/kubernetes-ingress:3.1")),
    "an ingress whose pods are down =>": both(
        listener("ingress"), proxy(NGINX, PASSING, replicas=2, unavailableReplicas=2)),
    "an ingress by nobody who is known => ingress-unknown": listener("ingress"),
    "a proxy of TCP in front => ingress-single": both(
        listener("cluster-ip"), proxy("haproxytech/kubernetes-ingress:3.1", replicas=1)),
    "a listener for proxies, and none =>": listener("cluster-ip"),
    "one nginx for other things =>": proxy(NGINX, replicas=1),
    # Sizes.
    "a node pool that a metric scales => size-scaled": scaler(
        "KafkaNodePool", "mains", "shop-kafka"),
    "a node pool of a fixed size =>": scaler("KafkaNodePool", "mains", "shop-kafka", 3, 3),
    "a Deployment that a metric scales =>": scaler("Deployment", "web", "shop-kafka"),
    # Meshes.
    "a sidecar of Istio's => mesh-sidecar": BESIDE_KAFKA,
    "a native sidecar =>": both(NATIVE, ENABLED),
    "a mesh that came later => mesh-later": ENABLED,
    "a mesh of a revision that came later => mesh-later": meshed("istio.io/rev", "x"),
    "a label of a mesh that is gone =>": both(ENABLED, at(MUTATING, [])),
    "a mesh that Kafka is kept out of =>": both(
        ENABLED, at("pods.*.metadata.labels", **{"sidecar.istio.io/inject": "false"})),
    "an ambient mesh =>": meshed(
        "istio.io/dataplane-mode", "ambient"),
    # Releases of Strimzi, by what they read.
    "0.48, before v1 => strimzi-before-v1": both(BEFORE_V1, operator(f"{OPERATOR}:0.48.0")),
    "before v1, by digest => strimzi-before-v1": both(
        BEFORE_V1, operator("mirror.example/strimzi/operator@sha256:0a")),
    "0.50 beside v1 and v1beta2 =>": both(
        operator(f"{OPERATOR}:0.50.0"), at("only_in", kafkas="v1")),
    "0.49 with CRDs of 0.48 => strimzi-before-v1": both(BEFORE_V1, operator(f"{OPERATOR}:0.49.1")),
    "1.2 with CRDs of 0.48 => strimzi-before-v1 strimzi-api": BEFORE_V1,
    "0.48 with CRDs of 1.0 => strimzi-api": operator(f"{OPERATOR}:0.48.0"),
    "Red Hat's release 2.9 =>": operator(
        "registry.redhat.io/amq-streams/strimzi-rhel9-operator:2.9.0"),
    "a mirror of Red Hat's release 2.9 before v1 => strimzi-before-v1": both(
        BEFORE_V1, operator("mirror.example/strimzi-rhel9-operator:2.9.0-3")),
    "a rebuild that is tagged by its day => strimzi-before-v1": both(
        BEFORE_V1, operator("mirror.example/strimzi/operator:2026.11.03")),
    "a mirror's tag with a v => strimzi-before-v1 strimzi-kubernetes": both(
        BEFORE_V1, operator("mirror.example/strimzi/operator:v0.45.0")),
    "0.45.0 on 1.34 => strimzi-before-v1 strimzi-kubernetes": both(
        BEFORE_V1, operator(f"{OPERATOR}:0.45.0")),
    "0.45.0 on 1.34, told its version => strimzi-before-v1": both(
        BEFORE_V1, operator(f"{OPERATOR}:0.45.0", STRIMZI_KUBERNETES_VERSION="major=1,minor=34")),
    "0.45.1 on 1.34 => strimzi-before-v1": both(BEFORE_V1, operator(f"{OPERATOR}:0.45.1")),
    "pods of two images => image-skew": at(
        "pods.0.spec.containers.0.image", "quay.io/strimzi/kafka:1.1.0-kafka-4.2.0"),
    "Connect of the same name that is rolled =>": pod_set(
        metadata=meta("orders-connect", "shop-kafka",
            labels={"strimzi.io/cluster": "orders", "strimzi.io/kind": "KafkaConnect"}),
        status={"pods": 3, "currentPods": 1}),
    "an authority of one's own => own-authority": at(
        "kafkas.0.spec", clusterCa={"generateCertificateAuthority": False}),
    "authorities that Strimzi makes =>": at(
        "kafkas.0.spec", clientsCa={"validityDays": 365}),
    "a pool that wants fewer than there are => shrinking": at(
        "kafkanodepools.0.spec", replicas=2),
    "storage that says deleteClaim => claims-deleted": at(
        "kafkanodepools.*.spec.storage", {"type": "jbod", "volumes": [CLAIMED]}),
    # What bars a drain beside Kafka.
    "a neighbour =>": neighbour(),
    "one of several that may leave =>": both(
        neighbour(), their_budget(expected=3, desired=2, allowed=1)),
    "one whose budget lets none leave => drain-barred": both(
        neighbour(), their_budget(expected=1, desired=1, allowed=0)),
    "one whose budget lets none leave today => drain-barred": both(
        neighbour(), their_budget(expected=3, desired=2, allowed=0)),
    "one of two budgets => drain-barred": both(neighbour(),
        their_budget(expected=3, desired=2, allowed=1),
        their_budget("too", expected=3, desired=2, allowed=1)),
    "ZooKeeper's, which Drain Cleaner moves =>": both(
        neighbour(labels=OF_STRIMZI), their_budget(expected=3, desired=3, allowed=0)),
    "ZooKeeper's, which nobody moves => drain-barred budget-blocks": both(
        neighbour(labels=OF_STRIMZI), their_budget(expected=3, desired=3, allowed=0),
        container_of("drain-cleaner", lambda c: c.update(image="example/else:1"))),
    "one of a DaemonSet under such a budget =>": both(
        neighbour(owner="DaemonSet"), their_budget(expected=1, desired=1, allowed=0)),
    "one that has ended =>": both(
        neighbour(phase="Succeeded"), their_budget(expected=1, desired=1, allowed=0)),
    "a static pod of the kubelet's =>": neighbour(
        owner=None, annotations={"kubernetes.io/config.mirror": "x"}),
    "a pod of nobody => pod-alone": neighbour(owner=None),
    "one that takes an hour to stop => drain-slow": neighbour(grace=3600),
    # What is asked on the way of a broker.
    "a node that joins, unanswered => step-refused": webhook("", "nodes", "CREATE"),
    "a node that is cordoned, unanswered => step-refused": webhook("", "nodes", "UPDATE"),
    "nodes' own word, unanswered => step-refused": webhook("", "nodes/status", "UPDATE"),
    "a lease, unanswered => step-refused": webhook("coordination.k8s.io", "leases", "*"),
    "a lease elsewhere, unanswered => step-refused": webhook(
        "coordination.k8s.io", "leases", "*", namespaceSelector=LEASES),
    "a disk that is attached, unanswered => step-refused": webhook(
        "storage.k8s.io", "volumeattachments", "CREATE"),
    "a pod that gets its node, unanswered => step-refused": webhook("", "pods/binding", "CREATE"),
    "a pod that is deleted, unanswered => step-refused": webhook("", "pods", "DELETE"),
    "the same where it may be missed =>": webhook("", "nodes", "*", failurePolicy="Ignore"),
    "nodes of some labels =>": webhook(
        "", "nodes", "*", objectSelector={"matchLabels": {"gpu": "true"}}),
    "everything that has a namespace =>": webhook("", "*", "UPDATE", scope="Namespaced"),
    "disks of another group =>": webhook("", "volumeattachments", "CREATE"),
    "evictions that are changed, unanswered => webhook-dead": webhook(
        "", "pods/eviction", "CREATE", kind=MUTATING),
    "everything that is changed, unanswered => webhook-dead pods-refused": webhook(
        "*", "*/*", "*", kind=MUTATING),
    # Policies.
    "a policy for evictions => policy-drain": policy("pods/eviction", "CREATE"),
    "a policy for nodes => policy-drain": policy("nodes", "UPDATE"),
    "a policy that warns =>": policy("pods/eviction", "CREATE", actions=("Warn", "Audit")),
    "a policy for pods =>": policy("pods", "CREATE"),
    "a policy for pods whose expressions are wrong => policy-broken": policy(
        "pods", "CREATE", warning="undefined field 'specs'"),
    "a policy for evictions elsewhere =>": policy(
        "pods/eviction", "CREATE", namespaceSelector={"matchLabels": {"team": "web"}}),
}  # fmt: skip


@every_case(("change", "said"), rows(WAYS_IN), ids=WAYS_IN)
def test_what_is_between_and_beside_is_judged(change: Change, said: set[str]) -> None:
    assert checks(changed(own, change)()) == said


BESIDE: dict[str, tuple[Callable[[], World], Change, set[str]]] = {
    "a StatefulSet that is rolled": (beside,
        at("statefulsets.0.status", {"currentRevision": "a", "updateRevision": "b"}), {"rolling"}),
    "whatever release is newest": (lambda: beside("apache/kafka:latest"), lambda _: None,
        {"image-moving"}),
    "no version at all": (lambda: beside("apache/kafka"), lambda _: None, {"image-moving"}),
    "a digest": (lambda: beside("apache/kafka@sha256:0a"), lambda _: None, set()),
    "a StatefulSet that a metric scales": (beside, scaler("StatefulSet", "log", "legacy"),
        {"size-scaled"}),
    "a broker by a command of its own": (beside,
        container(command=["sh", "-c", "sleep 5; exec kafka-server-start.sh"]), set()),
}  # fmt: skip


@every_case(("build", "change", "said"), BESIDE.values(), ids=BESIDE.keys())
def test_a_kafka_of_others_is_told_what_its_next_pod_will_be(
    build: Callable[[], World], change: Change, said: set[str]
) -> None:
    assert of_it(surveyed(changed(build, change)())) == said


TOOLS = (
    ("sleep", "infinity"),
    ("connect-distributed.sh", "/etc/connect.properties"),
    ("sh", "-c", "kafka-topics.sh --bootstrap-server x --list; tail -f /dev/null"),
    ("connect-mirror-maker.sh", "mm2.properties"),
)


@every_case("command", TOOLS)
def test_an_image_of_kafka_that_runs_a_tool_is_no_kafka(command: tuple[str, ...]) -> None:
    world = beside()
    at("statefulsets.0.spec.template.spec.containers.0.command", [*command])(world)
    assert "not-strimzi" not in checks(world)


WEIGHTS: dict[str, tuple[Change, str, Weight]] = {
    "an operator that starts no more": (both(BEFORE_V1, operator(f"{OPERATOR}:0.43.0")),
        "strimzi-kubernetes", Weight.PRODUCER),
    "one that an upgrade would stop": (
        both(BEFORE_V1, operator(f"{OPERATOR}:0.43.0"), at("around.cluster.version", "1.32"),
            at("around.versions.0.clusterVersion", "1.32")), "strimzi-kubernetes",
        Weight.ADVICE),
    "before v1 all is well today": (both(BEFORE_V1, operator(f"{OPERATOR}:0.48.0")),
        "strimzi-before-v1", Weight.ADVICE),
    "who has no endpoint at all may have a proxy": (no_default_route(), "endpoints-missing",
        Weight.UNKNOWN),
    "who has some lacks the rest": (both(no_default_route(), endpoints("ec2")), "endpoints-missing",
        Weight.PRODUCER),
    "wrong expressions may deny": (policy("pods", "CREATE", warning="undefined field"),
        "policy-broken", Weight.UNKNOWN),
    "a fence is not a lock": (
        listener("internal", authentication={}, networkPolicyPeers=[{"podSelector": {}}]),
        "listener", Weight.ADVICE),
    "a listener without either": (listener("internal", authentication={}), "listener",
        Weight.EXPOSED),
}  # fmt: skip


@every_case(("change", "check", "weight"), WEIGHTS.values(), ids=WEIGHTS.keys())
def test_how_bad_follows_from_what_is_known(change: Change, check: str, weight: Weight) -> None:
    (found,) = (each for each in surveyed(changed(own, change)()) if each.check == check)
    assert found.weight is weight
