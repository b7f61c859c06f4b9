"""What AWS schedules is moved, called off, and scheduled again under old and new names.

EC2's list and Health tell of the same in any order, and each may lag. Of each history: what the
machine's last incident is about in the end, or that it is over.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from core.incidents.joining import ignore, scheduled_changes
from core.incidents.observation import ScheduledEvent, StatusView
from core.incidents.record import Incident, State, governing
from handlers.adapters.aws import tick_message
from handlers.store.ledger import rounds
from tests.every_case import every_case
from tests.history_rows import rows
from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.health_events import DAY, REBOOT, RETIREMENT, health_event
from tests.unit.handlers.station import START, Station

pytestmark = pytest.mark.usefixtures("quiet")

CODES = {"retirement": "instance-retirement", "reboot": "system-reboot", "stop": "instance-stop"}
HEALTHS = {"retirement": RETIREMENT, "reboot": REBOOT}
OVER = "over"


@dataclass
class Account:
    """A station, and what EC2's list of events shows there."""

    station: Station = field(default_factory=Station)
    listed: dict[str, ScheduledEvent] = field(default_factory=dict)

    def play(self, history: str) -> None:
        for step in history.split(", "):
            word, *rest = step.split()
            getattr(self, f"_{word}")(*rest)

    def _list(self, event_id: str, what: str, days: str, mark: str = "") -> None:
        due = START + float(days) * DAY
        said = f"[{mark}] soon" if mark else "soon"
        self.listed[event_id] = ScheduledEvent(
            event_id=event_id, code=CODES[what], description=said, not_before=due
        )
        self._sweep()

    def _unlist(self, event_id: str) -> None:
        del self.listed[event_id]
        self._sweep()

    def _sweep(self, times: str = "1") -> None:
        view = StatusView(instance_id=OLD, events=tuple(self.listed.values()))
        self.station.cluster.checks = {OLD: view}
        for _ in range(int(times)):
            self._wait("60")
            self.station.broom.sweep(self.station.now)
            self._look()

    def _health(self, what: str, days: str, status: str = "open", number: str = "1") -> None:
        self._wait("60")
        body = health_event(
            HEALTHS[what],
            due=START + float(days) * DAY,
            status=status,
            said_at=self.station.now,
            number=int(number),
        )
        self.station.announce(body)
        self._look()

    def _an(self, unit: str) -> None:
        assert unit == "hour"
        self._wait("3600")

    def _wait(self, seconds: str) -> None:
        self.station.now += float(seconds)

    def _until(self, days: str) -> None:
        self.station.now = START + float(days) * DAY
        for _ in range(3):
            self._look()

    def _ignore(self) -> None:
        last = self.last
        self.station.ledger.put(ignore(last, "ann", "known", self.station.now))
        self._look()

    def _look(self) -> None:
        for _ in range(3):
            if not rounds(self.station.ledger, OLD):
                return
            incident = self.last
            self.station.loop.turn(tick_message(incident.id, incident.version), self.station.now)

    @property
    def last(self) -> Incident:
        return rounds(self.station.ledger, OLD)[-1]


