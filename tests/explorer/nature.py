"""Moves an explored world: what AWS, Kubernetes, Strimzi, Kafka and the termination handler do.

Everything that is about to happen stands on the world's agenda with its time; `happen` does one of
them. Whose time has come while its service is away waits until the service is back. What our own
functions do is not here: the agenda only says when a message or the schedule starts one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from core.incidents.actions import ACTING, HookResult
from core.incidents.observation import GroupView
from tests.explorer import partitions
from tests.explorer.agenda import plan, send
from tests.explorer.limits import HEARTBEAT, HOOK_LIMIT
from tests.explorer.world import (
    CONTROLLERS,
    ZONES,
    Broker,
    Hook,
    Key,
    World,
    add_instance,
    add_node,
    group_of,
    node_named,
    out,
    pool_of,
)
from tests.unit.handlers.announced import ec2_event, hook_event

HOOKS = ("drain", "gate")
WAIT, PROCEED, RETAINED = "Terminating:Wait", "Terminating:Proceed", "Terminating:Retained"
# How long things take that take their time, in seconds.
LAUNCH, JOIN, STOP, START_UP, CATCH_UP, END, FORGET = 30.0, 60.0, 30.0, 40.0, 240.0, 5.0, 20.0
# A controller has the metadata log to catch up with, and no partition.
CATCH_UP_LOG = 20.0
EVENT, SCHEDULE, POLL, DETACH = 2.0, 5.0, 30.0, 10.0
# Kubernetes keeps the volume of a silent node for so long.
HELD_BACK = 360.0


def group_with(world: World, instance_id: str) -> GroupView | None:
    return next((g for g in world.groups.values() if instance_id in g.instances), None)


def set_lifecycle(world: World, instance_id: str, state: str) -> None:
    group = group_with(world, instance_id)
    if group is not None:
        changed = {**group.instances, instance_id: state}
        world.groups[group.name] = replace(group, instances=changed)


def least(world: World, group: GroupView) -> int:
    """Return how many instances a group keeps at least: one for each Kafka node of its own."""
    return sum(group_of(ZONES[b], pool_of(b)) == group.name for b in world.brokers)


def terminate(world: World, instance_id: str, *, decrement: bool = False) -> bool:
    """Begin the termination of an instance through its group: it stands in both hooks."""
    group = group_with(world, instance_id)
    standing = group is not None and group.instances[instance_id] in {"InService", RETAINED}
    if group is None or not standing or group.name in world.refusing:
        return False
    if world.silent:
        return True
    if decrement and group.desired <= least(world, group):
        return False
    world.groups[group.name] = replace(group, desired=group.desired - decrement)
    set_lifecycle(world, instance_id, WAIT)
    round_ = world.number()
    # Below `act` a group has the hook of its own termination handler alone.
    for hook in HOOKS if world.level in ACTING else HOOKS[:1]:
        token = f"token-{hook}-{round_}"
        world.hooks[instance_id, hook] = Hook(token, world.now + HEARTBEAT, world.now + HOOK_LIMIT)
        world.agenda["hook", instance_id, hook] = world.now + HEARTBEAT
        zone = world.instances[instance_id].zone
        named = f"event-{instance_id}-{hook}"
        body = hook_event(hook, instance_id=instance_id, zone=zone, token=token)
        body = body.replace(group_of(zone), group.name)
        send(world, "events", body.replace(named, f"{named}-{round_}"), EVENT)
    reconcile(world)
    return True


def heartbeat(world: World, instance_id: str, hook: str, token: str | None) -> bool:
    standing = world.hooks.get((instance_id, hook))
    if standing is None or token not in {None, standing.token}:
        return False
    until = min(world.now + HEARTBEAT, standing.until)
    world.hooks[instance_id, hook] = replace(standing, due=until)
    world.agenda["hook", instance_id, hook] = until
    return True


def complete(
    world: World, instance_id: str, hook: str, token: str | None, result: HookResult
) -> bool:
    """End a hook; the last one that continues lets the instance go, one abandoned retains it."""
    standing = world.hooks.get((instance_id, hook))
    if standing is None or token not in {None, standing.token}:
        return False
    if result is HookResult.ABANDON:
        _retain(world, instance_id)
        return True
    _unhook(world, instance_id, hook)
    if not any((instance_id, other) in world.hooks for other in HOOKS):
        set_lifecycle(world, instance_id, PROCEED)
        plan(world, ("end", instance_id), END)
    return True


def _retain(world: World, instance_id: str) -> None:
    for hook in HOOKS:
        _unhook(world, instance_id, hook)
    set_lifecycle(world, instance_id, RETAINED)


def _unhook(world: World, instance_id: str, hook: str) -> None:
    world.hooks.pop((instance_id, hook), None)
    world.agenda.pop(("hook", instance_id, hook), None)


def reconcile(world: World) -> None:
    """Have every group launch what it lacks, or take away what it has too many."""
    for name, group in world.groups.items():
        have = len(group.staying())
        if group.desired > have:
            plan(world, ("launch", name), LAUNCH)
        elif group.desired < have:
            plan(world, ("scale_in", name), SCHEDULE)


def evict(world: World, node_id: int, blame: str) -> None:
    """Stop a broker in good order."""
    world.pods[node_id] = out(world, world.pods[node_id], stopping=True)
    world.brokers[node_id] = Broker("down", blame)
    partitions.follow(world)
    world.agenda.pop(("sync", node_id), None)
    world.agenda.pop(("ready", node_id), None)
    plan(world, ("stopped", node_id), STOP)


def detach(world: World, node: str) -> None:
    """Let go of a node's volumes, and start whoever waited for them."""
    if world.attached.pop(node, None):
        schedule_waiting(world)


