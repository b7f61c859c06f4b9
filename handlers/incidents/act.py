"""Carries out what core decided, in order; every effect may be repeated without harm.

Here too: the message that sends a termination handler to a node, the freeze of a lost zone, and the
metadata errors kept before a restart sets them to 0. `errors#<incident id>` holds what was counted
when the drain was forwarded, or, where the termination handler hears AWS itself, at the incident's
first look; a rotation run asks before it begins with a node.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from aws_lambda_powertools import Logger

from core.availability.consent import LOST_ZONE
from core.ground.errors import Conflict, StillwaterError
from core.ground.naming import DRAIN_HOOK
from core.health.kafka import ErrorSnapshot, snapshot
from core.health.node import Metric
from core.incidents.actions import (
    OWN,
    WITHHELD,
    Action,
    CloseBudget,
    CompleteHook,
    Cordon,
    DropLease,
    EndClaim,
    EndDrain,
    Evict,
    ForwardDrain,
    FreeSpare,
    FreezeZone,
    Heartbeat,
    KeepErrors,
    KeepSpare,
    MoveLeaders,
    OpenBudget,
    Page,
    Reach,
    ReleaseAttachments,
    ReplaceRoot,
    RestoreLeaders,
    SetDesired,
    TaintOutOfService,
    TakeLease,
    TerminateInGroup,
    Uncordon,
    Untaint,
    is_allowed,
)
from core.incidents.consenting import operator_refusal
from core.incidents.lost import CONFIRMED
from core.incidents.observation import Policy
from core.incidents.record import Incident
from core.incidents.replacement import own_refusal
from core.zones.incident import LostZone
from handlers.adapters.aws import AwsCloud, Queue
from handlers.adapters.calls import NO_ANSWER
from handlers.adapters.kubernetes import NO_ENDS, ClaimEnds, EksDrain, EksNodes
from handlers.adapters.pages import call
from handlers.adapters.pods import PodExporters
from handlers.adapters.templates import RootVolumes
from handlers.incidents.observe import observe_operator
from handlers.incidents.shifts import INCIDENT_CAUSE, Leadership
from handlers.store.documents import Freezes
from handlers.store.ledger import SHIFT_AFTER_SECONDS, SHIFT_MESSAGE, Ledger
from handlers.store.table import Records


def drain_message(incident: Incident) -> str:
    """Return an announcement in place of one that got lost, or that nobody makes.

    In hooks, as a group sends it directly: without the lost token the termination handler drains
    but cannot complete its hook; the incident's end completes both. Out of hooks, EC2's
    recommendation to leave, which it drains and completes nothing for.
    """
    if not incident.hooks:
        return json.dumps(
            {
                "version": "0",
                "id": f"stillwater-{incident.id}",
                "detail-type": "EC2 Instance Rebalance Recommendation",
                "source": "aws.ec2",
                "time": datetime.fromtimestamp(incident.opened_at, UTC).isoformat(),
                "detail": {"instance-id": incident.instance_id},
            }
        )
    return json.dumps(
        {
            "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
            "AutoScalingGroupName": incident.group,
            "LifecycleHookName": DRAIN_HOOK,
            "LifecycleActionToken": "00000000-0000-0000-0000-000000000000",
            "EC2InstanceId": incident.instance_id,
            "RequestId": f"stillwater-{incident.id}",
        }
    )


logger = Logger(service="stillwater", child=True)
RECOVERY = 2  # Kafka's BrokerState


@dataclass(frozen=True, slots=True)
class ErrorRound:
    """What the exporters said in one round."""

    errors: ErrorSnapshot
    recovering: tuple[int, ...]


@dataclass(frozen=True)
class ErrorSnapshots:
    """Asks the exporters of one cluster's pods."""

    exporters: PodExporters
    nodes: EksNodes
    records: Records

    def ask(self, now: float) -> ErrorRound:
        """Ask every pod that runs; raises StillwaterError when Kubernetes does not answer."""
        pods = [pod.name for pod in self.nodes.kafka_pods() if pod.node_name is not None]
        scrapes = self.exporters.scrape(pods)
        recovering = tuple(
            node_id
            for node_id, metrics in sorted(scrapes.metrics.items())
            if metrics.count(Metric.BROKER_STATE) == RECOVERY
        )
        return ErrorRound(snapshot(now, scrapes.metrics, scrapes.silent), recovering)

    def keep(self, incident_id: str, now: float) -> None:
        """Keep the counters before an incident's drain; the first that are kept stand.

        Nothing waits for it: a machine that AWS takes goes whether or not its errors are known.
        """
        key = f"errors#{incident_id}"
        try:
            if self.records.read(key).version == 0:
                self.records.write(key, self.ask(now).errors.to_dict(), 0)
        except (StillwaterError, *NO_ANSWER) as error:
            logger.warning(
                "Metadata errors were not kept.", incident_id=incident_id, error=str(error)
            )


