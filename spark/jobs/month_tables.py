"""Reads what the tables hold of one month, as the plain values that a report is made from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from spark import tables
from spark.jobs import cost, nodes
from spark.report.evidence import DayCost, Evidence
from spark.report.model import BAD_ROWS_SHOWN, BadRow, Monthless, Report
from spark.schemas import MONEY
from spark.tables import Store
from spark.transforms.attribute import Attribution
from spark.transforms.daily import is_of_its_month
from spark.transforms.easy import easy_savings


def report_of(store: Store, month: str, deliveries: Mapping[str, Row], today: date) -> Report:
    """Return what a month's bill came to, and the rows that may be of any month beside it."""
    note, monthless = deliveries[month], deliveries.get(tables.UNKNOWN_PERIOD)
    if monthless is not None and monthless.bill != note.bill:
        monthless = None
    table = store.read(tables.COST).where(F.col("billing_period") == month)
    unread = F.col("billing_period").isin(month, tables.UNKNOWN_PERIOD)
    bad = store.read(tables.QUARANTINE).where(unread)
    currency, lines = cost.lines_of(table)
    return Report(
        label=f"{note.bill}, {month}",
        currency=currency,
        today=today,
        simulated=note.simulated == "true",
        lines=lines,
        rows=note.lines,
        bad_rows=note.quarantined,
        rows_without_cost=note.lines_without_cost,
        bad=tuple(
            BadRow(row.reason, row.line, row.billed_cost)
            for row in (bad.head(BAD_ROWS_SHOWN) if note.quarantined or monthless else [])
        ),
        monthless=Monthless(monthless.lines, monthless.lines_without_cost, monthless.billed_cost)
        if monthless
        else None,
    )


def evidence_of(store: Store, report: Report, month: str, paid: DataFrame) -> Evidence:
    """Return what the bill's own tables say; `paid` is the cost of the month and the one before."""
    return Evidence(
        report=report,
        month=month,
        all_days=_days(paid),
        tags=_tags(store, report, month),
        easy=easy_savings(store.read(tables.USAGE).where(F.col("billing_period") == month)),
        transfer=_flows(store.read(tables.TRANSFER), month),
        nodes=_nodes(store, month),
    )


def _flows(moved: DataFrame, month: str) -> list[Row]:
    rows = moved.where(F.col("billing_period") == month).groupBy(
        "day", "cluster", "flow", "certainty", "currency"
    )
    return rows.agg(
        F.sum("billed_bytes").alias("billed_bytes"),
        F.sum("billed_cost").cast(MONEY).alias("billed_cost"),
        F.sum("rack_aware_saving").cast(MONEY).alias("rack_aware_saving"),
    ).collect()


def _nodes(store: Store, month: str) -> list[Row]:
    shares = store.read(tables.NODE_SHARES).where(F.col("billing_period") == month)
    return nodes.workload_totals(shares).collect()


def _tags(store: Store, report: Report, month: str) -> list[Row]:
    if report.has_kafka:
        return []
    found = store.read(tables.TAGS_FOUND).where(F.col("billing_period") == month)
    return found.collect()


def _days(paid: DataFrame) -> list[DayCost]:
    is_kafkas = F.col("attribution") != Attribution.NOBODY.value
    rows = (
        paid.where(is_of_its_month())
        .groupBy("day", "component", is_kafkas.alias("is_kafkas"))
        .agg(F.sum("billed_cost").cast(MONEY).alias("billed"))
        .collect()
    )
    return [DayCost(row.day, row.component, row.billed, row.is_kafkas) for row in rows]
