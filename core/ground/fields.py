"""Reads single fields of foreign documents and whole records of ours, and holds what is not known.

Nothing here raises: in a foreign document a field of the wrong type is absent. After a rollback our
documents hold keys and words that this release does not know. A record keeps them in its field
`unread`, and they are written back where they stood. `Unknown` stands in the place of an answer and
says why, and what to do about it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, TypeVar

LONGEST_FIELD = 1024
# What AWS announces lies between these; anything else is a mistake, or nobody's date.
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
LATEST = datetime(2100, 1, 1, tzinfo=UTC).timestamp()
LONGEST_SHOWN = 80

_INSTANCE_ID = re.compile(r"i-[0-9a-z]{1,32}")
# A spot warning's ARN names a zone, and no account.
_INSTANCE_ARN = re.compile(r"arn:[a-z0-9-]+:ec2:[^:]*:(?:[^:]*:)?instance/(i-[0-9a-z]{1,32})")
_EKS_CLUSTER_ARN = re.compile(r"arn:[a-z0-9-]+:eks:[^:]*:[^:]*:cluster/([0-9A-Za-z_-]{1,100})")
_VOLUME_ID = re.compile(r"vol-[0-9a-z]{1,32}")
_VOLUME_ARN = re.compile(r"arn:[a-z0-9-]+:ec2:[^:]*:[^:]*:volume/(vol-[0-9a-z]{1,32})")
# use1-az2, apne1-az4, usw2-lax1-az1 (a Local Zone): the same zone in every account. A status page
# has written them in capitals.
_ZONE_ID = re.compile(r"[a-z]{2,5}[0-9](?:-[a-z]{3}[0-9])?-az[0-9]{1,2}")
# us-east-1a, us-gov-west-1b, us-west-2-lax-1a (a Local Zone): another zone in every account.
ZONE_NAME = r"[a-z]{2}(?:-[a-z]{2,12}){1,3}-[0-9](?:-[a-z]{3}-[0-9])?[a-z]"
_ZONE_NAME = re.compile(ZONE_NAME)

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


def eks_cluster_in(value: object) -> str | None:
    """Return the name of an EKS cluster in its ARN."""
    found = _EKS_CLUSTER_ARN.fullmatch(value) if isinstance(value, str) else None
    return found.group(1) if found else None


def _id_in(value: object, bare: re.Pattern[str], arn: re.Pattern[str]) -> str | None:
    if not isinstance(value, str):
        return None
    if bare.fullmatch(value):
        return value
    found = arn.fullmatch(value)
    return found.group(1) if found else None


def zone_id_in(value: object) -> str | None:
    """Return an Availability Zone's id in lower case, or None for anything else.

    >>> zone_id_in(" USE1-AZ4")
    'use1-az4'
    """
    if not isinstance(value, str) or len(value) > LONGEST_SHOWN:
        return None
    found = value.strip().lower()
    return found if _ZONE_ID.fullmatch(found) else None


def zone_name_in(value: object) -> str | None:
    """Return an Availability Zone's name in lower case, or None for anything else.

    >>> zone_name_in("US-EAST-1a"), zone_name_in("us-east-1")
    ('us-east-1a', None)
    """
    if not isinstance(value, str) or len(value) > LONGEST_SHOWN:
        return None
    found = value.strip().lower()
    return found if _ZONE_NAME.fullmatch(found) else None


def part(value: object) -> Mapping[str, Any]:
    """Return what has fields; of a value that has none, no field."""
    return value if isinstance(value, Mapping) else {}


def text(fields: Fields, key: str) -> str | None:
    """Return a field that is a non-empty string any store accepts, else None."""
    value = fields.get(key)
    if not isinstance(value, str) or not value:
        return None
    return readable(value)[:LONGEST_FIELD]


def epoch(value: object) -> float | None:
    """Return epoch seconds of an ISO 8601 or RFC 1123 time within reason, or None.

    >>> epoch("2026-11-20T10:00:00Z"), epoch("9999-12-31T23:59:59Z"), epoch(float("nan"))
    (1795168800.0, None, None)
    """
    if not isinstance(value, str) or len(value) > LONGEST_SHOWN:
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(value.strip())
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return seconds if EARLIEST <= seconds < LATEST else None
    return None


def unreadable_time(fields: Fields, key: str) -> str | None:
    """Say that a field holds no time within reason; None: it does, or there is none.

    >>> unreadable_time({"startTime": "9999-12-31T23:59:59Z"}, "startTime")
    "startTime is '9999-12-31T23:59:59Z', not a time between 2000 and 2100"
    """
    value = fields.get(key)
    if value is None or value == "" or epoch(value) is not None:
        return None
    return f"{key} is {display_text(readable(str(value)))}, not a time between 2000 and 2100"


def digest(body: str) -> str:
    """Return an id for a message that carries none: the same bytes, the same id."""
    return hashlib.sha256(body.encode()).hexdigest()[:32]


def display_text(value: str | None) -> str:
    return "(none)" if value is None else repr(value[:LONGEST_SHOWN])


UNREAD = "unread"
_PLAIN = frozenset({str, float, int, bool, type(None)})
E = TypeVar("E", bound=StrEnum)


def unread_keys() -> Any:
    """Return the field of a record for what this release cannot read; two equal ones may differ."""
    return field(default_factory=dict, compare=False, repr=False)


def as_document(value: Any) -> Any:
    """Return what JSON can hold of a value: records as their keys, with those nobody here reads.

    As dataclasses.asdict, in a third of its time: plain values are not copied.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if hasattr(kind, "__dataclass_fields__"):
        found = own_document(value)
        return {**found, **as_document(kept)} if (kept := getattr(value, UNREAD, None)) else found
    if kind is tuple or kind is list:
        return kind([as_document(each) for each in value])
    if kind is dict:
        return {key: as_document(each) for key, each in value.items()}
    return value


