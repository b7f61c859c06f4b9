"""Reads what folders are named for, where no column says it: `key=value`, or an account's number.

Athena, Hive and Spark take the columns that a table is partitioned by out of its files; people put
each account's bill into a folder of its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from urllib.parse import unquote

from spark.ingest.layout import letters
from spark.ingest.pieces import Piece

ACCOUNT = re.compile(r"^\d{12}$")
# A folder's key that means a line's account, by its letters.
ACCOUNT_KEYS = ("account", "accountid", "accountnumber", "linkedaccount", "linkedaccountid")
# And one that means a line's month, as Data Exports and Glue partition a bill.
MONTH_KEY = "billingperiod"
NOTHING = "__HIVE_DEFAULT_PARTITION__"


def with_said(pieces: Sequence[Piece], place: str) -> list[Piece]:
    """Return pieces with what the folders below `place` say of their lines.

    A column that any file has counts before its folder's name.
    """
    known = {letters(name) for piece in pieces for name in piece.columns}
    return [replace(piece, said=said_by_folders(place, piece.address, known)) for piece in pieces]


def said_by_folders(place: str, address: str, known: Iterable[str]) -> dict[str, str]:
    """Return what a file's folders say of its lines, of columns that no file has.

    `place` is the folder that was named, `known` the letters of the columns that files have.
    """
    held = set(known)
    is_focus = not held.isdisjoint({"billedcost", "effectivecost"})
    account, month = ("line_item_usage_account_id", "bill_billing_period_start_date")
    if is_focus:
        account, month = "SubAccountId", "BillingPeriodStart"
    called = {**dict.fromkeys(ACCOUNT_KEYS, account), MONTH_KEY: month}
    said: dict[str, str] = {}
    for part in address.removeprefix(place).rpartition("/")[0].split("/"):
        key, equals, value = part.partition("=")
        if equals:
            said.setdefault(called.get(letters(key), key), _decoded(value))
        elif ACCOUNT.match(part):
            said.setdefault(account, part)
    return {
        name: value
        for name, value in said.items()
        if letters(name) not in held and value not in ("", NOTHING)
    }


def _decoded(written: str) -> str:
    """Return a text without escapes: Hive and Spark escape a time's colons."""
    return unquote(written)
