"""The twin's stand-in for Strimzi's cluster operator: `python -m local.kubernetes.strimzi`.

Watches Strimzi's resources and its own pods in every namespace, and makes what Strimzi 1.2.0 would
make of them, as far as this twin goes. A Kafka: Services, ConfigMaps, claims, a disruption budget,
and one pod per node that is made again, by the same name and on the same volumes, whenever it is
gone. A KafkaConnect: workers. A KafkaTopic: a topic. A KafkaUser: credentials and rights. It issues
the certificates of all of them. The real operator is in no registry.
"""

from __future__ import annotations

import base64
import logging
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from core import naming
from core.errors import InvalidInput
from local.journal import journal
from local.kubernetes import crds, dns, resolver, strimzi_resources
from local.kubernetes.client import Api, ApiError, Informer
from local.kubernetes.lookups import find
from local.kubernetes.strimzi_authorities import Authorities
from local.kubernetes.strimzi_connects import Connects
from local.kubernetes.strimzi_model import KafkaCluster, KafkaPodNode, node_ids, read
from local.kubernetes.strimzi_objects import PATHS, STRIMZI, Object, OperatorObjects, resource_path
from local.kubernetes.strimzi_rolling import start_order
from local.kubernetes.strimzi_topics import TopicOperator
from local.kubernetes.strimzi_users import UserOperator
from local.place import Place
from local.stopping import stop_event

LOG = logging.getLogger("strimzi")
FULL_RECONCILIATION_SECONDS = 120.0  # STRIMZI_FULL_RECONCILIATION_INTERVAL_MS
RETRY_SECONDS = 1.0
PAUSE = "strimzi.io/pause-reconciliation"


