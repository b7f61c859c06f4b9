"""Reads a FOCUS 1.0 bill (csv or csv.gz): columns by name, "NULL" literals, tags as JSON.

FOCUS 1.0 carries no usage type, so later rooms classify by service, unit and description. AWS's
own export adds x_UsageType and x_Operation; they are used where present.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from core.errors import InvalidInput
from spark.ingest import lines
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

_LISTED = "list it in the export's column selection (table FOCUS 1.0 with AWS columns)"
REQUIRED = dict.fromkeys(
    [
        "BilledCost",
        "EffectiveCost",
        "BillingCurrency",
        "BillingPeriodStart",
        "ChargePeriodStart",
        "ChargePeriodEnd",
        "ChargeCategory",
        "ChargeDescription",
        "PricingUnit",
        "PricingQuantity",
        "ProviderName",
        "ResourceId",
        "ServiceName",
        "SubAccountId",
        "Tags",
    ],
    _LISTED,
)
OPTIONAL = ("AvailabilityZone", "x_UsageType", "x_Operation")
SHOWN = (
    "BilledCost",
    "BillingPeriodStart",
    "ChargePeriodStart",
    "ResourceId",
    "ChargeDescription",
)


def read(session: SparkSession, path: Path) -> Delivery:
    """Read one FOCUS file; a file that is none raises InvalidInput, a bad row keeps its reason."""
    what = f"The FOCUS bill {path}"
    if not path.is_file():
        raise InvalidInput([f"{what} is not a file; name one .csv or .csv.gz file."])
    if not path.name.endswith(lines.FORMATS):
        raise InvalidInput([f"{what} is neither .csv nor .csv.gz, the formats that can be read."])
    with readable(what):
        raw = named(lines.read(session, [path], what), REQUIRED, OPTIONAL, what)
        return Delivery(
            label=path.name,
            rows=require_schema(raw.transform(charges), INGESTED, "The FOCUS reader's output"),
            costs=raw.select(money("BilledCost").alias("cost")),
        )


def charges(raw: DataFrame) -> DataFrame:
    """Turn delivered text columns into INGESTED rows."""
    return raw.select(
        F.date_format(moment("BillingPeriodStart"), "yyyy-MM").alias("billing_period"),
        moment("ChargePeriodStart").alias("period_start"),
        moment("ChargePeriodEnd").alias("period_end"),
        text("ProviderName").alias("provider"),
        text("SubAccountId").alias("account"),
        text("BillingCurrency").alias("currency"),
        text("ChargeCategory").alias("category"),
        text("ServiceName").alias("service"),
        usage_type("x_UsageType").alias("usage_type"),
        text("x_Operation").alias("operation"),
        text("ChargeDescription").alias("description"),
        text("PricingUnit").alias("unit"),
        text("PricingQuantity").try_cast(QUANTITY).alias("quantity"),
        text("ResourceId").alias("resource_id"),
        text("AvailabilityZone").alias("zone"),
        tags(raw, "Tags").alias("tags"),
        money("BilledCost").alias("billed_cost"),
        money("EffectiveCost").alias("amortised_cost"),
        reason(
            numbers=("BilledCost", "EffectiveCost"),
            moments=("BillingPeriodStart", "ChargePeriodStart"),
            filled=("BillingCurrency",),
        ).alias("reason"),
        shown(SHOWN).alias("line"),
    )
