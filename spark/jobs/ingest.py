"""The ingest job: a bill becomes the usage table, month by month, every dollar in one row.

    read, say of each line what it is and whose, sum to a day (spark.ingest.share)
         -> cost grain -> reconcile -> replace the months of USAGE, COST and TRANSFER -> note it

The bill is read once for the table and once, one column of it, for the control total. No line
stays in memory: what all of them add up to does, so that nothing just written is read back.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from core.cost.pricing import plain, total
from core.ground.errors import InvalidInput, StillwaterError
from spark import tables
from spark.ingest.bill import Delivery, readable
from spark.ingest.unread_lines import NO_LINES, Control
from spark.months import UNKNOWN_PERIOD, Refresh, final_of, settled_on
from spark.rows import Found, grouped, row_type, summed
from spark.rules.meters import Component
from spark.samples import Series
from spark.tables import TAGS_FOUND, USAGE, Store
from spark.tag_keys import spellings
from spark.transforms.grain import (
    Placed,
    cost_rows,
    grain_of,
    net_of_discounts,
    placed_by_month,
)
from spark.transforms.node_shares import node_shares
from spark.transforms.transfer import DailyTraffic, transfer_rows

CLUSTERS_SHOWN = 10
NOT_NAMED = (
    "No line of {period} carries the tag {tag} = {name}, as other months' lines do. Either it had "
    "no charges then, or the tag was not active yet."
)

# Words in a key or a value by which a tag is likely to mean Kafka.
KAFKA_WORDS = re.compile(r"(?i)kafka|strimzi|streaming|event-?bus")
KEYS_KEPT = 30
# AWS's own are no longer; of another's the beginning says enough.
LONGEST = 256
# How exports write the keys of tags that somebody set (spark.tag_keys).
_PREFIX = re.compile(r"^(resourceTags/user:|resourceTags/|resource_tags_user_|user:|user_)")
_TagFound = row_type(TAGS_FOUND.schema)
_Tag = row_type(["key", "value", "names_kafka", "charges", "billed_cost"])


@dataclass(frozen=True)
class Beside:
    """What is known beside a bill: what was sampled, whose an instance was, why bytes moved."""

    samples: Sequence[Series] = ()
    rotations: Sequence[Found] = ()
    traffic: DailyTraffic = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ingested:
    """What came in: per month what the files hold, and how many of their lines are unreadable."""

    label: str
    months: Mapping[str, Control]
    quarantined: Mapping[str, int]
    simulated: bool
    notes: Sequence[str] = ()
    # What the bill came to (spark.transforms.grain).
    grain: pa.Table | None = None

    @property
    def lines(self) -> int:
        return sum(month.lines for month in self.months.values())

    @property
    def billed(self) -> Decimal:
        return plain(total(month.billed for month in self.months.values()))


def run(
    delivery: Delivery,
    store: Store,
    *,
    now: datetime,
    cluster: str | None = None,
    beside: Beside | None = None,
    noted_in: Store | None = None,
) -> Ingested:
    """Make the store hold the months of this delivery and nothing older of them.

    `cluster` is one that the bill must name on some line, `noted_in` another store that may know
    what a month came to when it was final. Raises InvalidInput for a bill without rows, without a
    line that can be read, of two currencies, without that cluster's tag, or into tables that hold
    another bill; StillwaterError when the table does not add up to the bill. Nothing is written
    then.
    """
    with readable(f"The bill {delivery.label}"):
        noted = store.rows(tables.DELIVERIES)
        before = {row.billing_period: row for row in noted if row.bill == delivery.label}
        months = _delivered_controls(delivery, before)
        if not months:
            _require_rows(delivery, before)
            return Ingested(delivery.label, {}, {}, delivery.simulated, delivery.notes)
        usage = delivery.usage()
        grain = grain_of(usage)
        placed = placed_by_month(grain)
        require_one_currency(placed, delivery.label)
        unnamed = require_cluster(placed, delivery, cluster, store)
        reconcile(months, placed)
        require_same_bill(noted, delivery.label, months)
        found = {period: month.quarantined for period, month in placed.items()}
        if any(found.values()):
            require_a_readable_line(delivery, placed)
        if any(month.is_discounted for month in placed.values()):
            usage = net_of_discounts(usage)
            grain = grain_of(usage)
        store.replace(tables.USAGE, usage.select(USAGE.schema.names), list(months))
        write_costs(store, grain, list(months), beside or Beside())
        _write_what_is_unsaid(store, delivery, list(months), placed)
        known = {**_notes_elsewhere(noted_in, delivery), **before}
        rows_noted = [
            (
                *_note(delivery, period, month, placed.get(period), before.get(period), now),
                "\n".join([*delivery.notes, *unnamed.get(period, [])]) or None,
                *final_of(period, month.billed, now.replace(tzinfo=None), known.get(period)),
                *_of_files(delivery, period, placed.get(period)),
            )
            for period, month in months.items()
        ]
        store.replace(tables.DELIVERIES, rows_noted, list(months))
        if UNKNOWN_PERIOD in before and UNKNOWN_PERIOD not in months:
            _forget_monthless(store)
    newest = max((period for period in months if period != UNKNOWN_PERIOD), default="")
    said = [*delivery.notes, *unnamed.get(newest, [])]
    return Ingested(delivery.label, months, found, delivery.simulated, said, grain)


def write_costs(store: Store, grain: pa.Table, periods: Sequence[str], beside: Beside) -> None:
    """Replace these months of COST and TRANSFER, which are made of the cost grain."""
    store.replace(tables.COST, cost_rows(grain, beside.rotations), periods)
    store.replace(tables.TRANSFER, transfer_rows(grain, beside.traffic), periods)


def write_node_shares(store: Store, delivery: Delivery, periods: Sequence[str]) -> None:
    """Replace these months of what ran on Kafka's nodes, from split cost allocation data.

    For a bill without split lines nothing of it is read again.
    """
    shares: list[Found] = []
    split = store.table(tables.COST, periods, component=Component.SPLIT.value)
    if delivery.layout.has_splits and split.num_rows:
        usage = store.table(tables.USAGE, periods, component=Component.BROKER_COMPUTE.value)
        instances = usage["resource_id"].unique().drop_null().to_pylist()
        shares = node_shares(usage, delivery.pod_shares(instances))
    store.replace(tables.NODE_SHARES, shares, periods)


def _require_rows(delivery: Delivery, before: Mapping[str, Found]) -> None:
    """Refuse a bill without rows, unless it is a month of an export that has others."""
    if not (before and delivery.refreshes):
        problem = (
            f"The bill {delivery.label} holds no rows: nothing was charged yet, or its export "
            f"leaves every line out. AWS delivers again within a day. Read another month (--month) "
            f"or the next delivery; where charges are missing, see the export's filter."
        )
        raise InvalidInput([problem])


def _delivered_controls(delivery: Delivery, before: Mapping[str, Found]) -> Mapping[str, Control]:
    """Return what the files hold of each month; one that came again without a line holds nothing.

    Otherwise its tables would go on saying what is no longer charged.
    """
    months = delivery.control
    emptied = [period for period in delivery.refreshes if period in before and period not in months]
    return {**months, **dict.fromkeys(emptied, NO_LINES)}


def _write_what_is_unsaid(
    store: Store, delivery: Delivery, periods: Sequence[str], placed: Mapping[str, Placed]
) -> None:
    """Replace these months' unread lines and, of a bill without any Kafka, its tags."""
    is_whole = not any(month.quarantined for month in placed.values())
    has_kafka = any(month.has_kafka for month in placed.values())
    store.replace(tables.QUARANTINE, [] if is_whole else delivery.unread_lines, periods)
    tags = [] if has_kafka else found_tags(delivery.tags_found())
    store.replace(tables.TAGS_FOUND, tags, periods)


