"""Judges the quorum, the partitions and each node by what Kafka and its exporters say.

The quorum comes first: without one the brokers go on describing the cluster from memory, with
nobody fenced (research: kafka-measured 3), so nothing else in such a reading is believed. Where a
broker stands (offline, fenced, online, stopping) no source tells alone: DescribeCluster knows
fencing and not stopping; the active controller's gauges know all four and are missing for brokers
that registered before it started (KAFKA-20370); a broker's own state says RUNNING of one that was
fenced again. So the quorum's word decides, a gauge that is missing is no word, and what contradicts
it is reported beside it. Errors in loading or applying metadata (KIP-859) are counters that a
restart sets back to 0: the ledger keeps them before one, and while they are not 0 nothing is
restarted unless somebody has seen them. A node's verdict is the graver of what Kafka says of it and
what it says of itself (core.health.rules).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from enum import StrEnum
from typing import Any

from core.ground.words import id_list
from core.health import rules
from core.health.node import (
    ACTIVE,
    CONTROLLED_SHUTDOWN,
    FENCED,
    NEVER,
    RUNNING,
    STATES,
    STOPPING,
    UNREGISTERED,
    Limits,
    Metric,
    NodeMetrics,
    NodeObservation,
    Role,
    add_metrics,
)
from core.health.pods import STARTUP_SECONDS, PodSeen
from core.health.verdict import SEVERITY, HealthVerdict, degraded, healthy, not_known, unhealthy
from core.views import ClusterView, PartitionView, VoterView

LIMITS = Limits()
ADMIN = "Kafka's admin API"
WHOLE = "a whole reading of Kafka"


def silent(what: str, why: str) -> HealthVerdict:
    """Return the verdict on anything that only Kafka could have told."""
    return not_known(f"{what}: unknown, since Kafka gave no answer. {why}", (ADMIN,))


def not_whole(what: str, view: ClusterView) -> HealthVerdict:
    """Return the verdict on anything whose good state only a whole reading could have shown."""
    why = view.doubt or "What Kafka told of it is not all there is to tell."
    return not_known(f"{what}: unknown. {why}", (WHOLE,))


def quorum_verdict(view: ClusterView) -> HealthVerdict:
    """Say whether the controllers have a leader, and a majority that keeps up with it."""
    if view.lacks_quorum:
        return unhealthy(
            "The controllers have no quorum: brokers serve from memory, and nothing can change; "
            "bring a majority of the controllers back."
        )
    # A leader that no voter is: whether a majority keeps up was not told.
    if view.quorum_leader not in {voter.node_id for voter in view.voters}:
        return not_whole("The quorum", view)
    behind = [voter.node_id for voter in view.voters if _lags(voter)]
    said = f"Controller {view.quorum_leader} leads the quorum of {len(view.voters)}"
    if not behind and view.doubts:
        return not_whole("The quorum", view)
    if not behind:
        return healthy(f"{said}, and all keep up.")
    left = len(view.voters) - len(behind)
    if left <= len(view.voters) // 2:
        return unhealthy(f"{said}, and no majority keeps up: {id_list(behind)} lag behind.")
    return degraded(f"{said}, and {id_list(behind)} lag behind.")


def controller_verdict(node_id: int, view: ClusterView) -> HealthVerdict:
    """Return one controller's verdict as the quorum's leader sees it."""
    if view.lacks_quorum:
        return silent(f"Controller {node_id}", "The controllers have no quorum.")
    voter = next((v for v in view.voters if v.node_id == node_id), None)
    # Without the leader's own place in the log, nobody's lag is known.
    unmeasured = view.quorum_leader not in {v.node_id for v in view.voters}
    if unmeasured or (view.doubts and (voter is None or not _lags(voter))):
        return not_whole(f"Controller {node_id}", view)
    if voter is None:
        return unhealthy(f"Controller {node_id} is not a voter of the quorum that answers.")
    if voter.node_id == view.quorum_leader:
        return healthy(f"Controller {node_id} leads the quorum.")
    if not _lags(voter):
        return healthy(f"Controller {node_id} keeps up with the leader.")
    lag = voter.lag_seconds
    since = "it never fetched" if lag is None else f"{lag:.0f} s behind"
    return unhealthy(f"Controller {node_id} has not caught up with the quorum's leader: {since}.")


def broker_verdict(broker_id: int, view: ClusterView) -> HealthVerdict:
    """Return one broker's verdict: registered, unfenced, and in every ISR as the leaders see it."""
    if view.lacks_quorum:
        return silent(f"Broker {broker_id}", "The controllers have no quorum.")
    if broker_id not in view.brokers:
        return unhealthy(f"Broker {broker_id} is not registered.")
    held = view.held_by(broker_id)
    if broker_id in view.fenced:
        return unhealthy(
            f"Broker {broker_id} is fenced: it serves none of its {len(held)} partitions."
        )
    behind = [p for p in held if broker_id not in p.isr]
    if behind:
        return degraded(
            f"Broker {broker_id} is not in the ISR of {_partitions(behind, len(held))}."
        )
    if view.doubts:
        return not_whole(f"Broker {broker_id}", view)
    return healthy(f"Broker {broker_id} is in the ISR of all its {len(held)} partitions.")


