"""Histories of machines, groups and zones that somebody wrote down, each with how it must end.

tests.explorer.histories_of_services has those of services, releases and throttles.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.explorer import scenarios
from tests.explorer.choices import Choice
from tests.explorer.scenarios import SCENARIOS, Scenario

ONE, TWO = scenarios.ONE, scenarios.TWO
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
ROTATION = BY_NAME["a rotation and a leaver"]
AHEAD = BY_NAME["one by one of six, machines ahead"]
DIRECT, SPOT_DIRECT, RETIRED_DIRECT, _ = scenarios.DIRECT
DISKS = scenarios.REFILLED[0]
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
OF_MACHINES = (
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
    calling(
        "group_refuses",
        "the Node of a machine that its group keeps is deleted in its turn",
        ROTATION,
        "i-0a retained, i-0b cancelled, i-0c released, i-1b released",
        at(70, "node for good", "i-0a"),
        at(71, "refuse", GROUPS[0]),
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
        "a group that was asked for room balances itself before its machine is asked to go",
        BY_NAME["a zone whose brokers share a partition"],
        f"{EVERY}, i-1a released, i-1b released",
        at(5, "away shortly", "ledger"),
        at(750, "balanced", GROUPS[0]),
    ),
    quiet(
        "a group terminates a machine whose broker has just returned to it in place",
        BY_NAME["a rotation in place and a leaver that we drain"],
        "i-0a ridden_through, i-0a.2 released, i-0b ridden_through, i-0c released",
        at(400, "leave", "i-0a"),
    ),
    quiet(
        "and the ledger is away until its hooks have run for half of their time",
        BY_NAME["a rotation in place and a leaver that we drain"],
        "i-0a ridden_through, i-0a.2 released, i-0b ridden_through, i-0c released",
        at(486, "leave", "i-0a"),
        at(642, "away shortly", "ledger"),
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
)
