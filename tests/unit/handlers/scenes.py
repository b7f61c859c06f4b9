"""Plays a history by the names of its steps, with the shipped functions over a world in memory.

A step is a word and, where it needs one, a zone's letter: `leave a`, `spot b`, `nth away`. Between
two steps `wait N` lets everything else happen for N rounds of a few minutes: the group launches,
the termination handler drains, pods start and catch up, hooks run out, ticks and sweeps come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from core.incidents.joining import Pause, ask_release, hold, ignore
from core.incidents.record import Incident, State
from handlers.store.documents import Pauses
from tests.unit.handlers import scene_faults, scene_kafka, scene_mishaps
from tests.unit.handlers.announced import ec2_event, hook_event, zone_event
from tests.unit.handlers.fakes import group_of
from tests.unit.handlers.health_events import DAY, REBOOT, RETIREMENT, health_event
from tests.unit.handlers.healthy import ZONES
from tests.unit.handlers.scenery import NODES, STATE, WARNING, ZONE_IDS, Scenery, end_machine


@dataclass
class Scene(Scenery):
    """A world in which somebody does something between two rounds."""

    def play(self, history: str) -> None:
        for step in history.split(", "):
            word, _, argument = step.rpartition(" ")
            if word == "wait":
                self.wait(int(argument))
            elif step in _PLAIN:
                _PLAIN[step](self)
            else:
                _OF_ZONE[word](self, argument)
            self._show_kafka()


def _leave(scene: Scene, zone: str) -> None:
    if scene.station.cluster.groups[group_of(ZONES[NODES[zone]])].instances.get(
        scene.instance(zone)
    ) in {"InService", "Terminating:Retained"}:
        scene.station.cluster.terminate(scene.instance(zone))


def _announce(scene: Scene, zone: str) -> None:
    for hook in ("gate", "drain"):
        body = hook_event(hook, instance_id=scene.instance(zone), zone=ZONES[NODES[zone]])
        scene.station.announce(body)


def _spot(scene: Scene, zone: str) -> None:
    scene.doing.append(zone)
    scene.warned[zone] = scene.station.now
    scene.station.announce(scene.at(ec2_event(WARNING, scene.instance(zone))))


def _schedule(code: str, days: float, status: str = "open") -> Callable[[Scene, str], None]:
    def say(scene: Scene, zone: str) -> None:
        now = scene.station.now
        body = health_event(code, due=now + days * DAY, status=status, said_at=now)
        scene.station.announce(body.replace("i-0a", scene.instance(zone)))
        scene.station.now += 1

    return say


def _shift_zone(*, over: bool) -> Callable[[Scene, str], None]:
    def say(scene: Scene, zone: str) -> None:
        now = scene.station.now
        scene.station.announce(zone_event(ZONE_IDS[zone], said_at=now, over=over))
        scene.station.now += 1

    return say


def _die(scene: Scene, zone: str) -> None:
    scene.doing.append(zone)
    end_machine(scene, zone)
    scene.station.announce(scene.at(ec2_event(STATE, scene.instance(zone), state="terminated")))


def _delete_pod(scene: Scene, zone: str) -> None:
    """Somebody deletes the broker's pod: it starts again on any node that is free."""
    scene.doing.append(zone)
    node_id = NODES[zone]
    scene._stop(node_id, scene.station.cluster.pods[node_id])


def _cordon(*, schedulable: bool, spare: bool) -> Callable[[Scene, str], None]:
    def do(scene: Scene, zone: str) -> None:
        nodes = scene.station.cluster.node_views
        instance_id = scene.spare(zone) if spare else scene.instance(zone)
        if instance_id in nodes:
            nodes[instance_id] = replace(nodes[instance_id], schedulable=schedulable)

    return do


def _hooks(result: str) -> Callable[[Scene, str], None]:
    def do(scene: Scene, zone: str) -> None:
        cluster, instance_id = scene.station.cluster, scene.instance(zone)
        waiting = {hook for hook in cluster.waiting_hooks if hook[0] == instance_id}
        cluster.waiting_hooks -= waiting
        if waiting and result == "ABANDON":
            cluster.set_lifecycle(instance_id, "Terminating:Retained")
        elif waiting:
            scene.doing.append(zone)
            end_machine(scene, zone)

    return do


def _maximum(scene: Scene, zone: str) -> None:
    name = group_of(ZONES[NODES[zone]])
    group = scene.station.cluster.groups[name]
    scene.station.cluster.groups[name] = replace(group, maximum=group.desired)