def partitions_verdict(view: ClusterView) -> HealthVerdict:
    """Say whether every partition can be read and written, and would survive a broker."""
    if view.lacks_quorum:
        return silent("Partitions", "The controllers have no quorum.")
    total = len(view.partitions)
    well = healthy(f"All {total} partitions have all replicas in sync.")
    return next(_partition_troubles(view, total), well)


def _partition_troubles(view: ClusterView, total: int) -> Iterator[HealthVerdict]:
    """Yield what keeps the partitions from being well, the gravest first."""
    if offline := [p for p in view.partitions if p.leader is None]:
        said = f"No broker leads {_partitions(offline, total)}."
        yield unhealthy(f"{said}{_whole_copies(offline)}")
    if below := view.below_minimum:
        yield unhealthy(
            f"Producers with acks=all are refused: {_partitions(below, total)} have fewer in-sync "
            f"replicas than min.insync.replicas."
        )
    if impossible := next((p for p in view.partitions if not _can_lead(p, view)), None):
        yield not_known(
            f"Partitions: unknown. Broker {impossible.leader} should lead {impossible.name}, and "
            f"is {_why_not(impossible, view)}. The readings contradict each other; look again, and "
            "at that broker's connection to the controllers.",
            (WHOLE,),
        )
    if behind := [p for p in view.partitions if set(p.isr) != set(p.replicas)]:
        yield degraded(f"Replicas are out of sync in {_partitions(behind, total)}.")
    if view.doubts:
        yield not_whole("Partitions", view)


def _can_lead(partition: PartitionView, view: ClusterView) -> bool:
    """Say whether its leader is one that Kafka elects: in sync, and online."""
    leader = partition.leader
    return leader is None or (leader in partition.isr and view.online(leader))


def _why_not(partition: PartitionView, view: ClusterView) -> str:
    if partition.leader not in partition.isr:
        return "not in its ISR"
    return "fenced" if partition.leader in view.fenced else "not registered"


def _whole_copies(offline: Sequence[PartitionView]) -> str:
    """Return who brings an offline partition back without loss, where Kafka knows it (ELR)."""
    known = next((p for p in offline if p.eligible), None)
    if known is None:
        return ""
    return (
        f" Broker {id_list(known.eligible)} still holds all of {known.name} (ELR): bring it back, "
        f"and nothing is lost."
    )


def _lags(voter: VoterView) -> bool:
    """Say whether a voter is behind for longer than a hiccup; a rotation is stricter."""
    # What is no number is not below the limit either.
    return voter.lag_seconds is None or not voter.lag_seconds <= LIMITS.voter_lag_seconds


def _partitions(found: Sequence[PartitionView], total: int) -> str:
    rest = f", among them {found[0].name}" if len(found) > 1 else f": {found[0].name}"
    return f"{len(found)} of {total} partitions{rest}"


REGISTRATIONS = {
    UNREGISTERED: "not registered",
    FENCED: "fenced",
    CONTROLLED_SHUTDOWN: "in controlled shutdown",
    ACTIVE: "active",
}


class Lifecycle(StrEnum):
    """A broker's state as the registration draft named it, read from what KIP-631 shipped."""

    OFFLINE = "offline"  # no process that the quorum hears of
    FENCED = "fenced"  # it registered, and serves nothing
    ONLINE = "online"
    STOPPING = "stopping"  # in controlled shutdown: it hands its leaders over, then goes
    UNKNOWN = "unknown"  # no source that may be believed told


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSigns:
    """What each source says of one broker; None is a source that says nothing of it."""

    broker_id: int
    quorum_answers: bool | None = None
    described: bool | None = None  # DescribeCluster lists it, fenced ones included
    is_fenced: bool | None = None  # there
    registration: int | None = None  # BrokerRegistrationState on the active controller
    since_heartbeat_seconds: float | None = None  # on the active controller
    broker_state: int | None = None  # the broker's own
    told_to_stop: bool | None = None  # its pod is being deleted
    process: bool | None = None  # anything of it runs


