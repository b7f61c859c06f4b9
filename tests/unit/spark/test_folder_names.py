"""What the folders of a bill say that its files do not: a month, an account, any column."""

from __future__ import annotations

from spark.ingest.layout import letters
from spark.ingest.source import said_by_folders
from tests.every_case import every_case

CUR = ("line_item_unblended_cost", "bill_billing_period_start_date", "line_item_usage_account_id")
FOCUS = ("BilledCost", "BillingPeriodStart", "SubAccountId")


@every_case(
    ("columns", "folder", "said"),
    [
        (CUR[:1], "BILLING_PERIOD=2026-11", {CUR[1]: "2026-11"}),
        (FOCUS[:1], "billing_period=2026-11", {FOCUS[1]: "2026-11"}),
        (CUR, "billing_period=2026-11", {}),
        (CUR[:2], "account_id=123456789012", {CUR[2]: "123456789012"}),
        (FOCUS[:2], "123456789012/x", {FOCUS[2]: "123456789012"}),
        (CUR, "team=web", {"team": "web"}),
        (CUR, "plain", {}),
    ],
)
def test_a_folder_says_what_no_column_of_its_files_does(
    columns: tuple[str, ...], folder: str, said: dict[str, str]
) -> None:
    known = map(letters, columns)
    assert said_by_folders("/bill", f"/bill/{folder}/part-0.parquet", known) == said
