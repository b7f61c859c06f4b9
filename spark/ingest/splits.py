"""Reads split cost allocation data: what pods had of their nodes, and how each hour was paid for.

A pass of its own beside the one that sums a bill, since a pod's share is a second view of money
that its node's lines already hold: nothing here is ever added to a total. CUR 2.0 and legacy CUR
have such lines where the export includes them; an export without their columns costs nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from spark.ingest import times
from spark.ingest.amounts import LARGEST, amounts_of, decimal_read
from spark.ingest.columns import tags_of, texts_of
from spark.ingest.cur_names import (
    EKS_TAG_COLUMNS,
    EKS_TAGS,
    OF_LINE,
    PARENT,
    SPLIT,
    SPLIT_COLUMNS,
    SPLIT_NET,
    UNUSED,
)
from spark.ingest.layout import Layout, text_or_none
from spark.ingest.pieces import CORRUPT, Piece, batches
from spark.ingest.share import month_name
from spark.months import UNKNOWN_PERIOD
from spark.schemas import DATE, LONG, MONEY, STRING, struct
from spark.tag_keys import every_spelling

# arn:aws:eks:REGION:ACCOUNT:pod/CLUSTER/NAMESPACE/POD/UID
_POD = re.compile(r":pod/([^/]+)/([^/]+)/([^/]+)")
_EC2_HOURS = re.compile(r"(Box|Spot|Dedicated|Host)Usage(:|$)")
_USED = ("Usage", "SavingsPlanCoveredUsage", "DiscountedUsage")
_MONTH, _START, _RESOURCE, _KIND, _OPERATION, _USAGE_TYPE, _AMOUNT = OF_LINE
# How much of an interval of an instance was paid for in which way, of one.
Parts = Mapping[tuple[str, str, int], Mapping[str, float]]
AMOUNTS = ("split_cost", "unused_cost", "net_split_cost", "net_unused_cost")
POD = (*EKS_TAGS, "pod")
HOUR_ROWS = struct(
    billing_period=STRING,
    instance_id=STRING,
    at=LONG,  # seconds since 1970
    paid_by=STRING,
    hours=MONEY,
)
POD_ROWS = struct(
    billing_period=STRING,
    day=DATE,
    instance_id=STRING,
    paid_by=STRING,
    **dict.fromkeys(POD, STRING),
    **dict.fromkeys(AMOUNTS, MONEY),
)


def hours(pieces: Iterable[Piece], instances: frozenset[str]) -> Iterator[pa.RecordBatch]:
    """Yield how each hour of these instances was paid for, as HOUR_ROWS."""
    for piece in pieces:
        for batch in batches(piece, OF_LINE):
            rows = list(_hours(batch, piece.period, instances))
            yield from pa.Table.from_pylist(rows, HOUR_ROWS).to_batches()


def _hours(
    batch: pa.RecordBatch, period: str | None, instances: frozenset[str]
) -> Iterator[dict[str, Any]]:
    for line in _lines_of(batch, _RESOURCE, instances).to_pylist():
        kind, usage_type = line[_KIND], line[_USAGE_TYPE] or ""
        is_run = (line[_OPERATION] or "").startswith("RunInstances") and kind in _USED
        if is_run and _EC2_HOURS.search(usage_type) and line[_AMOUNT] is not None:
            yield {
                "billing_period": period or month_name(line[_MONTH]) or UNKNOWN_PERIOD,
                "instance_id": line[_RESOURCE],
                "at": _seconds(times.moment_of(line[_START])),
                "paid_by": _paid_by(kind, usage_type),
                "hours": decimal_read(str(line[_AMOUNT])),
            }


def pods(pieces: Iterable[Piece], layout: Layout, parts: Parts) -> Iterator[pa.RecordBatch]:
    """Yield pods' shares of instances, each scaled by how its hour was paid for, as POD_ROWS.

    A share is made once per way in which the hour was, and all of a day are added up.
    """
    split = (*SPLIT_COLUMNS, *SPLIT_NET.values(), *OF_LINE)
    wanted = tuple(dict.fromkeys((*split, *layout.maps, *EKS_TAG_COLUMNS)))
    found = [
        scaled
        for piece in pieces
        for batch in batches(piece, wanted)
        for scaled in _scaled(batch, piece.period, layout, parts)
    ]
    if found:
        keys, amounts = zip(*found, strict=True)
        yield from _summed(keys, amounts).to_batches()


def _scaled(
    batch: pa.RecordBatch, period: str | None, layout: Layout, parts: Parts
) -> Iterator[tuple[tuple[Any, ...], tuple[float, ...]]]:
    own = _lines_of(batch, PARENT, frozenset(instance for _, instance, _ in parts))
    maps = [tags_of(own[name]).to_pylist() for name in layout.maps]
    columns = own.select([n for n in own.schema.names if n not in layout.maps])
    # A pod's tags are the same hour after hour.
    pods: dict[Any, tuple[str | None, ...]] = {}
    for number, line in enumerate(columns.to_pylist()):
        at = times.moment_of(line[_START])
        month = period or month_name(line[_MONTH]) or UNKNOWN_PERIOD
        if line[SPLIT] is None or at is None:
            continue
        tags = tuple(tuple(each[number] or ()) for each in maps)
        said = (line[_RESOURCE], tags, *(line[name] for name in EKS_TAG_COLUMNS))
        pod = pods.get(said) or pods.setdefault(said, _pod(line, tags))
        split, unused = _amount(line[SPLIT]), _amount(line[UNUSED])
        # An account without private discounts has nothing there, or 0.
        net = (_amount(line[SPLIT_NET[SPLIT]]) or split, _amount(line[SPLIT_NET[UNUSED]]) or unused)
        ways = parts.get((month, line[PARENT], int(at.timestamp())), {})
        for paid_by, part in ways.items():
            key = (month, at.date(), line[PARENT], paid_by, *pod)
            yield key, tuple(each * part for each in (split, unused, *net))


def _summed(keys: Sequence[tuple[Any, ...]], amounts: Sequence[tuple[float, ...]]) -> pa.Table:
    """Return the exact sums of each key, as POD_ROWS."""
    columns: list[Any] = [*zip(*keys, strict=True)]
    costs = zip(*amounts, strict=True)
    columns += [amounts_of(pa.array(each, pa.float64())).decimals() for each in costs]
    rows = pa.Table.from_arrays([*map(pa.array, columns, POD_ROWS.types)], schema=POD_ROWS)
    names = POD_ROWS.names[: -len(AMOUNTS)]
    sums = rows.group_by(names, use_threads=False).aggregate([(name, "sum") for name in AMOUNTS])
    return sums.rename_columns(POD_ROWS.names)


def _lines_of(batch: pa.RecordBatch, name: str, instances: frozenset[str]) -> pa.RecordBatch:
    """Return the whole lines in which a column names one of these instances."""
    named = texts_of(batch[name])
    is_known = [each in instances for each in named.dictionary.to_pylist()]
    kept = np.array([*is_known, False])[
        named.indices.fill_null(len(is_known)).to_numpy(zero_copy_only=False)
    ]
    if CORRUPT in batch.schema.names:
        kept &= np.asarray(batch[CORRUPT].is_null())
    return batch.take(pa.array(np.flatnonzero(kept)))


def _pod(line: Mapping[str, Any], maps: Sequence[Any]) -> tuple[str | None, ...]:
    """Return which pod a line is of, by AWS's own tags or its ARN: POD."""
    tags = dict(pair for each in maps[::-1] for pair in each or ())
    tags |= {name: line[name] for name in EKS_TAG_COLUMNS if line[name] is not None}
    found = _POD.search(line[_RESOURCE] or "")
    in_arn = dict(zip(("eks_cluster", "namespace"), found.groups() if found else (), strict=False))
    said = (_tag(tags, name) or in_arn.get(name) for name in EKS_TAGS)
    return (*said, found[3] if found else None)


def _seconds(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp())


def _paid_by(kind: str, usage_type: str) -> str:
    if kind == "SavingsPlanCoveredUsage":
        return "savings plan"
    if kind == "DiscountedUsage":
        return "reserved"
    return "spot" if "SpotUsage" in usage_type else "on demand"


def _amount(value: Any) -> float:
    """Return an amount as a double, 0 where there is none that can be added up."""
    number = decimal_read(value) if isinstance(value, str) else value
    found = float(number) if number is not None else 0.0
    return found if abs(found) < LARGEST else 0.0


def _tag(tags: Mapping[str, str | None], name: str) -> str | None:
    values = (text_or_none(tags.get(place)) for place in every_spelling(EKS_TAGS[name]))
    return next((value for value in values if value is not None), None)