def reconcile(control: Mapping[str, Control], placed: Mapping[str, Placed]) -> None:
    """Refuse a table that lost or doubled a line or a fraction of a cent of any month."""
    for period in {*control, *placed}:
        wanted = control.get(period, NO_LINES)
        lines, billed = (
            (placed[period].charges, placed[period].billed) if period in placed else (0, Decimal(0))
        )
        if lines != wanted.lines or billed != wanted.billed:
            raise StillwaterError(
                f"The usage table holds {lines} lines of {period} worth {plain(billed)} where the "
                f"bill holds {wanted.lines} worth {plain(wanted.billed)}; nothing was written. "
                f"This is a fault of the ingest job: please report it with the bill's format."
            )


def _notes_elsewhere(store: Store | None, delivery: Delivery) -> dict[str, Found]:
    """Return what another store noted of the months of the same bill."""
    rows = store.rows(tables.DELIVERIES) if store is not None else []
    return {row.billing_period: row for row in rows if row.bill == delivery.label}


def _forget_monthless(store: Store) -> None:
    """Clear what an earlier reading of the bill held of lines without a month."""
    for table in (
        *(tables.USAGE, tables.COST, tables.TRANSFER, tables.NODE_SHARES),
        *(tables.QUARANTINE, tables.TAGS_FOUND, tables.DELIVERIES),
    ):
        store.replace(table, [], [UNKNOWN_PERIOD])


