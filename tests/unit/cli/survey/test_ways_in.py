"""How clients come in, what meshes, metrics and Strimzi do, and what bars a drain."""

from collections.abc import Callable

from core.checks.finding import Weight
from tests.every_case import every_case
from tests.unit.cli.survey.changes import (
    both,
    container_of,
    deletes_claims,
    endpoints,
    image_of_one,
    kubernetes,
    listener,
    meshed,
    neighbour,
    no_default_route,
    operator,
    pods_labelled,
    policy,
    proxy,
    scaler,
    served,
    sidecar,
    strimzis_service,
    their_budget,
    webhook,
    without_injector,
)
from tests.unit.cli.survey.machines import provisioned
from tests.unit.cli.survey.manifests import meta
from tests.unit.cli.survey.others import changed, checks, own, rows, surveyed
from tests.unit.cli.survey.platforms import pod_set
from tests.unit.cli.survey.test_odd_clusters import beside, container, of_it
from tests.unit.cli.survey.worlds import Change, World, bare

OPERATOR = "quay.io/strimzi/operator"
BEFORE_V1 = served(kafka="v1beta2", core="v1beta2")
NGINX = "registry.k8s.io/ingress-nginx/controller:v1.14.0"
PASSING = "--enable-ssl-passthrough"

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
    "a sidecar of Istio's => mesh-sidecar": sidecar(),
    "a native sidecar =>": both(sidecar(native=True), meshed(istio_injection="enabled")),
    "a mesh that came later => mesh-later": meshed(istio_injection="enabled"),
    "a mesh of a revision that came later => mesh-later": meshed(**{"istio.io__rev": "x"}),
    "a label of a mesh that is gone =>": both(meshed(istio_injection="enabled"), without_injector),
    "a mesh that Kafka is kept out of =>": both(
        meshed(istio_injection="enabled"), pods_labelled(**{"sidecar.istio.io__inject": "false"})),
    "an ambient mesh =>": meshed(**{"istio.io__dataplane_mode": "ambient"}),
}  # fmt: skip


@every_case(("change", "said"), rows(WAYS_IN), ids=WAYS_IN)
def test_how_clients_come_in_and_what_is_between_is_judged(change: Change, said: set[str]) -> None:
    assert checks(changed(own, change)()) == said


def rolled(world: World) -> None:
    world.only("statefulsets")["status"] = {"currentRevision": "a", "updateRevision": "b"}


def tool(*command: str) -> Change:
    """Let the same image run something that is no broker."""

    def made(world: World) -> None:
        template_of = world.only("statefulsets")["spec"]["template"]
        template_of["spec"]["containers"][0]["command"] = list(command)

    return made


BESIDE: dict[str, tuple[Callable[[], World], Change, set[str]]] = {
    "a StatefulSet that is rolled": (beside, rolled, {"rolling"}),
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
    tool(*command)(world)
    assert "not-strimzi" not in checks(world)


REPAIRING = {"FEATURE_GATES": "SpotToSpotConsolidation=false,NodeRepair=true"}


def test_karpenter_that_repairs_nodes_by_itself_is_found() -> None:
    world = provisioned(bare())
    (item,) = (each for each in world.kinds["deployments"] if "karpenter" in str(each["metadata"]))
    (program,) = item["spec"]["template"]["spec"]["containers"]
    program["env"] += [{"name": key, "value": value} for key, value in REPAIRING.items()]
    assert checks(world) == {"karpenter-repair"}


WEIGHTS: dict[str, tuple[Change, str, Weight]] = {
    "an operator that starts no more": (both(BEFORE_V1, operator(f"{OPERATOR}:0.43.0")),
        "strimzi-kubernetes", Weight.PRODUCER),
    "one that an upgrade would stop": (
        both(BEFORE_V1, operator(f"{OPERATOR}:0.43.0"), kubernetes("1.32")), "strimzi-kubernetes",
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


OF_STRIMZI = {"strimzi.io/kind": "Kafka", "strimzi.io/name": "orders-zookeeper"}
LEASES = {"matchLabels": {"kubernetes.io/metadata.name": "web"}}
MUTATING = "mutatingwebhookconfigurations"

STRIMZI: dict[str, Change] = {
    "0.48, before v1 => strimzi-before-v1": both(BEFORE_V1, operator(f"{OPERATOR}:0.48.0")),
    "before v1, by digest => strimzi-before-v1": both(
        BEFORE_V1, operator("mirror.example/strimzi/operator@sha256:0a")),
    "0.50 beside v1 and v1beta2 =>": both(
        operator(f"{OPERATOR}:0.50.0"), lambda w: w.only_in.update(kafkas="v1")),
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
    "pods of two images => image-skew": image_of_one("quay.io/strimzi/kafka:1.1.0-kafka-4.2.0"),
    "Connect of the same name that is rolled =>": pod_set(
        metadata=meta("orders-connect", "shop-kafka",
            labels={"strimzi.io/cluster": "orders", "strimzi.io/kind": "KafkaConnect"}),
        status={"pods": 3, "currentPods": 1}),
    "an authority of one's own => own-authority": lambda w: w.only("kafkas")["spec"].update(
        clusterCa={"generateCertificateAuthority": False}),
    "authorities that Strimzi makes =>": lambda w: w.only("kafkas")["spec"].update(
        clientsCa={"validityDays": 365}),
    "a pool that wants fewer than there are => shrinking": lambda w: w.kinds["kafkanodepools"][0][
        "spec"
    ].update(replicas=2),
    "storage that says deleteClaim => claims-deleted": deletes_claims,
    "an open listener behind networkPolicyPeers => listener": listener(
        "internal", authentication={}, networkPolicyPeers=[{"podSelector": {}}]),
}  # fmt: skip
DRAINS: dict[str, Change] = {
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


@every_case(("change", "said"), rows(STRIMZI), ids=STRIMZI)
def test_strimzis_releases_are_judged_by_what_they_read(change: Change, said: set[str]) -> None:
    assert checks(changed(own, change)()) == said


@every_case(("change", "said"), rows(DRAINS), ids=DRAINS)
def test_what_bars_a_drain_beside_kafka_is_found(change: Change, said: set[str]) -> None:
    assert checks(changed(own, change)()) == said
