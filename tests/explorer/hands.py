"""Plays what people and AWS do in the middle of everything: their choices, and what comes of those.

A lease's item that somebody deletes, hooks that are completed or abandoned by hand, a group whose
maximum is lowered or whose capacity comes up in another zone, nodes that are cordoned or deleted, a
claim that is deleted, readings of Kafka that are not whole, a broker that falls behind, a quorum
that is lost, a zone that AWS shifts traffic out of, several changes that are scheduled for one
machine, a replacement that EC2 takes again, and a person's word about the run.
tests.explorer.choices offers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from core.incidents.actions import HookResult
from core.incidents.joining import Pause
from core.incidents.joining import pause_to_document as pause_document
from core.rotation.run_record import abort, pause, resume, run_from_document, run_to_document
from handlers.store.documents import pause_key
from handlers.store.ledger import rotation_message
from tests.explorer import agenda, nature
from tests.explorer.limits import HOLD_LIMIT, LEASE
from tests.explorer.partitions import elect
from tests.explorer.world import CLUSTER, World, node_named
from tests.unit.handlers.announced import (
    DAY,
    REBOOT,
    RETIREMENT,
    ec2_event,
    health_event,
    zone_event,
)

Choice = tuple[str, ...]
PAST_LEASE, PAST_HOLD = LEASE + 150, HOLD_LIMIT + 700
NOT_WHOLE = "kafka whole"  # its readings: a service of its own
NO_QUORUM = "quorum"
_RUN = f"rotation#{CLUSTER}"
_WORDS = {"pause": pause, "resume": resume, "abort": abort}
# In days: a reboot is over before a walk is, however it went.
AHEAD = {REBOOT: "0.02", RETIREMENT: "2"}
ZONE_IDS = {"us-east-1a": "use1-az4", "us-east-1b": "use1-az6", "us-east-1c": "use1-az1"}


def choices(world: World) -> Iterator[Choice]:
    """Yield what may be done to a world by hand before something of its agenda happens."""
    if world.leases and _all_followed(world):
        yield ("lease deleted",)
    for instance_id, hook in sorted(world.hooks):
        yield ("hook by hand", instance_id, hook, HookResult.CONTINUE.value)
        if hook == nature.HOOKS[0]:
            yield ("hook by hand", instance_id, hook, HookResult.ABANDON.value)
    for name, group in world.groups.items():
        if group.maximum > group.desired:
            yield ("maximum lowered", name)
        yield ("capacity elsewhere", name)
    for instance_id, node in world.nodes.items():
        yield ("cordon" if node.schedulable else "uncordon", instance_id)
    yield from (
        ("claim deleted", str(node_id))
        for node_id in sorted(world.brokers.keys() - world.claimless)
    )
    if not world.is_down(NOT_WHOLE):
        yield ("not whole", f"{PAST_LEASE:.0f}")
    if not world.is_down(NO_QUORUM):
        yield ("no quorum", f"{PAST_LEASE:.0f}")
    yield from (("shift", zone) for zone in ZONE_IDS)
    yield from (("falls behind", str(b)) for b in world.brokers if world.in_sync(b))
    yield ("leaders balanced",)
    yield from (("run", word) for word in _said_of_run(world))
    yield from _of_machines(world)
    if world.scheduled:
        yield from _schedules(world)


def _of_machines(world: World) -> Iterator[Choice]:
    for instance_id, instance in world.instances.items():
        if instance.state == "running":
            yield ("spot", instance_id)
    for instance_id in world.nodes:
        yield ("node deleted", instance_id)
    for name, group in world.groups.items():
        if group.desired > nature.least(world, group):
            yield ("scaled in", name)


def _said_of_run(world: World) -> Iterable[str]:
    _, document = world.records.get(_RUN, (0, None))
    return _WORDS if document and document["state"] not in {"done", "aborted"} else ()


def _schedules(world: World) -> Iterator[Choice]:
    yield from (("scheduled", code, days) for code, days in AHEAD.items())
    yield from (("called off", code) for code in sorted(world.scheduled))


def _all_followed(world: World) -> bool:
    """Say whether every drain that was sent has an open incident that remembers it.

    Of one that is over, the lease alone remembers it: docs/guarantees.md assumes that nobody
    deletes it then.
    """
    return all(
        (held := world.incidents.get(lease.holder)) is not None
        and held.open
        and (lease.out_at is None or held.forwarded is not None)
        for lease in world.leases
    )


def _lease_deleted(world: World) -> None:
    if _all_followed(world):
        world.leases = ()


def _hook_by_hand(world: World, instance_id: str, hook: str, result: str) -> None:
    if nature.complete(world, instance_id, hook, None, HookResult(result)):
        world.abandoned |= {instance_id} if result == HookResult.ABANDON.value else set()


def _maximum_lowered(world: World, name: str) -> None:
    group = world.groups[name]
    world.groups[name] = replace(group, maximum=group.desired)


def _capacity_elsewhere(world: World, name: str) -> None:
    world.elsewhere |= {name}


def _cordon(world: World, instance_id: str) -> None:
    node = world.nodes.get(instance_id)
    if node is not None:
        world.nodes[instance_id] = replace(node, schedulable=False)


def _uncordon(world: World, instance_id: str) -> None:
    node = world.nodes.get(instance_id)
    if node is not None:
        world.nodes[instance_id] = replace(node, schedulable=True, cordoned_for=None)
        nature.schedule_waiting(world)


def _claim_deleted(world: World, node: str) -> None:
    """The pod runs on until it stops, and is scheduled nowhere from then on."""
    world.claimless |= {int(node)}


def _not_whole(world: World, seconds: str) -> None:
    world.down[NOT_WHOLE] = world.now + float(seconds)


def _no_quorum(world: World, seconds: str) -> None:
    world.down[NO_QUORUM] = world.now + float(seconds)


def _falls_behind(world: World, broker: str) -> None:
    nature.fall_behind(world, int(broker), 90.0)


def _leaders_balanced(world: World) -> None:
    elect(world, world.orders)


def _run(world: World, word: str) -> None:
    """A person says something about the run, as λ rotate writes it down."""
    version, document = world.records.get(_RUN, (0, None))
    if word not in _said_of_run(world) or document is None:
        return
    run = _WORDS[word](run_from_document(document, version), "ann", world.now)
    world.records[_RUN] = (version + 1, run_to_document(run))
    agenda.send(world, "ticks", rotation_message(version + 1))


def paused_until(world: World, until: float) -> None:
    """Have a person pause the cluster until then."""
    key = pause_key(CLUSTER)
    version, _ = world.records.get(key, (0, None))
    said = Pause("ann", "maintenance", world.now, until)
    world.records[key] = (version + 1, pause_document(said))


def _spot(world: World, instance_id: str) -> None:
    """EC2 takes a machine within two minutes, whoever's replacement it is."""
    if world.instances[instance_id].state == "running":
        detail = {"instance-action": "terminate"}
        body = ec2_event("EC2 Spot Instance Interruption Warning", instance_id, **detail)
        agenda.send(world, "events", body, 2.0)
        world.agenda["die", instance_id] = world.now + 120.0