@dataclass(frozen=True, slots=True)
class BrokerLifecycle:
    """Where one broker stands, why, and what contradicts it."""

    broker_id: int
    state: Lifecycle
    reason: str
    disagreements: tuple[str, ...] = ()


def lifecycle(signs: BrokerSigns, limits: Limits | None = None) -> BrokerLifecycle:
    """Say where a broker stands; the quorum's word outweighs the broker's own."""
    state, told = _state(signs, (limits or Limits()).session_seconds)
    return BrokerLifecycle(
        signs.broker_id,
        state,
        f"Broker {signs.broker_id} is {state.value}: {told}.",
        tuple(_disagreements(signs, state)),
    )


def _state(signs: BrokerSigns, session_seconds: float) -> tuple[Lifecycle, str]:
    if signs.quorum_answers is False:
        return Lifecycle.UNKNOWN, "the controllers have no quorum, and brokers tell from memory"
    if signs.registration == CONTROLLED_SHUTDOWN:
        return Lifecycle.STOPPING, "the controllers have it in controlled shutdown"
    if signs.broker_state in STOPPING:
        return Lifecycle.STOPPING, f"it says of itself that it is {STATES[signs.broker_state]}"
    if signs.described is False or signs.registration == UNREGISTERED:
        return Lifecycle.OFFLINE, "it is not registered"
    if signs.told_to_stop and signs.process is not False:
        # Fenced at its end, a controlled shutdown still closes logs: it stops until it has ended.
        return Lifecycle.STOPPING, "its pod stops"
    return _fencing(signs, session_seconds)


def _fencing(signs: BrokerSigns, session_seconds: float) -> tuple[Lifecycle, str]:
    """Tell a broker that serves from one that is fenced, and that from one nobody hears of."""
    fenced = signs.is_fenced
    if fenced is None and signs.registration is not None:
        fenced = signs.registration == FENCED
    if fenced is None:
        return Lifecycle.UNKNOWN, "no source told whether it is fenced"
    if not fenced:
        return Lifecycle.ONLINE, "it is registered and not fenced"
    if signs.process is False:
        return Lifecycle.OFFLINE, "the quorum fenced it, and no process of it runs"
    heard = signs.since_heartbeat_seconds
    if heard is None or heard <= session_seconds:
        return Lifecycle.FENCED, "the quorum fenced it"
    silent = f"no heartbeat for {heard:.0f} s"
    state = Lifecycle.OFFLINE if signs.broker_state is None else Lifecycle.FENCED
    return state, f"the quorum fenced it, and {silent}"


def _disagreements(signs: BrokerSigns, state: Lifecycle) -> Iterator[str]:
    name = f"Broker {signs.broker_id}"
    own = signs.broker_state
    if own == RUNNING and state in {Lifecycle.FENCED, Lifecycle.OFFLINE}:
        yield f"{name} says that it is running, while the quorum has it {state.value}."
    if signs.process is False and state is Lifecycle.ONLINE:
        yield f"{name} has no process left, and its session has not run out yet."
    if own is not None and own < RUNNING and state is Lifecycle.ONLINE:
        yield f"{name} says that it is {STATES.get(own, own)}, while the quorum has it online."
    gauge = signs.registration
    believed = signs.is_fenced is not None and signs.quorum_answers is not False
    contradicted = gauge in {FENCED, ACTIVE} and (gauge == FENCED) is not signs.is_fenced
    if gauge is not None and believed and contradicted:
        said = "fenced" if signs.is_fenced else "not fenced"
        yield (
            f"{name} is {said} by DescribeCluster and {REGISTRATIONS[gauge]} by the active "
            f"controller's BrokerRegistrationState."
        )
    if gauge is None and signs.described and signs.since_heartbeat_seconds is not None:
        yield (
            f"{name} has a heartbeat on the active controller and no BrokerRegistrationState: the "
            f"gauge is not made again after a controller's restart (KAFKA-20370)."
        )


