"""Freezes a zone that is lost as a whole, for all incidents that find it so."""

from __future__ import annotations

from core.availability.zones import LOST_ZONE
from core.zones.incident import LostZone
from handlers.adapters.aws import Cloud, Queue
from handlers.adapters.pages import call
from handlers.store.freezes import Freezes
from handlers.store.messages import SHIFT_MESSAGE


def freeze(
    zone: str, reason: str, cloud: Cloud, freezes: Freezes, ticks: Queue, now: float
) -> None:
    """Freeze a zone; who is first to do so calls a person, in the name of all its incidents."""
    ids = {name: id_ for id_, name in cloud.zone_names().items()}
    if any(f.zone == zone and f.source == LOST_ZONE for f in freezes.current(now)):
        return
    # Before it is written: who dies in between calls twice, and never not at all.
    call(ticks, reason, page="zone_lost", zone=zone)
    freezes.note(LostZone(ids.get(zone, zone), zone), now)
    ticks.send(SHIFT_MESSAGE)
