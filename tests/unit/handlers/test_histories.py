"""Histories in the middle of which something else happens, played with the shipped functions.

Of each: nobody is taken out while another is out by our doing, nobody is drained into nothing, and
whoever is not over in the end, or is kept, has called a person with the words named here.
"""

from __future__ import annotations

import pytest

from tests.every_case import every_case
from tests.unit.handlers.scene_ends import Told, ends_as_told

pytestmark = pytest.mark.usefixtures("quiet")

HISTORIES: dict[str, Told] = {
    # Who leaves together.
    "leave a, leave b, leave c, wait 60": Told("released", "released", "released"),
    "leave a, wait 2, leave b, wait 2, lease deleted, wait 60": Told("released", "released"),
    "leave a, leave b, wait 1, lease deleted, wait 1, lease deleted, wait 60": Told(
        "released", "released"
    ),
    "leave a, leave b, wait 2, ticks doubled, wait 2, ticks doubled, wait 60": Told(
        "released", "released"
    ),
    "announced a, wait 60": Told("cancelled"),
    "leave a, wait 60, announced a, wait 10": Told("released"),
    # Kafka's readings.
    "kafka silent, leave a, leave b, wait 6, kafka well, wait 60": Told("released", "released"),
    "leave a, wait 2, kafka not whole, wait 6, kafka well, wait 60": Told("released"),
    "kafka not whole, leave a, wait 30": Told("holding", pages=("doubt",)),
    "kafka without quorum, leave a, wait 8, kafka well, wait 60": Told("released"),
    "leave a, wait 3, kafka without quorum, wait 5, leave b, wait 5, kafka well, wait 60": Told(
        "released", "released"
    ),
    "kafka silent, leave a, wait 30": Told("holding", pages=("kafka_silent",)),
    # What Kubernetes and the termination handler do.
    "leave a, wait 1, api away, an hour, wait 6, api back, wait 60": Told("released"),
    "leave a, leave b, wait 2, api away, an hour, wait 6, api back, wait 60": Told(
        "released", "released"
    ),
    "nth away, leave a, leave b, wait 8, nth back, wait 60": Told("released", "released"),
    "nth away, leave a, wait 60": Told("draining", pages=("drain_stuck",)),
    "leave a, wait 2, nth away, lease deleted, leave b, wait 8, nth back, wait 60": Told(
        "released", "released"
    ),
    # Capacity.
    "no capacity a, leave a, wait 20, capacity a, wait 60": Told("released"),
    "no capacity a, leave a, wait 40": Told("replacing", pages=("late_replacement",)),
    "capacity elsewhere a, leave a, wait 40": Told("replacing", pages=("late_replacement",)),
    "maximum lowered a, retire a, wait 40": Told("replacing", pages=("no_room",)),
    "retire a, no capacity a, wait 3, maximum lowered a, wait 40": Told(
        "replacing", pages=("late_replacement",)
    ),
    "leave a, wait 1, cordon spare a, wait 40": Told("replacing", pages=("late_replacement",)),
    # What people do.
    "leave a, wait 1, pause, half a day, wait 2, resume, wait 60": Told("released"),
    "leave a, wait 2, pause, an hour, resume, wait 60": Told("released"),
    "pause, leave a, leave b, wait 20, resume, wait 60": Told("released", "released"),
    "leave a, hold a, wait 60": Told("released"),
    "leave a, wait 1, delete pod b, wait 60": Told("released"),
    "leave a, leave b, wait 1, delete pod c, wait 60": Told("released", "released"),
    "leave a, wait 1, delete pod a, wait 60": Told("released"),
    "leave a, wait 1, ignore a, wait 60": Told("retained", pages=("ignored",)),
    "leave a, wait 1, ignore a, wait 5, release a, wait 60": Told("released"),
    "leave a, wait 1, hooks abandoned a, wait 20": Told("retained", pages=("retained",)),
    "leave a, wait 1, hooks abandoned a, wait 5, release a, wait 60": Told("released"),
    "leave a, wait 1, hooks abandoned a, leave b, wait 60": Told(
        "retained", "released", pages=("retained",)
    ),
    "leave a, wait 1, hooks completed a, wait 60": Told("lost"),
    "leave a, leave b, wait 1, hooks completed a, wait 60": Told("lost", "released"),
    "leave a, wait 1, cordon a, wait 60": Told("released"),
    # Machines.
    "leave a, die a, wait 60": Told("lost"),
    "leave a, wait 2, die b, wait 60": Told("released", "lost"),
    "die b, leave a, wait 60": Told("released", "lost"),
    "spot a, wait 60": Told("released"),
    "leave a, spot b, wait 60": Told("released", "released"),
    "retire a, leave a, spot a, wait 60": Told("released"),
    "leave a, wait 1, retire a, wait 60": Told("released"),
    # What AWS schedules.
    "retire a, wait 60": Told("released"),
    "retire a, retire called off a, wait 60": Told("cancelled"),
    "retire a, reboot a, reboot called off a, wait 60": Told("released"),
    "reboot a, retire a, wait 60": Told("released"),
    "retire a, wait 1, reboot a, wait 60": Told("released"),
    "retire a, no capacity a, wait 3, retire called off a, wait 60": Told("cancelled"),
    "retire a, retire called off a, wait 2, retire a, wait 60": Told("released"),
    "retire a, retire b, retire c, wait 60": Told("released", "released", "released"),
    "retire a, leave b, wait 60": Told("released", "released"),
    "retire a, retire sooner a, wait 60": Told("released"),
    # What was asked for is given back, however it ends.
    "retire a, leave b, wait 3, leave a, wait 60": Told("released", "released"),
    "retire a, wait 1, leave a, wait 60": Told("released"),
    "retire a, wait 1, die a, wait 60": Told("lost"),
    "retire a, wait 1, ignore a, wait 20": Told("cancelled"),
    "retire a, wait 1, retire called off a, wait 20": Told("cancelled"),
    "retire a, wait 1, cordon spare a, retire called off a, wait 20": Told("cancelled"),
    # Zones.
    "shift a, leave a, wait 8, shift over a, wait 60": Told("released"),
    "leave a, leave b, wait 1, shift a, wait 20, shift over a, wait 60": Told(
        "released", "released"
    ),
    "shift a, shift b, leave a, leave b, wait 8, shift over b, wait 20, shift over a, wait 60": (
        Told("released", "released")
    ),
    "shift a, shift over a, leave a, wait 60": Told("released"),
    "shift over a, shift a, leave b, wait 60": Told("", "released"),
    "shift a, retire a, wait 20, shift over a, wait 60": Told("released"),
    "shift a, spot a, wait 60": Told("released"),
}


@every_case(("history", "told"), HISTORIES.items(), ids=HISTORIES)
def test_a_history_ends_as_it_should(history: str, told: Told) -> None:
    ends_as_told(history, told)