def schedule_waiting(world: World) -> None:
    """Have a place looked for for every pod that has none."""
    for node_id, pod in world.pods.items():
        if pod.node_name is None:
            plan(world, ("schedule", node_id), SCHEDULE)


def withheld(world: World, key: Key) -> bool:
    """Say whether something of the agenda never happens; a machine that is to end says so."""
    if key[0] not in world.never:
        return False
    world.agenda.pop(key, None)
    if key[0] == "end":
        ending = replace(world.instances[key[1]], state="shutting-down")
        world.instances[key[1]] = ending
    return True


def happen(world: World, key: Key) -> None:
    """Let one thing of the agenda happen now."""
    world.agenda.pop(key, None)
    _STEPS[key[0]](world, *key[1:])


def _leave(world: World, instance_id: str) -> None:
    terminate(world, instance_id)


def _hook_due(world: World, instance_id: str, hook: str) -> None:
    standing = world.hooks.get((instance_id, hook))
    if standing is not None and standing.due <= world.now:
        _retain(world, instance_id)  # ABANDON by default, and the group keeps what is abandoned.


def _launch(world: World, name: str) -> None:
    group = world.groups[name]
    if group.desired <= len(group.staying()):
        return
    own = group.zones[0]
    zone = next(z for z in ZONES.values() if z != own) if name in world.elsewhere else own
    world.elsewhere -= {name}
    instance_id = next_machine(world, group)
    add_instance(world, instance_id, zone, name)
    world.groups[name] = replace(group, instances={**group.instances, instance_id: "InService"})
    plan(world, ("join", instance_id), JOIN)
    reconcile(world)


def next_machine(world: World, group: GroupView) -> str:
    """Return the id of the next instance that a group launches."""
    number = sum(i.group == group.name for i in world.instances.values())
    kind = "q" if "-controller-" in group.name else ""
    return f"i-{kind}{number}{group.zones[0][-1]}"


def _join(world: World, instance_id: str) -> None:
    if world.instances[instance_id].state != "running":
        return
    add_node(world, instance_id)
    schedule_waiting(world)


def _scale_in(world: World, name: str) -> None:
    """Take the newest instance that runs no broker, or else any: the group does not know Kafka."""
    group = world.groups[name]
    free = sorted(group.staying() - group.protected)
    if group.desired >= len(group.staying()) or not free:
        return
    idle = [i for i in free if world.pod_on(i) is None]
    terminate(world, (idle or free)[-1])


def _end(world: World, instance_id: str) -> None:
    """End an instance: what still ran there is cut off."""
    world.instances[instance_id] = replace(world.instances[instance_id], state="terminated")
    group = group_with(world, instance_id)
    if group is not None:
        left = {i: s for i, s in group.instances.items() if i != instance_id}
        kept = group.protected.intersection(left)
        world.groups[group.name] = replace(group, instances=left, protected=kept)
    cut_off(world, instance_id)
    plan(world, ("forget", instance_id), FORGET)
    reconcile(world)


