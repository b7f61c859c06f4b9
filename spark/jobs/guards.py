"""Refuses a bill whose tables would say what is not so, and says what a month of it lacks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from core.ground.errors import InvalidInput
from spark import tables
from spark.ingest.delivery import SECOND_HEADER, Delivery
from spark.tables import UNKNOWN_PERIOD, Store
from spark.tag_keys import spellings

CLUSTERS_SHOWN = 10
NOT_NAMED = (
    "No line of {period} carries the tag {tag} = {name}, as other months' lines do: either nothing "
    "of it was charged then, or the tag was no active cost allocation tag."
)


def require_one_currency(placed: Mapping[str, Row], label: str) -> None:
    """Refuse a month in two currencies; another month may be in another one."""
    for period, row in sorted(placed.items()):
        if row.currency != row.another_currency:
            problem = (
                f"The bill {label} has charges in {row.currency} and {row.another_currency} in "
                f"{period}, which cannot be added up; export one billing account's currency at a "
                f"time."
            )
            raise InvalidInput([problem])


def require_one_header(delivery: Delivery) -> None:
    """Refuse a file made of two: what stands below another header means something else."""
    again = delivery.lines.where(F.col("reason") == SECOND_HEADER).select("line").head()
    if again is not None:
        problem = (
            f"The bill {delivery.label} has a second header among its lines ({again.line[:80]}): "
            f"two files are glued together. Give each a file of its own."
        )
        raise InvalidInput([problem])


def require_a_readable_line(delivery: Delivery, placed: Mapping[str, Row]) -> None:
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


def require_cluster(
    placed: Mapping[str, Row],
    rows: DataFrame,
    delivery: Delivery,
    cluster: str | None,
    store: Store,
) -> dict[str, list[str]]:
    """Refuse a bill that never names a cluster; return what is said of months that do not.

    Months that are not read again count as well.
    """
    if cluster is None:
        return {}
    tag = delivery.kafka.cluster
    if any(row.names_it for row in placed.values()) or _is_held(store, cluster, placed):
        lacking = [p for p, row in placed.items() if not row.names_it and p != UNKNOWN_PERIOD]
        return {p: [NOT_NAMED.format(period=p, tag=tag, name=cluster)] for p in lacking}
    named = rows.select("cluster").where(F.col("cluster").isNotNull()).distinct()
    others = sorted(row.cluster for row in named.head(CLUSTERS_SHOWN))
    seen = f"it names {', '.join(others)}" if others else "no line names any cluster"
    problem = (
        f"No line of the bill {delivery.label} carries the tag {tag} = {cluster}; {seen}. "
        f"Looked for as {', '.join(spellings(tag))}. Activate {tag} as a cost allocation tag "
        f"(lines of before that day never carry it), or name the tag that means Kafka: "
        f"--cluster-tag KEY, or --cluster-tag KEY=VALUE."
    )
    raise InvalidInput([problem])


def _is_held(store: Store, cluster: str, read_again: Collection[str]) -> bool:
    """Say whether tables name a cluster in a month that is not read again."""
    kept = ~F.col("billing_period").isin(*read_again) & (F.col("cluster") == cluster)
    return bool(store.read(tables.USAGE).where(kept).head(1))


def require_same_bill(noted: Sequence[Row], label: str, months: Collection[str]) -> None:
    """Refuse to replace months of another bill in the same tables."""
    others = [row for row in noted if row.bill != label and row.billing_period in months]
    if others:
        problem = (
            f"The tables hold {', '.join(sorted(row.billing_period for row in others))} of the "
            f"bill {min(row.bill for row in others)}; replacing it by {label} would lose it. Keep "
            f"tables per bill."
        )
        raise InvalidInput([problem])
