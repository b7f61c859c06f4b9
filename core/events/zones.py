"""aws.arc-zonal-shift: traffic is moved away from a zone, by AWS, by somebody, or for practice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.events.announcements import Ignored, ZoneNotice, ZoneSource
from core.events.envelope import Envelope
from core.fields import LONGEST_FIELD, Fields, display_text, part, text, zone_id_in

# detail-type -> who moves traffic, and whether that is over.
SHIFTS: Mapping[str, tuple[ZoneSource, bool]] = {
    "Autoshift In Progress": (ZoneSource.AUTOSHIFT, False),
    "Autoshift Completed": (ZoneSource.AUTOSHIFT, True),
    "FIS Experiment Autoshift In Progress": (ZoneSource.AUTOSHIFT, False),
    "FIS Experiment Autoshift Completed": (ZoneSource.AUTOSHIFT, True),
    "FIS Experiment Autoshift Canceled": (ZoneSource.AUTOSHIFT, True),
    "Manual Shift Started": (ZoneSource.MANUAL_SHIFT, False),
    "Manual Shift Updated": (ZoneSource.MANUAL_SHIFT, False),
    "Manual Shift Canceled": (ZoneSource.MANUAL_SHIFT, True),
    "Practice Run Started": (ZoneSource.PRACTICE_RUN, False),
    "Practice Run Succeeded": (ZoneSource.PRACTICE_RUN, True),
    "Practice Run Interrupted": (ZoneSource.PRACTICE_RUN, True),
    "Practice Run Failed": (ZoneSource.PRACTICE_RUN, True),
}
# Nobody announces that a manual shift has expired: this is the longest one may last unless updated.
LONGEST_MANUAL_SHIFT_SECONDS = 3 * 24 * 3600


def read(envelope: Envelope) -> Iterator[ZoneNotice | Ignored]:
    shift = SHIFTS.get(envelope.detail_type or "")
    if shift is None:
        yield envelope.says("is no shift that this toolkit knows.")
        return
    metadata = part(envelope.detail.get("metadata"))
    away_from = text(metadata, "awayFrom")
    zone_id = zone_id_in(away_from)
    if zone_id is None:
        yield envelope.says(f"names no zone id in awayFrom: {display_text(away_from)}.")
        return
    source, over = shift
    said_at = envelope.identity["occurred_at"]
    longest = LONGEST_MANUAL_SHIFT_SECONDS if source is ZoneSource.MANUAL_SHIFT else None
    resource = next(iter(envelope.resources), None)
    yield ZoneNotice(
        key=_key(source, zone_id, _shift_id(envelope.detail, metadata) or resource),
        zone_ids=(zone_id,),
        over=over,
        source=source,
        # Without a resource it is AWS's word on the zone itself (observer notification).
        resource=resource,
        updated_at=said_at,
        until=None if over or longest is None or said_at is None else said_at + longest,
        event_type=envelope.detail_type,
        said=(text(metadata, "notes") or "")[:LONGEST_FIELD],
        dedupe_key=":".join((source, zone_id, "over" if over else "began", envelope.event_id)),
        **envelope.identity,
    )


def _key(source: ZoneSource, zone_id: str, shift: str | None) -> str:
    """Name a shift. AWS moves traffic out of a zone once for everybody; people, per resource."""
    if source is ZoneSource.MANUAL_SHIFT and shift is not None:
        return f"{source}:{zone_id}:{shift}"
    return f"{source}:{zone_id}"


def _shift_id(detail: Fields, metadata: Fields) -> str | None:
    """Return ARC's id of a shift; its events' pages show none, its API calls it zonalShiftId."""
    for fields in (metadata, part(detail.get("data")), detail):
        found = text(fields, "zonalShiftId") or text(fields, "shiftId")
        if found is not None:
            return found
    return None
