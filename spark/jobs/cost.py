"""The cost job: one bill in, every dollar of it in exactly one row of the cost table, one page out.

    read -> require_schema -> classify -> attribute -> require_schema -> write -> reconcile -> page

The report adds up to the invoice: `billed_cost` is what AWS asks for (unblended cost, BilledCost)
and is reconciled to the last digit. `amortised_cost` stands beside it, since commitments bought
elsewhere in the bill make the invoice's split misleading (spark/transforms/amortise).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import spark.ingest.cur2
import spark.ingest.focus
from core.errors import InvalidInput, StillwaterError
from core.pricing import plain, total
from spark.ingest.delivery import Delivery, readable
from spark.ingest.lines import literal
from spark.report import page
from spark.report.model import BadRow, Line, Report
from spark.schemas import BAD_ROWS, INGESTED, MONEY, MONTHLY_COST, require_schema
from spark.session import local_session
from spark.transforms.attribute import Attribution, attributed
from spark.transforms.classify import Component, classified

BAD_ROWS_SHOWN = 50
KEYS = (
    "billing_period",
    "component",
    "attribution",
    "cluster",
    "owner",
    "node_id",
    "zone",
    "currency",
)


@dataclass(frozen=True)
class CostResult:
    """What a run found. Money is exact, and equal amounts print alike."""

    bill_total: Decimal
    report_total: Decimal
    amortised_total: Decimal
    rows: int
    bad_rows: int
    components: dict[str, Decimal]
    page: Path
    report: Report

    def table(self) -> str:
        """Return the components as aligned text for a terminal."""
        return page.as_text(self.report)


@dataclass(frozen=True)
class Control:
    """What the delivered files hold, summed before any transform touched them."""

    rows: int
    rows_without_cost: int
    total: Decimal


def run(
    *, focus: Path | None = None, cur: Path | None = None, out: Path, today: date | None = None
) -> CostResult:
    """Report on one bill: a FOCUS 1.0 file, or the folder of a CUR 2.0 export.

    Writes the tables out/table and out/quarantine (Parquet) and the page out/index.html. Raises
    InvalidInput for a bill that cannot be read, StillwaterError when the table does not add up to
    the bill.
    """
    read = _reader(focus, cur)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput([f"The report cannot be written to {out}: {error.strerror}."]) from None
    with local_session() as session:
        delivery = read(session)
        with readable(f"The bill {delivery.label}"):
            return _run(session, delivery, out, today or datetime.now(UTC).date())


def _reader(focus: Path | None, cur: Path | None) -> Callable[[SparkSession], Delivery]:
    if focus is not None and cur is None:
        return lambda session: spark.ingest.focus.read(session, focus)
    if cur is not None and focus is None:
        return lambda session: spark.ingest.cur2.read(session, cur)
    raise InvalidInput(["Name exactly one bill: a FOCUS file, or the folder of a CUR 2.0 export."])


def _run(session: SparkSession, delivery: Delivery, out: Path, today: date) -> CostResult:
    control = control_of(delivery.costs)
    if control.rows == 0:
        raise InvalidInput([f"The bill {delivery.label} holds no rows; export it again."])
    # The page shows what is on disk, so the table and the page cannot differ.
    table = _written(session, cost_table(delivery.rows), out / "table")
    bad = _written(session, quarantine(delivery.rows), out / "quarantine")
    currency, lines = _lines(table, delivery.label)
    reconcile(control, lines)
    report = Report(
        label=delivery.label,
        currency=currency,
        today=today,
        simulated=delivery.simulated,
        lines=lines,
        rows=control.rows,
        bad_rows=bad.count(),
        rows_without_cost=control.rows_without_cost,
        bad=tuple(
            BadRow(row.reason, row.line, row.billed_cost) for row in bad.head(BAD_ROWS_SHOWN)
        ),
    )
    return CostResult(
        bill_total=plain(control.total),
        report_total=plain(report.billed),
        amortised_total=plain(report.amortised),
        rows=report.rows,
        bad_rows=report.bad_rows,
        components={share.name: plain(share.billed) for share in report.components()},
        page=page.write(report, out / "index.html"),
        report=report,
    )


def control_of(costs: DataFrame) -> Control:
    """Sum the delivered cost column: the figure the report must come to."""
    (row,) = costs.agg(
        F.count("*").alias("rows"),
        F.count("cost").alias("with_cost"),
        _total("cost").alias("total"),
    ).collect()
    return Control(row.rows, row.rows - row.with_cost, row.total)


def cost_table(rows: DataFrame) -> DataFrame:
    """Turn INGESTED rows into the COST table.

    Unreadable rows keep their readable dollars in a component of their own: they are on the bill.
    """
    is_bad = F.col("reason").isNotNull()
    component = F.when(is_bad, F.lit(Component.UNREADABLE.value)).otherwise(F.col("component"))
    table = (
        require_schema(rows, INGESTED, "The cost job's input")
        .transform(classified)
        .transform(attributed)
        .withColumn("component", component)
        .groupBy(*KEYS)
        .agg(
            F.count("*").alias("charges"),
            _total("billed_cost").alias("billed_cost"),
            _total("amortised_cost").alias("amortised_cost"),
        )
    )
    return require_schema(table, MONTHLY_COST, "The cost table")


def quarantine(rows: DataFrame) -> DataFrame:
    """Return the rows that could not be read, each with its reason."""
    bad = rows.where(F.col("reason").isNotNull()).select("reason", "line", "billed_cost")
    return require_schema(bad, BAD_ROWS, "The quarantine")


def reconcile(control: Control, lines: Sequence[Line]) -> None:
    """Refuse a table that lost or doubled a row or a fraction of a cent of the bill."""
    rows = sum(line.charges for line in lines)
    placed = total(line.billed for line in lines)
    if rows != control.rows or placed != control.total:
        raise StillwaterError(
            f"The cost table holds {rows} rows worth {plain(placed)} where the bill holds "
            f"{control.rows} worth {plain(control.total)}; the report was not written. This is a "
            f"fault of the cost job: please report it with the bill's format."
        )


def _written(session: SparkSession, frame: DataFrame, folder: Path) -> DataFrame:
    """Replace a folder by one Parquet file of the frame, and read it back."""
    frame.coalesce(1).write.mode("overwrite").parquet(str(folder.resolve()))
    return session.read.schema(frame.schema).parquet(literal(folder))


def _lines(table: DataFrame, label: str) -> tuple[str, list[Line]]:
    rows = table.collect()
    currencies = sorted({row.currency for row in rows if row.currency})
    if len(currencies) > 1:
        problem = (
            f"The bill {label} has charges in {' and '.join(currencies)}, which cannot be added "
            f"up; export one billing account's currency at a time."
        )
        raise InvalidInput([problem])
    lines = [
        Line(
            billing_period=row.billing_period,
            component=Component(row.component),
            attribution=Attribution(row.attribution),
            cluster=row.cluster,
            owner=row.owner,
            node_id=row.node_id,
            zone=row.zone,
            charges=row.charges,
            billed=row.billed_cost,
            amortised=row.amortised_cost,
        )
        for row in rows
    ]
    return (currencies or ["USD"])[0], lines


def _total(name: str) -> Column:
    return F.coalesce(F.sum(name), F.lit(0)).cast(MONEY)
