"""What a scene shows: the world around the station, and whom the letter of a zone names.

tests.unit.handlers.scenes plays histories in it, and says which words there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from botocore.exceptions import ClientError

from core.availability.lease import Lease
from core.ground.errors import StillwaterError
from core.incidents.observation import PodView
from core.incidents.record import Incident, State
from core.views import ClusterView, Doubt
from tests.unit.handlers.fakes import group_of, node_named
from tests.unit.handlers.healthy import ZONES, healthy_kafka
from tests.unit.handlers.world import World

NODES = {zone[-1]: node_id for node_id, zone in ZONES.items()}
ZONE_IDS = {"a": "use1-az4", "b": "use1-az6", "c": "use1-az1"}
WARNING = "EC2 Spot Instance Interruption Warning"
STATE = "EC2 Instance State-change Notification"


# Four ticks, and the sweeps beside them; after some of those nobody finds anything new.
ROUND_SECONDS, IDLE_ROUNDS = 200.0, 4


@dataclass(frozen=True)
class TableInMemory:
    """What the ledger's table held at a moment."""

    incidents: dict[str, tuple[int, str]]
    opened: dict[str, None]
    records: dict[str, tuple[int, str]]
    leases: tuple[Lease, ...]


@dataclass
class Scenery(World):
    """A world in which somebody does something between two rounds."""

    without_capacity: set[str] = field(default_factory=set)  # zones' letters
    elsewhere: set[str] = field(default_factory=set)
    claimless: set[int] = field(default_factory=set)
    failed_disks: set[int] = field(default_factory=set)
    warned: dict[str, float] = field(default_factory=dict)
    nth_away: bool = False
    throttled: bool = False  # the ledger's writes; a message that fails comes again
    again: list[str] = field(default_factory=list)
    mood: str = ""  # of Kafka's readings
    doing: list[str] = field(default_factory=list)  # brokers that others have taken out
    heard: list[str] = field(default_factory=list)  # every announcement, as it came
    withheld: list[str] | None = None  # announcements on their way; None: they come at once
    backup: TableInMemory | None = None
    # What readings of Kafka show otherwise, by name, each over the last.
    kafka_changes: dict[str, Callable[[ClusterView], ClusterView]] = field(default_factory=dict)
    missing_pods: dict[int, PodView] = field(default_factory=dict)  # nobody makes them again
    stuck: dict[str, tuple[str, ...]] = field(default_factory=dict)  # node -> volumes that stay

    def __post_init__(self) -> None:
        self._announced, self.station.announce = self.station.announce, self._hear  # type: ignore[method-assign]

    def _hear(self, body: str) -> None:
        if "Lifecycle Action" in body:
            body = self.at(body)
        if self.withheld is not None:
            self.withheld.append(body)
            return
        self.heard.append(body)
        try:
            self._announced(body)
        except (StillwaterError, ClientError):
            if not self.throttled:
                raise
            self.again.append(body)  # SQS delivers it again.

    def wait(self, rounds: int) -> None:
        """Let rounds go by; once nothing has happened for some, the rest of them at once."""
        still = 0
        for left in range(rounds, 0, -1):
            still = 0 if self._open() or self._leaving() or self.warned else still + 1
            if still > IDLE_ROUNDS:
                self.station.now += left * ROUND_SECONDS
                return
            for number, step in enumerate(self._steps):
                self._turns += 1
                self.choose = partial(self._in_turn, number)
                step()

    def _in_turn(self, number: int, options: int) -> int:
        return (self._turns + number) % options

    # What the world does otherwise than usual.
    def _tick(self) -> None:
        self.station.cluster.attached |= self.stuck
        try:
            super()._tick()
        except (StillwaterError, ClientError):
            if not self.throttled:
                raise

    def _announce(self) -> None:
        coming, self.again = self.again, []
        for body in coming:
            self._hear(body)
        super()._announce()

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
                end_machine(self, zone)
        super()._end()
        cluster = self.station.cluster
        for group in list(cluster.groups.values()):
            for instance_id, state in group.instances.items():
                if state == "Terminating:Proceed":
                    cluster.set_state(instance_id, "terminated")
                    cluster.set_groups_without(instance_id)
                    cluster.node_views.pop(instance_id, None)

    def _start(self) -> None:
        cluster = self.station.cluster
        for node_id, pod in cluster.pods.items():
            idle = self._idle(ZONES[node_id]) if node_id in ZONES else []
            if pod.node_name is None and idle and node_id not in self.claimless:
                cluster.place_pod(node_id, idle[0])
                return

    def _catch_up(self) -> None:
        if not self.out & self.missing_pods.keys():
            super()._catch_up()

    def _idle(self, zone: str) -> list[str]:
        nodes = self.station.cluster.node_views
        return [id_ for id_ in super()._idle(zone) if nodes[id_].ready and nodes[id_].schedulable]

    def _show_kafka(self) -> None:
        whole = set(self.out)
        self.out |= self.failed_disks
        super()._show_kafka()
        self.out = whole
        cluster = self.station.cluster
        if cluster.kafka is not None:
            fenced = cluster.kafka.fenced - self.failed_disks
            cluster.kafka = replace(cluster.kafka, fenced=fenced)
        if cluster.kafka is not None:
            for change in self.kafka_changes.values():
                cluster.kafka = change(cluster.kafka)
        cluster.kafka = _view_by_mood(cluster.kafka, self.mood)

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


def _view_by_mood(view: ClusterView | None, mood: str) -> ClusterView | None:
    if view is None or not mood:
        return view
    if mood == "silent":
        return None
    if mood == "no quorum":
        return replace(healthy_kafka(), stale=True, quorum_leader=None)
    # A reading that leaves something out and calls all it shows healthy.
    return replace(healthy_kafka(), doubts=(Doubt("Topic u is missing."),))


def end_machine(scene: Scenery, zone: str) -> None:
    """End a machine, with its Node and whatever ran there."""
    cluster, instance_id = scene.station.cluster, scene.instance(zone)
    cluster.set_state(instance_id, "terminated")
    cluster.set_groups_without(instance_id)
    cluster.waiting_hooks -= {(instance_id, "drain"), (instance_id, "gate")}
    cluster.node_views.pop(instance_id, None)
    cut_off(scene, zone)


def cut_off(scene: Scenery, zone: str) -> None:
    node_id = NODES[zone]
    pod = scene.station.cluster.pods[node_id]
    if pod.node_name == node_named(scene.instance(zone)):
        scene._stop(node_id, pod)
