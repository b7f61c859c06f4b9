"""Plays outages, other people's automation and words in the wrong order; tests.explorer.hands
plays single hands.

A zone that falls silent and comes back, groups that refresh, balance or fail to launch, machines
that somebody terminates, stops or starts beside their group, a recommendation before a warning,
states that are announced before or after they are true, Nodes that never join again, leaders that
change without everybody in sync, clocks that stay apart, batches that are delivered again, and the
events of another environment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tests.explorer import agenda, hands, nature, releases
from tests.explorer.limits import FUNCTION_VISIBILITY, LEASE
from tests.explorer.partitions import follow
from tests.explorer.world import (
    CONTROLLERS,
    ZONES,
    A,
    Broker,
    Key,
    World,
    add_instance,
    group_of,
    pool_of,
)
from tests.unit.handlers.announced import DAY, RETIREMENT, ec2_event, health_event, hook_event

Choice = tuple[str, ...]
# An API that is upgraded, or a broker of Kafka's admin client: ten minutes.
SHORTLY, LONG = 600.0, LEASE + 150
SERVICES = ("api", "kafka", "aws", "ledger")
# Of which one right is lost, or that alone are throttled.
CALLS = (
    *("cloud.groups_of", "cloud.instance_states", "cloud.instance", "cloud.volumes_on"),
    *("nodes.nodes", "nodes.kafka_pods", "nodes.attachments", "nodes.operator"),
    *("nodes.mark_spare", "cloud.set_desired", "cloud.heartbeat", "cloud.complete_hook"),
    *("nodes.budgets", "kafka.log_bytes", "kafka.throttle", "kafka.unthrottle", "kafka.reorder"),
)
# What fails at its next call, whoever makes it and whenever that is.
ARMED = ("kafka.throttle", "kafka.unthrottle", "nth.send", "cloud.terminate_in_group")
CLOCKS = ("ticks", "events", "sweep", "webhook")
SECONDS_APART = ("30", "-30")
STATES = ("shutting-down", "terminated")
STATE, RECOMMENDED = (
    "EC2 Instance State-change Notification",
    "EC2 Instance Rebalance Recommendation",
)
FOREIGN, FOREIGN_TAG = "i-9z", "stillwater:managed/other-orders"
# A group looks at its instances' health every minute or so.
SHUT, UNHEALTHY, WARNED, BALANCED = 30.0, 60.0, 120.0, 90.0


def choices(world: World) -> Iterator[Choice]:
    """Yield what may go wrong with a whole zone, group, function or environment."""
    yield from (("away shortly", s) for s in SERVICES if not world.is_down(s))
    yield from (("armed", name, kind) for name in ARMED for kind in ("death", "late_error"))
    yield from (("clock", f, s) for f in CLOCKS for s in SECONDS_APART)
    yield from (("batch again", queue) for queue in ("ticks", "events"))
    yield ("every write", "race")
    yield ("every write", "late_race")
    yield from (("one call away", name) for name in CALLS if not world.is_down(name))
    for zone in hands.ZONE_IDS:
        if not world.is_down(f"zone {zone}"):
            yield ("zone silent", zone)
    for name in world.groups:
        yield from (("refreshed", name), ("balanced", name), ("launch fails", name))
    for instance_id, instance in world.instances.items():
        yield from _of_machine(instance_id, instance.state)
    for instance_id, node in world.nodes.items():
        yield ("node for good", instance_id)
        if node.sick or instance_id in world.impaired:
            yield ("well", instance_id)
        elif world.instances[instance_id].state == "running":
            yield from (("sick", instance_id, who) for who in ("agent", "ec2"))
    holding = sorted(world.brokers.keys() - CONTROLLERS.keys())
    yield from ((kind, str(b)) for kind in ("alone in sync", "unclean") for b in holding)
    if world.local_disks:
        yield ("throttled by others",) if world.other_throttle is None else ("others unthrottle",)
    yield from (("foreign", what) for what in _FOREIGN)
    yield from releases.choices(world)


def _of_machine(instance_id: str, state: str) -> Iterator[Choice]:
    yield from (("said to end", instance_id, each) for each in STATES)
    if state == "running":
        yield ("terminated by hand", instance_id)
        yield ("stopped by hand", instance_id)
        yield ("recommended", instance_id)
    if state == "stopped":
        yield ("started by hand", instance_id)


def _said(world: World, body: str, seconds: float = nature.EVENT) -> None:
    """Announce something under an id of its own."""
    told = json.loads(body)
    told["id"] = f"{told['id']}-{world.number()}"
    agenda.send(world, "events", json.dumps(told), seconds)


def _said_to_end(world: World, instance_id: str, state: str) -> None:
    """A word about an instance's state comes before EC2 itself shows it, or long after."""
    _said(world, ec2_event(STATE, instance_id, state=state), 1.0)


