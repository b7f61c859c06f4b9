"""Reads single fields of what somebody else wrote: nothing here raises, whatever the value.

core.events builds its answers from these; a field of the wrong type is a field that is absent.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_FIELD = 1024
LONGEST_SHOWN = 80

_INSTANCE_ID = re.compile(r"i-[0-9a-z]{1,32}")
# A spot warning's ARN names a zone, and no account.
_INSTANCE_ARN = re.compile(r"arn:[a-z0-9-]+:ec2:[^:]*:(?:[^:]*:)?instance/(i-[0-9a-z]{1,32})")
_VOLUME_ID = re.compile(r"vol-[0-9a-z]{1,32}")
_VOLUME_ARN = re.compile(r"arn:[a-z0-9-]+:ec2:[^:]*:[^:]*:volume/(vol-[0-9a-z]{1,32})")
# use1-az2, apne1-az4, usw2-lax1-az1 (a Local Zone): the same zone in every account.
_ZONE_ID = re.compile(r"\b[a-z]{2,5}[0-9](?:-[a-z]{3}[0-9])?-az[0-9]{1,2}\b")

Fields = Mapping[str, object]


def readable(raw: str | bytes) -> str:
    """Return text any store accepts: bytes that are no UTF-8, and surrogates, become escapes."""
    if isinstance(raw, bytes):
        return raw.decode("utf-8", "backslashreplace")
    return raw.encode("utf-8", "backslashreplace").decode("utf-8")


def instance_in(value: object) -> str | None:
    """Return the instance id in a bare id or an instance's ARN."""
    return _id_in(value, _INSTANCE_ID, _INSTANCE_ARN)


def volume_in(value: object) -> str | None:
    """Return the volume id in a bare id or a volume's ARN."""
    return _id_in(value, _VOLUME_ID, _VOLUME_ARN)


def _id_in(value: object, bare: re.Pattern[str], arn: re.Pattern[str]) -> str | None:
    if not isinstance(value, str):
        return None
    if bare.fullmatch(value):
        return value
    found = arn.fullmatch(value)
    return found.group(1) if found else None


def zone_id_in(value: str | None) -> str | None:
    """Return an Availability Zone's id, or None for anything else."""
    return value if value is not None and _ZONE_ID.fullmatch(value) else None


def zone_ids_in(prose: str) -> tuple[str, ...]:
    """Return every zone id a text names, each once, in order."""
    return tuple(dict.fromkeys(_ZONE_ID.findall(prose)))


def text(fields: Fields, key: str) -> str | None:
    """Return a field that is a non-empty string any store accepts, else None."""
    value = fields.get(key)
    if not isinstance(value, str) or not value:
        return None
    return readable(value)[:LONGEST_FIELD]


def epoch(value: object) -> float | None:
    """Return epoch seconds of an ISO 8601 or RFC 1123 time, or None where there is none."""
    if not isinstance(value, str) or len(value) > LONGEST_SHOWN:
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(value)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return seconds if math.isfinite(seconds) else None
    return None


def digest(body: str) -> str:
    """Return an id for a message that carries none: the same bytes, the same id."""
    return hashlib.sha256(body.encode()).hexdigest()[:32]


def shown(value: str | None) -> str:
    return "(none)" if value is None else repr(value[:LONGEST_SHOWN])