HISTORIES = """
# Called off, and scheduled again.
list e1 retirement 14, list e1 retirement 14 Canceled, an hour, list e1 retirement 14
    => retirement 14
list e1 retirement 14, list e1 retirement 14 Canceled, an hour, list e1 retirement 14,
    list e1 retirement 14 Canceled => over
list e1 retirement 14, list e2 reboot 3, list e1 retirement 14 Canceled, an hour,
    list e1 retirement 14 => retirement 14
list e1 retirement 14, list e2 reboot 3, list e1 retirement 14 Canceled, an hour,
    list e1 retirement 14, list e1 retirement 14 Canceled, sweep 3 => reboot 3
list e1 retirement 14, list e2 reboot 3, list e1 retirement 14 Canceled, an hour,
    list e1 retirement 14, list e1 retirement 14 Canceled, an hour, list e1 retirement 14
    => retirement 14
health retirement 14, health retirement 14 closed, an hour, health retirement 14 => retirement 14
health retirement 14, health retirement 14 closed, an hour, list e1 retirement 14 => retirement 14
health reboot 3, health reboot 3 closed, an hour, list e1 reboot 3 => reboot 3
# The list lags behind Health.
health retirement 14, sweep, health retirement 14 closed, list e1 retirement 14 => over
list e1 retirement 14, health retirement 14, health retirement 14 closed, sweep 5 => over
list e1 retirement 14, health retirement 14, health retirement 20, sweep 3 => retirement 20
health retirement 14, health retirement 20, list e1 retirement 14, list e1 retirement 20
    => retirement 20
health retirement 14, health retirement 9, list e1 retirement 14, list e1 retirement 9
    => retirement 9
health reboot 14, health reboot 20, list e1 reboot 14, list e1 reboot 20 => reboot 20
# And Health behind the list.
list e1 retirement 14, list e1 retirement 20, health retirement 20 => retirement 20
list e1 retirement 14, list e1 retirement 9, health retirement 9 => retirement 9
list e1 retirement 14, health retirement 14, list e1 retirement 20, health retirement 20
    => retirement 20
# Names are used again, or change.
list e1 retirement 14, list e1 retirement 14 Canceled, an hour, list e1 reboot 14 => reboot 14
list e1 reboot 3, list e1 reboot 3 Canceled, an hour, list e2 retirement 3 => retirement 3
list e1 reboot 3, list e1 retirement 3 => retirement 3
list e1 retirement 14, unlist e1, list e2 retirement 14, sweep 3 => retirement 14
list e1 retirement 14, list e2 retirement 10, list e2 retirement 10 Canceled => retirement 14
list e1 retirement 14, list e2 stop 14, list e1 retirement 14 Canceled => stop 14
health retirement 14, health retirement 14 closed, an hour, health retirement 14 open 2
    => retirement 14
# What was begun for one is called off, and the other is left.
list e1 retirement 0.5, list e2 reboot 3, list e1 retirement 0.5 Canceled, sweep 3 => reboot 3
# What is over, or ignored, stays on the list.
list e1 reboot 0.1, until 0.1, until 0.2, sweep 3 => over
list e1 reboot 0.1, until 0.1, until 0.2, list e2 reboot 0.1 Completed, sweep 3 => over
list e1 reboot 0.1, list e2 reboot 4, until 0.1, until 0.2, sweep 3 => reboot 4
list e1 reboot 0.1, until 0.1, until 0.2, list e1 reboot 2 => reboot 2
list e1 reboot 3, ignore, sweep 3 => over
list e1 reboot 3, ignore, list e2 retirement 3 => retirement 3
list e1 retirement 14 Completed, sweep 3, list e2 reboot 3 => reboot 3
"""


@every_case(("history", "wanted"), rows(HISTORIES))
def test_the_last_incident_is_about_what_aws_has_scheduled_last(history: str, wanted: str) -> None:
    account = Account()
    account.play(history)
    last = account.last
    if wanted == OVER:
        assert last.state in {State.CANCELLED, State.RIDDEN_THROUGH}
        return
    what, days = wanted.split()
    assert last.open, last.reason
    ruling = governing(
        each
        for each in scheduled_changes(last)
        if each.due_at is not None and each.due_at > account.station.now
    )
    assert ruling is not None
    assert ruling.code in {HEALTHS.get(what), f"AWS_EC2_INSTANCE_{what.upper()}_SCHEDULED"}
    assert ruling.due_at == pytest.approx(START + float(days) * DAY, abs=1)


@every_case("history", [history for history, _ in rows(HISTORIES)])
def test_a_list_that_stays_as_it_is_adds_nothing(history: str) -> None:
    account = Account()
    account.play(f"{history}, an hour, sweep")
    before = account.last
    account.play("sweep 3")
    assert (account.last.id, account.last.announcements) == (before.id, before.announcements)
