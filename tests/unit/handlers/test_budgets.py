"""A party's pods under budgets that know a label, and its leaders, which leave and come back."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.availability.lease import party_name
from core.ground.errors import Conflict, StillwaterError
from core.incidents.actions import RestoreLeaders
from core.incidents.consenting import ELECTED_SECONDS, wrongly_open
from core.incidents.observation import BudgetView
from core.incidents.record import State
from core.views import ClusterView, Doubt
from handlers.adapters.aws import tick_message
from handlers.incidents.act import perform
from handlers.incidents.shifts import Leadership, restore_labels, shift_in_force
from handlers.store.ledger import SHIFT_MESSAGE, STRAYS_MESSAGE
from tests.unit.handlers.failing import fail, noted
from tests.unit.handlers.fakes import FakeCluster
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_rotations import ask, current, start, turn
from tests.unit.handlers.walks import announce_hooks, launch, leaders

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


def behind_budgets(station: Station) -> Station:
    """Put the two disruption budgets before a station's pods."""
    cluster = station.cluster
    cluster.budgets = lambda: budgets(cluster)
    return station


@pytest.fixture
def station(six: Station) -> Station:
    return behind_budgets(six)


# The brokers of zone a, and their machines.
PARTY = {10: "i-0a", 11: "i-1a"}


def labels(station: Station) -> dict[int, str]:
    return {id_: pod.may_leave for id_, pod in station.cluster.pods.items() if pod.may_leave}


def once(station: Station, id_: str) -> None:
    """Let one tick of an incident come."""
    incident = station.incident(id_)
    station.now += 1
    station.loop.turn(tick_message(incident.id, incident.version), station.now)


def opened(station: Station) -> tuple[int, str]:
    """Carry both of a zone to where the first one's pod is labelled and nothing is sent yet."""
    start(station, at_once="zone")
    turn(station)
    for _ in range(40):
        for id_ in PARTY.values():
            once(station, id_)
            if labels(station):
                (node_id,) = labels(station)
                return node_id, PARTY[node_id]
        launch(station)
        announce_hooks(station)
    raise AssertionError([i.reason for i in station.ledger.open_incidents()])


