"""What was lent for an incident or a run, and cannot be taken back, is heard by a person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from core.ground.errors import StillwaterError
from core.rotation.run_record import Throttle
from handlers.incidents.broom import NOT_GIVEN_BACK, PATIENCE_SECONDS, UNSEEN
from handlers.incidents.shifts import INCIDENT_CAUSE, shift_in_force
from handlers.rotation.turns import Throttles
from handlers.store.documents import LostZone
from handlers.store.ledger import STRAYS_MESSAGE
from tests.unit.handlers.announced import ec2_event, hook_event
from tests.unit.handlers.fakes import NEW, OLD, group_of, node_named
from tests.unit.handlers.station import Station

STATE_CHANGE = "EC2 Instance State-change Notification"


@pytest.fixture
def station() -> Station:
    """Return a station whose incident i-0a is over."""
    station = Station()
    station.announce(ec2_event(STATE_CHANGE, OLD, state="stopping"))
    for _ in range(2):
        station.tick()
    assert not station.incident().open
    return station


def refused(*_: Any, **__: Any) -> None:
    raise StillwaterError("This user may not do that.")


def throttle(station: Station) -> None:
    wanted = Throttle(brokers=(10,), topics=("t",), follower_bytes_per_s=1, leader_bytes_per_s=1)
    Throttles(station.cluster, station.records, "orders").settle("rotation-1", wanted)


def label(station: Station) -> None:
    station.cluster.pods[10] = replace(station.cluster.pods[10], may_leave="i-0a")


def mark(station: Station) -> None:
    station.cluster.mark_spare(node_named(OLD), "i-0a")


def leaders(station: Station) -> None:
    station.leadership.avoid(f"{INCIDENT_CAUSE}i-0a", [10])


def protection(station: Station) -> None:
    zone = LostZone("use1-az4", "us-east-1a", source="autoshift", occurred_at=station.now)
    station.freezes.note(zone, station.now)
    station.shifts.turn(station.now)
    assert station.cluster.groups[group_of("us-east-1a")].protected
    station.now += 1
    station.freezes.note(replace(zone, over=True, occurred_at=station.now), station.now)


LENT: dict[str, tuple[Callable[[Station], None], str, str]] = {
    "throttle": (throttle, "unthrottle", "replication is throttled"),
    "label": (label, "keep", "pod orders-broker-a-10 may leave"),
    "mark": (mark, "mark_spare", f"node {node_named(OLD)} is kept"),
    "leaders": (leaders, "reorder", "broker 10 leads nothing"),
    "protection": (protection, "protect", "no scale-in"),
}


def minutes(station: Station, count: int, page: str = NOT_GIVEN_BACK) -> list[str]:
    """Let the sweep and the loop try so often; return what a person was called for."""
    for _ in range(count):
        station.now += 60
        sent = len(station.ticks.sent)
        station.broom.sweep(station.now)
        for body, _ in list(station.ticks.sent[sent:]):
            if '"page"' not in body:
                station.loop.turn(body, station.now)
    return [p["reason"] for p in station.ticks.pages if p["page"] == page]


@pytest.mark.parametrize(("lend", "call", "words"), LENT.values(), ids=LENT)
def test_what_cannot_be_given_back_calls_a_person_once(
    station: Station,
    monkeypatch: pytest.MonkeyPatch,
    lend: Callable[[Station], None],
    call: str,
    words: str,
) -> None:
    lend(station)
    monkeypatch.setattr(station.cluster, call, refused)
    assert minutes(station, int(PATIENCE_SECONDS // 60)) == []
    told = [reason for reason in minutes(station, 30) if words in reason]
    assert len(told) == 1
    # Once a day, for as long as it lasts.
    station.now += 86_400
    assert len([reason for reason in minutes(station, 2) if words in reason]) == 2


@pytest.mark.parametrize(("lend", "call", "words"), LENT.values(), ids=LENT)
def test_what_is_given_back_in_time_is_nobodys_matter(
    station: Station,
    monkeypatch: pytest.MonkeyPatch,
    lend: Callable[[Station], None],
    call: str,
    words: str,
) -> None:
    del words
    for _ in range(2):
        lend(station)
        with monkeypatch.context() as patch:
            patch.setattr(station.cluster, call, refused)
            minutes(station, 10)
        assert minutes(station, 2) == []


def test_a_frozen_zone_keeps_its_leaders_away_for_as_long_as_it_lasts(station: Station) -> None:
    station.cluster.add_instance(NEW, "us-east-1b")
    station.freezes.note(LostZone("use1-az6", "us-east-1b", source="autoshift"), station.now)
    assert minutes(station, 40) == []


def test_a_sweep_that_sees_no_nodes_for_long_calls_a_person_once(station: Station) -> None:
    station.cluster.kubernetes_answers = False
    assert minutes(station, 15, UNSEEN) == []
    (told,) = minutes(station, 30, UNSEEN)
    assert "λ sweep could not read Nodes" in told
    station.cluster.kubernetes_answers = True
    assert len(minutes(station, 5, UNSEEN)) == 1


def test_a_sweep_that_knows_no_node_for_kafkas_calls_a_person(station: Station) -> None:
    """Somebody has taken the pools' labels off all nodes, or described another one."""
    nodes = station.cluster.node_views
    for id_, node in nodes.items():
        nodes[id_] = replace(node, pool=None)
    (told,) = minutes(station, 30, UNSEEN)
    assert "none that its pods run on has the label of a pool" in told
    # Where nothing of Kafka's runs, nothing is missed.
    for node_id in (10, 20, 30):
        station.cluster.place_pod(node_id, None)
    assert len(minutes(station, 90, UNSEEN)) == 1


