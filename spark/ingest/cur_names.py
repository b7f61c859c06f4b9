"""Knows what the columns of a Cost and Usage Report are called, in CUR 2.0 and everywhere else.

Legacy CUR names a column lineItem/UsageType in csv and line_item_usage_type in Parquet, as CUR 2.0
does; databases and tools that take no slash have names of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from spark.ingest.layout import letters
from spark.ingest.lines import APART
from spark.rules import amortise
from spark.tag_keys import OURS, KafkaTags, column_spellings, export_key

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

    Of tags that differ by case alone (spark.ingest.lines) one written as it is asked for is meant.
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