def freeze(
    zone: str, reason: str, cloud: AwsCloud, freezes: Freezes, ticks: Queue, now: float
) -> None:
    """Freeze a zone; who is first to do so calls a person, in the name of all its incidents."""
    ids = {name: id_ for id_, name in cloud.zone_names().items()}
    if any(f.zone == zone and f.source == LOST_ZONE for f in freezes.current(now)):
        return
    # Before it is written: who dies in between calls twice, and never not at all.
    call(ticks, reason, page="zone_lost", zone=zone)
    freezes.note(LostZone(ids.get(zone, zone), zone), now)
    ticks.send(SHIFT_MESSAGE)


# From a reading to the drain that rests on it. A function has a minute; one that was stopped in
# the middle and woken again knows nothing of what has happened since.
LONGEST_TURN_SECONDS = 60.0
# From the claim of a turn to a call that must not be repeated: after 45 seconds the sweep takes a
# turn for dead, and gives its incident to another.
LONGEST_BEFORE_ONCE_SECONDS = 30.0
# Others write the lease at the same moment; more than a few in a row is a fault.
MOST_ATTEMPTS = 5


@dataclass(frozen=True)
class Effects:
    """What can be acted on."""

    cloud: AwsCloud
    nodes: EksNodes
    ledger: Ledger
    freezes: Freezes
    leadership: Leadership
    snapshots: ErrorSnapshots
    termination_handler: Queue | None  # None: nobody drains for us
    # None: we drain no node ourselves
    drain: EksDrain | None = field(default=None, kw_only=True)
    claims: ClaimEnds = field(default=NO_ENDS, kw_only=True)
    # None: no root volume is replaced in place, and no node is cordoned for it.
    roots: RootVolumes | None = field(default=None, kw_only=True)
    cordons: EksDrain | None = field(default=None, kw_only=True)
    ticks: Queue
    policy: Policy
    lease_seconds: float
    reach: Reach = field(default_factory=Reach)
    clock: Callable[[], float] = time.time


def perform(
    incident: Incident, actions: Sequence[Action], effects: Effects, now: float
) -> str | None:
    """Carry out a decision's actions in their order; return what was refused, in AWS's words.

    Below level `act` only what is ours is written; a group that is not asked has refused.

    Raises Conflict when the lease a drain depends on is refused, or when another invocation has
    taken the incident over; then nothing was forwarded and the decision must not be recorded.
    """
    refused: str | None = None
    level = effects.reach.level_of(incident.group)
    for position, action in enumerate(actions):
        if not is_allowed(action, level):
            logger.info("Withheld.", incident_id=incident.id, action=type(action).__name__)
            if isinstance(action, TerminateInGroup) and action.instance_id is None:
                refused = WITHHELD
        elif isinstance(action, TakeLease):
            refusal = _lease_refused(incident, action, effects, now)
            if refusal and any(_needs_lease(a) for a in actions[position:]):
                raise Conflict(refusal)
        elif isinstance(action, TerminateInGroup):
            refused = _terminate(incident, action, effects, now)
        elif isinstance(action, ReplaceRoot):
            refused = _replace_root(incident, action, effects, now)
        elif isinstance(action, OpenBudget | CloseBudget):
            _label(incident, action, effects)
        else:
            _do(incident, action, effects, now)
    return refused


