"""The twin's stand-in for Strimzi's cluster operator: `python -m local.kubernetes.strimzi`.

Watches Kafka, KafkaNodePool and its own pods in every namespace, and makes what Strimzi 1.2.0 would
make of them, as far as this twin goes: Services, ConfigMaps, claims, a disruption budget, and one
pod per node that is made again, by the same name and on the same volumes, whenever it is gone. It
issues no certificates and answers for no users or topics. The real operator is in no registry.
"""

from __future__ import annotations

import base64
import logging
import secrets
import signal
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from core import naming
from core.errors import InvalidInput
from local.journal import journal
from local.kubernetes import crds, strimzi_resources
from local.kubernetes.client import Api, ApiError, Informer
from local.kubernetes.strimzi_model import Cluster, Node, node_ids, read
from local.kubernetes.strimzi_rolling import is_ready, next_to_roll, revision, start_order
from local.place import Place

LOG = logging.getLogger("strimzi")
FIELD_MANAGER = "strimzi-cluster-operator"
STRIMZI = f"/apis/{crds.GROUP}/{crds.VERSION}"
FULL_RECONCILIATION_SECONDS = 120.0  # STRIMZI_FULL_RECONCILIATION_INTERVAL_MS
RETRY_SECONDS = 1.0
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Service": "/api/v1/namespaces/{}/services",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Pod": "/api/v1/namespaces/{}/pods",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
}

Object = Mapping[str, Any]


