"""A party's pods under the budgets that know a label: opened with the lease, closed with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.availability.lease import party_name
from core.ground.errors import Conflict
from core.incidents.consenting import wrongly_open
from core.incidents.observation import BudgetView
from core.incidents.record import State
from core.views import Doubt
from handlers.adapters.aws import tick_message
from handlers.incidents.shifts import restore_labels
from handlers.store.ledger import STRAYS_MESSAGE
from tests.unit.handlers.failing import fail
from tests.unit.handlers.fakes import FakeCluster, six_brokers
from tests.unit.handlers.healthy import ZONES
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_rotations import current, start, turn
from tests.unit.handlers.walks import announce_hooks, launch

pytestmark = pytest.mark.usefixtures("quiet")


def budgets(cluster: FakeCluster) -> tuple[BudgetView, ...]:
    """Return what the disruption controller makes of the pods as they are."""
    pods = cluster.pods.values()
    staying = [pod for pod in pods if pod.may_leave is None]
    leaving = [pod for pod in pods if pod.may_leave is not None]
    left = sum(pod.ready for pod in staying) - (len(cluster.pods) - 1)
    return (
        BudgetView(
            name="orders-staying",
            pods=frozenset(pod.name for pod in staying),
            disruptions_allowed=max(0, left),
            yields=True,
        ),
        BudgetView(
            name="orders-leaving",
            pods=frozenset(pod.name for pod in leaving),
            disruptions_allowed=sum(pod.ready for pod in leaving),
        ),
    )


def station_of_six(monkeypatch: pytest.MonkeyPatch) -> Station:
    """Return two brokers in each of three zones, behind the two disruption budgets."""
    for node_id, zone in ((11, "us-east-1a"), (21, "us-east-1b"), (31, "us-east-1c")):
        monkeypatch.setitem(ZONES, node_id, zone)
    cluster = six_brokers()
    monkeypatch.setattr(cluster, "budgets", lambda: budgets(cluster))
    return Station(cluster=cluster)


@pytest.fixture
def station(monkeypatch: pytest.MonkeyPatch) -> Station:
    return station_of_six(monkeypatch)


def labels(station: Station) -> dict[int, str]:
    return {id_: pod.may_leave for id_, pod in station.cluster.pods.items() if pod.may_leave}


def once(station: Station, id_: str) -> None:
    """Let one tick of an incident come."""
    incident = station.incident(id_)
    station.now += 1
    station.loop.turn(tick_message(incident.id, incident.version), station.now)


def opened(station: Station) -> None:
    """Carry both of a zone to where the first one's pod is labelled and nothing is sent yet."""
    start(station, at_once="zone")
    turn(station)
    for _ in range(40):
        if labels(station):
            return
        for id_ in ("i-0a", "i-1a"):
            once(station, id_)
            if labels(station):
                return
        launch(station)
        announce_hooks(station)
    raise AssertionError([i.reason for i in station.ledger.open_incidents()])


