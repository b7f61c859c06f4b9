"""Does what `up` and `destroy` need around Kafka's layer, beside the engine.

`up` waits until Strimzi's operator has carried the layer out: the engine waits for the Kafka
resource alone, which a changed KafkaNodePool leaves Ready. `destroy` of an ephemeral environment
lets brokers go before controllers, since a broker without a controller waits five minutes to stop.
A deleted KafkaNodePool is gone while its pods still stop, so no order of resources can wait for
them. Retained volumes go last: the EBS driver is told to delete them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.availability.operator import (
    KafkaConditions,
    kafka_conditions,
    operator_tasks,
    read_operator,
    remedy,
)
from core.cluster import ClusterSpec
from core.ground import naming
from core.ground.errors import StillwaterError
from core.ground.naming import (
    BROKER_ROLE_LABEL,
    CONTROLLER_ROLE_LABEL,
    EBS_CSI_DRIVER,
    KAFKA,
    STRIMZI_OPERATOR,
)
from handlers.adapters.kubernetes import kafka_pod_in
from infra.eks.api import Api, ApiError

OPERATOR_POLL_SECONDS = 5.0
# The operator writes a pool's observedGeneration before it rolls, and Warnings at the end.
QUIET_SECONDS = 60.0
Item = Mapping[str, Any]
Items = Sequence[Item]
# The operator refuses the resource: waiting does not help.
REFUSED = "InvalidResourceException"
VOLUMES = "/api/v1/persistentvolumes"
# One is detached first, which EC2 does in seconds, and deleted, which it does at once.
VOLUME_LIMIT_SECONDS = 120.0
POLL_SECONDS = 0.5
STRIMZI = "/apis/kafka.strimzi.io/v1"
# What needs a living Kafka to be let go of goes before it; Kafka goes before its pools, else its
# operator takes the missing pool for a mistake.
BEFORE_BROKERS = ("kafkaconnectors", "kafkaconnects", "kafkatopics", "kafkausers", "kafkas")
POOLS = "kafkanodepools"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
# Longer than a broker's grace, which is longer than its controlled shutdown (ADR 0005).
BROKER_LIMIT_SECONDS = 600.0
NOT_FOUND = 404


def wait_until_settled(
    api: Api,
    spec: ClusterSpec,
    say: Callable[[str], None],
    *,
    quiet_seconds: float = QUIET_SECONDS,
    limit_seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return once the operator has carried out all that was asked of a Kafka.

    Raises StillwaterError with Strimzi's own sentence where it ignored or refused something.
    """
    deadline = clock() + limit_seconds
    settled_since: float | None = None
    told = False
    while True:
        kafka, *others = _look(api, spec)
        found, missing = kafka_conditions(kafka), list(_missing(kafka, *others))
        _raise_what_stays(found, spec)
        if missing:
            settled_since = None
            if clock() >= deadline:
                raise StillwaterError(
                    f"Strimzi's operator has not carried out Kafka {spec.name} within "
                    f"{limit_seconds:.0f} s: {'; '.join(missing)}. See the operator's log, then "
                    f"run `up` again: it goes on waiting."
                )
        else:
            settled_since = clock() if settled_since is None else settled_since
            if clock() - settled_since >= quiet_seconds:
                break
        if not told:
            say("Waiting until Strimzi's operator has carried out what changed.")
            told = True
        sleep(OPERATOR_POLL_SECONDS)
    if found.objections:
        raise StillwaterError(
            f"Strimzi's operator ignored a part of the description of Kafka {spec.name}. "
            + " ".join(
                f"{each.message.rstrip('.')}. To fix it, {remedy(each)}; then run `up` again."
                for each in found.objections
            )
        )


def _look(api: Api, spec: ClusterSpec) -> tuple[Item, Items, Items, Items]:
    namespace = f"namespaces/{spec.kubernetes.namespace}"
    kafkas = f"{STRIMZI}/{namespace}"
    selector = f"{naming.CLUSTER_LABEL}={spec.name}"
    pod_sets = f"/apis/core.strimzi.io/v1/{namespace}/strimzipodsets"
    return (
        api.get(f"{kafkas}/kafkas/{spec.name}"),
        api.get(f"{kafkas}/kafkanodepools", labelSelector=selector)["items"],
        api.get(pod_sets, labelSelector=selector)["items"],
        api.get(f"/api/v1/{namespace}/pods", labelSelector=selector)["items"],
    )


def _raise_what_stays(found: KafkaConditions, spec: ClusterSpec) -> None:
    """Raise what no waiting ends."""
    if found.paused:
        raise StillwaterError(
            f"Kafka {spec.name} is paused, so Strimzi's operator carries out no change. End the "
            f"pause: `kubectl -n {spec.kubernetes.namespace} annotate kafka {spec.name} "
            f"strimzi.io/pause-reconciliation-`, then run `up` again."
        )
    trouble = found.not_ready
    if trouble is not None and trouble.reason == REFUSED and found.generation_observed:
        raise StillwaterError(
            f"Strimzi's operator refuses Kafka {spec.name}: {trouble.message}. Correct the "
            f"description, then run `up` again."
        )


