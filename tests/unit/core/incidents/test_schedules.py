"""One machine, several changes that AWS has scheduled for it: each is moved and closed by itself.

Every history is heard in every order of delivery; what governs at the end is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import pytest

from core.events import Interruption, Kind
from core.incidents.decide import next_action
from core.incidents.joining import merge, open_incident, reopens
from core.incidents.record import Incident, State, from_json, to_json
from tests.every_case import every_case
from tests.history_rows import rows
from tests.unit.core.incidents.announced_incidents import OLD, POLICY, observation

RETIREMENT = "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"
EXPEDITED = "AWS_EC2_INSTANCE_RETIREMENT_EXPEDITED"
STOP = "AWS_EC2_INSTANCE_STOP_SCHEDULED"
REBOOT = "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"
POWER = "AWS_EC2_INSTANCE_POWER_MAINTENANCE_SCHEDULED"
UNKNOWN = "AWS_EC2_SOMETHING_NEW"
DAY = 86_400.0


@dataclass(frozen=True)
class Word:
    """One word of Health's or of EC2's list about one event."""

    event: str
    code: str
    at: float
    due: float | None = None
    closed: bool = False

    @property
    def told(self) -> Interruption:
        return Interruption(
            kind=Kind.SCHEDULED_CHANGE,
            instance_id=OLD,
            event_id="e",
            dedupe_key=f"{self}",
            account=None,
            region=None,
            occurred_at=self.at,
            updated_at=self.at,
            body="",
            event_type=self.code,
            due_at=self.due,
            closed=self.closed,
            health_event=self.event,
        )


A, B, EC2 = "arn:a", "arn:b", "instance-event-1"
EVENTS = {"A": A, "B": B, "C": "arn:c", "EC2": EC2}
CODES = {
    "retirement": RETIREMENT,
    "expedited": EXPEDITED,
    "stop": STOP,
    "reboot": REBOOT,
    "power": POWER,
    "unknown": UNKNOWN,
}
# An event, what is scheduled and in how many days, or that it is closed => what governs in the end.
# What comes from EC2's list is called so; everything else is Health's.
HISTORIES = """
A retirement 14, B reboot 3 => retirement 14
B reboot 3, A retirement 14 => retirement 14
A retirement 14, B reboot 3, B closed => retirement 14
A retirement 14, B reboot 3, A closed => reboot 3
A retirement 14, B reboot 3, A closed, B closed => called off
A retirement 14, B stop 5 => stop 5
A retirement 14, B stop 5, B closed => retirement 14
A retirement 14, B retirement 9, A closed => retirement 9
A retirement 14, A closed, A retirement 20 => retirement 20
A retirement 14, A closed, A retirement 20, A closed => called off
A retirement 3, A retirement 14 => retirement 14
A retirement 9, A retirement 2, A retirement 9 => retirement 9
A retirement 2, B expedited 9 => expedited 9
A retirement ?, B stop 9 => stop 9
A reboot 9, B power 4 => power 4
A unknown 1, B retirement 9 => retirement 9
A retirement 9, B reboot 2, C unknown 1, A closed => reboot 2
A retirement 9, EC2 retirement 9 => retirement 9
A retirement 9, EC2 retirement 9, A closed => called off
A retirement 9, EC2 reboot 3, EC2 closed => retirement 9
"""


def words_of(line: str) -> list[Word]:
    """Return the words of a line, each a second after the one before."""
    words: list[Word] = []
    for at, step in enumerate(line.split(", "), 1):
        event, what, *days = step.split()
        if what == "closed":
            last = next(each for each in reversed(words) if each.event == EVENTS[event])
            words.append(replace(last, at=at, closed=True))
        else:
            due = None if days == ["?"] else float(days[0]) * DAY
            words.append(Word(EVENTS[event], CODES[what], at, due))
    return words


def orders() -> Iterator[tuple[Sequence[Word], str]]:
    for line, ends in rows(HISTORIES):
        yield from ((order, ends) for order in permutations(words_of(line)))


def heard(words: Sequence[Word], *, state: State = State.OPENED) -> Incident:
    """Return the incident that open words of a history open, and the rest join."""
    first, *later = sorted(words, key=lambda word: word.closed) if words[0].closed else words
    incident = replace(open_incident(first.told, 0.0), state=state)
    for word in later:
        incident = merge(from_json(to_json(incident)), word.told, 30 * DAY)
    return incident


@every_case(("order", "wanted"), orders)
def test_what_governs_is_the_same_in_any_order(order: Sequence[Word], wanted: str) -> None:
    incident = heard(order)
    assert incident.called_off is (wanted == "called off")
    if not incident.called_off:
        what, days = wanted.split()
        assert (incident.event_type, incident.due_at) == (CODES[what], float(days) * DAY)


def test_a_replacement_that_has_begun_is_called_off_where_only_a_reboot_is_left() -> None:
    words = [
        Word(A, RETIREMENT, 1, 14 * DAY),
        Word(B, REBOOT, 2, 3 * DAY),
        Word(A, RETIREMENT, 3, 14 * DAY, closed=True),
    ]
    incident = heard(words, state=State.REPLACING)
    assert incident.called_off
    assert incident.due_at == 14 * DAY  # so that the reboot on EC2's list is news


def test_a_reboot_ends_no_machine() -> None:
    reboot = heard([Word(A, REBOOT, 1, 3 * DAY)])
    assert reboot.taken_at is None
    assert heard([Word(A, RETIREMENT, 1, 3 * DAY)]).taken_at == 3 * DAY


@pytest.mark.parametrize("kind", [Kind.INSTANCE_ISSUE, Kind.VOLUME_PROBLEM, Kind.REBALANCE])
def test_when_a_trouble_began_is_no_date_by_which_aws_takes_the_machine(kind: Kind) -> None:
    terminated = replace(Word(A, RETIREMENT, 1).told, kind=Kind.ASG_TERMINATE, dedupe_key="t")
    issue = replace(Word(A, RETIREMENT, 1, due=5.0).told, kind=kind)
    assert merge(open_incident(terminated, 0.0), issue, 9.0).due_at is None


def test_what_nobody_knows_is_told_though_a_retirement_governs() -> None:
    incident = heard([Word(A, RETIREMENT, 1, 9 * DAY), Word(B, UNKNOWN, 2, 5 * DAY)])
    pages = next_action(incident, observation(), POLICY).actions
    assert any(UNKNOWN in getattr(page, "reason", "") for page in pages)


def test_an_earlier_releases_last_word_counts_beside_what_it_could_not_read() -> None:
    incident = heard([Word(A, RETIREMENT, 1, 9 * DAY), Word(B, REBOOT, 2, 3 * DAY)])
    # The release before heard that the retirement was closed, and knows one schedule alone.
    rolled_back = replace(incident, called_off=True, scheduled_said_at=5.0)
    again = merge(rolled_back, Word(B, REBOOT, 6, 4 * DAY).told, 30 * DAY)
    assert (again.event_type, again.due_at, again.called_off) == (REBOOT, 4 * DAY, False)


@pytest.mark.parametrize(
    ("later", "again"),
    [
        (Word(B, RETIREMENT, 2, 9 * DAY), True),
        (Word(B, POWER, 2, 9 * DAY), True),
        (Word(A, REBOOT, 2, 4 * DAY), False),
        (Word(EC2, REBOOT, 2, 3 * DAY), False),
        (Word(EC2, RETIREMENT, 2, 3 * DAY), True),
    ],
    ids=["a retirement", "another event", "the same event, moved", "on EC2's list", "and graver"],
)
def test_whoever_ignored_one_change_said_nothing_of_others(later: Word, again: bool) -> None:
    ignored = replace(heard([Word(A, REBOOT, 1, 3 * DAY)]), ignored_by="ann", state=State.CANCELLED)
    assert reopens(ignored, later.told) is again


@every_case("kind", [Kind.VOLUME_PROBLEM, Kind.SICK_NODE, Kind.INSTANCE_ISSUE])
@every_case("ignored", [Kind.SCHEDULED_CHANGE, Kind.ROTATION])
def test_another_trouble_is_heard_though_the_plan_is_ignored(kind: Kind, ignored: Kind) -> None:
    planned = replace(Word(A, RETIREMENT, 1, 9 * DAY).told, kind=ignored)
    finished = replace(open_incident(planned, 0.0), ignored_by="ann", state=State.CANCELLED)
    trouble = replace(Word(B, "x", 2).told, kind=kind, dedupe_key="trouble")
    assert reopens(finished, trouble)
    same = replace(open_incident(trouble, 0.0), ignored_by="ann", state=State.CANCELLED)
    assert not reopens(same, replace(trouble, dedupe_key="again"))


@pytest.mark.parametrize("kind", [Kind.REBALANCE, Kind.STATE_CHANGE, Kind.EVICTION])
def test_what_is_milder_is_no_news_about_what_a_person_ignored(kind: Kind) -> None:
    finished = replace(
        heard([Word(A, RETIREMENT, 1, 9 * DAY)]), ignored_by="ann", state=State.CANCELLED
    )
    assert not reopens(finished, replace(Word(B, "x", 2).told, kind=kind))
