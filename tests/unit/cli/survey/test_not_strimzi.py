"""Kafkas that are not Strimzi's: judged as far as Kubernetes tells, and the rest named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.checks.finding import Finding, Weight
from tests.every_case import every_case
from tests.unit.cli.survey import worlds
from tests.unit.cli.survey.machines import own_groups
from tests.unit.cli.survey.manifests import Item, meta, service_of, workload
from tests.unit.cli.survey.others import surveyed
from tests.unit.cli.survey.worlds import World, bare

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


def pods(**spec: Any) -> Callable[[World], object]:
    return lambda world: [each["spec"].update(spec) for each in world.beside]


def container(**said: Any) -> Callable[[World], object]:
    return lambda world: [each["spec"]["containers"][0].update(said) for each in world.beside]


def one_zone(world: World) -> None:
    for node in world.kinds["nodes"]:
        if "log" in node["metadata"]["name"]:
            node["metadata"]["labels"]["topology.kubernetes.io/zone"] = "eu-north-1a"


BROKEN: dict[str, tuple[Callable[[World], object], set[str]]] = {
    "nothing": (lambda _: None, set()),
    "Kubernetes' own grace": (pods(terminationGracePeriodSeconds=30), {"grace"}),
    "a preStop that sleeps": (
        container(lifecycle={"preStop": {"exec": {"command": ["sh", "-c", "sleep 310"]}}}),
        {"grace"},
    ),
    "a preStop of Kubernetes' own": (
        container(lifecycle={"preStop": {"sleep": {"seconds": 400}}}),
        {"grace"},
    ),
    "no budget": (lambda w: w.kinds["poddisruptionbudgets"].pop(), {"budget-missing"}),
    "a budget of none, beside Strimzi's Drain Cleaner": (
        lambda w: w.kinds["poddisruptionbudgets"][-1]["spec"].update(maxUnavailable=0),
        {"budget-blocks"},
    ),
    "no readiness probe": (container(readinessProbe=None), {"readiness"}),
    "a probe of the port": (
        container(readinessProbe={"tcpSocket": {"port": 9092}}),
        {"readiness"},
    ),
    "nothing that keeps them apart": (pods(affinity=None), {"anti-affinity"}),
    "two on one node": (
        lambda w: w.beside[0]["spec"].update(nodeName="node-of-log-1"),
        {"shared-node"},
    ),
    "no volumes": (pods(volumes=[]), {"ephemeral"}),
    "a pod that is missing": (lambda w: w.beside.pop(), {"not-running"}),
    "all in one zone": (one_zone, {"zones", "group-moved"}),
}


def of_it(found: list[Finding]) -> set[str]:
    return {each.check for each in found} - {"not-strimzi"}


@every_case(("change", "said"), BROKEN.values(), ids=BROKEN.keys())
def test_what_kubernetes_tells_of_it_is_judged_in_the_same_words(
    change: Callable[[World], object], said: set[str]
) -> None:
    world = beside()
    change(world)
    assert of_it(surveyed(world)) == said


WRITTEN: dict[str, tuple[dict[str, str], set[str]]] = {
    "Bitnami's": ({"KAFKA_CFG_MIN_INSYNC_REPLICAS": "1"}, {"min-insync"}),
    "Apache's": ({"KAFKA_UNCLEAN_LEADER_ELECTION_ENABLE": "true"}, {"unclean-election"}),
    "two replicas": (SETTINGS | {"KAFKA_DEFAULT_REPLICATION_FACTOR": "2"}, {"replication"}),
    "none": ({"KAFKA_HEAP_OPTS": "-Xmx1g"}, set()),
}


@every_case(("env", "said"), WRITTEN.values(), ids=WRITTEN.keys())
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
    listed = world.kinds.pop("kafkas")
    item = {"metadata": meta("log", "legacy"), "spec": {"configOverrides": overrides}}

    def answer(path: str, kinds: dict[str, list[Item]] = world.kinds) -> None:
        kinds["kafkas"] = [item] if "platform.confluent.io" in path else listed

    asked = world._request

    def request(method: str, path: str, *given: Any, **named: Any) -> Item:
        answer(path)
        return asked(method, path, *given, **named)

    world._request = request  # type: ignore[method-assign]
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