class Operator:
    """Brings every Kafka of one API server to what its resources say, again and again."""

    def __init__(self, api: Api, place: Place) -> None:
        self._api = api
        self._journal = journal(place)
        self._health = (place.host("kafka-health"), place.port("kafka-health"))
        self._objects = OperatorObjects(api, self._journal)
        self._wake = threading.Event()
        self._kafkas = Informer(api, f"{STRIMZI}/kafkas", self._on_change)
        self._pools = Informer(api, f"{STRIMZI}/kafkanodepools", self._on_change)
        self._pods = Informer(
            api,
            "/api/v1/pods",
            self._on_change,
            labelSelector=f"{strimzi_resources.KIND_LABEL}=Kafka",
        )
        self._authorities = Authorities(api, self._objects, self._on_change)
        self._connects = Connects(api, self._objects, self._on_change)
        self._topics = TopicOperator(api, self._objects)
        self._users = UserOperator(api, self._objects)
        self._informers = (
            *(self._kafkas, self._pools, self._pods, *self._authorities.informers),
            *(*self._connects.informers, *self._topics.informers, *self._users.informers),
        )

    def run(self, stop: threading.Event) -> None:
        """Reconcile until told to stop: on every change, and in full every two minutes."""
        for informer in self._informers:
            informer.wait_synced(60)
        threading.Thread(target=self._stop_waiting, args=(stop,), daemon=True).start()
        for operator in (self._topics, self._users):
            threading.Thread(target=operator.run, args=(stop,), daemon=True).start()
        while not stop.is_set():
            self._wake.clear()
            if stop.is_set():  # told between the two lines above: nobody wakes us again
                break
            failed = [self._reconcile_all(), self._connects.reconcile_all()]
            if not self._wake.wait(RETRY_SECONDS if any(failed) else FULL_RECONCILIATION_SECONDS):
                self._objects.forget()
        for informer in self._informers:
            informer.stop()

    def _stop_waiting(self, stop: threading.Event) -> None:
        stop.wait()
        self._wake.set()

    def _on_change(self, _event: str, _item: Object) -> None:
        self._wake.set()

    def _reconcile_all(self) -> bool:
        """Reconcile every Kafka; return whether one failed and should be tried again soon."""
        failed = False
        for kafka in list(self._kafkas.objects.values()):
            if "deletionTimestamp" in kafka["metadata"]:
                continue  # its objects name it as their owner and go with it
            try:
                self._reconcile(kafka)
            except ApiError as error:
                LOG.warning("Kafka %s: %s", kafka["metadata"]["name"], error)
                failed = True
        return failed

    def _reconcile(self, kafka: Object) -> None:
        namespace, name = kafka["metadata"]["namespace"], kafka["metadata"]["name"]
        # Read, not watched: a pool made before its Kafka must be seen with it, for the voters
        # are fixed from the first start on.
        selector = f"{naming.CLUSTER_LABEL}={name}"
        listed = self._api.get(
            f"{STRIMZI}/namespaces/{namespace}/kafkanodepools", labelSelector=selector
        )
        pools = [item for item in listed["items"] if "deletionTimestamp" not in item["metadata"]]
        cluster_id = self._cluster_id(kafka)
        ids = node_ids(pools)
        try:
            cluster = replace(read(kafka, pools, ids, cluster_id), health_agent=self._health)
        except (InvalidInput, KeyError, TypeError, ValueError) as error:
            said = f"Field {error} is missing." if isinstance(error, KeyError) else str(error)
            self._report(kafka, ready=False, reason="InvalidResource", message=said)
            return
        if _is_paused(kafka):
            # Its pods are another controller's, which pauses for nobody.
            self._reconcile_pods(cluster, roll=False)
            return
        for pool in pools:
            self._report_pool(pool, ids[pool["metadata"]["name"]], cluster)
        self._apply_all(cluster)
        waiting = self._reconcile_pods(cluster)
        self._report(
            kafka,
            ready=not waiting,
            reason="Creating" if waiting else "",
            message=f"Waiting for {', '.join(waiting)}." if waiting else "",
        )

    def _apply_all(self, cluster: KafkaCluster) -> None:
        """Apply what the pods need before them: identity, names, configuration, volumes."""
        self._objects.apply(strimzi_resources.service_account(cluster))
        for service in strimzi_resources.services(cluster):
            self._objects.apply(service)
        for node in cluster.nodes:
            self._objects.apply(strimzi_resources.config_map(cluster, node))
            for claim in strimzi_resources.claims(cluster, node):
                self._objects.apply(claim)
        if not self._has_foreign_budgets(cluster):
            self._objects.apply(strimzi_resources.budget(cluster))

    def _has_foreign_budgets(self, cluster: KafkaCluster) -> bool:
        """Say whether somebody else made a Kafka its budgets.

        The real operator is told so with STRIMZI_POD_DISRUPTION_BUDGET_GENERATION, for every Kafka
        of its own; the twin's one operator looks after Kafkas of both kinds.
        """
        name = naming.budget_of_the_staying(cluster.name)
        path = f"{PATHS['PodDisruptionBudget'].format(cluster.namespace)}/{name}"
        return find(self._api, path) is not None

    def _reconcile_pods(self, cluster: KafkaCluster, *, roll: bool = True) -> list[str]:
        """Make missing pods, remove surplus ones, restart one outdated one; return who is not
        ready yet."""
        live = {
            name: pod
            for (namespace, name), pod in self._pods.objects.items()
            if namespace == cluster.namespace
            and pod["metadata"]["labels"].get(naming.CLUSTER_LABEL) == cluster.name
        }
        issued = self._authorities.bring(cluster, live)
        wanted = {
            cluster.pod(node): self._pod(cluster, node, issued[cluster.pod(node)])
            for node in start_order(cluster.nodes)
        }
        return self._objects.bring(wanted, live, roll=roll)

    def _pod(
        self, cluster: KafkaCluster, node: KafkaPodNode, issued: Mapping[str, str]
    ) -> dict[str, Any]:
        config = strimzi_resources.config_map(cluster, node)
        return strimzi_resources.pod(cluster, node, config, issued)

    def _cluster_id(self, kafka: Object) -> str:
        """Return the id every volume is formatted with: chosen once, kept in the status."""
        known = (kafka.get("status") or {}).get("clusterId")
        if known:
            return str(known)
        # The watch may be behind our own write; a second id would not fit formatted volumes.
        path = _kafka_path(kafka)
        stored = (self._api.get(path).get("status") or {}).get("clusterId")
        if stored:
            return str(stored)
        fresh = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        # The storage tool takes an id that starts with a dash for one of its options.
        fresh = "A" + fresh[1:]
        self._api.merge(f"{path}/status", {"status": {"clusterId": fresh}})
        return fresh

    def _report(self, kafka: Object, *, ready: bool, reason: str, message: str) -> None:
        """Write the Ready condition when it changed."""
        current = self._kafkas.objects.get(
            (kafka["metadata"]["namespace"], kafka["metadata"]["name"]), kafka
        )
        flipped = self._objects.report(
            current, _kafka_path(kafka), ready=ready, reason=reason, message=message
        )
        if flipped:
            self._journal.write(
                "strimzi",
                "kafka_ready" if ready else "kafka_not_ready",
                kafka=kafka["metadata"]["name"],
                message=message,
            )

    def _report_pool(self, pool: Object, ids: Sequence[int], cluster: KafkaCluster) -> None:
        metadata = pool["metadata"]
        status = {
            "observedGeneration": metadata["generation"],
            "nodeIds": list(ids),
            "replicas": len(ids),
            "roles": list(pool["spec"]["roles"]),
            "clusterId": cluster.cluster_id,
        }
        if status.items() <= (pool.get("status") or {}).items():
            return
        self._api.merge(f"{resource_path('kafkanodepools', pool)}/status", {"status": status})


def _is_paused(kafka: Object) -> bool:
    return (kafka["metadata"].get("annotations") or {}).get(PAUSE) == "true"


def _kafka_path(kafka: Object) -> str:
    return resource_path("kafkas", kafka)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    place = Place.load()
    stop = stop_event()
    api = Api.from_kubeconfig(place.path("kubeconfig"))
    crds.install(api)
    resolver.install(place.path(dns.FILE_NAME))
    Operator(api, place).run(stop)


if __name__ == "__main__":
    main()
