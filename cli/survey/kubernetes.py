"""Reads an API server into core.survey.facts: one listing per kind, and nothing but GET."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from core.errors import StillwaterError
from core.survey.facts import (
    Balanced,
    BalancerController,
    DisruptionBudget,
    DrainCleaner,
    Kafka,
    KafkaListener,
    Node,
    NodePool,
    Pod,
    Requirement,
    TerminationHandler,
    Volume,
)
from infra.eks.api import Api, ApiError, Object

HOST = "kubernetes.io/hostname"
PODS = "strimzi.io/kind=Kafka,strimzi.io/component-type=kafka"
PAGE = 500
# The eviction of pods as a rule of a webhook names it.
EVICTION = "pods/eviction"
GATED = "elbv2.k8s.aws/pod-readiness-gate-inject"
# NTH's own defaults.
DRAIN_TIMEOUT_SECONDS = 120


def kafkas(api: Api, namespace: str | None) -> tuple[Kafka, ...]:
    found = _custom(api, "kafka.strimzi.io", "kafkas", namespace)
    return tuple(_kafka(each) for each in found or ())


def _kafka(item: Object) -> Kafka:
    spec = item["spec"]["kafka"]
    listeners = tuple(
        KafkaListener(str(each["name"]), (each.get("authentication") or {}).get("type"))
        for each in spec.get("listeners") or ()
    )
    config = {str(key): str(value) for key, value in (spec.get("config") or {}).items()}
    return Kafka(
        namespace=item["metadata"]["namespace"],
        name=item["metadata"]["name"],
        rack_aware=bool(spec.get("rack")),
        listeners=listeners,
        config=config,
    )


def pods(api: Api, namespace: str | None) -> tuple[Pod, ...]:
    return tuple(map(_pod, _items(api, "/api/v1", "pods", namespace, labelSelector=PODS)))


def _pod(item: Object) -> Pod:
    metadata, spec = item["metadata"], item["spec"]
    labels = metadata.get("labels") or {}
    claims = (each.get("persistentVolumeClaim") for each in spec.get("volumes") or ())
    return Pod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        kafka=labels.get("strimzi.io/cluster", ""),
        # Without the label it is a broker, as before there were roles.
        broker=labels.get("strimzi.io/broker-role", "true") == "true",
        node=spec.get("nodeName"),
        grace_seconds=int(spec.get("terminationGracePeriodSeconds", 30)),
        labels=labels,
        annotations=metadata.get("annotations") or {},
        readiness_gates=frozenset(g["conditionType"] for g in spec.get("readinessGates") or ()),
        claims=tuple(str(claim["claimName"]) for claim in claims if claim),
        alone_on_its_node=_alone(spec),
    )


def _alone(spec: Object) -> bool:
    affinity = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    strict = (
        each
        for each in spec.get("topologySpreadConstraints") or ()
        if each.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
    )
    return any(each.get("topologyKey") == HOST for each in (*required, *strict))


def nodes(api: Api, wanted: Iterable[Pod]) -> tuple[dict[str, Node], str | None]:
    """Return the nodes that hold the pods, and the region they say they are in."""
    names = {pod.node for pod in wanted if pod.node}
    found = {}
    regions: set[str] = set()
    for item in _items(api, "/api/v1", "nodes"):
        name, labels = item["metadata"]["name"], item["metadata"].get("labels") or {}
        if name not in names:
            continue
        provider = str(item["spec"].get("providerID") or "").rpartition("/")[2]
        if region := labels.get("topology.kubernetes.io/region"):
            regions.add(str(region))
        found[name] = Node(
            name=name,
            zone=labels.get("topology.kubernetes.io/zone"),
            instance_id=provider if provider.startswith("i-") else None,
            node_pool=labels.get("karpenter.sh/nodepool"),
            auto_mode=labels.get("eks.amazonaws.com/compute-type") == "auto",
        )
    return found, min(regions, default=None)


def budgets(api: Api, namespace: str | None) -> tuple[DisruptionBudget, ...]:
    found = _items(api, "/apis/policy/v1", "poddisruptionbudgets", namespace)
    return tuple(_budget(each) for each in found if each["spec"].get("selector") is not None)


def _budget(item: Object) -> DisruptionBudget:
    selector, status = item["spec"]["selector"], item.get("status") or {}
    return DisruptionBudget(
        namespace=item["metadata"]["namespace"],
        name=item["metadata"]["name"],
        match_labels=selector.get("matchLabels") or {},
        expressions=tuple(
            Requirement(
                key=each["key"],
                operator=each["operator"],
                values=frozenset(each.get("values") or ()),
            )
            for each in selector.get("matchExpressions") or ()
        ),
        desired_healthy=int(status.get("desiredHealthy", 0)),
        expected_pods=int(status.get("expectedPods", 0)),
    )


def workloads(api: Api) -> list[Object]:
    """Return every Deployment and DaemonSet that is meant to run."""
    return [
        item
        for kind in ("deployments", "daemonsets")
        for item in _items(api, "/apis/apps/v1", kind)
        if item["spec"].get("replicas", 1)
    ]


def handlers(found: Iterable[Object]) -> tuple[TerminationHandler, ...]:
    return tuple(
        TerminationHandler(
            title=title,
            queue_mode=_env(container, "ENABLE_SQS_TERMINATION_DRAINING", "false") == "true",
            pod_grace_seconds=int(_env(container, "POD_TERMINATION_GRACE_PERIOD", "-1")),
            drain_timeout_seconds=int(
                _env(container, "NODE_TERMINATION_GRACE_PERIOD", str(DRAIN_TIMEOUT_SECONDS))
            ),
            beats_hooks=int(_env(container, "HEARTBEAT_INTERVAL", "-1")) > 0,
        )
        for title, container in _running(found, "node-termination-handler")
    )


def cleaners(found: Iterable[Object]) -> tuple[DrainCleaner, ...]:
    return tuple(
        DrainCleaner(
            title=title,
            denies=_env(container, "STRIMZI_DENY_EVICTION", "true") == "true",
            drains_kafka=_env(container, "STRIMZI_DRAIN_KAFKA", "true") == "true",
        )
        for title, container in _running(found, "drain-cleaner")
    )


def balancer_controllers(found: Iterable[Object]) -> tuple[BalancerController, ...]:
    return tuple(
        BalancerController(title=title, version=_tag(str(container["image"])))
        for title, container in _running(found, "aws-load-balancer-controller")
    )


def _running(found: Iterable[Object], image: str) -> Iterator[tuple[str, Object]]:
    """Yield the containers whose image has a name, with the workload's title."""
    for item in found:
        for container in item["spec"]["template"]["spec"]["containers"]:
            if image in str(container.get("image", "")):
                metadata = item["metadata"]
                yield f"{metadata['namespace']}/{metadata['name']}", container


