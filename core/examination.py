"""From what every source of one examination said to the parts of the cluster's verdict.

handlers.health asks the sources, all at once and for a bounded time; one that stays silent leaves
its parts unknown, with its name. core.health.verdict makes the whole of the parts. Which nodes
there are to be is read of StrimziPodSets where no description of ours says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from core.availability.consent import Freeze
from core.availability.operator import KafkaConditions, remedy
from core.ground.fields import Unknown, known_items
from core.ground.naming import BROKER_ROLE_LABEL, CONTROLLER_ROLE_LABEL, POOL_LABEL, node_id_of_pod
from core.ground.words import span
from core.health.connect import RestResponse, Worker, worker_verdict
from core.health.kafka import (
    broker_verdict,
    controller_verdict,
    disagreements,
    metadata_errors_verdict,
    node_verdict,
    partitions_verdict,
    quorum_verdict,
    silent,
)
from core.health.node import NodeMetrics, Role
from core.health.pods import PodSeen, no_pod, pod_verdict
from core.health.verdict import Health, HealthVerdict, Part, PartKind, degraded, healthy, not_known
from core.views import ClusterView


def roles_wanted(pod_sets: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Return node id -> broker, controller or combined, of StrimziPodSets: the pods to be there.

    >>> labels = {"strimzi.io/pool-name": "a", "strimzi.io/broker-role": "true"}
    >>> roles_wanted([{"spec": {"pods": [{"metadata": {"name": "orders-a-7", "labels": labels}}]}}])
    {7: 'broker'}
    """
    return {
        node_id: _role(metadata.get("labels") or {})
        for metadata in _wanted_pods(pod_sets)
        if (node_id := node_id_of_pod(str(metadata["name"]))) is not None
        and POOL_LABEL in (metadata.get("labels") or {})
    }


