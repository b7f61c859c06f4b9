"""Runs the jobs under spark-submit: on EMR Serverless, on a cluster of one's own, or anywhere.

    spark-submit --py-files stillwater.whl launcher.py --bill s3://... --tables s3://...

The launcher is two lines (`from spark.entry import main; main()`). Session settings come from
spark-submit alone, nothing here needs a package that Spark does not bring, and the page is made
from the tables on the machine that asked for it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from core.errors import InvalidInput, StillwaterError
from spark import facts
from spark.facts import Facts
from spark.ingest import bill
from spark.ingest.files import address_of, files_of
from spark.jobs import cost, every, ingest, nodes, transfer
from spark.session import CONVENTIONS
from spark.tables import UNKNOWN_PERIOD, IcebergStore, ParquetStore, Store


def main(arguments: Sequence[str] | None = None) -> None:
    """Make a bill's tables; a mistake is a sentence and exit 1."""
    chosen = _parser().parse_args(arguments)
    session = SparkSession.builder.appName("stillwater").getOrCreate()
    for key, value in CONVENTIONS.items():
        session.conf.set(key, value)
    try:
        print(run(session, chosen))  # noqa: T201 - the job's log is all its caller sees
    except StillwaterError as error:
        sys.exit(str(error))
    finally:
        session.stop()


def run(session: SparkSession, chosen: argparse.Namespace) -> str:
    """Make the tables and return one line on what they hold."""
    store = store_of(session, chosen.tables, chosen.namespace)
    known = _facts(session, chosen.facts)
    cluster = chosen.cluster or (known.cluster if known else None)
    delivery = bill.read(session, chosen.bill, months=chosen.month)
    ingested = ingest.run(session, delivery, store, now=datetime.now(UTC), cluster=cluster)
    periods = list(ingested.months)
    cost.run(store, periods)
    if chosen.all_jobs:
        nodes.run(session, store, delivery, periods)
        for period in (period for period in periods if period != UNKNOWN_PERIOD):
            every.run(session, store, _inputs(chosen, known, period))
    else:
        transfer.run(session, store, periods)
    store.tidy(datetime.now(UTC))
    unreadable = sum(ingested.quarantined.values())
    return (
        f"{ingested.lines} lines of {', '.join(periods)} worth {ingested.billed}, {unreadable} of "
        f"them unreadable, are in {chosen.namespace or chosen.tables}."
    )


def store_of(session: SparkSession, tables: str | None, namespace: str | None) -> Store:
    """Return the store that the arguments name: an Iceberg namespace, or folders of Parquet."""
    if namespace:
        return IcebergStore(session, namespace)
    if not tables:
        raise StillwaterError("Name where tables are kept: --tables ADDRESS or --namespace NAME.")
    return ParquetStore(session, tables)


def _facts(session: SparkSession, written: str | None) -> Facts | None:
    if written is None:
        return None
    address = address_of(written)
    files = files_of(session, address)
    if not files.is_file(address):
        raise InvalidInput([f"The cluster's facts {written} are not there; name their file."])
    return facts.parse(files.read(address), written)


def _inputs(chosen: argparse.Namespace, known: Facts | None, period: str) -> every.Inputs:
    return every.Inputs(
        month=period,
        metrics=chosen.metrics,
        history=chosen.history,
        facts=known,
        book=every.book_of(known),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="stillwater-tables", description=__doc__)
    parser.add_argument("--bill", required=True, help="an export's folder, or one file")
    parser.add_argument("--tables", help="where tables are kept as Parquet")
    parser.add_argument("--namespace", help="an Iceberg catalog and namespace: glue.stillwater")
    parser.add_argument("--month", action="append", default=[], help="YYYY-MM; all if left out")
    parser.add_argument("--cluster", help="a cluster that the bill must name")
    parser.add_argument(
        "--all-jobs", action="store_true", help="every job, not cost and transfer alone"
    )
    parser.add_argument("--facts", help="a cluster's facts (spark.facts): for volumes, rotations")
    parser.add_argument("--metrics", help="Prometheus's answers, or samples as Parquet")
    parser.add_argument("--history", help="the ledger's archive of closed incidents")
    return parser


if __name__ == "__main__":
    main()
