"""Reads a Cost and Usage Report: CUR 2.0, or the legacy report in either spelling of its columns.

Legacy CUR names a column lineItem/UsageType in csv and line_item_usage_type in Parquet; both are
read under CUR 2.0's name. Only the columns that later rooms need are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial

import numpy as np

from core.ground.errors import InvalidInput
from spark.ingest import cur_names
from spark.ingest.amounts import Amounts, Numbers
from spark.ingest.cur_names import (
    ENTITY,
    KNOWN,
    NEEDED,
    TAG_MAPS,
    is_legacy,
    legacy_name,
    modern_name,
    modern_names,
)
from spark.ingest.delivery import Opened
from spark.ingest.layout import (
    Cells,
    Costs,
    Format,
    Layout,
    left_out,
    places,
    require_columns,
    require_each_once,
    text_or_none,
)
from spark.rules import amortise
from spark.rules.line import AWS
from spark.tag_keys import TAG_COLUMNS, KafkaTags, column_spellings, tag_columns

COST = amortise.UNBLENDED
_LISTED = "list it in the export's SELECT from COST_AND_USAGE_REPORT"
_RESOURCES = f"set INCLUDE_RESOURCES = TRUE for the table and {_LISTED}"
REQUIRED = {**dict.fromkeys(NEEDED, _LISTED), "line_item_resource_id": _RESOURCES}
# A legacy report has these only with "Include resource IDs".
WITH_RESOURCES = ("line_item_resource_id", "line_item_availability_zone", "line_item_operation")
LEGACY_REMEDY = (
    "choose it in the report's content (Billing, Cost and Usage Reports), and wait for the next "
    "delivery"
)
NO_RESOURCES = (
    "The report has no resource ids, so the money is read by component, without single volumes "
    'and instances. Choose "Include resource IDs" in the report\'s content.'
)
# Beside tags of their own people sort a bill by cost categories.
CATEGORIES = "cost_category"
_NO_TAGS = f"{_LISTED} and activate the tags as cost allocation tags"
# "AWS" or "AWS Marketplace" (data dictionary, bill_billing_entity), and local sellers of either; a
# marketplace's seller is no part of AWS's own meters.
AWS_NAME, MARKETPLACE = "AWS", re.compile(r"(?i)marketplace")
# What is not known where an export leaves a column out that no line needs.
LACKING = {
    ENTITY: "what a marketplace sold is not told from what AWS did",
    "line_item_availability_zone": "a pool's instances are not told apart by their zone",
    "line_item_operation": "pods' shares and load balancers' bytes are not told apart",
}
NO_TAGS = (
    "The bill has no column of tags: no tag can say whose a charge is. Activate the tags as cost "
    "allocation tags, and have the export include them."
)
AMOUNTS = (*amortise.AMOUNTS, "line_item_usage_amount")
SHOWN = (
    COST,
    "bill_billing_period_start_date",
    "line_item_usage_start_date",
    "line_item_usage_type",
    "line_item_resource_id",
    "line_item_line_item_description",
)
# A query that takes a tag out of its map calls it user_team, where it gives it no other name.
_TAG_COLUMNS = (*TAG_COLUMNS, "user_")
# Line types whose usage type says all there is to say; the others keep their description.
PLAIN_KINDS = (
    "Usage",
    "SavingsPlanCoveredUsage",
    "SavingsPlanNegation",
    "DiscountedUsage",
    "FlatRateSubscription",
)
USED = ("Usage", "SavingsPlanCoveredUsage", "DiscountedUsage", "FlatRateSubscription")


class CurLayout(Layout):
    """How the lines of a Cost and Usage Report are read, under CUR 2.0's names."""

    texts = (
        ENTITY,
        "line_item_usage_account_id",
        "line_item_currency_code",
        "line_item_line_item_type",
        "line_item_product_code",
        "line_item_usage_type",
        "line_item_operation",
        "line_item_line_item_description",
        "pricing_unit",
        "line_item_resource_id",
        "line_item_availability_zone",
        amortise.RESERVATION,
    )
    amounts = AMOUNTS
    cost = COST
    numbers = (COST,)
    present = ("line_item_currency_code", "line_item_line_item_type")
    day = "line_item_usage_start_date"
    month = "bill_billing_period_start_date"
    resource = "line_item_resource_id"
    zone = "line_item_availability_zone"
    meters = ("line_item_usage_type",)
    shown = SHOWN

    def line(self, cells: Cells) -> tuple[str | None, ...]:
        kind = cells["line_item_line_item_type"]
        description = cells["line_item_line_item_description"]
        return (
            _provider(cells[ENTITY]),
            cells["line_item_usage_account_id"],
            cells["line_item_currency_code"],
            kind,
            cells["line_item_product_code"],
            cells["line_item_usage_type"],
            cells["line_item_operation"],
            None if kind is None or kind in PLAIN_KINDS else description,
            cells["pricing_unit"],
            cells["line_item_resource_id"],
            cells["line_item_availability_zone"],
        )

    def kind(self, cells: Cells) -> int:
        kind = cells["line_item_line_item_type"]
        is_used = len(amortise.FORMULAS) if kind in USED else 0
        return is_used + amortise.formula_of(
            kind,
            cells["line_item_product_code"],
            cells["line_item_line_item_description"],
            cells[amortise.RESERVATION],
        )

    def costs(self, kinds: Numbers, amounts: Mapping[str, Amounts]) -> Costs:
        used, formula = np.divmod(kinds, len(amortise.FORMULAS))
        return Costs(
            quantity=amounts["line_item_usage_amount"].where(used > 0),
            billed=amounts[COST],
            amortised=amortise.spread_cost(formula, amounts),
            net=amortise.spread_cost(formula, amortise.net_amounts(amounts)),
            has_net=amounts[amortise.NET_UNBLENDED].known,
        )


