"""Runs every job on one month, in order, and reads what a report is made of from their tables.

    bill -> ingest -> cost -> transfer, storage, resync, economics, unit, anomaly -> evidence

What is not given is left out and said: without metrics no flow has a reason and no volume is
judged, without the archive there are no rotations, without the cluster's facts neither. Nothing is
drawn here, so that a cluster runs it without what draws (spark.entry).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from operator import attrgetter
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # the same

from core.cost import pricing
from core.cost.price_list import far_off
from core.cost.pricing import PriceBook
from core.ground.errors import InvalidInput
from core.settings.facts import Facts
from spark import samples, tables
from spark.files import address_of, files_of
from spark.ingest import bill
from spark.jobs import chosen_months, ingest
from spark.jobs.chosen_months import Chosen, other_tags
from spark.jobs.ingest import Beside
from spark.months import (
    UNKNOWN_PERIOD,
    is_by_the_month,
    is_of_its_month,
    last_complete_day,
    made_by,
)
from spark.report.document import Document
from spark.report.evidence import BAD_ROWS_SHOWN, DayCost, Evidence, Report
from spark.rows import Found, grouped, row_type, rows_of, summed
from spark.rules.meters import Attribution
from spark.tables import Store
from spark.tag_keys import OURS, KafkaTags
from spark.transforms import economics, rotations, volumes
from spark.transforms.days import anomaly_rows, unit_rows
from spark.transforms.grain import easy_savings, table_grain
from spark.transforms.node_shares import AMOUNTS
from spark.transforms.rotations import forecast, resync_rows
from spark.transforms.transfer import traffic

# What a report lists of nodes, over all of them and all days.
LISTED = ("cluster", "kind", "namespace", "workload_type", "workload", "currency")
Workload = row_type([*LISTED, "pods", "nodes", *AMOUNTS])
NO_METRICS = (
    "Without Prometheus's samples (--metrics) the report has no verdict on volumes and flows."
)
NO_HISTORY = "Without the ledger's archive (--history) this report has no rotations."
NO_FACTS = "Without the cluster's spec (--spec) volumes, rotations and designs are left out."
NO_PRICES = (
    "No price file has prices of {region}. The report uses the bill's own rates. Designs and some "
    "savings have no figure (--prices)."
)
OTHER_CURRENCY = (
    f"The price file is in {pricing.CURRENCY} and this bill in {{currency}}. The report uses the "
    "bill's own rates. Designs and some savings have no figure."
)


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a report is made from; `bill` None takes the tables as they are."""

    bill: str | Path | None = None
    month: str | None = None
    metrics: str | None = None
    history: str | None = None
    facts: Facts | None = None
    book: PriceBook | None = None
    today: date | None = None
    # What says that a charge is Kafka's; a cluster's facts name the cluster.
    kafka: KafkaTags = OURS
    # Months of the bill that were left where they are, since tables hold them as they are final.
    kept: Sequence[str] = ()

    @property
    def now(self) -> datetime:
        """Return when the bill is read: on the day that the report is of."""
        now = datetime.now(UTC)
        return now if self.today is None else datetime.combine(self.today, now.timetz())

    def rotations(self) -> list[Found]:
        """Return the cluster's rotations, where its ledger's archive is given."""
        if self.facts is None or self.history is None:
            return []
        address = address_of(self.history)
        names = {"archive_name": self.facts.archive_name, "cluster": self.facts.cluster}
        return rotations.read_history(files_of(address), address, **names)


@dataclass(frozen=True)
class Known:
    """What the tables say of one month, and what its bill came to."""

    evidence: Evidence
    bill_total: Decimal
    # Months of the bill that are final and unchanged, and were not read again.
    kept: Sequence[str] = ()

    @cached_property
    def document(self) -> Document:
        """The report, told of the evidence."""
        from spark.report import story  # noqa: PLC0415 - draws, which no cluster can

        return story.report_document(self.evidence)


def run(store: Store, inputs: Inputs) -> Known:
    """Run every job on one month; every table of that month in the store is replaced.

    Raises InvalidInput for a bill, a month or an input that cannot be read.
    """
    read = read_beside(inputs)
    grain, kept = _ingest_months(store, inputs, read)
    notes = make_month(store, inputs, read, grain)
    return replace(told_month(store, inputs, grain, notes), kept=kept)


def _ingest_months(
    store: Store, inputs: Inputs, read: Beside
) -> tuple[pa.Table | None, Sequence[str]]:
    """Read every month of the bill that is not final and in the tables unchanged.

    Return what they came to in the cost grain, and the others.
    """
    if inputs.bill is None:
        return None, inputs.kept
    kafka = kafka_of(inputs, read.rotations)
    months, found = chosen_months.months_to_read(inputs.bill, store, kafka)
    kept = sorted({*inputs.kept, *found})
    if months == []:
        return None, kept
    delivery = bill.read(inputs.bill, months=months or (), kafka=kafka)
    ingested = ingest.run(
        delivery,
        store,
        now=inputs.now,
        cluster=inputs.facts.cluster if inputs.facts else None,
        beside=read,
    )
    ingest.write_node_shares(store, delivery, list(ingested.months))
    return ingested.grain, kept


