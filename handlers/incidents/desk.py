"""Takes announcements in: each becomes an incident, a freeze or a record; never nothing.

handlers.incidents.reception answers those about an instance. Of the rest, a volume's problem
becomes the incident of the instance it is attached to, a zone's shift a freeze, and what an Auto
Scaling group did or could not do wakes the incidents that wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from aws_lambda_powertools import Logger

from core.events import (
    Advisory,
    Announcement,
    GroupChange,
    GroupNotice,
    Ignored,
    Interruption,
    Kind,
    VolumeChange,
    VolumeNotice,
    ZoneNotice,
    ZoneSource,
    parse,
)
from core.events.parsing import Home, foreign
from core.ground.errors import Conflict
from core.ground.fields import eks_cluster_in, instance_in, volume_in, zone_id_in
from core.ground.window import clock
from core.incidents.joining import note_group
from core.incidents.observation import EbsVolume
from core.incidents.record import Incident
from core.volumes.views import ModificationState
from core.zones.incident import ZoneIncident, said_at, too_old
from handlers.adapters.aws import Ec2Inventory
from handlers.adapters.calls import take_each
from handlers.incidents.reception import Reception
from handlers.store import volume_records
from handlers.store.documents import Freezes
from handlers.store.ledger import SHIFT_MESSAGE
from handlers.store.table import retry_on_newer

logger = Logger(service="stillwater")
# What ends or begins a wait for a replacement; a refresh goes on by hooks that announce themselves.
WAKING = frozenset(
    {
        GroupChange.LAUNCHED,
        GroupChange.LAUNCH_FAILED,
        GroupChange.TERMINATED,
        GroupChange.TERMINATE_FAILED,
    }
)
# A refresh that ends so leaves a group between two templates, and nobody goes on with it.
_LEFT_BETWEEN = frozenset({GroupChange.REFRESH_FAILED, GroupChange.ROLLBACK_FAILED})
# What a person must see although no incident can say it.
_FAILED = frozenset({VolumeChange.MODIFICATION_FAILED, VolumeChange.CREATE_FAILED})
_ENDS = {
    VolumeChange.MODIFICATION_COMPLETED: ModificationState.COMPLETED,
    VolumeChange.MODIFICATION_FAILED: ModificationState.FAILED,
}


@dataclass(frozen=True)
class Notices:
    """Takes in what is announced of volumes, zones and groups."""

    reception: Reception
    inventory: Ec2Inventory
    freezes: Freezes
    prefix: str
    # None: the prefix.
    eks_cluster: str | None = None

    def take_volume(self, notice: VolumeNotice, now: float) -> None:
        """Turn a harmed volume into its instance's incident; keep every other outcome on record."""
        volume = self.inventory.volume(notice.volume_id)
        if volume is None:
            self._ignore(notice, f"EC2 does not know volume {notice.volume_id}.", now)
        elif not volume.belongs_to(self.prefix) and not self._attached_to_ours(volume):
            self._ignore(notice, f"Volume {notice.volume_id} is another's.", now)
        elif not notice.change.harmful:
            said = f"Volume {notice.volume_id}: {notice.change.value}. {notice.cause}".strip()
            if notice.change in _FAILED:
                logger.error(said, volume_id=notice.volume_id)
            self._close_modification(notice, now)
            self._record(notice, said, now)
        else:
            self._tell_harm(notice, volume, now)

    def _close_modification(self, notice: VolumeNotice, now: float) -> None:
        """Let λ volumes know that EC2 would start another; it finds out by itself otherwise.

        A word that comes late may be about the modification before: it counts for when it was said.
        """
        state, ended_at = _ENDS.get(notice.change), notice.occurred_at
        if state is None or ended_at is None:
            return
        try:
            volume_records.close(
                self.reception.records, notice.volume_id, state, min(ended_at, now)
            )
        except Conflict:
            logger.info("λ volumes looked at the same moment.", volume_id=notice.volume_id)

    def _tell_harm(self, notice: VolumeNotice, volume: EbsVolume, now: float) -> None:
        instance_id = volume.instance_id or self._waiting_for(volume)
        if instance_id is not None:
            self.reception.receive(_about(notice, instance_id), now)
            return
        said = (
            f"Volume {notice.volume_id} of pod {volume.pod or '(unknown)'} is "
            f"{notice.change.value} and attached nowhere. {notice.cause}".strip()
        )
        self._record(notice, said, now)
        if not notice.over:
            # No instance has it, so no incident can; a person must know all the same.
            self.reception.call_once(
                notice.dedupe_key, said, now, page="volume", volume_id=notice.volume_id
            )

    def _attached_to_ours(self, volume: EbsVolume) -> bool:
        """Say whether an instance of ours has the volume: root volumes carry no claim's tags."""
        if volume.instance_id is None:
            return False
        instance = self.reception.cloud.instance(volume.instance_id)
        return instance is not None and self.reception.whose.owns(instance.tags)

    def _waiting_for(self, volume: EbsVolume) -> str | None:
        """Return the instance whose incident moves the pod this volume belongs to."""
        if volume.pod is None:
            return None
        incidents = self.reception.ledger.open_incidents()
        return next((i.instance_id for i in incidents if i.pod_name == volume.pod), None)

    def take_zone(self, notice: ZoneNotice, now: float) -> None:
        """Note what is said of zones; whether one is frozen is decided by a turn (shifts)."""
        notice = self._zones_by_id(notice)
        refusal = self._no_zone_of_ours(notice, now)
        if refusal is not None:
            self._ignore(notice, refusal, now)
            return
        self.freezes.note(notice, now, self.reception.cloud.zone_names())
        self.reception.ticks.send(SHIFT_MESSAGE)
        incident = self._incident(notice)
        said = "It is over." if incident is None else f"{incident.state.value}: {incident.reason}"
        self._record(notice, f"{_zones(notice)}: {said}", now)

    def _zones_by_id(self, notice: ZoneNotice) -> ZoneNotice:
        """Return a word with the ids of the zones it calls by our own names."""
        said = (*notice.zone_ids, *notice.healthy_ids)
        if all(zone_id_in(zone) for zone in said):
            return notice
        ids = {name: zone_id for zone_id, name in self.reception.cloud.zone_names().items()}
        troubled = tuple(dict.fromkeys(ids.get(zone, zone) for zone in notice.zone_ids))
        healthy = tuple(dict.fromkeys(ids.get(zone, zone) for zone in notice.healthy_ids))
        well = tuple(zone for zone in healthy if zone not in troubled)
        return replace(notice, zone_ids=troubled, healthy_ids=well)

    def _no_zone_of_ours(self, notice: ZoneNotice, now: float) -> str | None:
        """Say why a word about zones is about none of ours; None: it is, or may be."""
        if notice.source is ZoneSource.PRACTICE_RUN:
            return f"A practice run in {_zones(notice)} says nothing about the zone itself."
        if self._incident(notice) is not None:
            return None  # Whatever it says, it is about what we have heard of.
        if not notice.zone_ids and not notice.over:
            return f"{notice.event_type or 'The issue'} names no entity, and no zone by its id."
        if notice.zone_ids:
            names = self.reception.cloud.zone_names()
            if not any(zone_id in names for zone_id in notice.zone_ids):
                return f"This region has no zone {_zones(notice)}."
        if too_old(notice, now):
            return f"The readings of {_zones(notice)} are from {clock(said_at(notice, now))}."
        return None

    def _incident(self, notice: ZoneNotice) -> ZoneIncident | None:
        return next((i for i in self.freezes.incidents() if i.key == notice.key), None)

    def take_advisory(self, advisory: Advisory, now: float) -> None:
        """Call a person for what no rule answers, once, unless it is all about others' things."""
        if not self._concerns_us(advisory):
            named = ", ".join(advisory.subjects[:3])
            self._ignore(advisory, f"Nothing it names is this cluster's: {named}.", now)
            return
        key, said = advisory.dedupe_key, advisory.sentence
        self.reception.call_once(key, said, now, page="advisory")
        self._record(advisory, advisory.sentence, now)

    def _concerns_us(self, advisory: Advisory) -> bool:
        """Say whether anything named is ours, or may be: what nobody can place is told."""
        ours: Mapping[str, str] | None = None
        for subject in advisory.subjects:
            instance_id, volume_id = instance_in(subject), volume_in(subject)
            cluster = eks_cluster_in(subject)
            if instance_id is not None:
                if ours is None:
                    ours = self.inventory.instance_states(self.reception.whose)
                if instance_id in ours:
                    return True
            elif volume_id is not None:
                volume = self.inventory.volume(volume_id)
                if volume is not None and (
                    volume.belongs_to(self.prefix) or self._attached_to_ours(volume)
                ):
                    return True
            elif cluster is None or cluster == (self.eks_cluster or self.prefix):
                return True
        return not advisory.subjects

    def take_group(self, notice: GroupNotice, now: float) -> None:
        """Tell the open incidents of a group what it did, and let the loop look at them now."""
        waiting: tuple[Incident, ...] = ()
        if notice.what in WAKING:
            incidents = self.reception.ledger.open_incidents()
            waiting = tuple(i for i in incidents if i.group == notice.group)
        take_each(partial(self._tell, incident, notice, now) for incident in waiting)
        woken = ", ".join(incident.id for incident in waiting) or "nobody"
        self._record(notice, f"{notice.sentence} Woken: {woken}.", now)
        if notice.what in _LEFT_BETWEEN:
            key, said = notice.dedupe_key, notice.sentence
            self.reception.call_once(key, said, now, page="refresh", group=notice.group)

    def _tell(self, incident: Incident, notice: GroupNotice, now: float) -> None:
        """Note in an incident what its group did, and have the loop look at it."""
        noted = retry_on_newer(lambda: self._note(incident.id, notice, now))
        if noted is not None:
            self.reception.wake(noted)

    def _note(self, incident_id: str, notice: GroupNotice, now: float) -> Incident | None:
        incident = self.reception.ledger.get(incident_id)
        if incident is None or notice.dedupe_key in incident.announcements:
            return incident
        changed = note_group(incident, notice, now)
        if changed == incident:
            return incident
        joined = (*changed.announcements, notice.dedupe_key)
        return self.reception.ledger.put(replace(changed, announcements=joined))

    def _record(
        self, notice: VolumeNotice | ZoneNotice | GroupNotice | Advisory, said: str, now: float
    ) -> None:
        self.reception.record(notice.dedupe_key, notice.body, said, now)

    def _ignore(
        self, notice: VolumeNotice | ZoneNotice | Advisory, reason: str, now: float
    ) -> None:
        self.reception.ignore(notice.body, reason, now)


