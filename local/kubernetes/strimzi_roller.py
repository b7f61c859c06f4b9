"""Restarts the pods of one Kafka one after another: which, why, and what hinders it.

Decisions over what the API server and Kafka show come first, by Strimzi's rules (KafkaAvailability,
KafkaQuorumCheck, KafkaNodeConfigurationDiff), then whoever acts on them (KafkaRoller).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from core.ground import naming
from core.ground.errors import StillwaterError
from core.views import ClusterView
from handlers.adapters.kafka import KafkaAdmin
from local.journal import Journal
from local.kafka.run import SMALL_HEAP_DEFAULTS
from local.kubernetes.client import Api, find, has_condition, tolerating
from local.kubernetes.strimzi_admin import OperatorAccess, admin, answers, bootstrap
from local.kubernetes.strimzi_config import described_settings, own_settings
from local.kubernetes.strimzi_model import KafkaCluster, KafkaPodNode
from local.kubernetes.strimzi_objects import PATHS
from local.kubernetes.strimzi_resources import RESOURCE_REVISION, REVISION

Object = Mapping[str, Any]
STUCK = {"CrashLoopBackOff", "ImagePullBackOff", "ContainerCreating"}
# Where a value is this broker's own; a cluster's default, such as min.insync.replicas since
# KIP-966, cannot be unset on one of them.
OF_THE_BROKER = {"STATIC_BROKER_CONFIG", "DYNAMIC_BROKER_CONFIG"}
# In no model of a broker's configuration, so Strimzi takes it for somebody else's.
THROTTLE = ".throttled."


def is_ready(item: Object) -> bool:
    """Say whether a pod, or a resource of Strimzi's, is Ready and staying."""
    return "deletionTimestamp" not in item["metadata"] and has_condition(item)


def is_stuck(pod: Object) -> bool:
    """Say whether a pod cannot be scheduled, or has a container that does not start."""
    status = pod.get("status") or {}
    unschedulable = status.get("phase") == "Pending" and any(
        c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable"
        for c in status.get("conditions") or ()
    )
    states = [each.get("state") or {} for each in status.get("containerStatuses") or ()]
    return unschedulable or any(
        (state.get("waiting") or {}).get("reason") in STUCK for state in states
    )


def next_to_roll(wanted: Mapping[str, Object], live: Mapping[str, Object]) -> str | None:
    """Return the worker of Connect to restart: one at a time, those first that are not ready.

    Nothing is restarted while any other pod is missing, going or not ready.
    """
    outdated = [
        name
        for name, pod in live.items()
        if name in wanted
        and "deletionTimestamp" not in pod["metadata"]
        and reasons_to_restart(pod, wanted[name])
    ]
    unready = {name for name in wanted if name not in live or not is_ready(live[name])}
    return next((name for name in sorted(outdated) if unready <= {name}), None)


def reasons_to_restart(pod: Object, wanted: Object) -> list[str]:
    """Return why a pod is no longer what its pod set describes."""
    return [
        f"{annotation} differs"
        for annotation in (REVISION, RESOURCE_REVISION)
        if mark(pod, annotation) != mark(wanted, annotation)
    ]


def asks_by_hand(item: Object) -> bool:
    """Say whether a person asked for a restart of a pod, or of all pods of a pod set."""
    return mark(item, naming.ROLL_ANNOTATION) == "true"


def mark(item: Object, annotation: str) -> str | None:
    value: str | None = (item["metadata"].get("annotations") or {}).get(annotation)
    return value


def roll_order(nodes: Iterable[tuple[KafkaPodNode, bool]]) -> list[list[KafkaPodNode]]:
    """Return the controllers, then the brokers; of both those first that are not ready."""
    ordered = sorted(nodes, key=lambda each: (each[1], each[0].node_id))
    controllers = [node for node, _ in ordered if node.is_controller]
    return [controllers, [node for node, _ in ordered if not node.is_controller]]


def hindrance(node: KafkaPodNode, view: ClusterView) -> str:
    """Return why Kafka cannot do without a node now; empty: it can."""
    if node.is_controller:
        others = [voter for voter in view.voters if voter.node_id != node.node_id]
        caught_up = sum(voter.caught_up for voter in others)
        # A quorum of one has nothing to lose by waiting.
        if others and caught_up < (len(view.voters) + 1) // 2:
            return f"only {caught_up} of {len(view.voters)} controllers would be caught up"
    if node.is_broker:
        for partition in view.held_by(node.node_id):
            spare = len(partition.isr) - partition.min_isr
            is_needed = spare < 0 or (spare == 0 and node.node_id in partition.isr)
            if partition.keepable and is_needed:
                return f"{partition.name} has {len(partition.isr)} replicas in sync"
    return ""


