"""Reads one Kafka's Strimzi resources (operator, pods to be, pools, claims); writes node pools."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from core.availability.operator import (
    Condition,
    KafkaConditions,
    OperatorView,
    kafka_conditions,
    names_pool,
    read_operator,
)
from core.cost import pricing
from core.examination import pods_wanted, roles_wanted
from core.ground.errors import StillwaterError
from core.ground.naming import CLUSTER_LABEL, EBS_CSI_DRIVER, POOL_LABEL
from core.ground.placement import quantity
from core.rotation.rebalance import Rebalance, read_rebalance, told
from core.volumes.deciding import class_of, performance_of
from core.volumes.sizing import Gp3, Performance
from core.volumes.views import Trouble
from handlers.adapters.calls import known_shape
from handlers.adapters.eks import EksApi, Json


@known_shape("The Kubernetes API")
def operator_view(api: EksApi, namespace: str, cluster: str) -> OperatorView:
    """Return what the Kafka, its pools, pod sets and rebalances tell of the operator's work.

    The Kafka is read last: a change of broker configuration shows there alone, until its end.
    """
    path = f"/apis/kafka.strimzi.io/v1/namespaces/{quote(namespace)}"
    selector = f"{CLUSTER_LABEL}={cluster}"
    sets = tuple(pod_sets(api, namespace, cluster))
    pools = tuple(api.list(f"{path}/kafkanodepools", labelSelector=selector))
    moving = tuple(rebalances(api, namespace, cluster))
    return read_operator(kafka_resource(api, namespace, cluster), pools, sets, moving)


@known_shape("The Kubernetes API")
def read_conditions(api: EksApi, namespace: str, cluster: str, region: str) -> KafkaConditions:
    """Return a Kafka's conditions and rebalances; raises StillwaterError where unreadable."""
    found = told_rebalances(api, namespace, cluster, region)
    known = kafka_conditions(kafka_resource(api, namespace, cluster))
    return replace(known, rebalances=tuple(said for each, said in found if each.is_open))


@known_shape("The Kubernetes API")
def told_rebalances(
    api: EksApi, namespace: str, cluster: str, region: str
) -> tuple[tuple[Rebalance, str], ...]:
    """Return each KafkaRebalance with what is said of it, a proposal with its figures."""
    found = (read_rebalance(each) for each in rebalances(api, namespace, cluster))
    book = pricing.book(region)
    return tuple((each, " ".join(told(each, book))) for each in found if each is not None)


def rebalances(api: EksApi, namespace: str, cluster: str) -> Iterable[Json]:
    """Return the KafkaRebalances of a Kafka; an operator may run without the kind."""
    path = f"/apis/kafka.strimzi.io/v1/namespaces/{quote(namespace)}/kafkarebalances"
    return api.list(path, of_any_kind=True, labelSelector=f"{CLUSTER_LABEL}={cluster}")


def kafka_resource(api: EksApi, namespace: str, cluster: str) -> Json:
    """Return the Kafka resource; raises StillwaterError where there is none."""
    path = f"/apis/kafka.strimzi.io/v1/namespaces/{quote(namespace)}/kafkas/{quote(cluster)}"
    found = api.find(path)
    if found is None:
        raise StillwaterError(f"Kubernetes has no Kafka {namespace}/{cluster}.")
    return found


@known_shape("The Kubernetes API")
def wanted_roles(api: EksApi, namespace: str, cluster: str) -> dict[int, str]:
    """Return the nodes that a Kafka is to have, with their roles."""
    return roles_wanted(pod_sets(api, namespace, cluster))


@known_shape("The Kubernetes API")
def wanted_pods(api: EksApi, namespace: str, cluster: str) -> frozenset[str]:
    """Return the names of the pods that a Kafka is to have."""
    return pods_wanted(pod_sets(api, namespace, cluster))


def pod_sets(api: EksApi, namespace: str, cluster: str) -> Iterable[Json]:
    """Return the StrimziPodSets of a Kafka."""
    path = f"/apis/core.strimzi.io/v1/namespaces/{quote(namespace)}/strimzipodsets"
    return api.list(path, labelSelector=f"{CLUSTER_LABEL}={cluster}")