def _zone_silent(world: World, zone: str) -> None:
    """Every machine of a zone falls silent, and nothing is launched there, for a while."""
    world.down[f"zone {zone}"] = world.now + LONG
    for instance_id, node in world.nodes.items():
        if node.zone == zone and world.instances[instance_id].state == "running":
            world.nodes[instance_id] = replace(node, ready=False, unready_since=world.now)
            world.impaired = {**world.impaired, instance_id: world.now}
            nature.cut_off(world, instance_id)
    world.agenda["zone back", zone] = world.now + LONG


def _zone_back(world: World, zone: str) -> None:
    for instance_id, node in world.nodes.items():
        if node.zone == zone and world.instances[instance_id].state == "running":
            _awake(world, instance_id)
    nature.reconcile(world)
    nature.schedule_waiting(world)


def _awake(world: World, instance_id: str) -> None:
    """A machine answers again, and what is still placed there starts."""
    _well(world, instance_id)
    world.nodes[instance_id] = replace(world.nodes[instance_id], ready=True, unready_since=None)
    pod = world.pod_on(instance_id)
    if pod is not None and not pod.ready and not pod.stopping:
        agenda.plan(world, ("ready", pod.node_id), nature.START_UP)


def _sick(world: World, instance_id: str, who: str) -> None:
    """The monitoring agent calls a node sick, or EC2 its instance, while both serve."""
    if who == "ec2":
        world.impaired = {**world.impaired, instance_id: world.now}
    else:
        said = {"KernelReady": world.now}
        world.nodes[instance_id] = replace(world.nodes[instance_id], sick=said)


def _well(world: World, instance_id: str) -> None:
    world.impaired = {i: at for i, at in world.impaired.items() if i != instance_id}
    world.nodes[instance_id] = replace(world.nodes[instance_id], sick={})


def _refreshed(world: World, name: str) -> None:
    """Somebody begins an instance refresh: the group terminates all it has."""
    group = world.groups[name]
    for place, instance_id in enumerate(sorted(group.staying() - group.protected)):
        agenda.plan(world, ("leave", instance_id), 5.0 + 30 * place)


def _balanced(world: World, name: str) -> None:
    """The group balances its zones: one more first, and then one of the old ones goes."""
    group = world.groups[name]
    old = sorted(group.staying() - group.protected)
    if not old:
        return
    own, instance_id = group.zones[0], nature.next_machine(world, group)
    add_instance(world, instance_id, own, name)
    world.groups[name] = replace(group, instances={**group.instances, instance_id: "InService"})
    agenda.plan(world, ("join", instance_id), nature.JOIN)
    agenda.plan(world, ("leave", old[0]), BALANCED)


def _launch_fails(world: World, name: str) -> None:
    """EC2 has no capacity for a group, which says so; that it launches again is said by nobody."""
    zone = world.groups[name].zones[0]
    world.down[f"zone {zone}"] = max(world.now + SHORTLY, world.down.get(f"zone {zone}", 0.0))
    detail = {
        "AutoScalingGroupName": name,
        "ActivityId": f"activity-{world.number()}",
        "StatusMessage": "We currently do not have sufficient capacity.",
        "EC2InstanceId": "",
        "Details": {"Availability Zone": zone},
    }
    told = json.loads(hook_event(nature.HOOKS[0], instance_id="", zone=zone))
    told |= {"detail-type": "EC2 Instance Launch Unsuccessful", "detail": detail}
    _said(world, json.dumps(told))


