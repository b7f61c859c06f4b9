"""Reads split cost allocation data: what pods had of their nodes, and how each hour was paid for.

A pass of its own beside the one that sums a bill, since a pod's share is a second view of money
that its node's lines already hold: nothing here is ever added to a total. CUR 2.0 and legacy CUR
have such lines where the export includes them; an export without their columns costs nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from spark.ingest.amounts import LARGEST, amounts_of, decimal_read
from spark.ingest.columns import Alike, distinct, groups_of, moment_of, tags_of, texts_of
from spark.ingest.cur import (
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
from spark.ingest.share import month_name, read_once
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
            yield from _hours(_lines_of(batch, _RESOURCE, instances), piece.period).to_batches()


def _hours(own: pa.RecordBatch, period: str | None) -> pa.Table:
    is_run = (
        read_once(own[_OPERATION], lambda each: (each or "").startswith("RunInstances"), np.bool_)
        & read_once(own[_KIND], _USED.__contains__, np.bool_)
        & read_once(own[_USAGE_TYPE], lambda each: bool(_EC2_HOURS.search(each or "")), np.bool_)
        & np.asarray(own[_AMOUNT].is_valid())
    )
    lines = own.take(pa.array(np.flatnonzero(is_run)))
    ways = zip(*(texts_of(lines[name]).to_pylist() for name in (_KIND, _USAGE_TYPE)), strict=True)
    columns = [
        pa.array(_months(lines, period), STRING),
        texts_of(lines[_RESOURCE]).cast(STRING),
        pa.array([None if at is None else int(at.timestamp()) for at in _moments(lines)], LONG),
        pa.array([_paid_by(kind, usage_type) for kind, usage_type in ways], STRING),
        amounts_of(lines[_AMOUNT]).decimals(),
    ]
    return pa.Table.from_arrays(columns, schema=HOUR_ROWS)


def pods(pieces: Iterable[Piece], layout: Layout, parts: Parts) -> Iterator[pa.RecordBatch]:
    """Yield pods' shares of instances, each scaled by how its hour was paid for, as POD_ROWS.

    A share is made once per way in which the hour was, and all of a day are added up.
    """
    split = (*SPLIT_COLUMNS, *SPLIT_NET.values(), *OF_LINE)
    wanted = tuple(dict.fromkeys((*split, *layout.maps, *EKS_TAG_COLUMNS)))
    instances = frozenset(instance for _, instance, _ in parts)
    found = [
        scaled
        for piece in pieces
        for batch in batches(piece, wanted)
        for scaled in _scaled(_lines_of(batch, PARENT, instances), piece.period, layout, parts)
    ]
    if found:
        keys, amounts = zip(*found, strict=True)
        yield from _summed(keys, amounts).to_batches()


def _scaled(
    own: pa.RecordBatch, period: str | None, layout: Layout, parts: Parts
) -> Iterator[tuple[tuple[Any, ...], tuple[float, ...]]]:
    split, unused = (read_once(own[name], _amount, np.float64) for name in (SPLIT, UNUSED))
    # An account without private discounts has nothing there, or 0.
    nets = (read_once(own[SPLIT_NET[name]], _amount, np.float64) for name in (SPLIT, UNUSED))
    net = (
        np.where(own_net, own_net, cost)
        for own_net, cost in zip(nets, (split, unused), strict=True)
    )
    costs = zip(*(each.tolist() for each in (split, unused, *net)), strict=True)
    told = zip(
        own[SPLIT].is_valid().to_pylist(),
        _months(own, period),
        texts_of(own[PARENT]).to_pylist(),
        _moments(own),
        _pods(own, layout),
        costs,
        strict=True,
    )
    for is_split, month, instance, at, pod, amounts in told:
        if not is_split or at is None:
            continue
        for paid_by, part in parts.get((month, instance, int(at.timestamp())), {}).items():
            yield (
                (month, at.date(), instance, paid_by, *pod),
                tuple(each * part for each in amounts),
            )


def _pods(own: pa.RecordBatch, layout: Layout) -> Iterator[tuple[str | None, ...]]:
    """Yield which pod each line is of; a pod says the same hour after hour."""
    if not own.num_rows:
        return
    texts = {name: texts_of(own[name]) for name in (_RESOURCE, *EKS_TAG_COLUMNS)}
    maps = [tags_of(own[name]) for name in layout.maps]
    alike = Alike(own.num_rows)
    for column in (*texts.values(), *maps):
        alike.tell_apart(column)
    number, _ = alike.numbers()
    order, starts = groups_of(number)
    first = pa.array(order[starts])
    lines = pa.RecordBatch.from_pydict({n: each.take(first) for n, each in texts.items()})
    tags = zip(*(each.take(first).to_pylist() for each in maps), strict=True)
    known = [
        _pod(line, own_tags)
        for line, own_tags in zip(lines.to_pylist(), tags if maps else repeat(()), strict=False)
    ]
    yield from (known[each] for each in number.tolist())


def _months(own: pa.RecordBatch, period: str | None) -> list[str]:
    """Return the month of each line."""
    if period is not None:
        return [period] * own.num_rows
    values, number = distinct(own[_MONTH])
    names = [month_name(value) or UNKNOWN_PERIOD for value in values]
    return [names[each] for each in number.tolist()]


def _moments(own: pa.RecordBatch) -> list[datetime | None]:
    """Return when each line's interval begins."""
    values, number = distinct(own[_START])
    moments = [moment_of(value) for value in values]
    return [moments[each] for each in number.tolist()]


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
