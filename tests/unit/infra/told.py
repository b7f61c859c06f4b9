"""What a recorded function is told: its environment, and what is kept for it."""

from __future__ import annotations

from typing import Any, TypeVar

from handlers.store.table import read_settings
from tests.unit.infra.kept_items import KeptItems
from tests.unit.infra.recording import Recorded

FUNCTION = "lambda/function:Function"
T = TypeVar("T")


def told(recorded: Recorded, function: str, kind: type[T]) -> T:
    """Return a function's settings as it reads them when it starts."""
    client: Any = KeptItems(recorded)
    return read_settings(kind, variables(recorded, function), client=client)


def variables(recorded: Recorded, function: str) -> dict[str, str]:
    return dict(recorded.one(FUNCTION, function).inputs["environment"]["variables"])
