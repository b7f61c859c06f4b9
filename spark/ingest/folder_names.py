"""Reads what folders are named for, where no column says it: `key=value`, or an account's number.

Athena, Hive and Spark take the columns that a table is partitioned by out of its files; people put
each account's bill into a folder of its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.ingest.delivery import letters

ACCOUNT = re.compile(r"^\d{12}$")
# A folder's key that means a line's account, by its letters.
ACCOUNT_KEYS = ("account", "accountid", "accountnumber", "linkedaccount", "linkedaccountid")
# And one that means a line's month, as Data Exports and Glue partition a bill.
MONTH_KEY = "billingperiod"
NOTHING = "__HIVE_DEFAULT_PARTITION__"


def columns_of_folders(place: str, addresses: Iterable[str], frame: DataFrame) -> dict[str, str]:
    """Return the columns that folders say and no file has, each with the pattern that finds it.

    `place` is the folder that was named, `frame` what its files hold.
    """
    known = {letters(name) for name in frame.columns}
    is_focus = not known.isdisjoint({"billedcost", "effectivecost"})
    account, month = ("line_item_usage_account_id", "bill_billing_period_start_date")
    if is_focus:
        account, month = "SubAccountId", "BillingPeriodStart"
    called = {**dict.fromkeys(ACCOUNT_KEYS, account), MONTH_KEY: month}
    patterns: dict[str, str] = {}
    for folder in sorted({address.removeprefix(place).rpartition("/")[0] for address in addresses}):
        for part in folder.split("/"):
            key, equals, _ = part.partition("=")
            if equals:
                name = called.get(letters(key), key)
                patterns.setdefault(name, rf"/{re.escape(key)}=([^/]*)/")
            elif ACCOUNT.match(part):
                patterns.setdefault(account, r"/(\d{12})/")
    return {name: by for name, by in patterns.items() if letters(name) not in known}


def with_columns(frame: DataFrame, patterns: dict[str, str]) -> DataFrame:
    """Return the lines with what their folders say."""
    return frame.withColumns({name: _value(pattern) for name, pattern in patterns.items()})


def _value(pattern: str) -> Column:
    # An address is written as a URI here, and Hive and Spark escape a time's colons before that.
    value = _decoded(_decoded(F.regexp_extract(F.input_file_name(), pattern, 1)))
    return F.when(~value.isin("", NOTHING), value)


def _decoded(written: Column) -> Column:
    """Return a text without escapes, or as it is where its signs of percent are no escapes."""
    kept = F.replace(written, F.lit("+"), F.lit("%2B"))
    return F.coalesce(F.try_url_decode(kept), written)
