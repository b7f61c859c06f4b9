"""What a recorded function knows as it starts: its environment, and what is kept for it."""

from __future__ import annotations

from typing import Any

from handlers.store.kept import complete
from infra.functions.kept import VARIABLE
from tests.unit.infra.kept_items import KeptItems
from tests.unit.infra.recording import Recorded

FUNCTION = "lambda/function:Function"


def told(recorded: Recorded, function: str) -> dict[str, str]:
    """Return the variables of a function, with those in the ledger's table."""
    variables: dict[str, Any] = recorded.one(FUNCTION, function).inputs["environment"]["variables"]
    client: Any = KeptItems(recorded)
    found = complete(variables, client=client)
    return {name: value for name, value in found.items() if name != VARIABLE}