def _lease_refused(
    incident: Incident, action: TakeLease, effects: Effects, now: float
) -> str | None:
    """Take or renew the lease; return why it was refused, if it was.

    The clock is asked anew: a function may have slept since its turn began.
    """
    decision = effects.ledger.take_lease(
        incident.id,
        max(now, effects.clock()),
        effects.lease_seconds,
        party=incident.party,
        node_id=incident.node_id,
        out=action.out,
    )
    return None if decision.granted else decision.reason


def _do(incident: Incident, action: Action, effects: Effects, now: float) -> None:
    match action:
        case DropLease() | EndDrain():
            _give_back(incident, action, effects)
        case ForwardDrain() | KeepErrors() | Cordon() | Uncordon() | Evict() | EndClaim():
            _drain(incident, action, effects, now)
        case Page(key=key, reason=reason):
            call(effects.ticks, reason, page=key, incident_id=incident.id)
        case Heartbeat() | CompleteHook():
            _touch_hook(incident, action, effects)
        case SetDesired(desired=desired):
            if incident.group is not None:
                _check_mine(incident, effects)  # It may be over, and need no room.
                effects.cloud.set_desired(incident.group, desired)
        case KeepSpare() | FreeSpare() | TaintOutOfService() | ReleaseAttachments() | Untaint():
            _mark_node(incident, action, effects)
        case MoveLeaders() | RestoreLeaders():
            _shift_leaders(incident, action, effects)
        case FreezeZone(zone=zone, reason=reason):
            freeze(zone, reason, effects.cloud, effects.freezes, effects.ticks, now)


def _needs_lease(action: Action) -> bool:
    if isinstance(action, Evict):
        return action.kafka
    return isinstance(action, ForwardDrain | OpenBudget | ReplaceRoot | TerminateInGroup)


def _label(incident: Incident, action: OpenBudget | CloseBudget, effects: Effects) -> None:
    if effects.reach.level != OWN:
        return  # The budgets that know the label are there where our own stacks made them.
    if isinstance(action, OpenBudget):
        _check_not_paused(effects)
        _check_mine(incident, effects)
        effects.nodes.let_leave(action.pod, incident.id)
    else:
        effects.nodes.keep(action.pod, incident.id)


def _give_back(incident: Incident, action: DropLease | EndDrain, effects: Effects) -> None:
    if isinstance(action, EndDrain):
        effects.ledger.drop_lease(action.holder, ended=True)
    else:
        effects.ledger.drop_lease(incident.id, ended=action.ended)


def _terminate(
    incident: Incident, action: TerminateInGroup, effects: Effects, now: float
) -> str | None:
    """Have the group terminate an instance; return why it will not end the incident's own."""
    if action.instance_id is None:
        _check_not_paused(effects)
    # Asked by two, the group would lower its desired capacity twice.
    _check_mine(incident, effects)
    _check_in_time(incident, effects, now)
    instance_id = action.instance_id or incident.instance_id
    refusal = effects.cloud.terminate_in_group(instance_id, decrement=action.decrement)
    if refusal is not None:
        logger.warning("The group does not terminate it.", instance_id=instance_id, said=refusal)
    return own_refusal(incident, instance_id, refusal)


def _replace_root(
    incident: Incident, action: ReplaceRoot, effects: Effects, now: float
) -> str | None:
    if effects.roots is None:
        return "This function may not replace a root volume."
    _check_not_paused(effects)
    # Asked by two, EC2 would make one task of it: the key is the incident's.
    _check_mine(incident, effects)
    _check_in_time(incident, effects, now)
    return effects.roots.replace(
        incident.instance_id, action.image_id, incident.id, trial=action.trial
    )


