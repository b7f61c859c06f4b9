"""Writes a synthetic CUR 2.0 export of millions of lines, quickly: one hour, told again and again.

Every hour of every cluster is billed by the same lines, but that bytes and capacity units vary, as
they do on a real bill; what does not vary compresses as well as it does there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped] # the same

from core.ground.naming import CLUSTER_TAG
from local.bills import export
from local.bills.cluster import KAFKA, Broker, ClusterBill, Coverage, hour_lines, monthly_lines
from local.bills.line import CUR2, FLOATS, MAPS, TIMES, BillLine, month_start, next_month

NAME = "synthetic"
BROKERS = 8
CLUSTER_SHARE = 0.8  # of an hour's lines; the rest is other people's
DISTINCT_SHARE = 0.02
HOURS_A_FILE = 72
VARYING = ("GB", "LCU-Hrs")
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
COVERAGES = (Coverage.SAVINGS_PLAN, Coverage.RESERVED, Coverage.ON_DEMAND)
OTHERS = (
    ("AmazonS3", "TimedStorage-ByteHrs", "StandardStorage", "GB-Mo"),
    ("AWSLambda", "Lambda-GB-Second", "Invoke", "Second"),
    ("AmazonRDS", "InstanceUsage:db.r6g.xlarge", "CreateDBInstance:0014", "Hrs"),
    ("AmazonCloudWatch", "CW:MetricMonitorUsage", "MetricStorage", "Metrics"),
)


def write(
    folder: Path, *, rows: int, months: Sequence[str], seed: int = 7, distinct: bool = False
) -> int:
    """Write about `rows` lines over these whole months; return how many there are.

    `distinct` makes almost all of them other people's, each with a resource and a tag of its own.
    """
    random = np.random.default_rng(seed)
    hours = {month: _hours(month) for month in months}
    share = DISTINCT_SHARE if distinct else CLUSTER_SHARE
    template = _template(max(100, rows // sum(hours.values())), months[0], share)
    written = 0
    for month, count in hours.items():
        data = folder / "data" / f"BILLING_PERIOD={month}"
        data.mkdir(parents=True, exist_ok=True)
        names = []
        for number, first in enumerate(range(0, count, HOURS_A_FILE), start=1):
            block = range(first, min(first + HOURS_A_FILE, count))
            table = _told_again(template, month, block, random)
            if distinct:
                table = _with_resources(table, f"{month}-{number}")
            if first == 0:
                once = _table(list(monthly_lines(ClusterBill(period=month))), template.schema)
                table = pa.concat_tables([table, once])
            path = data / f"{NAME}-{number:05d}.snappy.parquet"
            pq.write_table(table, path, compression="snappy", store_schema=False)
            names.append(f"s3://synthetic/bills/{NAME}/{path.relative_to(folder)}")
            written += table.num_rows
        manifest = folder / "metadata" / f"BILLING_PERIOD={month}" / f"{NAME}-Manifest.json"
        manifest.parent.mkdir(parents=True, exist_ok=True)
        content = {"dataFiles": names, "simulated": True, "note": export.NOTE}
        manifest.write_text(json.dumps(content) + "\n")
    return written


def _hours(month: str) -> int:
    start = month_start(month)
    return int((next_month(start) - start).total_seconds()) // 3600


def _template(count: int, month: str, share: float) -> pa.Table:
    """Return the lines of one hour: clusters until their share is reached, then other services."""
    lines: list[BillLine] = []
    number = 0
    while len(lines) < count * share:
        lines += _measured_lines(_cluster(number, month))
        number += 1
    lines = lines[:count]
    while len(lines) < count:
        product, usage_type, operation, unit = OTHERS[len(lines) % len(OTHERS)]
        lines.append(
            BillLine(
                hour=month_start(month),
                product=product,
                usage_type=f"USE1-{usage_type}",
                operation=operation,
                unit=unit,
                quantity=lines[0].quantity,
                unblended=lines[0].quantity,
                resource_id=f"arn:aws:synthetic:{product}:{len(lines)}",
                tags={"team": f"team-{len(lines) % 80}"},
            )
        )
    return _table(lines, None)


def _measured_lines(bill: ClusterBill) -> Iterator[BillLine]:
    """Return an hour with one split line per broker, the mix that every figure was taken at."""
    for line in hour_lines(bill, 0):
        if not line.parent:
            yield line
        elif line.usage_type.endswith("vCPU-Hours"):
            yield replace(line, tags={CLUSTER_TAG: bill.name})


def _cluster(number: int, month: str) -> ClusterBill:
    brokers = [
        Broker(
            node_id=number * 1000 + node,
            zone=ZONES[node % len(ZONES)],
            coverage=COVERAGES[(number + node) % len(COVERAGES)],
            volume_gib=500 + 100 * node,
            iops=3000 + 1000 * (node % 3),
            throughput_mib_per_s=125 * (1 + node % 3),
        )
        for node in range(BROKERS)
    ]
    return ClusterBill(name=f"kafka-{number:03d}", period=month, brokers=brokers, pods=(KAFKA,))


def _table(lines: Sequence[BillLine], schema: pa.Schema | None) -> pa.Table:
    cells = {
        name: pa.array(_values(lines, name), _kind(name))
        for name in CUR2
        if name != "identity_line_item_id"
    }
    table = pa.table(cells)
    return table if schema is None else table.cast(schema)


def _values(lines: Sequence[BillLine], name: str) -> list[Any]:
    values = [CUR2[name](line) for line in lines]
    return [list(value.items()) for value in values] if name in MAPS else values


def _kind(name: str) -> pa.DataType:
    if name in MAPS:
        return pa.map_(pa.string(), pa.string())
    if name in TIMES:
        return pa.timestamp("ms")
    return pa.float64() if name in FLOATS else pa.string()


def _told_again(
    template: pa.Table, month: str, block: range, random: np.random.Generator
) -> pa.Table:
    size, hours = template.num_rows, len(block)
    table = template.take(pa.array(np.tile(np.arange(size, dtype=np.int32), hours)))
    first = np.datetime64(_naive(month_start(month)), "ms")
    starts = first + np.repeat(np.array(block), size).astype("timedelta64[h]")
    varies = np.tile(np.isin(np.array(template["pricing_unit"].to_pylist()), VARYING), hours)
    factor = np.where(varies, random.uniform(0.5, 1.5, size * hours), 1.0)
    changed = {
        "bill_billing_period_start_date": np.full(size * hours, first),
        "line_item_usage_start_date": starts,
        "line_item_usage_end_date": starts + np.timedelta64(1, "h"),
        "line_item_unblended_cost": _times(table, "line_item_unblended_cost", factor),
        "line_item_usage_amount": _times(table, "line_item_usage_amount", factor),
    }
    for name, values in changed.items():
        position = table.schema.get_field_index(name)
        table = table.set_column(position, table.schema.field(position), [_array(values, name)])
    return table


def _with_resources(table: pa.Table, mark: str) -> pa.Table:
    """Return the table with a resource and a name of its own on every line of no cluster."""
    tags = table["resource_tags"].combine_chunks()
    keys = tags.keys.to_numpy(zero_copy_only=False)
    starts = tags.offsets.to_numpy()
    is_ours = np.append(0, np.cumsum(keys == "user_stillwater_cluster"))
    theirs = is_ours[starts[1:]] == is_ours[starts[:-1]]
    named = np.char.add(f"arn:aws:any:{mark}:", np.arange(table.num_rows).astype(str))
    resources = np.where(theirs, named, table["line_item_resource_id"].to_numpy())
    at = table.schema.get_field_index("line_item_resource_id")
    field = table.schema.field(at)
    table = table.set_column(at, field, [pa.array(resources.astype(object), pa.string())])
    values = tags.items.to_numpy(zero_copy_only=False).copy()
    is_team = keys == "user_team"
    values[is_team] = np.repeat(named, np.diff(starts))[is_team]
    made = pa.MapArray.from_arrays(tags.offsets, tags.keys, pa.array(values, pa.string()))
    at = table.schema.get_field_index("resource_tags")
    return table.set_column(at, table.schema.field(at), [made])


def _times(table: pa.Table, name: str, factor: Any) -> Any:
    return np.round(table[name].to_numpy() * factor, 10)


def _array(values: Any, name: str) -> pa.Array:
    return pa.array(values, _kind(name))


def _naive(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)
