"""Reads pods that are not of Strimzi's Kafkas: other Kafkas', ZooKeeper's, neighbours'.

Another Kafka is known by its operator's resource (Koperator, Confluent for Kubernetes) or by the
image of a StatefulSet or Deployment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from cli.survey.machines import PODS, has_ended, nodes, pod_of, strimzis_pod
from cli.survey.tools import (
    annotations_of,
    controller_of,
    custom,
    items,
    labels,
    name_of,
    status_of,
    title_of,
)
from core.ground.placement import is_selected, placement_of, selects
from core.model.kafka import Flavour, OtherKafka, Pod, Rival, ZooKeeperPod
from core.model.workloads import Neighbour
from infra.eks.api import Api, ApiError, Object

# Images of Kafka itself, whoever built them, without what only speaks to it.
IMAGE = re.compile(
    r"(^|/)(kafka(-native)?|cp-(enterprise-)?kafka|cp-server|confluent-server|redpanda|automq)"
    r"([:@]|$)"
)
# What starts a broker; and what else people start in such an image.
BROKER = re.compile(r"server-start|kafka\.Kafka|docker/run|entrypoint|setup\.sh|run\.sh")
TOOL = re.compile(
    r"\b(sleep|tail)\b|connect-(distributed|standalone|mirror-maker)|kafka-mirror-maker"
    r"|kafka-(topics|acls|configs|console-\w+|consumer-groups|[a-z]+-perf-test|storage)\b"
)
FLAVOURS = {"redpanda": Flavour.REDPANDA, "automq": Flavour.AUTOMQ}
KOPERATOR, CONFLUENT = "kafka.banzaicloud.io", "platform.confluent.io"
OPERATORS = {KOPERATOR: "kafkaclusters", CONFLUENT: "kafkas"}
TITLES = {KOPERATOR: "Koperator", CONFLUENT: "Confluent for Kubernetes"}
KINDS = {"statefulsets": "StatefulSet", "deployments": "Deployment"}
# What stands in their place where somebody has installed it, in the same shape.
SETS_OF_OTHERS = {
    ("apps.kruise.io", "statefulsets"): "OpenKruise's StatefulSet",
    ("apps.kruise.io", "clonesets"): "OpenKruise's CloneSet",
    ("argoproj.io", "rollouts"): "Argo's Rollout",
}
# How images take broker settings from their environment: Bitnami's, then Apache's and Confluent's.
PREFIXES = ("KAFKA_CFG_", "KAFKA_")


@dataclass(frozen=True, slots=True)
class Found:
    """A Kafka with its pods."""

    kafka: OtherKafka
    pods: tuple[Pod, ...]


def others(api: Api, namespace: str | None) -> tuple[Found, ...]:
    """Return Kafkas that are not Strimzi's, by their image or their operator's resource."""
    every = [
        (title, item)
        for kind, title in KINDS.items()
        for item in items(api, "/apis/apps/v1", kind, namespace)
    ]
    every += [
        (title, item)
        for (group, kind), title in SETS_OF_OTHERS.items()
        for item in custom(api, group, kind, namespace)
    ]
    found = [
        _operators_kafka(api, group, item, [each for _, each in every])
        for group, kind in OPERATORS.items()
        for item in custom(api, group, kind, namespace)
    ]
    for kind, item in every:
        image = _kafka_image(item)
        # One with no pods today is asleep or left over; its operator's is told of by its resource.
        if image and item["spec"].get("replicas", 1) and not _is_managed(item):
            found.append(_workloads_kafka(api, f"{kind} {title_of(item)}", image, item))
    services: dict[str, list[Object]] = {}
    for each in found:
        space = each.kafka.namespace
        if space not in services:
            services[space] = _services(api, space)
    return tuple(_reachable(each, services[each.kafka.namespace]) for each in found)


def _kafka_image(item: Object) -> str | None:
    # A Rollout may have another workload's template in place of its own.
    pod = (item["spec"].get("template") or {}).get("spec") or {}
    images = [
        str(each.get("image", "")) for each in pod.get("containers") or () if _runs_a_broker(each)
    ]
    return next((image for image in images if IMAGE.search(image)), None)


def _runs_a_broker(container: Object) -> bool:
    """Say whether a container runs what its image is for, and not a tool of the image's."""
    said = " ".join(map(str, (*(container.get("command") or ()), *(container.get("args") or ()))))
    return bool(BROKER.search(said)) or not TOOL.search(said)