def _mark_node(
    incident: Incident,
    action: KeepSpare | FreeSpare | TaintOutOfService | ReleaseAttachments | Untaint,
    effects: Effects,
) -> None:
    match action:
        case KeepSpare(node=node):
            effects.nodes.mark_spare(node, incident.id)
        case FreeSpare(node=node):
            effects.nodes.mark_spare(node, None)
        case TaintOutOfService(node=node):
            _confirm(incident, f"Node {node} is not put out of service", effects)
            effects.nodes.set_out_of_service(node, incident.instance_id, tainted=True)
        case ReleaseAttachments(node=node):
            _confirm(incident, f"The volumes of node {node} are not released", effects)
            effects.nodes.release_attachments(node)
        case Untaint(node=node):
            effects.nodes.set_out_of_service(node, incident.instance_id, tainted=False)


def _confirm(incident: Incident, refused: str, effects: Effects) -> None:
    """Ask EC2 once more at the last moment, and raise Conflict unless the instance has ended.

    A machine that was started again since the decision would share its volumes with the next one.
    """
    instance = effects.cloud.instance(incident.instance_id)
    if instance is None or instance.state not in CONFIRMED:
        state = "unknown" if instance is None else instance.state
        raise Conflict(f"{refused}: EC2 says that instance {incident.instance_id} is {state}.")


def _shift_leaders(
    incident: Incident, action: MoveLeaders | RestoreLeaders, effects: Effects
) -> None:
    cause = f"{INCIDENT_CAUSE}{incident.id}"
    if isinstance(action, MoveLeaders):
        effects.leadership.avoid(cause, action.broker_ids)
        return
    try:
        effects.leadership.restore(cause, elect=action.elect)
    except (StillwaterError, Conflict) as error:
        # Nobody's end waits for this: a cause whose incident is over is given back by a shift.
        logger.warning("Leaders stay moved for now.", incident_id=incident.id, error=str(error))
        effects.ticks.send(SHIFT_MESSAGE, delay_seconds=SHIFT_AFTER_SECONDS)


def _drain(
    incident: Incident,
    action: ForwardDrain | KeepErrors | Cordon | Uncordon | Evict | EndClaim,
    effects: Effects,
    now: float,
) -> None:
    """Keep what a restart would erase; send the drain where somebody waits for us to, or do it."""
    if isinstance(action, EndClaim):
        _check_not_paused(effects)
        _check_mine(incident, effects)  # From then on nobody calls it off.
        effects.claims.end(action.name, action.uid)
        return
    if isinstance(action, Cordon | Uncordon | Evict):
        _empty(incident, action, effects, now)
        return
    if incident.node_id is not None:
        effects.snapshots.keep(incident.id, now)
    if isinstance(action, KeepErrors):
        return
    handler = effects.termination_handler
    if handler is None and effects.drain is None:
        raise Conflict(f"No termination handler takes the drain of incident {incident.id}.")
    _begin_drain(incident, effects, now)
    if handler is not None and effects.drain is None:
        handler.send(incident.drain_event or drain_message(incident))


def _empty(
    incident: Incident, action: Cordon | Uncordon | Evict, effects: Effects, now: float
) -> None:
    """Take one step of a drain of our own; what is refused is asked for again at the next look."""
    drain, cordons = effects.drain, effects.drain or effects.cordons
    if cordons is None or (drain is None and isinstance(action, Evict)):
        raise Conflict(f"This function may not empty the node of incident {incident.id}.")
    match action:
        case Uncordon(node=node):
            cordons.uncordon(node, incident.id)
        case Cordon(node=node):
            _check_mine(incident, effects)
            cordons.cordon(node, incident.id)
        case Evict(namespace=namespace, name=name, uid=uid, kafka=kafka) if drain is not None:
            if kafka:
                if not incident.urgent:
                    _check_not_paused(effects)
                _begin_drain(incident, effects, now)
            else:
                _check_mine(incident, effects)
            refusal = drain.evict(namespace, name, uid)
            logger.info("Evicted." if refusal is None else refusal, pod=name, namespace=namespace)


