"""Plays a history by the names of its steps, with the shipped functions over a world in memory.

A step is a word and, where it needs one, a zone's letter: `leave a`, `spot b`, `nth away`. Between
two steps `wait N` lets everything else happen for N rounds of a few minutes: the group launches,
the termination handler drains, pods start and catch up, hooks run out, ticks and sweeps come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from core.incidents.pause import Pause
from core.incidents.record import Incident, State
from core.incidents.requests import ask_release, hold, ignore
from core.views import ClusterView, Doubt
from handlers.store.pauses import Pauses
from tests.unit.handlers.announced import ec2_event, hook_event, zone_event
from tests.unit.handlers.fakes import group_of, node_named
from tests.unit.handlers.health_events import DAY, REBOOT, RETIREMENT, health_event
from tests.unit.handlers.healthy import ZONES, healthy_kafka
from tests.unit.handlers.world import World

NODES = {zone[-1]: node_id for node_id, zone in ZONES.items()}
ZONE_IDS = {"a": "use1-az4", "b": "use1-az6", "c": "use1-az1"}
WARNING = "EC2 Spot Instance Interruption Warning"
STATE = "EC2 Instance State-change Notification"


@dataclass
class Scene(World):
    """A world in which somebody does something between two rounds."""

    without_capacity: set[str] = field(default_factory=set)  # zones' letters
    elsewhere: set[str] = field(default_factory=set)
    claimless: set[int] = field(default_factory=set)
    warned: dict[str, float] = field(default_factory=dict)
    nth_away: bool = False
    mood: str = ""  # of Kafka's readings
    doing: list[str] = field(default_factory=list)  # brokers that others have taken out

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

    def wait(self, rounds: int) -> None:
        for _ in range(rounds):
            for number, step in enumerate(self._steps):
                self._turns += 1
                self.choose = lambda options, number=number: (self._turns + number) % options
                step()

    # What the world does otherwise than usual.
    def _launch(self) -> None:
        cluster = self.station.cluster
        for zone in list(NODES):
            group = cluster.groups[group_of(ZONES[NODES[zone]])]
            if zone in self.without_capacity or group.desired <= len(group.staying()):
                continue
            self._launched += 1
            instance_id = f"i-new{self._launched}"
            cluster.add_instance(instance_id, ZONES[NODES[zone]])
            if zone in self.elsewhere:
                other = next(z for z in ZONES.values() if z[-1] != zone)
                cluster.instances[instance_id] = replace(cluster.instances[instance_id], zone=other)
            cluster.add_node(instance_id)
            return

    def _drain(self) -> None:
        if self.nth_away:
            return
        sent = [body for body, _ in self.station.termination_handler.sent[self._drained :][:1]]
        super()._drain()
        nodes = self.station.cluster.node_views
        for instance_id in list(nodes):
            if any(f'"{instance_id}"' in body for body in sent):
                nodes[instance_id] = replace(nodes[instance_id], schedulable=False)

    def _end(self) -> None:
        """EC2 also takes whom it has warned, once two minutes are over."""
        for zone, at in list(self.warned.items()):
            if self.station.now >= at + 120:
                del self.warned[zone]
                _gone(self, zone)
        super()._end()

    def _start(self) -> None:
        cluster = self.station.cluster
        for node_id, pod in cluster.pods.items():
            idle = self._idle(ZONES[node_id])
            if pod.node_name is None and idle and node_id not in self.claimless:
                cluster.place_pod(node_id, idle[0])
                return

    def _idle(self, zone: str) -> list[str]:
        nodes = self.station.cluster.node_views
        return [id_ for id_ in super()._idle(zone) if nodes[id_].ready and nodes[id_].schedulable]

    def _show_kafka(self) -> None:
        super()._show_kafka()
        cluster = self.station.cluster
        cluster.kafka = _told(cluster.kafka, self.mood)

    # Whom a letter names.
    def instance(self, zone: str) -> str:
        """Return the instance under a zone's broker, or the one it was last on."""
        return f"i-0{zone}"

    def spare(self, zone: str) -> str | None:
        found = self._idle(ZONES[NODES[zone]])
        return found[0] if found else None

    def incident(self, zone: str) -> Incident | None:
        """Return the last round of the incident of a zone's first instance."""
        found, number = None, 1
        while True:
            id_ = self.instance(zone) if number == 1 else f"{self.instance(zone)}.{number}"
            later = self.station.ledger.get(id_)
            if later is None:
                return found
            found, number = later, number + 1

    def at(self, body: str) -> str:
        moment = datetime.fromtimestamp(self.station.now, UTC).isoformat()
        return body.replace("2026-11-20T10:00:00Z", moment)

    # What is judged.
    @property
    def pages(self) -> list[dict[str, str]]:
        return self.station.ticks.pages

    def unheard(self) -> list[str]:
        """Return what is not over, or is kept, and has called nobody."""
        heard = {page.get("incident_id") for page in self.pages}
        found = []
        for zone in NODES:
            incident = self.incident(zone)
            kept = incident is not None and (incident.open or incident.state is State.RETAINED)
            if incident is not None and kept and incident.id not in heard:
                found.append(f"{incident.id} {incident.state}: {incident.reason}")
        return found


