"""The words every verdict about health is made of, and how several become one.

The cluster's verdict follows the contract of KIP-1017: 200, 503 or 500 and a reason. What serves
clients as a whole (the quorum, the partitions) counts for what it is. Of several alike (brokers,
controllers, pods, workers) one that fails costs redundancy: the whole is degraded while another of
them is healthy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from core.ground.window import clock


class Health(StrEnum):
    """How a part does; the order of severity is that of `SEVERITY`."""

    HEALTHY = "healthy"
    STARTING = "starting"
    DEGRADED = "degraded"
    UNKNOWN = "unknown"  # a source that is needed did not answer
    UNHEALTHY = "unhealthy"

    @classmethod
    def _missing_(cls, value: object) -> Health:
        """Take a word of another release for what it is here: nobody knows how the part does."""
        del value
        return cls.UNKNOWN


SEVERITY = (Health.HEALTHY, Health.STARTING, Health.DEGRADED, Health.UNKNOWN, Health.UNHEALTHY)
# The contract of KIP-1017, for the whole cluster: 500 says unhealthy, or unable to tell.
STATUS_CODES = {
    Health.HEALTHY: 200,
    Health.STARTING: 503,
    Health.DEGRADED: 503,
    Health.UNKNOWN: 500,
    Health.UNHEALTHY: 500,
}


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    """How a part does, the complete sentence that says why, and the sources that were missing."""

    health: Health
    reason: str
    missing: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        return self.health is Health.HEALTHY


def healthy(reason: str) -> HealthVerdict:
    """Return the verdict of a part that is well."""
    return HealthVerdict(Health.HEALTHY, reason)


def degraded(reason: str) -> HealthVerdict:
    """Return the verdict of a part that does its work, and not all of it."""
    return HealthVerdict(Health.DEGRADED, reason)


def unhealthy(reason: str) -> HealthVerdict:
    """Return the verdict of a part that does not do its work."""
    return HealthVerdict(Health.UNHEALTHY, reason)


def not_known(reason: str, missing: tuple[str, ...] = ()) -> HealthVerdict:
    """Return the verdict on a part of which too little was told, and by whom it was not."""
    return HealthVerdict(Health.UNKNOWN, reason, missing)


class PartKind(StrEnum):
    """What a part is; the order is that in which people read them."""

    QUORUM = "quorum"
    PARTITIONS = "partitions"
    METADATA = "metadata log"
    CONTROLLER = "controller"
    BROKER = "broker"
    POD = "pod"
    WORKER = "Connect worker"
    INCIDENTS = "incidents"
    ZONES = "zones"
    OPERATOR = "Strimzi's operator"


# Several do the same work: the whole lives on while one of them is healthy.
REDUNDANT = frozenset({PartKind.CONTROLLER, PartKind.BROKER, PartKind.POD, PartKind.WORKER})
# What goes on beside serving: a cluster with trouble here serves all the same.
ASIDE = frozenset({PartKind.METADATA, PartKind.INCIDENTS, PartKind.ZONES, PartKind.OPERATOR})
# Without their word, nothing is known of the whole.
NEEDED = (PartKind.QUORUM, PartKind.PARTITIONS, PartKind.BROKER)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the cluster and how it does; notes are worth knowing, and no fault."""

    kind: PartKind
    name: str
    verdict: HealthVerdict
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """The whole's verdict, and what it was made of."""

    verdict: HealthVerdict
    parts: tuple[Part, ...]

    @property
    def status_code(self) -> int:
        return STATUS_CODES[self.verdict.health]


def cluster_health(parts: Iterable[Part]) -> ClusterHealth:
    """Return the whole's health; it is healthy only where every part is, and each needed is there.

    The sentence is that of the part that weighs most, and says how many more are not well.
    """
    order = list(PartKind)
    # Broker 9 comes before broker 10.
    found = sorted(parts, key=lambda part: (order.index(part.kind), len(part.name), part.name))
    weights = _weights(found)
    unasked = [kind for kind in NEEDED if not any(part.kind is kind for part in found)]
    if unasked:
        words = ", ".join(unasked)
        verdict = not_known(f"Nothing is known of the cluster's {words}.", tuple(unasked))
        return ClusterHealth(verdict, tuple(found))
    return ClusterHealth(_whole_cluster(found, weights), tuple(found))


def _whole_cluster(parts: Sequence[Part], weights: Sequence[Health]) -> HealthVerdict:
    ailing = [
        (part, weight) for part, weight in zip(parts, weights, strict=True) if not _well(part)
    ]
    if not ailing:
        return healthy(f"All {len(parts)} parts are healthy.")
    gravest, weight = max(ailing, key=lambda pair: SEVERITY.index(pair[1]))
    more = f" {len(ailing)} of {len(parts)} parts are not healthy." if len(ailing) > 1 else ""
    missing = tuple(dict.fromkeys(source for part, _ in ailing for source in part.verdict.missing))
    return HealthVerdict(weight, f"{gravest.verdict.reason}{more}", missing)


def _weights(parts: Sequence[Part]) -> list[Health]:
    """Return what each part's health means for the whole."""
    kinds: defaultdict[PartKind, list[Part]] = defaultdict(list)
    for part in parts:
        kinds[part.kind].append(part)
    carried = ASIDE | {kind for kind in REDUNDANT if any(_well(part) for part in kinds[kind])}
    return [_weight(part, carried=part.kind in carried) for part in parts]


def _weight(part: Part, *, carried: bool) -> Health:
    health = part.verdict.health
    return min(health, Health.DEGRADED, key=SEVERITY.index) if carried else health


def _well(part: Part) -> bool:
    return part.verdict.healthy


def document(cluster: str, health: ClusterHealth, at: float, seconds: float) -> Mapping[str, Any]:
    """Return the body of the answer: KIP-1017's `status` and `message`, and every part."""
    return {
        "status": health.verdict.health.value,
        "message": health.verdict.reason,
        "cluster": cluster,
        "at": clock(at),
        "seconds": round(seconds, 2),
        "missing": list(health.verdict.missing),
        "parts": [
            {
                "kind": part.kind.value,
                "name": part.name,
                "status": part.verdict.health.value,
                "reason": part.verdict.reason,
                "missing": list(part.verdict.missing),
                "notes": list(part.notes),
            }
            for part in health.parts
        ],
    }
