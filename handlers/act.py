"""Carries out what core decided, in order; every effect may be repeated without harm."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from aws_lambda_powertools import Logger

from core.errors import Conflict
from core.incidents import Incident
from core.metrics_names import PAGES_SENT
from core.naming import DRAIN_HOOK
from core.observations import (
    Action,
    CompleteHook,
    DropLease,
    ForwardDrain,
    Heartbeat,
    Page,
    SetDesired,
    TakeLease,
)
from handlers.adapters import metrics
from handlers.adapters.aws import Cloud, Queue
from handlers.ledger import Ledger

logger = Logger(service="stillwater", child=True)


@dataclass(frozen=True)
class Effects:
    """What can be acted on."""

    cloud: Cloud
    ledger: Ledger
    termination_handler: Queue
    lease_seconds: float


def perform(incident: Incident, actions: Sequence[Action], effects: Effects, now: float) -> None:
    """Carry out a decision's actions in their order.

    Raises Conflict when the lease a drain depends on is refused, or when another invocation has
    taken the incident over; then nothing was forwarded and the decision must not be recorded.
    """
    for position, action in enumerate(actions):
        match action:
            case TakeLease():
                decision = effects.ledger.take_lease(incident.id, now, effects.lease_seconds)
                drain_depends = any(isinstance(a, ForwardDrain) for a in actions[position:])
                if not decision.granted and drain_depends:
                    raise Conflict(decision.reason)
            case DropLease():
                effects.ledger.drop_lease(incident.id)
            case ForwardDrain():
                _forward(incident, effects)
            case Page(key=key, reason=reason):
                metrics.count(PAGES_SENT)
                logger.critical(reason, page=key, incident_id=incident.id)
            case SetDesired(desired=desired):
                if incident.group is not None:
                    effects.cloud.set_desired(incident.group, desired)
            case Heartbeat() | CompleteHook():
                _touch_hook(incident, action, effects)


def _forward(incident: Incident, effects: Effects) -> None:
    """Send the drain, unless another invocation carries this incident by now.

    A crash between sending and recording sends twice; the termination handler knows an
    announcement by its EventBridge id and drains once.
    """
    current = effects.ledger.get(incident.id)
    if current is None or current.version != incident.version:
        raise Conflict(f"Incident {incident.id} was changed while its drain was about to start.")
    effects.termination_handler.send(incident.drain_event or _lifecycle_message(incident))


def _lifecycle_message(incident: Incident) -> str:
    """Return an announcement in place of one that got lost, as a group sends it directly.

    Without the lost token the termination handler drains but cannot complete its hook; the
    incident's end completes both.
    """
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


def _touch_hook(incident: Incident, action: Heartbeat | CompleteHook, effects: Effects) -> None:
    if incident.group is None:
        return
    target = (incident.group, action.hook, incident.instance_id, incident.hooks.get(action.hook))
    if isinstance(action, Heartbeat):
        waiting = effects.cloud.heartbeat(*target)
    else:
        waiting = effects.cloud.complete_hook(*target, action.result)
    if not waiting:
        logger.info(
            "The hook no longer waits.", hook=action.hook, incident_id=incident.id, action=action
        )
