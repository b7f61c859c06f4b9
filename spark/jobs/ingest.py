"""The ingest job: a bill becomes the usage table, month by month, every dollar in one row.

    read -> require_lines -> sum to a day -> say of each line what it is and whose -> require_schema
         -> reconcile -> replace the months, and of the tables beside -> note the delivery

The bill is read once for the table and once, one column of it, for the control total. Nothing of
its size is ever in the driver's memory. What it was added up to is kept while tables are written
of it side by side: nothing that was just written is read back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import reduce

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from core.cost.pricing import plain, total
from core.errors import InvalidInput, StillwaterError
from spark import frames, money, tables
from spark.ingest.control import Control, known_period
from spark.ingest.delivery import SECOND_HEADER, Delivery, Refresh, readable
from spark.jobs.restated import reading_of
from spark.months import final_of, settled_on
from spark.schemas import (
    CHARGES,
    HAS_NET,
    IS_UNREADABLE,
    MONEY,
    QUARANTINE,
    USAGE,
    require_lines,
    require_schema,
)
from spark.tables import UNKNOWN_PERIOD, Store, Table
from spark.tag_keys import OURS, KafkaTags, spellings
from spark.transforms.attribute import Attribution, attributed
from spark.transforms.classify import classified
from spark.transforms.daily import TOTALS, is_discount, net_of_discounts, said, summed
from spark.transforms.found_tags import found_tags

CLUSTERS_SHOWN = 10
# A table made of USAGE alone.
Made = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True, slots=True)
class Ingested:
    """What came in: per month what the files hold, and how many of their lines are unreadable."""

    label: str
    months: Mapping[str, Control]
    quarantined: Mapping[str, int]
    simulated: bool
    notes: Sequence[str] = ()

    @property
    def lines(self) -> int:
        return sum(month.lines for month in self.months.values())

    @property
    def billed(self) -> Decimal:
        return plain(total(month.billed for month in self.months.values()))


def run(
    session: SparkSession,
    delivery: Delivery,
    store: Store,
    *,
    now: datetime,
    cluster: str | None = None,
    beside: Mapping[Table, Made] | None = None,
    noted_in: Store | None = None,
) -> Ingested:
    """Make the store hold the months of this delivery and nothing older of them.

    `cluster` is one that the bill must name on some line, `beside` tables that are made of USAGE
    alone and replaced with it, `noted_in` another store that may know what a month came to when it
    was final. Raises InvalidInput for a bill without rows, without a line that can
    be read, of two currencies, without that cluster's tag, or into tables that hold another bill;
    StillwaterError when the table does not add up to the bill. Nothing is written then.
    """
    with readable(f"The bill {delivery.label}"):
        months = delivery.control()
        if not months:
            raise InvalidInput([f"The bill {delivery.label} holds no rows; export it again."])
        days = by_day(*delivery.parts, kafka=delivery.kafka)
        with frames.kept(table_of(described(days, delivery.kafka), IS_UNREADABLE, HAS_NET)) as rows:
            placed = _placed(rows, cluster)
            _require_one_currency(placed, delivery.label)
            _require_cluster(placed, rows, delivery, cluster)
            reconcile(months, placed)
            before = _require_same_bill(store, delivery, months)
            found = {period: row.quarantined for period, row in placed.items()}
            if any(found.values()):
                _require_one_header(delivery)
                if (joined := delivery.joined()) is not None:
                    return run(
                        session,
                        joined,
                        store,
                        now=now,
                        cluster=cluster,
                        beside=beside,
                        noted_in=noted_in,
                    )
                _require_a_readable_line(delivery, placed)
            is_discounted = any(row.is_discounted for row in placed.values())
            net = rows.transform(net_of_discounts) if is_discounted else rows
            _write(store, net.select(*USAGE.names), list(months), beside or {})
            if any(found.values()):
                store.replace(tables.QUARANTINE, quarantine(delivery.lines), list(months))
            else:
                store.clear(tables.QUARANTINE, list(months))
            if delivery.tagged and not any(row.has_kafka for row in placed.values()):
                store.replace(tables.TAGS_FOUND, found_tags(delivery.tagged()), list(months))
            else:
                store.clear(tables.TAGS_FOUND, list(months))
            known = {**_noted(noted_in, delivery, months), **before}
            noted = [
                _note(delivery, period, month, found.get(period, 0), before.get(period), now)
                + _final(period, month, known.get(period), now)
                for period, month in months.items()
            ]
            frame = frames.of_rows(session, noted, tables.DELIVERIES.schema)
            store.replace(tables.DELIVERIES, frame, list(months))
            if UNKNOWN_PERIOD in before and UNKNOWN_PERIOD not in months:
                _forget_monthless(store)
    return Ingested(delivery.label, months, found, delivery.simulated, delivery.notes)


def usage(*parts: DataFrame, kafka: KafkaTags = OURS) -> DataFrame:
    """Turn a bill's lines into the USAGE table, and IS_UNREADABLE beside it."""
    rows = table_of(described(by_day(*parts, kafka=kafka), kafka), IS_UNREADABLE, HAS_NET)
    return rows.transform(net_of_discounts).drop(HAS_NET)


