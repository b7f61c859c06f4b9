"""Every job on one month, in order, each table written once: what a report is made of.

    bill -> ingest -> cost -> transfer, storage, resync, economics, unit, anomaly -> evidence

What is not given is left out and said: without metrics no flow has a reason and no volume is
judged, without the archive there are no rotations, without the cluster's facts neither. Nothing
here needs a package that Spark does not bring, so that a cluster runs it (spark.entry).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from core.cost import pricing
from core.cost.pricing import PriceBook
from core.ground.errors import InvalidInput
from core.settings.facts import Facts
from spark import frames, tables
from spark.findings import (
    ANOMALIES_TABLE,
    ECONOMICS_TABLE,
    RESYNC_TABLE,
    ROTATIONS,
    SAMPLES,
    STORAGE_TABLE,
    UNIT_TABLE,
)
from spark.ingest import bill, history, metrics
from spark.jobs import (
    cost,
    days,
    economics,
    ingest,
    nodes,
    restated,
    resync,
    storage,
    transfer,
    unread,
)
from spark.jobs.chosen_month import Chosen
from spark.jobs.month_tables import evidence_of, report_of
from spark.months import is_by_the_month
from spark.report.evidence import Evidence
from spark.report.model import Report
from spark.report.next_rotation import forecast
from spark.schemas import TRAFFIC
from spark.tables import Store
from spark.tag_keys import OURS, KafkaTags
from spark.transforms import rates
from spark.transforms.daily import is_of_its_month
from spark.transforms.traffic import traffic

NO_METRICS = "Without Prometheus's samples (--metrics) no volume and no flow is judged."
NO_HISTORY = "Without the ledger's archive (--history) there are no rotations in this report."
NO_FACTS = "Without the cluster's spec (--spec) volumes, rotations and designs are left out."
NO_PRICES = (
    "No price file has prices of {region}: what the bill itself charges is used, and what is on no "
    "bill (designs, some savings) has no figure (--prices)."
)
OTHER_CURRENCY = (
    f"The price file is in {pricing.CURRENCY} and this bill in {{currency}}: what the bill itself "
    f"charges is used, and what is on no bill (designs, some savings) has no figure."
)
INSTANCES_KNOWN = 20_000


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

    def rotations(self, session: SparkSession) -> DataFrame | None:
        """Return the cluster's rotations, where its ledger's archive is given."""
        if self.facts is None or self.history is None:
            return None
        names = {"archive_name": self.facts.archive_name, "cluster": self.facts.cluster}
        return history.read(session, self.history, **names)


@dataclass(frozen=True, slots=True)
class Known:
    """What the tables say of one month, and what its bill came to."""

    evidence: Evidence
    bill_total: Decimal
    # Months of the bill that are final and unchanged, and were not read again.
    kept: Sequence[str] = ()


@dataclass(frozen=True)
class _Read:
    """The inputs as frames; those not given are empty."""

    samples: DataFrame
    rotations: DataFrame
    traffic: DataFrame


@dataclass(frozen=True, slots=True)
class _Ingested:
    """Which months of a bill were read, which were not, and what is still to run of the first."""

    months: Sequence[str] = ()
    kept: Sequence[str] = ()
    beside: Callable[[], object] = lambda: None


@dataclass(frozen=True, slots=True)
class _OfCluster:
    rotations: Sequence[Row]
    volumes: Sequence[Row]
    designs: Sequence[Row]
    notes: Sequence[str] = ()


def run(session: SparkSession, store: Store, inputs: Inputs) -> Known:
    """Run every job on one month; every table of that month in the store is replaced.

    Raises InvalidInput for a bill, a month or an input that cannot be read.
    """
    read = _inputs(session, inputs)
    try:
        ingested = _ingest_months(session, store, inputs, read)
        return _run_month(session, store, inputs, read, ingested)
    finally:
        read.samples.unpersist()
        read.rotations.unpersist()


def _ingest_months(session: SparkSession, store: Store, inputs: Inputs, read: _Read) -> _Ingested:
    """Run the jobs on every month of the bill that is not final and in the tables unchanged."""
    if inputs.bill is None:
        return _Ingested(kept=inputs.kept)
    kafka = kafka_of(session, inputs)
    months, found = unread.months_to_read(session, inputs.bill, store, kafka)
    kept = sorted({*inputs.kept, *found})
    if months == []:
        return _Ingested(kept=kept)
    delivery = bill.read(session, inputs.bill, months=months or (), kafka=kafka)
    ingested = ingest.run(
        session,
        delivery,
        store,
        now=inputs.now,
        cluster=inputs.facts.cluster if inputs.facts else None,
        beside={
            tables.COST: partial(cost.cost_table, rotations=read.rotations),
            tables.TRANSFER: partial(transfer.transfer_table, traffic=read.traffic),
        },
    )
    made = list(ingested.months)
    return _Ingested(made, kept, lambda: nodes.run(session, store, delivery, made))


def _run_month(
    session: SparkSession, store: Store, inputs: Inputs, read: _Read, ingested: _Ingested
) -> Known:
    """Run the other jobs on one month, and return what all tables say of it."""
    chosen = Chosen.of(store, inputs.month, inputs.today)
    month = chosen.month
    if month not in ingested.months:
        # What the ledger and the samples say of it may be new.
        cost.run(store, [month], rotations=read.rotations)
        transfer.run(session, store, [month], traffic=read.traffic)
    report = _report(store, inputs, chosen)
    evidence = _of_bill(store, read, report, chosen, ingested.beside)
    evidence = replace(evidence, notes=(*chosen.notes(report.currency), *_left_out(inputs, report)))
    if inputs.facts is not None:
        book = inputs.book or pricing.PriceBook(inputs.facts.region, "No price file")
        book = book.beside(report.currency)
        own = _of_cluster(session, store, inputs.facts, book, read, month, chosen.today)
        evidence = replace(
            evidence,
            resync=own.rotations,
            storage=own.volumes,
            economics=own.designs,
            notes=(*evidence.notes, *own.notes),
        )
    return Known(evidence, chosen.note.billed_cost, ingested.kept)


def finished_month(store: Store, inputs: Inputs) -> Known:
    """Return what tables that every job has made say of one month; nothing is made again."""
    chosen = Chosen.of(store, inputs.month, inputs.today)
    month = chosen.month
    recent = F.col("billing_period").isin(*chosen.compared)
    own = F.col("billing_period") == month
    report = _report(store, inputs, chosen)
    evidence = replace(
        evidence_of(store, report, month, store.read(tables.COST).where(recent)),
        unit=store.read(UNIT_TABLE).where(recent).collect(),
        anomalies=store.read(ANOMALIES_TABLE).where(own).collect(),
        resync=store.read(RESYNC_TABLE).where(own).collect(),
        storage=store.read(STORAGE_TABLE).where(own).collect(),
        economics=store.read(ECONOMICS_TABLE).where(own).collect(),
        notes=(
            *chosen.notes(report.currency),
            *restated.other_tags(chosen.note, inputs.kafka),
            *_left_out(inputs, report),
        ),
    )
    return Known(evidence, chosen.note.billed_cost)


def _report(store: Store, inputs: Inputs, chosen: Chosen) -> Report:
    """Return what the month's bill came to, by the tag that its tables were made by."""
    tag, _ = restated.made_by(chosen.note) or inputs.kafka.asked
    return replace(report_of(store, chosen.month, chosen.deliveries, chosen.today), tag=tag)


