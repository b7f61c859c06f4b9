"""Reconciles one Kafka of the twin: one pass, which waits for every pod that it makes or restarts.

A Kafka keeps what it said before until a pass has ended: Ready with the old generation during a
roll. A pass that fails says NotReady, and the next one tries again (KafkaAssemblyOperator).
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.ground import naming
from core.ground.errors import InvalidInput
from local.journal import Journal
from local.kubernetes import strimzi_resources
from local.kubernetes.client import Api, find
from local.kubernetes.strimzi_authorities import Authorities
from local.kubernetes.strimzi_model import (
    KafkaCluster,
    KafkaListener,
    is_refused_storage,
    node_ids,
    read,
)
from local.kubernetes.strimzi_objects import (
    PATHS,
    READY,
    STRIMZI,
    Object,
    OperatorObjects,
    not_ready,
    resource_path,
)
from local.kubernetes.strimzi_resources import POD_SET, STORAGE, Rendered
from local.kubernetes.strimzi_roller import (
    ReconciliationFailed,
    Roller,
    asks_by_hand,
    mark,
    reasons_to_restart,
)

PAUSE = "strimzi.io/pause-reconciliation"
SKIP_SCALE_DOWN_CHECK = "strimzi.io/skip-broker-scaledown-check"
PAUSED = {"type": "ReconciliationPaused", "status": "True"}


@dataclass(frozen=True, slots=True)
class Timing:
    """How often the operator looks, and how long it waits for a pod."""

    interval_seconds: float
    operation_timeout_seconds: float

    @classmethod
    def from_env(cls) -> Timing:
        """Read Strimzi's own variables; its interval is 120 s, which the twin shortens."""
        return cls(
            int(os.environ.get("STRIMZI_FULL_RECONCILIATION_INTERVAL_MS", "20000")) / 1000,
            int(os.environ.get("STRIMZI_OPERATION_TIMEOUT_MS", "600000")) / 1000,
        )


