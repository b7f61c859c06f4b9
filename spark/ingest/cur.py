"""Reads a Cost and Usage Report: CUR 2.0, or the legacy report in either spelling of its columns.

Legacy CUR names a column lineItem/UsageType in csv and line_item_usage_type in Parquet; databases
and tools that take no slash have names of their own. All are read under CUR 2.0's name, and only
the columns that later rooms need.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from core.ground.errors import InvalidInput
from spark.ingest.columns import Amounts, Numbers
from spark.ingest.layout import (
    Cells,
    Costs,
    Format,
    Layout,
    left_out,
    letters,
    places,
    require_columns,
    require_each_once,
    text_or_none,
)
from spark.ingest.pieces import APART
from spark.rules import amortise
from spark.rules.line import AWS
from spark.tag_keys import OURS, TAG_COLUMNS, KafkaTags, column_spellings, export_key, tag_columns

# Split cost allocation data: what a pod had of its node.
PARENT = "split_line_item_parent_resource_id"
SPLIT, UNUSED = "split_line_item_split_cost", "split_line_item_unused_cost"
SPLIT_NET = {SPLIT: "split_line_item_net_split_cost", UNUSED: "split_line_item_net_unused_cost"}
SPLIT_COLUMNS = (PARENT, SPLIT, UNUSED)
# AWS's own tags of a pod, which need no activation to be in the export's map.
EKS_TAGS = {
    "eks_cluster": "aws:eks:cluster-name",
    "namespace": "aws:eks:namespace",
    "workload_type": "aws:eks:workload-type",
    "workload": "aws:eks:workload-name",
}
OF_LINE = (
    "bill_billing_period_start_date",
    "line_item_usage_start_date",
    "line_item_resource_id",
    "line_item_line_item_type",
    "line_item_operation",
    "line_item_usage_type",
    "line_item_usage_amount",
)
# The columns that such a tag may have for itself, and its key.
EKS_TAG_COLUMNS = {name: key for key in EKS_TAGS.values() for name in column_spellings(key)}
NEEDED = (
    amortise.UNBLENDED,
    "bill_billing_period_start_date",
    "line_item_usage_start_date",
    "line_item_usage_account_id",
    "line_item_currency_code",
    "line_item_line_item_type",
    "line_item_product_code",
    "line_item_usage_type",
    "line_item_operation",
    "line_item_line_item_description",
    "line_item_usage_amount",
    "line_item_availability_zone",
    "pricing_unit",
)
ENTITY = "bill_billing_entity"
OPTIONAL = (*amortise.COLUMNS, *amortise.NET_COLUMNS, ENTITY)
TAG_MAPS = ("resource_tags", "tags")
TAG_PLACES = ("resourceTags/user:", "resourceTags/")
GROUPS = {
    "line_item": "lineItem",
    "savings_plan": "savingsPlan",
    "split_line_item": "splitLineItem",
    **{name: name for name in ("identity", "bill", "product", "pricing", "reservation")},
}
# Only legacy CUR has these; CUR 2.0 keeps them in its product map.
LEGACY_COLUMNS = ("lineitem/usagetype", "product_region", "product_product_name")
USAGE_TYPE = "lineitemusagetype"
OWN_TAG, CATEGORY = "resourcetags/", "costCategory"
# A column of a tag as a tool calls it that takes no slash: resourcetags_user_team (Redshift).
SPREAD_TAG = re.compile(r"(?i)resourcetags[_.]")
KNOWN = {
    letters(name): name
    for name in (
        *NEEDED,
        "line_item_resource_id",
        *OPTIONAL,
        *SPLIT_COLUMNS,
        *SPLIT_NET.values(),
        TAG_MAPS[0],
    )
}


def is_legacy(columns: list[str]) -> bool:
    return any(
        name.lower() in LEGACY_COLUMNS
        or name.lower().startswith("resource_tags_")
        or (letters(name) == USAGE_TYPE and name.lower() != "line_item_usage_type")
        or SPREAD_TAG.match(name)
        for name in columns
    )


def modern_name(legacy: str) -> str:
    """Return CUR 2.0's name of a legacy column: lineItem/UsageType -> line_item_usage_type.

    Redshift calls it lineitem_usagetype, other tools lineItem.UsageType: of a column that is known
    the letters count. A tag is told from another by what stands between its words.
    """
    if legacy.lower().startswith(OWN_TAG):
        return legacy
    if tag := SPREAD_TAG.match(legacy):
        return f"resource_tags_{export_key(legacy[tag.end() :]).removeprefix('user_')}"
    known = KNOWN.get(letters(legacy))
    if known is not None or "/" not in legacy:
        return known or legacy
    group, name = legacy.split("/", 1)
    if group.lower() == CATEGORY.lower():
        # All in capitals no letter begins a word.
        group, name = CATEGORY, name.lower() if name.isupper() else name
    words = re.sub(r"([A-Z])", r"_\1", f"{group}/{name}").replace("/_", "/").lower()
    return re.sub(r"[^0-9a-z]+", "_", words).strip("_")


def modern_names(columns: Iterable[str], kafka: KafkaTags = OURS) -> dict[str, str]:
    """Return what a file's columns are called under CUR 2.0's names.

    Of tags that differ by case alone (spark.ingest.pieces) one written as it is asked for is meant.
    """
    spelled: dict[str, str] = {}
    for name in columns:
        new = modern_name(name)
        # A second column of that name which nobody asked for keeps its own.
        spelled[name] = name if new in spelled.values() else new
    for asked in (f"{place}{key}" for key in kafka.keys for place in TAG_PLACES):
        exact = next((name for name in spelled if APART.sub("", name) == asked), asked)
        first = next((name for name in spelled if name.lower() == asked.lower()), exact)
        if exact in spelled:
            spelled[exact], spelled[first] = spelled[first], spelled[exact]
    return spelled


def legacy_name(modern: str) -> str:
    """Return legacy CUR's name of a column in csv: line_item_usage_type -> lineItem/UsageType."""
    for group, written in GROUPS.items():
        if modern.startswith(f"{group}_"):
            words = modern.removeprefix(f"{group}_").split("_")
            return f"{written}/{''.join(word.capitalize() for word in words)}"
    return modern


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