FIELD_MANAGER = "stillwater-volumes"
FREEZE_ANNOTATION = "stillwater.dev/freeze-volumes"
CLAIM = re.compile(r"data-(?P<number>\d+)-(?P<pod>.+)")
# Of a claim's conditions, those that are no trouble of its change, and keep its pod waiting.
RESIZES = frozenset({"NodeResizePending", "NodeResizeInProgress"})
GIB = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """A KafkaNodePool's storage, and the version it was read in."""

    name: str
    version: str
    storage: Json
    frozen: str
    # Strimzi's sentence, where its operator ignores changes of the storage.
    ignored: str = ""

    @property
    @known_shape("The Kubernetes API")
    def volumes(self) -> dict[int, Gp3]:
        """What it asks for, by the volume's number; a class of another's is left out."""
        found = {}
        for entry in self.storage.get("volumes") or ():
            performance = performance_of(entry.get("volumeAttributesClass") or "")
            if entry.get("type") == "persistent-claim" and performance is not None:
                found[int(entry["id"])] = Gp3(gib(entry["size"]), performance)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimView:
    """One claim and the EBS volume behind it."""

    name: str
    pool: str
    number: int
    pod: str
    volume_id: str
    requested_gib: int
    given_gib: int
    wanted_class: str
    given_class: str
    troubles: tuple[Trouble, ...]


class EksClaims:
    """Claims and pools of an EKS cluster."""

    def __init__(self, api: EksApi, namespace: str, kafka_cluster: str) -> None:
        self._api, self._namespace, self._cluster = api, quote(namespace), kafka_cluster
        self._selector = f"{CLUSTER_LABEL}={kafka_cluster}"

    @known_shape("The Kubernetes API")
    def pools(self) -> tuple[PoolView, ...]:
        """Return the cluster's KafkaNodePools."""
        path = f"/apis/kafka.strimzi.io/v1/namespaces/{self._namespace}/kafkanodepools"
        items = self._api.list(path, labelSelector=self._selector)
        kafka = kafka_resource(self._api, self._namespace, self._cluster)
        ignored = kafka_conditions(kafka).ignored
        return tuple(_pool(item, self._namespace, ignored) for item in items)

    @known_shape("The Kubernetes API")
    def claims(self) -> tuple[ClaimView, ...]:
        """Return the claims of the cluster's Kafka nodes that have a volume."""
        handles = {
            item["metadata"]["name"]: item["spec"]["csi"]["volumeHandle"]
            for item in self._api.list("/api/v1/persistentvolumes")
            if (item["spec"].get("csi") or {}).get("driver") == EBS_CSI_DRIVER
        }
        path = f"/api/v1/namespaces/{self._namespace}/persistentvolumeclaims"
        items = self._api.list(path, labelSelector=self._selector)
        return tuple(claim for item in items if (claim := _claim(item, handles)) is not None)

    @known_shape("The Kubernetes API")
    def classes(self) -> frozenset[Performance]:
        """Return what the EBS driver's VolumeAttributesClasses of ours give."""
        items = self._api.list("/apis/storage.k8s.io/v1/volumeattributesclasses")
        found = (performance_of(item["metadata"]["name"]) for item in items)
        return frozenset(each for each in found if each is not None)

    def ask(self, pool: PoolView, wanted: Mapping[int, Gp3]) -> None:
        """Have a pool ask for volumes; raises Conflict when it was changed since it was read."""
        path = (
            f"/apis/kafka.strimzi.io/v1/namespaces/{self._namespace}/kafkanodepools/"
            f"{quote(pool.name)}"
        )
        entries = [_asking(entry, wanted) for entry in pool.storage["volumes"]]
        body = {
            "apiVersion": "kafka.strimzi.io/v1",
            "kind": "KafkaNodePool",
            # In the version it was read: who changed it meanwhile is not overwritten.
            "metadata": {"name": pool.name, "resourceVersion": pool.version},
            "spec": {"storage": {**pool.storage, "volumes": entries}},
        }
        self._api.apply(path, body, manager=FIELD_MANAGER)


def gib(written: str) -> int:
    """Return a Kubernetes quantity in whole GiB, rounded up as the driver does."""
    size = quantity(written)
    if size is None:
        raise ValueError(f"{written!r} is not a quantity of storage")
    return math.ceil(size / GIB)