def kafka_of(session: SparkSession, inputs: Inputs) -> KafkaTags:
    """Return what says that a charge is Kafka's: the tags, the cluster's name, its instances."""
    if inputs.facts is None:
        return inputs.kafka
    learnt: dict[str, date] = {}
    past = inputs.rotations(session)
    if past is not None:
        ids = past.where(F.col("instance_id").isNotNull()).groupBy("instance_id")
        rows = ids.agg(F.min(F.to_date("closed_at"))).head(INSTANCES_KNOWN)
        learnt = dict(tuple(row) for row in rows)
    return replace(
        inputs.kafka,
        name=inputs.facts.cluster,
        resources=frozenset(learnt),
        learnt_on=tuple(sorted(learnt.values())),
    )


def book_of(facts: Facts | None) -> PriceBook | None:
    """Return the prices known of a cluster's region, possibly none."""
    return pricing.book(facts.region) if facts else None


def _inputs(session: SparkSession, inputs: Inputs) -> _Read:
    facts = inputs.facts
    samples, rotations = None, inputs.rotations(session)
    if facts is not None and inputs.metrics is not None:
        samples = metrics.read(session, inputs.metrics, facts.cluster)
    seen = (samples if samples is not None else frames.empty(session, SAMPLES)).persist()
    past = rotations if rotations is not None else frames.empty(session, ROTATIONS)
    moved = (
        frames.empty(session, TRAFFIC)
        if facts is None or samples is None
        else traffic(seen, facts.zones, follower_fetching=facts.follower_fetching)
    )
    return _Read(seen, past.persist(), moved)


