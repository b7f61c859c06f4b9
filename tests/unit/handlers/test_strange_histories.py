"""Histories of faults in orders that nobody plans for, judged as those of test_histories.

Several words about one machine, quorums of three and five, topics that change under a drain,
brokers that come back otherwise than they went, and groups that go, refuse or retain.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from core.incidents.replacement import own_refusal
from tests.every_case import every_case
from tests.unit.handlers.scene_ends import Told, ends_as_told
from tests.unit.handlers.scenes import Scene
from tests.unit.handlers.station import Station

pytestmark = pytest.mark.usefixtures("quiet")

A, AB, ABC = Told("released"), Told("released", "released"), Told(*3 * ("released",))
ORDERS: Mapping[str, Told] = {
    "recommended a, spot a, leave a, wait 40": A,
    "spot a, recommended a, leave a, wait 40": A,
    "leave a, recommended a, spot a, wait 40": A,
    "leave a, spot a, recommended a, redriven, wait 40": A,
    "spot a, leave a, recommended a, redriven, wait 40": A,
    "announcements late, recommended a, spot a, leave a, an hour, announcements come, wait 60": (
        Told("lost", pages=("doubted", "lost"))
    ),
    "announcements late, recommended a, leave a, half a day, announcements come, wait 60": A,
    "clock back, spot a, clock ahead, leave a, wait 40": A,
    "leave a, clock back, leave b, clock ahead, wait 60": AB,
    "retire in an hour a, recommended a, spot a, wait 40": A,
    "reboot a, retire a, retire called off a, reboot called off a, wait 40": Told("cancelled"),
    "reboot a, leave a, wait 60": A,
    "retire a, retire sooner a, retire called off a, retire in an hour a, wait 60": A,
    "shift a, leave a, wait 10, die a, shift over a, wait 60": Told("lost", pages=("lost",)),
    "shift a, spot a, leave a, wait 20, redriven, shift over a, wait 60": Told(
        "released", pages=("doubted",)
    ),
    "leave a, wait 2, shift a, wait 20, leave b, wait 20, shift over a, wait 60": AB,
    "shift b, shift b, leave b, wait 4, shift over b, shift b, wait 4, shift over b, wait 60": (
        Told("", "released")
    ),
    "shift a, die a, die b, wait 20, shift over a, leave c, wait 60": Told(
        "lost", "lost", "released"
    ),
    "retire a, wait 1, api away, spot a, wait 5, api back, wait 40": Told("lost"),
    "retire a, backed up, wait 60, restored, wait 60": Told("lost"),
    "leave a, wait 2, backed up, wait 60, restored, wait 60": A,
    "ledger throttled, spot a, leave b, wait 40, ledger free, wait 60": Told("lost", "released"),
    "leave a, leave b, wait 2, restored, lease deleted, ticks doubled, old ticks, wait 60": AB,
    "leave a, wait 2, die a, leave b, wait 60": AB,
    "leave a, leave b, leave c, die a, wait 90": Told("lost", "released", "released"),
    "retire a, retire b, die c, wait 60": Told("released", "released", "lost"),
    "leave a, node deleted a, wait 40": A,
    "retire a, wait 1, node deleted a, wait 60": A,
}
KAFKA: Mapping[str, Told] = {
    # Controllers away beside brokers.
    "one of three controllers lost, leave a, die b, die c, wait 60": Told(
        "released", "lost", "lost"
    ),
    "two of five controllers lost, leave a, wait 40": A,
    "two of five controllers lost, spot a, spot b, wait 20, leave c, wait 60": ABC,
    "leave a, wait 2, three of five controllers lost, wait 20, controllers well, wait 60": A,
    "three of five controllers lost, spot a, wait 10, controllers well, wait 60": A,
    "three of five controllers lost, leave a, wait 10, half a day, wait 20": Told(
        "retained", pages=("hold_limit",)
    ),
    "three of five controllers lost, die a, wait 20, leave b, wait 20, controllers well, wait 60": (
        Told("lost", "released")
    ),
    # A reading that Kafka denies lets nobody go, and brings nobody back.
    "reading denied, leave a, wait 30": Told("holding", pages=("kafka_rights",)),
    "reading denied, retire in ten minutes a, wait 30": Told(
        "holding", pages=("kafka_rights", "waits_long")
    ),
    "reading denied, spot a, wait 30": Told("gating", pages=("kafka_rights",)),
    "leave a, wait 3, reading denied, wait 20, reading allowed, wait 60": Told(
        "released", pages=("kafka_rights",)
    ),
    # Topics with few replicas, and minimums and places that change meanwhile.
    "minimum three, leave a, wait 60": A,
    "leave a, wait 3, minimum three, wait 60": A,
    "log dir fails b, leave a, wait 3, minimum three, wait 10, half a day, wait 20": Told(
        "retained", pages=("hold_limit",)
    ),
    "leave a, minimum three, log dir fails b, wait 10, log dir mended b, wait 40": A,
    "single replica a, leave a, wait 40": A,
    "single replica a, spot a, leave b, wait 60": AB,
    "two replicas a, leave b, wait 40": Told("", "released"),
    "two replicas a, die b, wait 1, leave a, wait 60": Told("released", "lost"),
    "two replicas a, empty log dir b, leave a, wait 20, refilled b, wait 40": A,
    "two replicas of minimum one a, falls behind b, leave a, wait 40": A,
    "two replicas a, leave a, wait 2, topics deleted a, wait 40": A,
    "leave a, wait 2, moved off a, wait 40": A,
    "moved off a, leave a, wait 40": A,
    "moved off a, die a, leave b, wait 60": Told("lost", "released"),
    "leave a, wait 3, moved off b, wait 40, moved back b": A,
    "leave a, wait 3, single replica a, wait 40": A,
    # Brokers that come back otherwise than they went, late, or not at all.
    "leave a, wait 3, another id a, half a day, wait 40": Told("lost", pages=("not_back",)),
    "leave a, wait 3, empty log dir a, wait 40, refilled a, wait 40": A,
    "leave a, leave b, wait 3, empty log dir a, wait 40, refilled a, wait 40": AB,
    "leave a, wait 3, empty log dir a, half a day, wait 40": Told("lost", pages=("not_back",)),
    "spot a, wait 3, empty log dir a, leave b, wait 20, refilled a, wait 60": AB,
    "pod gone a, leave b, wait 60, pod made a, wait 60": Told("", "released"),
    "pod gone a, leave a, wait 60": Told("opened", pages=("volume_on_idle_node",)),
    "leave a, wait 3, pod gone a, wait 40, pod made a, wait 60": A,
}
GROUPS: Mapping[str, Told] = {
    "retire a, group refuses, wait 20, group does as asked, wait 60": Told(
        "released", pages=("group_refuses",)
    ),
    # What is retained is in nobody's number any more: its group has replaced it.
    "leave a, hooks abandoned a, retire in ten minutes a, wait 60": A,
    "leave a, hooks abandoned a, retire in ten minutes a, wait 1, release a, wait 60": A,
    "leave a, hooks abandoned a, wait 5, retire in ten minutes a, release a, wait 60": A,
    "leave a, hooks abandoned a, spot a, wait 40": A,
    "leave a, wait 1, hooks abandoned a, wait 3, retire a, wait 60": Told(
        "released", pages=("retained",)
    ),
    "leave a, wait 1, hooks abandoned a, retire a, wait 60": Told("retained", pages=("retained",)),
    "leave a, wait 1, hooks abandoned a, wait 3, die a, wait 60": Told("lost", pages=("retained",)),
    "retire a, wait 1, standby a, wait 60, die a, wait 20": Told(
        "lost", pages=("group_refuses", "lost")
    ),
    "group gone a, group gone b, group gone c, wait 10": Told(pages=("set_aside",)),
    "group gone a, group gone b, group gone c, die a, wait 40": Told("lost", pages=("set_aside",)),
    "retire a, wait 1, group gone a, group gone b, group gone c, wait 40": Told(
        "holding", pages=("set_aside", "group_refuses")
    ),
    "leave a, no capacity a, pause, a weekend, resume, capacity a, wait 40": A,
    "leave a, no capacity a, hold a, wait 30, capacity a, wait 60": Told(
        "released", pages=("late_replacement",)
    ),
    "leave a, no capacity a, wait 10, capacity elsewhere a, capacity a, wait 60": Told(
        "replacing", pages=("late_replacement",)
    ),
    "spot a, spot b, no capacity a, no capacity b, wait 60, capacity a, capacity b, wait 60": AB,
    "retire a, kafka silent, wait 3, balanced a, kafka well, wait 60": A,
    "retire a, kafka silent, wait 3, refreshed a, kafka well, wait 60": A,
    "retire a, kafka silent, wait 3, scaled in a, kafka well, wait 60": A,
    "warm a, warm b, refreshed a, refreshed b, spot c, wait 90": ABC,
    # Machines without Kafka that no group would terminate: no hooks ever stand.
    "delete pod b, retire in an hour b, group gone b, wait 30": Told(
        "", "opened", pages=("no_group",)
    ),
    "delete pod b, standby b, retire in an hour b, wait 30": Told(
        "", "opened", pages=("no_group",)
    ),
    "delete pod b, standby b, retire in an hour b, wait 5, in service b, wait 40": Told(
        "", "released", pages=("no_group",)
    ),
}
HISTORIES = {**ORDERS, **KAFKA, **GROUPS}
# A group refused what was asked of it, so that somebody was called: its room is given back by
# whatever comes next.
LATER: Mapping[str, Told] = {
    (
        "retire in ten minutes a, retire in ten minutes b, group refuses, wait 20, "
        "group does as asked, die a, die b, wait 60"
    ): Told("lost", "lost", pages=("group_refuses", "group_refuses")),
    (
        "group refuses, retire in ten minutes a, wait 1, retire called off a, wait 1, "
        "group does as asked, wait 90"
    ): Told("cancelled"),
    "retire in ten minutes a, group refuses, wait 10, group does as asked, die a, wait 40": Told(
        "lost", pages=("group_refuses",)
    ),
    "retire in ten minutes a, group refuses, wait 10, group does as asked, release a, wait 40": (
        Told("released", pages=("group_refuses",))
    ),
}


@every_case(("history", "told"), HISTORIES.items(), ids=HISTORIES)
def test_a_strange_history_ends_as_it_should(history: str, told: Told) -> None:
    ends_as_told(history, told)


@every_case(("history", "told"), LATER.items(), ids=LATER)
def test_room_that_a_group_kept_is_given_back_later(history: str, told: Told) -> None:
    scene = ends_as_told(history, told)
    assert {group.desired for group in scene.station.cluster.groups.values()} == {1}


@every_case("words", ("violates the group's min size constraint", "Instance Id not found", None))
def test_a_group_that_keeps_an_idle_machine_for_good_is_asked_once(words: str | None) -> None:
    scene = Scene(Station(), lambda _: 0)
    scene.play("leave a, wait 1")
    incident = scene.incident("a")
    assert incident is not None
    assert own_refusal(incident, "i-idle", words) is None


def test_two_brokers_on_one_machine_are_not_drained_together() -> None:
    scene = Scene(Station(), lambda _: 0)
    scene.station.cluster.place_pod(20, "i-0a")
    scene.play("leave a, wait 5")
    assert scene.station.termination_handler.sent == []
    assert {"shared_node"} == {page["page"] for page in scene.pages}


def test_who_is_called_for_a_machine_that_is_kept_hears_when_aws_takes_it_all_the_same() -> None:
    told = Told("retained", pages=("retained",))
    scene = ends_as_told("leave a, wait 1, hooks abandoned a, retire a, wait 20", told)
    (page,) = scene.pages
    assert "AWS takes it at 2026-11-27" in page["reason"]
