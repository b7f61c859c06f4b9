"""Refuses a bill whose tables would say what is not so, and says what a month of it lacks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from core.ground.errors import InvalidInput
from spark import tables
from spark.ingest.delivery import Delivery
from spark.months import UNKNOWN_PERIOD
from spark.rows import Found
from spark.tables import Store
from spark.tag_keys import spellings
from spark.transforms.grain import Placed

CLUSTERS_SHOWN = 10
NOT_NAMED = (
    "No line of {period} carries the tag {tag} = {name}, as other months' lines do. Either it had "
    "no charges then, or the tag was not active yet."
)


def require_one_currency(placed: Mapping[str, Placed], label: str) -> None:
    """Refuse a month in two currencies; another month may be in another one."""
    for period, month in sorted(placed.items()):
        if len(month.currencies) > 1:
            first, *_, last = month.currencies
            problem = (
                f"The bill {label} has charges in {first} and {last} in {period}, which cannot "
                f"be added up; export one billing account's currency at a time."
            )
            raise InvalidInput([problem])


def require_a_readable_line(delivery: Delivery, placed: Mapping[str, Placed]) -> None:
    """Refuse a bill of which nothing can be read: its tables would say that nothing was charged."""
    lines = sum(row.charges for row in placed.values())
    if lines > sum(row.quarantined for row in placed.values()):
        return
    because = "".join(f"{row.reason}; " for row in delivery.unread_lines[:1])
    problem = (
        f"None of the {lines:,} lines of the bill {delivery.label} can be read: {because}a "
        "spreadsheet or a script that saved it may have changed it. Name the file as AWS "
        "delivered it."
    )
    raise InvalidInput([problem])


def require_cluster(
    placed: Mapping[str, Placed],
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
    named = frozenset[str]().union(*(month.clusters for month in placed.values()))
    if cluster in named or _is_held(store, cluster, placed):
        lacking = [
            period
            for period, month in placed.items()
            if cluster not in month.clusters and period != UNKNOWN_PERIOD
        ]
        return {p: [NOT_NAMED.format(period=p, tag=tag, name=cluster)] for p in lacking}
    others = sorted(named)[:CLUSTERS_SHOWN]
    seen = f"it names {', '.join(others)}" if others else "no line names any cluster"
    problem = (
        f"No line of the bill {delivery.label} carries the tag {tag} = {cluster}; {seen}. Looked "
        f"for as {', '.join(spellings(tag))}. Activate {tag} as a cost allocation tag (earlier "
        "lines never carry it). Or name the tag that means Kafka: --cluster-tag KEY, or "
        "--cluster-tag KEY=VALUE."
    )
    raise InvalidInput([problem])


def _is_held(store: Store, cluster: str, read_again: Collection[str]) -> bool:
    """Say whether tables name a cluster in a month that is not read again."""
    held = store.rows(tables.COST, cluster=cluster)
    return any(row.billing_period not in read_again for row in held)


def require_same_bill(noted: Sequence[Found], label: str, months: Collection[str]) -> None:
    """Refuse to replace months of another bill in the same tables."""
    others = [row for row in noted if row.bill != label and row.billing_period in months]
    if others:
        problem = (
            f"The tables hold {', '.join(sorted(row.billing_period for row in others))} of the "
            f"bill {min(row.bill for row in others)}; replacing it by {label} would lose it. Keep "
            f"tables per bill."
        )
        raise InvalidInput([problem])