class KafkaReconciler:
    """Brings one Kafka to what its resources say; `is_over` ends a pass that waits."""

    def __init__(
        self,
        api: Api,
        objects: OperatorObjects,
        journal: Journal,
        timing: Timing,
        health_agent_port: int,
    ) -> None:
        self._api, self._objects, self._journal, self._timing = api, objects, journal, timing
        self._authorities = Authorities(api, objects)
        self._health_agent_port = health_agent_port

    def reconcile(self, path: str, is_over: Callable[[], bool]) -> None:
        """Make one pass over the Kafka at a path."""
        kafka = find(self._api, path)
        if kafka is None or "deletionTimestamp" in kafka["metadata"]:
            return  # its objects name it as their owner and go with it
        status = kafka.get("status") or {}
        if mark(kafka, PAUSE) == "true":
            observed = status.get("observedGeneration", 0)
            self._objects.report(kafka, path, PAUSED, observedGeneration=observed)
            return
        if not status:
            started = not_ready("Creating", "Kafka cluster is being deployed")
            self._api.merge(f"{path}/status", {"status": {"conditions": [started]}})
        try:
            conditions, found = self._bring(kafka, is_over)
        except InvalidInput as error:
            conditions, found = [not_ready("InvalidResourceException", str(error))], {}
        except ReconciliationFailed as error:
            conditions, found = [not_ready(error.reason, str(error))], {}
        if self._objects.report(kafka, path, *conditions, **found):
            self._journal.write(
                "strimzi",
                "kafka_ready" if READY in conditions else "kafka_not_ready",
                kafka=kafka["metadata"]["name"],
                message=conditions[0].get("message", ""),
            )

    def _bring(
        self, kafka: Object, is_over: Callable[[], bool]
    ) -> tuple[list[Object], dict[str, Any]]:
        """Return the conditions of a pass that ended well, and what else the status says."""
        namespace, name = kafka["metadata"]["namespace"], kafka["metadata"]["name"]
        of_cluster = f"{naming.CLUSTER_LABEL}={name}"
        pools = self._listed(f"{STRIMZI}/namespaces/{namespace}/kafkanodepools", of_cluster)
        sets = self._listed(
            PATHS[POD_SET].format(namespace), f"{of_cluster},{naming.KIND_LABEL}=Kafka"
        )
        pools, warnings = with_stored_storage(pools, sets)

        def rollers(of: KafkaCluster) -> Roller:
            timeout = self._timing.operation_timeout_seconds
            return Roller(self._api, self._journal, of, timeout, is_over)

        cluster = self._read(kafka, pools)
        in_use = None if mark(kafka, SKIP_SCALE_DOWN_CHECK) == "true" else rollers(cluster).in_use
        pools, reverted = with_kept_brokers(pools, in_use)
        if reverted:
            warnings, cluster = [*warnings, *reverted], self._read(kafka, pools)
        for each, pool in cluster.pools.items():
            path = resource_path("kafkanodepools", pool)
            self._objects.report(pool, path, **pool_status(cluster, each))
        roller = rollers(cluster)
        self._roll_by_hand(cluster, roller, sets)
        self._apply_all(cluster)
        self._bring_pods(cluster, roller)
        return [READY, *warnings], {
            "listeners": [
                _listener_status(cluster, each, self._authorities.shown(cluster))
                for each in cluster.listeners
            ],
            "kafkaVersion": cluster.version,
            "kafkaMetadataVersion": cluster.metadata_version,
            "kafkaMetadataState": "KRaft",
            "operatorLastSuccessfulVersion": strimzi_resources.OPERATOR_VERSION,
            "kafkaNodePools": [{"name": pool} for pool in cluster.pools],
        }

    def _read(self, kafka: Object, pools: Sequence[Object]) -> KafkaCluster:
        try:
            cluster = read(kafka, pools, node_ids(pools), self._cluster_id(kafka))
        except (KeyError, TypeError, ValueError) as error:
            said = f"Field {error} is missing." if isinstance(error, KeyError) else str(error)
            raise InvalidInput([said]) from error
        return replace(cluster, health_agent_port=self._health_agent_port)

    def _listed(self, path: str, selector: str) -> list[Object]:
        items = self._api.get(path, labelSelector=selector)["items"]
        return [item for item in items if "deletionTimestamp" not in item["metadata"]]

    def _roll_by_hand(self, cluster: KafkaCluster, roller: Roller, sets: Iterable[Object]) -> None:
        """Restart the pods that a person asked for, and take the request away when it is done."""
        asked = [each for each in sets if asks_by_hand(each)]
        pools = {each["metadata"]["labels"][naming.POOL_LABEL] for each in asked}
        pods = self._api.get(
            PATHS["Pod"].format(cluster.namespace),
            labelSelector=f"{naming.CLUSTER_LABEL}={cluster.name},{naming.KIND_LABEL}=Kafka",
        )["items"]
        names = {pod["metadata"]["name"] for pod in pods if asks_by_hand(pod)}
        nodes = [n for n in cluster.nodes if n.pool in pools or cluster.pod(n) in names]
        roller.roll(nodes, lambda _: ["a person asked for it"], by_hand=True)
        for each in asked:
            metadata = each["metadata"]
            path = f"{PATHS[POD_SET].format(cluster.namespace)}/{metadata['name']}"
            self._api.merge(path, {"metadata": {"annotations": {naming.ROLL_ANNOTATION: None}}})

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

    def _bring_pods(self, cluster: KafkaCluster, roller: Roller) -> None:
        """Describe the pods, restart those that are outdated, wait for all; again for a new CA."""
        wanted: dict[str, Rendered] = {}
        while (now := self._pods(cluster)) != wanted:
            wanted = now
            for pool in cluster.pools:
                self._objects.apply(strimzi_resources.pod_set(cluster, pool, wanted))

            def reasons(pod: Object, wanted: Mapping[str, Object] = now) -> list[str]:
                return reasons_to_restart(pod, wanted[pod["metadata"]["name"]])

            roller.roll(cluster.nodes, reasons)
            roller.wait_for_all()

    def _pods(self, cluster: KafkaCluster) -> dict[str, Rendered]:
        paths = (
            f"{PATHS['Pod'].format(cluster.namespace)}/{cluster.pod(n)}" for n in cluster.nodes
        )
        live = [pod for pod in (find(self._api, path) for path in paths) if pod is not None]
        issued = self._authorities.bring(cluster, live)
        return {
            name: strimzi_resources.pod(cluster, node, issued[name])
            for node in cluster.nodes
            for name in (cluster.pod(node),)
        }

    def _cluster_id(self, kafka: Object) -> str:
        """Return the id every volume is formatted with: chosen once, kept in the status."""
        path = resource_path("kafkas", kafka)
        stored = (self._api.get(path).get("status") or {}).get("clusterId")
        if stored:
            return str(stored)
        fresh = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        # The storage tool takes an id that starts with a dash for one of its options.
        fresh = "A" + fresh[1:]
        self._api.merge(f"{path}/status", {"status": {"clusterId": fresh}})
        return fresh


