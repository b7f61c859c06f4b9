"""Compares a live account and cluster with what their spec asks for, with a remedy for each gap.

core.checks.expected says what should be there, cli.doctor reads what is. Nothing here repairs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.checks.facts import Binding, Snapshot
from core.checks.finding import Finding, Weight, worth_knowing
from core.ground import constants, naming
from core.model.kafka import Pod

MISSING, PRESENT = "missing", "present"
TAINT = (naming.DEDICATED_TAINT_KEY, naming.DEDICATED_TAINT_VALUE, "NoSchedule")
GATES = naming.readiness_gate("")
OFF_THEM, ASKS = "take it away, or", ": it drains nodes without a question to Kafka"


def drift(subject: str, expected: str, found: str, remedy: str) -> Finding:
    """Return one thing that is not as its spec says, and the remedy."""
    return Finding("drift", Weight.DRIFT, subject, f"expected {expected}, found {found}", remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a spec asks for; parts of the snapshot that are None are not of this cluster."""

    environment: str
    cluster: str
    namespace: str
    # Of brokers that may come: their bindings are there before them.
    spare_services: frozenset[str]
    # Made beside the function that reads them, a layer later than the others.
    queues_of_functions: frozenset[str]
    # Node ids of Kafka, and how many volumes they have together.
    nodes: frozenset[int]
    disks: int
    snapshot: Snapshot
    connect: bool = False  # workers of Connect stand beside Kafka

    def up(self, layer: str) -> str:
        """Return the command that brings a layer back to its spec, whatever was changed by hand."""
        return f"`pulumi up --refresh -s {self.environment}-{layer}`"


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """A part of the snapshot whose members are expected one by one, field by field."""

    title: str
    member: str
    # Field -> what a reader calls it.
    labels: Mapping[str, str]
    # The layer that makes it; None: somebody else does, and the remedy says who.
    layer: str | None = None
    remedy: str = ""


_NAMES = {
    "gate_label": naming.READINESS_GATE_LABEL,
    "nth_namespace": constants.NTH_NAMESPACE,
    "nth_release": constants.NTH_RELEASE,
}


def _compared_parts() -> dict[str, SnapshotPart]:
    written = Path(__file__).with_name("drift.toml").read_text("utf-8")
    for name, value in _NAMES.items():
        written = written.replace(f"@{{{name}}}", value)
    return {name: SnapshotPart(**part) for name, part in tomllib.loads(written).items()}


COMPARED: Mapping[str, SnapshotPart] = _compared_parts()
# Parts whose members nobody can list beforehand: what they say of themselves is looked at.
JUDGED: Mapping[str, str] = {
    "services": "Services",
    "pods": "Kafka's pods",
    "volumes": "Kafka's volumes",
    "connect_bindings": "Connect's ClusterRoleBinding",
    "drain_cleaners": "Drain Cleaner",
    "second_handlers": "other termination handlers",
}
TITLES: Mapping[str, str] = {**{name: part.title for name, part in COMPARED.items()}, **JUDGED}


def findings(expected: Expectation, found: Snapshot) -> list[Finding]:
    """Return everything that differs, part by part; a part that was not read says nothing."""
    return [
        *(f for name, part in COMPARED.items() for f in _differences(name, part, expected, found)),
        *_services(expected, found.bindings or {}, found.services),
        *_pods(expected, found.pods or {}),
        *_volumes(found),
        *_drain_cleaners(found),
        *_second_handlers(expected, found),
        *_second_budget(expected, found),
        *_connect_bindings(expected, found),
    ]


def _differences(
    name: str, part: SnapshotPart, expectation: Expectation, snapshot: Snapshot
) -> Iterator[Finding]:
    wanted: Mapping[str, object] | None = getattr(expectation.snapshot, name)
    seen: Mapping[str, object] | None = getattr(snapshot, name)
    if wanted is None or seen is None:
        return
    for member, expected in wanted.items():
        what, remedy = f"{part.member} {member}", _remedy(part, member, expectation)
        if member not in seen:
            yield drift(what, PRESENT, MISSING, remedy)
            continue
        for field, label in part.labels.items():
            wants, has = getattr(expected, field), getattr(seen[member], field)
            if wants != has:
                unit = " s" if field.endswith("_seconds") else ""
                yield drift(
                    f"{label} of {what}", _value_text(wants, unit), _value_text(has, unit), remedy
                )