def make_month(store: Store, inputs: Inputs, read: Beside, grain: pa.Table | None) -> Sequence[str]:
    """Run the other jobs on one month, and return what they leave out.

    `grain` is what the months that were just ingested came to in the cost grain.
    """
    chosen = Chosen.of(store, inputs.month, inputs.today)
    month = chosen.month
    if _own_grain(grain, month) is None:
        # What the ledger and the samples say of it may be new.
        grain = table_grain(store.table(tables.USAGE, [month]))
        ingest.write_costs(store, grain, [month], read)
    paid = store.rows(tables.COST, chosen.compared)
    last = last_complete(paid, chosen.deliveries)
    units = unit_rows(paid, read.traffic, read.samples, last)
    store.replace(tables.UNIT, units, chosen.compared)
    store.replace(tables.ANOMALIES, anomaly_rows(paid, read.rotations, last), chosen.compared)
    return _make_clusters(store, inputs, read, chosen, paid)


def told_month(
    store: Store, inputs: Inputs, grain: pa.Table | None = None, notes: Sequence[str] | None = None
) -> Known:
    """Return what tables that every job has made say of one month.

    `notes` say what the jobs of this run left out; None of tables that another run made.
    """
    chosen = Chosen.of(store, inputs.month, inputs.today)
    own, recent = [chosen.month], chosen.compared
    paid = store.rows(tables.COST, recent)
    tag, _ = made_by(chosen.note) or inputs.kafka.asked
    report = replace(report_of(store, chosen.month, paid, chosen.deliveries, chosen.today), tag=tag)
    known = _own_grain(grain, chosen.month)
    has_cluster = inputs.facts is not None or notes is None
    clusters = {
        name: store.rows(table, own) if has_cluster else ()
        for name, table in (
            ("resync", tables.RESYNC),
            ("storage", tables.STORAGE),
            ("economics", tables.ECONOMICS),
        )
    }
    evidence = Evidence(
        report=report,
        month=chosen.month,
        all_days=daily_costs(paid),
        tags=() if report.has_kafka else store.rows(tables.TAGS_FOUND, own),
        easy=easy_savings(table_grain(store.table(tables.USAGE, own)) if known is None else known),
        transfer=store.rows(tables.TRANSFER, own),
        nodes=workload_totals(store.rows(tables.NODE_SHARES, own)),
        unit=store.rows(tables.UNIT, recent),
        anomalies=store.rows(tables.ANOMALIES, own),
        notes=(
            *chosen.notes(report.currency),
            *other_tags(chosen.note, inputs.kafka),
            *_left_out(inputs, report),
            *(notes or ()),
        ),
        **clusters,
    )
    return Known(evidence, chosen.note.billed_cost)


def _own_grain(grain: pa.Table | None, month: str) -> pa.Table | None:
    """Return a month's part of a cost grain, or None where it has none."""
    own = None if grain is None else grain.filter(pc.equal(grain["billing_period"], month))
    return own if own is not None and own.num_rows else None


def kafka_of(inputs: Inputs, rotations: Sequence[Found]) -> KafkaTags:
    """Return what says that a charge is Kafka's: the tags, the cluster's name, its instances."""
    if inputs.facts is None:
        return inputs.kafka
    learnt: dict[str, date] = {}
    for row in rotations:
        if row.instance_id is not None:
            on = row.closed_at.date()
            learnt[row.instance_id] = min(on, learnt.get(row.instance_id, on))
    return replace(
        inputs.kafka,
        name=inputs.facts.cluster,
        resources=frozenset(learnt),
        learnt_on=tuple(sorted(learnt.values())),
    )


def book_of(facts: Facts | None) -> PriceBook | None:
    """Return the prices known of a cluster's region, possibly none."""
    return pricing.book(facts.region) if facts else None


def read_beside(inputs: Inputs) -> Beside:
    """Return what is known beside the bill."""
    facts, rotations = inputs.facts, inputs.rotations()
    if facts is None or inputs.metrics is None:
        return Beside(rotations=rotations)
    series = samples.read(inputs.metrics, facts.cluster)
    moved = traffic(series, facts.zones, follower_fetching=facts.follower_fetching)
    return Beside(series, rotations, moved)


