"""Keeps readings for a stated age, so that many who ask at once cost one reading and no more.

A reading counts from when it was begun: one that is older than the age, or was begun before
`forget`, answers nobody. Whoever asks while a reading is under way waits for that one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from core.ground.placement import PodNeeds
from core.incidents.observation import (
    BudgetView,
    GroupView,
    InstanceView,
    NodeClaim,
    NodeView,
    PodView,
)
from core.views import ClusterView
from handlers.adapters.aws import AwsCloud
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.kafka_pages import Pages
from handlers.adapters.kubernetes import EksNodes, NodeClaims

T = TypeVar("T")
# A reading per broker is kept, and brokers come and go.
MOST_KEPT = 1000


@dataclass(frozen=True)
class _Reading:
    begun_at: float
    answer: Future[Any]


class Recent:
    """Answers by what is asked; `seconds` is the greatest age of a reading that answers."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._oldest = float("-inf")
        self._lock = threading.Lock()
        self._readings: dict[Hashable, _Reading] = {}

    def forget(self) -> None:
        """Let no reading that was begun before now answer any more."""
        with self._lock:
            self._oldest = self._clock()

    def get(self, what: Hashable, read: Callable[[], T]) -> T:
        """Return a reading that is recent enough, taken now if there is none.

        Raises what the reading raised; a failure answers those who waited for it, nobody after.
        """
        with self._lock:
            known = self._readings.get(what)
            now = self._clock()
            if known is not None and self._counts(known, now):
                mine = None
            else:
                mine = known = _Reading(now, Future())
                self._keep(what, known)
        if mine is None:
            found: T = known.answer.result()
            return found
        try:
            answer = read()
        except BaseException as error:
            mine.answer.set_exception(error)
            raise
        mine.answer.set_result(answer)
        return answer

    def _counts(self, known: _Reading, now: float) -> bool:
        if known.begun_at < self._oldest:
            return False
        if not known.answer.done():
            return True
        recent = now - known.begun_at <= self._seconds
        return recent and known.answer.exception() is None

    def _keep(self, what: Hashable, reading: _Reading) -> None:
        if len(self._readings) >= MOST_KEPT:
            self._readings.clear()
        self._readings[what] = reading


class RecentNodes(EksNodes):
    """Nodes and pods as of a moment ago; a single pod and the operator are read each time."""

    def __init__(self, recent: Recent, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._recent = recent

    def nodes(self) -> tuple[NodeView, ...]:
        return self._recent.get("nodes", super().nodes)

    def kafka_pods(self) -> tuple[PodView, ...]:
        return self._recent.get("pods", super().kafka_pods)

    def attachments(self) -> dict[str, tuple[str, ...]]:
        return self._recent.get("attachments", super().attachments)

    def tenants(self, node: str) -> tuple[PodNeeds, ...]:
        read = super().tenants
        return self._recent.get(("tenants", node), lambda: read(node))

    def budgets(self) -> tuple[BudgetView, ...]:
        return self._recent.get("budgets", super().budgets)


@dataclass(frozen=True)
class RecentClaims:
    """NodeClaims as of a moment ago."""

    recent: Recent
    source: NodeClaims

    def claims(self) -> tuple[NodeClaim, ...]:
        return self.recent.get("claims", self.source.claims)


class RecentCloud(AwsCloud):
    """Instances and groups as of a moment ago."""

    def __init__(self, recent: Recent, region: str) -> None:
        super().__init__(region)
        self._recent = recent

    def instance(self, instance_id: str) -> InstanceView | None:
        read = super().instance
        return self._recent.get(("instance", instance_id), lambda: read(instance_id))

    def group(self, name: str) -> GroupView | None:
        read = super().group
        return self._recent.get(("group", name), lambda: read(name))


class RecentKafka(KafkaAdmin):
    """Kafka as of a moment ago."""

    def __init__(self, recent: Recent, *arguments: Any) -> None:
        super().__init__(*arguments, pages=Pages())  # type: ignore[misc]
        self._recent = recent

    def read(self, about: Collection[int] | None = None) -> ClusterView:
        read = super().read
        key = ("kafka", None if about is None else frozenset(about))
        return self._recent.get(key, lambda: read(about))