def _remedy(part: SnapshotPart, member: str, expected: Expectation) -> str:
    if part.layer is None:
        return part.remedy
    beside_functions = part.member == "queue" and member in expected.queues_of_functions
    return expected.up(naming.OPERATIONS if beside_functions else part.layer)


def _value_text(value: object, unit: str) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, frozenset):
        return ", ".join(sorted(value)) or "none"
    if isinstance(value, tuple):
        return "-".join(str(each) for each in value)
    return f"{value}{unit}"


def _services(
    expected: Expectation,
    bindings: Mapping[str, Binding],
    services: Mapping[str, frozenset[str]] | None,
) -> Iterator[Finding]:
    """Find bindings that lead nowhere: the controller then takes every target out of the group."""
    if services is None:
        return
    for name, binding in bindings.items():
        what = f"Service {binding.service} of TargetGroupBinding {name}"
        if binding.service not in services:
            if binding.service not in expected.spare_services:
                yield drift(
                    what,
                    PRESENT,
                    MISSING,
                    f"Strimzi makes it: `kubectl -n {expected.namespace} describe kafka "
                    f"{expected.cluster}`; delete the binding only if its broker is gone for good",
                )
        elif binding.port not in services[binding.service]:
            yield drift(
                f"ports of {what}",
                binding.port,
                ", ".join(sorted(services[binding.service])) or "none",
                "give the listener its name back: every target is deregistered meanwhile",
            )


def _pods(expected: Expectation, pods: Mapping[str, Pod]) -> Iterator[Finding]:
    """Find pods the load balancer does not hold back, and those it holds back for ever."""
    for name, pod in pods.items():
        bindings = [
            naming.target_group_binding(expected.cluster, node)
            for node in ((naming.node_id_of_pod(name), None) if pod.broker else ())
        ]
        wanted = frozenset(naming.readiness_gate(binding) for binding in bindings)
        gates = frozenset(gate for gate in pod.readiness_gates if gate.startswith(GATES))
        restart = (
            f"`kubectl -n {expected.namespace} annotate pod {name} "
            f"strimzi.io/manual-rolling-update=true`: gates come only with a new pod"
        )
        if wanted - gates:
            yield drift(
                f"readiness gates of pod {name}",
                _bindings_text(wanted),
                _bindings_text(gates),
                restart,
            )
        elif gates - wanted:
            yield drift(
                f"readiness gates of pod {name}",
                _bindings_text(wanted),
                _bindings_text(gates),
                f"find the TargetGroupBinding whose Service selects it; then {restart}",
            )


def _bindings_text(gates: frozenset[str]) -> str:
    """Return the bindings that gates wait for."""
    return _value_text(frozenset(gate.removeprefix(GATES) for gate in gates), "")


def _drain_cleaners(found: Snapshot) -> Iterator[Finding]:
    """Find who denies the evictions of our own drains, which nobody tries again."""
    for name, cleaner in (found.drain_cleaners or {}).items():
        if cleaner.drains_kafka:
            yield drift(
                f"STRIMZI_DRAIN_KAFKA of Drain Cleaner {name}",
                "false",
                "true",
                "set it to false: Stillwater asks Kafka before each drain. The node termination "
                "handler does not repeat a drain that Drain Cleaner denies",
            )


def _second_handlers(expected: Expectation, found: Snapshot) -> Iterator[Finding]:
    """Find who drains Kafka's nodes beside the one termination handler that we tell when to."""
    ours = expected.snapshot.queues or {}
    for title, handler in (found.second_handlers or {}).items():
        what, queue = f"second node termination handler {title}", handler.queue_name
        if queue is None and handler.wants.tolerates(*TAINT):
            how = "on Kafka's nodes, by the instance metadata"
            yield drift(what, MISSING, how, f"{OFF_THEM} let it not tolerate their taint{ASKS}")
        elif queue in ours:
            remedy = "take it away: of the drains that are meant for ours it takes its share"
            yield drift(what, MISSING, f"reads our queue {queue}", remedy)
        elif queue is not None:
            remedy = f"{OFF_THEM} let no rule send its queue events of Kafka's machines{ASKS}"
            yield drift(what, MISSING, f"reads queue {queue}", remedy)