def _missing(kafka: Item, pools: Items, pod_sets: Items, pods: Items) -> Iterator[str]:
    """Yield what the operator has to do, and the pods that are not Ready after it."""
    live = [pod for item in pods if (pod := kafka_pod_in(item)) is not None]
    view = read_operator(kafka, pools, pod_sets)
    tasks = (task.sentence for task in operator_tasks(view, live, (), time.time()))
    yield from (sentence.rstrip(".") for sentence in tasks)
    ready = {pod.name for pod in live if pod.ready}
    yield from (f"pod {name} is not Ready" for name in sorted(view.pods - ready))
    if not (view.kafka.ready or view.kafka.not_ready):
        yield "the operator does not say that the Kafka is Ready"


def delete_retained(
    api: Api, namespace: str, limit_seconds: float = VOLUME_LIMIT_SECONDS
) -> tuple[str, ...]:
    """Delete the volumes that a namespace's claims left behind, EBS's with them; name them."""
    left = retained_volumes(api.get(VOLUMES)["items"], namespace)
    for name in left:
        api.merge(f"{VOLUMES}/{name}", {"spec": {"persistentVolumeReclaimPolicy": "Delete"}})
    deadline = time.monotonic() + limit_seconds
    while still := set(left) & {v["metadata"]["name"] for v in api.get(VOLUMES)["items"]}:
        if time.monotonic() > deadline:
            raise StillwaterError(
                f"The EBS driver has not deleted {', '.join(sorted(still))} within "
                f"{limit_seconds:.0f} s; see its controller's log, and run destroy again."
            )
        time.sleep(POLL_SECONDS)
    return left


def namespace_volumes(volumes: list[dict[str, Any]], namespace: str) -> tuple[str, ...]:
    """Return the EBS volumes of a namespace's claims, each as its claim, size and id."""
    found = []
    for volume in volumes:
        claim = volume["spec"].get("claimRef") or {}
        csi = volume["spec"].get("csi") or {}
        if csi.get("driver") == EBS_CSI_DRIVER and claim.get("namespace") == namespace:
            size = volume["spec"].get("capacity", {}).get("storage", "of unknown size")
            found.append(f"{claim.get('name')} ({size}, {csi.get('volumeHandle')})")
    return tuple(sorted(found))


def retained_volumes(volumes: list[dict[str, Any]], namespace: str) -> tuple[str, ...]:
    """Return the EBS volumes whose claim was in a namespace and is gone."""
    return tuple(
        volume["metadata"]["name"]
        for volume in volumes
        if (volume["spec"].get("csi") or {}).get("driver") == EBS_CSI_DRIVER
        and (volume["spec"].get("claimRef") or {}).get("namespace") == namespace
        and volume["status"].get("phase") == "Released"
    )


@dataclass(frozen=True, slots=True)
class Teardown:
    """What is done before and after each layer of an ephemeral environment that is destroyed."""

    api: Callable[[], Api]
    namespace: str

    def prepare(self, layer: str) -> None:
        if layer == KAFKA:
            let_brokers_go(self.api(), self.namespace)

    def clean_up(self, layer: str) -> None:
        if layer == KAFKA:
            delete_retained(self.api(), self.namespace)
            delete_init_bindings(self.api(), self.namespace)


def let_brokers_go(api: Api, namespace: str, limit_seconds: float = BROKER_LIMIT_SECONDS) -> None:
    """Delete what a namespace's brokers serve, then the brokers, and wait until they have left.

    Nodes that are controllers too stay: their pools are the engine's to delete.
    """
    deadline = time.monotonic() + limit_seconds
    root = f"{STRIMZI}/namespaces/{namespace}"
    for plural in BEFORE_BROKERS:
        path = f"{root}/{plural}"
        for item in _items(api, path):
            _delete(api, f"{path}/{item['metadata']['name']}")
        while left := _items(api, path):
            _wait(left, deadline, limit_seconds)
    pools = [p for p in _items(api, f"{root}/{POOLS}") if p["spec"]["roles"] == ["broker"]]
    names = {pool["metadata"]["name"] for pool in pools}
    for name in sorted(names):
        _delete(api, f"{root}/{POOLS}/{name}")
    pods = f"/api/v1/namespaces/{namespace}/pods"
    selector = f"{BROKER_ROLE_LABEL}=true,{CONTROLLER_ROLE_LABEL}!=true"
    while left := _items(api, pods, labelSelector=selector):
        _wait(left, deadline, limit_seconds)


def delete_init_bindings(api: Api, namespace: str) -> None:
    """Delete the ClusterRoleBindings of a namespace that Strimzi's operator has left behind.

    It deletes them itself, unless it was away when a Kafka or a KafkaConnect went.
    """
    selector = f"app.kubernetes.io/managed-by={STRIMZI_OPERATOR}"
    for binding in _items(api, BINDINGS, labelSelector=selector):
        if {each.get("namespace") for each in binding.get("subjects") or ()} == {namespace}:
            _delete(api, f"{BINDINGS}/{binding['metadata']['name']}")


def _items(api: Api, path: str, **query: object) -> list[dict[str, Any]]:
    """Return what there is, nothing where the kind itself is not known."""
    try:
        return list(api.get(path, **query)["items"])
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
        return []


def _delete(api: Api, path: str) -> None:
    try:
        api.delete(path, {"propagationPolicy": "Background"})
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise


def _wait(left: list[dict[str, Any]], deadline: float, limit_seconds: float) -> None:
    if time.monotonic() > deadline:
        names = ", ".join(sorted(item["metadata"]["name"] for item in left))
        raise StillwaterError(
            f"{names} did not go within {limit_seconds:.0f} s; see their events and the Strimzi "
            f"operator's log, and run destroy again."
        )
    time.sleep(POLL_SECONDS)
