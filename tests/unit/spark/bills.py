"""Small bills in every format, written as their exporters write them, and how they are read."""

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.cost.pricing import total
from core.ground.errors import InvalidInput
from spark import tables
from spark.ingest import bill
from spark.ingest.bill import Delivery
from spark.ingest.share import USAGE_ROWS
from spark.jobs import ingest
from spark.rows import rows_of
from spark.tables import ParquetStore
from spark.tag_keys import OURS, KafkaTags
from spark.transforms.grain import grain_of, net_of_discounts

Line = Mapping[str, Any]
Written = Callable[[Path], Path]
TAGS = pa.map_(pa.string(), pa.string())
PERIOD = "BILLING_PERIOD=2026-11"
SAMPLE = Path(__file__).resolve().parents[4] / "shared" / "data" / "focus-1.0-sample-1000.csv"
NOW = datetime(2026, 12, 20, tzinfo=UTC)
NOVEMBER = datetime(2026, 11, 1)  # noqa: DTZ001 - CUR writes no zone
NOON = NOVEMBER.replace(day=20, hour=12)

FOCUS_ROW: Mapping[str, str] = {
    "AvailabilityZone": "us-east-1a", "BilledCost": "1.00000000000", "BillingCurrency": "USD",
    "BillingPeriodStart": "2026-11-01 00:00:00", "ChargeCategory": "Usage",
    "ChargeDescription": "$0.1071 per On Demand Linux r7g.large Instance Hour",
    "ChargePeriodEnd": "2026-11-20 13:00:00", "ChargePeriodStart": "2026-11-20 12:00:00",
    "EffectiveCost": "0.80000000000", "PricingQuantity": "1.00000000000", "PricingUnit": "Hours",
    "ProviderName": "AWS", "ResourceId": "i-1", "ServiceName": "Amazon Elastic Compute Cloud",
    "SubAccountId": "123456789012", "Tags": "NULL",
}  # fmt: skip
CUR_ROW: Line = {
    "bill_billing_period_start_date": NOVEMBER, "line_item_availability_zone": "us-east-1a",
    "line_item_currency_code": "USD",
    "line_item_line_item_description": "$0.1071 per On Demand Linux r7g.large Instance Hour",
    "line_item_line_item_type": "Usage", "line_item_operation": "RunInstances",
    "line_item_product_code": "AmazonEC2", "line_item_resource_id": "i-1",
    "line_item_unblended_cost": 1.0, "line_item_usage_account_id": "123456789012",
    "line_item_usage_amount": 1.0, "line_item_usage_end_date": NOON.replace(hour=13),
    "line_item_usage_start_date": NOON, "line_item_usage_type": "BoxUsage:r7g.large",
    "pricing_unit": "Hrs", "resource_tags": {}, "reservation_effective_cost": 0.0,
    "reservation_reservation_a_r_n": "",
    "reservation_unused_amortized_upfront_fee_for_billing_period": 0.0,
    "reservation_unused_recurring_fee": 0.0, "savings_plan_savings_plan_effective_cost": 0.0,
    "savings_plan_total_commitment_to_date": 0.0, "savings_plan_used_commitment": 0.0,
}  # fmt: skip
LEGACY: Mapping[str, str] = {
    "identity/LineItemId": "x", "bill/BillingPeriodStartDate": "2026-11-01T00:00:00Z",
    "lineItem/UsageAccountId": "123456789012", "lineItem/LineItemType": "Usage",
    "lineItem/UsageStartDate": "2026-11-20T12:00:00Z", "lineItem/ProductCode": "AmazonEC2",
    "lineItem/UsageType": "BoxUsage:m7i.large", "lineItem/UsageAmount": "1.0000000000",
    "lineItem/CurrencyCode": "USD", "lineItem/UnblendedCost": "1.2500000000",
    "lineItem/LineItemDescription": "an hour", "pricing/unit": "Hrs", "resourceTags/user:team": "",
}  # fmt: skip

CLUSTER, KIND = "resourceTags/user:stillwater:cluster", "lineItem/LineItemType"
MARKED = {CLUSTER: "harbour"}
OWN_TAGS = {"user_stillwater_cluster": "harbour", "user_stillwater_pool": "broker"}
FOCUS_TAGS = '{"stillwater:cluster": "harbour", "stillwater:pool": "broker"}'


# --- Writing: rows are changes to a usual one.


def _csv(usual: Line, rows: Iterable[Line], without: Sequence[str] = (), **how: Any) -> str:
    known = dict.fromkeys([*usual, *(name for row in rows for name in row)])
    names = [name for name in known if name not in without]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", **how)
    writer.writerow(names)
    writer.writerows([[{**usual, **row}.get(name, "") for name in names] for row in rows])
    return text.getvalue()


