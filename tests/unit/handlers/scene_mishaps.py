"""Words of a scene for what happens seldom: throttled ledgers, edited records, odd machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from botocore.exceptions import ClientError

from core.availability.lease import Lease
from core.availability.operator import Revisions
from core.ground.errors import StillwaterError
from core.incidents.observation import GroupView
from core.incidents.record import Incident
from tests.unit.handlers.announced import ec2_event
from tests.unit.handlers.fakes import group_of, node_named
from tests.unit.handlers.health_events import RETIREMENT, health_event
from tests.unit.handlers.healthy import ZONES
from tests.unit.handlers.scenery import NODES, STATE, Scenery

DAY = 86_400.0
RECOMMENDED = "EC2 Instance Rebalance Recommendation"


class ThrottledLedger:
    """The scene's ledger, of which every other write is refused by AWS before it is made."""

    def __init__(self, scene: Scenery) -> None:
        self._put, self._writes = scene.station.ledger.put, 0

    def put(self, incident: Incident) -> Incident:
        self._writes += 1
        if self._writes % 2:
            error = {"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}
            raise ClientError(error, "PutItem")
        return self._put(incident)


def _ledger_throttled(scene: Scenery, *, throttled: bool) -> None:
    ledger, scene.throttled = scene.station.ledger, throttled
    if throttled:
        ledger.put = ThrottledLedger(scene).put  # type: ignore[method-assign]
    else:
        del ledger.put  # type: ignore[method-assign]


@contextmanager
def refusals() -> Iterator[None]:
    """Take what a function fails with as SQS does: its message comes again."""
    try:
        yield
    except (StillwaterError, ClientError):
        return


def _old_ticks(scene: Scenery) -> None:
    """Every tick that was ever sent is delivered once more, the oldest first."""
    for body, _ in list(scene.station.ticks.sent):
        with refusals():
            scene.station.loop.turn(body, scene.station.now)


def _lease_for_nobody(scene: Scenery) -> None:
    """Somebody writes a lease by hand, for an incident that there is not."""
    lease = Lease("i-0nobody", scene.station.now + 900, 99)
    scene.station.ledger._leases = (*scene.station.ledger._leases, lease)


def _used_lease_for_nobody(scene: Scenery) -> None:
    lease = Lease("i-0nobody", scene.station.now + 900, 99, out_at=scene.station.now)
    scene.station.ledger._leases = (*scene.station.ledger._leases, lease)


def _pause_of_another_shape(scene: Scenery, *, on: bool) -> None:
    """A newer release has paused the cluster."""
    records = scene.station.records
    version = records.read("pause#orders").version
    records.write("pause#orders", {"pauses": {"all": "ann"}} if on else {"pause": None}, version)


def _node(scene: Scenery, zone: str, **changed: object) -> None:
    nodes, instance_id = scene.station.cluster.node_views, scene.instance(zone)
    if instance_id in nodes:
        nodes[instance_id] = replace(nodes[instance_id], **changed)  # type: ignore[arg-type]


def _node_renamed(scene: Scenery, zone: str) -> None:
    """Its kubelet registers again under another name, and the broker starts on that Node."""
    cluster, instance_id, node_id = scene.station.cluster, scene.instance(zone), NODES[zone]
    scene.doing.append(zone)
    _node(scene, zone, name=f"{node_named(instance_id)}.renamed")
    cluster.attached.pop(node_named(instance_id), None)
    cluster.place_pod(node_id, instance_id)
    scene.out.add(node_id)


def _marks_edited(scene: Scenery, zone: str) -> None:
    """Somebody takes our marks off the zone's nodes, and writes others."""
    for instance_id, node in scene.station.cluster.node_views.items():
        if node.zone == ZONES[NODES[zone]]:
            marked = replace(node, spare_for="i-0nobody" if node.spare_for else None)
            scene.station.cluster.node_views[instance_id] = marked


def _pool_unlabelled(scene: Scenery, zone: str) -> None:
    _node(scene, zone, pool=None)


def _group(scene: Scenery, zone: str) -> GroupView:
    return scene.station.cluster.groups[group_of(ZONES[NODES[zone]])]


def _group_gone(scene: Scenery, zone: str) -> None:
    """Somebody deletes the group and keeps its machines: nobody knows it any more."""
    cluster, group = scene.station.cluster, _group(scene, zone)
    cluster.groups[group.name] = replace(group, desired=0, instances={})
    cluster.waiting_hooks -= {hook for hook in cluster.waiting_hooks if hook[0] in group.instances}
    known, listed = cluster.group, cluster.groups_of
    cluster.group = lambda name: None if name == group.name else known(name)  # type: ignore[method-assign]
    cluster.groups_of = lambda whose: tuple(  # type: ignore[method-assign]
        each for each in listed(whose) if each.name != group.name
    )


def _warm(scene: Scenery, zone: str) -> None:
    """The group has a stopped machine in its warm pool."""
    cluster, group = scene.station.cluster, _group(scene, zone)
    instance_id = f"i-warm{zone}"
    cluster.add_instance(instance_id, ZONES[NODES[zone]], "Warmed:Stopped")
    cluster.set_state(instance_id, "stopped")
    assert instance_id in cluster.groups[group.name].instances


def _lifecycle(state: str) -> Callable[[Scenery, str], None]:
    def do(scene: Scenery, zone: str) -> None:
        if scene.instance(zone) in _group(scene, zone).instances:
            scene.station.cluster.set_lifecycle(scene.instance(zone), state)

    return do


def _refreshed(scene: Scenery, zone: str) -> None:
    """Somebody begins an instance refresh, which terminates what is in service."""
    cluster, group = scene.station.cluster, _group(scene, zone)
    for instance_id, state in group.instances.items():
        if state == "InService":
            cluster.terminate(instance_id)


def _balanced(scene: Scenery, zone: str) -> None:
    """The group launches one beside the old one, and terminates the old one after it."""
    cluster = scene.station.cluster
    instance_id = f"i-balanced{zone}"
    cluster.add_instance(instance_id, ZONES[NODES[zone]])
    cluster.add_node(instance_id)
    cluster.terminate(scene.instance(zone))


def _said(detail_type: str, **detail: str) -> Callable[[Scenery, str], None]:
    def say(scene: Scenery, zone: str) -> None:
        body = scene.at(ec2_event(detail_type, scene.instance(zone), **detail))
        told = {**json.loads(body), "id": f"said-{zone}-{len(scene.heard)}"}
        scene.station.announce(json.dumps(told))

    return say


def _retired_in(seconds: float) -> Callable[[Scenery, str], None]:
    """AWS moves a retirement, or announces it late."""

    def say(scene: Scenery, zone: str) -> None:
        now = scene.station.now
        body = health_event(RETIREMENT, due=now + seconds, said_at=now)
        scene.station.announce(body.replace("i-0a", scene.instance(zone)))
        scene.station.now += 1

    return say


def _rolled(scene: Scenery, zone: str, *, done: bool) -> None:
    """Strimzi has another description for a broker's pod, and restarts it in the end."""
    cluster, node_id = scene.station.cluster, NODES[zone]
    pod = cluster.pods[node_id]
    revisions = dict(cluster.revisions or {})
    if done:
        revisions.pop(pod.name, None)
    else:
        revisions[pod.name] = "next"
        cluster.pods[node_id] = replace(pod, revisions=Revisions("now"))
    cluster.revisions = revisions


def _log_dir_fails(scene: Scenery, zone: str) -> None:
    """A broker takes a disk offline: it runs, is registered, and is in no ISR of that disk."""
    scene.doing.append(zone)
    scene.failed_disks.add(NODES[zone])
    scene._show_kafka()


def _log_dir_mended(scene: Scenery, zone: str) -> None:
    scene.failed_disks.discard(NODES[zone])
    scene._show_kafka()


def _stopped(scene: Scenery, zone: str) -> None:
    """Somebody stops the machine by hand; its Node stays."""
    cluster, instance_id = scene.station.cluster, scene.instance(zone)
    scene.doing.append(zone)
    cluster.set_state(instance_id, "stopped")
    _node(scene, zone, ready=False)
    pod = cluster.pods[NODES[zone]]
    if pod.node_name == node_named(instance_id):
        scene.out.add(NODES[zone])
        cluster.pods[NODES[zone]] = replace(pod, ready=False)
    scene.station.announce(scene.at(ec2_event(STATE, instance_id, state="stopped")))


def _later(seconds: float) -> Callable[[Scenery], None]:
    def wait(scene: Scenery) -> None:
        scene.station.now += seconds

    return wait


PLAIN: Mapping[str, Callable[[Scenery], None]] = {
    "ledger throttled": lambda scene: _ledger_throttled(scene, throttled=True),
    "ledger free": lambda scene: _ledger_throttled(scene, throttled=False),
    "old ticks": _old_ticks,
    "lease for nobody": _lease_for_nobody,
    "used lease for nobody": _used_lease_for_nobody,
    "paused by a newer release": lambda scene: _pause_of_another_shape(scene, on=True),
    "resumed by a newer release": lambda scene: _pause_of_another_shape(scene, on=False),
    "a day": _later(DAY),
    "a weekend": _later(2.5 * DAY),
    "five minutes": _later(300.0),
}
OF_ZONE: Mapping[str, Callable[[Scenery, str], None]] = {
    "node renamed": _node_renamed,
    "node unlabelled": _pool_unlabelled,
    "marks edited": _marks_edited,
    "group gone": _group_gone,
    "warm": _warm,
    "standby": _lifecycle("Standby"),
    "in service": _lifecycle("InService"),
    "unknown lifecycle": _lifecycle("Quarantined:Wait"),
    "refreshed": _refreshed,
    "balanced": _balanced,
    "recommended": _said(RECOMMENDED),
    "said shutting down": _said(STATE, state="shutting-down"),
    "said hibernating": _said(STATE, state="hibernating"),
    "retire in an hour": _retired_in(3600.0),
    "retire in ten minutes": _retired_in(600.0),
    "retire an hour ago": _retired_in(-3600.0),
    "rolled": lambda scene, zone: _rolled(scene, zone, done=False),
    "rolled over": lambda scene, zone: _rolled(scene, zone, done=True),
    "log dir fails": _log_dir_fails,
    "log dir mended": _log_dir_mended,
    "stopped": _stopped,
}
