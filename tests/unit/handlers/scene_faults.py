"""Words of a scene for faults: late and doubled words, a restored table, machines that go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.unit.handlers.announced import ec2_event
from tests.unit.handlers.fakes import group_of
from tests.unit.handlers.healthy import ZONES
from tests.unit.handlers.scenery import NODES, STATE, Scenery, TableInMemory, cut_off


def _announce_late(scene: Scenery, *, late: bool) -> None:
    """Announcements come late, the last of them first."""
    coming, scene.withheld = scene.withheld or [], [] if late else None
    for body in reversed(coming):
        scene.station.announce(body)


def _redriven(scene: Scenery) -> None:
    """Every announcement comes once more: the dead letters are sent back to their queue."""
    for body in list(scene.heard):
        scene.station.announce(body)


def _backed_up(scene: Scenery) -> None:
    ledger, records = scene.station.ledger, scene.station.records
    scene.backup = TableInMemory(
        dict(ledger._incidents), dict(ledger._open), dict(records._kept), ledger._leases
    )


def _restore_table(scene: Scenery) -> None:
    """Somebody restores the ledger's table to the moment of its backup."""
    ledger, records, backup = scene.station.ledger, scene.station.records, scene.backup
    if backup is None:
        return
    ledger._incidents, ledger._open = dict(backup.incidents), dict(backup.opened)
    ledger._leases, records._kept = backup.leases, dict(backup.records)


def _spare_ends(scene: Scenery, zone: str) -> None:
    """The machine that waits for a pod dies, as its group or EC2 would have it."""
    spare = scene.spare(zone)
    if spare is None:
        return
    cluster = scene.station.cluster
    cluster.set_state(spare, "terminated")
    cluster.set_groups_without(spare)
    cluster.node_views.pop(spare, None)
    scene.station.announce(scene.at(ec2_event(STATE, spare, state="terminated")))


def _spare_leaves(scene: Scenery, zone: str) -> None:
    """The group terminates the machine that waits for a pod: it balances its zones."""
    spare = scene.spare(zone)
    if spare is not None:
        scene.station.cluster.terminate(spare)


def _scaled_in(scene: Scenery, zone: str) -> None:
    """Somebody lowers the desired capacity; the group takes an idle machine, where it has one."""
    cluster, name = scene.station.cluster, group_of(ZONES[NODES[zone]])
    group = cluster.groups[name]
    if group.desired < 2:
        return
    cluster.groups[name] = replace(group, desired=group.desired - 1)
    victim = scene.spare(zone) or min(group.staying(), default=None)
    if victim is not None and len(group.staying()) > group.desired - 1:
        cluster.terminate(victim)


def _node_deleted(scene: Scenery, zone: str) -> None:
    """Somebody deletes the Node: its pods end."""
    if scene.station.cluster.node_views.pop(scene.instance(zone), None) is not None:
        scene.doing.append(zone)
        cut_off(scene, zone)


def _node_back(scene: Scenery, zone: str) -> None:
    """It joins again, under the same name."""
    cluster, instance_id = scene.station.cluster, scene.instance(zone)
    if instance_id not in cluster.node_views and cluster.instances[instance_id].state == "running":
        cluster.add_node(instance_id)


def _behind(scene: Scenery, zone: str) -> None:
    """A broker leaves its ISRs by itself, and comes back."""
    scene.doing.append(zone)
    scene.out.add(NODES[zone])
    scene._show_kafka()


PLAIN: Mapping[str, Callable[[Scenery], None]] = {
    "announcements late": lambda scene: _announce_late(scene, late=True),
    "announcements come": lambda scene: _announce_late(scene, late=False),
    "redriven": _redriven,
    "backed up": _backed_up,
    "restored": _restore_table,
}
OF_ZONE: Mapping[str, Callable[[Scenery, str], None]] = {
    "spare dies": _spare_ends,
    "spare leaves": _spare_leaves,
    "scaled in": _scaled_in,
    "node deleted": _node_deleted,
    "node back": _node_back,
    "falls behind": _behind,
}
