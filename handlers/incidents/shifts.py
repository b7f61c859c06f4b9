"""Moves leaders away, protects groups and marks nodes and pods for a cause, and undoes it after.

λ interruption and λ tick ask for a turn on the ticks queue (handlers.store.ledger), and the sweep
asks again each minute while a zone's incident is open, anything is frozen or left to undo. A turn
first has the zones' incidents judged by what is seen (core.zones.evidence), then compares what is
frozen with what was done about it, so one too many changes nothing.

One document of the ledger's table says which brokers each cause keeps from leading, and what the
order of every changed partition was. It is written before Kafka is, so that no crash forgets an
original order. Nodes kept and pods labelled for an incident are freed by its own last decision; an
invocation that was slower may mark one after it: the sweep sees that, told of recorded state, read
anew, and λ tick takes it off.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from core.availability.consent import LOST_ZONE, LeaderPlan, Order, Partition, plan
from core.events import Kind
from core.ground.errors import Conflict, StillwaterError
from core.ground.fields import drop_keys, unread_keys
from core.incidents.consenting import wrongly_open
from core.incidents.observation import GroupView, NodeView, Ownership, PodView, zones_of
from core.incidents.planned import serves_on
from core.incidents.record import STAYS
from core.slack import worth_telling
from core.zones.evidence import ZoneSight, evidence_of
from core.zones.incident import LostZone, ZoneIncident, freezes_in_force
from handlers.adapters.aws import AwsCloud, Ec2Inventory, Queue
from handlers.adapters.calls import known_shape, take_each
from handlers.adapters.kubernetes import EksDrain, EksNodes
from handlers.adapters.pages import call
from handlers.store.documents import Freezes
from handlers.store.ledger import Ledger
from handlers.store.table import Records

if TYPE_CHECKING:
    # λ sweep imports this module, and no Kafka client.
    from handlers.adapters.kafka import KafkaAdmin

logger = Logger(service="stillwater", child=True)
INCIDENT_CAUSE, ZONE_CAUSE = "incident:", "zone:"


@dataclass(frozen=True, slots=True)
class Shifted:
    """Which brokers each cause keeps from leading, and the orders that were changed for them."""

    avoided: Mapping[str, frozenset[int]] = field(default_factory=dict)
    original: Mapping[Partition, Order] = field(default_factory=dict)
    unread: Mapping[str, Any] = unread_keys()

    @property
    def nothing(self) -> bool:
        return not self.avoided and not self.original

    @property
    def brokers(self) -> frozenset[int]:
        return frozenset().union(*self.avoided.values())

    def brokers_owed(self, is_current: Callable[[str], bool]) -> frozenset[int]:
        """Return the brokers that are to lead again: no cause that is not over avoids them."""
        kept = (brokers for cause, brokers in self.avoided.items() if is_current(cause))
        ended = (brokers for cause, brokers in self.avoided.items() if not is_current(cause))
        # Orders without a cause are left of a giving back that did not get through.
        led = () if self.avoided else (order[0] for order in self.original.values())
        return frozenset(led).union(*ended) - frozenset().union(*kept)


def shift_in_force(records: Records, cluster: str) -> Shifted:
    """Return what is moved in a cluster now."""
    return _read(records, _key(cluster))[0]


def _key(cluster: str) -> str:
    return f"leaders#{cluster}"


@known_shape("The ledger's document of leaders")
def _read(records: Records, key: str) -> tuple[Shifted, int]:
    record = records.read(key)
    stored: dict[str, Any] = record.document or {"avoided": {}, "original": []}
    return (
        Shifted(
            {cause: frozenset(brokers) for cause, brokers in stored["avoided"].items()},
            {(topic, number): tuple(order) for topic, number, order, *_ in stored["original"]},
            drop_keys(stored, "avoided", "original"),
        ),
        record.version,
    )


class Leadership:
    """The leaders of one Kafka cluster."""

    def __init__(self, kafka: KafkaAdmin, records: Records, cluster: str) -> None:
        self._kafka, self._records, self._key = kafka, records, _key(cluster)

    def avoid(self, cause: str, brokers: Iterable[int]) -> None:
        """Keep brokers from leading for a cause; StillwaterError when Kafka does not answer."""
        wanted = frozenset(brokers)
        self._settle(lambda avoided: {**avoided, cause: wanted})

    def restore(self, cause: str, *, elect: bool = True) -> None:
        """Give back what was moved for a cause, unless another still avoids those brokers.

        Without an election they are preferred again, and lead once somebody has them elected.
        """
        self._settle(
            lambda avoided: {c: b for c, b in avoided.items() if c != cause}, elect_all=elect
        )

    def keep_only(self, is_current: Callable[[str], bool]) -> Collection[str]:
        """Give back what was moved for causes that are over; return those causes."""
        moved = self._read()[0]
        over = [cause for cause in moved.avoided if not is_current(cause)]
        # Orders without a cause are left of a giving back that did not get through.
        if over or (moved.original and not moved.avoided):
            self._settle(lambda avoided: {c: b for c, b in avoided.items() if c not in over})
        return over

    def brokers_owed(self, is_current: Callable[[str], bool]) -> frozenset[int]:
        """Return the brokers that are to lead again and do not yet."""
        return self._read()[0].brokers_owed(is_current)

    def _settle(
        self,
        change: Callable[[Mapping[str, frozenset[int]]], Mapping[str, frozenset[int]]],
        *,
        elect_all: bool = True,
    ) -> None:
        """Bring Kafka to what the causes want; Conflict when another invocation is at it."""
        before, version = self._read()
        wanted = replace(before, avoided=change(before.avoided))
        if wanted.nothing:
            if before.avoided:
                self._write(wanted, version)
            return
        # Who is kept from leading stops or starts: its silence hides nothing of the others.
        kafka = self._kafka.read().drop_doubts(before.brokers | wanted.brokers)
        if kafka.doubts:
            # A partition left out would lose the order it had before, and be led by whom it avoids.
            raise StillwaterError(kafka.doubt)
        plan_ = plan(kafka.partitions, wanted.original, wanted.brokers, {*kafka.reassigning})
        intended = replace(wanted, original={**_kept_originals(wanted, plan_), **plan_.original})
        if intended != before or plan_.orders or plan_.elect:
            # Though it says the same: another turn may have given back what it read.
            self._write(intended, version)
            version += 1
        self._kafka.reorder(plan_.orders)
        avoided = {(p.topic, p.partition) for p in kafka.partitions if p.leader in wanted.brokers}
        self._kafka.elect(plan_.elect if elect_all else plan_.elect & avoided)
        done = replace(wanted, original=plan_.original)
        if done != intended:
            self._write(done, version)

    def _read(self) -> tuple[Shifted, int]:
        return _read(self._records, self._key)

    def _write(self, shifted: Shifted, version: int) -> None:
        document = {
            **shifted.unread,
            "avoided": {cause: sorted(b) for cause, b in sorted(shifted.avoided.items())},
            "original": [[*key, list(order)] for key, order in sorted(shifted.original.items())],
        }
        self._records.write(self._key, document, version)


def _kept_originals(wanted: Shifted, plan_: LeaderPlan) -> dict[Partition, Order]:
    """Return the originals of partitions that are about to get their own order back."""
    return {key: order for key, order in wanted.original.items() if key in plan_.orders}


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
    cloud: AwsCloud
    inventory: Ec2Inventory
    nodes: EksNodes
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
            evidence=self._evidence(kafka, now) if self._is_asked(now) else {},
        )

    def _is_asked(self, now: float) -> bool:
        """Say whether anything waits to be borne out: EC2 is asked for checks only then."""
        return any(i.open and not i.holds(now) for i in self.freezes.incidents())

    def _evidence(self, kafka: tuple[NodeView, ...], now: float) -> dict[str, str]:
        statuses = self.inventory.statuses([n.instance_id for n in kafka if n.instance_id])
        # Whom we take out is not Ready by our own doing; who was lost, or is still sick, is not.
        leaving = {
            i.instance_id
            for i in self.ledger.open_incidents()
            if i.lost_at is None and (i.kind is not Kind.SICK_NODE or i.hooks)
            if not serves_on(i, now)
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
        protected = {name: _unprotected_ids(group) for name, group in frozen.items()}
        if wanted != held or any(protected.values()):
            # Before AWS is told: a crash in between leaves one to undo that was never done. Written
            # though it says the same: another turn may have undone it since it was read.
            self._write_protected({**held, **wanted}, version)
            version += 1
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


def kept_in_vain(nodes: Sequence[NodeView], ledger: Ledger) -> tuple[NodeView, ...]:
    """Return the nodes that are kept for an incident which the ledger has as over."""
    kept = ((node, ledger.get(node.spare_for)) for node in nodes if node.spare_for is not None)
    return tuple(node for node, incident in kept if incident is not None and not incident.open)


def cordoned_in_vain(nodes: Sequence[NodeView], ledger: Ledger) -> dict[str, str]:
    """Return the nodes that stay, and are cordoned for an incident which is over: for which."""
    cordoned = [n for n in nodes if n.cordoned_for and not n.schedulable]
    found = ((n.name, ledger.get(n.cordoned_for or "")) for n in cordoned)
    return {name: i.id for name, i in found if i is not None and i.state in STAYS}


def free_nodes(nodes: EksNodes, cordons: EksDrain | None, ledger: Ledger) -> None:
    """Free every node that is kept or cordoned in vain."""
    found = nodes.nodes()
    steps = [partial(_free_node, nodes, node) for node in kept_in_vain(found, ledger)]
    if cordons is not None:
        steps += [partial(cordons.uncordon, *e) for e in cordoned_in_vain(found, ledger).items()]
    take_each(steps)


def _free_node(nodes: EksNodes, node: NodeView) -> None:
    logger.warning("A node was left kept.", node=node.name, incident_id=node.spare_for)
    nodes.mark_spare(node.name, None)


def strays(pods: Sequence[PodView], ledger: Ledger, now: float) -> tuple[tuple[str, str], ...]:
    """Return the pods, each with its label's incident, that nobody lets leave.

    `pods` were read before: a label that is seen was written under a lease that is as old.
    """
    open_ids = [incident.id for incident in ledger.open_incidents()]
    return tuple(wrongly_open(pods, ledger.leases(), open_ids, now))


def restore_labels(nodes: EksNodes, ledger: Ledger, now: float) -> None:
    """Take every stray label off; who changes a pod at this moment is left to the next look."""
    found = strays(nodes.kafka_pods(), ledger, now)
    take_each(partial(_take_label_off, nodes, pod, incident_id) for pod, incident_id in found)


def _take_label_off(nodes: EksNodes, pod: str, incident_id: str) -> None:
    logger.warning("A pod was left open to leave.", pod=pod, incident_id=incident_id)
    try:
        nodes.keep(pod, incident_id)
    except Conflict as conflict:
        logger.info("The pod has just changed.", pod=pod, error=str(conflict))
