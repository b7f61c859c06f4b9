"""Reads a CUR 2.0 export (Parquet, or csv with gzip) through its manifests.

Costs are doubles in Parquet; they become decimals by the text they print as, so 0.1 is 0.1. Only
the columns that later rooms need are read.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from core.errors import InvalidInput
from spark.ingest import lines, manifest
from spark.ingest.delivery import (
    Delivery,
    moment,
    money,
    named,
    readable,
    reason,
    shown,
    tags,
    text,
    usage_type,
)
from spark.schemas import INGESTED, QUANTITY, require_schema
from spark.transforms import amortise

COST = "line_item_unblended_cost"
_LISTED = "list it in the export's SELECT from COST_AND_USAGE_REPORT"
REQUIRED = {
    COST: _LISTED,
    "bill_billing_period_start_date": _LISTED,
    "line_item_usage_start_date": _LISTED,
    "line_item_usage_end_date": _LISTED,
    "line_item_usage_account_id": _LISTED,
    "line_item_currency_code": _LISTED,
    "line_item_line_item_type": _LISTED,
    "line_item_product_code": _LISTED,
    "line_item_usage_type": _LISTED,
    "line_item_operation": _LISTED,
    "line_item_line_item_description": _LISTED,
    "line_item_usage_amount": _LISTED,
    "line_item_availability_zone": _LISTED,
    "line_item_resource_id": f"set INCLUDE_RESOURCES = TRUE for the table and {_LISTED}",
    "pricing_unit": _LISTED,
    "resource_tags": f"{_LISTED} and activate the tags as cost allocation tags",
}

SHOWN = (
    COST,
    "bill_billing_period_start_date",
    "line_item_usage_start_date",
    "line_item_usage_type",
    "line_item_resource_id",
    "line_item_line_item_description",
)


def read(session: SparkSession, folder: Path) -> Delivery:
    """Read the newest delivery of every billing period in an export's folder."""
    export = manifest.pinned(folder)
    what = f"The CUR 2.0 export {folder}"
    with readable(what):
        delivered = _files(session, export, what)
        raw = named(delivered, REQUIRED, amortise.COLUMNS, what)
        _require_amortisation(raw, delivered.columns, what)
        return Delivery(
            label=export.name,
            rows=require_schema(raw.transform(charges), INGESTED, "The CUR reader's output"),
            costs=raw.select(money(COST).alias("cost")),
            simulated=export.simulated,
        )


def _files(session: SparkSession, export: manifest.Export, what: str) -> DataFrame:
    if export.is_parquet:
        # A column that AWS added between two refreshes is null in the older file.
        merged = session.read.option("mergeSchema", "true")
        return merged.parquet(*(lines.literal(path) for path in export.files))
    return lines.read(session, export.files, what)


def charges(raw: DataFrame) -> DataFrame:
    """Turn delivered columns into INGESTED rows."""
    return raw.select(
        F.date_format(moment("bill_billing_period_start_date"), "yyyy-MM").alias("billing_period"),
        moment("line_item_usage_start_date").alias("period_start"),
        moment("line_item_usage_end_date").alias("period_end"),
        F.lit("AWS").alias("provider"),
        text("line_item_usage_account_id").alias("account"),
        text("line_item_currency_code").alias("currency"),
        text("line_item_line_item_type").alias("category"),
        text("line_item_product_code").alias("service"),
        usage_type("line_item_usage_type").alias("usage_type"),
        text("line_item_operation").alias("operation"),
        text("line_item_line_item_description").alias("description"),
        text("pricing_unit").alias("unit"),
        text("line_item_usage_amount").try_cast(QUANTITY).alias("quantity"),
        text("line_item_resource_id").alias("resource_id"),
        text("line_item_availability_zone").alias("zone"),
        tags(raw, "resource_tags").alias("tags"),
        money(COST).alias("billed_cost"),
        amortise.amortised_cost(money(COST)).alias("amortised_cost"),
        reason(
            numbers=(COST,),
            moments=("bill_billing_period_start_date", "line_item_usage_start_date"),
            filled=("line_item_currency_code", "line_item_line_item_type"),
        ).alias("reason"),
        shown(SHOWN).alias("line"),
    )


def _require_amortisation(raw: DataFrame, delivered: list[str], what: str) -> None:
    """Refuse a bill whose line types need a column that the export leaves out."""
    found = {name.lower() for name in delivered}
    lacking = {
        kind: missing
        for kind, names in amortise.NEEDED_FOR.items()
        if (missing := [name for name in names if name not in found])
    }
    if not lacking:
        return
    kind = F.col("line_item_line_item_type")
    present = raw.where(kind.isin(*lacking)).select(kind).distinct().collect()
    problems = [
        f"{what} has {row[0]} lines but no column {name}, without which their amortised cost is "
        f"unknown; {_LISTED}."
        for row in sorted(present)
        for name in lacking[row[0]]
    ]
    if problems:
        raise InvalidInput(problems)
