"""One bill becomes a page: ingest, the cost table, and what it says, reconciled once more.

The report adds up to the invoice: `billed_cost` is what AWS asks for (unblended cost, BilledCost)
and is reconciled to the last digit. `amortised_cost` stands beside it, since commitments bought
elsewhere in the bill make the invoice's split misleading (spark/transforms/amortise).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

from core.cost.pricing import plain, total
from core.ground.errors import InvalidInput, StillwaterError
from spark import tables
from spark.ingest import bill
from spark.jobs import ingest
from spark.jobs.ingest import Ingested
from spark.jobs.month_tables import bad_rows, report_lines
from spark.report import formats
from spark.report.evidence import Evidence
from spark.report.model import Line, Report
from spark.report.story import report_document
from spark.tables import ParquetStore, Store


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


def report_on(
    *, bill_at: str | Path, out: Path, today: date | None = None, cluster: str | None = None
) -> CostResult:
    """Report on one bill: an export's folder or a file, CUR or FOCUS.

    Writes the tables (Parquet) and the page index.html below `out`. Raises InvalidInput for a bill
    that cannot be read, StillwaterError when a table does not add up to the bill.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput([f"The report cannot be written to {out}: {error.strerror}."]) from None
    store = ParquetStore(str(out.resolve()))
    now = datetime.now(UTC)
    ingested = ingest.run(bill.read(bill_at), store, now=now, cluster=cluster)
    return _page(store, ingested, out, today or now.date())


def _page(store: Store, ingested: Ingested, out: Path, today: date) -> CostResult:
    periods = list(ingested.months)
    # The page shows what is on disk, so the table and the page cannot differ.
    currency, lines = report_lines(store.rows(tables.COST, periods))
    reconcile(ingested, lines)
    report = Report(
        label=ingested.label,
        currency=currency,
        today=today,
        simulated=ingested.simulated,
        lines=lines,
        rows=ingested.lines,
        bad_rows=sum(ingested.quarantined.values()),
        rows_without_cost=sum(month.lines_without_cost for month in ingested.months.values()),
        bad=bad_rows(store, periods),
    )
    html = out / "index.html"
    html.write_text(formats.as_html(report_document(Evidence(report=report))), encoding="utf-8")
    return CostResult(
        bill_total=ingested.billed,
        report_total=plain(report.billed),
        amortised_total=plain(report.amortised),
        rows=report.rows,
        bad_rows=report.bad_rows,
        components={share.name: plain(share.billed) for share in report.components()},
        page=html,
        report=report,
    )


def reconcile(ingested: Ingested, lines: Sequence[Line]) -> None:
    """Refuse a table that lost or doubled a row or a fraction of a cent of the bill."""
    rows = sum(line.charges for line in lines)
    placed = total(line.billed for line in lines)
    if rows != ingested.lines or placed != ingested.billed:
        raise StillwaterError(
            f"The cost table holds {rows} rows worth {plain(placed)} where the bill holds "
            f"{ingested.lines} worth {ingested.billed}; the report was not written. This is a "
            f"fault of the cost job: please report it with the bill's format."
        )
