"""Takes announcements in: each becomes an incident, a freeze or a record; never nothing.

handlers.incidents.reception answers what is about an instance, handlers.incidents.notices the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import assert_never

from aws_lambda_powertools import Logger

from core.events import (
    Advisory,
    Announcement,
    GroupNotice,
    Ignored,
    Interruption,
    VolumeNotice,
    ZoneNotice,
    parse,
)
from core.events.origin import Home, foreign
from handlers.adapters.apart import take_each
from handlers.incidents.notices import Notices
from handlers.incidents.reception import Reception

logger = Logger(service="stillwater")
# Health names the instances of a whole account: asked for one by one, they would take longer than
# the function may run.
MANY_INSTANCES = 10


@dataclass(frozen=True)
class IntakeDesk:
    """Takes announcements in."""

    reception: Reception
    notices: Notices

    def take(self, body: str, now: float, *, home: Home | None = None) -> None:
        """Give every announcement in one message its place; nothing is lost, nothing counts twice.

        `home` is whose announcements count; None: everybody's.

        Raises the first failure once all are answered, Conflict where others keep changing the
        same incident: SQS then delivers again.
        """
        found = self._ours(parse(body), now)
        take_each(partial(self._place, each, now, home) for each in found)

    def _place(self, found: Announcement | Ignored, now: float, home: Home | None) -> None:
        """Give one announcement its place."""
        if isinstance(found, Ignored):
            self.reception.ignore(found.body, found.reason, now)
            return
        others = foreign(found, home)
        if others is not None:
            self.reception.ignore(found.body, others, now)
            return
        with logger.append_context_keys(
            correlation_id=found.event_id, announcement=found.dedupe_key
        ):
            self._answer(found, now)

    def _ours(
        self, announced: tuple[Announcement | Ignored, ...], now: float
    ) -> tuple[Announcement | Ignored, ...]:
        """Leave out the instances of others where one message names many, in one question."""
        named = {f.instance_id for f in announced if isinstance(f, Interruption)}
        if len(named) < MANY_INSTANCES:
            return announced
        ours = self.notices.inventory.instance_states(self.reception.whose)
        foreign = sorted(named - set(ours))
        if foreign:
            reason = (
                f"{len(foreign)} of the {len(named)} instances it names are another's: they have "
                f"{self.reception.whose.lacking}."
            )
            self.reception.ignore(announced[0].body, reason, now)
        return tuple(
            f for f in announced if not isinstance(f, Interruption) or f.instance_id in ours
        )

    def _answer(self, found: Announcement, now: float) -> None:
        match found:
            case Interruption():
                self.reception.receive(found, now)
            case VolumeNotice():
                self.notices.of_volume(found, now)
            case ZoneNotice():
                self.notices.of_zone(found, now)
            case GroupNotice():
                self.notices.of_group(found, now)
            case Advisory():
                self.notices.of_advisory(found, now)
            case _:
                assert_never(found)
