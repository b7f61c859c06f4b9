"""The job of every morning: a bill's tables, with session settings that spark-submit alone brings.

The page is made from the tables, on the machine that asked for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlsplit

from core.ground.errors import InvalidInput, StillwaterError
from core.settings import facts
from core.settings.facts import Facts
from spark import tag_keys
from spark.files import address_of, files_of
from spark.ingest import bill
from spark.jobs import chosen_months, every, ingest
from spark.jobs.chosen_months import restatement
from spark.months import UNKNOWN_PERIOD
from spark.session import Start, engine_of
from spark.tables import DELIVERIES, IcebergStore, ParquetStore, Store


def run(start: Start, chosen: argparse.Namespace, now: datetime) -> str:
    """Make the tables and return one line on what they hold; Spark starts where it is needed."""
    store = store_of(start, chosen.tables, chosen.namespace)
    given = _inputs(chosen)
    months = chosen.month
    cluster = chosen.cluster or (given.facts.cluster if given.facts else None)
    read = every.read_beside(given)
    kafka = every.kafka_of(given, read.rotations)
    if chosen.unsettled:
        months, _ = chosen_months.months_to_read(chosen.bill, store, kafka)
        if months == []:
            return f"Every month of {chosen.bill} is final and in {_place(chosen)}."
    delivery = bill.read(chosen.bill, months=months or (), kafka=kafka, engine=engine_of(start))
    is_elsewhere = chosen.noted_in not in {None, chosen.namespace}
    elsewhere = IcebergStore(start(), chosen.noted_in) if is_elsewhere else None
    ingested = ingest.run(
        delivery,
        store,
        now=now,
        cluster=cluster,
        beside=read,
        noted_in=elsewhere,
    )
    periods = list(ingested.months)
    if not periods:
        return f"No month of {chosen.bill} that was delivered since holds a line."
    ingest.write_node_shares(store, delivery, periods)
    # Of lines without a month there is their cost alone.
    for period in (period for period in periods if period != UNKNOWN_PERIOD):
        every.make_month(store, replace(given, month=period), read, ingested.grain)
    store.tidy(now)
    unreadable = sum(ingested.quarantined.values())
    beside = ((chosen.metrics, given.metrics), (chosen.history, given.history))
    empty = [named for named, found in beside if named != found]
    return (
        f"{ingested.lines} lines of {', '.join(periods)} worth {ingested.billed}, {unreadable} of "
        f"them unreadable, are in {_place(chosen)}."
        + "".join(f" There is nothing at {name} yet." for name in empty)
        + "".join(f" {sentence}" for sentence in (*ingested.notes, *_changed(store, periods)))
    )


def _changed(store: Store, periods: Sequence[str]) -> list[str]:
    """Return which of these months came to something else than when they were final."""
    notes = sorted(store.rows(DELIVERIES, periods), key=lambda note: note.billing_period)
    found = [restatement(note) for note in notes]
    return [sentence for sentence in found if sentence is not None]


def store_of(start: Start, tables: str | None, namespace: str | None) -> Store:
    """Return the store that the arguments name: an Iceberg namespace, or folders of Parquet."""
    if namespace:
        return IcebergStore(start(), namespace)
    if not tables:
        raise StillwaterError("Name where tables are kept: --tables ADDRESS or --namespace NAME.")
    return ParquetStore(address_of(tables))


def parser() -> argparse.ArgumentParser:
    known = argparse.ArgumentParser(prog="stillwater-tables", description=__doc__)
    known.add_argument("--bill", required=True, help="an export's folder, or one file")
    known.add_argument("--tables", help="where tables are kept as Parquet")
    known.add_argument("--namespace", help="an Iceberg catalog and namespace: glue.stillwater")
    known.add_argument(
        "--noted-in", help="the namespace that knows what months came to, where it is another one"
    )
    which = known.add_mutually_exclusive_group()
    which.add_argument("--month", action="append", default=[], help="YYYY-MM; all if left out")
    which.add_argument(
        "--unsettled",
        action="store_true",
        help="the months that AWS may still correct, and those not in the tables yet",
    )
    known.add_argument("--cluster", help="a cluster that the bill must name")
    known.add_argument("--cluster-tag", help="the tag that means Kafka: KEY, or KEY=VALUE")
    known.add_argument("--pool-tag", help="the key of the tag that names a node's pool")
    known.add_argument(
        "--facts", help="a cluster's facts (core.settings.facts): for volumes, rotations"
    )
    known.add_argument("--metrics", help="Prometheus's answers, or samples as Parquet")
    known.add_argument("--history", help="the ledger's archive of closed incidents")
    return known


def _inputs(chosen: argparse.Namespace) -> every.Inputs:
    """Return what is known beside the bill; nothing is made before all of it is found."""
    known = _facts(chosen.facts)
    return every.Inputs(
        metrics=_there(chosen.metrics, "The metrics"),
        history=_there(chosen.history, "The rotation history"),
        facts=known,
        book=every.book_of(known),
        kafka=tag_keys.parse_tags(chosen.cluster_tag, chosen.pool_tag),
    )


def _there(written: str | None, what: str) -> str | None:
    """Return an input's address, or None where a bucket holds nothing of it yet.

    A bucket has no empty folders; a path of this machine that is not there is a mistake.
    """
    if written is None:
        return None
    address = address_of(written)
    files = files_of(address)
    if files.is_folder(address) or files.is_file(address):
        return written
    if urlsplit(written).scheme:
        return None
    raise InvalidInput([f"{what} at {written}: there is no such folder or file."])


def _place(chosen: argparse.Namespace) -> str:
    return str(chosen.namespace or chosen.tables)


def _facts(written: str | None) -> Facts | None:
    if written is None:
        return None
    address = address_of(written)
    files = files_of(address)
    if not files.is_file(address):
        raise InvalidInput([f"The cluster's facts {written} are not there; name their file."])
    return facts.parse(files.read(address), written)
