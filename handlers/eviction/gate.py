"""Answers one question of the API server at a time: reads, lets core.gate decide, and acts.

Effects before a yes: the incident at its turn, the lease, another reading, the drain noted in the
lease, the incident in state draining, its tick. Dying between any two leaves a lease that lapses,
or an incident that its loop carries on. Those who ask at once share a reading until it is older
than its age or forgotten; its age counts from when it was begun.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from aws_lambda_powertools import Logger

from core.availability.lease import blocking_holder, lease_of
from core.events import Interruption, Kind
from core.gate import (
    ASKED_LAST,
    ASKS_FIRST_SECONDS,
    GateAnswer,
    RemovalRequest,
    Ruling,
    Wish,
    allow_if_gone,
    asks_last,
    let_through,
    reason_not_to_ask,
    refuse,
    rule,
    too_hasty,
)
from core.ground.errors import Conflict, StillwaterError
from core.ground.naming import node_id_of_pod
from core.ground.placement import PodNeeds
from core.incidents.actions import Reach, asked_for
from core.incidents.joining import merge, open_incident
from core.incidents.learn import learn
from core.incidents.observation import (
    DISRUPTED_TAINT,
    BudgetView,
    GroupView,
    InstanceView,
    NodeClaim,
    NodeView,
    Observation,
    PodView,
    Policy,
)
from core.incidents.record import UNDRAINED, Drainer, Incident, State
from core.views import ClusterView
from handlers.adapters.aws import AwsCloud
from handlers.adapters.calls import NO_ANSWER
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.kafka_pages import Pages
from handlers.adapters.kubernetes import EksNodes, NodeClaims
from handlers.incidents.observe import ReadsKafka, Sources, observe
from handlers.incidents.reception import Reception
from handlers.store.ledger import rounds

logger = Logger(service="stillwater", child=True)
MOST_ATTEMPTS = 3
# How often an incident is written because somebody still asks: its own loop writes it, too.
NOTED_EVERY_SECONDS = 60.0
KARPENTER_FINALIZER = "karpenter.sh/termination"


class _SilentKafka:
    """Stands where Kafka does while it is not asked: that is no consent."""

    def read(self, about: Collection[int] | None = None) -> ClusterView:
        del about
        raise StillwaterError(ASKED_LAST)


@dataclass(frozen=True)
class Gate:
    """Asks Kafka for everybody who drains."""

    sources: Sources
    reception: Reception
    forget_readings: Callable[[], None]  # from now on everything is read anew
    policy: Policy
    namespace: str
    cluster: str
    operators: frozenset[str]
    lease_seconds: float
    reach: Reach = field(default_factory=Reach)
    clock: Callable[[], float] = time.time
    # Whom Kafka refused with the lease in hand, and when: one that asks again asks Kafka first. The
    # other replica, or the next life of this one, finds it out by itself.
    refused: dict[str, float] = field(default_factory=dict)

    def ask(self, asked: RemovalRequest, deadline: float) -> GateAnswer:
        """Answer a request before `deadline`; what cannot be told is a no, with the reason."""
        try:
            answer = self._answer(asked, deadline)
        except (StillwaterError, *NO_ANSWER) as error:
            said = f"Whether {asked.name} may go is unknown: {error}"
            answer = refuse(said, self.policy).answer
        if asked.wish is not Wish.OTHER:
            logger.info(answer.reason, allowed=answer.allowed, user=asked.username, pod=asked.name)
        return answer

    def _answer(self, asked: RemovalRequest, deadline: float) -> GateAnswer:
        if asked.wish is Wish.DELETE_NODE:
            return self._node_answer(asked)
        if asked.wish is Wish.OTHER or not self._kafkas(asked):
            return GateAnswer(allowed=True, reason="It is none of Kafka's pods.")
        # What a request shows of its pod is not believed: the API server is asked.
        pod = self.sources.nodes.kafka_pod(asked.name)
        free = allow_if_gone(pod, asked.name)
        if free is not None or pod is None:
            return free or GateAnswer(allowed=True, reason="")
        node = next((n for n in self.sources.nodes.nodes() if n.name == pod.node_name), None)
        ready = None if node is None else node.ready
        reason = reason_not_to_ask(
            asked, operators=self.operators, node_name=pod.node_name, node_ready=ready
        )
        if reason is not None:
            return GateAnswer(allowed=True, reason=reason)
        if node is None or node.instance_id is None:
            lacking = f"Node {pod.node_name} of {pod.name} is not known with its instance"
            return refuse(f"{lacking}, so its state is unknown.", self.policy).answer
        return self._pod_answer(asked, pod, node, deadline)

    def _kafkas(self, asked: RemovalRequest) -> bool:
        return asked.namespace == self.namespace and node_id_of_pod(asked.name) is not None

    def _node_answer(self, asked: RemovalRequest) -> GateAnswer:
        """Refuse to delete the Node of a broker that runs: its pod would be given up, not ended."""
        finalizers = (asked.shown.get("metadata") or {}).get("finalizers") or ()
        drained = KARPENTER_FINALIZER in finalizers
        drains = GateAnswer(allowed=True, reason="Karpenter drains first; the gate judges that.")
        try:
            on_it = next(
                (p for p in self.sources.nodes.kafka_pods() if p.node_name == asked.name), None
            )
        except StillwaterError:
            if drained:  # Most of its nodes are none of Kafka's, and not to wait for us.
                return drains
            raise
        if drained and not (on_it is not None and on_it.ignores_disruption):
            return drains
        if on_it is None:
            return GateAnswer(allowed=True, reason=f"No Kafka pod runs on {asked.name}.")
        provider = (asked.shown.get("spec") or {}).get("providerID", "")
        instance = self.sources.cloud.instance(provider.rpartition("/")[2])
        if provider and (instance is None or instance.state in {"stopped", "terminated"}):
            return GateAnswer(allowed=True, reason=f"The machine of {asked.name} has ended.")
        reason = f"{on_it.name} runs on {asked.name}: drain it (kubectl drain {asked.name}) first."
        if drained:
            reason = (
                f"{on_it.name} tolerates the taint {DISRUPTED_TAINT}: Karpenter would not evict "
                f"it, and end its node under it. Narrow its tolerations."
            )
        return GateAnswer(allowed=False, reason=reason)

    def _pod_answer(
        self, asked: RemovalRequest, pod: PodView, node: NodeView, deadline: float
    ) -> GateAnswer:
        for _ in range(MOST_ATTEMPTS):
            try:
                return self._turn(asked, pod, node, deadline)
            except Conflict as conflict:
                refusal = str(conflict)  # Its loop, or the other replica, has just written it.
        return refuse(refusal, self.policy).answer

    def _turn(
        self, asked: RemovalRequest, pod: PodView, node: NodeView, deadline: float
    ) -> GateAnswer:
        now = self.clock()
        known = _note_kafka_node(self._incident(asked, str(node.instance_id), now), pod, node)
        others = self._others(known, now)
        if others is not None and not asked.dry_run:
            # Nothing that Kafka says could change it, and its loop sees when they have ended.
            self._wait(asked, known, now)
        if others is not None:
            return refuse(others, self.policy).answer
        last = asks_last(asked, known, self.refused.get(known.id), now)
        incident, seen = self._look(known, now, _SilentKafka() if last else self.sources.kafka)
        # By what was read: a NodeClaim's deadline is new to an incident that nobody has opened yet.
        hasty = too_hasty(asked, pod, incident, now)
        if hasty is not None:
            return refuse(hasty, self.policy).answer
        if incident.node_id != pod.node_id:
            first = f"Incident {incident.id} sees to {incident.pod_name} on {node.name} first."
            return refuse(first, self.policy).answer
        ruling = self._ruling(asked, incident, seen)
        if asked.dry_run:
            return ruling.answer
        if ruling.turn is not None:
            return self._admit(asked, ruling.turn, deadline)
        if ruling.waits:
            self._wait(asked, known, now)
        return ruling.answer

    def _incident(self, asked: RemovalRequest, instance_id: str, now: float) -> Incident:
        """Return the open incident of an instance, or the one that this eviction would open."""
        history = rounds(self.sources.ledger, instance_id)
        if history and history[-1].open:
            return history[-1]
        number = len(history) + 1
        found = Interruption(
            event_id=asked.uid,
            dedupe_key=f"{Kind.EVICTION}:{instance_id}:{number}",
            account=None,
            region=None,
            occurred_at=now,
            body="",
            kind=Kind.EVICTION,
            instance_id=instance_id,
            event_type=asked.username,
        )
        opened = open_incident(found, now, after=history, actor="gate")
        return replace(merge(opened, found, now), drainer=_drainer(asked, now))

    def _others(self, incident: Incident, now: float) -> str | None:
        """Return who takes a Kafka node out before an eviction's; whoever is drained is past it."""
        if incident.state not in UNDRAINED or not asked_for(incident, self._policy_of(incident)):
            return None
        holder = blocking_holder(self.sources.ledger.leases(), incident.id, incident.party, now)
        if holder in {None, incident.id}:
            return None
        return f"Incident {holder} takes a Kafka node out first."

    def _look(
        self, incident: Incident, now: float, kafka: ReadsKafka
    ) -> tuple[Incident, Observation]:
        """Read what the incident of a node that is about to go rests on."""
        # Whatever it waits for, Kafka is asked as at its turn, and who else has a node out.
        state = State.HOLDING if incident.state in UNDRAINED else incident.state
        seen = observe(replace(incident, state=state), self.sources, now, kafka)
        return learn(incident, seen), seen

    def _ruling(self, asked: RemovalRequest, incident: Incident, seen: Observation) -> Ruling:
        own = lease_of(self.sources.ledger.leases(), incident.id)
        return rule(asked, incident, seen, self._policy_of(incident), own)

    def _policy_of(self, incident: Incident) -> Policy:
        return self.reach.policy(incident.group, self.policy)

    def _wait(self, asked: RemovalRequest, known: Incident, now: float) -> None:
        """Have the incident's loop bring what is missing, and know that somebody still asks."""
        asked_at = None if known.drainer is None else known.drainer.asked_at
        fresh = asked_at is not None and now - asked_at < NOTED_EVERY_SECONDS
        if known.version and fresh:
            return
        noted = replace(known, drainer=_drainer(asked, now))
        self.reception.wake(self.sources.ledger.put(noted))

    def _admit(self, asked: RemovalRequest, ready: Incident, deadline: float) -> GateAnswer:
        """Take the lease, read once more, and record the drain; then somebody may go."""
        turn = self.sources.ledger.put(replace(ready, drainer=_drainer(asked, self.clock())))
        taken = self.sources.ledger.take_lease(
            turn.id, self.clock(), self.lease_seconds, node_id=turn.node_id
        )
        if not taken.granted:
            return refuse(taken.reason, self.policy).answer
        # Its last holder may have just left: only what is read with the lease in hand counts.
        self.forget_readings()
        try:
            return self._begin(asked, turn, deadline)
        finally:
            # One that was used stays.
            self.sources.ledger.drop_lease(turn.id)

    def _begin(self, asked: RemovalRequest, turn: Incident, deadline: float) -> GateAnswer:
        incident, seen = self._look(turn, self.clock(), self.sources.kafka)
        ruling = self._ruling(asked, incident, seen)
        now = self.clock()
        if ruling.turn is None or ruling.unasked:
            self._remember_refusal(turn, now)
            return ruling.answer
        if now > deadline:
            return refuse("Kafka took too long to answer.", self.policy).answer
        begun = self.sources.ledger.begin_drain(
            turn.id, now, self.lease_seconds, node_id=turn.node_id
        )
        if not begun.granted:
            return refuse(begun.reason, self.policy).answer
        out = let_through(ruling.turn, ruling.answer.reason, now)
        self.reception.wake(self.sources.ledger.put(out))
        return ruling.answer

    def _remember_refusal(self, turn: Incident, now: float) -> None:
        """Have Kafka asked first for a while, and the incident's loop follow what it waits for."""
        for holder, at in tuple(self.refused.items()):
            if now - at >= ASKS_FIRST_SECONDS:
                self.refused.pop(holder, None)
        self.refused[turn.id] = now
        self.reception.wake(turn)


def _note_kafka_node(incident: Incident, pod: PodView, node: NodeView) -> Incident:
    """Say of an incident that is not drained yet which Kafka node it is about."""
    if incident.state not in UNDRAINED:
        return incident
    return replace(
        incident, node_id=pod.node_id, pod_name=pod.name, role=pod.role, node_name=node.name
    )


def _drainer(asked: RemovalRequest, now: float) -> Drainer:
    return Drainer(name=asked.username, asked_at=now)


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
