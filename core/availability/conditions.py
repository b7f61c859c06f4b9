"""Reads what Strimzi's operator says of a Kafka in its status, for all that ask how it does.

Strimzi 1.2.0 writes trouble as the condition NotReady=True, not as Ready=False. During a roll the
condition Ready stays True, with the old observedGeneration. A change that the operator ignores is a
Warning beside Ready=True.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from core.fields import epoch

PAUSE_ANNOTATION = "strimzi.io/pause-reconciliation"
NOT_READY, WARNING, PAUSED = "NotReady", "Warning", "ReconciliationPaused"
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

    @property
    def settled(self) -> bool:
        """Say whether the operator has carried the spec out, and found the Kafka ready."""
        ready = self.ready and self.not_ready is None
        return ready and self.generation_observed and not self.paused

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