def _of_bill(
    store: Store, read: _Read, report: Report, chosen: Chosen, beside: Callable[[], object]
) -> Evidence:
    """Run the jobs that need a bill alone, side by side; `beside` is one that needs no table."""
    with frames.cached(
        store.read(tables.COST).where(F.col("billing_period").isin(*chosen.compared))
    ) as paid:
        known = days.known_days(paid, chosen.deliveries)
        with ThreadPoolExecutor(3) as pool:
            other = pool.submit(beside)
            units = pool.submit(
                days.units, store, known, read.traffic, read.samples, chosen.compared
            )
            odd = pool.submit(days.anomalies, store, known, read.rotations, chosen.compared)
            other.result()
            return replace(
                evidence_of(store, report, chosen.month, paid),
                unit=units.result(),
                anomalies=[row for row in odd.result() if row.billing_period == chosen.month],
            )


def _of_cluster(
    session: SparkSession,
    store: Store,
    facts: Facts,
    book: PriceBook,
    read: _Read,
    month: str,
    today: date,
) -> _OfCluster:
    """Run the jobs that need to know the cluster.

    Of a bill by the month no volume's size is known, nor how long the rotations took to come.
    """
    usage = store.read(tables.USAGE).where(F.col("billing_period") == month)
    last, last_own = _last_days(usage, month, facts.cluster, today)
    book = rates.of_cluster(usage, facts.cluster, book, last)
    rotations = read.rotations.where(F.col("billing_period") == month)
    rotated = resync.run(session, rotations, read.samples, facts, book)
    store.replace(RESYNC_TABLE, rotated, [month])
    rows = rotated.collect()
    ahead = forecast(rows)
    away = ahead.down_seconds if ahead else storage.AWAY_SECONDS
    volumes = storage.run(session, usage, read.samples, facts, book, away)
    has_days = not is_by_the_month([last_own], today)
    volumes = volumes if has_days else frames.empty(session, STORAGE_TABLE.schema)
    store.replace(STORAGE_TABLE, volumes, [month])
    window = economics.Window(date.fromisoformat(f"{month}-01"), last)
    notes: list[str] = []
    designs = frames.empty(session, ECONOMICS_TABLE.schema)
    try:
        if has_days:
            designs = economics.run(session, volumes, rotated, facts, book, window)
    except InvalidInput as error:
        # A type in no table, or a price that nobody knows: the comparison alone is left out.
        notes = [f"EBS and local disks are not compared: {problem}" for problem in error.problems]
    store.replace(ECONOMICS_TABLE, designs, [month])
    return _OfCluster(rows, volumes.collect(), designs.collect(), notes)


def _last_days(usage: DataFrame, month: str, cluster: str, today: date) -> tuple[date, date]:
    """Return the last day of a month's charges, and of a cluster's; a fee may name one to come."""
    own = F.when(F.col("cluster") == cluster, F.col("day"))
    known = usage.where(is_of_its_month() & (F.col("day") <= F.lit(today)))
    last = known.agg(F.max("day"), F.max(own)).head()
    first = date.fromisoformat(f"{month}-01")
    return (last[0] or first, last[1] or first) if last else (first, first)


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