def pool_status(cluster: KafkaCluster, pool: str) -> dict[str, Any]:
    """Return what a pool says of its nodes; a warning of it stands on the Kafka alone."""
    nodes = [node for node in cluster.nodes if node.pool == pool]
    selects = strimzi_resources.selector(cluster, **{naming.POOL_LABEL: pool})
    order = (naming.CLUSTER_LABEL, "strimzi.io/name", naming.KIND_LABEL, naming.POOL_LABEL)
    return {
        "nodeIds": [node.node_id for node in nodes],
        "replicas": len(nodes),
        "roles": list(cluster.pools[pool]["spec"]["roles"]),
        "clusterId": cluster.cluster_id,
        "labelSelector": ",".join(f"{key}={selects[key]}" for key in order),
    }


def with_stored_storage(
    pools: Iterable[Object], sets: Iterable[Object]
) -> tuple[list[Object], list[Object]]:
    """Return the pools, with the storage they have where a change is refused, and the warnings."""
    stored = {
        each["metadata"]["labels"].get(naming.POOL_LABEL): mark(each, STORAGE) for each in sets
    }
    kept, warnings = [], []
    for pool in pools:
        name, before = pool["metadata"]["name"], stored.get(pool["metadata"]["name"])
        if before is None or not is_refused_storage(pool["spec"]["storage"], before):
            kept.append(pool)
            continue
        kept.append({**pool, "spec": {**pool["spec"], "storage": json.loads(before)}})
        said = (
            f"The desired Kafka storage configuration in the KafkaNodePool resource "
            f"{pool['metadata']['namespace']}/{name} contains changes which are not allowed. As a "
            f"result, all storage changes will be ignored. Use DEBUG level logging for more "
            f"information about the detected changes."
        )
        warnings.append(_warning("KafkaStorage", said))
    return kept, warnings


def with_kept_brokers(
    pools: Iterable[Object], in_use: Callable[[], frozenset[int]] | None
) -> tuple[list[Object], list[Object]]:
    """Return the pools, as large as they are where a broker to be removed holds replicas.

    `in_use` asks Kafka for those brokers; None: nothing is checked.
    """
    told = list(pools)
    shrinking = [pool for pool in told if len(_brokers(pool)) > pool["spec"]["replicas"]]
    leaving = {n for pool in shrinking for n in _brokers(pool)[int(pool["spec"]["replicas"]) :]}
    if in_use is None or not leaving or not leaving & in_use():
        return told, []
    warnings = []
    for number, pool in enumerate(told):
        if pool in shrinking:
            name, size = pool["metadata"]["name"], len(_brokers(pool))
            told[number] = {**pool, "spec": {**pool["spec"], "replicas": size}}
            said = (
                f"Reverting scale-down of KafkaNodePool {name} by changing number of replicas to "
                f"{size}"
            )
            warnings.append(_warning("ScaleDownPreventionCheck", said))
    return told, warnings


def _warning(reason: str, message: str) -> Object:
    return {"type": "Warning", "status": "True", "reason": reason, "message": message}


def _brokers(pool: Object) -> list[int]:
    """Return the ids of a pool's nodes where they are brokers."""
    status = pool.get("status") or {}
    return sorted(status.get("nodeIds") or ()) if "broker" in (status.get("roles") or ()) else []


def _listener_status(
    cluster: KafkaCluster, listener: KafkaListener, authorities: Sequence[str]
) -> dict[str, Any]:
    name = listener.name
    service = (
        naming.bootstrap_service(cluster.name)
        if listener.type == "internal"
        else naming.listener_bootstrap_service(cluster.name, name, listener.port)
    )
    host = f"{service}.{cluster.namespace}.svc"
    return {
        "name": name,
        "addresses": [{"host": host, "port": listener.port}],
        "bootstrapServers": f"{host}:{listener.port}",
        **({"certificates": [*authorities]} if listener.tls else {}),
    }
