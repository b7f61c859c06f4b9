"""Bills written by hand as text, and what comes of reading one."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.ground.errors import InvalidInput
from spark import tables
from spark.ingest import bill
from spark.jobs import ingest
from spark.tables import ParquetStore
from spark.tag_keys import KafkaTags

NOW = datetime(2026, 12, 20, tzinfo=UTC)
LEGACY: Mapping[str, str] = {
    "identity/LineItemId": "x",
    "bill/BillingPeriodStartDate": "2026-11-01T00:00:00Z",
    "lineItem/UsageAccountId": "123456789012",
    "lineItem/LineItemType": "Usage",
    "lineItem/UsageStartDate": "2026-11-20T12:00:00Z",
    "lineItem/ProductCode": "AmazonEC2",
    "lineItem/UsageType": "BoxUsage:m7i.large",
    "lineItem/UsageAmount": "1.0000000000",
    "lineItem/CurrencyCode": "USD",
    "lineItem/UnblendedCost": "1.2500000000",
    "lineItem/LineItemDescription": "an hour",
    "pricing/unit": "Hrs",
    "resourceTags/user:team": "",
}


def legacy(rows: Sequence[Mapping[str, str]], *, without: Sequence[str] = ()) -> str:
    known = dict.fromkeys([*LEGACY, *(name for row in rows for name in row)])
    names = [name for name in known if name not in without]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([{**LEGACY, **row}.get(name, "") for name in names] for row in rows)
    return text.getvalue()


def written(folder: Path, content: str | bytes, name: str = "bill.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def ingested(
    path: Path,
    kafka: KafkaTags | None = None,
    *,
    cluster: str | None = None,
) -> tuple[ingest.Ingested, list[Any], ParquetStore]:
    store = ParquetStore(str(path.parent / "tables"))
    delivery = bill.read(path, kafka=kafka or KafkaTags())
    came = ingest.run(delivery, store, now=NOW, cluster=cluster)
    return came, store.rows(tables.USAGE), store


def refused(path: Path) -> str:
    with pytest.raises(InvalidInput) as raised:
        ingested(path)
    return str(raised.value)
