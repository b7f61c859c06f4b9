"""AWS's changes as it moves, closes and repeats them: one machine, one incident.

EC2's list and Health tell of the same in any order, and each may lag. Of each history: what the
machine's last incident is about in the end, or that it is over.
"""

import json
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.events import Interruption, parse
from core.incidents.joining import ignore, merge, open_incident, scheduled_changes
from core.incidents.observation import ScheduledEvent, StatusView
from core.incidents.record import Incident, State, governing
from handlers.adapters.aws import tick_message
from handlers.store.ledger import rounds
from tests.every_case import every_case
from tests.tables import rows
from tests.unit.handlers.announced import (
    DAY,
    REBOOT,
    RETIREMENT,
    ec2_event,
    health_event,
    hook_event,
)
from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.station import START, Station
from tests.unit.handlers.walks import critical

CLOSED = START + 60
LATE = (
    f"AWS announced this for instance {OLD} before it closed the event on 2026-11-20 10:0{{}} UTC."
)


def reasons(station: Station) -> list[str]:
    return [reason for _, reason in station.ledger.ignored]


def closed(at: float = CLOSED, code: str = RETIREMENT) -> str:
    return health_event(code, status="closed", said_at=at)


# What AWS says, in this order, and the minute of the end that hides it; None: an incident opens.
WORDS: dict[str, tuple[list[str], int | None]] = {
    "an end, then its beginning": ([closed(), health_event(said_at=START)], 1),
    "two words of one moment": ([closed(START), health_event(said_at=START)], 0),
    "an end, then a later word": ([closed(), health_event(said_at=CLOSED + 60)], None),
    "an older end comes late": (
        [closed(), closed(START - 60), health_event(said_at=START)],
        1,
    ),
    "another event ended": ([closed(code=REBOOT), health_event(said_at=START)], None),
    "another instance's ended": (
        [closed().replace(OLD, "i-0b"), health_event(said_at=START)],
        None,
    ),
}


@every_case(("words", "hidden_by"), WORDS.values(), ids=WORDS)
def test_a_word_that_is_older_than_its_events_end_opens_nothing(
    words: list[str], hidden_by: int | None
) -> None:
    station = Station()
    for body in words:
        station.announce(body)
        station.now += DAY
    if hidden_by is None:
        assert station.incident().state is State.OPENED
        return
    assert station.ledger.open_incidents() == ()
    assert reasons(station)[-1] == LATE.format(hidden_by)
    assert station.ticks.sent == []


def test_an_update_of_a_cancelled_event_under_way_opens_no_second_round(station: Station) -> None:
    station.announce(health_event(said_at=START))
    station.announce(health_event(status="closed", said_at=CLOSED))
    station.ledger.put(replace(station.incident(), state=State.CANCELLED))
    station.announce(health_event(said_at=START + 30))
    assert station.ledger.get(f"{OLD}.2") is None
    assert reasons(station) == [LATE.format(1)]


def test_an_older_word_of_a_closed_event_joins_no_incident_of_another(station: Station) -> None:
    station.announce(health_event(REBOOT, status="closed", said_at=CLOSED))
    station.announce(health_event(said_at=CLOSED + 60))
    station.announce(health_event(REBOOT, due=START + DAY, said_at=START))
    assert station.incident().event_type == RETIREMENT
    assert len(station.incident().scheduled) == 1


def test_the_end_of_a_reboot_calls_no_retirement_off(station: Station) -> None:
    station.announce(health_event(said_at=START))
    station.announce(health_event(REBOOT, due=START + DAY, said_at=START + 10))
    station.announce(health_event(REBOOT, due=START + DAY, status="closed", said_at=CLOSED))
    found = station.incident()
    assert (found.event_type, found.called_off) == (RETIREMENT, False)
    assert found.due_at == START + 14 * DAY


