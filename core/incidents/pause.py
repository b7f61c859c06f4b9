"""A stop on purpose: who paused a cluster, why, and until when.

While it holds nothing new is drained or terminated: hooks keep beating, drains that run end, and
everything stays visible. A two-minute warning is drained all the same, since EC2 takes it anyway.
core.incidents.decide and planned ask it, and handlers.incidents.act once more directly before it
acts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from core.fields import part
from core.window import clock

UNREADABLE = "a newer release wrote it, and this one cannot read why"


@dataclass(frozen=True, slots=True)
class Pause:
    """One pause of a cluster."""

    actor: str
    because: str
    since: float  # epoch seconds
    until: float | None = None  # None: until somebody resumes

    def holds(self, now: float) -> bool:
        return self.until is None or now < self.until

    @property
    def unreadable(self) -> bool:
        """Say whether a newer release wrote it, in a shape that this one does not know."""
        return self.because == UNREADABLE

    @property
    def sentence(self) -> str:
        end = "until somebody resumes" if self.until is None else f"until {clock(self.until)}"
        why = self.because.rstrip(".")
        return f"Paused by {self.actor} since {clock(self.since)}, {end}: {why}."


def to_document(pause: Pause | None) -> dict[str, Any]:
    return {"pause": None if pause is None else asdict(pause)}


def from_document(document: object) -> Pause | None:
    """Read what any release wrote; a pause that cannot be read holds until somebody resumes."""
    if not document:
        return None
    stored = document.get("pause", UNREADABLE) if isinstance(document, dict) else UNREADABLE
    if stored is None:
        return None
    said = part(stored)
    since, until = said.get("since"), said.get("until")
    return Pause(
        actor=str(said.get("actor") or "somebody"),
        because=str(said.get("because") or UNREADABLE),
        since=since if isinstance(since, int | float) else 0.0,
        until=until if isinstance(until, int | float) else None,
    )
