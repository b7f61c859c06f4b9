"""Replaces the tables of what single days say: unit costs, and days that stand out.

Both may have no row at all, of a bill without any cluster or without an odd day: that is known
before either is planned, and planning is most of what a small bill takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from spark import frames
from spark.findings import ANOMALIES_TABLE, UNIT_TABLE
from spark.jobs import anomaly, unit
from spark.months import last_complete_day
from spark.tables import Store
from spark.transforms.daily import is_of_its_month


@dataclass(frozen=True)
class Days:
    """A COST table, the last day of it that is complete, and whether it names any cluster."""

    cost: DataFrame
    last_complete: date | None
    has_cluster: bool


def known_days(cost: DataFrame, deliveries: Mapping[str, Row]) -> Days:
    """Return what is known of a COST table's days; `deliveries` say when each month was read."""
    of_months = cost.where(is_of_its_month())
    found = of_months.agg(F.max("day"), F.max("cluster").isNotNull()).head()
    last, has_cluster = found or (None, False)
    if last is None:
        return Days(cost, None, has_cluster=False)
    note = deliveries.get(f"{last:%Y-%m}")
    read_on = note.ingested_at.date() if note is not None else None
    return Days(cost, last_complete_day(last, read_on), has_cluster)


def units(
    store: Store, days: Days, traffic: DataFrame, samples: DataFrame, periods: Sequence[str]
) -> list[Row]:
    """Replace these months' unit costs, and return them."""
    if not days.has_cluster:
        store.clear(UNIT_TABLE, periods)
        return []
    with frames.cached(unit.run(days.cost, traffic, samples, days.last_complete)) as rows:
        store.replace(UNIT_TABLE, rows, periods)
        return rows.collect()


def anomalies(store: Store, days: Days, rotations: DataFrame, periods: Sequence[str]) -> list[Row]:
    """Replace these months' days that stand out, and return them with what explains them."""
    with frames.cached(anomaly.standing_out(days.cost, days.last_complete)) as found:
        if not found.head(1):
            store.clear(ANOMALIES_TABLE, periods)
            return []
        with frames.cached(anomaly.run(found, days.cost, rotations)) as rows:
            store.replace(ANOMALIES_TABLE, rows, periods)
            return rows.collect()