def test_nothing_is_sent_before_a_reading_shows_that_the_others_are_kept(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(station)
    (node_id,) = labels(station)
    instance = {10: "i-0a", 11: "i-1a"}[node_id]
    sent = len(station.termination_handler.sent)
    # The disruption controller is behind: it would let one of another zone go.
    (staying, leaving) = budgets(station.cluster)
    late = (replace(staying, disruptions_allowed=1), leaving)
    monkeypatch.setattr(station.cluster, "budgets", lambda: late)
    opened_again: list[str] = []
    monkeypatch.setattr(station.cluster, "let_leave", lambda pod, _: opened_again.append(pod))
    once(station, instance)
    assert "orders-staying does not keep the others yet" in station.incident(instance).reason
    assert opened_again == [station.cluster.pods[node_id].name]
    uncounted = (staying, replace(leaving, disruptions_allowed=0))
    monkeypatch.setattr(station.cluster, "budgets", lambda: uncounted)
    once(station, instance)
    assert "orders-leaving has not counted" in station.incident(instance).reason
    assert len(station.termination_handler.sent) == sent
    monkeypatch.setattr(station.cluster, "budgets", lambda: budgets(station.cluster))
    once(station, instance)
    assert station.incident(instance).state is State.DRAINING
    assert len(station.termination_handler.sent) == sent + 1


def test_a_pod_of_another_zone_that_is_not_ready_closes_what_was_opened(station: Station) -> None:
    opened(station)
    (node_id,) = labels(station)
    instance = {10: "i-0a", 11: "i-1a"}[node_id]
    station.cluster.pods[30] = replace(station.cluster.pods[30], ready=False)
    once(station, instance)
    assert labels(station) == {}
    assert "is not Ready, so no party is opened" in station.incident(instance).reason


def test_who_has_lost_the_lease_to_another_closes_what_it_opened(station: Station) -> None:
    opened(station)
    (node_id,) = labels(station)
    lapse(station)
    station.ledger.take_lease("i-0b", station.now, 900, node_id=20)
    once(station, {10: "i-0a", 11: "i-1a"}[node_id])
    assert labels(station) == {}


def lapse(station: Station) -> None:
    station.ledger._leases = ()


def end(station: Station) -> None:
    """End the incident without its own last turn, as a restored ledger would."""
    (node_id,) = labels(station)
    incident = station.incident({10: "i-0a", 11: "i-1a"}[node_id])
    station.ledger.put(replace(incident, state=State.RETAINED))


def forget(station: Station) -> None:
    """Let the label name an incident that nobody knows."""
    (node_id,) = labels(station)
    pod = station.cluster.pods[node_id]
    station.cluster.pods[node_id] = replace(pod, may_leave="i-gone.1")


@pytest.mark.parametrize("break_", [lapse, end, forget])
def test_the_sweep_finds_a_label_that_no_lease_stands_for_and_the_loop_takes_it_off(
    station: Station, break_: Callable[[Station], None]
) -> None:
    opened(station)
    station.broom.sweep(station.now)
    assert STRAYS_MESSAGE not in [body for body, _ in station.ticks.sent]
    break_(station)
    station.broom.sweep(station.now)
    assert STRAYS_MESSAGE in [body for body, _ in station.ticks.sent]
    station.loop.turn(STRAYS_MESSAGE, station.now)
    assert labels(station) == {}


def test_a_pod_that_changes_at_this_moment_is_left_to_the_next_look(station: Station) -> None:
    opened(station)
    lapse(station)
    fail(station.cluster, "keep", Conflict("It has changed."))
    restore_labels(station.cluster, station.ledger, station.now)
    assert labels(station)


def test_a_label_is_right_for_the_node_of_its_own_lease_alone(station: Station) -> None:
    opened(station)
    (right,) = labels(station).items()
    other = 11 if right[0] == 10 else 10
    pods = tuple(station.cluster.pods.values())
    leases, ids = station.ledger.leases(), [right[1]]
    assert list(wrongly_open(pods, leases, ids, station.now)) == []
    stolen = replace(station.cluster.pods[other], may_leave=right[1])
    assert list(wrongly_open([stolen], leases, ids, station.now)) == [(stolen.name, right[1])]


def test_below_the_level_of_our_own_stacks_no_pod_is_touched(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopted = Station(cluster=station.cluster, level="act")
    touched: list[str] = []
    monkeypatch.setattr(adopted.cluster, "let_leave", lambda pod, _: touched.append(pod))
    start(adopted, at_once="zone")
    turn(adopted)
    for _ in range(20):
        launch(adopted)
        announce_hooks(adopted)
        for id_ in ("i-0a", "i-1a"):
            once(adopted, id_)
    assert adopted.incident().state is State.HOLDING
    assert touched == []


def test_the_silence_of_a_companion_that_stops_keeps_nobody(station: Station) -> None:
    opened(station)
    (node_id,) = labels(station)
    other = 11 if node_id == 10 else 10
    instance = {10: "i-0a", 11: "i-1a"}[node_id]
    party = party_name(current(station).id, "us-east-1a", (10, 11))
    station.ledger.take_lease(
        {10: "i-0a", 11: "i-1a"}[other], station.now, 900, party=party, node_id=other, out=True
    )
    view = station.cluster.read()
    silent = Doubt(f"Broker {other} did not answer.", about=other)
    station.cluster.kafka = replace(view, doubts=(silent,))
    once(station, instance)
    assert station.incident(instance).state is State.DRAINING


@pytest.mark.parametrize(
    "doubt",
    [
        Doubt("Broker 20 did not answer.", about=20),
        Doubt("A topic is hidden."),
        Doubt("Broker 11 refuses.", refused=True, about=11),
        Doubt("Broker 10 did not answer.", about=10),
    ],
)
def test_what_is_not_known_of_others_or_of_itself_is_never_good_news(
    station: Station, doubt: Doubt
) -> None:
    opened(station)
    (node_id,) = labels(station)
    if doubt.about in {10, 11}:
        about = node_id if doubt.about == 10 else ({10, 11} - {node_id}).pop()
        doubt = replace(doubt, about=about)
    instance = {10: "i-0a", 11: "i-1a"}[node_id]
    view = station.cluster.read()
    station.cluster.kafka = replace(view, doubts=(doubt,))
    once(station, instance)
    assert station.incident(instance).state is State.HOLDING
    assert labels(station) == {}
