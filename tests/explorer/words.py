"""What a line can say beside the choices of tests.explorer.choices: each word changes a world.

Walks do not choose among these: they last until another word ends them, or want an order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from core.availability.lease import Lease
from core.incidents.actions import HookResult
from core.views import ClusterView, Doubt, VoterView
from tests.explorer import agenda, hands, nature
from tests.explorer.partitions import follow
from tests.explorer.world import CLUSTER, Broker, World, node_named, out
from tests.unit.handlers.announced import (
    DAY,
    REBOOT,
    RETIREMENT,
    ec2_event,
    health_event,
    hook_event,
    zone_event,
)

Change = Callable[[ClusterView], ClusterView]
Word = Callable[..., None]
LONG = 1e9  # seconds: until another word ends it
NOBODY = "i-0nobody"


def _away(*services: str) -> Word:
    def do(world: World) -> None:
        world.down |= dict.fromkeys(services, world.now + LONG)
        if "nth" in services or "api" in services:
            world.drains.clear()  # Its message comes again.

    return do


def _back(*services: str) -> Word:
    def do(world: World) -> None:
        world.down = {name: at for name, at in world.down.items() if name not in services}

    return do


def _no_capacity(world: World, zone: str) -> None:
    world.down[f"zone {zone}"] = world.now + LONG


def _capacity(world: World, zone: str) -> None:
    _back(f"zone {zone}")(world)
    for key in [key for key in world.agenda if key[0] in {"launch", "join"}]:
        world.agenda[key] = min(world.agenda[key], world.now + nature.LAUNCH)


# What AWS says.
def _announcements_come(world: World) -> None:
    """They come at last, the last of them first."""
    _back("eventbridge")(world)
    coming = sorted(key for key in world.agenda if key[0] == "events")
    for place, key in enumerate(reversed(coming)):
        world.agenda[key] = world.now + place


def _only_recommended(world: World, instance_id: str) -> None:
    """EC2 recommends to leave a machine, and takes it never."""
    body = ec2_event("EC2 Instance Rebalance Recommendation", instance_id)
    agenda.send(world, "events", body, 2.0)


def _announced(world: World, instance_id: str) -> None:
    """Hooks are announced in which nothing stands."""
    for hook in nature.HOOKS:
        zone = world.instances[instance_id].zone
        agenda.send(world, "events", hook_event(hook, instance_id=instance_id, zone=zone))


def _scheduled(code: str, days: float) -> Word:
    def do(world: World, instance_id: str) -> None:
        now = world.now
        body = health_event(code, due=now + days * DAY, said_at=now).replace("i-0a", instance_id)
        agenda.send(world, "events", body, 2.0)
        world.now += 1.0  # What is said later was said later.

    return do


def _called_off(code: str) -> Word:
    def do(world: World, instance_id: str) -> None:
        body = health_event(code, status="closed", said_at=world.now).replace("i-0a", instance_id)
        agenda.send(world, "events", body, 2.0)
        world.now += 1.0

    return do


def _shift(world: World, zone: str, *, over: bool) -> None:
    body = zone_event(hands.ZONE_IDS[zone], said_at=world.now, over=over)
    agenda.send(world, "events", body, 1.0)
    world.now += 1.0


# Groups and their machines.
def _hooks(result: HookResult) -> Word:
    def do(world: World, instance_id: str) -> None:
        for hook in nature.HOOKS:
            hands.DONE["hook by hand"](world, instance_id, hook, result.value)

    return do


def _unknown_lifecycle(world: World, instance_id: str) -> None:
    nature.set_lifecycle(world, instance_id, "Quarantined:Wait")


def _in_service(world: World, instance_id: str) -> None:
    """A machine that was set aside serves again, and counts."""
    group = nature.group_with(world, instance_id)
    assert group is not None
    world.groups[group.name] = replace(group, desired=group.desired + 1)
    nature.set_lifecycle(world, instance_id, "InService")


def _warm(world: World, instance_id: str) -> None:
    """The group has a stopped machine in its warm pool."""
    group = nature.group_with(world, instance_id)
    assert group is not None
    warm = replace(world.instances[instance_id], instance_id=f"i-w{instance_id[-1]}")
    world.instances[warm.instance_id] = replace(
        warm, state="stopped", private_dns_name=node_named(warm.instance_id)
    )
    held = {**group.instances, warm.instance_id: "Warmed:Stopped"}
    world.groups[group.name] = replace(group, instances=held)


def _group_gone(world: World, name: str) -> None:
    """Somebody deletes a group and keeps its machines: nobody knows them any more."""
    for instance_id in world.groups.pop(name).instances:
        for hook in nature.HOOKS:
            world.hooks.pop((instance_id, hook), None)
            world.agenda.pop(("hook", instance_id, hook), None)
    for key in [key for key in world.agenda if key in {("launch", name), ("scale_in", name)}]:
        del world.agenda[key]


def _spare(world: World, instance_id: str) -> str:
    zone = world.instances[instance_id].zone
    return next(
        id_
        for id_, node in world.nodes.items()
        if node.zone == zone and node.ready and node.schedulable and world.pod_on(id_) is None
    )


def _of_spare(kind: str, world: World, instance_id: str) -> None:
    spare = _spare(world, instance_id)
    if kind == "dies":
        world.agenda["die", spare] = world.now
    else:
        hands.DONE["cordon"](world, spare)


def _node(world: World, instance_id: str, **changed: Any) -> None:
    world.nodes[instance_id] = replace(world.nodes[instance_id], **changed)


def _node_renamed(world: World, instance_id: str) -> None:
    """Its kubelet registers again under another name, and the broker starts on that Node."""
    pod, name = world.pod_on(instance_id), f"{node_named(instance_id)}.renamed"
    assert pod is not None
    nature.cut_off(world, instance_id)
    _node(world, instance_id, name=name)
    world.attached.pop(node_named(instance_id), None)
    world.attached[name] = (f"pvc-{pod.node_id}",)
    world.pods[pod.node_id] = replace(world.pods[pod.node_id], node_name=name)
    agenda.plan(world, ("ready", pod.node_id), nature.START_UP)


# Kafka.
def _shown(name: str, change: Change | None) -> Word:
    """Every reading from here on shows a change; None: not any more."""

    def do(world: World) -> None:
        world.shown = {known: each for known, each in world.shown.items() if known != name}
        if change is not None:
            world.shown = {**world.shown, name: change}

    return do


def _quorum(voters: int, lost: int) -> Change:
    """So many voters, of which the first have not fetched for long."""
    told = tuple(VoterView(n, 900.0 if n < lost else 0.1) for n in range(voters))
    without = lost * 2 >= voters
    leader = None if without else voters - 1
    return lambda view: replace(view, voters=told, quorum_leader=leader, stale=without)


def _denied(view: ClusterView) -> ClusterView:
    return replace(view, doubts=(Doubt("Kafka refuses DescribeLogDirs.", refused=True),))


def _not_whole(view: ClusterView) -> ClusterView:
    """A reading that leaves something out, and calls all it shows healthy."""
    whole = tuple(replace(p, isr=p.replicas) for p in view.partitions)
    missing = (Doubt("Topic u is missing."),)
    return replace(view, fenced=frozenset(), partitions=whole, doubts=missing)


def _minimum(value: int, topic: str | None = None) -> Change:
    def change(view: ClusterView) -> ClusterView:
        changed = (
            replace(p, min_isr=value) if topic in {None, p.topic} else p for p in view.partitions
        )
        return replace(view, partitions=tuple(changed))

    return change


def _topic(name: str, copies: int) -> Word:
    def do(world: World, broker: str) -> None:
        first = int(broker)
        order = (first, first % 30 + 10)[:copies]
        world.orders[name, 0] = order
        world.placed = {**world.placed, (name, 0): order}
        follow(world)

    return do


def _topics_deleted(world: World, broker: str) -> None:
    del broker
    world.orders = {key: order for key, order in world.orders.items() if key[0] == "t"}
    world.leaders = {key: b for key, b in world.leaders.items() if key[0] == "t"}


def _moved_off(world: World, broker: str) -> None:
    """Somebody moves all partitions off a broker."""
    world.orders = {
        key: tuple(b for b in order if b != int(broker)) for key, order in world.orders.items()
    }
    world.placed = dict(world.orders)
    follow(world)


def _moved_back(world: World, broker: str) -> None:
    world.orders = {key: (*order, int(broker)) for key, order in world.orders.items()}
    world.placed = dict(world.orders)


def _empty_log_dir(world: World, broker: str) -> None:
    """A broker copies everything again, for as long as is said."""
    node_id = int(broker)
    nature.fall_behind(world, node_id, LONG)
    assert world.brokers[node_id].status == "behind"
    world.agenda["sync", node_id] = world.now + LONG


def _disk_mended(world: World, broker: str) -> None:
    if world.brokers[int(broker)].status == "behind":
        world.agenda["sync", int(broker)] = world.now


def _pod_gone(world: World, broker: str) -> None:
    """The operator is away, or its pool was scaled in: nobody makes the pod again."""
    node_id = int(broker)
    pod = world.pods.pop(node_id)
    world.missing = {**world.missing, node_id: pod}
    world.brokers[node_id] = Broker("down", "operator")
    for kind in ("ready", "sync", "stopped", "schedule"):
        world.agenda.pop((kind, node_id), None)
    follow(world)


def _pod_made(world: World, broker: str) -> None:
    node_id = int(broker)
    world.pods[node_id] = out(world, world.missing[node_id], node_name=None)
    agenda.plan(world, ("schedule", node_id), nature.SCHEDULE)


def _another_id(world: World, broker: str) -> None:
    """The pool makes a pod of another id in its place, which waits; the old one is unregistered."""
    node_id, other = int(broker), int(broker) + 5
    pod = world.pods.pop(node_id)
    name = pod.name.replace(broker, str(other))
    world.pods[other] = out(world, pod, name=name, node_id=other, node_name=None)
    world.claimless |= {other}
    _moved_off(world, broker)
    del world.brokers[node_id]
    for kind in ("ready", "sync", "stopped", "schedule"):
        world.agenda.pop((kind, node_id), None)


# What we keep.
def _old_ticks(world: World) -> None:
    """Every tick that was ever sent is delivered once more, the oldest first."""
    for incident in world.incidents.values():
        for version in range(1, incident.version + 1):
            body = f'{{"incident_id": "{incident.id}", "version": {version}}}'
            agenda.send(world, "ticks", body, 0.001 * version)


def _lease_for_nobody(world: World, *, used: bool) -> None:
    """Somebody writes a lease by hand, for an incident that there is not."""
    lease = Lease(NOBODY, world.now + 900, 99, out_at=world.now if used else None)
    world.leases = (*world.leases, lease)


def _newer_pause(world: World, *, on: bool) -> None:
    """A newer release has paused the cluster, or ended its pause."""
    version, _ = world.records.get(f"pause#{CLUSTER}", (0, None))
    said = {"pauses": {"all": "ann"}} if on else {"pause": None}
    world.records[f"pause#{CLUSTER}"] = (version + 1, said)


def _restored(world: World) -> None:
    """Somebody restores the ledger's table to the moment of its backup."""
    kept = world.backup
    assert kept is not None
    world.incidents, world.records = dict(kept.incidents), dict(kept.records)
    world.leases, world.filed, world.closed = kept.leases, kept.filed, dict(kept.closed)


