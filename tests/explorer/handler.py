"""Drains nodes as the termination handler does, in an explored world, and completes its hook."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from core.incidents.actions import HookResult
from core.incidents.observation import PodView
from tests.explorer import nature, rules
from tests.explorer.agenda import delete, plan, send, take_step
from tests.explorer.limits import DRAIN_LIMIT, RETENTION, VISIBILITY
from tests.explorer.world import TAG, Drain, Key, World


def happen(world: World, key: Key) -> bool:
    """Let one thing of the agenda happen that is the handler's; False: it is about others."""
    return take_step(world, key, _STEPS)


def _received(world: World, number: int) -> None:
    """The termination handler reads a message of its queue."""
    message = world.messages[number]
    if world.now - message.sent_at > RETENTION:
        delete(world, number)
        return
    world.messages[number] = replace(message, receives=message.receives + 1)
    world.agenda["nth", number] = world.now + VISIBILITY
    said, instance_id = drain_of(message.body)
    if said in world.handled or said in world.drains:
        return
    instance = world.instances.get(instance_id)
    if instance is None or TAG not in instance.tags:
        delete(world, number)
    elif instance_id not in world.nodes:
        _drained(world, said, Drain(number, instance_id, world.now))
    else:
        world.drains[said] = Drain(number, instance_id, world.now)
        world.nodes[instance_id] = replace(world.nodes[instance_id], schedulable=False)
        plan(world, ("drain", said), 1.0)


def drain_of(body: str) -> tuple[str, str]:
    """Return the id under which the handler knows a message, and the instance it is about."""
    told = json.loads(body)
    detail = told.get("detail", told)
    named = [each["entityValue"] for each in detail.get("affectedEntities", ())]
    instance_id = detail.get("EC2InstanceId") or detail.get("instance-id") or "".join(named)
    return str(told.get("id") or told.get("RequestId")), str(instance_id)


def _drain(world: World, said: str) -> None:
    """One attempt of the handler's to empty a node."""
    drain = world.drains.get(said)
    if drain is None:
        return
    pod = world.pod_on(drain.instance_id)
    if pod is None:
        _drained(world, said, drain)
    elif world.now - drain.began > DRAIN_LIMIT:
        del world.drains[said]  # Its message comes again.
    else:
        if not pod.stopping and budget_allows(world, pod):
            blame = rules.evicted(world, drain, pod.node_id)
            nature.evict(world, pod.node_id, blame)
        plan(world, ("drain", said), nature.POLL)


def budget_allows(world: World, pod: PodView) -> bool:
    """A disruption budget of one: everybody else must be Ready, or else it is labelled to leave."""
    if world.together and pod.may_leave is not None:
        return True
    others = (other for other in world.pods.values() if other.name != pod.name)
    return all(other.ready and other.may_leave is None for other in others)


def _drained(world: World, said: str, drain: Drain) -> None:
    message = world.messages.get(drain.message)
    world.drains.pop(said, None)
    world.handled |= {said}
    report = {
        "EventID": f"asg-lifecycle-term-{said.encode().hex()}",
        "Kind": "SQS_TERMINATE",
        "InstanceID": drain.instance_id,
    }
    send(world, "webhook", json.dumps(report))
    if message is not None:
        told = json.loads(message.body)
        token = told.get("detail", told).get("LifecycleActionToken")
        if token is not None:
            nature.complete(world, drain.instance_id, "drain", token, HookResult.CONTINUE)
        delete(world, drain.message)


_STEPS: Mapping[str, Callable[..., None]] = {"nth": _received, "drain": _drain}
