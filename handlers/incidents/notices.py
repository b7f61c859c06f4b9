"""Answers announcements that are about no instance: of a volume, a zone, an Auto Scaling group.

A volume's problem becomes the incident of the instance it is attached to; a zone's shift a freeze;
what a group did or could not do wakes the incidents that wait for it. Every one leaves a record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from aws_lambda_powertools import Logger

from core.availability.zones import Freeze
from core.errors import Conflict
from core.events import (
    GroupChange,
    GroupNotice,
    Interruption,
    Kind,
    VolumeChange,
    VolumeNotice,
    ZoneNotice,
    ZoneSource,
)
from core.incidents.inventory import VolumeView
from core.incidents.record import Incident
from core.incidents.requests import awaiting, note_group
from core.metric_names import PAGES_SENT
from core.volumes.ledger import State
from handlers.adapters import metrics
from handlers.adapters.inventory import Inventory
from handlers.incidents.reception import MOST_ATTEMPTS, Reception
from handlers.store import volume_records
from handlers.store.messages import SHIFT_MESSAGE
from handlers.store.records import Records

logger = Logger(service="stillwater", child=True)
# What ends or begins a wait for a replacement; a refresh goes on by hooks that announce themselves.
WAKING = frozenset(
    {
        GroupChange.LAUNCHED,
        GroupChange.LAUNCH_FAILED,
        GroupChange.TERMINATED,
        GroupChange.TERMINATE_FAILED,
    }
)
# What a person must see although no incident can say it.
_FAILED = frozenset({VolumeChange.MODIFICATION_FAILED, VolumeChange.CREATE_FAILED})
_ENDS = {
    VolumeChange.MODIFICATION_COMPLETED: State.COMPLETED,
    VolumeChange.MODIFICATION_FAILED: State.FAILED,
}


class FreezeNotes(Protocol):
    """Where a zone's shift is noted; handlers.store.freezes."""

    def note(self, notice: ZoneNotice, now: float) -> tuple[Freeze, ...]:
        """Add what was announced and return what is in force; a duplicate changes nothing."""


@dataclass(frozen=True)
class Notices:
    """Takes in what is announced of volumes, zones and groups."""

    reception: Reception
    inventory: Inventory
    freezes: FreezeNotes
    prefix: str
    # None: nobody remembers modifications.
    records: Records | None = None

    def of_volume(self, notice: VolumeNotice, now: float) -> None:
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
            self._harmed(notice, volume, now)

    def _close_modification(self, notice: VolumeNotice, now: float) -> None:
        """Let λ volumes know that EC2 would start another; it finds out by itself otherwise."""
        state = _ENDS.get(notice.change)
        if state is None or self.records is None:
            return
        try:
            volume_records.close(self.records, notice.volume_id, state, now)
        except Conflict:
            logger.info("λ volumes looked at the same moment.", volume_id=notice.volume_id)

    def _harmed(self, notice: VolumeNotice, volume: VolumeView, now: float) -> None:
        instance_id = volume.instance_id or self._waiting_for(volume)
        if instance_id is not None:
            self.reception.receive(_about(notice, instance_id), now)
            return
        said = (
            f"Volume {notice.volume_id} of pod {volume.pod or '(unknown)'} is "
            f"{notice.change.value} and attached nowhere. {notice.cause}".strip()
        )
        if not notice.over:
            # No instance has it, so no incident can; a person must know all the same.
            metrics.count(PAGES_SENT)
            logger.critical(said, page="volume", volume_id=notice.volume_id)
        self._record(notice, said, now)

    def _attached_to_ours(self, volume: VolumeView) -> bool:
        """Say whether an instance of ours has the volume: root volumes carry no claim's tags."""
        if volume.instance_id is None:
            return False
        instance = self.reception.cloud.instance(volume.instance_id)
        return instance is not None and self.reception.managed_tag in instance.tags

    def _waiting_for(self, volume: VolumeView) -> str | None:
        """Return the instance whose incident moves the pod this volume belongs to."""
        if volume.pod is None:
            return None
        incidents = self.reception.ledger.open_incidents()
        return next((i.instance_id for i in incidents if i.pod_name == volume.pod), None)

    def of_zone(self, notice: ZoneNotice, now: float) -> None:
        """Freeze a zone, or thaw it; its id is looked up in this account, never guessed."""
        if notice.source is ZoneSource.PRACTICE_RUN:
            reason = f"A practice run in {notice.zone_id} says nothing about the zone itself."
            self._ignore(notice, reason, now)
            return
        name = self.inventory.zone_names().get(notice.zone_id)
        if name is None:
            self._ignore(notice, f"This region has no zone {notice.zone_id}.", now)
            return
        self.freezes.note(replace(notice, zone=name), now)
        self.reception.ticks.send(SHIFT_MESSAGE)
        done = "thawed" if notice.over else "frozen"
        self._record(notice, f"Zone {name} ({notice.zone_id}) is {done}.", now)

    def of_group(self, notice: GroupNotice, now: float) -> None:
        """Tell the open incidents of a group what it did, and let the loop look at them now."""
        waiting: tuple[Incident, ...] = ()
        if notice.what in WAKING:
            waiting = awaiting(self.reception.ledger.open_incidents(), notice)
        for incident in waiting:
            noted = self._noted(incident.id, notice, now)
            if noted is not None:
                self.reception.wake(noted)
        woken = ", ".join(incident.id for incident in waiting) or "nobody"
        self._record(notice, f"{notice.sentence} Woken: {woken}.", now)

    def _noted(self, incident_id: str, notice: GroupNotice, now: float) -> Incident | None:
        for attempt in range(MOST_ATTEMPTS):
            incident = self.reception.ledger.get(incident_id)
            if incident is None or notice.dedupe_key in incident.announcements:
                return incident
            changed = note_group(incident, notice, now)
            if changed == incident:
                return incident
            joined = (*changed.announcements, notice.dedupe_key)
            try:
                return self.reception.ledger.put(replace(changed, announcements=joined))
            except Conflict:
                if attempt == MOST_ATTEMPTS - 1:
                    raise
        raise AssertionError("every attempt returns or raises")

    def _record(
        self, notice: VolumeNotice | ZoneNotice | GroupNotice, said: str, now: float
    ) -> None:
        self.reception.record(notice.dedupe_key, notice.body, said, now)

    def _ignore(self, notice: VolumeNotice | ZoneNotice, reason: str, now: float) -> None:
        self.reception.ignore(notice.body, reason, now)


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
