"""Launches and ends machines as Karpenter does, in an explored world whose nodes are in no group.

A claim is deleted, or marked first where a successor is awaited; its node takes no pods from then
on, its pods are evicted, asked for at the gate where there is one, and when they and their volumes
have left, the machine ends. Pods without a place, or on such a node, have another machine launched.
(sigs.k8s.io/karpenter 1.14.1, as core.incidents.learn reads it.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from core.incidents.observation import Condition, NodeClaim
from tests.explorer import agenda, nature
from tests.explorer.adapters import Stage
from tests.explorer.rules import break_rule, incident_of, paused
from tests.explorer.world import START, ZONES, Key, World, add_instance, node_named

Choice = tuple[str, ...]
WHO = "system:serviceaccount:kube-system:karpenter"
HELD, DRIFTED = Condition(holds=True), Condition(holds=True, reason="Drifted")
INITIALIZED = dict.fromkeys(("Launched", "Registered", "Initialized"), HELD)
# From a pod without a place to a launch, from a Node to a claim that counts, from a machine that is
# gone to a claim that is; how often a drift looks for its successor, and when it gives up.
DECIDE, COUNT, COLLECT, LOOK, GIVE_UP = 10.0, 15.0, 150.0, 30.0, 1200.0
FOR_EVER = 10**11


def of_karpenter(world: World) -> None:
    """Give every machine to Karpenter: no group has it, and a claim stands for it."""
    world.karpenter = True
    world.groups.clear()
    for instance_id, instance in world.instances.items():
        world.instances[instance_id] = replace(instance, group=None, tags={})
        claim = _claim(world, instance_id, created_at=world.now - 86_400)
        world.claims[instance_id] = replace(
            claim, node_name=node_named(instance_id), conditions=INITIALIZED
        )


def scenario(begin: Callable[[World], None], *, gated: bool = True) -> Callable[[World], None]:
    """Begin where machines are Karpenter's, and the gate is asked, or nobody is."""

    def begins(world: World) -> None:
        of_karpenter(world)
        world.gated = gated
        begin(world)

    return begins


def ending(*expire: str, drifts: str = "", dies: str = "") -> Callable[[World], None]:
    """Karpenter ends nodes that are too old, or not what they should be, and EC2 one of them."""

    def begin(world: World) -> None:
        for place, instance_id in enumerate(expire):
            world.agenda["expires", instance_id] = START + 10 + 30 * place
        if drifts:
            world.agenda["drifts", drifts] = START + 20
        if dies:
            world.agenda["die", dies] = START + 200

    return begin


def _claim(world: World, instance_id: str, created_at: float) -> NodeClaim:
    return NodeClaim(
        name=f"broker-{instance_id}",
        uid=f"uid-{instance_id}",
        instance_id=instance_id,
        zone=world.instances[instance_id].zone,
        pool="broker",
        created_at=created_at,
        conditions={"Launched": HELD},
    )


def deleted(world: World, instance_id: str) -> None:
    """Delete a claim, which nobody takes back: its node is emptied from now on."""
    claim = world.claims.get(instance_id)
    if claim is None or claim.deleted:
        return
    world.claims[instance_id] = replace(claim, deleted=True, deleted_at=world.now)
    _tainted(world, instance_id, tainted=True)
    world.agenda["asks", instance_id, WHO, FOR_EVER] = world.now + DECIDE


def _tainted(world: World, instance_id: str, *, tainted: bool) -> None:
    node = world.nodes.get(instance_id)
    if node is not None:
        world.nodes[instance_id] = replace(node, schedulable=not tainted)


def emptied(world: World, instance_id: str) -> None:
    """End a machine without pods, once nothing is attached to it."""
    if world.attached.get(node_named(instance_id)):
        agenda.plan(world, ("asks", instance_id, WHO, FOR_EVER), DECIDE)
    else:
        agenda.plan(world, ("claim ends", instance_id), nature.END)


