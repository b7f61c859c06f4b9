"""Decides where each broker stands: offline, fenced, online or stopping, and who disagrees.

Three sources tell, and none is enough. DescribeCluster with fenced brokers knows fencing, not
stopping, and without a quorum is stale with everybody unfenced. The active controller's gauges know
all four states, and are missing for brokers that registered before it started (KAFKA-20370). The
broker's own state says RUNNING of one that was fenced again. So the quorum's word decides, a gauge
that is missing is no word, and what contradicts it is reported beside it. Kubernetes adds what none
of them sees: that a pod was told to stop, and that no process is left. Pure; core.incidents.learn
notes what changed in an incident's timeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from core.health.kafka_metrics import Metric, NodeMetrics
from core.health.limits import Limits
from core.health.node import (
    ACTIVE,
    CONTROLLED_SHUTDOWN,
    FENCED,
    RUNNING,
    STATES,
    STOPPING,
    UNREGISTERED,
)

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
        return Lifecycle.STOPPING, "its pod was told to stop"
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
    silent = f"nobody has heard of it for {heard:.0f} s"
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
        registration = active_controller.by(Metric.REGISTRATION_STATE, "broker").get(key)
        heartbeat = active_controller.by(Metric.SINCE_HEARTBEAT_MS, "broker").get(key)
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
