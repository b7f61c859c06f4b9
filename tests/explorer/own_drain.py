"""Empties nodes in an explored world without a termination handler: what we evict is judged."""

from __future__ import annotations

from dataclasses import replace

from core.incidents.observation import PodOnNode
from tests.explorer import handler, nature, rules
from tests.explorer.adapters import Stage
from tests.explorer.drainers import NAMESPACE
from tests.explorer.world import World


class ExploredDrain:
    """The API server's cordons and evictions."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def pods_on(self, node: str) -> tuple[PodOnNode, ...]:
        return tuple(
            PodOnNode(
                namespace=NAMESPACE, name=pod.name, uid=pod.name, stopping=pod.stopping, kafka=True
            )
            for pod in self._stage.world.pods.values()
            if pod.node_name == node
        )

    def cordon(self, node: str, incident_id: str) -> None:
        world = self._stage.world
        for instance_id, view in world.nodes.items():
            if view.name == node and view.schedulable:
                world.nodes[instance_id] = replace(
                    view, schedulable=False, cordoned_for=incident_id
                )
                world.cordons[node] = incident_id

    def uncordon(self, node: str, incident_id: str) -> None:
        world = self._stage.world
        if world.cordons.get(node) != incident_id:
            return
        del world.cordons[node]
        for instance_id, view in world.nodes.items():
            if view.name == node:
                world.nodes[instance_id] = replace(view, schedulable=True, cordoned_for=None)
        nature.schedule_waiting(world)

    def evict(self, namespace: str, name: str, uid: str) -> str | None:
        del namespace, uid
        world = self._stage.world
        pod = next((p for p in world.pods.values() if p.name == name), None)
        instance_id = _instance_of(world, pod.node_name) if pod is not None else None
        if pod is None or pod.stopping or instance_id is None:
            return None
        if not handler.budget_allows(world, pod):
            return "Cannot evict pod as it would violate the pod's disruption budget."
        blame = rules.evicted_by_us(world, self._stage.invocation, instance_id, pod.node_id)
        nature.evict(world, pod.node_id, blame)
        return None


def _instance_of(world: World, node: str | None) -> str | None:
    return next((i for i, view in world.nodes.items() if view.name == node), None)
