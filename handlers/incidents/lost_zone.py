"""Freezes a zone that is lost as a whole, for all incidents that find it so."""

from __future__ import annotations

from handlers.adapters.aws import Cloud, Queue
from handlers.adapters.pages import call
from handlers.store.freezes import Freezes, LostZone
from handlers.store.messages import SHIFT_MESSAGE


def freeze(
    zone: str, reason: str, cloud: Cloud, freezes: Freezes, ticks: Queue, now: float
) -> None:
    """Freeze a zone; who is first to do so calls a person, in the name of all its incidents."""
    ids = {name: id_ for id_, name in cloud.zone_names().items()}
    known = freezes.current(now)
    frozen = freezes.note(LostZone(ids.get(zone, zone), zone), now)
    if frozen != known:
        call(ticks, reason, page="zone_lost", zone=zone)
        ticks.send(SHIFT_MESSAGE)