def _terminated_by_hand(world: World, instance_id: str) -> None:
    """Somebody terminates a machine past its group, whatever is under way there."""
    _ends_by_hand(world, instance_id, "shutting-down", "terminated")


def _stopped_by_hand(world: World, instance_id: str) -> None:
    """Somebody stops a machine; its group will find it unhealthy."""
    _ends_by_hand(world, instance_id, "stopping", "stopped")


def _ends_by_hand(world: World, instance_id: str, now: str, then: str) -> None:
    if world.instances[instance_id].state != "running":
        return
    world.instances[instance_id] = replace(world.instances[instance_id], state=now)
    _said(world, ec2_event(STATE, instance_id, state=now))
    agenda.plan(world, ("shut", instance_id, then), SHUT)
    agenda.plan(world, ("unhealthy", instance_id), UNHEALTHY)


def _shut(world: World, instance_id: str, state: str) -> None:
    """A machine has ended; Kubernetes forgets one that is terminated, and not one that stands."""
    if world.instances[instance_id].state == "terminated":
        return
    world.instances[instance_id] = replace(world.instances[instance_id], state=state)
    _said(world, ec2_event(STATE, instance_id, state=state))
    nature.cut_off(world, instance_id)
    node = world.nodes.get(instance_id)
    if node is not None:
        world.nodes[instance_id] = replace(node, ready=False, unready_since=world.now)
    if state == "terminated":
        agenda.plan(world, ("forget", instance_id), nature.FORGET)


def _unhealthy(world: World, instance_id: str) -> None:
    """A group terminates an instance that does not run, through its hooks."""
    if world.instances[instance_id].state != "running":
        nature.terminate(world, instance_id)


def _started_by_hand(world: World, instance_id: str) -> None:
    if world.instances[instance_id].state == "stopped":
        world.instances[instance_id] = replace(world.instances[instance_id], state="running")
        if instance_id in world.nodes:
            _awake(world, instance_id)
            nature.schedule_waiting(world)


def _freed(world: World, instance_id: str) -> None:
    """Kubernetes deletes the pods of a node that is out of service."""
    node = world.nodes.get(instance_id)
    pod = world.pod_on(instance_id)
    if node is not None and node.out_of_service and pod is not None:
        nature.leaves_no_pod(world, pod.node_id)


def _recommended(world: World, instance_id: str) -> None:
    """EC2 recommends to leave a machine, and warns two minutes later."""
    _said(world, ec2_event(RECOMMENDED, instance_id))
    agenda.plan(world, ("warned", instance_id), WARNED)


def _node_for_good(world: World, instance_id: str) -> None:
    """Somebody deletes a Node whose kubelet runs on: it does not join again by itself."""
    hands.DONE["node deleted"](world, instance_id)
    world.agenda.pop(("join", instance_id), None)


def _alone_in_sync(world: World, broker: str) -> None:
    """Every ISR shrinks to one; whoever comes back first leads before that one does."""
    for other in world.brokers.keys() - CONTROLLERS.keys():
        if other != int(broker):
            nature.fall_behind(world, other, SHORTLY)
    agenda.plan(world, ("falls back", int(broker)), SHORTLY + 1)


def _unclean(world: World, broker: str) -> None:
    """A broker that was out of sync leads, and everybody else copies what it has."""
    found = world.brokers[int(broker)]
    if found.status != "behind":
        return
    for other in world.brokers.keys() - CONTROLLERS.keys():
        nature.fall_behind(world, other, nature.CATCH_UP)
    world.brokers[int(broker)] = Broker()
    world.agenda.pop(("sync", int(broker)), None)
    follow(world)


def _batch_again(world: World, queue: str) -> None:
    """A batch is delivered once more after all, though most of it was dealt with."""
    soon = [k for k, at in world.agenda.items() if k[0] == queue and at <= world.now + 5]
    for key in soon:
        agenda.send(world, queue, world.messages[key[1]].body, FUNCTION_VISIBILITY)


def _foreign(world: World, what: str) -> None:
    """Another environment's event reaches our queue."""
    if FOREIGN not in world.instances:
        add_instance(world, FOREIGN, A, "other-orders-broker-a")
        found = world.instances[FOREIGN]
        world.instances[FOREIGN] = replace(found, tags={FOREIGN_TAG: "true"})
    world.foreign = True
    _said(world, _FOREIGN[what](world))