def left(station: Station) -> set[str]:
    """Return which of the things above are lent at this moment."""
    cluster = station.cluster
    found = {
        "throttle": cluster.throttled is not None,
        "label": cluster.pods[10].may_leave is not None,
        "mark": cluster.node_views[OLD].spare_for is not None,
        "leaders": not shift_in_force(station.records, "orders").nothing,
        "protection": any(group.protected for group in cluster.groups.values()),
    }
    return {name for name, lent in found.items() if lent}


@pytest.mark.parametrize("stuck", LENT)
def test_what_cannot_be_given_back_keeps_nothing_else_lent(
    station: Station, monkeypatch: pytest.MonkeyPatch, stuck: str
) -> None:
    for name in ("protection", "throttle", "label", "mark", "leaders"):
        LENT[name][0](station)
    assert left(station) == LENT.keys()
    monkeypatch.setattr(station.cluster, LENT[stuck][1], refused)
    minutes(station, 3)
    assert left(station) == {stuck}


def throttled_by_ec2(*_: Any, **__: Any) -> None:
    raise ClientError({"Error": {"Code": "RequestLimitExceeded"}}, "DescribeInstanceStatus")  # type: ignore[arg-type]


@pytest.mark.parametrize("call", ["statuses", "instance_states", "groups_of"])
def test_one_question_that_aws_does_not_answer_keeps_the_sweep_from_nothing_else(
    station: Station, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    throttle(station)
    station.cluster.terminate("i-0b")
    for hook in ("drain", "gate"):
        station.announce(hook_event(hook, instance_id="i-0b", zone="us-east-1b"))
    station.ticks.sent.clear()
    station.now += 600
    monkeypatch.setattr(station.cluster, call, throttled_by_ec2)
    with pytest.raises(ClientError):  # The function fails, and its alarm says so.
        station.broom.sweep(station.now)
    assert [body for body, _ in station.ticks.sent if "i-0b" in body]
    assert STRAYS_MESSAGE in [body for body, _ in station.ticks.sent]
    assert station.archive.objects
