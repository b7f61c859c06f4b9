"""A station whose broker's node was terminated, as far along its way as a test needs."""

from dataclasses import replace

import pytest

from core.incidents.record import State
from core.zones.incident import LostZone
from tests.unit.handlers.announced import hook_event
from tests.unit.handlers.fakes import NEW, OLD, group_of
from tests.unit.handlers.healthy import ZONES, healthy_kafka
from tests.unit.handlers.station import Station


def announce(station: Station) -> Station:
    station.cluster.terminate(OLD)
    station.announce(hook_event("drain"))
    station.announce(hook_event("gate"))
    station.tick_until_quiet()
    return station


def replace_machine(station: Station) -> Station:
    announce(station)
    station.cluster.join(NEW)
    station.tick_until_quiet()
    return station


def drain_node(station: Station) -> Station:
    """The termination handler evicts the pod and completes its hook; the pod starts again."""
    replace_machine(station)
    station.cluster.waiting_hooks.discard((OLD, "drain"))
    station.cluster.kafka = healthy_kafka(out=10)
    station.cluster.place_pod(10, NEW, ready=False)
    station.tick_until_quiet()
    return station


def launch(station: Station) -> None:
    """Have every group launch what it lacks, and the machines join."""
    cluster = station.cluster
    for zone in dict.fromkeys(ZONES.values()):
        group = cluster.groups[group_of(zone)]
        for _ in range(group.desired - len(group.staying())):
            number = 1 + sum(id_.startswith("i-new") for id_ in cluster.instances)
            cluster.join(f"i-new{number}", zone)


def announce_hooks(station: Station) -> None:
    """Have EventBridge say whoever stands in hooks."""
    for group in station.cluster.groups.values():
        for instance_id, state in group.instances.items():
            for hook in ("drain", "gate") if state == "Terminating:Wait" else ():
                zone = station.cluster.instances[instance_id].zone
                station.announce(hook_event(hook, instance_id=instance_id, zone=zone))


def come_back(station: Station, instance_id: str) -> None:
    """Have a machine's broker back on an idle machine of its zone, and its incident at its end."""
    cluster = station.cluster
    incident = next(i for i in station.ledger.open_incidents() if i.instance_id == instance_id)
    old = cluster.instances[instance_id]
    group = cluster.groups[group_of(old.zone)]
    names = {pod.node_name: node_id for node_id, pod in cluster.pods.items()}
    node_id = incident.node_id or names[old.private_dns_name]
    cluster.set_state(instance_id, "terminated")
    cluster.set_groups_without(instance_id)
    cluster.node_views.pop(instance_id, None)
    cluster.change_group(group.name, desired=len(ZONES) // 3)
    launch(station)
    idle = [
        id_
        for id_, node in cluster.node_views.items()
        if node.zone == old.zone and node.name not in names
    ]
    cluster.place_pod(node_id, idle[0])
    for id_, node in cluster.node_views.items():
        if node.spare_for == incident.id:
            cluster.node_views[id_] = replace(node, spare_for=None)
    station.ledger.drop_lease(incident.id, ended=True)
    station.ledger.put(replace(incident, state=State.RELEASED, node_id=node_id))


def written_changes(station: Station) -> list[object]:
    """Return every change that anybody made to what is theirs."""
    theirs = station.cluster
    return [
        *(theirs.beats, theirs.completed, theirs.desired_calls, theirs.terminated),
        *(theirs.asked_to_terminate, theirs.reordered, theirs.released),
        station.termination_handler.sent,
        [n for n in theirs.node_views.values() if n.spare_for or n.out_of_service],
        [g.protected for g in theirs.groups.values() if g.protected],
    ]


def freeze_zone(station: Station) -> Station:
    """ARC shifts traffic out of zone a."""
    shift = LostZone("use1-az4", "us-east-1a", source="autoshift", occurred_at=station.now)
    station.freezes.note(shift, station.now)
    return station


def leaders(station: Station) -> set[int | None]:
    return {p.leader for p in station.cluster.read().partitions}


def critical(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the log has called a person for."""
    return [record.getMessage() for record in caplog.records if record.levelname == "CRITICAL"]
