"""Plays a history in a scene, and holds its end to what is told of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.unit.handlers.scenery import NODES
from tests.unit.handlers.scenes import Scene
from tests.unit.handlers.station import POLICY, Station

PATIENT = replace(POLICY, post_condition_wait_seconds=4 * 3600.0)


@dataclass(frozen=True)
class Told:
    """How a history ends: the last state of each zone's first instance, and who was called."""

    a: str = ""
    b: str = ""
    c: str = ""
    pages: tuple[str, ...] = ()


def ends_as_told(history: str, told: Told) -> Scene:
    """Assert that a history ends so, that nothing is left of it, and that somebody knows."""
    scene = Scene(Station(policy=PATIENT), lambda _: 0)
    scene.play(history)
    ends = {zone: scene.incident(zone) for zone in NODES}
    wanted = {zone: getattr(told, zone) for zone in NODES}
    said = {zone: "" if end is None else f"{end.state}" for zone, end in ends.items()}
    reasons = [end.reason for end in ends.values() if end is not None]
    assert said == wanted, reasons
    assert scene.most_out <= 1 + len(scene.doing), scene.doing
    assert scene.unheard() == []
    assert {page["page"] for page in scene.pages} >= set(told.pages), scene.pages
    if "spot" not in history:
        assert scene.bare == []
    if not scene.pages:
        groups = scene.station.cluster.groups.values()
        assert {group.name: group.desired for group in groups if group.desired != 1} == {}
    over = {node.spare_for for node in scene.station.cluster.node_views.values()}
    assert over - {i.id for i in scene.station.ledger.open_incidents()} <= {None}
    return scene