@dataclass(frozen=True)
class CurLayout(Layout):
    """How the lines of a Cost and Usage Report are read, under CUR 2.0's names.

    `known` are those of its columns, and `called` is what the report itself calls one.
    """

    what: str = ""
    known: frozenset[str] = frozenset()
    called: Callable[[str], str] = str

    format = Format.CUR2
    remedy: ClassVar[str] = _LISTED
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

    @property
    def has_splits(self) -> bool:  # type: ignore[override] # a format's, or a bill's
        return self.known.issuperset(SPLIT_COLUMNS)

    def places(self, columns: Sequence[str]) -> dict[str, str]:
        called = {new: old for old, new in modern_names(columns, self.kafka).items()}
        split = (*SPLIT_COLUMNS, *SPLIT_NET.values())
        named = (*self.wanted, *split, *EKS_TAG_COLUMNS)
        wanted = [name for name in named if name not in self.own]
        found = {name: called[place] for name, place in places(wanted, called).items()}
        own = _own_tags(columns, self.kafka)
        return {**found, **{name: own[name] for name in self.own if name in own}}

    def tag_columns(self, columns: Sequence[str]) -> dict[str, str]:
        called = {new: old for old, new in modern_names(columns).items()}
        return {new: old for new, old in called.items() if new.lower().startswith(_TAG_COLUMNS)}

    def notes_of(self, kinds: Collection[str]) -> list[str]:
        """Name the net columns that kinds of lines lack; those that lack others are refused."""
        problems = [
            f"{self.what} has {kind} lines but no column {self.called(name)}, without which their "
            f"amortised cost is unknown; {self.remedy}."
            for kind in sorted(kinds & amortise.NEEDED_FOR.keys())
            for name in amortise.NEEDED_FOR[kind]
            if name not in self.known
        ]
        if problems:
            raise InvalidInput(problems)
        if self.known.isdisjoint(amortise.NET_COLUMNS):
            return []
        needed = {"Usage": (COST,), **amortise.NEEDED_FOR}
        return [
            f"The bill has net columns but no column {self.called(net)}, so that net cost is "
            f"without the discounts of its {kind} lines."
            for kind in sorted(kinds & needed.keys())
            for net in map(amortise.NET_OF.get, needed[kind])
            if net is not None and net not in self.known
        ]

    def costs(self, kinds: Numbers, amounts: Mapping[str, Amounts]) -> Costs:
        used, formula = np.divmod(kinds, len(amortise.FORMULAS))
        return Costs(
            quantity=amounts["line_item_usage_amount"].where(used > 0),
            billed=amounts[COST],
            amortised=amortise.spread_cost(formula, amounts),
            net=amortise.spread_cost(formula, amortise.net_amounts(amounts)),
            has_net=amounts[amortise.NET_UNBLENDED].known,
        )


