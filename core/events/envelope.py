"""EventBridge's frame around an event: the fields every reader asks for, read the same way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict

from core.events.announcements import Ignored
from core.fields import LONGEST_FIELD, Fields, digest, display_text, epoch, readable, text


class Identity(TypedDict):
    """The fields of an announcement that come from its frame."""

    event_id: str
    account: str | None
    region: str | None
    occurred_at: float | None
    body: str


@dataclass(frozen=True)
class Envelope:
    """One message: its frame, its detail (of a bare lifecycle action: itself), its bytes."""

    frame: Fields
    detail: Fields
    body: str

    @cached_property
    def source(self) -> str | None:
        return text(self.frame, "source")

    @cached_property
    def detail_type(self) -> str | None:
        return text(self.frame, "detail-type")

    @cached_property
    def event_id(self) -> str:
        """Return EventBridge's id, a direct notification's request, or a digest of the bytes."""
        return text(self.frame, "id") or text(self.detail, "RequestId") or digest(self.body)

    @property
    def identity(self) -> Identity:
        return Identity(
            event_id=self.event_id,
            account=text(self.frame, "account") or text(self.detail, "AccountId"),
            region=text(self.frame, "region"),
            occurred_at=epoch(self.frame.get("time", self.frame.get("Time"))),
            body=self.body,
        )

    @property
    def resources(self) -> tuple[str, ...]:
        """Return the resources named; a reservation's warning names its one as plain text."""
        named = self.frame.get("resources")
        listed = named if isinstance(named, list) else [named]
        return tuple(readable(v)[:LONGEST_FIELD] for v in listed if isinstance(v, str))

    @property
    def name(self) -> str:
        """Name the message by its source and detail-type, to start a sentence."""
        if self.source is None and self.detail_type is None:
            return "A message without source and detail-type"
        return f"The event {display_text(self.detail_type)} of source {display_text(self.source)}"

    def ignored(self, reason: str) -> Ignored:
        return Ignored(reason, self.body)

    def says(self, what: str) -> Ignored:
        """Ignore the message for what it says or lacks: the sentence begins with its name."""
        return Ignored(f"{self.name} {what}", self.body)
