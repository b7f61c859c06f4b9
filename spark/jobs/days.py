"""Replaces the tables of what single days say: unit costs, and days that stand out.

Both may have no row at all, of a bill without any cluster or without an odd day: that is known
before either is planned, and planning is most of what a small bill takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from spark import frames
from spark.findings import ANOMALIES_TABLE, UNIT_TABLE
from spark.jobs import anomaly, unit
from spark.tables import Store
from spark.transforms.daily import is_of_its_month


@dataclass(frozen=True)
class Days:
    """A COST table, the day before its last, and whether it names any cluster."""

    cost: DataFrame
    last_complete: date | None
    has_cluster: bool


def known(cost: DataFrame) -> Days:
    of_months = cost.where(is_of_its_month())
    found = of_months.agg(F.date_sub(F.max("day"), 1), F.max("cluster").isNotNull()).head()
    return Days(cost, *found) if found else Days(cost, None, has_cluster=False)


def units(
    store: Store, days: Days, traffic: DataFrame, samples: DataFrame, periods: Sequence[str]
) -> list[Row]:
    """Replace these months' unit costs, and return them."""
    if not days.has_cluster:
        store.clear(UNIT_TABLE, periods)
        return []
    with frames.kept(unit.run(days.cost, traffic, samples, days.last_complete)) as rows:
        store.replace(UNIT_TABLE, rows, periods)
        return rows.collect()


def anomalies(store: Store, days: Days, rotations: DataFrame, periods: Sequence[str]) -> list[Row]:
    """Replace these months' days that stand out, and return them with what explains them."""
    with frames.kept(anomaly.standing_out(days.cost, days.last_complete)) as found:
        if not found.head(1):
            store.clear(ANOMALIES_TABLE, periods)
            return []
        with frames.kept(anomaly.run(found, days.cost, rotations)) as rows:
            store.replace(ANOMALIES_TABLE, rows, periods)
            return rows.collect()
