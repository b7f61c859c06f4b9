"""Decides from one reading what Strimzi's operator does, or is about to do, with a Kafka's pods.

The operator restarts pods for causes that show in different places: a pod differs from its
StrimziPodSet, somebody asked for a restart, a resource has a generation that the operator has not
finished, or a reconciliation failed and is tried again. Trouble is the condition NotReady=True, not
Ready=False; during a roll Ready stays True with the old observedGeneration; a change that is
ignored is a Warning beside Ready=True. core.incidents asks before a drain, core.gate before an
eviction, core.rotation before each node of a run. Source: Strimzi 1.2.0, KafkaReconciler,
KafkaRoller, PodRevision, StrimziPodSetController.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from core.ground.fields import epoch
from core.ground.naming import (
    DELETE_POD_ANNOTATION,
    RESOURCE_REVISION_ANNOTATION,
    REVISION_ANNOTATION,
    ROLL_ANNOTATION,
)
from core.ground.window import clock
from core.ground.words import listing

PAUSE_ANNOTATION = "strimzi.io/pause-reconciliation"
NOT_READY, WARNING, PAUSED = "NotReady", "Warning", "ReconciliationPaused"
REBALANCING = "Rebalancing"
STORAGE = "KafkaStorage"
# Of what the operator leaves undone.
REMEDIES: Mapping[str, str] = {
    "ScaleDownPreventionCheck": "move the partitions off these brokers first "
    "(docs/how-to/grow-a-cluster.md), or write the former number",
    STORAGE: "write the storage that its volumes have: until then Strimzi's operator obeys no "
    "change of this pool's storage, growth included",
}
# Advice about what was done as asked: an upgrade raises metadata.version as its last step.
ADVICE = frozenset({"KafkaMetadataVersion"})


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition that holds: Strimzi's reason, its sentence, and since when (epoch seconds)."""

    reason: str
    message: str
    since: float | None = None

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConditions:
    """A Kafka as its operator left it at the end of the last reconciliation."""

    ready: bool
    not_ready: Condition | None = None
    warnings: tuple[Condition, ...] = ()
    paused: bool = False
    paused_since: float | None = None  # epoch seconds; None: the operator has not said so yet
    # The status is about the spec as it stands. False as well where there is no status yet.
    generation_observed: bool
    rebalances: tuple[str, ...] = ()  # what is said of each KafkaRebalance that is not over

    @property
    def objections(self) -> tuple[Condition, ...]:
        """Return the warnings about a description that is ours: all but advice."""
        return tuple(each for each in self.warnings if each.reason not in ADVICE)

    @property
    def ignored(self) -> tuple[Condition, ...]:
        """Return the warnings that say for certain that something was not done."""
        return tuple(
            each
            for each in self.warnings
            # The same reason warns of a single broker with ephemeral storage.
            if each.reason in REMEDIES and "KafkaNodePool" in each.message
        )


def kafka_conditions(item: Mapping[str, Any]) -> KafkaConditions:
    """Return what the metadata and status of a Kafka (or a KafkaNodePool) say.

    >>> kafka_conditions({"metadata": {"generation": 1}}).generation_observed
    False
    """
    held = list(_held((item.get("status") or {}).get("conditions") or ()))
    annotations = item["metadata"].get("annotations") or {}
    return KafkaConditions(
        ready=any(kind == "Ready" for kind, _ in held),
        not_ready=next((each for kind, each in held if kind == NOT_READY), None),
        warnings=tuple(each for kind, each in held if kind == WARNING),
        # Strimzi reads the annotation in any case of letters.
        paused=str(annotations.get(PAUSE_ANNOTATION, "")).lower() == "true"
        or any(kind == PAUSED for kind, _ in held),
        paused_since=next((each.since for kind, each in held if kind == PAUSED), None),
        generation_observed=generation_observed(item),
    )


def generation_observed(item: Mapping[str, Any]) -> bool:
    """Say whether an object's operator has seen its spec as it stands."""
    observed = (item.get("status") or {}).get("observedGeneration")
    return observed is not None and int(observed) >= int(item["metadata"].get("generation") or 0)


def remedy(warning: Condition) -> str:
    """Return what to do about a warning."""
    return REMEDIES.get(warning.reason, "correct what it names in the description")


def names_pool(ignored: Condition, namespace: str, pool: str) -> bool:
    """Say whether a warning is about the storage of one KafkaNodePool."""
    words = {word.strip(".,;:") for word in ignored.message.split()}
    return ignored.reason == STORAGE and f"{namespace}/{pool}" in words