def _make_clusters(
    store: Store, inputs: Inputs, read: Beside, chosen: Chosen, paid: Sequence[Found]
) -> Sequence[str]:
    """Run the jobs that need to know the cluster, and return what they leave out.

    Of a bill by the month no volume's size is known, nor how long the rotations took to come.
    """
    facts, month = inputs.facts, chosen.month
    if facts is None:
        return []
    usage = store.rows(tables.USAGE, [month], cluster=facts.cluster)
    last, last_own = _last_days(paid, chosen, facts.cluster)
    currency = currency_of(row for row in paid if row.billing_period == month)
    listed = (inputs.book or pricing.PriceBook(facts.region, "No price file")).beside(currency)
    book = economics.cluster_book(usage, listed, last)
    own = [row for row in read.rotations if row.billing_period == month]
    rotated = resync_rows(own, read.samples, facts, book)
    ahead = forecast(rotated)
    away = ahead.down_seconds if ahead else volumes.AWAY_SECONDS
    has_days = not is_by_the_month([last_own], chosen.today)
    stored = volumes.storage_rows(usage, read.samples, facts, book, away) if has_days else []
    window = economics.Window(date.fromisoformat(f"{month}-01"), last)
    notes = far_off(listed, economics.billed_rates(usage))
    designs: list[Found] = []
    try:
        if has_days:
            designs = economics.economics_rows(stored, rotated, facts, book, window)
    except InvalidInput as error:
        # A type in no table, or a price that nobody knows: the comparison alone is left out.
        notes += [f"EBS and local disks are not compared: {problem}" for problem in error.problems]
    store.replace(tables.RESYNC, rotated, [month])
    store.replace(tables.STORAGE, stored, [month])
    store.replace(tables.ECONOMICS, designs, [month])
    return notes


def _last_days(paid: Sequence[Found], chosen: Chosen, cluster: str) -> tuple[date, date]:
    """Return the last day of a month's charges, and of a cluster's; a fee may name one to come."""
    known = [
        row
        for row in paid
        if row.billing_period == chosen.month and is_of_its_month(row) and row.day <= chosen.today
    ]
    first = date.fromisoformat(f"{chosen.month}-01")
    last = max((row.day for row in known), default=first)
    return last, max((row.day for row in known if row.cluster == cluster), default=first)


def _left_out(inputs: Inputs, report: Report) -> list[str]:
    """Say what is in no report for want of what was not given."""
    if inputs.facts is None:
        return [NO_FACTS]
    notes = [] if inputs.metrics else [NO_METRICS]
    notes += [] if inputs.history else [NO_HISTORY]
    if inputs.book is None or not inputs.book.prices:
        notes.append(NO_PRICES.format(region=inputs.facts.region))
    elif report.currency != pricing.CURRENCY:
        notes.append(OTHER_CURRENCY.format(currency=report.currency))
    return notes


def report_of(
    store: Store,
    month: str,
    paid: Iterable[Found],
    deliveries: Mapping[str, Found],
    today: date,
) -> Report:
    """Return what a month's bill came to, and the rows that may be of any month beside it.

    `paid` are COST rows, of the month and perhaps of others.
    """
    note, monthless = deliveries[month], deliveries.get(UNKNOWN_PERIOD)
    if monthless is not None and monthless.bill != note.bill:
        monthless = None
    unread = [month, UNKNOWN_PERIOD] if note.quarantined or monthless else []
    lines = [row for row in paid if row.billing_period == month]
    return Report(
        label=f"{note.bill}, {month}",
        currency=currency_of(lines),
        today=today,
        simulated=note.simulated == "true",
        lines=lines,
        rows=note.lines,
        bad_rows=note.quarantined,
        rows_without_cost=note.lines_without_cost,
        bad=rows_of(store.table(tables.QUARANTINE, unread).slice(0, BAD_ROWS_SHOWN)),
        monthless=monthless,
    )


def currency_of(paid: Iterable[Found]) -> str:
    """Return the currency of COST rows of one month."""
    return next((row.currency for row in paid if row.currency), "USD")


def last_complete(paid: Iterable[Found], deliveries: Mapping[str, Found]) -> date | None:
    """Return the last complete day of COST rows; `deliveries` say when each month was read."""
    last = max((row.day for row in paid if is_of_its_month(row)), default=None)
    if last is None:
        return None
    note = deliveries.get(f"{last:%Y-%m}")
    return last_complete_day(last, note.ingested_at.date() if note is not None else None)


def daily_costs(paid: Iterable[Found]) -> list[DayCost]:
    """Return what each component cost on each day of COST rows."""

    def key(row: Found) -> tuple[date, str, bool]:
        return row.day, row.component, row.attribution != Attribution.NOBODY.value

    days = grouped((row for row in paid if is_of_its_month(row)), key)
    return [
        DayCost(day, component, summed(rows, "billed_cost"), is_kafkas)
        for (day, component, is_kafkas), rows in days.items()
    ]


def workload_totals(shares: Iterable[Found]) -> list[Found]:
    """Return what a report shows of some months: sums per workload, and of how many pods."""
    key = attrgetter(*LISTED)
    return [
        Workload(
            *known,
            len({row.pod for row in rows} - {None}),
            len({row.instance_id for row in rows}),
            *(summed(rows, name) for name in AMOUNTS),
        )
        for known, rows in grouped(shares, key).items()
    ]