def _asking(entry: Json, wanted: Mapping[int, Gp3]) -> Json:
    volume = wanted.get(int(entry["id"]))
    if volume is None:
        return entry
    changed = {
        "size": f"{volume.size_gib}Gi",
        "volumeAttributesClass": class_of(volume.performance),
    }
    return {**entry, **changed}


def _pool(item: Json, namespace: str, ignored: Iterable[Condition]) -> PoolView:
    metadata = item["metadata"]
    mine = (each for each in ignored if names_pool(each, namespace, metadata["name"]))
    return PoolView(
        name=metadata["name"],
        version=metadata["resourceVersion"],
        storage=item["spec"]["storage"],
        frozen=(metadata.get("annotations") or {}).get(FREEZE_ANNOTATION, ""),
        ignored=next((each.message for each in mine), ""),
    )


def _claim(item: Json, handles: Mapping[str, str]) -> ClaimView | None:
    """Read a Kafka node's claim; one that is not bound, or another's, is None."""
    metadata, spec = item["metadata"], item["spec"]
    status = item.get("status") or {}
    named = CLAIM.fullmatch(metadata["name"])
    handle = handles.get(spec.get("volumeName") or "")
    pool = (metadata.get("labels") or {}).get(POOL_LABEL)
    if named is None or handle is None or pool is None:
        return None
    requested = gib(spec["resources"]["requests"]["storage"])
    return ClaimView(
        name=metadata["name"],
        pool=pool,
        number=int(named["number"]),
        pod=named["pod"],
        volume_id=handle,
        requested_gib=requested,
        given_gib=gib((status.get("capacity") or {}).get("storage", f"{requested}Gi")),
        wanted_class=spec.get("volumeAttributesClassName") or "",
        given_class=status.get("currentVolumeAttributesClassName") or "",
        troubles=tuple(_troubles(metadata["name"], status)),
    )


def claim_troubles(item: Json) -> Iterator[str]:
    """Yield what keeps a claim's volume from its pod, as clauses that say what to do."""
    name, status = item["metadata"]["name"], item.get("status") or {}
    see = f"see `kubectl describe pvc {name}` and the EBS driver's log"
    if "deletionTimestamp" in item["metadata"]:
        yield f"claim {name} is being deleted, and no new pod gets it; {see}"
    if status.get("phase") not in {None, "Bound"}:
        yield f"claim {name} is {status['phase']}, with no volume; {see}"
    yield from (f"{each.sentence}; {each.remedy}" for each in _troubles(name, status))
    resizing = (status.get("allocatedResourceStatuses") or {}).get("storage")
    holding = {c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}
    for word in dict.fromkeys((resizing, *sorted(holding & RESIZES))):
        if word:
            yield f"claim {name} says {word}: its resize has not ended; {see}"


def _troubles(name: str, status: Mapping[str, Any]) -> Iterator[Trouble]:
    """Return what Kubernetes itself says is wrong with a claim's change."""
    modifying = status.get("modifyVolumeStatus") or {}
    target = modifying.get("targetVolumeAttributesClassName", "")
    # KEP-3751: Pending is a class that does not exist, Infeasible one that EC2 refused.
    if modifying.get("status") == "Pending":
        yield Trouble(
            "class-missing",
            f"claim {name} asks for VolumeAttributesClass {target}, which does not exist",
            "run `stillwater up`, which makes it, or name another in its KafkaNodePool",
        )
    if modifying.get("status") == "Infeasible":
        yield Trouble(
            "class-refused",
            f"EC2 refused to give the volume of claim {name} the performance of {target}",
            f"see `kubectl describe pvc {name}` for its words",
        )
    for condition in status.get("conditions") or ():
        if condition.get("status") != "True":
            continue
        said = condition.get("message") or "without a reason"
        if condition["type"] == "FileSystemResizePending":
            yield Trouble(
                "file-system-pending",
                f"the volume of claim {name} has grown and its file system has not ({said})",
                "Strimzi restarts its broker where the node's driver cannot grow it in use",
            )
        if condition["type"] in {"ControllerResizeError", "NodeResizeError"}:
            yield Trouble(
                "resize-refused",
                f"claim {name} cannot be resized: {said}",
                f"see `kubectl describe pvc {name}` and the EBS driver's log",
            )