def by_day(*parts: DataFrame, kafka: KafkaTags = OURS) -> DataFrame:
    """Sum a bill's lines to a day each (spark.transforms.daily)."""
    known = [summed(require_lines(part, "The ingest job's input"), kafka) for part in parts]
    return reduce(DataFrame.unionByName, known).withColumn("billing_period", known_period())


def described(days: DataFrame, kafka: KafkaTags) -> DataFrame:
    """Say of each row whose it is, and what it bought."""
    return said(days, kafka).transform(attributed).transform(classified)


def table_of(rows: DataFrame, *beside: str) -> DataFrame:
    """Turn described days into the USAGE table."""
    whole = rows.withColumns(money.finished(rows, TOTALS))
    require_schema(whole.select(*USAGE.names), USAGE, "The usage table")
    return whole.select(*USAGE.names, *beside)


def _write(
    store: Store, usage: DataFrame, periods: Sequence[str], beside: Mapping[Table, Made]
) -> None:
    """Replace these months of USAGE and of the tables made of it, all at once."""
    made = {tables.USAGE: usage, **{table: make(usage) for table, make in beside.items()}}
    # While one table is planned another is written.
    with ThreadPoolExecutor(len(made)) as pool:
        under_way = [pool.submit(store.replace, *each, periods) for each in made.items()]
        for write in under_way:
            write.result()


def quarantine(lines: DataFrame) -> DataFrame:
    """Return the lines that could not be read, each with its reason."""
    bad = lines.where(F.col("reason").isNotNull()).select(
        known_period().alias("billing_period"),
        "reason",
        "line",
        F.col("billed_cost").try_cast(MONEY).alias("billed_cost"),
    )
    return require_schema(bad, QUARANTINE, "The quarantine")


def reconcile(control: Mapping[str, Control], placed: Mapping[str, Row]) -> None:
    """Refuse a table that lost or doubled a line or a fraction of a cent of any month."""
    for period in {*control, *placed}:
        wanted = control.get(period, Control(0, 0, Decimal(0)))
        lines, billed = (
            (placed[period].charges, placed[period].billed) if period in placed else (0, Decimal(0))
        )
        if lines != wanted.lines or billed != wanted.billed:
            raise StillwaterError(
                f"The usage table holds {lines} lines of {period} worth {plain(billed)} where the "
                f"bill holds {wanted.lines} worth {plain(wanted.billed)}; nothing was written. "
                f"This is a fault of the ingest job: please report it with the bill's format."
            )


def _placed(rows: DataFrame, cluster: str | None) -> dict[str, Row]:
    is_ours = F.col("attribution") != Attribution.NOBODY.value
    months = rows.groupBy("billing_period").agg(
        F.sum(CHARGES).alias("charges"),
        F.coalesce(F.sum("billed_cost"), F.lit(0)).cast(MONEY).alias("billed"),
        F.sum(F.when(F.col(IS_UNREADABLE), F.col(CHARGES)).otherwise(0)).alias("quarantined"),
        # Of two currencies or more these are two.
        F.min(F.when(~F.col(IS_UNREADABLE), F.col("currency"))).alias("currency"),
        F.max(F.when(~F.col(IS_UNREADABLE), F.col("currency"))).alias("another_currency"),
        F.max(_is(cluster)).alias("names_it"),
        F.max(is_ours).alias("has_kafka"),
        F.max(is_discount()).alias("is_discounted"),
    )
    return {row.billing_period: row for row in months.collect()}


def _is(cluster: str | None) -> Column:
    return F.coalesce(F.col("cluster") == F.lit(cluster), F.lit(False))  # noqa: FBT003 - a literal column


def _require_one_currency(placed: Mapping[str, Row], label: str) -> None:
    found = {c for row in placed.values() for c in (row.currency, row.another_currency) if c}
    currencies = sorted(found)
    if len(currencies) > 1:
        problem = (
            f"The bill {label} has charges in {' and '.join(currencies)}, which cannot be added "
            f"up; export one billing account's currency at a time."
        )
        raise InvalidInput([problem])


