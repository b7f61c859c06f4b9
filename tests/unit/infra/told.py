"""What a recorded function is told: its environment, and what is kept for it."""

import json
from typing import Any, TypeVar

from handlers.store.table import read_settings
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
        return {"ResponseMetadata": {"RequestId": "r"}, **({} if item is None else {"Item": item})}


FUNCTION = "lambda/function:Function"
T = TypeVar("T")


def told(recorded: Recorded, function: str, kind: type[T]) -> T:
    """Return a function's settings as it reads them when it starts."""
    client: Any = KeptItems(recorded)
    return read_settings(kind, variables(recorded, function), client=client)


def variables(recorded: Recorded, function: str) -> dict[str, str]:
    return dict(recorded.one(FUNCTION, function).inputs["environment"]["variables"])
