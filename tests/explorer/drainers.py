"""Who empties nodes unsent: the eviction gate answers them, and the termination handler too.

A drainer cordons its node and asks for the broker's eviction until it is let through or has lost
patience. What it does with the empty node tells one from another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from core.gate import TIMEOUT_SECONDS, GateAnswer, RemovalRequest, Wish
from core.incidents.observation import PodView
from handlers.eviction.gate import Gate
from tests.explorer import agenda, handler, karpenter, nature, rules
from tests.explorer.limits import DRAIN_LIMIT, HOLD_LIMIT
from tests.explorer.world import Key, World

# kubectl leaves the node to whoever typed it, the others end it: in its place, or for good.
KUBECTL, UPDATE, AUTOSCALER = "kubectl", "node group's update", "cluster autoscaler"
DRAINERS = (KUBECTL, UPDATE, AUTOSCALER)
ASK_EVERY, PATIENCE = 20.0, HOLD_LIMIT
NAMESPACE = "kafka"
HANDLER = "system:serviceaccount:kube-system:aws-node-termination-handler"
# The gate answers by then, or not at all.
ANSWER_SECONDS = TIMEOUT_SECONDS - 2.0


class Stage(Protocol):
    """Where the gate runs."""

    invocation: rules.Invocation

    @property
    def gate(self) -> Gate:
        """Return the gate that answers."""

    def invoke(
        self,
        world: World,
        function: str,
        faults: Mapping[int, str],
        call: Callable[[float], object],
    ) -> bool:
        """Run a function to its end."""


def begin(world: World, instance_id: str, who: str) -> None:
    """Have somebody drain a node, unless somebody does already."""
    if not any(key[:2] == ("asks", instance_id) for key in world.agenda):
        world.agenda["asks", instance_id, who, round(world.now + PATIENCE)] = world.now


def asks(stage: Stage, world: World, key: Key, faults: Mapping[int, str]) -> None:
    """Let a drainer ask once, and evict the broker if the gate and the budget let it."""
    _, instance_id, who, until = key
    world.agenda.pop(key, None)
    pod = wanted(world, instance_id, who, until)
    if pod is None or not handler.budget_allows(world, pod):
        return
    gated = world.gated or who != karpenter.WHO
    blame = _answered(stage, world, pod, instance_id, who, faults) if gated else who
    if blame is not None and world.pod_on(instance_id) is not None:
        nature.evict(world, pod.node_id, blame)


def handler_asks(stage: Stage, world: World, key: Key, faults: Mapping[int, str]) -> None:
    """Let the termination handler go on with a drain; its evictions are asked for as anybody's."""
    drain = world.drains.get(key[1])
    pod = None if drain is None else world.pod_on(drain.instance_id)
    asking = drain is not None and pod is not None and not pod.stopping
    if asking and drain and pod and world.now - drain.began <= DRAIN_LIMIT:
        blame = _answered(stage, world, pod, drain.instance_id, HANDLER, faults)
        if blame is None:
            world.agenda[key] = world.now + nature.POLL
            return
    handler.happen(world, key)


def _answered(
    stage: Stage, world: World, pod: PodView, instance_id: str, who: str, faults: Mapping[int, str]
) -> str | None:
    """Return who is to blame for an eviction that is let through; None: nobody goes."""
    if world.is_down("gate"):
        return None  # The API server refuses what it cannot ask about.
    told: list[tuple[GateAnswer, rules.Invocation]] = []
    began = world.now

    def ask(now: float) -> None:
        answer = stage.gate.ask(asked(pod, who), now + ANSWER_SECONDS)
        told.append((answer, stage.invocation))

    stage.invoke(world, "gate", faults, ask)
    if not told or world.now - began > TIMEOUT_SECONDS or not told[0][0].allowed:
        return None
    return rules.let_through(world, told[0][1], instance_id, pod.node_id)


def wanted(world: World, instance_id: str, who: str, until: int) -> PodView | None:
    """Return the broker's pod that a drainer asks for now, and have it come again."""
    node = world.nodes.get(instance_id)
    if node is None or world.now > until:
        return None
    world.nodes[instance_id] = replace(node, schedulable=False)
    pod = world.pod_on(instance_id)
    if pod is None:
        _emptied(world, instance_id, who)
        return None
    agenda.plan(world, ("asks", instance_id, who, until), ASK_EVERY)
    return None if pod.stopping else pod


def asked(pod: PodView, who: str) -> RemovalRequest:
    """Return what the API server asks the gate."""
    return RemovalRequest(
        uid="explored",
        wish=Wish.EVICT,
        name=pod.name,
        namespace=NAMESPACE,
        username=who,
        groups=frozenset(),
        dry_run=False,
    )


def _emptied(world: World, instance_id: str, who: str) -> None:
    if who == karpenter.WHO:
        karpenter.emptied(world, instance_id)
    elif who != KUBECTL:
        nature.terminate(world, instance_id, decrement=who == AUTOSCALER)