def signs_of(
    broker_id: int,
    *,
    quorum_answers: bool,
    described: Mapping[int, bool],
    active_controller: NodeMetrics | None,
    own: NodeMetrics | None,
) -> BrokerSigns:
    """Gather what every source says; `described` is broker -> fenced, as DescribeCluster has it."""
    registration, heartbeat = None, None
    if active_controller is not None:
        key = str(broker_id)
        registration = active_controller.sums_by_label(Metric.REGISTRATION_STATE, "broker").get(key)
        heartbeat = active_controller.sums_by_label(Metric.SINCE_HEARTBEAT_MS, "broker").get(key)
    return BrokerSigns(
        broker_id=broker_id,
        quorum_answers=quorum_answers,
        described=broker_id in described if quorum_answers else None,
        is_fenced=described.get(broker_id) if quorum_answers else None,
        registration=None if registration is None else int(registration),
        since_heartbeat_seconds=None if heartbeat is None else heartbeat / 1000,
        broker_state=None if own is None else own.count(Metric.BROKER_STATE),
    )


def active_controller(scrapes: Iterable[NodeMetrics]) -> NodeMetrics | None:
    """Return what the active controller tells; its word alone counts for brokers' states."""
    return next((m for m in scrapes if m.count(Metric.ACTIVE_CONTROLLERS) == 1), None)


@dataclass(frozen=True, slots=True)
class ErrorCounts:
    """The three shipped counters of one node; None is one that it did not tell."""

    load: int | None = None
    apply: int | None = None
    controller: int | None = None

    @property
    def any(self) -> bool:
        return any(astuple(self))

    def beyond(self, known: ErrorCounts) -> bool:
        """Say whether any counter is above what is already known of it."""
        pairs = zip(astuple(self), astuple(known), strict=True)
        return any((now or 0) > (before or 0) for now, before in pairs)


def counts_of(metrics: NodeMetrics) -> ErrorCounts:
    return ErrorCounts(
        load=metrics.count(Metric.METADATA_LOAD_ERRORS),
        apply=metrics.count(Metric.METADATA_APPLY_ERRORS),
        controller=metrics.count(Metric.METADATA_ERRORS),
    )