class Operator:
    """Brings every Kafka of one API server to what its resources say, again and again."""

    def __init__(self, api: Api, place: Place) -> None:
        self._api, self._place = api, place
        self._journal = journal(place)
        self._wake = threading.Event()
        self._applied: dict[str, str] = {}
        self._kafkas = Informer(api, f"{STRIMZI}/kafkas", self._changed)
        self._pools = Informer(api, f"{STRIMZI}/kafkanodepools", self._changed)
        self._pods = Informer(
            api,
            "/api/v1/pods",
            self._changed,
            labelSelector=f"{strimzi_resources.KIND_LABEL}=Kafka",
        )

    def run(self, stop: threading.Event) -> None:
        """Reconcile until told to stop: on every change, and in full every two minutes."""
        for informer in (self._kafkas, self._pools, self._pods):
            informer.wait_synced(60)
        threading.Thread(target=self._stop_waiting, args=(stop,), daemon=True).start()
        while not stop.is_set():
            self._wake.clear()
            if stop.is_set():  # told between the two lines above: nobody wakes us again
                break
            again = self._reconcile_all()
            if not self._wake.wait(RETRY_SECONDS if again else FULL_RECONCILIATION_SECONDS):
                self._applied.clear()
        for informer in (self._kafkas, self._pools, self._pods):
            informer.stop()

    def _stop_waiting(self, stop: threading.Event) -> None:
        stop.wait()
        self._wake.set()

    def _changed(self, _event: str, _item: Object) -> None:
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
            cluster = read(kafka, pools, ids, cluster_id)
        except (InvalidInput, KeyError, TypeError, ValueError) as error:
            said = f"Field {error} is missing." if isinstance(error, KeyError) else str(error)
            self._report(kafka, ready=False, reason="InvalidResource", message=said)
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

    def _apply_all(self, cluster: Cluster) -> None:
        """Apply what the pods need before them: identity, names, configuration, volumes."""
        self._apply(strimzi_resources.service_account(cluster))
        for service in strimzi_resources.services(cluster):
            self._apply(service)
        for node in cluster.nodes:
            self._apply(strimzi_resources.config_map(cluster, node, self._place.nlb_host))
            for claim in strimzi_resources.claims(cluster, node):
                self._apply(claim)
        self._apply(strimzi_resources.budget(cluster))

    def _apply(self, rendered: Object) -> None:
        """Apply an object unless the very same was applied since the last full reconciliation."""
        metadata = rendered["metadata"]
        path = f"{PATHS[rendered['kind']].format(metadata['namespace'])}/{metadata['name']}"
        digest = strimzi_resources.digest(rendered)
        if self._applied.get(path) != digest:
            self._api.apply(path, rendered, field_manager=FIELD_MANAGER)
            self._applied[path] = digest

    def _reconcile_pods(self, cluster: Cluster) -> list[str]:
        """Make missing pods, remove surplus ones, restart one outdated one; return who is not
        ready yet."""
        wanted = {
            cluster.pod(node): self._pod(cluster, node) for node in start_order(cluster.nodes)
        }
        live = {
            name: pod
            for (namespace, name), pod in self._pods.objects.items()
            if namespace == cluster.namespace
            and pod["metadata"]["labels"].get(naming.CLUSTER_LABEL) == cluster.name
        }
        for name, rendered in wanted.items():
            if name not in live:
                self._create(cluster, rendered)
        for name, pod in live.items():
            ended = pod.get("status", {}).get("phase") in {"Failed", "Succeeded"}
            if (name not in wanted or ended) and "deletionTimestamp" not in pod["metadata"]:
                self._delete(cluster, name, "pod_removed")
        outdated = next_to_roll(wanted, live)
        if outdated is not None:
            self._delete(cluster, outdated, "pod_rolled")
        return [
            name
            for name, rendered in wanted.items()
            if name not in live
            or not is_ready(live[name])
            or revision(live[name]) != revision(rendered)
        ]

    def _pod(self, cluster: Cluster, node: Node) -> dict[str, Any]:
        config = strimzi_resources.config_map(cluster, node, self._place.nlb_host)
        return strimzi_resources.pod(cluster, node, config)

    def _create(self, cluster: Cluster, rendered: Object) -> None:
        name = rendered["metadata"]["name"]
        try:
            self._api.post(PATHS["Pod"].format(cluster.namespace), rendered)
        except ApiError as error:
            if error.status != 409:  # the watch has not shown us our own pod yet
                raise
            return
        node_id = naming.node_id_of_pod(name)
        self._journal.write("strimzi", "pod_created", pod=name, node_id=node_id)

    def _delete(self, cluster: Cluster, name: str, event: str) -> None:
        try:
            self._api.delete(f"{PATHS['Pod'].format(cluster.namespace)}/{name}")
        except ApiError as error:
            if error.status != 404:
                raise
            return
        self._journal.write("strimzi", event, pod=name)

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
        status = current.get("status") or {}
        generation = kafka["metadata"]["generation"]
        condition = {"type": "Ready", "status": str(ready), "reason": reason, "message": message}
        known: Sequence[Object] = status.get("conditions") or []
        before = next((c for c in known if c["type"] == "Ready"), {})
        if status.get("observedGeneration") == generation and condition.items() <= before.items():
            return
        flipped = before.get("status") != condition["status"]
        since = _now() if flipped else before["lastTransitionTime"]
        self._api.merge(
            f"{_kafka_path(kafka)}/status",
            {
                "status": {
                    "observedGeneration": generation,
                    "conditions": [{**condition, "lastTransitionTime": since}],
                }
            },
        )
        if flipped:
            self._journal.write(
                "strimzi",
                "kafka_ready" if ready else "kafka_not_ready",
                kafka=kafka["metadata"]["name"],
                message=message,
            )

    def _report_pool(self, pool: Object, ids: Sequence[int], cluster: Cluster) -> None:
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
        where = f"{STRIMZI}/namespaces/{metadata['namespace']}/kafkanodepools/{metadata['name']}"
        self._api.merge(f"{where}/status", {"status": status})


def _kafka_path(kafka: Object) -> str:
    metadata = kafka["metadata"]
    return f"{STRIMZI}/namespaces/{metadata['namespace']}/kafkas/{metadata['name']}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    place = Place.load()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    api = Api.from_kubeconfig(place.path("kubeconfig"))
    crds.install(api)
    Operator(api, place).run(stop)


if __name__ == "__main__":
    main()
