"""Histories of what happens seldom, played as those of test_histories are and judged alike.

Words twice and a day later, throttled ledgers, edited records, groups that go, machines that their
group sets aside, balances or keeps warm, disks that fail, and dates that AWS moves forward.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.every_case import every_case
from tests.unit.handlers.scene_ends import Told, ends_as_told

A, AB, ABC = Told("released"), Told("released", "released"), Told(*3 * ("released",))
SET_ASIDE = ("set_aside",)
HISTORIES: Mapping[str, Told] = {
    # The same words again: redelivered after the end, redriven a day later, in another order.
    "leave a, wait 60, old ticks, wait 10": A,
    "leave a, wait 2, old ticks, wait 60": A,
    "leave a, wait 60, a day, redriven, wait 20": A,
    "leave a, wait 3, a day, redriven, wait 60": A,
    "leave a, wait 60, redriven, old ticks, redriven, wait 20": A,
    "spot a, wait 60, a day, redriven, wait 20": Told("released", pages=("doubted",)),
    "retire a, wait 60, a day, redriven, wait 20": A,
    "retire a, retire called off a, wait 20, redriven, wait 40": Told("cancelled"),
    "shift a, shift over a, redriven, leave a, wait 60": A,
    "announcements late, leave a, wait 3, announcements come, wait 60": A,
    "announcements late, spot a, five minutes, announcements come, wait 40": A,
    "announcements late, retire a, retire called off a, wait 5, announcements come, wait 9": Told(),
    # The ledger refuses every other write.
    "ledger throttled, leave a, wait 60, ledger free, wait 40": A,
    "leave a, leave b, wait 1, ledger throttled, wait 30, ledger free, wait 60": AB,
    # Somebody edits what we keep.
    "lease for nobody, leave a, leave b, wait 60": AB,
    "leave a, wait 1, lease for nobody, wait 60": A,
    "used lease for nobody, leave a, leave b, wait 90": AB,
    "used lease for nobody, spot a, wait 40": A,
    "leave a, wait 1, marks edited a, wait 60": A,
    "leave a, wait 2, node renamed a, wait 60": A,
    "retire a, wait 1, node unlabelled a, wait 60": A,
    "paused by a newer release, leave a, wait 20, resumed by a newer release, wait 60": Told(
        "released", pages=("unreadable",)
    ),
    "paused by a newer release, spot a, wait 40": Told("released", pages=("unreadable",)),
    # A group goes, or has its machine otherwise than in service.
    "leave a, wait 1, group gone a, wait 60": Told("cancelled", pages=("group_gone", *SET_ASIDE)),
    "leave a, wait 6, group gone a, wait 60": Told("released", pages=SET_ASIDE),
    "retire a, group gone a, wait 60": Told("replacing", pages=("no_group",)),
    "standby a, leave b, wait 60": Told("", "released", pages=SET_ASIDE),
    "standby a, retire a, wait 60": Told("holding", pages=("group_refuses",)),
    "standby a, spot a, wait 40": A,
    "retire a, wait 1, standby a, wait 20, in service a, wait 60": Told(
        "released", pages=("group_refuses",)
    ),
    "leave a, wait 1, unknown lifecycle a, wait 60": Told("released", pages=SET_ASIDE),
    "retire a, wait 1, unknown lifecycle a, wait 60": Told("holding", pages=("group_refuses",)),
    "warm a, leave a, no capacity a, wait 20, capacity a, wait 60": Told(
        "released", pages=("late_replacement",)
    ),
    "warm a, balanced a, wait 60": A,
    "balanced a, balanced b, wait 60": AB,
    "retire a, wait 1, balanced a, wait 60": A,
    "refreshed a, refreshed b, refreshed c, wait 90": ABC,
    "refreshed a, refreshed b, wait 1, spot c, wait 90": ABC,
    # EC2 recommends, warns, and moves its dates.
    "recommended a, recommended b, recommended c, leave a, wait 60": Told(
        "released", "ridden_through", "ridden_through"
    ),
    "recommended a, a day, spot a, wait 40": A,
    "spot a, spot b, spot c, wait 90": ABC,
    "leave a, leave b, spot a, spot b, wait 90": AB,
    "said shutting down a, wait 20": Told("cancelled"),
    "leave a, said shutting down a, wait 60": A,
    "retire a, wait 1, retire in an hour a, wait 60": A,
    "retire in an hour a, leave b, retire in ten minutes c, wait 120": ABC,
    "retire an hour ago a, wait 60": A,
    "retire a, pause, retire in ten minutes a, wait 20, resume, wait 60": Told(
        "released", pages=("held_past_date",)
    ),
    "shift a, retire a, retire in an hour a, wait 60, shift over a": Told(
        "released", pages=("frozen_zone",)
    ),
    # Kafka keeps it: a disk that is offline, an operator that rolls, a quorum that comes and goes.
    "log dir fails b, leave a, wait 10, log dir mended b, wait 60": A,
    "log dir fails b, leave a, wait 10, half a day, wait 20": Told(
        "retained", pages=("hold_limit",)
    ),
    "log dir fails b, retire in ten minutes a, wait 60": Told("holding", pages=("waits_long",)),
    "log dir fails b, spot a, wait 60": A,
    "rolled c, leave a, wait 10, rolled over c, wait 60": A,
    "rolled c, retire a, wait 10, half a day, wait 20": Told("holding", pages=("waits_long",)),
    "leave a, leave b, wait 2, rolled c, wait 20, rolled over c, wait 60": AB,
    "leave a, wait 2, kafka without quorum, wait 2, kafka well, kafka without quorum, wait 2, "
    "kafka well, wait 60": A,
    # Long waits.
    "retire a, wait 1, pause, a weekend, resume, wait 60": A,
    "retire a, pause, a weekend, wait 10, resume, wait 60": A,
    "leave a, pause, a weekend, wait 5, resume, wait 60": A,
    "leave a, wait 1, a weekend, wait 60": Told("retained", pages=("hold_limit",)),
    "leave a, wait 2, kafka silent, api away, nth away, an hour, wait 6, api back, kafka well, "
    "nth back, wait 60": Told("released", pages=("blind",)),
    "leave a, wait 1, ignore a, wait 3, spot a, wait 40": Told("released", pages=("ignored",)),
    # Two zones at once.
    "shift a, shift b, leave c, wait 60": Told("", "", "released"),
    "shift a, spot a, shift b, spot b, wait 60, shift over a, shift over b, wait 20": AB,
    "leave a, leave b, wait 1, spare dies a, spare dies b, wait 90": AB,
    "leave a, leave b, wait 3, cordon spare a, cordon spare b, wait 60": Told(
        "released", "replacing", pages=("late_replacement",)
    ),
    "leave a, leave b, leave c, release c, wait 120": ABC,
}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logging.Logger._log", lambda *_, **__: None)
    monkeypatch.setattr("handlers.adapters.metrics.count", lambda *_: None)


@every_case(("history", "told"), HISTORIES.items(), ids=HISTORIES)
def test_a_seldom_history_ends_as_it_should(history: str, told: Told) -> None:
    ends_as_told(history, told)