@dataclass(frozen=True, slots=True)
class ErrorSnapshot:
    """The counters of every node at one moment, as the ledger keeps them before a restart.

    `silent` says of each node that was asked and did not tell, why, as a sentence.
    """

    taken_at: float  # epoch seconds
    nodes: Mapping[int, ErrorCounts] = field(default_factory=dict)
    silent: Mapping[int, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict, with text for keys as JSON wants them."""
        return {
            "taken_at": self.taken_at,
            "nodes": {str(node_id): asdict(counts) for node_id, counts in self.nodes.items()},
            "silent": {str(node_id): why for node_id, why in self.silent.items()},
        }


def snapshot_from_dict(stored: Mapping[str, Any]) -> ErrorSnapshot:
    """Read what `to_dict` made, through JSON or not; a counter this version lacks is left out."""
    known = ErrorCounts.__dataclass_fields__
    return ErrorSnapshot(
        taken_at=float(stored["taken_at"]),
        nodes={
            int(node_id): ErrorCounts(
                **{k: None if v is None else int(v) for k, v in counts.items() if k in known}
            )
            for node_id, counts in stored.get("nodes", {}).items()
        },
        silent={int(node_id): str(why) for node_id, why in stored.get("silent", {}).items()},
    )


def snapshot(
    taken_at: float, scrapes: Mapping[int, NodeMetrics], silent: Mapping[int, str] | None = None
) -> ErrorSnapshot:
    """Return the snapshot of one round of scrapes; a node without any counter is silent."""
    counts = {node_id: counts_of(metrics) for node_id, metrics in scrapes.items()}
    untold = {
        node_id: f"Node {node_id} exports none of the metadata error counters; let its metrics' "
        f"allow list name them."
        for node_id, found in counts.items()
        if found == ErrorCounts()
    }
    return ErrorSnapshot(
        taken_at=taken_at,
        nodes={node_id: found for node_id, found in counts.items() if node_id not in untold},
        silent={**untold, **(silent or {})},
    )


def vetoes(now: ErrorSnapshot, acknowledged: ErrorSnapshot | None = None) -> tuple[str, ...]:
    """Return a sentence for every node whose errors nobody has acknowledged; none: go on.

    What was acknowledged is acknowledged as far as it went: one error more vetoes again. A node
    that is silent vetoes nothing here, because the one to be replaced may be the one that died.
    """
    seen = acknowledged.nodes if acknowledged else {}
    return tuple(
        f"Node {node_id} {_count_text(counts)}, and a restart would erase that: keep its log, find "
        f"the cause (runbook {_runbook(counts)}), then acknowledge it."
        for node_id, counts in sorted(now.nodes.items())
        if counts.beyond(seen.get(node_id, ErrorCounts()))
    )


def metadata_errors_verdict(node_id: int, role: str, metrics: NodeMetrics | None) -> HealthVerdict:
    """Say how a node does with the metadata log; `role` is broker, controller or combined."""
    if metrics is None:
        return not_known(
            f"Node {node_id} did not tell its metrics, so its metadata errors are not known.",
            (f"metrics of node {node_id}",),
        )
    counts = counts_of(metrics)
    if counts.any:
        return degraded(f"Node {node_id} {_count_text(counts)}.")
    missing = tuple(name for name, count in _expected_counts(role, counts) if count is None)
    if missing:
        return not_known(
            f"Node {node_id} does not export {', '.join(missing)}; let its metrics' allow list "
            f"name them.",
            missing,
        )
    return healthy(f"Node {node_id} has had no metadata errors.")


def _expected_counts(role: str, counts: ErrorCounts) -> list[tuple[str, int | None]]:
    broker = [("metadata-load-error-count", counts.load)]
    broker.append(("metadata-apply-error-count", counts.apply))
    controller = [("MetadataErrorCount", counts.controller)]
    return {"broker": broker, "controller": controller}.get(role, broker + controller)


def _count_text(counts: ErrorCounts) -> str:
    parts = []
    if counts.load:
        parts.append(f"failed {_times(counts.load)} to load metadata")
    if counts.apply:
        parts.append(f"failed {_times(counts.apply)} to apply metadata")
    if counts.controller:
        parts.append(f"counts {counts.controller} metadata errors as a controller")
    return " and ".join(parts)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _runbook(counts: ErrorCounts) -> str:
    if counts.controller:
        return "KafkaControllerMetadataError"
    return "KafkaMetadataLoadError" if counts.load else "KafkaMetadataApplyError"


def node_verdict(
    node_id: int,
    role: Role,
    view: ClusterView,
    metrics: NodeMetrics | None,
    pod: PodSeen | None,
    now: float,
) -> HealthVerdict:
    """Return the verdict on one half of a node; no metrics are an exporter that did not answer."""
    by_kafka = (broker_verdict if role is Role.BROKER else controller_verdict)(node_id, view)
    by_itself = rules.strict_readiness(observation(node_id, role, view, metrics, pod, now), LIMITS)
    first, second = sorted(
        (by_kafka, by_itself), key=lambda verdict: SEVERITY.index(verdict.health), reverse=True
    )
    alike = first.health is second.health and not first.healthy
    return HealthVerdict(
        first.health,
        f"{first.reason} {second.reason}" if alike else first.reason,
        (*first.missing, *second.missing),
    )


def observation(
    node_id: int,
    role: Role,
    view: ClusterView,
    metrics: NodeMetrics | None,
    pod: PodSeen | None,
    now: float,
) -> NodeObservation:
    """Gather what all sources of one examination told of a node."""
    answers = not view.stale and view.quorum_leader is not None
    voter = next((v for v in view.voters if v.node_id == node_id), None)
    lag = None if voter is None else voter.lag_seconds
    away = sum(node_id in p.replicas and node_id not in p.isr for p in view.partitions)
    running = None if pod is None else pod.running_seconds(now)
    seen = NodeObservation(
        node_id=node_id,
        role=role,
        now=now,
        process=None if pod is None else pod.running,
        started_at=None if pod is None else pod.started_at,
        quorum_answers=None if view.quorum_leader is None and not view.lacks_quorum else answers,
        fenced=node_id in view.fenced if answers and node_id in view.brokers else None,
        voter_lag_seconds=NEVER if voter is not None and lag is None else lag,
        not_in_sync=away if answers else None,
        # One examination has no memory: what runs for so long has been in sync before.
        was_in_sync=running is not None and running >= STARTUP_SECONDS,
    )
    return add_metrics(seen, metrics)


def disagreements(
    broker_id: int, view: ClusterView, own: NodeMetrics | None, active: NodeMetrics | None
) -> tuple[str, ...]:
    """Return what contradicts what the quorum says of a broker, as sentences."""
    signs = signs_of(
        broker_id,
        quorum_answers=not view.stale and view.quorum_leader is not None,
        described={each: each in view.fenced for each in view.brokers},
        active_controller=active,
        own=own,
    )
    return lifecycle(signs, LIMITS).disagreements