def _held(conditions: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Condition]]:
    """Yield the type of each condition that holds, and what it says, on one line."""
    for each in conditions:
        if str(each.get("status")).lower() == "true":
            reason = str(each.get("reason") or "no reason is given")
            message = " ".join(str(each.get("message") or "").split())
            yield (
                str(each["type"]),
                Condition(reason, message, epoch(each.get("lastTransitionTime"))),
            )


# The operator waits so long for a pod (STRIMZI_OPERATION_TIMEOUT_MS). Work that failed, or that is
# paused, may last for ever: an announced departure waits for it no longer than this.
OPERATION_TIMEOUT_SECONDS = 600.0
ASKED = (ROLL_ANNOTATION, DELETE_POD_ANNOTATION)
MOST_NAMED = 3
Json = Mapping[str, Any]


class Revisions(NamedTuple):
    """What a pod was made of, as its annotations say; None: it has no such annotation."""

    description: str | None = None
    resources: str | None = None


UNMARKED = Revisions()


class LivePod(Protocol):
    """What is asked of a Kafka pod that runs."""

    @property
    def name(self) -> str: ...
    @property
    def revisions(self) -> Revisions: ...
    @property
    def roll_asked(self) -> bool: ...
    @property
    def stopping(self) -> bool: ...
    @property
    def out_since(self) -> float | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetView:
    """One StrimziPodSet: what its pods are to be, and what its controller last counted."""

    name: str
    pods: Mapping[str, Revisions]
    roll_asked: bool = False
    behind: bool = False  # its controller has not seen its present description
    outdated: int = 0  # pods that its controller counts as not current


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorView:
    """Strimzi's resources of one Kafka, as far as they tell what the operator does."""

    kafka: KafkaConditions
    pod_sets: tuple[PodSetView, ...] = ()
    pools_behind: tuple[str, ...] = ()  # KafkaNodePools whose description it has not seen
    rebalances: tuple[str, ...] = ()  # KafkaRebalances that Cruise Control carries out
    # What Kafka runs, and who reconciled it last; None: the operator has not said so yet.
    kafka_version: str | None = None
    strimzi_version: str | None = None

    @property
    def pods(self) -> frozenset[str]:
        """Return the names of the pods that there are to be."""
        return frozenset(name for each in self.pod_sets for name in each.pods)


@dataclass(frozen=True, slots=True)
class OperatorTask:
    """One thing that the operator does or is about to do."""

    sentence: str
    pods: frozenset[str] = frozenset()  # the pods it is about; empty: it may be any
    # Epoch seconds since when nothing says that it will ever end; None: it goes on.
    stalled_since: float | None = None

    def is_about_only(self, pods: Collection[str | None]) -> bool:
        return bool(self.pods) and self.pods <= set(pods)

    def is_stalled(self, now: float) -> bool:
        """Say whether it has stood for longer than the operator itself waits for a pod."""
        since = self.stalled_since
        return since is not None and now - since > OPERATION_TIMEOUT_SECONDS


def revisions(annotations: Mapping[str, str]) -> Revisions:
    """Return the revisions that a pod's annotations name."""
    marks = annotations.get(REVISION_ANNOTATION), annotations.get(RESOURCE_REVISION_ANNOTATION)
    return Revisions(*marks)


def is_roll_asked(annotations: Mapping[str, str]) -> bool:
    """Say whether somebody asked the operator to restart or remove a pod, or the pods of a set."""
    return any(annotations.get(each) == "true" for each in ASKED)


def read_operator(
    kafka: Json, pools: Iterable[Json], pod_sets: Iterable[Json], rebalances: Iterable[Json] = ()
) -> OperatorView:
    """Read the Kafka resource, its KafkaNodePools, StrimziPodSets and KafkaRebalances.

    Raises what a wrong shape raises: what cannot be read is unknown.
    """
    status = kafka.get("status") or {}
    return OperatorView(
        kafka=kafka_conditions(kafka),
        pod_sets=tuple(_pod_set(each) for each in pod_sets),
        pools_behind=tuple(
            each["metadata"]["name"] for each in pools if not generation_observed(each)
        ),
        rebalances=tuple(each["metadata"]["name"] for each in rebalances if is_rebalancing(each)),
        kafka_version=status.get("kafkaVersion"),
        strimzi_version=status.get("operatorLastSuccessfulVersion"),
    )


def is_rebalancing(item: Json) -> bool:
    """Say whether a KafkaRebalance moves replicas now."""
    held = _held((item.get("status") or {}).get("conditions") or ())
    return any(kind == REBALANCING for kind, _ in held)


