"""Takes steps of which none waits for another: what refuses one of them keeps none of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from botocore.exceptions import BotoCoreError, ClientError

from core.errors import StillwaterError


def take_each(steps: Iterable[Callable[[], object]]) -> None:
    """Take every step; raises the first failure once all have been tried."""
    first: Exception | None = None
    for step in steps:
        try:
            step()
        except (StillwaterError, BotoCoreError, ClientError) as error:
            first = first or error
    if first is not None:
        raise first
