"""What people and AWS say about an incident is kept, each of several changes by itself.

Every history is heard in every order of delivery; what governs at the end is the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import pytest

from core.events import GroupChange, GroupNotice, Interruption, Kind
from core.ground.errors import Conflict, InvalidInput
from core.incidents.decide import next_action
from core.incidents.joining import (
    ask_release,
    hold,
    ignore,
    merge,
    note_group,
    open_incident,
    reopens,
)
from core.incidents.learn import learn
from core.incidents.observation import Observation, PodView
from core.incidents.planned import serves_on
from core.incidents.record import (
    MOST_NOTES,
    Forwarding,
    Incident,
    LaunchFailure,
    Release,
    State,
    Transition,
    from_json,
    to_json,
)
from tests.every_case import every_case
from tests.tables import rows
from tests.unit.core.incidents.announced_incidents import OLD, POLICY, announcement, observation
from tests.unit.views import kafka_view

NOW = 1_795_168_800.0


def said(
    what: GroupChange, group: str = "g", instance_id: str | None = None, cause: str = ""
) -> GroupNotice:
    return GroupNotice(
        event_id="e",
        dedupe_key="k",
        account=None,
        region=None,
        occurred_at=NOW,
        body="{}",
        group=group,
        what=what,
        instance_id=instance_id,
        cause=cause,
    )


@pytest.fixture
def incident() -> Incident:
    said = announcement(hook="drain", instance_id="i-0a", occurred_at=NOW)
    return open_incident(said, NOW)


def over(incident: Incident, state: State) -> Incident:
    return replace(incident, state=state)


def test_a_hold_is_kept_with_who_asked_and_until_when(incident: Incident) -> None:
    held = hold(incident, NOW + 3600, "ada", NOW)
    assert held.held_until == NOW + 3600
    note = held.notes[-1]
    assert (note.actor, note.at) == ("ada", NOW)
    assert note.reason == "ada holds instance i-0a until 2026-11-20 11:00 UTC."
    assert from_json(to_json(held)) == held


def test_a_hold_into_the_past_is_refused(incident: Incident) -> None:
    with pytest.raises(InvalidInput, match="cannot be held until 2026-11-20 09:59 UTC"):
        hold(incident, NOW - 60, "ada", NOW)


def test_ignoring_keeps_who_and_why(incident: Incident) -> None:
    ignored = ignore(incident, "ada", "a drill", NOW)
    assert ignored.ignored_by == "ada"
    assert ignored.notes[-1].reason == "ada wants incident i-0a ignored: a drill"


@pytest.mark.parametrize("state", [State.RELEASED, State.CANCELLED, State.LOST])
def test_what_is_over_cannot_be_held_ignored_or_released(incident: Incident, state: State) -> None:
    finished = over(incident, state)
    with pytest.raises(Conflict, match=f"it is over .{state.value}"):
        hold(finished, NOW + 60, "ada", NOW)
    with pytest.raises(Conflict):
        ignore(finished, "ada", "why", NOW)
    with pytest.raises(Conflict):
        ask_release(finished, "ada", NOW)


def test_a_release_ends_a_hold(incident: Incident) -> None:
    asked = ask_release(hold(incident, NOW + 60, "ada", NOW), "bob", NOW + 1)
    assert (asked.release, asked.held_until) == (Release(by="bob", at=NOW + 1), None)
    assert asked.id == incident.id


def test_releasing_a_retained_instance_opens_its_next_round(incident: Incident) -> None:
    kept = replace(over(incident, State.RETAINED), zone="a", pool="broker", surge_to=2)
    asked = ask_release(kept, "ada", NOW + 60)
    assert (asked.id, asked.version, asked.state) == ("i-0a.2", 0, State.OPENED)
    assert (asked.zone, asked.pool, asked.surge_to) == ("a", "broker", 2)
    assert asked.release == Release(by="ada", at=NOW + 60)
    assert asked.transitions[0].actor == "ada"
    assert ask_release(over(asked, State.RETAINED), "ada", NOW).id == "i-0a.3"


def test_a_failed_launch_is_remembered_until_one_succeeds(incident: Incident) -> None:
    failed = note_group(incident, said(GroupChange.LAUNCH_FAILED, cause="no capacity"), NOW)
    assert failed.launch_failure == LaunchFailure(since=NOW, cause="no capacity")
    assert failed.notes[-1].actor == "aws"
    launched = note_group(failed, said(GroupChange.LAUNCHED, instance_id="i-0d"), NOW + 60)
    assert launched.launch_failure is None


FAILED, LAUNCHED = GroupChange.LAUNCH_FAILED, GroupChange.LAUNCHED
# What a group says, and when AWS said it, in the order it arrives -> since when it launches none.
LAUNCHES: dict[str, tuple[list[tuple[GroupChange, float]], float | None]] = {
    "failed and launched": ([(FAILED, 10), (LAUNCHED, 60)], None),
    "launched, and the failure before it comes late": ([(LAUNCHED, 60), (FAILED, 10)], None),
    "failed, and a launch before it comes late": ([(FAILED, 60), (LAUNCHED, 10)], 60),
    "failed twice, in the other order": ([(FAILED, 60), (FAILED, 10)], 60),
    "failed, launched and failed": ([(FAILED, 10), (LAUNCHED, 60), (FAILED, 90)], 90),
    "failed half a day before the incident": ([(FAILED, -43_200)], None),
    "launched half a day before the incident": ([(FAILED, 10), (LAUNCHED, -43_200)], 10),
    "failed, by a clock that is wrong": ([(FAILED, 1e9), (LAUNCHED, 2_000)], None),
}


@pytest.mark.parametrize(("words", "since"), LAUNCHES.values(), ids=LAUNCHES)
def test_what_a_group_says_of_its_launches_counts_by_when_it_was_said(
    incident: Incident, words: list[tuple[GroupChange, float]], since: float | None
) -> None:
    for number, (what, at) in enumerate(words):
        word = replace(said(what, cause="no capacity"), occurred_at=NOW + at)
        incident = note_group(incident, word, NOW + 1_000 + 1_000 * number)
    found = None if incident.launch_failure is None else incident.launch_failure.since - NOW
    assert found == since


def test_the_launches_of_another_group_say_nothing(incident: Incident) -> None:
    assert note_group(incident, said(GroupChange.LAUNCH_FAILED, group="other"), NOW) is incident


def test_notes_do_not_grow_without_end(incident: Incident) -> None:
    for attempt in range(500):
        cause = str(attempt // 2)
        incident = note_group(incident, said(GroupChange.LAUNCH_FAILED, cause=cause), NOW + attempt)
    assert len({note.reason for note in incident.notes}) == len(incident.notes) == 200
    assert incident.launch_failure.since == NOW  # since when, not the latest of many


OPENED = Transition(1.0, State.OPENED, "interruption", "AWS announced it.")
INCIDENT = Incident(
    id="i-1",
    instance_id="i-1",
    kind=Kind.ASG_TERMINATE,
    state=State.GATING,
    opened_at=1.0,
    announced_at=1.0,
    announcements=(),
    node_id=11,
    role="broker",
    transitions=(OPENED,),
)


def seen(
    at: float, *, fenced: bool = False, known: bool = True, stale: bool = False
) -> Observation:
    view = kafka_view(
        {10, 11} if known else {10},
        fenced={11} if fenced else (),
        voters=(),
        quorum_leader=None if stale else 0,
        stale=stale,
    )
    return Observation(now=at, instance=None, kafka=view)


def told(incident: Incident) -> list[str]:
    return [note.reason for note in incident.notes]


def test_a_broker_that_goes_and_returns_leaves_its_way_in_the_timeline() -> None:
    incident = INCIDENT
    for at, fenced in enumerate((False, True, True, False)):
        incident = learn(incident, seen(float(at), fenced=fenced))
    assert told(incident) == [
        "Broker 11 is fenced: the quorum fenced it; it was online.",
        "Broker 11 is online: it is registered and not fenced; it was fenced.",
    ]
    assert [note.at for note in incident.notes] == [1.0, 3.0]


def test_the_same_reading_twice_is_noted_once() -> None:
    once = learn(INCIDENT, seen(5.0, fenced=True))
    assert learn(once, seen(5.0, fenced=True)).notes == once.notes


def test_that_a_broker_is_online_at_first_is_no_news() -> None:
    assert learn(INCIDENT, seen(5.0)).notes == ()


def test_without_a_quorum_nothing_is_concluded() -> None:
    fenced = learn(INCIDENT, seen(5.0, fenced=True))
    assert learn(fenced, seen(6.0, stale=True)) == replace(fenced)


def test_a_broker_that_is_not_registered_is_offline() -> None:
    (said,) = told(learn(INCIDENT, seen(5.0, known=False)))
    assert said == "Broker 11 is offline: it is not registered."


def test_a_controller_has_no_such_way() -> None:
    controller = replace(INCIDENT, role="controller", node_id=0)
    assert learn(controller, seen(5.0, known=False)).notes == ()


def test_a_timeline_that_is_full_takes_no_more_and_the_state_is_still_kept() -> None:
    full = replace(INCIDENT, notes=(OPENED,) * MOST_NOTES)
    after = learn(full, seen(5.0, fenced=True))
    assert (len(after.notes), after.lifecycle) == (MOST_NOTES, "fenced")


BROKER_POD = PodView(name="c-a-11", node_id=11, role="broker", node_name="old", ready=True)
SENT = Forwarding(first_at=1.0, last_at=1.0)
DRAINING = replace(
    INCIDENT, state=State.DRAINING, forwarded=SENT, pod_name="c-a-11", node_name="old"
)


def where(pod: PodView | None) -> tuple[PodView, ...]:
    return () if pod is None else (pod,)


def test_a_rotation_reads_stopping_offline_fenced_online_in_the_timeline() -> None:
    stopping = replace(BROKER_POD, stopping=True)
    starting = replace(BROKER_POD, node_name="new", ready=False)
    returned = replace(starting, ready=True)
    incident = learn(DRAINING, replace(seen(1.0), pods=where(BROKER_POD)))
    # While the node drains Kafka is not asked: the pod alone tells.
    incident = learn(incident, Observation(now=2.0, instance=None, pods=where(stopping)))
    incident = replace(incident, state=State.GATING)
    for at, pod, fenced in (
        (3.0, None, True),
        (4.0, replace(starting, node_name=None), True),
        (5.0, starting, True),
        (6.0, returned, False),
    ):
        incident = learn(incident, replace(seen(at, fenced=fenced), pods=where(pod)))
    assert told(incident) == [
        "Broker 11 is stopping: its pod stops; it was online.",
        "Broker 11 is offline: the quorum fenced it, and no process of it runs; it was stopping.",
        "Broker 11 is fenced: the quorum fenced it; it was offline.",
        "Broker 11 is online: it is registered and not fenced; it was fenced.",
    ]
    assert [note.at for note in incident.notes] == [2.0, 3.0, 5.0, 6.0]


def test_a_reading_without_kafka_of_a_pod_that_stays_changes_nothing() -> None:
    online = learn(DRAINING, replace(seen(1.0), pods=where(BROKER_POD)))
    assert learn(online, Observation(now=2.0, instance=None, pods=where(BROKER_POD))) == online


def test_a_broker_on_a_machine_that_ended_is_offline_though_its_pod_is_still_listed() -> None:
    lost = replace(DRAINING, state=State.GATING, lost_at=1.0)
    dead = replace(BROKER_POD, ready=False, stopping=True)
    (said,) = told(learn(lost, replace(seen(2.0, fenced=True), pods=where(dead))))
    assert "is offline: the quorum fenced it, and no process of it runs" in said


def test_a_broker_that_died_within_its_session_is_offline_only_once_it_is_fenced() -> None:
    online = learn(DRAINING, replace(seen(1.0), pods=where(BROKER_POD)))
    unfenced = learn(replace(online, state=State.GATING), replace(seen(2.0), pods=()))
    assert unfenced.lifecycle == "online"
    (said,) = told(learn(unfenced, replace(seen(9.0, fenced=True), pods=())))
    assert "is offline" in said


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
A reboot 9, EC2 reboot 3, EC2 closed => reboot 9
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
    reboots, retires = (heard([Word(A, code, 1, 3 * DAY)]) for code in (REBOOT, RETIREMENT))
    assert (reboots.taken_at, retires.taken_at) == (None, 3 * DAY)
    assert [serves_on(each, 3 * DAY) for each in (reboots, retires)] == [False, True]


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


@every_case("kind", [Kind.VOLUME_PROBLEM, Kind.SICK_NODE, Kind.INSTANCE_ISSUE, Kind.STATE_CHANGE])
@every_case("ignored", [Kind.SCHEDULED_CHANGE, Kind.ROTATION])
def test_another_trouble_is_heard_though_the_plan_is_ignored(kind: Kind, ignored: Kind) -> None:
    planned = replace(Word(A, RETIREMENT, 1, 9 * DAY).told, kind=ignored)
    finished = replace(open_incident(planned, 0.0), ignored_by="ann", state=State.CANCELLED)
    trouble = replace(Word(B, "x", 2).told, kind=kind, dedupe_key="trouble")
    assert reopens(finished, trouble)
    same = replace(open_incident(trouble, 0.0), ignored_by="ann", state=State.CANCELLED)
    assert not reopens(same, replace(trouble, dedupe_key="again"))


@pytest.mark.parametrize("kind", [Kind.REBALANCE, Kind.EVICTION])
def test_what_is_milder_is_no_news_about_what_a_person_ignored(kind: Kind) -> None:
    finished = replace(
        heard([Word(A, RETIREMENT, 1, 9 * DAY)]), ignored_by="ann", state=State.CANCELLED
    )
    assert not reopens(finished, replace(Word(B, "x", 2).told, kind=kind))
