"""Says which tags a bill carries, for somebody to say which of them means Kafka.

Asked only of a bill on which nothing is known to be Kafka's: its tags are read once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

from spark.rows import Found, grouped, row_type, summed
from spark.schemas import TAGS_FOUND

# Words in a key or a value by which a tag is likely to mean Kafka.
KAFKA_WORDS = re.compile(r"(?i)kafka|strimzi|streaming|event-?bus")
KEYS_KEPT = 30
# AWS's own are no longer; of another's the beginning says enough.
LONGEST = 256
# How exports write the keys of tags that somebody set (spark.tag_keys).
_PREFIX = re.compile(r"^(resourceTags/user:|resourceTags/|resource_tags_user_|user:|user_)")
_Row = row_type(TAGS_FOUND)
_Tag = row_type(["key", "value", "names_kafka", "charges", "billed_cost"])


def found_tags(tagged: Iterable[Found]) -> list[Found]:
    """Return TAGS_FOUND of what workers counted: month, key, value, charges and cost of each."""
    found = []
    for period, rows in grouped(tagged, lambda row: row.billing_period).items():
        keys = [_of_key(period, key, own) for key, own in grouped(map(_tag, rows), _key).items()]
        keys.sort(key=lambda row: (not row.names_kafka, -row.billed_cost, row.key))
        found += keys[:KEYS_KEPT]
    return found


def _key(tag: Found) -> str:
    return str(tag.key)


def _tag(row: Found) -> Found:
    key, value = _shortened_text(_PREFIX.sub("", row.key)), _shortened_text(row.value)
    names_kafka = bool(KAFKA_WORDS.search(key) or KAFKA_WORDS.search(value))
    return _Tag(key, value, names_kafka, row.charges, Decimal(row.billed_cost))


def _of_key(period: str, key: str, tags: list[Found]) -> Found:
    values = grouped(tags, lambda tag: (tag.value, tag.names_kafka))
    costs = {known: summed(own, "billed_cost") for known, own in values.items()}
    value, names_kafka = max(costs, key=lambda known: (known[1], costs[known]))
    charges = sum(tag.charges for tag in tags)
    return _Row(period, key, value, names_kafka, len(costs), charges, summed(tags, "billed_cost"))


def _shortened_text(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\N{HORIZONTAL ELLIPSIS}"
