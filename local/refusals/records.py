"""Checks records of DNS against the zone they are in, and against others of their name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from local.refusals.refusal import Refusal, Wanted
from local.refusals.together import about, limit, of

_DNS = "https://docs.aws.amazon.com/Route53/latest/"


def _plain(name: object) -> str:
    return str(name).rstrip(".").lower()


@limit(f"{_DNS}APIReference/API_ChangeResourceRecordSets.html")
def records_inside_their_zone(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A record bears its zone's name, or one below it."""
    zones = {each.name: _plain(each.inputs.get("name")) for each in of(everything, _ZONE)}
    # One that stands bears its id for a name; without ids, a zone that is alone has all records.
    alone = next(iter(zones.values())) if len(zones) == 1 else None
    for each in of(everything, _RECORD):
        zone = zones.get(str(each.inputs.get("zoneId")), alone)
        name = _plain(each.inputs.get("name"))
        if zone and not f".{name}".endswith(f".{zone}"):
            message = f"RRSet with DNS name {name}. is not permitted in zone {zone}."
            code = "InvalidChangeBatch"
            yield about(each, "ChangeResourceRecordSets", code, message, "name")


_ZONE, _RECORD = "route53/zone:Zone", "route53/record:Record"
