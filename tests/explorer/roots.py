"""Replaces root volumes in an explored world: EC2's tasks, and the machines that boot from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from core.incidents.observation import RootTask
from tests.explorer import agenda, nature, rules
from tests.explorer.adapters import Stage
from tests.explorer.world import Key, World, out

SWAP, BOOT = 30.0, 90.0
IMAGE = "ami-new"


class ExploredRoots:
    """EC2, as far as root volumes go."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def task_of(self, instance_id: str, incident_id: str) -> RootTask | None:
        del instance_id
        return self._stage.world.roots.get(incident_id)

    def replace(
        self, instance_id: str, image_id: str, incident_id: str, *, trial: bool
    ) -> str | None:
        del image_id
        world = self._stage.world
        if world.instances[instance_id].state != "running":
            return "The instance is not running."
        if trial or incident_id in world.roots:
            return None
        rules.reboots(world, self._stage.invocation, instance_id)
        world.roots[incident_id] = RootTask(f"replacevol-{world.number()}", "pending")
        agenda.plan(world, ("swapped", incident_id, instance_id), SWAP)
        return None


def happen(world: World, key: Key) -> bool:
    """Let one thing of the agenda happen that is about a root volume; False: it is about others."""
    return agenda.take_step(world, key, _STEPS)


def _swapped(world: World, incident_id: str, instance_id: str) -> None:
    """End a task, and boot the machine: from the new root volume, or from the old one."""
    if world.instances[instance_id].state != "running":
        return
    failed = instance_id in world.unreplaced
    world.roots[incident_id] = replace(
        world.roots[incident_id], state="failed" if failed else "succeeded"
    )
    node, pod = world.nodes.get(instance_id), world.pod_on(instance_id)
    if node is not None:
        world.nodes[instance_id] = replace(node, ready=False)
    if pod is not None:
        nature.cut_off(world, instance_id)
        world.pods[pod.node_id] = out(world, world.pods[pod.node_id], node_name=None)
    agenda.plan(world, ("booted", instance_id), BOOT)


def _booted(world: World, instance_id: str) -> None:
    """Let a machine's node join again, under the same name and with another boot id."""
    node = world.nodes.get(instance_id)
    if node is None or world.instances[instance_id].state != "running":
        return
    world.nodes[instance_id] = replace(node, ready=True, boot_id=f"boot-{world.number()}")
    nature.schedule_waiting(world)


_STEPS: Mapping[str, Callable[..., None]] = {"swapped": _swapped, "booted": _booted}