def test_nothing_is_sent_before_a_reading_shows_that_the_others_are_kept(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id, instance = opened(station)
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
    _, instance = opened(station)
    station.cluster.change_pod(30, ready=False)
    once(station, instance)
    assert labels(station) == {}
    assert "is not Ready, so no set is opened" in station.incident(instance).reason


def test_who_has_lost_the_lease_to_another_closes_what_it_opened(station: Station) -> None:
    _, instance = opened(station)
    lapse(station)
    station.ledger.take_lease("i-0b", station.now, 900, node_id=20)
    once(station, instance)
    assert labels(station) == {}


def lapse(station: Station) -> None:
    station.ledger._leases = ()


def end(station: Station) -> None:
    """End the incident without its own last turn, as a restored ledger would."""
    (node_id,) = labels(station)
    incident = station.incident(PARTY[node_id])
    station.ledger.put(replace(incident, state=State.RETAINED))


def forget(station: Station) -> None:
    """Let the label name an incident that nobody knows."""
    (node_id,) = labels(station)
    station.cluster.change_pod(node_id, may_leave="i-gone.1")


@pytest.mark.parametrize("break_", [lapse, end, forget])
def test_the_sweep_finds_a_label_that_no_lease_stands_for_and_the_loop_takes_it_off(
    station: Station, break_: Callable[[Station], None]
) -> None:
    opened(station)
    station.sweep()
    assert STRAYS_MESSAGE not in [body for body, _ in station.ticks.sent]
    break_(station)
    station.sweep()
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
    node_id, instance = opened(station)
    (other,) = PARTY.keys() - {node_id}
    party = party_name(current(station).id, "us-east-1a", (10, 11))
    station.ledger.take_lease(PARTY[other], station.now, 900, party=party, node_id=other, out=True)
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
def test_what_is_not_known_is_never_good_news(station: Station, doubt: Doubt) -> None:
    node_id, instance = opened(station)
    if doubt.about in {10, 11}:
        about = node_id if doubt.about == 10 else ({10, 11} - {node_id}).pop()
        doubt = replace(doubt, about=about)
    view = station.cluster.read()
    station.cluster.kafka = replace(view, doubts=(doubt,))
    once(station, instance)
    assert station.incident(instance).state is State.HOLDING
    assert labels(station) == {}


def leaning() -> ClusterView:
    """Return a cluster in which zone a leads all, and zone b would."""
    view = healthy_kafka()
    rows = tuple(tuple(sorted(p.replicas)) for p in view.partitions)
    partitions = tuple(
        replace(p, replicas=row, leader=row[0])
        for p, row in zip(view.partitions, rows, strict=True)
    )
    return replace(view, partitions=partitions)


def test_nobody_of_a_party_leaves_before_others_lead_what_it_led(station: Station) -> None:
    assert leaders(station) >= PARTY.keys()
    read = noted(station.cluster, "read")
    opened(station)
    assert (None,) in read  # All partitions: what the others would lead is judged by them.
    assert leaders(station).isdisjoint(PARTY)
    # The order itself was changed: an election alone would be undone within minutes.
    assert {p.replicas[0] for p in station.cluster.read().partitions}.isdisjoint(PARTY)
    moved = shift_in_force(station.records, "orders")
    assert set(moved.avoided.values()) == {frozenset(PARTY)}


def test_a_run_has_its_party_elected(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its brokers have just started, and lead little by little (core.rotation.following)."""
    elected: list[bool] = []
    restore = Leadership.restore

    def noted(leadership: Leadership, cause: str, *, elect: bool) -> None:
        elected.append(elect)
        restore(leadership, cause, elect=elect)

    monkeypatch.setattr(Leadership, "restore", noted)
    opened(station)
    ids = tuple(PARTY.values())
    for _ in range(6):
        launch(station)
        announce_hooks(station)
        for id_ in ids:
            once(station, id_)
    for node_id, id_, new in zip(sorted(PARTY), ids, ("i-new1", "i-new2"), strict=True):
        assert station.incident(id_).state is State.DRAINING
        station.cluster.waiting_hooks.discard((id_, "drain"))
        station.cluster.place_pod(node_id, new)
    for _ in range(24):
        for id_ in ids:
            once(station, id_)
    assert {station.incident(id_).state for id_ in ids} == {State.RELEASED}
    assert elected == [False, False]


def test_what_is_given_back_unelected_is_preferred_and_does_not_lead(station: Station) -> None:
    before = {p.name: p.replicas for p in station.cluster.read().partitions}
    opened(station)
    for incident in ("incident:i-0a", "incident:i-1a"):
        station.leadership.restore(incident, elect=False)
    assert {p.name: p.replicas for p in station.cluster.read().partitions} == before
    assert leaders(station).isdisjoint(PARTY)
    assert shift_in_force(station.records, "orders").nothing


def test_a_party_that_loses_its_lease_leads_again(station: Station) -> None:
    opened(station)
    lapse(station)
    station.ledger.take_lease("i-0b", station.now, 900, node_id=20)
    for id_ in ("i-0a", "i-1a"):
        once(station, id_)
    assert station.incident("i-0a").leaders_moved_at is None
    assert shift_in_force(station.records, "orders").nothing
    assert leaders(station) >= PARTY.keys()


def test_a_member_that_starts_keeps_nobody_from_leading_again(station: Station) -> None:
    """It answers with half a connection, and its own silence hides nothing of the others."""
    opened(station)
    station.cluster.kafka = replace(
        station.cluster.read(), doubts=(Doubt("Broker 11 did not answer.", about=11),)
    )
    station.leadership.restore("incident:i-0a")
    station.leadership.restore("incident:i-1a")
    assert shift_in_force(station.records, "orders").nothing


def test_silence_of_anybody_else_keeps_the_orders_as_they_are(station: Station) -> None:
    opened(station)
    station.cluster.kafka = replace(
        station.cluster.read(), doubts=(Doubt("Broker 20 did not answer.", about=20),)
    )
    with pytest.raises(StillwaterError, match="Broker 20 did not answer"):
        station.leadership.restore("incident:i-0a")
    assert shift_in_force(station.records, "orders").brokers == PARTY.keys()


@pytest.mark.parametrize("error", [Conflict("changed"), StillwaterError("not whole")], ids=str)
def test_leaders_that_cannot_be_given_back_at_an_incidents_end_are_asked_for_within_seconds(
    station: Station, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(_: Leadership, cause: str, *, elect: bool) -> None:
        raise error

    opened(station)
    monkeypatch.setattr(Leadership, "restore", refuse)
    incident = station.incident("i-0a")
    perform(incident, (RestoreLeaders(),), station.loop.effects, station.now)
    (delay,) = [delay for body, delay in station.ticks.sent if body == SHIFT_MESSAGE]
    assert 0 < delay < 15


def test_the_next_party_waits_until_the_last_one_leads_again(station: Station) -> None:
    """By the leaders of the moment the others would lead too much, and the party be cut."""
    start(station, at_once="zone")
    station.leadership.avoid("incident:i-of-yesterday", {20, 21})
    run = turn(station)
    assert not run.open_turns
    assert "(20, 21) are still to lead again" in run.reason
    station.leadership.restore("incident:i-of-yesterday")
    assert {t.node_id for t in turn(station).open_turns} == PARTY.keys()


@pytest.mark.parametrize(
    ("at_once", "cause"), [("zone", "zone:us-east-1c"), (1, "incident:i-of-yesterday")]
)
def test_leaders_moved_for_a_zone_and_a_node_alone_keep_nobody_back(
    station: Station, at_once: object, cause: str
) -> None:
    start(station, at_once=at_once)
    station.leadership.avoid(cause, {30, 31})
    assert turn(station).open_turns


def test_an_incident_without_its_last_turn_is_given_back_by_sweeps(station: Station) -> None:
    opened(station)
    for incident in station.ledger.open_incidents():
        station.ledger.put(replace(incident, state=State.RETAINED))
    station.sweep()
    assert SHIFT_MESSAGE in [body for body, _ in station.ticks.sent]
    station.loop.turn(SHIFT_MESSAGE, station.now)
    assert shift_in_force(station.records, "orders").nothing
    assert leaders(station) >= PARTY.keys()


def test_a_missing_election_keeps_nobody(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(station.cluster, "elect", lambda _: None)
    began = station.now
    moved = []
    reorder = station.cluster.reorder
    monkeypatch.setattr(
        station.cluster, "reorder", lambda orders: (moved.append(len(orders)), reorder(orders))
    )
    opened(station)
    assert labels(station)
    assert station.now - began > ELECTED_SECONDS
    assert sum(moved) > 0
    assert leaders(station) >= PARTY.keys()  # a controlled shutdown moves those


def test_a_run_takes_fewer_where_the_others_would_lead_too_much(station: Station) -> None:
    start(station, at_once="zone")
    station.cluster.kafka = leaning()
    run = turn(station)
    assert [t.node_id for t in run.open_turns] == [10]
    assert any("would lead 6 partitions instead of 0" in note.text for note in run.notes)


def test_a_plan_says_that_a_party_is_more_than_others_carry(station: Station) -> None:
    station.cluster.kafka = leaning()
    planned = ask(station, "plan", selection={"everything": True}, at_once="zone")["plan"]
    (said,) = [note for note in planned["notes"] if "as the others can" in note]
    assert said.startswith("Only as many of 10, 11 go together as the others can replace. Without")


def test_a_party_is_not_opened_once_the_others_would_lead_too_much(station: Station) -> None:
    start(station, at_once="zone")
    turn(station)
    station.cluster.kafka = leaning()
    for _ in range(12):
        for id_ in ("i-0a", "i-1a"):
            once(station, id_)
        launch(station)
        announce_hooks(station)
        station.cluster.kafka = leaning()
    assert labels(station) == {}
    assert station.termination_handler.sent == []
    reasons = {note.reason for note in station.incident("i-0a").notes}
    assert any("would lead 6 partitions instead of 0" in reason for reason in reasons)
    assert [lease for lease in station.ledger.leases() if lease.out_at] == []
