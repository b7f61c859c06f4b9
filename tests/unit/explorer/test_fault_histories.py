"""Histories of outages and of other people's automation, played with the shipped functions.

Of each: no rule of the explorer's breaks, every incident ends as it is said here, and who is called
is called with these words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.explorer import scenarios
from tests.explorer.choices import Choice
from tests.explorer.history import played
from tests.explorer.scenarios import SCENARIOS, Scenario
from tests.explorer.stage import Stage, explored

ONE, TWO = scenarios.ONE, scenarios.TWO
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
ROTATION = BY_NAME["a rotation and a leaver"]
AHEAD = BY_NAME["one by one of six, machines ahead"]
DIRECT, SPOT_DIRECT, RETIRED_DIRECT, _ = scenarios.DIRECT
DISKS, ZONE_OF_DISKS = scenarios.REFILLED
LONG_HELD = scenarios.LONG_HELD
A, B, C = (f"us-east-1{letter}" for letter in "abc")
GROUPS = tuple(f"local-orders-broker-{letter}" for letter in "abc")


def at(seconds: float, *choice: str) -> tuple[float, Choice]:
    return seconds, choice


@dataclass(frozen=True)
class History:
    """A scenario in which more happens, and how it must end."""

    what: str
    scenario: Scenario
    told: tuple[tuple[float, Choice], ...]
    ends: str  # each incident and its last state
    pages: frozenset[str] = frozenset()
    quiet: bool = False  # nobody is called


def quiet(what: str, scenario: Scenario, ends: str, *told: tuple[float, Choice]) -> History:
    return History(what, scenario, told, ends, quiet=True)


def calling(
    pages: str, what: str, scenario: Scenario, ends: str, *told: tuple[float, Choice]
) -> History:
    return History(what, scenario, told, ends, frozenset(pages.split()))


BOTH = "i-0a released, i-0b released"
EVERY = "i-0a released, i-0b released, i-0c released"
HISTORIES = (
    # A machine ends beside its group.
    calling(
        "lost",
        "terminated by hand before its replacement is Ready",
        ONE,
        "i-0a lost",
        at(60, "terminated by hand", "i-0a"),
    ),
    calling(
        "ended_early",
        "terminated by hand in the middle of its drain",
        ONE,
        "i-0a released",
        at(140, "terminated by hand", "i-0a"),
    ),
    quiet(
        "terminated by hand while its broker catches up elsewhere",
        ONE,
        "i-0a released",
        at(300, "terminated by hand", "i-0a"),
    ),
    calling(
        "lost",
        "the replacement is terminated by hand under the broker",
        ONE,
        "i-0a released, i-1a lost",
        at(300, "terminated by hand", "i-1a"),
    ),
    calling(
        "lost",
        "one waits for its turn and is terminated by hand",
        TWO,
        "i-0a released, i-0b lost",
        at(140, "terminated by hand", "i-0b"),
    ),
    calling(
        "lost",
        "stopped by hand before its replacement is Ready",
        ONE,
        "i-0a lost",
        at(60, "stopped by hand", "i-0a"),
    ),
    quiet(
        "stopped by hand in the middle of its drain",
        ONE,
        "i-0a released",
        at(140, "stopped by hand", "i-0a"),
    ),
    calling(
        "lost",
        "stopped by hand, and started again later",
        ONE,
        "i-0a lost",
        at(60, "stopped by hand", "i-0a"),
        at(400, "started by hand", "i-0a"),
    ),
    # A Node goes.
    quiet(
        "its Node is deleted for good before its replacement is Ready",
        ONE,
        "i-0a released",
        at(60, "node for good", "i-0a"),
    ),
    quiet(
        "its Node is deleted for good in the middle of its drain",
        ONE,
        "i-0a released",
        at(140, "node for good", "i-0a"),
    ),
    calling(
        "not_back",
        "the replacement's Node is deleted for good under the broker",
        ONE,
        "i-0a retained",
        at(250, "node for good", "i-1a"),
    ),
    # EC2 recommends, and then warns.
    History(
        "another machine is recommended to be left, and warned",
        ONE,
        (at(60, "recommended", "i-0b"),),
        "i-0a released, i-0b ridden_through, i-0b.2 released",
    ),
    History(
        "a machine in its hooks is recommended to be left, and warned",
        ONE,
        (at(60, "recommended", "i-0a"),),
        "i-0a released",
    ),
    History(
        "a machine is recommended to be left before its group ends it",
        ONE,
        (at(1, "recommended", "i-0a"),),
        "i-0a ridden_through, i-0a.2 released",
    ),
    # Words in the wrong order.
    quiet(
        "a machine in its hooks is said to have ended before it has",
        ONE,
        "i-0a released",
        at(60, "said to end", "i-0a", "terminated"),
    ),
    quiet(
        "a machine that serves is said to end",
        ONE,
        "i-0a released, i-0b cancelled",
        at(60, "said to end", "i-0b", "shutting-down"),
    ),
    quiet(
        "a machine is said to end before its hooks are announced",
        ONE,
        "i-0a released",
        at(11, "said to end", "i-0a", "shutting-down"),
    ),
    quiet(
        "a machine is said to have ended long after it was let go",
        ONE,
        "i-0a released",
        at(700, "said to end", "i-0a", "terminated"),
    ),
    # Somebody refreshes or balances groups.
    quiet(
        "every group is refreshed while one leaves",
        ONE,
        EVERY,
        *(at(60, "refreshed", name) for name in GROUPS[1:]),
    ),
    quiet(
        "its group is refreshed in the middle of its drain",
        ONE,
        "i-0a released, i-1a released",
        at(140, "refreshed", GROUPS[0]),
    ),
    quiet(
        "its group is refreshed while its broker catches up",
        ONE,
        "i-0a released, i-1a released",
        at(300, "refreshed", GROUPS[0]),
    ),
    History(
        "a group is refreshed while a run rotates it",
        ROTATION,
        (at(100, "refreshed", GROUPS[0]),),
        f"{EVERY}, i-1a released, i-3a released",
    ),
    quiet(
        "another group is balanced",
        ONE,
        "i-0a released, i-0b released",
        at(60, "balanced", GROUPS[1]),
    ),
    # A zone falls silent.
    calling(
        "late_replacement",
        "its zone is silent before its replacement is Ready",
        ONE,
        "i-0a released",
        at(60, "zone silent", A),
    ),
    calling(
        "not_back",
        "its zone is silent in the middle of its drain",
        ONE,
        "i-0a retained",
        at(140, "zone silent", A),
    ),
    History(
        "another zone is silent",
        ONE,
        (at(60, "zone silent", B),),
        BOTH,
    ),
    History(
        "a third zone is silent while two leave",
        TWO,
        (at(60, "zone silent", C),),
        EVERY,
    ),
    calling(
        "no_capacity",
        "a group launches nothing for a while and says so",
        ONE,
        "i-0a released",
        at(15, "launch fails", GROUPS[0]),
    ),
    # Kafka's leaders change without everybody in sync.
    quiet(
        "only its own broker is in sync",
        ONE,
        "i-0a released",
        at(60, "alone in sync", "10"),
    ),
    quiet(
        "only another broker is in sync",
        ONE,
        "i-0a released",
        at(60, "alone in sync", "20"),
    ),
    quiet(
        "another broker stays alone in sync in the middle of a drain",
        ONE,
        "i-0a released",
        at(140, "alone in sync", "20"),
    ),
    quiet(
        "the broker that comes back leads uncleanly",
        ONE,
        "i-0a released",
        at(300, "unclean", "10"),
    ),
    # Ten minutes without an API.
    quiet(
        "Kubernetes is away for ten minutes before the drain",
        ONE,
        "i-0a released",
        at(60, "away shortly", "api"),
    ),
    quiet(
        "Kubernetes is away for ten minutes in the middle of the drain",
        ONE,
        "i-0a released",
        at(140, "away shortly", "api"),
    ),
    quiet(
        "Kafka's admin is away for ten minutes before the drain",
        ONE,
        "i-0a released",
        at(60, "away shortly", "kafka"),
    ),
    quiet(
        "Kafka's admin is away for ten minutes while the gate waits",
        TWO,
        BOTH,
        at(300, "away shortly", "kafka"),
    ),
    # The end that AWS sets hooks.
    quiet("a day's pause ends in time", LONG_HELD, BOTH),
    calling(
        "hold_limit",
        "Kafka's admin is away until the hooks' own end",
        LONG_HELD,
        "i-0a retained, i-0b released",
        at(1200, "away", "kafka", "4300"),
    ),
    calling(
        "hold_limit",
        "a pause goes on until the hooks' own end",
        LONG_HELD,
        "i-0a retained, i-0b released",
        at(3000, "pause"),
    ),
    calling(
        "retained",
        "AWS is away until the hooks have run out",
        LONG_HELD,
        "i-0a retained, i-0b retained",
        at(3000, "away", "aws", "4000"),
    ),
    # Writes that lose, and words that come again.
    quiet(
        "every write loses its race once",
        TWO,
        BOTH,
        *(at(s, "every write", "race") for s in (12, 132, 192, 555)),
    ),
    quiet(
        "every write is refused by itself",
        TWO,
        BOTH,
        *(at(s, "every write", "late_race") for s in (12, 132, 192, 555)),
    ),
    quiet(
        "batches are delivered again",
        TWO,
        BOTH,
        at(12, "batch again", "events"),
        at(132, "batch again", "ticks"),
        at(192, "batch again", "ticks"),
    ),
    quiet(
        "clocks are a minute apart",
        TWO,
        BOTH,
        at(1, "clock", "ticks", "30"),
        at(1, "clock", "events", "-30"),
        at(1, "clock", "sweep", "-30"),
    ),
    quiet(
        "another environment's events come to the same queue",
        ONE,
        "i-0a released",
        *(at(60, "foreign", w) for w in ("drain", "gate", "state", "spot", "retired")),
    ),
    # An earlier release reads what a later one wrote.
    calling(
        "unreadable",
        "a newer release has moved an incident on",
        ONE,
        "i-0a released",
        at(60, "newer state", "i-0a"),
    ),
    calling(
        "unreadable",
        "a newer release has moved an incident on in its drain",
        TWO,
        BOTH,
        at(140, "newer state", "i-0a"),
    ),
    quiet(
        "functions forget which machines are ahead, and know again",
        AHEAD,
        "i-0a released, i-1a released, i-0b released, i-1b released, i-0c released",
        at(60, "rolled back", "all", "ahead"),
        at(700, "rolled forward"),
    ),
    # The termination handler hears AWS itself.
    quiet("it drains whoever leaves", DIRECT, BOTH),
    History(
        "one ends by hand in its drain, and the handler hears AWS",
        DIRECT,
        (at(20, "terminated by hand", "i-0a"),),
        BOTH,
    ),
    quiet(
        "Kubernetes is away for ten minutes, and the handler hears AWS",
        DIRECT,
        BOTH,
        at(15, "away shortly", "api"),
    ),
    History(
        "a group launches nothing, and the handler hears AWS",
        DIRECT,
        (at(15, "launch fails", GROUPS[0]),),
        BOTH,
    ),
    History("a spot warning that the handler hears", SPOT_DIRECT, (), BOTH),
    quiet("a retirement that the handler hears", RETIRED_DIRECT, BOTH),
    # Refills are throttled, and nothing stays so.
    quiet("a run refills local disks under a throttle", DISKS, EVERY),
    History(
        "the function dies directly after it has set the throttle",
        DISKS,
        (at(1, "armed", "kafka.throttle", "death"),),
        EVERY,
    ),
    History(
        "the function dies before it knows that the throttle is off",
        DISKS,
        (at(1, "armed", "kafka.unthrottle", "death"),),
        EVERY,
    ),
    History(
        "Kafka's admin is away when the throttle should go",
        DISKS,
        (at(400, "away", "kafka", "4300"),),
        "i-0a retained, i-0b cancelled, i-0c retained, i-1b released",
    ),
    History(
        "a run is aborted while a broker refills",
        DISKS,
        (at(400, "run", "abort"),),
        "i-0a released, i-0b cancelled, i-0c released, i-1b released",
    ),
    quiet(
        "somebody else throttles replication already",
        DISKS,
        EVERY,
        at(1, "throttled by others"),
    ),
)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with explored() as wired:
        yield wired


@pytest.mark.parametrize("history", HISTORIES, ids=lambda h: h.what)
def test_a_history_of_faults_ends_as_it_should(stage: Stage, history: History) -> None:
    world = played(stage, history.scenario, history.told)
    assert world.broken == ()
    said = {f"{i.id} {i.state}": i.reason for i in world.incidents.values()}
    assert sorted(said) == sorted(history.ends.split(", ")), said
    pages = {key for _, key in world.paged}
    assert pages >= history.pages
    assert not (history.quiet and pages), pages