class ExploredClaims:
    """NodeClaims, as the functions read and end them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def claims(self) -> tuple[NodeClaim, ...]:
        return tuple(self._stage.world.claims.values())

    def end(self, name: str, uid: str) -> None:
        world = self._stage.world
        for instance_id, claim in list(world.claims.items()):
            if (claim.name, claim.uid) == (name, uid):
                incident = incident_of(world, instance_id)
                if incident is None or not incident.open:
                    break_rule(world, "unasked", f"{name} is deleted, and no incident has it.")
                if paused(world) and not claim.deleted:
                    break_rule(world, "paused", f"{name} is deleted, and the cluster is paused.")
                deleted(world, instance_id)


def choices(world: World) -> Iterator[Choice]:
    """Yield what Karpenter may do to a world by itself, or a person to its claims."""
    for instance_id, claim in world.claims.items():
        if claim.leaves or not claim.serves:
            continue
        yield ("claim deleted by hand", instance_id)
        if world.pod_on(instance_id) is not None:
            yield ("claim drifts", instance_id)


def _drifts(world: World, instance_id: str) -> None:
    """Mark a node, and await its successor before it is deleted."""
    claim = world.claims.get(instance_id)
    if claim is None or claim.leaves:
        return
    marks = {**claim.conditions, "DisruptionReason": DRIFTED}
    world.claims[instance_id] = replace(claim, conditions=marks)
    _tainted(world, instance_id, tainted=True)
    until = round(world.now + GIVE_UP)
    agenda.plan(world, ("drifted", instance_id, until), LOOK)


def _drifted(world: World, instance_id: str, until: int) -> None:
    claim = world.claims.get(instance_id)
    if claim is None or claim.deleted:
        return
    if any(_idle(world, claim.zone)):
        deleted(world, instance_id)
    elif world.now > until:
        marks = {k: v for k, v in claim.conditions.items() if k != "DisruptionReason"}
        world.claims[instance_id] = replace(claim, conditions=marks)
        _tainted(world, instance_id, tainted=False)
        nature.schedule_waiting(world)
    else:
        agenda.plan(world, ("drifted", instance_id, until), LOOK)


def _idle(world: World, zone: str | None) -> Iterator[str]:
    """Yield machines of a zone that serve, or soon will, and have no pod."""
    for instance_id, claim in world.claims.items():
        runs = world.instances[instance_id].state == "running"
        if claim.zone == zone and runs and not claim.leaves and world.pod_on(instance_id) is None:
            node = world.nodes.get(instance_id)
            if node is None or node.schedulable:
                yield instance_id


def _launched(world: World, zone: str) -> None:
    if not _lacks_machines(world, zone):
        return
    number = sum(id_.startswith("i-k") for id_ in world.instances)
    instance_id = f"i-k{number}{zone[-1]}"
    add_instance(world, instance_id, zone)
    bare = replace(world.instances[instance_id], group=None, tags={})
    world.instances[instance_id] = bare
    world.claims[instance_id] = _claim(world, instance_id, world.now)
    agenda.plan(world, ("join", instance_id), nature.JOIN)


def _counts(world: World, instance_id: str) -> None:
    claim = world.claims.get(instance_id)
    if claim is not None and instance_id in world.nodes:
        world.claims[instance_id] = replace(
            claim, node_name=node_named(instance_id), conditions={**claim.conditions, **INITIALIZED}
        )


def _ends(world: World, instance_id: str) -> None:
    world.claims.pop(instance_id, None)
    if world.instances[instance_id].state == "running":
        nature.happen(world, ("end", instance_id))


def _collected(world: World, instance_id: str) -> None:
    """Take away the claim of a machine that is gone, or end one that somebody has stopped."""
    world.claims.pop(instance_id, None)
    if world.instances[instance_id].state == "stopped":
        nature.happen(world, ("end", instance_id))


def _lacks_machines(world: World, zone: str) -> bool:
    """Say whether pods of a zone have no place, or one that leaves, and no machine comes."""
    leaving = {node_named(i) for i, claim in world.claims.items() if claim.leaves}
    wanting = [
        pod
        for node_id, pod in world.pods.items()
        if ZONES[node_id] == zone
        and node_id not in world.claimless
        and (pod.node_name is None or pod.node_name in leaving)
    ]
    return len(wanting) > len(list(_idle(world, zone)))


def follow(world: World, key: Key) -> None:
    """Do what Karpenter does about what has just happened."""
    if not world.karpenter:
        return
    if key[0] == "join" and key[1] in world.nodes:
        agenda.plan(world, ("claim counts", key[1]), COUNT)
    if key[0] in {"die", "shut"} and key[1] in world.claims:
        agenda.plan(world, ("claim collected", key[1]), COLLECT)
    for zone in sorted({claim.zone or "" for claim in world.claims.values()} | set(ZONES.values())):
        if _lacks_machines(world, zone):
            agenda.plan(world, ("claim launched", zone), nature.LAUNCH)


def happen(world: World, key: Key) -> bool:
    """Let one thing of the agenda happen that is Karpenter's; False: it is about others."""
    return agenda.take_step(world, key, _STEPS)


_STEPS: Mapping[str, Callable[..., None]] = {
    "expires": deleted,
    "drifts": _drifts,
    "drifted": _drifted,
    "claim launched": _launched,
    "claim counts": _counts,
    "claim ends": _ends,
    "claim collected": _collected,
}
DONE: Mapping[str, Callable[..., None]] = {
    "claim deleted by hand": deleted,
    "claim drifts": _drifts,
}
