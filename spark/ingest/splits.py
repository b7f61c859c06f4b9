"""Reads split cost allocation data: what pods had of their nodes, and how each hour was paid for.

A pass of its own beside the one that sums a bill, since a pod's share is a second view of money
that its node's lines already hold: nothing here is ever added to a total. CUR 2.0 and legacy CUR
have such lines where the export includes them; an export without their columns costs nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # the same

from spark.ingest.columns import (
    LARGEST,
    Alike,
    amounts_of,
    day_of,
    decimal_read,
    distinct,
    groups_of,
    moment_of,
    read_once,
    tags_of,
    texts_of,
)
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
from spark.ingest.share import month_name
from spark.months import UNKNOWN_PERIOD
from spark.rows import DATE, LONG, MONEY, STRING, struct
from spark.tag_keys import every_spelling

# arn:aws:eks:REGION:ACCOUNT:pod/CLUSTER/NAMESPACE/POD/UID
_POD = re.compile(r":pod/([^/]+)/([^/]+)/([^/]+)")
_EC2_HOURS = re.compile(r"(Box|Spot|Dedicated|Host)Usage(:|$)")
_COVERED = {"SavingsPlanCoveredUsage": "savings plan", "DiscountedUsage": "reserved"}
_USED = ("Usage", *_COVERED)
_MONTH, _START, _RESOURCE, _KIND, _OPERATION, _USAGE_TYPE, _AMOUNT = OF_LINE
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

_INTERVAL = ("billing_period", "instance_id", "at")
_KEYS = POD_ROWS.names[: -len(AMOUNTS)]


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
    kind = texts_of(lines[_KIND]).cast(STRING)
    way = _read(lines[_USAGE_TYPE], lambda each: _way(each or ""), STRING)
    for covered, said in _COVERED.items():
        way = pc.if_else(pc.equal(kind, covered), said, way)
    columns = [
        *_intervals(lines, period, _RESOURCE),
        way,
        amounts_of(lines[_AMOUNT]).decimals(),
    ]
    return pa.Table.from_arrays(columns, schema=HOUR_ROWS)


def parts_of(hours: pa.Table) -> pa.Table:
    """Return which part of an instance's interval was paid for in which way: `part`, of one.

    Decimals are added up, so that the order of lines does not move a share.
    """
    known = hours.filter(pc.is_valid(hours["at"]))
    ways = known.group_by([*_INTERVAL, "paid_by"]).aggregate([("hours", "sum")])
    whole = known.group_by([*_INTERVAL]).aggregate([("hours", "sum")])
    whole = whole.rename_columns([*_INTERVAL, "whole"])
    both = ways.join(whole.filter(pc.greater(whole["whole"], 0)), [*_INTERVAL], join_type="inner")
    part = pc.divide(both["hours_sum"].cast(pa.float64()), both["whole"].cast(pa.float64()))
    return both.select([*_INTERVAL, "paid_by"]).append_column("part", part)


def pods(pieces: Iterable[Piece], layout: Layout, parts: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield pods' shares of instances, each scaled by how its hour was paid for, as POD_ROWS.

    A share is made once per way in which the hour was, and all of a day are added up.
    """
    split = (*SPLIT_COLUMNS, *SPLIT_NET.values(), *OF_LINE)
    wanted = tuple(dict.fromkeys((*split, *layout.maps, *EKS_TAG_COLUMNS)))
    instances = frozenset(parts["instance_id"].unique().to_pylist())
    for piece in pieces:
        for batch in batches(piece, wanted):
            told = _told(_lines_of(batch, PARENT, instances), piece.period, layout)
            yield from _scaled(told, parts).to_batches()


def shares_of_days(scaled: pa.Table) -> pa.Table:
    """Return the exact sums of all of a day, as POD_ROWS in their order."""
    sums = scaled.group_by(_KEYS).aggregate([(name, "sum") for name in AMOUNTS])
    return sums.rename_columns(POD_ROWS.names).sort_by([(name, "ascending") for name in _KEYS])