def _told(view: ClusterView | None, mood: str) -> ClusterView | None:
    if view is None or not mood:
        return view
    if mood == "silent":
        return None
    if mood == "no quorum":
        return replace(healthy_kafka(), stale=True, quorum_leader=None)
    # A reading that leaves something out and calls all it shows healthy.
    return replace(healthy_kafka(), doubts=(Doubt("Topic u is missing."),))


def _leave(scene: Scene, zone: str) -> None:
    if scene.station.cluster.groups[group_of(ZONES[NODES[zone]])].instances.get(
        scene.instance(zone)
    ) in {"InService", "Terminating:Retained"}:
        scene.station.cluster.terminate(scene.instance(zone))


def _announced(scene: Scene, zone: str) -> None:
    for hook in ("gate", "drain"):
        body = hook_event(hook, instance_id=scene.instance(zone), zone=ZONES[NODES[zone]])
        scene.station.announce(body)


def _spot(scene: Scene, zone: str) -> None:
    scene.doing.append(zone)
    scene.warned[zone] = scene.station.now
    scene.station.announce(scene.at(ec2_event(WARNING, scene.instance(zone))))


def _scheduled(code: str, days: float, status: str = "open") -> Callable[[Scene, str], None]:
    def say(scene: Scene, zone: str) -> None:
        now = scene.station.now
        body = health_event(code, due=now + days * DAY, status=status, said_at=now)
        scene.station.announce(body.replace("i-0a", scene.instance(zone)))
        scene.station.now += 1

    return say


def _shifted(*, over: bool) -> Callable[[Scene, str], None]:
    def say(scene: Scene, zone: str) -> None:
        now = scene.station.now
        scene.station.announce(zone_event(ZONE_IDS[zone], said_at=now, over=over))
        scene.station.now += 1

    return say


def _gone(scene: Scene, zone: str) -> None:
    """End a machine, with its Node and whatever ran there."""
    cluster, instance_id = scene.station.cluster, scene.instance(zone)
    cluster.set_state(instance_id, "terminated")
    cluster.set_groups_without(instance_id)
    cluster.waiting_hooks -= {(instance_id, "drain"), (instance_id, "gate")}
    cluster.node_views.pop(instance_id, None)
    _cut_off(scene, zone)


def _die(scene: Scene, zone: str) -> None:
    scene.doing.append(zone)
    _gone(scene, zone)
    scene.station.announce(scene.at(ec2_event(STATE, scene.instance(zone), state="terminated")))


def _cut_off(scene: Scene, zone: str) -> None:
    node_id = NODES[zone]
    pod = scene.station.cluster.pods[node_id]
    if pod.node_name == node_named(scene.instance(zone)):
        scene._stop(node_id, pod)


def _deleted(scene: Scene, zone: str) -> None:
    """Somebody deletes the broker's pod: it starts again on any node that is free."""
    scene.doing.append(zone)
    node_id = NODES[zone]
    scene._stop(node_id, scene.station.cluster.pods[node_id])


def _cordoned(*, schedulable: bool, spare: bool) -> Callable[[Scene, str], None]:
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
            _gone(scene, zone)

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


def _released(scene: Scene, zone: str) -> None:
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


def _doubled(scene: Scene) -> None:
    for body, _ in list(scene.station.ticks.sent[-3:]):
        for _ in range(2):
            scene.station.loop.turn(body, scene.station.now)


def _later(scene: Scene, seconds: float) -> None:
    scene.station.now += seconds


_PLAIN: dict[str, Callable[[Scene], None]] = {
    "lease deleted": lambda scene: scene.station.ledger.forget_leases(),
    "ticks doubled": _doubled,
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
    "an hour": lambda scene: _later(scene, 3600),
    "half a day": lambda scene: _later(scene, 12 * 3600),
}
_OF_ZONE: dict[str, Callable[[Scene, str], None]] = {
    "leave": _leave,
    "announced": _announced,
    "spot": _spot,
    "retire": _scheduled(RETIREMENT, 7),
    "retire sooner": _scheduled(RETIREMENT, 1),
    "retire called off": _scheduled(RETIREMENT, 7, "closed"),
    "reboot": _scheduled(REBOOT, 3),
    "reboot called off": _scheduled(REBOOT, 3, "closed"),
    "shift": _shifted(over=False),
    "shift over": _shifted(over=True),
    "die": _die,
    "delete pod": _deleted,
    "delete claim": lambda scene, zone: scene.claimless.add(NODES[zone]),
    "cordon": _cordoned(schedulable=False, spare=False),
    "uncordon": _cordoned(schedulable=True, spare=False),
    "cordon spare": _cordoned(schedulable=False, spare=True),
    "hooks completed": _hooks("CONTINUE"),
    "hooks abandoned": _hooks("ABANDON"),
    "maximum lowered": _maximum,
    "no capacity": lambda scene, zone: scene.without_capacity.add(zone),
    "capacity": lambda scene, zone: scene.without_capacity.discard(zone),
    "capacity elsewhere": lambda scene, zone: scene.elsewhere.add(zone),
    "release": _released,
    "ignore": _wish(lambda incident, now: ignore(incident, "ann", "known", now)),
    "hold": _wish(lambda incident, now: hold(incident, now + 1800, "ann", now)),
}