def written(folder: Path, content: str | bytes, name: str = "bill.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def legacy(rows: Sequence[Line], *, without: Sequence[str] = ()) -> str:
    return _csv(LEGACY, rows, without)


def text(*rows: Line, change: Callable[[str], str] = str) -> Written:
    return lambda folder: written(folder, change(legacy(rows)))


def focus_file(path: Path, rows: Sequence[Line], *, without: Sequence[str] = ()) -> Path:
    """Write a FOCUS file; an empty cell is NULL, as in the real sample."""
    return written(path.parent, _csv(FOCUS_ROW, rows, without, quoting=csv.QUOTE_ALL), path.name)


def focus(folder: Path, *rows: Line, **how: Any) -> Path:
    return focus_file(folder / "bill.csv", rows, **how)


def cur_file(
    path: Path,
    rows: Sequence[Line],
    *,
    kinds: Mapping[str, pa.DataType] | None = None,
    rename: Callable[[str], str] = str,
    without: Sequence[str] = (),
) -> Path:
    """Write one file of Parquet, some columns of another type or name."""
    table = _table(rows, without, kinds or {})
    pq.write_table(table.rename_columns([rename(name) for name in table.column_names]), path)
    return path


def parquet(folder: Path, *rows: Line, **how: Any) -> Path:
    return cur_file(folder / "bill.parquet", rows, **how)


def cur_export(folder: Path, rows: Sequence[Line], *, without: Sequence[str] = ()) -> Path:
    """Write a Parquet export with its manifest."""
    cur_file(_delivered(folder, "export-00001.snappy.parquet"), rows, without=without)
    return folder


def cur_export_as_csv(folder: Path, rows: Sequence[Line]) -> Path:
    """Write the same export as csv with gzip, its maps as JSON."""
    content = _csv(CUR_ROW, [{"resource_tags": "{}", **row} for row in rows])
    _delivered(folder, "export-00001.csv.gz").write_bytes(gzip.compress(content.encode()))
    return folder


def append_columns(export: Path, **columns: str) -> None:
    """Give every line of an export more columns, each of one text."""
    (path,) = export.glob("data/*/*.parquet")
    table = pq.read_table(path, partitioning=None)
    for name, value in columns.items():
        table = table.append_column(name, pa.array([value] * table.num_rows))
    pq.write_table(table, path)


def several(**files: str | bytes) -> Written:
    """Write a folder of files; an underscore of a name stands for its dot."""

    def made(folder: Path) -> Path:
        (folder / "bill").mkdir()
        for name, content in files.items():
            written(folder / "bill", content, name.replace("_", "."))
        return folder / "bill"

    return made


def archive(*names: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        for number, name in enumerate(names):
            made.writestr(name, legacy([{**MARKED, "identity/LineItemId": f"{number}"}]))
    return packed.getvalue()


def _table(
    rows: Sequence[Line], without: Sequence[str], kinds: Mapping[str, pa.DataType]
) -> pa.Table:
    usual = {str: pa.string(), float: pa.float64(), int: pa.int64(), bool: pa.bool_()}
    usual[datetime] = pa.timestamp("ms")
    columns = {}
    for name in dict.fromkeys([*CUR_ROW, *(name for row in rows for name in row)]):
        values = [{**CUR_ROW, **row}.get(name) for row in rows]
        first = next((value for value in values if value is not None), CUR_ROW.get(name))
        kind = kinds.get(name) or usual.get(type(first), TAGS)
        if kind == TAGS:
            values = [None if value is None else list(value.items()) for value in values]
        if pa.types.is_null(kind):
            values = [None] * len(rows)
        columns[name] = pa.array(values, kind)
    return pa.table({name: column for name, column in columns.items() if name not in without})


def _delivered(folder: Path, file: str) -> Path:
    """Return where an export's file goes, and write the manifest that names it."""
    manifest = folder / "metadata" / PERIOD / "export-Manifest.json"
    for place in (data := folder / "data" / PERIOD, manifest.parent):
        place.mkdir(parents=True, exist_ok=True)
    address = f"s3://bucket/prefix/export/data/{PERIOD}/{file}"
    manifest.write_text(json.dumps({"dataFiles": [address]}))
    return data / file


# --- Reading.


def opened(path: Path, kafka: KafkaTags = OURS, months: Sequence[str] = ()) -> Delivery:
    return bill.read(path, kafka=kafka, months=months)


def ingested(
    path: Path, kafka: KafkaTags = OURS, *, cluster: str | None = None
) -> tuple[ingest.Ingested, list[Any], ParquetStore]:
    """Return what came of a bill, its USAGE, and the tables beside it."""
    store = ParquetStore(str(path.parent / "tables"))
    came = ingest.run(opened(path, kafka), store, now=NOW, cluster=cluster)
    return came, store.rows(tables.USAGE), store


def refused(path: Path) -> str:
    with pytest.raises(InvalidInput) as raised:
        ingested(path)
    return str(raised.value)


def usage(path: Path, kafka: KafkaTags = OURS) -> list[Any]:
    """Return the USAGE of a bill, and what stands beside it."""
    return rows_of(net_of_discounts(opened(path, kafka).usage()))


def usage_rows(delivery: Delivery) -> list[Any]:
    """Return the USAGE of a bill before discounts, and what stands beside it."""
    return rows_of(delivery.usage())


def quarantine(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a bill that cannot be read, each with its reason."""
    return [row._asdict() for row in opened(path).unread_lines]


def grain(*rows: Line) -> pa.Table:
    """Return rows of the cost grain, of which only these columns are known."""
    return pa.Table.from_pylist(list(rows), grain_of(USAGE_ROWS.empty_table()).schema)


def billed_by(
    rows: Sequence[Any], columns: str, amounts: str = "billed_cost"
) -> dict[Any, Decimal]:
    """Return what was billed, or other amounts together, for each value of some columns."""
    names, found = columns.split(), dict[Any, Decimal]()
    for row in rows:
        values = tuple(getattr(row, name) for name in names)
        key = values if len(values) > 1 else values[0]
        own = total(getattr(row, name) for name in amounts.split())
        found[key] = found.get(key, Decimal(0)) + own
    return found