def _theirs(hook: str) -> str:
    body = hook_event(hook, instance_id=FOREIGN, token="token-theirs")
    return body.replace(group_of(A), "other-orders-broker-a")


_FOREIGN: Mapping[str, Callable[[World], str]] = {
    "drain": lambda _: _theirs("drain"),
    "gate": lambda _: _theirs("gate"),
    "state": lambda _: ec2_event(STATE, FOREIGN, state="terminated"),
    "spot": lambda _: ec2_event("EC2 Spot Instance Interruption Warning", FOREIGN),
    "retired": lambda world: health_event(
        RETIREMENT, due=world.now + 7 * DAY, said_at=world.now, number=9
    ).replace('"i-0a"', f'"{FOREIGN}"'),
}


def _others_throttle(world: World, at: float | None) -> None:
    world.other_throttle = at


def happen(world: World, key: Key) -> bool:
    """Let one thing of the agenda happen that is an outage's; False: it is about others."""
    if key[0] in {"launch", "join"}:
        return _no_machine(world, key)
    return agenda.take_step(world, key, _STEPS)


def _no_machine(world: World, key: Key) -> bool:
    """Put off what a zone cannot do while it is silent: launch a machine, or let one join."""
    launch = key[0] == "launch"
    zone = world.groups[key[1]].zones[0] if launch else world.instances[key[1]].zone
    until = world.down.get(f"zone {zone}", 0.0)
    if until <= world.now or (launch and key[1] in world.elsewhere):
        return False
    world.agenda[key] = until + 1
    return True


def autoscaled(world: World, key: Key) -> None:
    """Have Cluster Autoscaler want a machine for a pod that fits nowhere, where we do not."""
    if not world.direct or key[0] != "schedule" or world.pods[key[1]].node_name is not None:
        return
    zone = ZONES[key[1]]
    group = world.groups.get(group_of(zone, pool_of(key[1])))
    if group is None:
        return
    idle = any(world.pod_on(i) is None and _takes_pods(world, i) for i in group.staying())
    if group.desired < group.maximum and not idle and key[1] not in world.claimless:
        world.groups[group.name] = replace(group, desired=group.desired + 1)
        nature.reconcile(world)


def _takes_pods(world: World, instance_id: str) -> bool:
    node = world.nodes.get(instance_id)
    return node is None or node.schedulable


_STEPS: Mapping[str, Callable[..., None]] = {
    "zone back": _zone_back,
    "shut": _shut,
    "unhealthy": _unhealthy,
    "freed": _freed,
    "warned": hands.DONE["spot"],
    "falls back": lambda world, broker: nature.fall_behind(world, broker, nature.CATCH_UP),
    "understood": lambda world, id_, state: releases.understood(world, ("", id_, state)),
}
DONE: Mapping[str, Callable[..., None]] = {
    "away shortly": lambda world, service: world.down.update({service: world.now + SHORTLY}),
    "one call away": lambda world, name: world.down.update({name: world.now + LONG}),
    "armed": lambda world, name, kind: setattr(world, "armed", {**world.armed, name: kind}),
    "clock": lambda world, function, seconds: setattr(
        world, "clocks", {**world.clocks, function: float(seconds)}
    ),
    "batch again": _batch_again,
    "zone silent": _zone_silent,
    "sick": _sick,
    "well": _well,
    "refreshed": _refreshed,
    "balanced": _balanced,
    "launch fails": _launch_fails,
    "terminated by hand": _terminated_by_hand,
    "stopped by hand": _stopped_by_hand,
    "started by hand": _started_by_hand,
    "recommended": _recommended,
    "said to end": _said_to_end,
    "node for good": _node_for_good,
    "alone in sync": _alone_in_sync,
    "unclean": _unclean,
    "throttled by others": lambda world: _others_throttle(world, world.now),
    "others unthrottle": lambda world: _others_throttle(world, None),
    "foreign": _foreign,
    "rolled back": releases.rolled_back,
    "rolled forward": releases.rolled_forward,
    "newer state": releases.newer_state,
}
KINDS = frozenset({*DONE, "every write"})