def _pause_for_days(world: World) -> None:
    hands.paused_until(world, world.now + LONG)


def _clocks(world: World, seconds: str) -> None:
    world.clocks = dict.fromkeys(("ticks", "events", "sweep", "webhook"), float(seconds))


WORDS: Mapping[str, Word] = {
    "api away": _away("api"),
    "api back": _back("api"),
    "nth away": _away("nth"),
    "nth back": _back("nth"),
    "kafka silent": _away("kafka"),
    "kafka without quorum": _away(hands.NO_QUORUM),
    "kafka well": _back("kafka", hands.NO_QUORUM),
    "announcements late": _away("eventbridge"),
    "announcements come": _announcements_come,
    "no capacity": _no_capacity,
    "capacity": _capacity,
    "announced": _announced,
    "only recommended": _only_recommended,
    "retire": _scheduled(RETIREMENT, 7),
    "retire sooner": _scheduled(RETIREMENT, 1),
    "retire in an hour": _scheduled(RETIREMENT, 1 / 24),
    "retire in ten minutes": _scheduled(RETIREMENT, 1 / 144),
    "retire an hour ago": _scheduled(RETIREMENT, -1 / 24),
    "retire called off": _called_off(RETIREMENT),
    "reboot": _scheduled(REBOOT, 3),
    "reboot called off": _called_off(REBOOT),
    "shift": partial(_shift, over=False),
    "shift over": partial(_shift, over=True),
    "hooks completed": _hooks(HookResult.CONTINUE),
    "hooks abandoned": _hooks(HookResult.ABANDON),
    "in service": _in_service,
    "unknown lifecycle": _unknown_lifecycle,
    "warm": _warm,
    "group gone": _group_gone,
    "groups refuse": lambda world: setattr(world, "refusing", frozenset(world.groups)),
    "groups do as asked": lambda world: setattr(world, "refusing", frozenset()),
    "spare dies": partial(_of_spare, "dies"),
    "cordon spare": partial(_of_spare, "cordoned"),
    "node unlabelled": partial(_node, pool=None),
    "node renamed": _node_renamed,
    "one of three controllers lost": _shown("quorum", _quorum(3, 1)),
    "two of five controllers lost": _shown("quorum", _quorum(5, 2)),
    "three of five controllers lost": _shown("quorum", _quorum(5, 3)),
    "controllers well": _shown("quorum", None),
    "reading not whole": _shown("whole", _not_whole),
    "reading whole": _shown("whole", None),
    "reading denied": _shown("denied", _denied),
    "reading allowed": _shown("denied", None),
    "minimum three": _shown("minimum", _minimum(3)),
    "minimum of one": _shown("minimum", _minimum(1, "two")),
    "single replica": _topic("single", 1),
    "two replicas": _topic("two", 2),
    "topics deleted": _topics_deleted,
    "moved off": _moved_off,
    "moved back": _moved_back,
    "disk mended": _disk_mended,
    "another id": _another_id,
    "empty log dir": _empty_log_dir,
    "pod gone": _pod_gone,
    "pod made": _pod_made,
    "old ticks": _old_ticks,
    "lease for nobody": partial(_lease_for_nobody, used=False),
    "used lease for nobody": partial(_lease_for_nobody, used=True),
    "paused by a newer release": partial(_newer_pause, on=True),
    "resumed by a newer release": partial(_newer_pause, on=False),
    "backed up": lambda world: setattr(world, "backup", world.moment()),
    "restored": _restored,
    "pause for days": _pause_for_days,
    "clocks": _clocks,
}
