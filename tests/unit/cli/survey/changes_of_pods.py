"""Changes of a healthy Kafka by which a broker that leaves may not come back, and harmless ones."""

from __future__ import annotations

from typing import Any

from tests.unit.cli.survey.hidden_changes import (
    Change,
    container_of,
    first,
)
from tests.unit.cli.survey.manifests import Item, meta, service_of, storage_class
from tests.unit.cli.survey.others import bound, every, kafka_spec
from tests.unit.cli.survey.worlds import World

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
