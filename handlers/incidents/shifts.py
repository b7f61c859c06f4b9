"""Carries out freezes: leaders away from the zone, its instances protected; all undone on thaw.

λ interruption and λ tick ask for a turn on the ticks queue (handlers.store.messages), and the sweep
asks again each minute while a zone's incident is open, anything is frozen or left to undo. A turn
first has the incidents judged by what is seen (core.zones.evidence), then compares what is frozen
with what was done about it, so one too many changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from aws_lambda_powertools import Logger

from core.availability.zones import LOST_ZONE
from core.errors import StillwaterError
from core.events import Kind
from core.incidents.observation import GroupView, NodeView, zones_of
from core.incidents.ownership import Ownership
from core.slack.zone_thread import worth_telling
from core.zones.evidence import ZoneSight, evidence_of
from core.zones.incident import LostZone, ZoneIncident, freezes_in_force
from handlers.adapters.apart import take_each
from handlers.adapters.aws import Cloud, Queue
from handlers.adapters.inventory import Inventory
from handlers.adapters.kubernetes import Nodes
from handlers.adapters.pages import call
from handlers.adapters.shapes import known_shape
from handlers.incidents.leadership import INCIDENT_CAUSE, Leadership, shift_in_force
from handlers.store.freezes import Freezes
from handlers.store.ledger import Ledger
from handlers.store.records import Records

logger = Logger(service="stillwater", child=True)
ZONE_CAUSE = "zone:"

# group -> instances protected by us
Protected = Mapping[str, frozenset[str]]


def pending(freezes: Freezes, records: Records, cluster: str, now: float) -> bool:
    """Say whether a turn is worth its while: a zone is announced or frozen, or left to undo."""
    return bool(
        any(incident.open or incident.holds(now) for incident in freezes.incidents())
        or protected_groups(records, cluster)
        or not shift_in_force(records, cluster).nothing
    )


def protected_groups(records: Records, cluster: str) -> tuple[str, ...]:
    """Return the groups whose instances are kept from a scale-in."""
    return tuple(sorted(_protection(records, _protected_key(cluster))[0]))


@known_shape("The ledger's document of protected groups")
def _protection(records: Records, key: str) -> tuple[Protected, int]:
    record = records.read(key)
    stored: dict[str, list[str]] = {**(record.document or {})}
    return {name: frozenset(ids) for name, ids in stored.items()}, record.version


def _protected_key(cluster: str) -> str:
    return f"protected#{cluster}"


@dataclass(frozen=True)
class Shifts:
    """What is done about frozen zones."""

    freezes: Freezes
    ledger: Ledger
    cloud: Cloud
    inventory: Inventory
    nodes: Nodes
    leadership: Leadership
    records: Records
    ticks: Queue
    whose: Ownership
    cluster: str
    told: Callable[[ZoneIncident], None] = lambda _: None
    # Groups are protected and leaders moved; else what is frozen is only said.
    acts: bool = True

    def turn(self, now: float) -> None:
        """Bring leaders and protection to what is frozen now.

        Raises StillwaterError when Kafka or Kubernetes does not answer; what was done stays done.
        """
        nodes = self._nodes()
        self._thaw_returned(nodes, now)
        judged = self.freezes.judge(
            self._sight(nodes, now), lambda page: call(self.ticks, page.reason, page=page.key)
        )
        for incident in judged:
            if worth_telling(incident, now):
                self.told(incident)
        zones = frozenset(f.zone for f in freezes_in_force(judged, now) if f.zone is not None)
        if not self.acts:
            return
        take_each((partial(self._protect, zones), partial(self._lead, zones, nodes)))

    def _nodes(self) -> tuple[NodeView, ...] | None:
        """Return Kubernetes' nodes; a zone in trouble may have taken its API along."""
        try:
            return self.nodes.nodes()
        except StillwaterError as error:
            logger.warning("No node bears a zone's trouble out.", error=str(error))
            return None

    def _thaw_returned(self, nodes: Iterable[NodeView] | None, now: float) -> None:
        """End the freeze of a zone that was lost and has a Kafka node again."""
        alive = {node.zone for node in nodes or () if node.ready and node.pool is not None}
        for freeze in self.freezes.current(now):
            if freeze.source == LOST_ZONE and freeze.zone in alive:
                logger.info("A zone is back.", zone=freeze.zone)
                self.freezes.note(LostZone(freeze.zone_id, freeze.zone, over=True), now)

    def _sight(self, nodes: tuple[NodeView, ...] | None, now: float) -> ZoneSight:
        groups = self.cloud.groups_of(self.whose)
        kafka = tuple(node for node in nodes or () if node.pool is not None)
        return ZoneSight(
            now=now,
            names=self.cloud.zone_names(),
            zones=frozenset(zone for group in groups for zone in group.zones)
            | frozenset(node.zone for node in kafka if node.zone is not None),
            evidence=self._evidence(kafka) if self._is_asked(now) else {},
        )

    def _is_asked(self, now: float) -> bool:
        """Say whether anything waits to be borne out: EC2 is asked for checks only then."""
        return any(i.open and not i.holds(now) for i in self.freezes.incidents())

    def _evidence(self, kafka: tuple[NodeView, ...]) -> dict[str, str]:
        statuses = self.inventory.statuses([n.instance_id for n in kafka if n.instance_id])
        # Whom we take out is not Ready by our own doing; who was lost, or is still sick, is not.
        leaving = {
            i.instance_id
            for i in self.ledger.open_incidents()
            if i.lost_at is None and (i.kind is not Kind.SICK_NODE or i.hooks)
        }
        return evidence_of(kafka, statuses, leaving)

    def _protect(self, zones: frozenset[str]) -> None:
        """Keep groups from scaling in where zones are frozen; undo it where they no longer are.

        What somebody else has protected stays so: only our own is remembered, and undone.
        """
        held, version = _protection(self.records, self._key)
        groups = {group.name: group for group in self.cloud.groups_of(self.whose)}
        frozen = {name: g for name, g in groups.items() if zones & set(g.zones)}
        wanted = {
            name: held.get(name, frozenset()) & frozenset(group.instances) | _unprotected_ids(group)
            for name, group in frozen.items()
        }
        if wanted != held:
            # Before AWS is told: a crash in between leaves one to undo that was never done.
            self._write_protected({**held, **wanted}, version)
            version += 1
        protected = {name: _unprotected_ids(group) for name, group in frozen.items()}
        freed = {
            name: instances & groups[name].protected
            for name, instances in held.items()
            if name in groups and name not in frozen
        }
        protect = self.cloud.protect
        take_each(
            partial(protect, name, ids, protected=wanted_now)
            for changes, wanted_now in ((protected, True), (freed, False))
            for name, ids in changes.items()
        )
        if any(name not in wanted for name in held):
            self._write_protected(wanted, version)

    def _lead(self, zones: frozenset[str], nodes: tuple[NodeView, ...] | None) -> None:
        """Keep brokers of frozen zones from leading; give back what is frozen no longer."""
        if nodes is None:
            raise StillwaterError("Kubernetes does not answer, so no leaders were moved.")
        brokers = [pod for pod in self.nodes.kafka_pods() if pod.role != "controller"]
        homes = zones_of(self.nodes.nodes(), brokers)
        for zone in sorted(zones & set(homes.values())):
            there = {broker_id for broker_id, home in homes.items() if home == zone}
            self.leadership.avoid(f"{ZONE_CAUSE}{zone}", there)
        open_ids = {incident.id for incident in self.ledger.open_incidents()}
        current = {f"{ZONE_CAUSE}{zone}" for zone in zones} | {
            f"{INCIDENT_CAUSE}{id_}" for id_ in open_ids
        }
        for cause in self.leadership.keep_only(current.__contains__):
            logger.info("Leaders were given back.", cause=cause)

    def _write_protected(self, protected: Protected, version: int) -> None:
        document = {name: sorted(ids) for name, ids in protected.items()}
        self.records.write(self._key, document, version)

    @property
    def _key(self) -> str:
        return _protected_key(self.cluster)


def _unprotected_ids(group: GroupView) -> frozenset[str]:
    return group.staying() - group.protected