def own_document(record: Any) -> dict[str, Any]:
    """Return what JSON can hold of a record, without what nobody here can read of it."""
    return {
        # Most of a record is plain: a call for each would be half of the time.
        name: each if type(each := getattr(record, name)) in _PLAIN else as_document(each)
        for name in record.__dataclass_fields__
        if name != UNREAD
    }


def field_values(record_type: type[Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a record's fields, and under `unread` what none of them is."""
    fields = record_type.__dataclass_fields__
    found: dict[str, Any] = {k: v for k, v in stored.items() if k in fields and k != UNREAD}
    if len(found) < len(stored):
        found[UNREAD] = {k: v for k, v in stored.items() if k not in found}
    return found


def take_word(values: dict[str, Any], name: str, words: type[E], instead: E) -> None:
    """Make a member of a word; one that is none is kept in `unread`, and `instead` stands in."""
    word = values[name]
    if isinstance(word, str) and word in words._value2member_map_:
        values[name] = words(word)
        return
    values[name] = instead
    values[UNREAD] = {**values.get(UNREAD, {}), name: word}


def drop_keys(unread: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return what is still to be written back once this release has decided some of it."""
    return {key: value for key, value in unread.items() if key not in names}


T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part nothing is known of, why, and what to do about it where that is no missing right."""

    why: str
    remedy: str = ""


def known_items(part: Iterable[T] | Unknown) -> tuple[T, ...]:
    """Return what is known of a part: nothing where it could not be read."""
    return () if isinstance(part, Unknown) else tuple(part)


def entry(part: Mapping[str, V | Unknown] | Unknown, name: str) -> V | Unknown:
    """Return one entry of a part, or why it is not known."""
    return part if isinstance(part, Unknown) else part.get(name, Unknown("nobody read it"))


def mapping_of(part: Mapping[str, V] | Unknown) -> Mapping[str, V]:
    """Return what is known of a part by its names: nothing where it could not be read."""
    return {} if isinstance(part, Unknown) else part
