"""One machine, several changes that AWS has scheduled for it: each is moved and closed by itself.

Every history is heard in every order of delivery; what governs at the end is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import pytest

from core.events import Interruption, Kind
from core.incidents.decide import next_action
from core.incidents.joining import merge, open_incident, reopens
from core.incidents.record import Incident, State, from_json, to_json
from tests.every_case import every_case
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


A, B, C, EC2 = "arn:a", "arn:b", "arn:c", "instance-event-1"
CALLED_OFF = "called off"
# History -> the code and the date that govern, or that it is called off.
HISTORIES: dict[str, tuple[Sequence[Word], tuple[str, float | None] | str]] = {
    "a reboot is announced beside a retirement": (
        [Word(A, RETIREMENT, 1, 14 * DAY), Word(B, REBOOT, 2, 3 * DAY)],
        (RETIREMENT, 14 * DAY),
    ),
    "a retirement is announced beside a reboot": (
        [Word(B, REBOOT, 1, 3 * DAY), Word(A, RETIREMENT, 2, 14 * DAY)],
        (RETIREMENT, 14 * DAY),
    ),
    "the reboot beside a retirement is closed": (
        [
            Word(A, RETIREMENT, 1, 14 * DAY),
            Word(B, REBOOT, 2, 3 * DAY),
            Word(B, REBOOT, 3, 3 * DAY, closed=True),
        ],
        (RETIREMENT, 14 * DAY),
    ),
    "the retirement beside a reboot is closed": (
        [
            Word(A, RETIREMENT, 1, 14 * DAY),
            Word(B, REBOOT, 2, 3 * DAY),
            Word(A, RETIREMENT, 3, 14 * DAY, closed=True),
        ],
        (REBOOT, 3 * DAY),
    ),
    "both are closed": (
        [
            Word(A, RETIREMENT, 1, 14 * DAY),
            Word(B, REBOOT, 2, 3 * DAY),
            Word(A, RETIREMENT, 3, 14 * DAY, closed=True),
            Word(B, REBOOT, 4, 3 * DAY, closed=True),
        ],
        CALLED_OFF,
    ),
    "two retirements, the earlier one counts": (
        [Word(A, RETIREMENT, 1, 14 * DAY), Word(B, STOP, 2, 5 * DAY)],
        (STOP, 5 * DAY),
    ),
    "two retirements, the earlier one is closed": (
        [
            Word(A, RETIREMENT, 1, 14 * DAY),
            Word(B, STOP, 2, 5 * DAY),
            Word(B, STOP, 3, 5 * DAY, closed=True),
        ],
        (RETIREMENT, 14 * DAY),
    ),
    "AWS takes one up under another name and closes the first": (
        [
            Word(A, RETIREMENT, 1, 14 * DAY),
            Word(B, RETIREMENT, 2, 9 * DAY),
            Word(A, RETIREMENT, 3, 14 * DAY, closed=True),
        ],
        (RETIREMENT, 9 * DAY),
    ),
    "closed and opened again": (
        [
            Word(A, RETIREMENT, 1, 14 * DAY),
            Word(A, RETIREMENT, 2, 14 * DAY, closed=True),
            Word(A, RETIREMENT, 3, 20 * DAY),
        ],
        (RETIREMENT, 20 * DAY),
    ),
    "opened again and closed for good": (
        [
            Word(A, RETIREMENT, 1, 14 * DAY),
            Word(A, RETIREMENT, 2, 14 * DAY, closed=True),
            Word(A, RETIREMENT, 3, 20 * DAY),
            Word(A, RETIREMENT, 4, 20 * DAY, closed=True),
        ],
        CALLED_OFF,
    ),
    "moved to a later date": (
        [Word(A, RETIREMENT, 1, 3 * DAY), Word(A, RETIREMENT, 2, 14 * DAY)],
        (RETIREMENT, 14 * DAY),
    ),
    "moved to an earlier date and back": (
        [
            Word(A, RETIREMENT, 1, 9 * DAY),
            Word(A, RETIREMENT, 2, 2 * DAY),
            Word(A, RETIREMENT, 3, 9 * DAY),
        ],
        (RETIREMENT, 9 * DAY),
    ),
    "one that hurries counts whatever its date": (
        [Word(A, RETIREMENT, 1, 2 * DAY), Word(B, EXPEDITED, 2, 9 * DAY)],
        (EXPEDITED, 9 * DAY),
    ),
    "a date that is not yet said gives way to one that is": (
        [Word(A, RETIREMENT, 1, None), Word(B, STOP, 2, 9 * DAY)],
        (STOP, 9 * DAY),
    ),
    "two reboots, the earlier one counts": (
        [Word(A, REBOOT, 1, 9 * DAY), Word(B, POWER, 2, 4 * DAY)],
        (POWER, 4 * DAY),
    ),
    "what nobody knows is beside a retirement": (
        [Word(A, UNKNOWN, 1, 1 * DAY), Word(B, RETIREMENT, 2, 9 * DAY)],
        (RETIREMENT, 9 * DAY),
    ),
    "three at once, the gravest of them closed": (
        [
            Word(A, RETIREMENT, 1, 9 * DAY),
            Word(B, REBOOT, 2, 2 * DAY),
            Word(C, UNKNOWN, 3, 1 * DAY),
            Word(A, RETIREMENT, 4, 9 * DAY, closed=True),
        ],
        (REBOOT, 2 * DAY),
    ),
    "EC2's list and Health name one event": (
        [Word(A, RETIREMENT, 1, 9 * DAY), Word(EC2, RETIREMENT, 2, 9 * DAY)],
        (RETIREMENT, 9 * DAY),
    ),
    "Health closes what EC2's list has named too": (
        [
            Word(A, RETIREMENT, 1, 9 * DAY),
            Word(EC2, RETIREMENT, 2, 9 * DAY),
            Word(A, RETIREMENT, 3, 9 * DAY, closed=True),
        ],
        CALLED_OFF,
    ),
    "EC2's list says of the reboot that it is done": (
        [
            Word(A, RETIREMENT, 1, 9 * DAY),
            Word(EC2, REBOOT, 2, 3 * DAY),
            Word(EC2, REBOOT, 3, 3 * DAY, closed=True),
        ],
        (RETIREMENT, 9 * DAY),
    ),
}
ORDERS = [
    pytest.param(order, wanted, id=f"{name}, order {number}")
    for name, (words, wanted) in HISTORIES.items()
    for number, order in enumerate(permutations(words))
]


def heard(words: Sequence[Word], *, state: State = State.OPENED) -> Incident:
    """Return the incident that open words of a history open, and the rest join."""
    first, *later = sorted(words, key=lambda word: word.closed) if words[0].closed else words
    incident = replace(open_incident(first.told, 0.0), state=state)
    for word in later:
        incident = merge(from_json(to_json(incident)), word.told, 30 * DAY)
    return incident


@every_case(("order", "wanted"), ORDERS)
def test_what_governs_is_the_same_in_whatever_order_words_come(
    order: Sequence[Word], wanted: tuple[str, float | None] | str
) -> None:
    incident = heard(order)
    if isinstance(wanted, str):
        assert incident.called_off
        return
    assert not incident.called_off
    assert (incident.event_type, incident.due_at) == wanted


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
def test_whoever_ignored_one_change_has_said_nothing_about_another(
    later: Word, again: bool
) -> None:
    ignored = replace(heard([Word(A, REBOOT, 1, 3 * DAY)]), ignored_by="ann", state=State.CANCELLED)
    assert reopens(ignored, later.told) is again


@every_case("kind", [Kind.VOLUME_PROBLEM, Kind.SICK_NODE, Kind.INSTANCE_ISSUE])
@every_case("ignored", [Kind.SCHEDULED_CHANGE, Kind.ROTATION])
def test_a_trouble_of_another_kind_is_heard_though_what_was_planned_is_ignored(
    kind: Kind, ignored: Kind
) -> None:
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