def _begin_drain(incident: Incident, effects: Effects, now: float) -> None:
    """Note in the lease that the drain is sent, directly before it is; raise Conflict if refused.

    From then on nobody else goes, whatever becomes of this invocation. A two-minute warning and a
    node without Kafka wait for nobody, and are noted all the same.
    """
    forced = incident.urgent or incident.node_id is None
    if not forced:
        _check_operator(incident, effects)
    if not incident.urgent and incident.forwarded is None:
        _check_not_paused(effects)
    for attempt in range(MOST_ATTEMPTS):
        _check_mine(incident, effects)
        began = effects.clock()
        if began - now > LONGEST_TURN_SECONDS:
            raise Conflict(
                f"Incident {incident.id} was read {began - now:.0f} s ago, and no longer holds the "
                f"lease for what it saw then."
            )
        decision = effects.ledger.begin_drain(
            incident.id,
            began,
            effects.lease_seconds,
            party=incident.party,
            node_id=incident.node_id,
            forced=forced,
        )
        if decision.granted:
            break
        if not forced or attempt == MOST_ATTEMPTS - 1:
            raise Conflict(decision.reason)
    if effects.clock() - now > LONGEST_TURN_SECONDS:
        raise Conflict(f"Incident {incident.id} was read too long ago to send its drain now.")


def _check_not_paused(effects: Effects) -> None:
    """Raise Conflict if somebody has paused the cluster since the decision was made."""
    pause = effects.freezes.current_pause(effects.clock())
    if pause is not None:
        raise Conflict(pause.sentence)


def _check_in_time(incident: Incident, effects: Effects, now: float) -> None:
    """Raise Conflict if the turn is so old that the sweep may have given it to another by now."""
    lasted = effects.clock() - now
    if lasted > LONGEST_BEFORE_ONCE_SECONDS:
        raise Conflict(
            f"Incident {incident.id} was read {lasted:.0f} s ago, which is too long for an action "
            "that must not repeat; the next tick decides again."
        )


def _check_operator(incident: Incident, effects: Effects) -> None:
    """Raise Conflict if Strimzi's operator has begun something since the decision was made."""
    seen = observe_operator(incident, effects.nodes, effects.ledger, effects.clock())
    policy = effects.reach.policy(incident.group, effects.policy)
    refusal = operator_refusal(incident, seen, policy)
    if refusal is not None:
        raise Conflict(refusal)


def _check_mine(incident: Incident, effects: Effects) -> None:
    """Raise Conflict where another invocation carries this incident by now.

    The drain or the termination that was about to start is then the other's to decide.

    A crash between sending and recording sends twice; the termination handler knows an
    announcement by its EventBridge id and drains once.
    """
    current = effects.ledger.get(incident.id)
    if current is None or current.version != incident.version:
        raise Conflict(f"Incident {incident.id} was changed by another invocation meanwhile.")


def _touch_hook(incident: Incident, action: Heartbeat | CompleteHook, effects: Effects) -> None:
    if incident.group is None:
        return
    token = incident.hooks.get(action.hook)
    if isinstance(action, CompleteHook):
        # Of an incident that was carried on meanwhile, another round may stand in the same hook.
        _check_mine(incident, effects)
    # A token is one action's: the hook may wait with another that was announced to nobody.
    waiting = _reaches_hook(incident, action, token, effects) or (
        token is not None and _reaches_hook(incident, action, None, effects)
    )
    if not waiting:
        logger.info("The hook no longer waits.", hook=action.hook, incident_id=incident.id)


def _reaches_hook(
    incident: Incident, action: Heartbeat | CompleteHook, token: str | None, effects: Effects
) -> bool:
    target = (incident.group or "", action.hook, incident.instance_id, token)
    if isinstance(action, Heartbeat):
        return effects.cloud.heartbeat(*target)
    return effects.cloud.complete_hook(*target, action.result)
