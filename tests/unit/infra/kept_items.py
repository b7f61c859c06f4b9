"""The items that a program wrote into the ledger's table, as DynamoDB gives them back."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.infra.recording import Recorded


class KeptItems:
    """DynamoDB's GetItem over recorded items."""

    def __init__(self, recorded: Recorded) -> None:
        written = [
            json.loads(r.inputs["item"]) for r in recorded.of("dynamodb/tableItem:TableItem")
        ]
        self._items = {item["pk"]["S"]: item for item in written}

    def get_item(self, **asked: Any) -> dict[str, Any]:
        item = self._items.get(asked["Key"]["pk"]["S"])
        return {} if item is None else {"Item": item}