def _wish(wish: Callable[[Incident, float], Incident]) -> Callable[[Scene, str], None]:
    def say(scene: Scene, zone: str) -> None:
        incident = scene.incident(zone)
        if incident is not None and (incident.open or incident.state is State.RETAINED):
            scene.station.ledger.put(wish(incident, scene.station.now))

    return say


def _release(scene: Scene, zone: str) -> None:
    """A person lets it go: its group runs its hooks anew, whatever was answered before."""
    cluster = scene.station.cluster
    cluster.completed = [each for each in cluster.completed if each[0] != scene.instance(zone)]
    _wish(lambda incident, now: ask_release(incident, "ann", now))(scene, zone)


def _pause(scene: Scene, *, on: bool) -> None:
    pause = Pause("ann", "maintenance", scene.station.now) if on else None
    Pauses(scene.station.records, "orders").write(pause)


def _change(**changed: object) -> Callable[[Scene], None]:
    def do(scene: Scene) -> None:
        for name, value in changed.items():
            setattr(scene, name, value)

    return do


def _kubernetes(scene: Scene, *, answers: bool) -> None:
    scene.station.cluster.kubernetes_answers = answers


def _double_messages(scene: Scene) -> None:
    for body, _ in list(scene.station.ticks.sent[-3:]):
        for _ in range(2):
            scene.station.loop.turn(body, scene.station.now)


def _later(scene: Scene, seconds: float) -> None:
    scene.station.now += seconds


_PLAIN: dict[str, Callable[[Scene], None]] = {
    **scene_faults.PLAIN,
    **scene_mishaps.PLAIN,
    **scene_kafka.PLAIN,
    "lease deleted": lambda scene: scene.station.ledger.forget_leases(),
    "ticks doubled": _double_messages,
    "pause": lambda scene: _pause(scene, on=True),
    "resume": lambda scene: _pause(scene, on=False),
    "api away": lambda scene: _kubernetes(scene, answers=False),
    "api back": lambda scene: _kubernetes(scene, answers=True),
    "kafka silent": _change(mood="silent"),
    "kafka without quorum": _change(mood="no quorum"),
    "kafka not whole": _change(mood="not whole"),
    "kafka well": _change(mood=""),
    "nth away": _change(nth_away=True),
    "nth back": _change(nth_away=False),
    "clock back": lambda scene: _later(scene, -120),
    "clock ahead": lambda scene: _later(scene, 290),
    "four days": lambda scene: _later(scene, 4 * DAY),
    "an hour": lambda scene: _later(scene, 3600),
    "half a day": lambda scene: _later(scene, 12 * 3600),
}
_OF_ZONE: dict[str, Callable[[Scene, str], None]] = {
    **scene_faults.OF_ZONE,
    **scene_mishaps.OF_ZONE,
    **scene_kafka.OF_ZONE,
    "leave": _leave,
    "announced": _announce,
    "spot": _spot,
    "retire": _schedule(RETIREMENT, 7),
    "retire sooner": _schedule(RETIREMENT, 1),
    "retire called off": _schedule(RETIREMENT, 7, "closed"),
    "reboot": _schedule(REBOOT, 3),
    "reboot called off": _schedule(REBOOT, 3, "closed"),
    "shift": _shift_zone(over=False),
    "shift over": _shift_zone(over=True),
    "die": _die,
    "delete pod": _delete_pod,
    "delete claim": lambda scene, zone: scene.claimless.add(NODES[zone]),
    "claim bound": lambda scene, zone: scene.claimless.discard(NODES[zone]),
    "cordon": _cordon(schedulable=False, spare=False),
    "uncordon": _cordon(schedulable=True, spare=False),
    "cordon spare": _cordon(schedulable=False, spare=True),
    "hooks completed": _hooks("CONTINUE"),
    "hooks abandoned": _hooks("ABANDON"),
    "maximum lowered": _maximum,
    "no capacity": lambda scene, zone: scene.without_capacity.add(zone),
    "capacity": lambda scene, zone: scene.without_capacity.discard(zone),
    "capacity elsewhere": lambda scene, zone: scene.elsewhere.add(zone),
    "release": _release,
    "ignore": _wish(lambda incident, now: ignore(incident, "ann", "known", now)),
    "hold": _wish(lambda incident, now: hold(incident, now + 1800, "ann", now)),
}