def test_a_date_of_a_clock_that_is_wrong_hides_no_later_word(station: Station) -> None:
    station.announce(health_event(said_at=START + 3650 * DAY))
    station.now += 3600
    station.announce(health_event(status="closed", said_at=START + 3600))
    assert station.incident().called_off
    station.now += 3600
    station.announce(health_event(due=START + 20 * DAY, said_at=START + 7200))
    assert not station.incident().called_off


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
            self.station.sweep()
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


@pytest.mark.usefixtures("quiet")
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
    assert ruling.code in {HEALTHS.get(what), f"AWS_EC2_INSTANCE_{what.upper()}_SCHEDULED"}
    assert ruling.due_at == pytest.approx(START + float(days) * DAY, abs=1)


@pytest.mark.usefixtures("quiet")
@every_case("history", [history for history, _ in rows(HISTORIES)])
def test_a_list_that_stays_as_it_is_adds_nothing(history: str) -> None:
    account = Account()
    account.play(f"{history}, an hour, sweep")
    before = account.last
    account.play("sweep 3")
    assert (account.last.id, account.last.announcements) == (before.id, before.announcements)


@pytest.mark.parametrize(
    "code", ["AWS_EC2_PLANNED_LIFECYCLE_EVENT", "AWS_EC2_INSTANCE_NOVEL_CHANGE", "AWS_EBS_NEW"]
)
def test_a_change_that_is_not_known_replaces_nothing_and_calls_a_person_once(
    station: Station, caplog: pytest.LogCaptureFixture, code: str
) -> None:
    for _ in range(3):
        station.announce(health_event(code))
        station.now += DAY
    assert station.ledger.open_incidents() == ()
    (page,) = critical(caplog)
    assert code in page


def test_a_change_of_anothers_instance_calls_nobody(
    station: Station, caplog: pytest.LogCaptureFixture
) -> None:
    station.announce(health_event("AWS_EC2_PLANNED_LIFECYCLE_EVENT").replace(OLD, "i-0foreign"))
    assert critical(caplog) == []


def test_a_change_whose_date_makes_no_sense_is_told_and_crashes_no_later_turn(
    station: Station, caplog: pytest.LogCaptureFixture
) -> None:
    event = json.loads(health_event(RETIREMENT))
    for start in ("Fri, 31 Dec 9999 23:59:59 GMT", "soon", "-1", float("nan"), 1e308, True):
        event["detail"] |= {"startTime": start, "eventArn": f"arn:{start}"}
        station.announce(json.dumps(event))
    assert station.ledger.open_incidents() == ()
    pages = critical(caplog)
    assert len(pages) == 6
    assert all("not a time between 2000 and 2100" in page for page in pages)


def messages() -> list[str]:
    """Return everything AWS may say about one retirement that becomes a termination."""
    return [
        health_event(said_at=START - 60),
        health_event(said_at=START - 30, due=START + 15 * 86_400),
        health_event(status="closed", said_at=START - 45),
        hook_event("drain"),
        hook_event("gate"),
        ec2_event("EC2 Instance Rebalance Recommendation", OLD),
        ec2_event("EC2 Instance State-change Notification", OLD, state="stopping"),
    ]


def joined(bodies: list[str]) -> Incident:
    found = [f for body in bodies for f in parse(body) if isinstance(f, Interruption)]
    incident = open_incident(found[0], START)
    for interruption in found[1:]:
        incident = merge(incident, interruption, START)
    return incident


@given(st.data())
def test_any_order_and_copies_of_messages_make_one_incident(data: st.DataObject) -> None:
    known = joined(messages())
    copies = data.draw(st.lists(st.sampled_from(messages()), max_size=5))
    again = joined(data.draw(st.permutations(messages() + copies)))
    assert set(again.announcements) == set(known.announcements)
    same = {"announcements": (), "reason": "", "transitions": (), "hooks": {}}
    assert replace(again, **same) == replace(known, **same)
    assert dict(again.hooks) == dict(known.hooks)
