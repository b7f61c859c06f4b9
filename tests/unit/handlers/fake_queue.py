"""A queue in memory: the handlers' Queue."""

from __future__ import annotations

import json

from handlers.adapters.aws import Queue


class FakeQueue(Queue):
    """Messages in the order they were sent, each with its delay; pages lie beside them."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, float]] = []
        self.pages: list[dict[str, str]] = []

    def send(self, body: str, *, delay_seconds: float = 0.0) -> None:
        if body.startswith('{"page":'):
            self.pages.append(json.loads(body))
        else:
            self.sent.append((body, delay_seconds))