def _told(own: pa.RecordBatch, period: str | None, layout: Layout) -> pa.Table:
    """Return what split lines say: the interval, its day, the pod, and the amounts as doubles."""
    split, unused = (read_once(own[name], _amount, np.float64) for name in (SPLIT, UNUSED))
    # An account without private discounts has nothing there, or 0.
    nets = (read_once(own[SPLIT_NET[name]], _amount, np.float64) for name in (SPLIT, UNUSED))
    net = (
        np.where(own_net, own_net, cost)
        for own_net, cost in zip(nets, (split, unused), strict=True)
    )
    columns = [
        *_intervals(own, period, PARENT),
        _read(own[_START], day_of, DATE),
        *_pods(own, layout),
        *map(pa.array, (split, unused, *net)),
    ]
    told = pa.Table.from_arrays(columns, names=[*_INTERVAL, "day", *POD, *AMOUNTS])
    return told.filter(pa.array(np.asarray(own[SPLIT].is_valid())))


def _scaled(told: pa.Table, parts: pa.Table) -> pa.Table:
    """Return split lines once per way in which their interval was paid for, as POD_ROWS' days."""
    # A batch is of a few hours, and a join takes as long as all that is joined.
    near = parts.filter(pc.is_in(parts["at"], told["at"].unique()))
    found = told.join(near, [*_INTERVAL], join_type="inner")
    part = found["part"]
    amounts = {
        name: amounts_of(pc.multiply(found[name], part).combine_chunks()).decimals()
        for name in AMOUNTS
    }
    columns = [amounts[name] if name in amounts else found[name] for name in POD_ROWS.names]
    return shares_of_days(pa.Table.from_arrays(columns, schema=POD_ROWS))


def _intervals(own: pa.RecordBatch, period: str | None, instance: str) -> list[pa.Array]:
    """Return the month of each line, its instance and when its interval begins."""
    months = [period] * own.num_rows
    return [
        pa.array(months, STRING) if period is not None else _read(own[_MONTH], _month, STRING),
        texts_of(own[instance]).cast(STRING),
        _read(own[_START], _seconds, LONG),
    ]


def _read(column: pa.Array, read: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
    """Return what is read of a column's values, each different one once."""
    values, number = distinct(column)
    return pa.array([read(value) for value in values], kind).take(pa.array(number))


def _month(value: Any) -> str:
    return month_name(value) or UNKNOWN_PERIOD


def _seconds(value: Any) -> int | None:
    moment = moment_of(value)
    return None if moment is None else int(moment.timestamp())


def _pods(own: pa.RecordBatch, layout: Layout) -> list[pa.Array]:
    """Return which pod each line is of, as POD; a pod says the same hour after hour."""
    if not own.num_rows:
        return [pa.array([], STRING) for _ in POD]
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
    of_line = pa.array(number)
    return [pa.array(values, STRING).take(of_line) for values in zip(*known, strict=True)]


def _lines_of(batch: pa.RecordBatch, name: str, instances: frozenset[str]) -> pa.RecordBatch:
    """Return the whole lines in which a column names one of these instances."""
    kept = read_once(texts_of(batch[name]), instances.__contains__, np.bool_)
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


def _way(usage_type: str) -> str:
    return "spot" if "SpotUsage" in usage_type else "on demand"


def _amount(value: Any) -> float:
    """Return an amount as a double, 0 where there is none that can be added up."""
    number = decimal_read(value) if isinstance(value, str) else value
    found = float(number) if number is not None else 0.0
    return found if abs(found) < LARGEST else 0.0


def _tag(tags: Mapping[str, str | None], name: str) -> str | None:
    values = (text_or_none(tags.get(place)) for place in every_spelling(EKS_TAGS[name]))
    return next((value for value in values if value is not None), None)