def _zones(notice: ZoneNotice) -> str:
    return ", ".join(notice.zone_ids) or "no zone by its id"


def _about(notice: VolumeNotice, instance_id: str) -> Interruption:
    """Return a volume's problem as what it means for the instance it belongs to."""
    return Interruption(
        kind=Kind.VOLUME_PROBLEM,
        instance_id=instance_id,
        event_id=notice.event_id,
        dedupe_key=notice.dedupe_key,
        account=notice.account,
        region=notice.region,
        occurred_at=notice.occurred_at,
        event_type=f"{notice.change.value} {notice.volume_id}",
        closed=notice.over,
        body=notice.body,
    )


# Health names the instances of a whole account: asked for one by one, they would take longer than
# the function may run.
MANY_INSTANCES = 10


@dataclass(frozen=True)
class IntakeDesk:
    """Takes announcements in."""

    reception: Reception
    notices: Notices

    def take(self, body: str, now: float, *, home: Home | None = None) -> None:
        """Give every announcement in one message its place; nothing is lost, nothing counts twice.

        `home` is whose announcements count; None: everybody's.

        Raises the first failure once all are answered, Conflict where others keep changing the
        same incident: SQS then delivers again.
        """
        found = self._ours(parse(body), now)
        take_each(partial(self._place, each, now, home) for each in found)

    def _place(self, found: Announcement | Ignored, now: float, home: Home | None) -> None:
        if isinstance(found, Ignored):
            self.reception.ignore(found.body, found.reason, now)
            return
        others = foreign(found, home)
        if others is not None:
            self.reception.ignore(found.body, others, now)
            return
        with logger.append_context_keys(
            correlation_id=found.event_id, announcement=found.dedupe_key
        ):
            self._answer(found, now)

    def _ours(
        self, announced: tuple[Announcement | Ignored, ...], now: float
    ) -> tuple[Announcement | Ignored, ...]:
        """Leave out the instances of others where one message names many, in one question."""
        named = {f.instance_id for f in announced if isinstance(f, Interruption)}
        if len(named) < MANY_INSTANCES:
            return announced
        ours = self.notices.inventory.instance_states(self.reception.whose)
        foreign = sorted(named - set(ours))
        if foreign:
            reason = (
                f"{len(foreign)} of the {len(named)} instances it names are another's: they have "
                f"{self.reception.whose.lacking}."
            )
            self.reception.ignore(announced[0].body, reason, now)
        return tuple(
            f for f in announced if not isinstance(f, Interruption) or f.instance_id in ours
        )

    def _answer(self, found: Announcement, now: float) -> None:
        match found:
            case Interruption():
                self.reception.receive(found, now)
            case VolumeNotice():
                self.notices.take_volume(found, now)
            case ZoneNotice():
                self.notices.take_zone(found, now)
            case GroupNotice():
                self.notices.take_group(found, now)
            case Advisory():
                self.notices.take_advisory(found, now)
            case _:
                assert_never(found)