def _require_one_header(delivery: Delivery) -> None:
    """Refuse a file made of two: what stands below another header means something else."""
    again = delivery.lines.where(F.col("reason") == SECOND_HEADER).select("line").head()
    if again is not None:
        problem = (
            f"The bill {delivery.label} has a second header among its lines ({again.line[:80]}): "
            f"two files are glued together. Give each a file of its own."
        )
        raise InvalidInput([problem])


def _require_a_readable_line(delivery: Delivery, placed: Mapping[str, Row]) -> None:
    """Refuse a bill of which nothing can be read: its tables would say that nothing was charged."""
    lines = sum(row.charges for row in placed.values())
    if lines > sum(row.quarantined for row in placed.values()):
        return
    first = delivery.lines.where(F.col("reason").isNotNull()).select("reason").head()
    because = f"{first.reason}; " if first is not None else ""
    problem = (
        f"None of the {lines:,} lines of the bill {delivery.label} can be read: {because}a "
        f"spreadsheet or a script that saved it may have written times or amounts in its own way. "
        f"Name the file as AWS delivered it."
    )
    raise InvalidInput([problem])


def _require_cluster(
    placed: Mapping[str, Row], rows: DataFrame, delivery: Delivery, cluster: str | None
) -> None:
    if cluster is None or any(row.names_it for row in placed.values()):
        return
    named = rows.select("cluster").where(F.col("cluster").isNotNull()).distinct()
    others = sorted(row.cluster for row in named.head(CLUSTERS_SHOWN))
    seen = f"it names {', '.join(others)}" if others else "no line names any cluster"
    tag = delivery.kafka.cluster
    problem = (
        f"No line of the bill {delivery.label} carries the tag {tag} = {cluster}; {seen}. "
        f"Looked for as {', '.join(spellings(tag))}. Activate {tag} as a cost allocation tag "
        f"(lines of before that day never carry it), or name the tag that means Kafka: "
        f"--cluster-tag KEY, or --cluster-tag KEY=VALUE."
    )
    raise InvalidInput([problem])


def _require_same_bill(
    store: Store, delivery: Delivery, months: Mapping[str, Control]
) -> dict[str, Row]:
    """Return what the store noted of these months, which must be deliveries of the same bill."""
    noted = _deliveries(store, {*months, UNKNOWN_PERIOD})
    own = [row for row in noted if row.bill == delivery.label]
    noted = [row for row in noted if row.billing_period in months]
    others = sorted({row.bill for row in noted if row.bill != delivery.label})
    if others:
        problem = (
            f"The tables hold {', '.join(sorted(row.billing_period for row in noted))} of the bill "
            f"{others[0]}; replacing it by {delivery.label} would lose it. Keep tables per bill."
        )
        raise InvalidInput([problem])
    return {row.billing_period: row for row in own}


def _noted(
    store: Store | None, delivery: Delivery, months: Mapping[str, Control]
) -> dict[str, Row]:
    """Return what another store noted of these months of the same bill."""
    rows = _deliveries(store, months) if store is not None else []
    return {row.billing_period: row for row in rows if row.bill == delivery.label}


def _deliveries(store: Store, periods: Collection[str]) -> list[Row]:
    return store.read(tables.DELIVERIES).where(F.col("billing_period").isin(*periods)).collect()


def _forget_monthless(store: Store) -> None:
    """Clear what an earlier reading of the bill held of lines without a month."""
    for table in (
        *(tables.USAGE, tables.COST, tables.TRANSFER),
        *(tables.QUARANTINE, tables.TAGS_FOUND, tables.DELIVERIES),
    ):
        store.clear(table, [UNKNOWN_PERIOD])


def _note(
    delivery: Delivery,
    period: str,
    month: Control,
    quarantined: int,
    before: Row | None,
    now: datetime,
) -> tuple[object, ...]:
    refresh = next((r for r in delivery.refreshes if r.period == period), Refresh(period, "", 1))
    return (
        period,
        delivery.label,
        delivery.format.value,
        refresh.execution,
        refresh.files,
        month.lines,
        month.lines_without_cost,
        quarantined,
        month.billed,
        before.billed_cost if before else None,
        "true" if delivery.simulated else "false",
        now.replace(tzinfo=None),
        settled_on(period) if period != UNKNOWN_PERIOD else None,
        *delivery.kafka.asked,
        "\n".join(delivery.notes) or None,
    )


def _final(
    period: str, month: Control, before: Row | None, now: datetime
) -> tuple[Decimal | None, datetime | None]:
    """Return what a month came to when it was first final, and when that was read."""
    if period == UNKNOWN_PERIOD:
        return None, None
    found = final_of(
        period, month.billed, now.replace(tzinfo=None), reading_of(before) if before else None
    )
    return (found.billed, found.read_at) if found else (None, None)