@dataclass(frozen=True)
class LegacyLayout(CurLayout):
    """The same of the report before CUR 2.0."""

    format = Format.CUR
    remedy = LEGACY_REMEDY


def opened(
    columns: Sequence[str], what: str, kafka: KafkaTags, *, is_data_export: bool
) -> CurLayout:
    """Return how a report is read by its columns; one that lacks some is refused."""
    is_old = is_legacy(list(columns)) and not is_data_export
    known = frozenset(modern_name(name).lower() for name in columns)
    sorted_by = (*TAG_MAPS, CATEGORIES) if kafka.is_own else TAG_MAPS
    maps = tuple(name for name in sorted_by if name in known)
    spread = [name for key in kafka.keys for name in tag_columns(key, known)]
    wanted = {*KNOWN.values(), *maps, *spread}
    require_each_once(columns, lambda name: modern_name(name).lower(), wanted, what)
    has_tags = bool(maps or spread) or any(name.startswith(_TAG_COLUMNS) for name in known)
    if not has_tags and not is_old:
        raise InvalidInput([f"{what} has no column resource_tags; {_NO_TAGS}."])
    called = legacy_name if any("/" in name for name in columns) else str
    required = REQUIRED
    if is_old:
        required = {name: LEGACY_REMEDY for name in REQUIRED if name not in WITH_RESOURCES}
    require_columns(required, modern_names(columns, kafka).values(), what, called)
    kind = LegacyLayout if is_old else CurLayout
    return kind(
        kafka,
        maps,
        tuple(_own_tags(columns, kafka)),
        tuple(_lacking(known, called, has_tags=has_tags)),
        what,
        known,
        called,
    )


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


def _lacking(known: Collection[str], called: Callable[[str], str], *, has_tags: bool) -> list[str]:
    """Say what cannot be told for want of a column that the export leaves out."""
    has_resources = "line_item_resource_id" in known
    # A legacy report has the others of these with resource ids alone.
    effects = {n: LACKING[n] for n in LACKING if has_resources or n == ENTITY}
    return [
        *([] if has_resources else [NO_RESOURCES]),
        *left_out(effects, known, called),
        *([] if has_tags else [NO_TAGS]),
    ]


@lru_cache(1 << 12)
def _provider(entity: str | None) -> str:
    """Return who sells: AWS by whatever local name, or a seller of its marketplace."""
    seller = text_or_none(entity)
    if seller is None or seller == AWS_NAME:
        return AWS_NAME
    is_known = AWS.search(seller) or MARKETPLACE.search(seller)
    return seller if is_known else f"{AWS_NAME} ({seller})"
