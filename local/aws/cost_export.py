"""Lays metered lines out as AWS delivers a CUR 2.0 export: Parquet per month, then its manifest.

<export>/data/BILLING_PERIOD=2026-11/<name>-00001.snappy.parquet
<export>/metadata/BILLING_PERIOD=2026-11/<name>-Manifest.json
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped] # the same

from core.cost.pricing import Price
from local.environment import ACCOUNT, REGION
from spark.tag_keys import SIMULATED_TAG, export_key

INVOICE = "SIMULATED"
NOTED = "Simulated: "
NOTE = "Written by Stillwater's local twin for resources it ran; nobody was charged."
_TAGS = pa.map_(pa.string(), pa.string())
_TIME = pa.timestamp("ms")


@dataclass(frozen=True, slots=True)
class BilledMeter:
    """One thing a resource is billed for: an amount, per hour or per month of its life."""

    usage_type: str
    operation: str
    product: str
    family: str
    unit: str
    price: Price
    amount: Decimal
    monthly: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportLine:
    """One line of the bill: a resource's meter in one clock hour."""

    hour: datetime
    resource_id: str
    zone: str
    tags: Mapping[str, str]
    meter: BilledMeter
    quantity: Decimal
    cost: Decimal


# Columns as CUR 2.0 names and types them, in its order.
COLUMNS: Mapping[str, tuple[pa.DataType, Callable[[ExportLine], Any]]] = {
    "bill_bill_type": (pa.string(), lambda _: "Anniversary"),
    "bill_billing_entity": (pa.string(), lambda _: "AWS"),
    "bill_billing_period_end_date": (_TIME, lambda line: _naive(_next_month(line.hour))),
    "bill_billing_period_start_date": (_TIME, lambda line: _naive(_month(line.hour))),
    "bill_invoice_id": (pa.string(), lambda _: INVOICE),
    "bill_payer_account_id": (pa.string(), lambda _: ACCOUNT),
    "identity_line_item_id": (pa.string(), lambda _: uuid.uuid4().hex),
    "identity_time_interval": (pa.string(), lambda line: _interval(line.hour)),
    "line_item_availability_zone": (pa.string(), lambda line: line.zone),
    "line_item_currency_code": (pa.string(), lambda _: "USD"),
    "line_item_legal_entity": (pa.string(), lambda _: "Amazon Web Services, Inc."),
    "line_item_line_item_description": (pa.string(), lambda line: f"{NOTED}{_price(line)}"),
    "line_item_line_item_type": (pa.string(), lambda _: "Usage"),
    "line_item_operation": (pa.string(), lambda line: line.meter.operation),
    "line_item_product_code": (pa.string(), lambda line: line.meter.product),
    "line_item_resource_id": (pa.string(), lambda line: line.resource_id),
    "line_item_unblended_cost": (pa.float64(), lambda line: float(line.cost)),
    "line_item_unblended_rate": (pa.string(), lambda line: f"{line.meter.price.usd:f}"),
    "line_item_usage_account_id": (pa.string(), lambda _: ACCOUNT),
    "line_item_usage_amount": (pa.float64(), lambda line: float(line.quantity)),
    "line_item_usage_end_date": (_TIME, lambda line: _naive(line.hour + timedelta(hours=1))),
    "line_item_usage_start_date": (_TIME, lambda line: _naive(line.hour)),
    "line_item_usage_type": (pa.string(), lambda line: line.meter.usage_type),
    "pricing_public_on_demand_cost": (pa.float64(), lambda line: float(line.cost)),
    "pricing_public_on_demand_rate": (pa.string(), lambda line: f"{line.meter.price.usd:f}"),
    "pricing_term": (pa.string(), lambda _: "OnDemand"),
    "pricing_unit": (pa.string(), lambda line: line.meter.unit),
    "product": (_TAGS, lambda line: [("region", REGION), ("servicename", line.meter.product)]),
    "product_product_family": (pa.string(), lambda line: line.meter.family),
    "product_region_code": (pa.string(), lambda _: REGION),
    "resource_tags": (_TAGS, lambda line: _export_tags(line.tags)),
}
SCHEMA = pa.schema([pa.field(name, kind) for name, (kind, _) in COLUMNS.items()])


def write(out: Path, lines: Sequence[ExportLine], *, name: str, at: datetime) -> None:
    """Write an export that replaces the one of the same name in the folder."""
    for old in [*out.glob(f"metadata/*/{name}-Manifest.json"), *out.glob(f"data/*/{name}-*")]:
        old.unlink()
    # A bill of nothing is still delivered, for the month it was asked in.
    periods = sorted({f"{line.hour:%Y-%m}" for line in lines} or {f"{at:%Y-%m}"})
    for period in periods:
        partition = f"BILLING_PERIOD={period}"
        data = out / "data" / partition / f"{name}-00001.snappy.parquet"
        data.parent.mkdir(parents=True, exist_ok=True)
        chosen = [line for line in lines if f"{line.hour:%Y-%m}" == period]
        pq.write_table(_table(chosen), data, compression="snappy", store_schema=False)
        manifest = out / "metadata" / partition / f"{name}-Manifest.json"
        manifest.parent.mkdir(parents=True, exist_ok=True)
        # As AWS does: the manifest is written when all of its data is there.
        manifest.write_text(json.dumps(_manifest(name, period, data, at), indent=2) + "\n")


def _table(lines: Sequence[ExportLine]) -> pa.Table:
    values = {name: [value(line) for line in lines] for name, (_, value) in COLUMNS.items()}
    return pa.table(values, schema=SCHEMA)


def _manifest(name: str, period: str, data: Path, at: datetime) -> dict[str, Any]:
    address = "/".join(data.parts[-3:])
    return {
        "exportName": name,
        "executionId": str(uuid.uuid4()),
        "createdAt": at.isoformat(),
        "billingPeriod": period,
        "columns": [{"name": field.name, "type": str(field.type)} for field in SCHEMA],
        "dataFiles": [f"s3://{name}/billing/{name}/{address}"],
        "simulated": True,
        "note": NOTE,
    }


def _export_tags(tags: Mapping[str, str]) -> list[tuple[str, str]]:
    spelled = {export_key(key): value for key, value in tags.items()}
    return sorted({**spelled, export_key(SIMULATED_TAG): "true"}.items())


def _price(line: ExportLine) -> str:
    return f"${line.meter.price.usd:f} per {line.meter.unit} of {line.meter.usage_type}"


def _interval(hour: datetime) -> str:
    return f"{hour:%Y-%m-%dT%H:%M:%SZ}/{hour + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"


def _month(hour: datetime) -> datetime:
    return hour.replace(day=1, hour=0)


def _next_month(hour: datetime) -> datetime:
    return _month(_month(hour) + timedelta(days=32))


def _naive(moment: datetime) -> datetime:
    # CUR's timestamps are UTC and say no zone.
    return moment.astimezone(UTC).replace(tzinfo=None)
