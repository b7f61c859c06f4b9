"""Refuses what DynamoDB does not take of capacity, indexes and the values of items."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from local.refusals.documents import parse
from local.refusals.fields import values
from local.refusals.limits import KIB, first_of, limit
from local.refusals.refusal import Refusal, Wanted

_TABLES = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/"
_GUIDE = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
_INVALID = "One or more parameter values were invalid: "
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
# Of an item's values: the kind and what JSON type stands below it.
_KINDS: Mapping[str, type] = {
    "S": str,
    "N": str,
    "B": str,
    "BOOL": bool,
    "NULL": bool,
    "SS": list,
    "NS": list,
    "BS": list,
    "L": list,
    "M": dict,
}
DIGITS = 38
LARGEST = Decimal("9.9999999999999999999999999999999999999E+125")
PROJECTED = 100
GLOBAL_INDEXES, LOCAL_INDEXES = 20, 5
# Attributes of an index's partition key, and of its sort key.
KEYS = 4


@limit("dynamodb/table:Table", source=f"{_TABLES}API_CreateTable.html")
def indexes_and_capacity_of_a_table(wanted: Wanted) -> Iterator[Refusal]:
    """Capacity of what is not paid per request; two keys; an index says what it holds."""
    inputs = wanted.inputs
    paid = inputs.get("billingMode", "PROVISIONED") == "PAY_PER_REQUEST"
    own = [k for k in ("readCapacity", "writeCapacity") if inputs.get(k)]
    indexes = [*values(inputs, "globalSecondaryIndexes.*")]
    local = [*values(inputs, "localSecondaryIndexes.*")]
    regions = values(inputs, "replicas.*.regionName")
    held = [name for each in (*indexes, *local) for name in each.get("nonKeyAttributes") or ()]
    names = [each.get("name") for each in (*indexes, *local)]
    keys = {e.get(key) for e in (inputs, *indexes, *local) for key in ("hashKey", "rangeKey")}
    keys |= {*values([*indexes, *local], "*.keySchemas.*.attributeName")}
    attributes = [each.get("name") for each in inputs.get("attributes") or ()]
    starved = [e for e in indexes if not (e.get("readCapacity") and e.get("writeCapacity"))]
    yield from first_of(
        "CreateTable",
        "ValidationException",
        # The provider's own, before any call.
        (
            paid and own,
            f"{''.join(own[:1])} can not be set when billing_mode is PAY_PER_REQUEST",
            "".join(own[:1]),
        ),
        (
            not paid and len(own) < 2,
            (
                f"{_INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified when "
                "BillingMode is PROVISIONED"
            ),
            "billingMode",
        ),
        (
            inputs.get("streamEnabled") and not inputs.get("streamViewType"),
            f"{_INVALID}StreamViewType must be specified when StreamEnabled is true",
            "streamViewType",
        ),
        (
            inputs.get("hashKey") and inputs.get("hashKey") == inputs.get("rangeKey"),
            "Both the Hash Key and the Range Key element in the KeySchema have the same name",
            "rangeKey",
        ),
        (
            len(set(attributes)) < len(attributes),
            f"{_INVALID}Duplicate attribute name",
            "attributes",
        ),
        (
            len(set(names)) < len(names),
            f"{_INVALID}Duplicate index name",
            "globalSecondaryIndexes",
        ),
        (
            not paid and starved,
            f"{_INVALID}ReadCapacityUnits and WriteCapacityUnits must be given for the index",
            "globalSecondaryIndexes",
        ),
        *(
            (
                len([k for k in e.get("keySchemas") or () if k.get("keyType") == kind]) > KEYS,
                f"{_INVALID}An index may have up to {KEYS} {kind} keys",
                "globalSecondaryIndexes",
            )
            for e in indexes
            for kind in ("HASH", "RANGE")
        ),
        (
            len(set(regions)) < len(regions),
            "A table may have one replica in a region",
            "replicas",
        ),
        *(
            (True, each, "globalSecondaryIndexes")
            for each in map(_of_index, [*indexes, *local])
            if each
        ),
        (
            len(held) > PROJECTED,
            f"{_INVALID}Number of attributes in all indexes exceeds {PROJECTED}",
            "globalSecondaryIndexes",
        ),
        (
            local and not inputs.get("rangeKey"),
            (
                f"{_INVALID}Table KeySchema does not have a range key, which is required when "
                "specifying a LocalSecondaryIndex"
            ),
            "localSecondaryIndexes",
        ),
        (
            len(indexes) > GLOBAL_INDEXES,
            f"{_INVALID}GlobalSecondaryIndex count exceeds the per-table limit of {GLOBAL_INDEXES}",
            "globalSecondaryIndexes",
        ),
        (
            set(attributes) != keys - {None},
            f"{_INVALID}Some AttributeDefinitions are not used, or some keys are not defined",
            "attributes",
        ),
        (
            len(local) > LOCAL_INDEXES,
            f"{_INVALID}Number of LocalSecondaryIndexes exceeds per-table limit of {LOCAL_INDEXES}",
            "localSecondaryIndexes",
        ),
    )


@limit("dynamodb/table:Table", source=f"{_TABLES}API_UpdateTimeToLive.html")
def lasting_of_a_table(wanted: Wanted) -> Iterator[Refusal]:
    """A time to live says of what."""
    lasting = wanted.inputs.get("ttl") or {}
    if lasting.get("enabled") and not lasting.get("attributeName"):
        message = "TimeToLive AttributeName must be given to be enabled"
        yield Refusal("UpdateTimeToLive", "ValidationException", message, "ttl")


def _of_index(index: dict[str, Any]) -> str:
    kind, held = index.get("projectionType", "ALL"), index.get("nonKeyAttributes")
    if kind == "INCLUDE" and not held:
        return f"{_INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified"
    if kind in {"ALL", "KEYS_ONLY"} and held:
        return f"{_INVALID}ProjectionType is {kind}, but NonKeyAttributes is specified"
    return ""


@limit("dynamodb/tableItem:TableItem", source=f"{_GUIDE}HowItWorks.NamingRulesDataTypes.html")
def values_of_an_item(wanted: Wanted) -> Iterator[Refusal]:
    """Each says its kind; a number is one, of 38 digits; no set is empty or has a value twice."""
    item = parse(wanted.inputs["item"])
    wrong = ""
    if item is None or not all(name and _is_a_value(value) for name, value in item.items()):
        wrong = "Supplied AttributeValue is empty, must contain exactly one of the supported "
        wrong += "datatypes"
    wrong = wrong or next(filter(None, map(_wrong, (item or {}).values())), "")
    if wrong:
        yield Refusal("PutItem", "ValidationException", wrong, "item")


def _is_a_value(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    ((kind, inside),) = value.items()
    return kind in _KINDS and isinstance(inside, _KINDS[kind])


def _wrong(value: Any) -> str:
    if not isinstance(value, dict) or len(value) != 1:
        return ""
    ((kind, inside),) = value.items()
    plain = {"B": _of_bytes, "N": _of_number, "NULL": _of_null}.get(kind)
    if plain is not None:
        return plain(str(inside))
    if kind in {"SS", "NS", "BS"} and isinstance(inside, list):
        return _of_set(kind, [str(each) for each in inside])
    within = {"M": dict, "L": list}.get(kind)
    if within is None or not isinstance(inside, within):
        return ""
    return next(filter(None, map(_wrong, inside.values() if kind == "M" else inside)), "")


def _of_bytes(written: str) -> str:
    right = _BASE64.fullmatch(written)
    return "" if right else f"{_INVALID}A binary value must be in base64"


def _of_null(written: str) -> str:
    wrong = f"{_INVALID}Null attribute value types must have the value of true"
    return wrong if written == "False" else ""


def _of_set(kind: str, inside: list[str]) -> str:
    if not inside:
        return f"{_INVALID}An string set  may not be empty"
    wrong = next(filter(None, map(_of_number, inside)), "") if kind == "NS" else ""
    # 1 and 1.0 are one number.
    values_ = {Decimal(each) if kind == "NS" and not wrong else each for each in inside}
    if len(values_) < len(inside):
        return f"{_INVALID}Input collection {inside} contains duplicates."
    return wrong


def _of_number(written: str) -> str:
    if _NUMBER.fullmatch(written) is None:
        return f"The parameter cannot be converted to a numeric value: {written}"
    if abs(Decimal(written)) > LARGEST:
        return "Number overflow. Attempting to store a number with magnitude larger than supported"
    digits = re.sub(r"[eE].*", "", written).replace(".", "").lstrip("+-0").rstrip("0")
    if len(digits) > DIGITS:
        return "Attempting to store more than 38 significant digits in a Number"
    return ""


# Bytes of a partition key and of a sort key, and levels of lists and maps within each other.
KEY_BYTES, SORT_KEY_BYTES, LEVELS = 2048, 1024, 32


@limit("dynamodb/tableItem:TableItem", source=f"{_GUIDE}Constraints.html")
def key_and_depth_of_an_item(wanted: Wanted) -> Iterator[Refusal]:
    """A key is there, a short text, number or bytes; 32 levels; bytes in base64."""
    item = parse(wanted.inputs["item"])
    if item is None:
        return
    for name, most in (("hashKey", KEY_BYTES), ("rangeKey", SORT_KEY_BYTES)):
        key = wanted.inputs.get(name)
        value = item.get(str(key))
        if key and value in ({"S": ""}, {"B": ""}):
            message = "One or more parameter values are not valid. The AttributeValue for a key "
            message += f"attribute cannot contain an empty string value. Key: {key}"
            yield Refusal("PutItem", "ValidationException", message, "item")
        if key and key not in item:
            message = f"{_INVALID}Missing the key {key} in the item"
            yield Refusal("PutItem", "ValidationException", message, "item")
        if not isinstance(value, dict) or len(value) != 1:
            continue
        ((kind, inside),) = value.items()
        wrong = f"{_INVALID}Type mismatch for key" if kind not in {"S", "N", "B"} else ""
        if kind == "S" and len(str(inside).encode()) > most:
            wrong = f"{_INVALID}Size of the key has exceeded the maximum size limit of {most} bytes"
        if wrong:
            yield Refusal("PutItem", "ValidationException", wrong, "item")
    if max(map(_depth, item.values()), default=0) > LEVELS:
        message = "Nesting Levels have exceeded supported limits"
        yield Refusal("PutItem", "ValidationException", message, "item")


def _depth(value: Any) -> int:
    inside = value.get("M", value.get("L")) if isinstance(value, dict) else None
    within = inside.values() if isinstance(inside, dict) else inside
    return 1 + max(map(_depth, within or ()), default=0) if isinstance(inside, dict | list) else 0


@limit("dynamodb/tableItem:TableItem", source=f"{_GUIDE}CapacityUnitCalculations.html")
def size_of_an_item(wanted: Wanted) -> Iterator[Refusal]:
    """400 KB of names and values."""
    item = parse(wanted.inputs["item"]) or {}
    if sum(len(name.encode()) + _bytes(value) for name, value in item.items()) > 400 * KIB:
        message = "Item size has exceeded the maximum allowed size"
        yield Refusal("PutItem", "ValidationException", message, "item")


def _bytes(value: Any) -> int:
    """Return what DynamoDB counts of a value; of one that is none, nothing."""
    if not isinstance(value, dict) or len(value) != 1:
        return 0
    ((kind, inside),) = value.items()
    if isinstance(inside, dict):
        return 3 + sum(1 + len(name.encode()) + _bytes(each) for name, each in inside.items())
    if isinstance(inside, list):
        inner = {"SS": "S", "NS": "N", "BS": "B"}.get(kind)
        return 3 + sum(1 + _bytes({inner: each} if inner else each) for each in inside)
    written = len(str(inside).encode())
    return {"S": written, "N": written // 2 + 1, "B": written * 3 // 4}.get(kind, 1)
