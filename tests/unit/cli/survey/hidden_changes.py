"""Changes that hide a danger in a healthy cluster of others, and such as only look like one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.unit.cli.survey import machines
from tests.unit.cli.survey.manifests import Item, meta, workload
from tests.unit.cli.survey.others import every, kafka_spec
from tests.unit.cli.survey.worlds import RULE, World

Change = Callable[[World], object]
# What pods of one Kafka have in common.
ALIKE = {"matchLabels": {"strimzi.io/cluster": "orders"}}
# What EventBridge needs of a queue's policy.
SENDS = {"Effect": "Allow", "Action": "sqs:SendMessage"}
EVENTS = {**SENDS, "Principal": {"Service": "events.amazonaws.com"}, "Resource": "*"}
TOPICS = {**SENDS, "Principal": {"Service": "sns.amazonaws.com"}, "Resource": "*"}


def first(kind: str, change: Callable[[Item], object]) -> Change:
    return lambda world: change(world.kinds[kind][0])


def container_of(image: str, change: Callable[[Item], object]) -> Change:
    def made(world: World) -> None:
        for kind in ("deployments", "daemonsets"):
            for each in world.kinds.get(kind, ()):
                for container in each["spec"]["template"]["spec"]["containers"]:
                    if image in container["image"]:
                        change(container)

    return made


def handler(**env: str) -> Change:
    added = [{"name": key, "value": value} for key, value in env.items()]
    return container_of("termination-handler", lambda c: c["env"].extend(added))


def rule(**detail: Any) -> Change:
    return lambda world: world.rules.__setitem__(0, {**RULE, "detail": detail})


def members(**said: Any) -> Change:
    """Say something of the instance of the first group."""

    def made(world: World) -> None:
        name = min(world.groups)
        instance = next(i for i, group in world.member_of.items() if group == name)
        world.groups[name]["Instances"] = [{"InstanceId": instance, **said}]

    return made


def group_of(**said: Any) -> Change:
    return lambda world: world.groups[min(world.groups)].update(said)


def hooks(*given: Item) -> Change:
    return lambda world: world.hooks.__setitem__(min(world.groups), list(given))


def brief(**more: Any) -> Item:
    """Return a hook that somebody has for half a minute of his own."""
    return machines.hook(**{"LifecycleHookName": "ship-logs", "HeartbeatTimeout": 30, **more})


def topic(name: str, replicas: int | None = None, **config: Any) -> Change:
    item = {
        "metadata": meta(name, "shop-kafka", labels={"strimzi.io/cluster": "orders"}),
        "spec": {"config": config, **({"replicas": replicas} if replicas else {})},
    }
    return lambda world: world.add("kafkatopics", item)


def scratch(world: World) -> None:
    """JBOD: a claim, and a second log directory that ends with the pod."""
    for each in world.kinds["pods"]:
        each["spec"]["volumes"].append({"name": "data-1", "emptyDir": {}})


def temporary(world: World) -> None:
    """What Strimzi gives every pod."""
    for each in world.kinds["pods"]:
        each["spec"]["volumes"].append({"name": "strimzi-tmp", "emptyDir": {"medium": "Memory"}})


def of_driver(driver: str, *, key: str = "topology.kubernetes.io/zone") -> Change:
    term = {"key": key, "operator": "In", "values": ["x"]}
    near = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}

    def made(world: World) -> None:
        every(world, "persistentvolumes", csi={"driver": driver}, nodeAffinity=near)

    return made


def deleted(kind: str) -> Change:
    return first(kind, lambda item: item["metadata"].update(deletionTimestamp="2026-11-01"))


def one_voter_short(world: World) -> None:
    world.kinds["pods"] = [
        p for p in world.kinds["pods"] if p["metadata"]["name"][-7:] != "votes-2"
    ]


def cron_job(image: str, **spec: Any) -> Change:
    job = workload("it", "ops", image)["spec"]["template"]
    item = {
        "metadata": meta("it", "ops"),
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": job}}, **spec},
    }
    return lambda world: world.add("cronjobs", item)


def deployment(image: str, **more: Any) -> Change:
    return lambda world: world.add("deployments", {**workload("it", "ops", image), **more})


def owned(image: str, api_version: str) -> Change:
    owner = {"apiVersion": api_version, "kind": "It", "name": "it", "uid": "0", "controller": True}

    def made(world: World) -> None:
        item = world.add("statefulsets", workload("it", "legacy", image))
        item["metadata"]["ownerReferences"] = [owner]

    return made


def without(image: str) -> Change:
    def made(world: World) -> None:
        world.kinds["deployments"] = [d for d in world.kinds["deployments"] if image not in str(d)]

    return made


def drains_by(image: str) -> Change:
    return lambda world: (without("termination-handler")(world), deployment(image)(world))


def cleaner_status(**status: Any) -> Change:
    def made(world: World) -> None:
        for each in world.kinds["deployments"]:
            if "drain-cleaner" in str(each["metadata"]["name"]):
                each["status"] = status

    return made


def unanswered(world: World) -> None:
    """Drain Cleaner scaled to none: its webhook and Service are there, and pass what they get."""
    for each in world.kinds["deployments"]:
        if "drain-cleaner" in str(each["metadata"]["name"]):
            each["spec"]["replicas"] = 0
    world.kinds["answering"] = []


def webhook_for(namespace: str) -> Change:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}

    def made(world: World) -> None:
        named = {"kubernetes.io/metadata.name": "shop-kafka"}
        world.only("namespaces")["metadata"]["labels"] = named
        (webhook,) = world.only("validatingwebhookconfigurations")["webhooks"]
        webhook["namespaceSelector"] = selector

    return made


def policy_engine(*, service: bool) -> Change:
    """Kyverno for everything, subresources too."""

    def made(world: World) -> None:
        if service:
            world.add("services", {"metadata": meta("kyverno", "ops"), "spec": {}})
        webhook = {
            "name": "validate.kyverno.svc",
            "failurePolicy": "Fail",
            "rules": [{"resources": ["*/*"], "operations": ["*"]}],
            "clientConfig": {"service": {"namespace": "ops", "name": "kyverno"}},
        }
        item = {"metadata": meta("kyverno"), "webhooks": [webhook]}
        world.add("validatingwebhookconfigurations", item)

    return made


def namespace_from(source: Item) -> Change:
    given = [{"name": "STRIMZI_NAMESPACE", "valueFrom": source}]
    return container_of("strimzi/operator", lambda c: c.update(env=given))


def refreshing(status: str) -> Change:
    return lambda world: world.refreshes.update({min(world.groups): [{"Status": status}]})


def scheduled(code: str, description: str = "soon") -> Change:
    at = datetime(2026, 12, 1, 4, 30, tzinfo=UTC)
    event = {"Code": code, "Description": description, "NotBefore": at}
    return lambda world: world.events.update({min(world.instances): [event]})


def racked(key: str) -> Change:
    return lambda world: kafka_spec(world).update(rack={"topologyKey": key})


def apart(key: str) -> Change:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"podAntiAffinity": {required: [{"topologyKey": key, "labelSelector": ALIKE}]}}
    return lambda world: every(world, "pods", affinity=affinity)


def spread(key: str) -> Change:
    rule = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    strict = [{**rule, "labelSelector": ALIKE}]
    return lambda world: every(world, "pods", affinity={}, topologySpreadConstraints=strict)


def on_demand_base(world: World) -> None:
    shares = {"OnDemandBaseCapacity": 2, "OnDemandPercentageAboveBaseCapacity": 0}
    for each in world.groups.values():
        each["MixedInstancesPolicy"] = {"InstancesDistribution": shares}


def queue(**said: Any) -> Change:
    return lambda world: world.queue_attributes.update(said)
