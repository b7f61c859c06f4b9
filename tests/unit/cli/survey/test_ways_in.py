"""Clusters of others by how clients come in, what meshes and metrics do, and how bad it is."""

from __future__ import annotations

from collections.abc import Callable

from core.checks.finding import Weight
from tests.every_case import every_case
from tests.unit.cli.survey.further_changes import (
    both,
    endpoints,
    kubernetes,
    listener,
    meshed,
    no_default_route,
    operator,
    pods_labelled,
    policy,
    proxy,
    scaler,
    served,
    sidecar,
    strimzis_service,
    without_injector,
)
from tests.unit.cli.survey.hidden_changes import Change
from tests.unit.cli.survey.machines import provisioned
from tests.unit.cli.survey.others import changed, checks, own, surveyed
from tests.unit.cli.survey.test_not_strimzi import beside, container, of_it
from tests.unit.cli.survey.worlds import World, bare

OPERATOR = "quay.io/strimzi/operator"
BEFORE_V1 = served(kafka="v1beta2", core="v1beta2")
NGINX = "registry.k8s.io/ingress-nginx/controller:v1.14.0"
PASSING = "--enable-ssl-passthrough"

WAYS_IN: dict[str, tuple[Change, set[str]]] = {
    "a port of the nodes, by Strimzi": (
        both(listener("nodeport"), strimzis_service("NodePort")),
        {"node-port"},
    ),
    "a load balancer over nodes, by Strimzi": (
        both(listener("loadbalancer"), strimzis_service("LoadBalancer")),
        {"targets-by-node"},
    ),
    "an ingress by nginx": (both(listener("ingress"), proxy(NGINX, PASSING)), set()),
    "an ingress by one nginx": (
        both(listener("ingress"), proxy(NGINX, PASSING, replicas=1)),
        {"ingress-single"},
    ),
    "an ingress by nginx that ends TLS": (
        both(listener("ingress"), proxy(NGINX)),
        {"ingress-tls"},
    ),
    "an ingress by HAProxy": (
        both(listener("ingress"), proxy("haproxytech/kubernetes-ingress:3.1")),
        set(),
    ),
    "an ingress whose pods are down": (
        both(listener("ingress"), proxy(NGINX, PASSING, replicas=2, unavailableReplicas=2)),
        set(),
    ),
    "an ingress by nobody who is known": (listener("ingress"), {"ingress-unknown"}),
    "a proxy of TCP in front": (
        both(listener("cluster-ip"), proxy("haproxytech/kubernetes-ingress:3.1", replicas=1)),
        {"ingress-single"},
    ),
    "a listener for proxies, and none": (listener("cluster-ip"), set()),
    "one nginx for other things": (proxy(NGINX, replicas=1), set()),
    # Sizes.
    "a node pool that a metric scales": (
        scaler("KafkaNodePool", "mains", "shop-kafka"),
        {"size-scaled"},
    ),
    "a node pool of a fixed size": (scaler("KafkaNodePool", "mains", "shop-kafka", 3, 3), set()),
    "a Deployment that a metric scales": (scaler("Deployment", "web", "shop-kafka"), set()),
    # Meshes.
    "a sidecar of Istio's": (sidecar(), {"mesh-sidecar"}),
    "a native sidecar": (
        both(sidecar(native=True), meshed(istio_injection="enabled")),
        set(),
    ),
    "a mesh that came later": (meshed(istio_injection="enabled"), {"mesh-later"}),
    "a mesh of a revision that came later": (meshed(**{"istio.io__rev": "x"}), {"mesh-later"}),
    "a label of a mesh that is gone": (
        both(meshed(istio_injection="enabled"), without_injector),
        set(),
    ),
    "a mesh that Kafka is kept out of": (
        both(
            meshed(istio_injection="enabled"),
            pods_labelled(**{"sidecar.istio.io__inject": "false"}),
        ),
        set(),
    ),
    "an ambient mesh": (meshed(**{"istio.io__dataplane_mode": "ambient"}), set()),
}


@every_case(("change", "said"), WAYS_IN.values(), ids=WAYS_IN.keys())
def test_how_clients_come_in_and_what_stands_between_is_judged(
    change: Change, said: set[str]
) -> None:
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
    "whatever release is newest": (
        lambda: beside("apache/kafka:latest"),
        lambda _: None,
        {"image-moving"},
    ),
    "no version at all": (lambda: beside("apache/kafka"), lambda _: None, {"image-moving"}),
    "a digest": (lambda: beside("apache/kafka@sha256:0a"), lambda _: None, set()),
    "a StatefulSet that a metric scales": (
        beside,
        scaler("StatefulSet", "log", "legacy"),
        {"size-scaled"},
    ),
    "a broker by a command of its own": (
        beside,
        container(command=["sh", "-c", "sleep 5; exec kafka-server-start.sh"]),
        set(),
    ),
}


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
    "an operator that starts no more": (
        both(BEFORE_V1, operator(f"{OPERATOR}:0.43.0")),
        "strimzi-kubernetes",
        Weight.PRODUCER,
    ),
    "one that an upgrade would stop": (
        both(BEFORE_V1, operator(f"{OPERATOR}:0.43.0"), kubernetes("1.32")),
        "strimzi-kubernetes",
        Weight.ADVICE,
    ),
    "before v1 all is well today": (
        both(BEFORE_V1, operator(f"{OPERATOR}:0.48.0")),
        "strimzi-before-v1",
        Weight.ADVICE,
    ),
    "who has no endpoint at all may have a proxy": (
        no_default_route(),
        "endpoints-missing",
        Weight.UNKNOWN,
    ),
    "who has some lacks the rest": (
        both(no_default_route(), endpoints("ec2")),
        "endpoints-missing",
        Weight.PRODUCER,
    ),
    "wrong expressions may deny": (
        policy("pods", "CREATE", warning="undefined field"),
        "policy-broken",
        Weight.UNKNOWN,
    ),
    "a fence is not a lock": (
        listener("internal", authentication={}, networkPolicyPeers=[{"podSelector": {}}]),
        "listener",
        Weight.ADVICE,
    ),
    "a listener without either": (
        listener("internal", authentication={}),
        "listener",
        Weight.EXPOSED,
    ),
}


@every_case(("change", "check", "weight"), WEIGHTS.values(), ids=WEIGHTS.keys())
def test_how_bad_it_is_follows_from_what_is_known(
    change: Change, check: str, weight: Weight
) -> None:
    (found,) = (each for each in surveyed(changed(own, change)()) if each.check == check)
    assert found.weight is weight