def pods_wanted(pod_sets: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the names of the pods that a Kafka is to have.

    >>> labels = {"strimzi.io/pool-name": "a"}
    >>> pods_wanted([{"spec": {"pods": [{"metadata": {"name": "orders-a-7", "labels": labels}}]}}])
    frozenset({'orders-a-7'})
    """
    return frozenset(
        str(metadata["name"])
        for metadata in _wanted_pods(pod_sets)
        if POOL_LABEL in (metadata.get("labels") or {})
    )


def _wanted_pods(pod_sets: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for each in pod_sets:
        yield from (pod["metadata"] for pod in each["spec"].get("pods") or ())


def _role(labels: Mapping[str, str]) -> str:
    broker = labels.get(BROKER_ROLE_LABEL) == "true"
    controller = labels.get(CONTROLLER_ROLE_LABEL) == "true"
    if broker and controller:
        return "combined"
    return "controller" if controller else "broker"


KUBERNETES, LEDGER = "the Kubernetes API", "the ledger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the cluster consists of, as its spec says."""

    roles: Mapping[int, str]  # node id -> broker, controller or combined
    workers: Sequence[str] = ()  # Connect workers' pods
    worker_startup_seconds: float = 120.0


class OpenIncident(Protocol):
    """What health tells of an incident (core.incidents.record.Incident has it, and more)."""

    @property
    def id(self) -> str: ...
    @property
    def instance_id(self) -> str: ...
    @property
    def state(self) -> StrEnum: ...
    @property
    def entered_at(self) -> float: ...
    @property
    def reason(self) -> str: ...
    @property
    def pages(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What every source said, or why it said nothing."""

    kafka: ClusterView | Unknown
    pods: tuple[PodSeen, ...] | Unknown
    incidents: tuple[OpenIncident, ...] | Unknown
    freezes: tuple[Freeze, ...] | Unknown
    # What Strimzi's operator says of the Kafka.
    operator: KafkaConditions | Unknown
    # Node id -> role, where nothing but Strimzi says which nodes there are to be.
    nodes: Mapping[int, str] | Unknown | None = None
    workers: Mapping[str, tuple[RestResponse, ...] | Unknown] = field(default_factory=dict)
    # By node id; empty where the spec has no exporters.
    metrics: Mapping[int, NodeMetrics | Unknown] = field(default_factory=dict)


def parts(seen: Seen, expected: Expected, now: float) -> list[Part]:
    """Return every part of the cluster with its verdict, those with nothing to tell included."""
    if seen.nodes is not None and not isinstance(seen.nodes, Unknown):
        expected = replace(expected, roles=seen.nodes)
    return [
        *_kafka_parts(seen, expected, now),
        *_metadata(seen.metrics, expected),
        *_parts_without_a_list(seen.nodes),
        *_examination_pods(seen.pods, expected, now),
        *_workers(seen, expected, now),
        Part(PartKind.INCIDENTS, "incidents", _incidents(seen.incidents, now)),
        Part(PartKind.ZONES, "zones", _zones(seen.freezes)),
        _operator(seen.operator),
    ]


def _kafka_parts(seen: Seen, expected: Expected, now: float) -> Iterator[Part]:
    view = seen.kafka
    brokers = [n for n, role in expected.roles.items() if role != "controller"]
    controllers = [n for n, role in expected.roles.items() if role != "broker"]
    if isinstance(view, Unknown):
        yield Part(PartKind.QUORUM, "quorum", silent("The quorum", view.why))
        yield Part(PartKind.PARTITIONS, "partitions", silent("Partitions", view.why))
        for node_id in controllers:
            said = silent(f"Controller {node_id}", view.why)
            yield Part(PartKind.CONTROLLER, str(node_id), said)
        for node_id in brokers:
            yield Part(PartKind.BROKER, str(node_id), silent(f"Broker {node_id}", view.why))
        return
    left = _left_over(seen, view, expected)
    notes = tuple(map(_unregistering, sorted(left)))
    yield Part(PartKind.QUORUM, "quorum", quorum_verdict(view), notes)
    yield Part(PartKind.PARTITIONS, "partitions", partitions_verdict(view))
    for node_id in controllers:
        verdict = _node(node_id, Role.CONTROLLER, view, seen, now)
        yield Part(PartKind.CONTROLLER, str(node_id), verdict, _unseen(node_id, verdict, seen))
    active = _metrics_of(seen.metrics, view.quorum_leader)
    # A broker that the spec no longer has, or not yet, serves all the same.
    for node_id in sorted({*brokers, *view.brokers} - left):
        verdict = _node(node_id, Role.BROKER, view, seen, now)
        told = disagreements(node_id, view, _metrics_of(seen.metrics, node_id), active)
        notes = (*told, *_unseen(node_id, verdict, seen))
        yield Part(PartKind.BROKER, str(node_id), verdict, notes)


def _left_over(seen: Seen, view: ClusterView, expected: Expected) -> frozenset[int]:
    """Return the brokers that nobody wants, runs or misses: all that is left is their names."""
    if isinstance(seen.pods, Unknown):
        return frozenset()
    return view.idle_fenced - expected.roles.keys() - {pod.node_id for pod in seen.pods}


def _unregistering(broker_id: int) -> str:
    return (
        f"Broker {broker_id} is registered, fenced and holds nothing, and has no pod: "
        f"`kafka-cluster.sh unregister --id {broker_id}` takes it off the list."
    )


def _unseen(node_id: int, verdict: HealthVerdict, seen: Seen) -> tuple[str, ...]:
    """Say that Kubernetes takes a node for well that is not: Strimzi's probes ask for less."""
    pod = _pod_of(node_id, seen)
    unwell = not verdict.healthy and verdict.health is not Health.UNKNOWN
    if pod is None or not (pod.ready and unwell):
        return ()
    said = (
        f"Pod {pod.name} is still Ready: its probes do not see this, and a disruption budget lets "
        "another pod go."
    )
    return (said,)


def _pod_of(node_id: int, seen: Seen) -> PodSeen | None:
    return next((pod for pod in known_items(seen.pods) if pod.node_id == node_id), None)


def _node(node_id: int, role: Role, view: ClusterView, seen: Seen, now: float) -> HealthVerdict:
    if node_id not in seen.metrics:  # it exports nothing, or no spec knows it
        judge = broker_verdict if role is Role.BROKER else controller_verdict
        return judge(node_id, view)
    pod = _pod_of(node_id, seen)
    return node_verdict(node_id, role, view, _metrics_of(seen.metrics, node_id), pod, now)


def _metrics_of(
    metrics: Mapping[int, NodeMetrics | Unknown], node_id: int | None
) -> NodeMetrics | None:
    told = None if node_id is None else metrics.get(node_id)
    return None if isinstance(told, Unknown) else told


def _metadata(metrics: Mapping[int, NodeMetrics | Unknown], expected: Expected) -> Iterator[Part]:
    for node_id, told in sorted(metrics.items()):
        role = expected.roles.get(node_id, "broker")
        verdict = metadata_errors_verdict(node_id, role, _metrics_of(metrics, node_id))
        if isinstance(told, Unknown):
            verdict = replace(verdict, reason=f"{verdict.reason} {told.why}")
        yield Part(PartKind.METADATA, f"of node {node_id}", verdict)


def _parts_without_a_list(nodes: Mapping[int, str] | Unknown | None) -> Iterator[Part]:
    if isinstance(nodes, Unknown):
        said = _unknown("Which nodes there are to be", KUBERNETES, nodes.why)
        yield Part(PartKind.POD, "nodes", said)
    elif nodes is not None and not nodes:
        verdict = not_known("Strimzi has no pod set of it.", (KUBERNETES,))
        yield Part(PartKind.POD, "nodes", verdict)


def _examination_pods(
    seen: tuple[PodSeen, ...] | Unknown, expected: Expected, now: float
) -> Iterator[Part]:
    if isinstance(seen, Unknown):
        yield Part(PartKind.POD, "pods", _unknown("Pods", KUBERNETES, seen.why))
        return
    for pod in seen:
        limit = expected.worker_startup_seconds if pod.node_id is None else None
        verdict = pod_verdict(pod, now) if limit is None else pod_verdict(pod, now, limit)
        yield Part(PartKind.POD, pod.name, verdict)
    for node_id in sorted(expected.roles.keys() - {pod.node_id for pod in seen}):
        yield Part(PartKind.POD, f"of node {node_id}", no_pod(f"Kafka node {node_id}"))
    there = {pod.name for pod in seen}
    for name in expected.workers:
        if name not in there:
            yield Part(PartKind.POD, name, no_pod(f"Connect worker {name}"))


def _workers(seen: Seen, expected: Expected, now: float) -> Iterator[Part]:
    by_name = {pod.name: pod for pod in known_items(seen.pods)}
    for name in expected.workers:
        pod = by_name.get(name)
        known = Worker(
            name=name,
            running=None if isinstance(seen.pods, Unknown) else pod is not None and pod.running,
            running_seconds=None if pod is None else pod.running_seconds(now),
            startup_seconds=expected.worker_startup_seconds,
            # That nobody could ask it is no answer.
            kafka_answers=None if isinstance(seen.kafka, Unknown) else not seen.kafka.stale,
        )
        yield Part(PartKind.WORKER, name, _worker(known, pod, seen.workers.get(name, ()), now))


def _worker(
    known: Worker, pod: PodSeen | None, answers: tuple[RestResponse, ...] | Unknown, now: float
) -> HealthVerdict:
    if pod is not None and not pod.running:
        # Not scheduled, starting, or crashed: the kubelet knows which.
        return pod_verdict(pod, now, known.startup_seconds)
    if isinstance(answers, Unknown):
        source = f"Connect's REST port of {known.name}"
        return _unknown(f"Worker {known.name}", source, answers.why)
    return worker_verdict(known, answers)


def _incidents(found: tuple[OpenIncident, ...] | Unknown, now: float) -> HealthVerdict:
    if isinstance(found, Unknown):
        return _unknown("Incidents", LEDGER, found.why)
    waiting = [incident for incident in found if incident.pages]
    if waiting:
        first = waiting[0]
        return degraded(f"Incident {first.id} needs a person: {first.reason}")
    if not found:
        return healthy("No incident is open.")
    first = found[0]
    rest = f" {len(found)} incidents are open." if len(found) > 1 else ""
    return healthy(
        f"{first.instance_id} is {first.state.value} for {span(now - first.entered_at)}.{rest}"
    )


def _zones(found: tuple[Freeze, ...] | Unknown) -> HealthVerdict:
    if isinstance(found, Unknown):
        return _unknown("Frozen zones", LEDGER, found.why)
    if not found:
        return healthy("No zone is frozen.")
    return degraded(" ".join(freeze.sentence for freeze in found))


def _operator(found: KafkaConditions | Unknown) -> Part:
    """Say whether the operator could carry out what is asked, and roll or renew what must be."""

    def part(verdict: HealthVerdict, *notes: str) -> Part:
        moving = () if isinstance(found, Unknown) else found.rebalances
        return Part(PartKind.OPERATOR, "operator", verdict, (*notes, *moving))

    if isinstance(found, Unknown):
        return part(_unknown("Strimzi's word on the Kafka", KUBERNETES, found.why))
    if found.paused:
        return part(
            degraded(
                "The Kafka is paused: Strimzi's operator rolls nothing and renews no certificate. "
                "Remove the annotation strimzi.io/pause-reconciliation."
            )
        )
    if found.not_ready is not None:
        return part(
            degraded(
                f"Strimzi's operator says NotReady: {found.not_ready}. Until that ends it carries "
                f"out no change; look at its log."
            )
        )
    if found.ignored:
        first = found.ignored[0]
        return part(
            degraded(
                "Strimzi's operator ignored a part of the description: "
                f"{first.message.rstrip('.')}. To fix it, {remedy(first)}."
            )
        )
    at_work = "The operator has not finished with the Kafka as it is written."
    return part(
        healthy("Strimzi's operator has nothing to say against the Kafka."),
        *(() if found.generation_observed else (at_work,)),
    )


def _unknown(what: str, source: str, why: str) -> HealthVerdict:
    return not_known(f"{what}: unknown. {why}", (source,))