def _die(world: World, instance_id: str) -> None:
    """Lose a machine: EC2 has ended it, and its group replaces it without hooks."""
    for hook in HOOKS:
        _unhook(world, instance_id, hook)
    body = ec2_event("EC2 Instance State-change Notification", instance_id, state="terminated")
    send(world, "events", body, EVENT)
    _end(world, instance_id)


def cut_off(world: World, instance_id: str) -> None:
    """End a broker without a word, its machine with it."""
    pod = world.pod_on(instance_id)
    if pod is not None:
        world.pods[pod.node_id] = out(world, pod)
        world.brokers[pod.node_id] = Broker("down", "aws")
        partitions.follow(world)
        world.agenda.pop(("ready", pod.node_id), None)
        world.agenda.pop(("sync", pod.node_id), None)


def _forget(world: World, instance_id: str) -> None:
    """Delete the Node of an instance that has ended; its volumes stay held for minutes."""
    world.nodes.pop(instance_id, None)
    name = node_named(instance_id)
    for node_id, pod in world.pods.items():
        if pod.node_name == name:
            leaves_no_pod(world, node_id)
    if name in world.attached:
        plan(world, ("detached", name), HELD_BACK)


def _stopped(world: World, node_id: int) -> None:
    pod = world.pods[node_id]
    if pod.node_name is not None:
        plan(world, ("detached", pod.node_name), DETACH)
    leaves_no_pod(world, node_id)


def leaves_no_pod(world: World, node_id: int) -> None:
    """Have Strimzi make a pod anew, without its label, and a place looked for."""
    world.pods[node_id] = out(
        world, world.pods[node_id], node_name=None, stopping=False, may_leave=None
    )
    plan(world, ("schedule", node_id), SCHEDULE)


def _schedule(world: World, node_id: int) -> None:
    """Place a pod on an idle node of its zone, once its volume can follow."""
    pod, volume = world.pods[node_id], f"pvc-{node_id}"
    holder = next((n for n, held in world.attached.items() if volume in held), None)
    if pod.node_name is not None or node_id in world.claimless:
        return
    for instance_id, node in world.nodes.items():
        busy = world.pod_on(instance_id) is not None
        mine = (node.zone, node.pool) == (ZONES[node_id], pool_of(node_id))
        able = mine and node.ready and node.schedulable
        runs = world.instances[instance_id].state == "running"
        if able and runs and not busy and holder in {None, node.name}:
            world.pods[node_id] = out(world, pod, node_name=node.name)
            world.attached[node.name] = (volume,)
            world.agenda.pop(("detached", node.name), None)
            plan(world, ("ready", node_id), START_UP)
            return


def _ready(world: World, node_id: int) -> None:
    world.pods[node_id] = replace(world.pods[node_id], ready=True, out_since=None)
    world.brokers[node_id] = replace(world.brokers[node_id], status="behind")
    plan(world, ("sync", node_id), CATCH_UP_LOG if node_id in CONTROLLERS else CATCH_UP)


def _sync(world: World, node_id: int) -> None:
    if world.brokers[node_id].status == "behind":
        world.brokers[node_id] = Broker()
        partitions.follow(world)


def fall_behind(world: World, node_id: int, seconds: float) -> None:
    """Have a broker leave every ISR while it runs on, and come back by itself."""
    if world.in_sync(node_id):
        world.brokers[node_id] = Broker("behind", "kafka")
        partitions.follow(world)
        plan(world, ("sync", node_id), seconds)


_STEPS: Mapping[str, Callable[..., None]] = {
    "leave": _leave,
    "hook": _hook_due,
    "launch": _launch,
    "join": _join,
    "scale_in": _scale_in,
    "end": _end,
    "die": _die,
    "forget": _forget,
    "stopped": _stopped,
    "detached": detach,
    "schedule": _schedule,
    "ready": _ready,
    "sync": _sync,
}
# What is ours: the stage runs it.
OURS = frozenset({"ticks", "events", "sweep", "webhook", "asks"})