def _note(
    delivery: Delivery,
    period: str,
    month: Control,
    placed: Placed | None,
    before: Found | None,
    now: datetime,
) -> tuple[object, ...]:
    refresh = _refresh(delivery, period)
    return (
        period,
        delivery.label,
        delivery.layout.format.value,
        refresh.execution,
        refresh.files,
        month.lines,
        month.lines_without_cost,
        placed.quarantined if placed else 0,
        month.billed,
        before.billed_cost if before else None,
        "true" if delivery.simulated else "false",
        now.replace(tzinfo=None),
        settled_on(period) if period != UNKNOWN_PERIOD else None,
        *delivery.kafka.asked,
    )


def _of_files(
    delivery: Delivery, period: str, placed: Placed | None
) -> tuple[str, str | None, str | None]:
    """Return which files a month was read from, what told its Kafka, and its currency."""
    told_by = delivery.kafka.told_by(settled_on(period)) if period != UNKNOWN_PERIOD else None
    currency = next(iter(placed.currencies), None) if placed else None
    return _refresh(delivery, period).fingerprint, told_by, currency


def _refresh(delivery: Delivery, period: str) -> Refresh:
    return delivery.refreshes.get(period, Refresh("", fingerprint=delivery.fingerprint))


def found_tags(tagged: Iterable[Found]) -> list[Found]:
    """Return TAGS_FOUND of what workers counted: month, key, value, charges and cost of each."""
    found = []
    for period, rows in grouped(tagged, lambda row: row.billing_period).items():
        keys = [
            _found_tag(period, key, own)
            for key, own in grouped(map(_tagged, rows), _key_of).items()
        ]
        keys.sort(key=lambda row: (not row.names_kafka, -row.billed_cost, row.key))
        found += keys[:KEYS_KEPT]
    return found


def _key_of(tag: Found) -> str:
    return str(tag.key)


def _tagged(row: Found) -> Found:
    key, value = _shortened_text(_PREFIX.sub("", row.key)), _shortened_text(row.value)
    names_kafka = bool(KAFKA_WORDS.search(key) or KAFKA_WORDS.search(value))
    return _Tag(key, value, names_kafka, row.charges, Decimal(row.billed_cost))


def _found_tag(period: str, key: str, tags: list[Found]) -> Found:
    values = grouped(tags, lambda tag: (tag.value, tag.names_kafka))
    costs = {known: summed(own, "billed_cost") for known, own in values.items()}
    value, names_kafka = max(costs, key=lambda known: (known[1], costs[known]))
    charges = sum(tag.charges for tag in tags)
    return _TagFound(
        period, key, value, names_kafka, len(costs), charges, summed(tags, "billed_cost")
    )


def _shortened_text(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\N{HORIZONTAL ELLIPSIS}"


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
