"""Plays what happens seldom: dead letters that are sent back, groups that go, disks that fail.

A machine that its group sets aside or lets go of, a group that somebody deletes with all it has,
a volume that does not attach, marks on nodes and a lease that somebody edits, and every
announcement once more, the last of them first.
tests.explorer.outages plays whole services, tests.explorer.hands single hands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tests.explorer import agenda, nature
from tests.explorer.limits import HOLD_LIMIT
from tests.explorer.world import World

Choice = tuple[str, ...]
# A disk is replaced after longer than anybody waits; a volume is let go by its old machine sooner.
REPLACED, ATTACHED = HOLD_LIMIT + 700, 1500.0
NOBODY = "i-0nobody"


def choices(world: World) -> Iterator[Choice]:
    """Yield what of that may happen to a world."""
    if world.heard:
        yield ("redriven",)
    yield from (("disk fails", str(b)) for b in world.brokers if world.in_sync(b))
    yield from (("attach fails", str(key[1])) for key in world.agenda if key[0] == "ready")
    for name, group in world.groups.items():
        yield ("group deleted", name)
        for instance_id, state in group.instances.items():
            if state == "InService":
                yield from ((kind, instance_id) for kind in ("standby", "detached"))
    for instance_id, node in world.nodes.items():
        yield ("mark edited", instance_id, "" if node.spare_for else NOBODY)
    if any(lease.out_at is None for lease in world.leases):
        yield ("lease lapses",)


def _redriven(world: World) -> None:
    """Somebody sends every dead letter back to its queue, and whatever came since as well."""
    for place, body in enumerate(reversed(world.heard)):
        agenda.send(world, "events", body, 1.0 + place)


def _attach_fails(world: World, broker: str) -> None:
    key = ("ready", int(broker))
    if key in world.agenda:
        world.agenda[key] = world.now + ATTACHED


def _set_aside(world: World, instance_id: str) -> None:
    group = nature.group_with(world, instance_id)
    if group is not None and group.instances[instance_id] == "InService":
        nature.set_lifecycle(world, instance_id, "Standby")
        _wants_less(world, group.name)


def _detached(world: World, instance_id: str) -> None:
    group = nature.group_with(world, instance_id)
    if group is None or group.instances[instance_id] != "InService":
        return
    left = {i: s for i, s in group.instances.items() if i != instance_id}
    # AWS: a detached instance loses its protection from scale-in.
    protected = group.protected.intersection(left)
    world.groups[group.name] = replace(group, instances=left, protected=protected)
    world.instances[instance_id] = replace(world.instances[instance_id], group=None)
    _wants_less(world, group.name)


def _wants_less(world: World, name: str) -> None:
    group = world.groups[name]
    world.groups[name] = replace(group, desired=group.desired - 1)
    nature.reconcile(world)


def _group_deleted(world: World, name: str) -> None:
    """Somebody deletes a group by force: its machines end without a hook."""
    for instance_id in list(world.groups[name].instances):
        if world.instances[instance_id].state == "running":
            nature.happen(world, ("die", instance_id))
    del world.groups[name]
    for key in [key for key in world.agenda if key in {("launch", name), ("scale_in", name)}]:
        del world.agenda[key]


def _mark_edited(world: World, instance_id: str, whose: str) -> None:
    node = world.nodes.get(instance_id)
    if node is not None:
        world.nodes[instance_id] = replace(node, spare_for=whose or None)


def _lease_lapses(world: World) -> None:
    """Somebody edits the lease: what is not used has lapsed."""
    world.leases = tuple(
        replace(lease, expires_at=world.now) if lease.out_at is None else lease
        for lease in world.leases
    )


DONE: Mapping[str, Callable[..., None]] = {
    "redriven": _redriven,
    "disk fails": lambda world, broker: nature.fall_behind(world, int(broker), REPLACED),
    "attach fails": _attach_fails,
    "group deleted": _group_deleted,
    "standby": _set_aside,
    "detached": _detached,
    "mark edited": _mark_edited,
    "lease lapses": _lease_lapses,
}
KINDS = frozenset(DONE)