def _second_budget(expected: Expectation, found: Snapshot) -> Iterator[Finding]:
    """Find the budget that Strimzi made before there were ours: the operator leaves it behind."""
    strimzis = naming.kafka_component(expected.cluster)
    wanted = expected.snapshot.budgets or {}
    for name, budget in (found.budgets or {}).items():
        if name not in {*wanted, strimzis} and budget.selects(_labels_of_nodes(expected.cluster)):
            yield drift(
                f"PodDisruptionBudget {name} over pods of Kafka's",
                MISSING,
                PRESENT,
                f"change its selector, or `kubectl -n {expected.namespace} delete pdb {name}`: "
                f"of a pod with two budgets the API server evicts none",
            )
    if wanted and strimzis not in wanted and strimzis in (found.budgets or {}):
        yield drift(
            f"PodDisruptionBudget {strimzis}",
            MISSING,
            PRESENT,
            f"`kubectl -n {expected.namespace} delete pdb {strimzis}`: of a pod with two budgets "
            f"the API server evicts none, so that no node of Kafka's can be drained",
        )


def _labels_of_nodes(name: str) -> dict[str, str]:
    """Return what Strimzi labels pods of Kafka's nodes."""
    return {
        naming.CLUSTER_LABEL: name,
        naming.KIND_LABEL: "Kafka",
        "strimzi.io/name": naming.kafka_component(name),
        "app.kubernetes.io/name": "kafka",
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/managed-by": naming.STRIMZI_OPERATOR,
        "app.kubernetes.io/part-of": f"strimzi-{name}",
    }


def _connect_bindings(expected: Expectation, found: Snapshot) -> Iterator[Finding]:
    for binding in () if expected.connect else found.connect_bindings or ():
        yield drift(
            f"ClusterRoleBinding {binding}",
            "absent",
            PRESENT,
            f"`kubectl delete clusterrolebinding {binding}`: Strimzi's operator was away when "
            f"Connect's workers went, and left their right to read nodes",
        )


def _volumes(found: Snapshot) -> Iterator[Finding]:
    for name, volume in (found.volumes or {}).items():
        if volume.reclaim != constants.RETAIN_VOLUME:
            patch = f'{{"spec":{{"persistentVolumeReclaimPolicy":"{constants.RETAIN_VOLUME}"}}}}'
            yield drift(
                f"reclaim policy of volume {name} ({volume.claim})",
                constants.RETAIN_VOLUME,
                _value_text(volume.reclaim, ""),
                f"`kubectl patch pv {name} -p '{patch}'` now: the data goes with the claim",
            )


def unexamined_parts(expected: Expectation, found: Snapshot) -> Iterator[Finding]:
    """Say of what there was nothing to look at, so that nothing of it was found in order."""
    if found.pods is not None:
        away = sorted(expected.nodes - set(map(naming.node_id_of_pod, found.pods)))
        if away:
            yield worth_knowing(
                "nodes-away",
                f"Kafka {expected.namespace}/{expected.cluster}",
                f"no pod of {'node' if len(away) == 1 else 'nodes'} {', '.join(map(str, away))} "
                f"runs: what it says of readiness gates was not looked at",
                f"see how they do by `stillwater health {expected.environment}`",
            )
    if found.volumes is not None and len(found.volumes) < expected.disks:
        yield worth_knowing(
            "volumes-away",
            f"Kafka {expected.namespace}/{expected.cluster}",
            f"{len(found.volumes)} of {expected.disks} volumes are there: what becomes of the "
            f"others with their claims was not looked at",
            "bring the missing pods back, whose claims have none",
        )
