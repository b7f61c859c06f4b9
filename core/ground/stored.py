"""Reads and writes the records a document is made of, and keeps what a newer release wrote there.

After a rollback documents hold keys and words that this release does not know. A record keeps them
in its field `unread`, and they are written back where they stood: below one of its own keys a word
takes the place of what stands in for it here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, TypeVar

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


def without(unread: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return what is still to be written back once this release has decided some of it."""
    return {key: value for key, value in unread.items() if key not in names}
