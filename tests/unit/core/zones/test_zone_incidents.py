"""A zone's incident: opened by any service, frozen when borne out, in any order of words.

`at` is AWS's time of a word; `heard` is ours, of whichever function heard it.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.availability.consent import HEALTH_ISSUE, LOST_ZONE
from core.events import ZoneNotice, parse
from core.incidents.actions import Page
from core.incidents.observation import NodeView
from core.zones.evidence import ZoneSight, evidence_of, judge
from core.zones.incident import (
    AUTOSHIFT,
    LONGEST_SILENCE_SECONDS,
    MANUAL_SHIFT,
    PERSON,
    REHEARSAL,
    LostZone,
    ZoneIncident,
    ZoneState,
    freezes_in_force,
    hear,
    thaw,
)
from tests.announcements import load
from tests.every_case import every_case
from tests.tables import rows
from tests.unit.core.zones.health_issues import (
    DECEMBER_2021,
    HISTORIES,
    MARCH_2026,
    OCTOBER_2025,
    History,
    issue,
)
from tests.unit.views import node_view

NAMES = {
    "use1-az4": "us-east-1a", "use1-az6": "us-east-1b", "use1-az1": "us-east-1c",
    "mec1-az2": "me-central-1b", "mec1-az1": "me-central-1a", "mec1-az3": "me-central-1c",
    "euc1-az1": "eu-central-1a", "euc1-az2": "eu-central-1b", "euc1-az3": "eu-central-1c",
}  # fmt: skip
DAY = 86_400.0
NOW = datetime.fromisoformat("2026-11-20T10:00:00+00:00").timestamp()
HOUR_LATER = "2026-11-20T11:00:00+00:00"
ARN = "arn:aws:health:us-east-1::event/EC2/AWS_EC2_OPERATIONAL_ISSUE/one"
TROUBLE = "Power is lost in use1-az4."

Incidents = tuple[ZoneIncident, ...]


def sight(now: float, *troubled: str, zones: Sequence[str] = ()) -> ZoneSight:
    return ZoneSight(
        now=now,
        names=NAMES,
        zones=frozenset(zones or (n for n in NAMES.values() if n.startswith("us-east-1"))),
        evidence={zone: f"1 of 1: the node of {zone} is not Ready" for zone in troubled},
    )


def shift(detail_type: str, *, at: str = "2026-11-20T10:00:00+00:00") -> str:
    event = load("zone-autoshift") | {"detail-type": detail_type, "time": at}
    event["detail"]["metadata"]["awayFrom"] = "use1-az4"
    return json.dumps(event)


def heard(incidents: Incidents, body: str, now: float) -> Incidents:
    for found in parse(body):
        if isinstance(found, ZoneNotice):
            incidents = hear(found, incidents, now)
    return incidents


def told(body: str, now: float, *troubled: str) -> tuple[Incidents, tuple[Page, ...]]:
    return judge(heard((), body, now), sight(now, *troubled))


def zones_of(incidents: Incidents, now: float) -> list[str | None]:
    return [freeze.zone for freeze in freezes_in_force(incidents, now)]


FROZEN, _ = told(issue(TROUBLE), NOW, "us-east-1a")


@every_case("history", HISTORIES, ids=lambda h: h.name)
def test_a_published_history_freezes_its_zone_and_thaws_it_at_last(history: History) -> None:
    incidents: Incidents = ()
    ever: set[str | None] = set()
    mine = [name for name in NAMES.values() if name.startswith(history.region)]
    hurt = mine[0] if history.region != "me-central-1" else "me-central-1b"
    for update, body in zip(history.updates, history.bodies(), strict=True):
        now = datetime.fromisoformat(update.at).timestamp() + 60
        incidents = heard(incidents, body, now)
        incidents, _ = judge(incidents, sight(now, hurt, zones=mine))
        ever |= set(zones_of(incidents, now))
    assert ever == (set() if history is OCTOBER_2025 else {hurt})
    assert zones_of(incidents, now) == []


@every_case("history", HISTORIES, ids=lambda h: h.name)
def test_the_same_history_without_evidence_freezes_nothing(history: History) -> None:
    incidents: Incidents = ()
    for update, body in zip(history.updates, history.bodies(), strict=True):
        now = datetime.fromisoformat(update.at).timestamp() + 60
        incidents, _ = judge(heard(incidents, body, now), sight(now, zones=list(NAMES.values())))
        assert zones_of(incidents, now) == []


def test_an_issue_that_nobody_bears_out_is_watched_and_a_person_called_once() -> None:
    (incident,), pages = told(issue(TROUBLE), NOW)
    assert incident.state is ZoneState.WATCHED
    assert [page.key for page in pages] == ["zone_uncorroborated"]
    again, pages = judge((incident,), sight(NOW + 60))
    assert pages == ()
    borne_out, pages = judge(again, sight(NOW + 120, "us-east-1a"))
    assert zones_of(borne_out, NOW + 120) == ["us-east-1a"]
    assert [page.key for page in pages] == ["zone_frozen"]


@every_case(
    "end",
    [
        issue("All is well.", statusCode="closed"),
        issue("All is well.", statusCode="CLOSED", eventDescription=[]),
        issue("", endTime="Fri, 20 Nov 2026 10:00:00 GMT"),
        issue("Current severity level: Operating normally\n\n[RESOLVED]"),
        issue("use1-az4 has recovered.", statusCode="Closed"),
        # AWS's own last sentence, sometimes before it closes the event.
        issue(
            "[02:10 AM PST] Between 1:00 AM and 2:00 AM PST we saw errors in use1-az4. The issue "
            "has been resolved and the service is operating normally."
        ),
        issue("Trouble.", entities=[{"entityValue": "use1-az4", "status": "RESOLVED"}]),
        issue("Trouble.", entities=[{"entityValue": "use1-az4", "status": "UNIMPAIRED"}]),
        issue("Ende der Störung.", statusCode="closed", eventDescription="?"),
    ],
)
def test_an_issue_ends_by_its_event_whatever_the_text(end: str) -> None:
    assert zones_of(FROZEN, NOW) == ["us-east-1a"]
    assert zones_of(heard(FROZEN, end, NOW + 60), NOW + 60) == []


def test_the_end_of_another_event_leaves_the_zone_frozen() -> None:
    other = issue("use1-az4 is well.", arn=f"{ARN}-other", statusCode="closed")
    assert zones_of(heard(FROZEN, other, NOW + 60), NOW + 60) == ["us-east-1a"]


def test_an_issue_nobody_ends_thaws_by_its_age_and_asks_a_person() -> None:
    limit = LONGEST_SILENCE_SECONDS[HEALTH_ISSUE]
    assert zones_of(FROZEN, NOW + limit - 1) == ["us-east-1a"]
    assert zones_of(FROZEN, NOW + limit) == []
    (over,), pages = judge(FROZEN, sight(NOW + limit, "us-east-1a"))
    assert over.state is ZoneState.THAWED
    assert [page.key for page in pages] == ["zone_silent"]
    assert "zones freeze" in pages[0].reason


def test_an_update_that_names_no_zone_keeps_the_freeze_from_ageing() -> None:
    later = heard(FROZEN, issue("We go on.", at="2026-11-21T08:00:00+00:00"), NOW + 22 * 3600)
    assert zones_of(later, NOW + 30 * 3600) == ["us-east-1a"]


def test_an_event_that_calls_its_zone_well_thaws_it_though_the_issue_goes_on() -> None:
    at = "2026-11-20T11:00:00+00:00"
    later = heard(FROZEN, issue("use1-az4 has recovered; APIs are slow.", at=at), NOW + 3600)
    assert zones_of(later, NOW + 3600) == []


def test_a_freeze_that_moves_to_another_zone_has_an_end_and_calls_again() -> None:
    moved = issue("use1-az4 has recovered. Now use1-az6 is impaired.", at=HOUR_LATER)
    later, pages = judge(heard(FROZEN, moved, NOW + 3600), sight(NOW + 3600, "us-east-1b"))
    assert [(f.zone, f.until) for f in freezes_in_force(later, NOW + 3600)] == [
        ("us-east-1b", NOW + 3600 + LONGEST_SILENCE_SECONDS[HEALTH_ISSUE])
    ]
    assert [page.key for page in pages] == ["zone_frozen"]


def test_an_event_that_names_another_zone_beside_its_frozen_one_calls_a_person() -> None:
    other = heard(FROZEN, issue("use1-az6 is impaired.", at=HOUR_LATER), NOW + 3600)
    after, pages = judge(other, sight(NOW + 3600, "us-east-1a", "us-east-1b"))
    assert zones_of(after, NOW + 3600) == ["us-east-1a"]
    assert [page.key for page in pages] == ["zone_second"]
    assert judge(after, sight(NOW + 3660, "us-east-1a"))[1] == ()


def test_an_end_that_lies_ahead_is_none_yet() -> None:
    planned = issue(TROUBLE, endTime="Fri, 20 Nov 2026 12:00:00 GMT")
    assert zones_of(told(planned, NOW, "us-east-1a")[0], NOW) == ["us-east-1a"]


def test_an_end_that_comes_before_its_beginning_counts() -> None:
    ended = heard((), issue("Over.", at="2026-11-20T11:00:00+00:00", statusCode="closed"), NOW + 60)
    late, pages = judge(heard(ended, issue(TROUBLE), NOW + 7200), sight(NOW + 7200, "us-east-1a"))
    assert zones_of(late, NOW + 7200) == []
    assert pages == ()


def test_a_word_replayed_from_an_archive_is_too_old_to_open_anything() -> None:
    assert heard((), issue(TROUBLE), NOW + 30 * DAY) == ()


@pytest.mark.parametrize(
    "text",
    ["Errors in use1-az4 and use1-az6.", "Errors in use1-az1 through use1-az6.", "use1-az1, az4"],
)
def test_a_text_about_several_zones_freezes_none(text: str) -> None:
    incidents, pages = told(issue(text), NOW, "us-east-1a")
    assert zones_of(incidents, NOW) == []
    assert [page.key for page in pages] == ["zones_many"]


def test_a_second_event_freezes_no_second_zone() -> None:
    first, _ = told(issue(TROUBLE), NOW, "us-east-1a")
    both = heard(first, issue("Errors in use1-az6.", arn=f"{ARN}-other"), NOW)
    after, pages = judge(both, sight(NOW, "us-east-1a", "us-east-1b"))
    assert zones_of(after, NOW) == ["us-east-1a"]
    assert [page.key for page in pages] == ["zone_second"]


def test_nobody_freezes_the_last_zone() -> None:
    incidents = heard((), issue(TROUBLE), NOW)
    alone, pages = judge(incidents, sight(NOW, "us-east-1a", zones=["us-east-1a"]))
    assert zones_of(alone, NOW) == []
    assert [page.key for page in pages] == ["zone_last"]


@pytest.mark.parametrize(
    "entities",
    [
        [{"entityValue": "USE1-AZ4", "status": "IMPAIRED"}],
        ["use1-az4"],
        [{"entityValue": "AWS_ACCOUNT"}, {"entityValue": "use1-az4"}],
    ],
)
def test_a_zone_among_the_entities_counts_like_one_in_the_text(entities: list[object]) -> None:
    incidents, _ = told(issue("Trouble.", entities=entities), NOW, "us-east-1a")
    assert zones_of(incidents, NOW) == ["us-east-1a"]


@pytest.mark.parametrize(
    ("end", "begin"),
    [
        ("Autoshift Completed", "Autoshift In Progress"),
        ("Manual Shift Canceled", "Manual Shift Started"),
    ],
)
def test_a_shifts_end_that_comes_before_its_beginning_counts(end: str, begin: str) -> None:
    ended = heard((), shift(end, at=HOUR_LATER), NOW + 3600)
    assert zones_of(heard(ended, shift(begin), NOW + 3700), NOW + 3700) == []
    anew = heard(ended, shift(begin, at="2026-11-20T12:00:00+00:00"), NOW + 7200)
    assert len(freezes_in_force(anew, NOW + 7200)) == 1


@pytest.mark.parametrize("entity", ["123456789012", "AWS_ACCOUNT", "UNKNOWN"])
def test_an_entity_that_is_an_account_does_not_hide_the_text(entity: str) -> None:
    body = issue(TROUBLE, entities=[{"entityValue": entity}])
    assert zones_of(told(body, NOW, "us-east-1a")[0], NOW) == ["us-east-1a"]


@pytest.mark.parametrize("service", ["EBS", "MULTIPLE_SERVICES", "NETWORKING", "POWER", "DYNAMODB"])
def test_any_services_issue_opens_an_incident(service: str) -> None:
    body = issue(TROUBLE, service=service, eventTypeCode=f"AWS_{service}_OPERATIONAL_ISSUE")
    assert zones_of(told(body, NOW, "us-east-1a")[0], NOW) == ["us-east-1a"]


def test_a_zone_in_which_the_cluster_has_nothing_is_not_its_business() -> None:
    (incident,), pages = told(issue("Power is lost in mec1-az2."), NOW)
    assert incident.state is ZoneState.THAWED
    assert pages == ()


def test_what_a_person_has_thawed_no_later_word_of_the_event_freezes_again() -> None:
    thawed = thaw(FROZEN, "use1-az4", NOW + 60, "ada", "our nodes are fine")
    again = heard(thawed, issue(TROUBLE, at="2026-11-20T11:00:00+00:00"), NOW + 3600)
    after, _ = judge(again, sight(NOW + 3600, "us-east-1a"))
    assert zones_of(after, NOW + 3600) == []
    assert "ada thawed use1-az4: our nodes are fine." in after[0].reason
    for source in (PERSON, LOST_ZONE):  # Those are no words of an event's.
        word = LostZone("use1-az4", "us-east-1a", source=source)
        after = thaw(hear(word, (), NOW), "use1-az4", NOW + 60, "ada", "")
        assert freezes_in_force(hear(word, after, NOW + 120), NOW + 120)


def test_a_history_is_told_in_lines_with_who_and_why() -> None:
    (incident,), _ = told(issue(TROUBLE), NOW, "us-east-1a")
    expected = [(ZoneState.WATCHED, HEALTH_ISSUE), (ZoneState.FROZEN, "shift")]
    assert [(e.state, e.actor) for e in incident.history] == expected
    assert all(entry.reason.endswith(".") for entry in incident.history)


def node(zone: str, number: int, *, ready: bool = True) -> NodeView:
    return node_view(f"{zone}-{number}", f"i-{zone[-1]}{number}", zone, ready=ready)


def test_trouble_that_is_the_same_everywhere_is_no_zones() -> None:
    silent = [node(zone, 1, ready=False) for zone in ("us-east-1a", "us-east-1b", "us-east-1c")]
    assert evidence_of(silent, {}) == {}
    one = [silent[0], *(node(zone, 1) for zone in ("us-east-1b", "us-east-1c"))]
    assert list(evidence_of(one, {})) == ["us-east-1a"]


def test_a_node_that_we_take_out_bears_nothing_out() -> None:
    nodes = [node("us-east-1a", 1, ready=False), node("us-east-1b", 1)]
    assert evidence_of(nodes, {}, leaving={"i-a1"}) == {}


ZONES = ("use1-az4", "USE1-AZ6", "use1-az1")
WORDS = st.sampled_from(
    [
        *(f"{zone} {said}." for zone in ZONES for said in ("is impaired", "has recovered")),
        "All but use1-az4 are operating normally.", "use1-az1 through az6 see errors.",
        "[RESOLVED]", "The issue has been resolved.", "and", "not", "use1-az4", ";", "az6",
    ]
)  # fmt: skip
TEXTS = st.lists(WORDS, max_size=4).map(" ".join)
UPDATES = st.lists(
    st.tuples(
        TEXTS,
        st.sampled_from(["open", "open", "OPEN", "closed", "upcoming", "?"]),
        st.integers(0, 1),  # which event
        st.sampled_from([0, 0, 0, 1, 3, 30]),  # hours it takes to arrive
        st.sets(st.sampled_from(["us-east-1a", "us-east-1b"]), min_size=1),
    ),
    max_size=8,
)


@given(UPDATES)
def test_no_sequence_of_words_leaves_a_freeze_without_an_end_or_freezes_two_zones(
    updates: list[tuple[str, str, int, int, set[str]]],
) -> None:
    incidents: Incidents = ()
    now = NOW
    for text, status, event, late, troubled in updates:
        now += 3600
        at = datetime.fromtimestamp(now - late * 3600, UTC).isoformat()
        body = issue(text, at=at, arn=f"{ARN}-{event}", statusCode=status)
        incidents, _ = judge(heard(incidents, body, now), sight(now, *sorted(troubled)))
        assert len({f.zone_id for f in freezes_in_force(incidents, now)}) <= 1
        assert all(f.until is not None for f in freezes_in_force(incidents, now))
    assert freezes_in_force(incidents, now + LONGEST_SILENCE_SECONDS[HEALTH_ISSUE]) == ()


def test_the_histories_are_heard_as_they_were_announced() -> None:
    first = heard((), DECEMBER_2021.bodies()[1], 1_640_178_060.0)
    assert first[0].zone_ids == ("use1-az4",)
    assert heard((), MARCH_2026.bodies()[0], 1_772_369_520.0)[0].key == MARCH_2026.arn


SAID_AT = 1_795_168_800.0
A, B, C = "use1-az4", "use1-az6", "use1-az1"
THREE_NAMES = {A: "us-east-1a", B: "us-east-1b", C: "us-east-1c"}


@dataclass(frozen=True)
class Word:
    source: str
    key: str
    zone_ids: tuple[str, ...] = ()
    at: float = 0.0
    over: bool = False
    heard: float | None = None
    healthy_ids: tuple[str, ...] = ()
    until: float | None = None
    event_type: str | None = None
    said: str = ""

    @property
    def updated_at(self) -> float:
        return SAID_AT + self.at

    @property
    def occurred_at(self) -> float:
        return SAID_AT + self.at


SOURCES = {
    "shift": AUTOSHIFT,
    "own": MANUAL_SHIFT,
    "rehearsal": REHEARSAL,
    "person": PERSON,
    "health": HEALTH_ISSUE,
    "lost": LOST_ZONE,
}
BY_LETTER = {"a": A, "b": B, "c": C}


def words_of(line: str) -> list[Word]:
    """Return the words of a line: who says what of a zone, when, of which resource, heard when."""
    words = []
    for step in line.split(", "):
        source, letter, at, *more = step.split()
        named = [each for each in more if each != "over"]
        told = dict(zip(named[::2], named[1::2], strict=True))
        zone, heard = BY_LETTER[letter], told.get("heard")
        words.append(
            Word(
                SOURCES[source],
                f"{source}:{zone}:{told.get('of')}",
                (zone,),
                float(at),
                over="over" in more,
                heard=None if heard is None else float(heard),
            )
        )
    return words


# Words by AWS's seconds => the zones that are frozen after them, in whatever order they come.
LETTERED_HISTORIES = """
own a 0, own a 60 over =>
own a 0, own a 60 over, own a 120 => a
own a 0 of one, own a 60 over of two => a
own a 0 of one, own a 30 of two, own a 60 over of two => a
own a 0 of one, own a 30 of two, own a 60 over of two, own a 90 over of one =>
shift a 0, shift b 1 => a b
shift a 0, shift b 1, shift a 60 over => b
shift a 0, own a 30, shift a 60 over => a
shift a 0, rehearsal a 60 over => a
rehearsal a 0 =>
person a 0, shift a 10, shift a 60 over => a
health a 0 =>
shift a 0, health a 10, health a 60 over => a
lost a 0, shift a 60 over => a
shift a 60, shift a 60 over =>
"""
# And where they come in this order, by clocks of ours that differ.
SKEWED = """
# AWS's clock is a minute ahead of ours.
shift a 60 heard 0, shift a 90 over heard 30 =>
# The end is heard by a function whose clock is behind.
shift a 60 heard 0, shift a 90 over heard -20 =>
# The beginning comes late to a function whose clock is behind.
shift a 90 over heard 0, shift a 60 heard -30 =>
# The next shift is heard by a function whose clock is behind.
shift a 60 heard 0, shift a 90 over heard 30, shift a 120 heard -10 => a
# A word from the next century is corrected by the next.
shift a 3e9 heard 0, shift a 900 over heard 900 =>
# An end from the next century hides no later shift.
shift a 3e9 over heard 0, shift a 900 heard 900 => a
# Our clocks are behind by an hour.
shift a 0 heard -3600, shift a 10 over heard -3590 =>
"""


def after(words: Sequence[Word], *, late: float = 600.0) -> tuple[ZoneIncident, ...]:
    incidents: tuple[ZoneIncident, ...] = ()
    for word in words:
        now = SAID_AT + (late if word.heard is None else word.heard)
        incidents = hear(word, incidents, now)
        sight = ZoneSight(now=now, names=THREE_NAMES, zones=frozenset(THREE_NAMES.values()))
        incidents, _ = judge(incidents, sight)
    return incidents


def frozen_in(words: Sequence[Word]) -> str:
    """Return the letters of the zones that are frozen after these words."""
    frozen = {freeze.zone_id for freeze in freezes_in_force(after(words), SAID_AT + 1000)}
    return " ".join(letter for letter, zone in BY_LETTER.items() if zone in frozen)


def orders() -> Iterator[tuple[Sequence[Word], str]]:
    for line, zones in rows(LETTERED_HISTORIES):
        yield from ((order, zones) for order in permutations(words_of(line)))


@every_case(("words", "zones"), orders)
def test_what_is_frozen_is_the_same_in_any_order(words: Sequence[Word], zones: str) -> None:
    assert frozen_in(words) == zones


@every_case(("line", "zones"), rows(SKEWED))
def test_aws_orders_its_own_words_whatever_our_clocks_say(line: str, zones: str) -> None:
    assert frozen_in(words_of(line)) == zones


@pytest.mark.parametrize("source", [AUTOSHIFT, MANUAL_SHIFT])
def test_a_clock_that_is_ahead_makes_no_freeze_longer(source: str) -> None:
    (incident,) = after([Word(source, "one", (A,), 3e9, heard=0.0)])
    assert incident.until == SAID_AT + LONGEST_SILENCE_SECONDS[source]


def test_all_three_zones_at_once_leave_the_last_one_alone() -> None:
    for order in permutations(words_of("shift a 0, shift b 1, shift c 2")):
        assert len(frozen_in(order).split()) == 2