def _pod_set(item: Json) -> PodSetView:
    status = item.get("status") or {}
    return PodSetView(
        name=item["metadata"]["name"],
        pods={
            pod["metadata"]["name"]: revisions(pod["metadata"].get("annotations") or {})
            for pod in item["spec"].get("pods") or ()
        },
        roll_asked=is_roll_asked(item["metadata"].get("annotations") or {}),
        behind=not generation_observed(item),
        outdated=int(status.get("pods", 0)) - int(status.get("currentPods", 0)),
    )


def operator_tasks(
    view: OperatorView, pods: Iterable[LivePod], ours: Collection[str], now: float
) -> Iterator[OperatorTask]:
    """Yield what the operator has to do, whole-Kafka work first.

    `ours` are the pods that incidents of ours take out: nobody else told those to stop.
    """
    stalled = _stalled_since(view.kafka)
    for task in (*_unfinished(view), *_restarts(view, {pod.name: pod for pod in pods})):
        yield OperatorTask(task.sentence, task.pods, stalled)
    for pod in pods:
        if pod.stopping and pod.name not in ours:
            overdue = pod.out_since if pod.out_since is not None and now > pod.out_since else None
            sentence = f"Pod {pod.name} is being deleted, and no incident of ours asked for that."
            yield OperatorTask(sentence, frozenset({pod.name}), stalled or overdue)


def _stalled_since(kafka: KafkaConditions) -> float | None:
    """Return since when the operator gets nowhere; None: it does, or nobody says since when."""
    if kafka.paused:
        return kafka.paused_since
    return None if kafka.not_ready is None else kafka.not_ready.since


def _unfinished(view: OperatorView) -> Iterator[OperatorTask]:
    kafka = view.kafka
    if kafka.paused:
        yield OperatorTask(
            f"Reconciliation of the Kafka is paused{_since(kafka.paused_since)}: remove its "
            f"annotation {PAUSE_ANNOTATION}."
        )
    if kafka.not_ready is not None:
        yield OperatorTask(
            f"The Kafka is NotReady{_since(kafka.not_ready.since)} "
            f"({str(kafka.not_ready).rstrip('.')}), so Strimzi's operator tries again to bring it "
            f"to its description."
        )
    if not kafka.generation_observed and not kafka.paused:
        yield OperatorTask(
            "Strimzi's operator has not finished with the present description of the Kafka: its "
            "status shows an older generation."
        )
    for name in view.rebalances:
        yield OperatorTask(
            f"Cruise Control moves replicas for KafkaRebalance {name}. Wait until it is Ready, or "
            f"stop it: annotate it with strimzi.io/rebalance=stop."
        )
    behind = [f"KafkaNodePool {name}" for name in view.pools_behind]
    behind += [f"StrimziPodSet {each.name}" for each in view.pod_sets if each.behind]
    if behind:
        yield OperatorTask(
            f"Strimzi's operator has not acted on the present description of "
            f"{listing(behind, MOST_NAMED)}."
        )


def _restarts(view: OperatorView, live: Mapping[str, LivePod]) -> Iterator[OperatorTask]:
    for pod_set in view.pod_sets:
        if pod_set.roll_asked:
            sentence = f"Strimzi's operator is to restart the pods of {pod_set.name}, as asked for."
            yield OperatorTask(sentence, frozenset(pod_set.pods))
        differing = {
            name: why
            for name, to_be in pod_set.pods.items()
            if name in live and (why := _why_restarted(live[name], to_be)) is not None
        }
        for name, why in differing.items():
            sentence = f"Strimzi's operator is to restart pod {name}: {why}."
            yield OperatorTask(sentence, frozenset({name}))
        if pod_set.outdated > 0 and not differing:
            yield OperatorTask(
                f"Strimzi's operator has not brought {pod_set.outdated} of the pods of "
                f"{pod_set.name} to their present description.",
                frozenset(pod_set.pods),
            )
    for name in sorted(live.keys() - view.pods):
        yield OperatorTask(
            f"Strimzi's operator is to remove pod {name}, which no StrimziPodSet names.",
            frozenset({name}),
        )


def _why_restarted(pod: LivePod, to_be: Revisions) -> str | None:
    if pod.roll_asked:
        return "somebody asked for it"
    if pod.revisions.description != to_be.description:
        return "its description has changed"
    if pod.revisions.resources != to_be.resources:
        return "its resources have changed"
    return None


def _since(at: float | None) -> str:
    return "" if at is None else f" since {clock(at)}"
