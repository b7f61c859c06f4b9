"""The twin's stand-in for Strimzi's cluster operator: `python -m local.kubernetes.strimzi`.

Watches Strimzi's resources and its own pods in every namespace, and makes what Strimzi 1.2.0 would
make of them, as far as this twin goes. A Kafka: Services, ConfigMaps, claims, a disruption budget,
and pod sets, from which a controller of their own makes the pods. A KafkaConnect: workers. A
KafkaTopic: a topic. A KafkaUser: credentials and rights. A KafkaRebalance: replicas that move. It
issues the certificates of all of them. The real operator is in no registry.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from core.ground import naming
from local.journal import Journal
from local.kubernetes import crds, dns
from local.kubernetes.client import (
    ENDED_PHASES,
    Api,
    ApiError,
    Informer,
    administrator,
    has_condition,
    key_of,
    tolerating,
)
from local.kubernetes.strimzi_connect import Connects
from local.kubernetes.strimzi_entities import TopicOperator, UserOperator
from local.kubernetes.strimzi_objects import PATHS, STRIMZI, Object, OperatorObjects, kafka_of
from local.kubernetes.strimzi_rebalance import RebalanceOperator
from local.kubernetes.strimzi_reconciliation import KafkaReconciler, Timing
from local.kubernetes.strimzi_resources import KIND_LABEL, POD_SET, POD_SET_API
from local.kubernetes.strimzi_roller import Abandoned, reasons_to_restart
from local.place import Place
from local.processes import stop_event

LOG = logging.getLogger("strimzi")
RETRY_SECONDS = 1.0


class PodSetController:
    """Brings the pods of every pod set; `is_owned` says whether a set's resource is still there."""

    def __init__(self, api: Api, journal: Journal, is_owned: Callable[[Object], bool]) -> None:
        self._api, self._journal, self._is_owned = api, journal, is_owned
        self._changed = threading.Event()
        self._sets = Informer(api, f"/apis/{POD_SET_API}/strimzipodsets", self._on_change)
        self._pods = Informer(
            api, "/api/v1/pods", self._on_change, labelSelector="strimzi.io/controller"
        )
        self.informers = (self._sets, self._pods)

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop: on every change, and again on what did not succeed."""
        while not stop.is_set():
            self._changed.wait(RETRY_SECONDS)
            self._changed.clear()
            for pod_set in list(self._sets.objects.values()):
                try:
                    if "deletionTimestamp" not in pod_set["metadata"] and self._is_owned(pod_set):
                        self._bring(pod_set)
                except Exception:
                    LOG.exception("StrimziPodSet %s", pod_set["metadata"]["name"])

    def _on_change(self, _event: str, _item: Object) -> None:
        self._changed.set()

    def _bring(self, pod_set: Object) -> None:
        metadata = pod_set["metadata"]
        wanted = {pod["metadata"]["name"]: pod for pod in pod_set["spec"]["pods"]}
        selector = pod_set["spec"]["selector"]["matchLabels"].items()
        live = {
            name: pod
            for (namespace, name), pod in self._pods.objects.items()
            if namespace == metadata["namespace"] and selector <= pod["metadata"]["labels"].items()
        }
        for name in wanted.keys() - live.keys():
            self._create(pod_of(pod_set, wanted[name]))
        for name, pod in live.items():
            if name not in wanted or pod.get("status", {}).get("phase") in ENDED_PHASES:
                self._delete(pod)
        status = pod_set_status(pod_set, wanted, live)
        if not status.items() <= (pod_set.get("status") or {}).items():
            path = f"{PATHS[POD_SET].format(metadata['namespace'])}/{metadata['name']}"
            self._api.merge(f"{path}/status", {"status": status})

    def _create(self, pod: Object) -> None:
        metadata = pod["metadata"]
        kafka = metadata["labels"][KIND_LABEL] == "Kafka"
        node_id = naming.node_id_of_pod(metadata["name"]) if kafka else None
        with tolerating(409):  # the watch has not shown us our own pod yet
            self._api.post(PATHS["Pod"].format(metadata["namespace"]), pod)
            self._journal.write("strimzi", "pod_created", pod=metadata["name"], node_id=node_id)

    def _delete(self, pod: Object) -> None:
        metadata = pod["metadata"]
        if "deletionTimestamp" in metadata:
            return
        with tolerating(404):
            self._api.delete(f"{PATHS['Pod'].format(metadata['namespace'])}/{metadata['name']}")
            self._journal.write("strimzi", "pod_removed", pod=metadata["name"])


def pod_of(pod_set: Object, described: Object) -> dict[str, Any]:
    """Return a pod of a pod set as it is made."""
    owner = {
        "apiVersion": POD_SET_API,
        "kind": POD_SET,
        "name": pod_set["metadata"]["name"],
        "uid": pod_set["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {**described, "metadata": {**described["metadata"], "ownerReferences": [owner]}}


def pod_set_status(
    pod_set: Object, wanted: Mapping[str, Object], live: Mapping[str, Object]
) -> dict[str, int]:
    """Return what a pod set says of its pods; `currentPods` have the revisions that it names."""
    there = {name: pod for name, pod in live.items() if name in wanted}
    return {
        "observedGeneration": pod_set["metadata"]["generation"],
        "pods": len(live.keys() | wanted.keys()),
        "readyPods": sum(has_condition(pod) for pod in there.values()),
        "currentPods": sum(
            not reasons_to_restart(pod, wanted[name]) for name, pod in there.items()
        ),
    }


Key = tuple[str, str]


class Operator:
    """Brings every resource of one API server to what it says, again and again.

    A pass over a Kafka may wait for minutes, so each Kafka has a thread of its own.
    """

    def __init__(self, api: Api, place: Place, timing: Timing) -> None:
        self._interval_seconds, self._stopped = timing.interval_seconds, threading.Event()
        self._changed = threading.Event()  # a Kafka or a KafkaConnect
        self._wakes: dict[Key, threading.Event] = {}
        facts, self._objects = Journal(place), OperatorObjects(api)
        health = place.port("kafka-health")
        self._reconciler = KafkaReconciler(api, self._objects, facts, timing, health)
        self._kafkas = Informer(api, f"{STRIMZI}/kafkas", self._on_kafka)
        self._pools = Informer(api, f"{STRIMZI}/kafkanodepools", self._on_pool)
        self._connects = Connects(api, self._objects, lambda *_: self._changed.set())
        self._topics = TopicOperator(api, self._objects)
        self._users = UserOperator(api, self._objects)
        self._rebalances = RebalanceOperator(api, self._objects)
        self._pod_sets = PodSetController(api, facts, self._is_owned)
        self._informers = (
            *(self._kafkas, self._pools, *self._pod_sets.informers),
            *(*self._connects.informers, *self._topics.informers, *self._users.informers),
            *self._rebalances.informers,
        )

    def run(self, stop: threading.Event) -> None:
        """Reconcile until told to stop: on every change, and in full at every interval."""
        for informer in self._informers:
            informer.wait_synced(60)
        threading.Thread(target=self._stop_waiting, args=(stop,), daemon=True).start()
        for operator in (self._topics, self._users, self._rebalances, self._pod_sets):
            threading.Thread(target=operator.run, args=(stop,), daemon=True).start()
        while not stop.is_set():
            self._changed.clear()
            if stop.is_set():  # told between the two lines above: nothing wakes us again
                break
            for key in self._kafkas.objects.keys() - self._wakes.keys():
                self._wakes[key] = threading.Event()
                threading.Thread(target=self._run_kafka, args=(key,), daemon=True).start()
            failed = self._connects.reconcile_all()
            self._changed.wait(RETRY_SECONDS if failed else self._interval_seconds)
        for informer in self._informers:
            informer.stop()

    def _stop_waiting(self, stop: threading.Event) -> None:
        stop.wait()
        self._stopped.set()
        self._changed.set()

    def _run_kafka(self, key: Key) -> None:
        path = f"{STRIMZI}/namespaces/{key[0]}/kafkas/{key[1]}"
        wake = self._wakes[key]

        def is_over() -> bool:
            return self._stopped.is_set() or key not in self._kafkas.objects

        while not is_over():
            wake.clear()
            pause_seconds = self._interval_seconds
            try:
                self._reconciler.reconcile(path, is_over)
            except Abandoned:
                break
            except Exception as error:
                # An API server that does not answer is no news; anything else is a fault of ours.
                LOG.warning("Kafka %s: %s", key[1], error, exc_info=not isinstance(error, ApiError))
                pause_seconds = RETRY_SECONDS
            if not wake.wait(pause_seconds):
                self._objects.forget()
        del self._wakes[key]
        self._changed.set()  # one of the same name may be there by now

    def _on_kafka(self, _event: str, kafka: Object) -> None:
        self._wake_kafka(key_of(kafka))
        self._changed.set()

    def _on_pool(self, _event: str, pool: Object) -> None:
        self._wake_kafka(kafka_of(pool))

    def _wake_kafka(self, key: Key) -> None:
        if (wake := self._wakes.get(key)) is not None:
            wake.set()

    def _is_owned(self, pod_set: Object) -> bool:
        """Say whether the Kafka or the KafkaConnect of a pod set is there."""
        kind = (pod_set["metadata"].get("labels") or {}).get(naming.KIND_LABEL)
        owners = {"Kafka": self._kafkas.objects, naming.CONNECT_KIND: self._connects.known}
        return kafka_of(pod_set) in owners.get(str(kind), {})


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    place = Place.load()
    stop = stop_event()
    api = administrator(place)
    crds.install(api)
    dns.install(place.path(dns.FILE_NAME))
    Operator(api, place, Timing.from_env()).run(stop)


if __name__ == "__main__":
    main()