def _is_managed(item: Object) -> bool:
    """Say whether a workload belongs to a resource that is Strimzi's, or named by itself."""
    owners = item["metadata"].get("ownerReferences") or ()
    groups = {str(each.get("apiVersion", "")).partition("/")[0] for each in owners}
    return (
        bool(groups & set(OPERATORS))
        or any("strimzi.io" in each for each in groups)
        or "strimzi.io/kind" in labels(item)
    )


def _workloads_kafka(api: Api, title: str, image: str, item: Object) -> Found:
    main = _main(item["spec"]["template"]["spec"])
    flavour = next((f for part, f in FLAVOURS.items() if part in image), Flavour.KAFKA)
    kafka = OtherKafka(
        namespace=str(item["metadata"]["namespace"]),
        title=title,
        image=image,
        flavour=flavour,
        replicas=int(item["spec"].get("replicas", 1)),
        config=_environment(main),
        claims_go=tuple(
            sorted(
                when
                for when, what in (
                    item["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
                ).items()
                if what == "Delete"
            )
        ),
        rolling=_is_rolled(item),
    )
    return _kafka_and_pods(kafka, lambda: list(_selected_pods(api, item)))


def _is_rolled(item: Object) -> bool:
    """Say whether a StatefulSet replaces its pods by newer ones, or has stopped half-way."""
    status = status_of(item)
    current, update = status.get("currentRevision"), status.get("updateRevision")
    return bool(current and update and current != update)


def _operators_kafka(api: Api, group: str, item: Object, workloads: Iterable[Object]) -> Found:
    space, name = str(item["metadata"]["namespace"]), name_of(item)
    spec = item.get("spec") or {}
    kafka = OtherKafka(
        namespace=space,
        title=f"{TITLES[group]} {space}/{name}",
        image=f"a Kafka of {TITLES[group]}",
        replicas=_broker_count(spec),
        config=dict(_broker_settings(group, spec)),
    )
    if group == KOPERATOR:
        chosen = f"kafka_cr={name}"
        return _kafka_and_pods(
            kafka, lambda: list(items(api, "/api/v1", "pods", space, labelSelector=chosen))
        )
    owned = [
        each
        for each in workloads
        if each["metadata"].get("namespace") == space
        and any(
            str(owner.get("apiVersion", "")).startswith(group) and owner.get("name") == name
            for owner in each["metadata"].get("ownerReferences") or ()
        )
    ]
    return _kafka_and_pods(
        kafka, lambda: [pod for each in owned for pod in _selected_pods(api, each)]
    )


def _broker_count(spec: Object) -> int | None:
    brokers = spec.get("brokers")
    if isinstance(brokers, list):
        return len(brokers)
    return None if spec.get("replicas") is None else int(spec["replicas"])


def _broker_settings(group: str, spec: Object) -> Iterator[tuple[str, str]]:
    """Yield the broker settings that an operator's resource has, as a=b by lines."""
    lines = (
        str(spec.get("readOnlyConfig") or "").splitlines()
        + str(spec.get("clusterWideConfig") or "").splitlines()
        if group == KOPERATOR
        else (spec.get("configOverrides") or {}).get("server") or ()
    )
    for line in lines:
        key, equals, value = str(line).partition("=")
        if equals:
            yield key.strip(), value.strip()


def _kafka_and_pods(kafka: OtherKafka, listed: Callable[[], list[Object]]) -> Found:
    try:
        pods = tuple(_pod(item, kafka) for item in listed() if not has_ended(item))
    except ApiError as error:
        return Found(replace(kafka, unseen=" ".join(str(error).split())), ())
    return Found(kafka, pods)


def _pod(item: Object, kafka: OtherKafka) -> Pod:
    main = _main(item["spec"])
    roles = _environment(main).get("process.roles", "broker")
    return pod_of(
        item, main, kafka=kafka.name, broker="broker" in roles, controller="controller" in roles
    )


def _main(spec: Object) -> Object:
    """Return Kafka's own container: by its image, else by its name, else the first."""
    containers: list[Object] = list(spec["containers"])
    by_image = (c for c in containers if IMAGE.search(str(c.get("image", ""))))
    by_name = (c for c in containers if c.get("name") == "kafka")
    return next(by_image, next(by_name, containers[0]))


def _environment(container: Object) -> dict[str, str]:
    """Return the broker settings that a container's environment has."""
    found: dict[str, str] = {}
    for each in container.get("env") or ():
        name = str(each.get("name"))
        prefix = next((p for p in PREFIXES if name.startswith(p)), None)
        if prefix is not None and each.get("value") is not None:
            key = name.removeprefix(prefix).lower().replace("_", ".")
            found.setdefault(key, str(each["value"]))
    return found


def _selected_pods(api: Api, workload: Object) -> Iterator[Object]:
    """Yield the pods that a workload's selector chooses, and that no other workload owns."""
    selector = workload["spec"].get("selector") or {}
    chosen: Mapping[str, str] = selector.get("matchLabels") or {}
    written = ",".join(f"{key}={value}" for key, value in sorted(chosen.items()))
    given = {"labelSelector": written} if written else {}
    name = workload["metadata"]["name"]
    for item in items(api, "/api/v1", "pods", workload["metadata"]["namespace"], **given):
        owners = {
            each["name"]
            for each in item["metadata"].get("ownerReferences") or ()
            if each.get("kind") == "StatefulSet"
        }
        if is_selected(labels(item), selector) and owners <= {name}:
            yield item


def _services(api: Api, namespace: str) -> list[Object]:
    try:
        return list(items(api, "/api/v1", "services", namespace))
    except ApiError:
        # That they could not be read is said where load balancers are.
        return []


def _reachable(found: Found, services: Iterable[Object]) -> Found:
    ways = tuple(
        sorted(
            f"Service {title_of(service)} ({_type(service)})"
            for service in services
            if (chosen := (service.get("spec") or {}).get("selector"))
            and any(selects(chosen, (), pod.labels) for pod in found.pods)
        )
    )
    return replace(found, kafka=replace(found.kafka, ways_in=ways))


def _type(service: Object) -> str:
    spec = service.get("spec") or {}
    if spec.get("clusterIP") == "None":
        return "headless, inside the cluster alone"
    kind = str(spec.get("type") or "ClusterIP")
    return "inside the cluster alone" if kind == "ClusterIP" else kind


# A pod that the kubelet runs by itself, as the API server shows it.
MIRROR = "kubernetes.io/config.mirror"
# What a drain leaves on its node.
STAYING = ("DaemonSet", "Node")


def pods_of_others(api: Api, kafkas: Collection[tuple[str, str]]) -> list[Object]:
    """Return the pods that are not Kafka's (by namespace and name), but those of every node."""
    return [
        item
        for item in items(api, "/api/v1", "pods")
        if (item["metadata"]["namespace"], item["metadata"]["name"]) not in kafkas
        and not has_ended(item)
        and MIRROR not in annotations_of(item)
        and controller_of(item) not in STAYING
    ]


def neighbours(others: Iterable[Object], nodes: Collection[str]) -> tuple[Neighbour, ...]:
    """Return what a drain of some nodes evicts beside the pods of Kafka."""
    return tuple(_neighbour(item) for item in others if item["spec"].get("nodeName") in nodes)


def rivals(others: Iterable[Object]) -> tuple[Rival, ...]:
    """Return the pods for which the scheduler may delete others of a lower priority."""
    return tuple(
        Rival(
            title_of(item),
            priority,
            placement_of(item["spec"]),
            waits=not item["spec"].get("nodeName"),
        )
        for item in others
        if (priority := int(item["spec"].get("priority") or 0)) > 0
        and item["spec"].get("preemptionPolicy", "PreemptLowerPriority") != "Never"
    )


def _neighbour(item: Object) -> Neighbour:
    return Neighbour(
        namespace=str(item["metadata"]["namespace"]),
        name=name_of(item),
        node=str(item["spec"]["nodeName"]),
        grace_seconds=int(item["spec"].get("terminationGracePeriodSeconds", 30)),
        labels=labels(item),
        alone=controller_of(item) is None,
    )


NAME = re.compile(r".+-zookeeper")


def zookeepers(api: Api, namespace: str | None) -> tuple[ZooKeeperPod, ...]:
    found = [
        strimzis_pod(item)
        for item in items(api, "/api/v1", "pods", namespace, labelSelector=PODS)
        if NAME.fullmatch(labels(item).get("strimzi.io/name", "")) and not has_ended(item)
    ]
    # Most Kafkas have none, and nobody needs to know of nodes then.
    places = nodes(api, found)[0] if found else {}
    return tuple(
        ZooKeeperPod(
            namespace=pod.namespace,
            name=pod.name,
            kafka=pod.kafka,
            ready=pod.ready is True,
            node=pod.node,
            zone=place.zone if (place := places.get(pod.node or "")) else None,
        )
        for pod in found
    )