def opened(columns: Sequence[str], what: str, kafka: KafkaTags, *, is_data_export: bool) -> Opened:
    """Return how a report is read by its columns; one that lacks some is refused."""
    legacy = is_legacy(list(columns)) and not is_data_export
    own = legacy_name if any("/" in name for name in columns) else str
    required = REQUIRED
    if legacy:
        required = {name: LEGACY_REMEDY for name in REQUIRED if name not in WITH_RESOURCES}
    known = {modern_name(name).lower() for name in columns}
    sorted_by = (*TAG_MAPS, CATEGORIES) if kafka.is_own else TAG_MAPS
    maps = [name for name in sorted_by if name in known]
    spread = [name for key in kafka.keys for name in tag_columns(key, known)]
    wanted = {*KNOWN.values(), *maps, *spread}
    require_each_once(columns, lambda name: modern_name(name).lower(), wanted, what)
    has_tags = bool(maps or spread) or _has_tags(known)
    if not has_tags and not legacy:
        raise InvalidInput([f"{what} has no column resource_tags; {_NO_TAGS}."])
    require_columns(required, modern_names(columns, kafka).values(), what, own)
    tags = _own_tags(columns, kafka)
    layout = CurLayout(kafka, tuple(maps), tuple(tags))
    return Opened(
        layout=layout,
        format=Format.CUR if legacy else Format.CUR2,
        places=partial(_places, layout=layout),
        notes=_lacking(known, own, has_tags=has_tags),
        said_of_kinds=partial(
            _said_of_kinds, known, what, own, LEGACY_REMEDY if legacy else _LISTED
        ),
        spread=_spread_tags,
        has_splits=set(cur_names.SPLIT_COLUMNS) <= known,
    )


def _places(columns: Sequence[str], layout: CurLayout) -> dict[str, str]:
    """Return where a file's columns are that are wanted."""
    called = {new: old for old, new in modern_names(columns, layout.kafka).items()}
    split = (*cur_names.SPLIT_COLUMNS, *cur_names.SPLIT_NET.values(), *cur_names.EKS_TAG_COLUMNS)
    wanted = [name for name in (*layout.wanted, *split) if name not in layout.own]
    found = {name: called[place] for name, place in places(wanted, called).items()}
    own = _own_tags(columns, layout.kafka)
    return {**found, **{name: own[name] for name in layout.own if name in own}}


def _own_tags(columns: Sequence[str], kafka: KafkaTags) -> dict[str, str]:
    """Return the columns that hold one tag each, by the name that it is looked up by."""
    called = {new.lower(): old for old, new in modern_names(columns, kafka).items()}
    own: dict[str, str] = {}
    for key in kafka.keys:
        known = column_spellings(key)
        for spelled in tag_columns(key, called):
            # What is looked up are the names that exports give a tag's column.
            own.setdefault(spelled if spelled in known else known[0], called[spelled])
    return own


def _spread_tags(columns: Sequence[str]) -> dict[str, str]:
    """Return all columns that hold one tag each, also those that nobody looks up."""
    called = {new: old for old, new in modern_names(columns).items()}
    return {new: old for new, old in called.items() if new.lower().startswith(_TAG_COLUMNS)}


def _lacking(known: set[str], own: Callable[[str], str], *, has_tags: bool) -> list[str]:
    """Say what cannot be told for want of a column that the export leaves out."""
    has_resources = "line_item_resource_id" in known
    said = [] if has_resources else [NO_RESOURCES]
    # A legacy report has the others of these with resource ids alone.
    said += left_out({n: LACKING[n] for n in LACKING if has_resources or n == ENTITY}, known, own)
    if not has_tags:
        said.append(NO_TAGS)
    return said


def _has_tags(known: Collection[str]) -> bool:
    return any(name in TAG_MAPS or name.startswith(_TAG_COLUMNS) for name in known)


def _said_of_kinds(
    known: set[str],
    what: str,
    own: Callable[[str], str],
    remedy: str,
    kinds: frozenset[str],
) -> list[str]:
    """Name the net columns that these kinds of lines lack; refuse those that lack others."""
    problems = [
        f"{what} has {kind} lines but no column {own(name)}, without which their amortised cost "
        f"is unknown; {remedy}."
        for kind in sorted(kinds & amortise.NEEDED_FOR.keys())
        for name in amortise.NEEDED_FOR[kind]
        if name not in known
    ]
    if problems:
        raise InvalidInput(problems)
    if not known & set(amortise.NET_COLUMNS):
        return []
    needed = {"Usage": (COST,), **amortise.NEEDED_FOR}
    return [
        f"The bill has net columns but no column {own(net)}, so that net cost is without the "
        f"discounts of its {kind} lines."
        for kind in sorted(kinds & needed.keys())
        for net in map(amortise.NET_OF.get, needed[kind])
        if net is not None and net not in known
    ]


@lru_cache(1 << 12)
def _provider(entity: str | None) -> str:
    """Return who sells: AWS by whatever local name, or a seller of its marketplace."""
    seller = text_or_none(entity)
    if seller is None or seller == AWS_NAME:
        return AWS_NAME
    is_known = AWS.search(seller) or MARKETPLACE.search(seller)
    return seller if is_known else f"{AWS_NAME} ({seller})"
