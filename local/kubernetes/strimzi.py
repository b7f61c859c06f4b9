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

from core.ground import naming
from local.journal import Journal
from local.kubernetes import crds, dns
from local.kubernetes.client import Api, ApiError, Informer, administrator, key_of
from local.kubernetes.strimzi_connect import Connects
from local.kubernetes.strimzi_objects import STRIMZI, Object, OperatorObjects, kafka_of
from local.kubernetes.strimzi_podsets import PodSetController
from local.kubernetes.strimzi_rebalance import RebalanceOperator
from local.kubernetes.strimzi_reconciliation import KafkaReconciler, Timing
from local.kubernetes.strimzi_roller import Abandoned
from local.kubernetes.strimzi_topics import TopicOperator
from local.kubernetes.strimzi_users import UserOperator
from local.place import Place
from local.stopping import stop_event

LOG = logging.getLogger("strimzi")
RETRY_SECONDS = 1.0
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