def _tag(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def _env(container: Mapping[str, Any], key: str, default: str) -> str:
    """Return a variable's value; raise where it comes from elsewhere, for that is not guessed."""
    for each in container.get("env") or ():
        if each["name"] == key:
            if "valueFrom" in each:
                raise StillwaterError(f"{key} of {container['name']} is set from another object")
            return str(each.get("value") or default).strip().lower()
    if container.get("envFrom"):
        raise StillwaterError(f"{key} of {container['name']} may be set from another object")
    return default


def eviction_webhooks(api: Api) -> tuple[str, ...]:
    kind = "validatingwebhookconfigurations"
    return tuple(
        str(item["metadata"]["name"])
        for item in _items(api, "/apis/admissionregistration.k8s.io/v1", kind)
        if any(
            EVICTION in rule.get("resources", ())
            for webhook in item.get("webhooks") or ()
            for rule in webhook.get("rules") or ()
        )
    )


def node_pools(api: Api) -> dict[str, NodePool]:
    found = _custom(api, "karpenter.sh", "nodepools", None) or ()
    return {str(item["metadata"]["name"]): _node_pool(item) for item in found}


def _node_pool(item: Object) -> NodePool:
    disruption, template = item["spec"].get("disruption") or {}, item["spec"]["template"]["spec"]
    # The resource's own defaults, where it was made without them.
    expires = str(template.get("expireAfter", "720h"))
    budgets = disruption.get("budgets", [{"nodes": "10%"}])
    always = (each for each in budgets if not each.get("schedule") and not each.get("reasons"))
    grace = template.get("terminationGracePeriod")
    return NodePool(
        name=str(item["metadata"]["name"]),
        expire_after=None if expires == "Never" else expires,
        grace=None if grace is None else str(grace),
        consolidation=str(disruption.get("consolidationPolicy", "WhenEmptyOrUnderutilized")),
        budgets=tuple(str(each.get("nodes", "10%")) for each in always),
    )


def volumes(api: Api, wanted: Iterable[Pod]) -> tuple[Volume, ...]:
    names = {(pod.namespace, claim) for pod in wanted for claim in pod.claims}
    disks = {
        item["metadata"]["name"]: item["spec"]
        for item in _items(api, "/api/v1", "persistentvolumes")
    }
    kinds = {
        item["metadata"]["name"]: item
        for item in _items(api, "/apis/storage.k8s.io/v1", "storageclasses")
    }
    found = []
    for namespace in sorted({each for each, _ in names}):
        for item in _items(api, "/api/v1", "persistentvolumeclaims", namespace):
            claim = item["metadata"]["name"]
            if (namespace, claim) in names:
                found.append(_volume(namespace, claim, item["spec"], disks, kinds))
    return tuple(found)


def _volume(
    namespace: str,
    claim: str,
    spec: Object,
    disks: Mapping[str, Object],
    kinds: Mapping[str, Object],
) -> Volume:
    name = spec.get("storageClassName")
    kind = kinds.get(name or "")
    disk = disks.get(spec.get("volumeName", ""), {})
    return Volume(
        namespace=namespace,
        claim=claim,
        reclaim=disk.get("persistentVolumeReclaimPolicy"),
        storage_class=name,
        binding=None if kind is None else kind.get("volumeBindingMode", "Immediate"),
        expandable=None if kind is None else bool(kind.get("allowVolumeExpansion")),
    )


def balanced(api: Api, namespace: str | None) -> tuple[Balanced, ...]:
    found = []
    for item in _custom(api, "elbv2.k8s.aws", "targetgroupbindings", namespace) or ():
        if item["spec"].get("targetType") == "ip":
            metadata = item["metadata"]
            where, service = metadata["namespace"], item["spec"]["serviceRef"]["name"]
            selector = _service(api, where, service).get("spec", {}).get("selector") or {}
            found.append(Balanced(namespace=where, name=metadata["name"], selector=selector))
    return tuple(found)


def _service(api: Api, namespace: str, name: str) -> Object:
    try:
        return api.get(f"/api/v1/namespaces/{namespace}/services/{name}")
    except ApiError as error:
        if error.status == 404:
            return {}
        raise


def gated_namespaces(api: Api) -> frozenset[str]:
    return frozenset(
        str(item["metadata"]["name"])
        for item in _items(api, "/api/v1", "namespaces")
        if (item["metadata"].get("labels") or {}).get(GATED) == "enabled"
    )


def _custom(api: Api, group: str, kind: str, namespace: str | None) -> list[Object] | None:
    """Return custom resources in the version the server prefers; None where it knows no such."""
    try:
        version = api.get(f"/apis/{group}")["preferredVersion"]["groupVersion"]
    except ApiError as error:
        if error.status == 404:
            return None
        raise
    return list(_items(api, f"/apis/{version}", kind, namespace))


def _items(
    api: Api, prefix: str, kind: str, namespace: str | None = None, **query: object
) -> Iterator[Object]:
    """Yield what a listing holds, over all of its pages."""
    path = f"{prefix}/{kind}" if namespace is None else f"{prefix}/namespaces/{namespace}/{kind}"
    following: str | None = None
    while following != "":
        given = {"continue": following} if following else {}
        answer = api.get(path, limit=PAGE, **given, **query)
        yield from answer.get("items") or ()
        following = (answer.get("metadata") or {}).get("continue") or ""
