"""Refuses what Data Exports does not take of a query: table, columns, the table's settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from local.refusals.fields import values
from local.refusals.limits import first_of, limit
from local.refusals.refusal import Refusal, Wanted
from local.refusals.regions import regions

_EXPORTS = "https://docs.aws.amazon.com/cur/latest/userguide/"
_BILL = "COST_AND_USAGE_REPORT"
_YES_OR_NO = ("TRUE", "FALSE")
_TIMES = ("HOURLY", "DAILY", "MONTHLY")
# Of each table the settings that it has, each with its words; none: any text.
_SETTINGS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    _BILL: {
        "BILLING_VIEW_ARN": (),
        "INCLUDE_CALLER_IDENTITY_ARN": _YES_OR_NO,
        "INCLUDE_CAPACITY_RESERVATION_DATA": _YES_OR_NO,
        "INCLUDE_IAM_PRINCIPAL_DATA": _YES_OR_NO,
        "INCLUDE_MANUAL_DISCOUNT_COMPATIBILITY": _YES_OR_NO,
        "INCLUDE_RESOURCES": _YES_OR_NO,
        "INCLUDE_SPLIT_COST_ALLOCATION_DATA": _YES_OR_NO,
        "TIME_GRANULARITY": _TIMES,
    },
}
_TABLES = frozenset(
    {
        *(_BILL, "CARBON_EMISSIONS", "COST_AND_USAGE_DASHBOARD", "COST_AND_USAGE_REPORT_PROFORMA"),
        *("COST_OPTIMIZATION_RECOMMENDATIONS", "FOCUS_1_0_AWS", "FOCUS_1_0_AWS_PREVIEW"),
        *("FOCUS_1_2_AWS",),
    }
)
# How the columns of COST_AND_USAGE_REPORT begin.
_COLUMN = re.compile(
    r"(bill|capacity_reservation|cost_category|discount|iam_principal|identity|line_item|pricing|"
    r"product|reservation|resource_tags|savings_plan|split_line_item|tags)(_\w+)?"
)
_QUERY = re.compile(
    r"\s*SELECT\s+(.+?)\s+FROM\s+(\w+)(\s+WHERE\s.+)?\s*;?\s*", re.IGNORECASE | re.DOTALL
)


@limit("bcmdata/export:Export", source=f"{_EXPORTS}table-dictionary-cur2.html")
def query_of_an_export(wanted: Wanted) -> Iterator[Refusal]:
    """Columns of a table that there is, and that table's own settings."""
    query = wanted.inputs["export"]["dataQueries"][0]
    found = _QUERY.fullmatch(str(query.get("queryStatement") or ""))
    table = found[2].upper() if found else ""
    told = query.get("tableConfigurations") or {}
    wrong = _of_columns(found[1]) if found and table == _BILL else ""
    yield from first_of(
        "CreateExport",
        "ValidationException",
        (found is None, "The query statement is not a SELECT from one table.", "export"),
        (table not in _TABLES, f"Table {table} does not exist.", "export"),
        (wrong, f"Column {wrong} does not exist in table {table}.", "export"),
        (
            set(told) - {table},
            f"TableConfigurations are of {sorted(told)}, and the query is of {table}.",
            "export",
        ),
        *((True, each, "export") for each in _of_settings(table, told.get(table) or {})),
    )


def _of_columns(selected: str) -> str:
    """Return the first name that can be no column of the bill's table; nothing: none."""
    plain = re.sub(r"'[^']*'|\[[^\]]*\]", "", selected)
    for item in re.split(r",(?![^(]*\))", plain):
        name = re.split(r"\s+AS\s+", item.strip(), flags=re.IGNORECASE)[0].strip().strip('"')
        column = name.partition(".")[0]
        if re.fullmatch(r"\w+", column) and not _COLUMN.fullmatch(column.lower()):
            return column
    return ""


def _of_settings(table: str, told: Mapping[str, Any]) -> Iterator[str]:
    known = _SETTINGS.get(table)
    for key, value in told.items() if known is not None else ():
        allowed = (known or {}).get(key)
        if allowed is None:
            yield f"Table property {key} is not of {table}."
        elif allowed and str(value) not in allowed:
            yield f"Value {value} of table property {key} is none of {', '.join(allowed)}."


@limit(
    "bcmdata/export:Export",
    source="https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_DataExports_S3Destination.html",
)
def region_of_an_export(wanted: Wanted) -> Iterator[Refusal]:
    """One that there is."""
    for region in values(
        wanted.inputs, "export.destinationConfigurations.*.s3Destinations.*.s3Region"
    ):
        if region not in regions():
            message = f"The region {region} of the S3 destination is not valid."
            yield Refusal("CreateExport", "ValidationException", message, "export")