def configuration_changes(
    described: Mapping[str, str], own: Mapping[str, str], found: Mapping[str, Object]
) -> dict[str, str | None]:
    """Return what a broker's configuration lacks; None: the key is to be unset.

    `found` is what the broker says of itself. What it does not know, and what the operator itself
    decides, is left alone.
    """
    changes: dict[str, str | None] = {
        key: value
        for key, value in described.items()
        if key in found and found[key]["value"] not in {value, None}
    }
    ours = described.keys() | own.keys() | SMALL_HEAP_DEFAULTS.keys() | {"broker.id"}
    changes |= {
        key: None
        for key, entry in found.items()
        if key not in ours and entry["config_source"] in OF_THE_BROKER and THROTTLE not in key
    }
    return changes


LOG = logging.getLogger("strimzi")
POLL_SECONDS = 0.2
# A pod that Kafka cannot do without yet is looked at again after each of these.
BACKOFF_SECONDS = tuple(0.25 * 2**attempt for attempt in range(9))

Reasons = Callable[[Object], Sequence[str]]
T = TypeVar("T")


class ReconciliationFailed(StillwaterError):
    """A pass that ended early; `reason` is the name of Strimzi's exception."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class Abandoned(Exception):
    """The Kafka has gone, or the operator ends."""


class _NotNow(Exception):
    """A pod that has to wait its turn."""


class Roller:
    """The operator's hand on the pods of one Kafka, during one pass."""

    def __init__(
        self,
        api: Api,
        journal: Journal,
        cluster: KafkaCluster,
        timeout_seconds: float,
        is_over: Callable[[], bool],
    ) -> None:
        self._api, self._journal, self._cluster = api, journal, cluster
        self._timeout_seconds, self._is_over = timeout_seconds, is_over

    def roll(
        self, nodes: Iterable[KafkaPodNode], reasons: Reasons, *, by_hand: bool = False
    ) -> None:
        """Restart the pods with a reason and, unless a person asked, configure the brokers.

        Raises ReconciliationFailed where a pod does not become ready or may not be restarted.
        """
        pods = [(node, self._pod(node)) for node in nodes]
        for part in roll_order((node, bool(pod and is_ready(pod))) for node, pod in pods):
            self._roll_part(part, reasons, by_hand=by_hand)

    def _roll_part(
        self, waiting: Sequence[KafkaPodNode], reasons: Reasons, *, by_hand: bool
    ) -> None:
        pauses = iter(BACKOFF_SECONDS)
        while waiting:
            later = []
            for node in waiting:
                try:
                    self._bring(node, reasons, by_hand=by_hand, others=len(waiting) > 1)
                except _NotNow as error:
                    LOG.info("%s", error)
                    later.append((node, str(error)))
            if len(later) == len(waiting):
                pause_seconds = next(pauses, None)
                if pause_seconds is None:
                    raise ReconciliationFailed("UnforceableProblem", later[0][1])
                self._pause(pause_seconds)
            waiting = [node for node, _ in later]

    def wait_for_all(self) -> None:
        """Return once every pod is there and ready."""
        for node in self._cluster.nodes:
            name = self._cluster.pod(node)
            if not self._until(partial(self._is_ready, node)):
                raise ReconciliationFailed(
                    "TimeoutException",
                    f"Exceeded timeout of {self._timeout_seconds * 1000:.0f}ms while waiting for "
                    f"Pods resource {name} in namespace {self._cluster.namespace} to be ready",
                )

    def _is_ready(self, node: KafkaPodNode) -> bool:
        pod = self._pod(node)
        return pod is not None and has_condition(pod)

    def _bring(self, node: KafkaPodNode, reasons: Reasons, *, by_hand: bool, others: bool) -> None:
        pod = self._pod(node)
        if pod is None:
            return  # the controller of pod sets makes it
        if is_stuck(pod):
            why = reasons(pod)
            if by_hand or not why:
                raise ReconciliationFailed(
                    "FatalProblem", "Pod is unschedulable or is not starting"
                )
            self._restart(pod, why)  # forced: Kafka has nothing of it to lose
            return
        ready = self._until(lambda: (p := self._pod(node)) is None or has_condition(p))
        why, changes = reasons(pod), dict[str, str | None]()
        if not by_hand and not why and node.is_broker and ready:
            changes, why = self._configuration_changes(node)
        if why or changes:
            self._ask_kafka(node, others=others)
        if why:
            self._restart(pod, why)
        elif changes:
            self._configure(node, changes)
        elif not ready:
            raise ReconciliationFailed(
                "FatalProblem",
                f"Error while waiting for non-restarted pod {self._cluster.pod(node)} to become "
                f"ready",
            )

    def _ask_kafka(self, node: KafkaPodNode, *, others: bool) -> None:
        """Return where Kafka can do without a node now; raise _NotNow otherwise."""
        name, view = self._cluster.pod(node), self._view()
        if view is None:
            raise _NotNow(f"Pod {name} cannot be updated right now: Kafka does not answer.")
        if others and view.quorum_leader == node.node_id:
            raise _NotNow(
                f"Pod {name} is the active controller and there are other pods to verify first"
            )
        if why := hindrance(node, view):
            raise _NotNow(f"Pod {name} cannot be updated right now: {why}.")

    def in_use(self) -> frozenset[int]:
        """Return the brokers that hold replicas."""
        view = self._view()
        if view is None:
            raise ReconciliationFailed("TimeoutException", "Kafka does not say what brokers hold.")
        return frozenset(broker for each in view.partitions for broker in each.replicas)

    def _view(self) -> ClusterView | None:
        """Return a reading of Kafka; None where it does not answer."""
        where = self._cluster.namespace, self._cluster.name
        try:
            return KafkaAdmin([bootstrap(*where)], OperatorAccess(self._api, *where)).read()
        except StillwaterError as error:
            LOG.info("Kafka %s: %s", self._cluster.name, error)
            return None

    def _configuration_changes(self, node: KafkaPodNode) -> tuple[dict[str, str | None], list[str]]:
        """Return what a broker's configuration lacks, and why it has to be restarted for it.

        Nothing where it does not answer.
        """
        if not answers(self._cluster.namespace, self._cluster.name):
            return {}, []
        about = ConfigResource(ConfigResourceType.BROKER, str(node.node_id))
        try:
            with admin(self._api, self._cluster.namespace, self._cluster.name) as client:
                answer = client.describe_configs([about], config_filter="all")
        except (KafkaError, OSError) as error:
            LOG.info("Broker %s does not tell its configuration: %s", node.node_id, error)
            return {}, []
        found = answer["broker"][str(node.node_id)]
        own = own_settings(self._cluster, node)
        changes = configuration_changes(described_settings(self._cluster), own, found)
        fixed = sorted(key for key in changes if found[key]["read_only"])
        return changes, [f"{key} cannot change while it runs" for key in fixed]

    def _configure(self, node: KafkaPodNode, changes: Mapping[str, str | None]) -> None:
        wanted = {
            key: (AlterConfigOp.DELETE if value is None else AlterConfigOp.SET, value)
            for key, value in changes.items()
        }
        about = ConfigResource(ConfigResourceType.BROKER, str(node.node_id), wanted)
        try:
            with admin(self._api, self._cluster.namespace, self._cluster.name) as client:
                client.alter_configs([about])
        except (KafkaError, OSError) as error:
            # As min.insync.replicas since KIP-966, which Strimzi sets for the whole cluster.
            LOG.warning("Broker %s does not take its configuration: %s", node.node_id, error)

    def _restart(self, pod: Object, why: Sequence[str]) -> None:
        metadata = pod["metadata"]
        name, uid, path = metadata["name"], metadata["uid"], self._path(metadata["name"])
        LOG.info("Rolling pod %s due to %s", name, why)
        self._journal.write("strimzi", "pod_rolled", pod=name, reasons=list(why))
        with tolerating(404, 409):  # gone already, or another one
            self._api.delete(path, {"preconditions": {"uid": uid}})

        def is_back() -> bool:
            now = find(self._api, path)
            return now is not None and now["metadata"]["uid"] != uid and has_condition(now)

        if not self._until(is_back):
            raise ReconciliationFailed(
                "FatalProblem", f"Error while waiting for restarted pod {name} to become ready"
            )

    def _pod(self, node: KafkaPodNode) -> Object | None:
        return find(self._api, self._path(self._cluster.pod(node)))

    def _path(self, pod: str) -> str:
        return f"{PATHS['Pod'].format(self._cluster.namespace)}/{pod}"

    def _until(self, look: Callable[[], T]) -> T | None:
        """Return the first true answer; None where there is none within the operation timeout."""
        deadline = time.monotonic() + self._timeout_seconds
        while not (seen := look()):
            if time.monotonic() >= deadline:
                return None
            self._pause(POLL_SECONDS)
        return seen

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._is_over():
                raise Abandoned
            time.sleep(min(left, POLL_SECONDS))
