"""Describes when planned work may be done."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from core.cluster.fields import Frozen, each_once
from core.window import Window

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


class Maintenance(Frozen):
    """The window for what can wait: rotations, and nodes that AWS will take later."""

    days: Annotated[tuple[Day, ...], Field(min_length=1)] = (
        "mon",
        "tue",
        "wed",
        "thu",
        "fri",
        "sat",
        "sun",
    )
    """The days on which it opens, in UTC."""
    start_utc: Annotated[str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
    """When it opens, as in 03:00."""
    duration_minutes: Annotated[int, Field(ge=30, le=1440)] = 120
    """How long it stays open; a replacement that has begun is not stopped at its end."""

    @field_validator("days")
    @classmethod
    def _names_each_day_once(cls, value: tuple[Day, ...]) -> tuple[Day, ...]:
        return each_once(value)

    @property
    def start_minute(self) -> int:
        """Return when it opens, in minutes after midnight."""
        hours, _, minutes = self.start_utc.partition(":")
        return int(hours) * 60 + int(minutes)

    @property
    def window(self) -> Window:
        """Return the window as decisions know it."""
        return Window(
            days=frozenset(self.days),
            start_minute=self.start_minute,
            duration_minutes=self.duration_minutes,
        )