def _node_deleted(world: World, instance_id: str) -> None:
    """Somebody deletes a Node: its pods end, and it joins again under its name."""
    if world.nodes.pop(instance_id, None) is None:
        return
    pod = world.pod_on(instance_id)
    if pod is not None:
        nature.cut_off(world, instance_id)
        nature.leaves_no_pod(world, pod.node_id)
    agenda.plan(world, ("detached", node_named(instance_id)), nature.DETACH)
    agenda.plan(world, ("join", instance_id), 300.0)


def _scaled_in(world: World, name: str) -> None:
    group = world.groups[name]
    if group.desired > nature.least(world, group):
        world.groups[name] = replace(group, desired=group.desired - 1)
        nature.reconcile(world)


def _shift(world: World, zone: str) -> None:
    """AWS shifts traffic out of a zone, and back after longer than anybody waits."""
    for over, later in ((False, 1.0), (True, PAST_HOLD)):
        body = zone_event(ZONE_IDS[zone], said_at=world.now + later, over=over)
        agenda.send(world, "events", body, later)


def scheduled(world: World, code: str, days: str) -> None:
    """Health announces a change of the first machine, or another date of it."""
    world.scheduled |= {code}
    due = world.now + float(days) * DAY
    agenda.send(world, "events", health_event(code, due=due, said_at=world.now), 2.0)


def _called_off(world: World, code: str) -> None:
    world.scheduled -= {code}
    body = health_event(code, status="closed", said_at=world.now)
    agenda.send(world, "events", body, 2.0)


DONE: Mapping[str, Callable[..., None]] = {
    "lease deleted": _lease_deleted,
    "hook by hand": _hook_by_hand,
    "maximum lowered": _maximum_lowered,
    "capacity elsewhere": _capacity_elsewhere,
    "cordon": _cordon,
    "uncordon": _uncordon,
    "claim deleted": _claim_deleted,
    "not whole": _not_whole,
    "no quorum": _no_quorum,
    "falls behind": _falls_behind,
    "leaders balanced": _leaders_balanced,
    "run": _run,
    "spot": _spot,
    "node deleted": _node_deleted,
    "scaled in": _scaled_in,
    "shift": _shift,
    "scheduled": scheduled,
    "called off": _called_off,
}
