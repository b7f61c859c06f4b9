"""What holds whatever happens, in whatever order: the invariants of the whole loop."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from core.events import Interruption, parse
from core.incidents.joining import merge, open_incident
from core.incidents.record import Incident, State
from tests.unit.handlers.announced import ec2_event, hook_event
from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.health_events import health_event
from tests.unit.handlers.station import POLICY, START, Station
from tests.unit.handlers.world import World

pytestmark = pytest.mark.usefixtures("quiet")

BROKERS = (OLD, "i-0b", "i-0c")
# The slowest pace below brings a broker back within it.
PATIENT = replace(POLICY, post_condition_wait_seconds=4 * 3600.0)
MOST_ROUNDS = 250
PACES = st.lists(st.integers(1, 9), min_size=6, max_size=6).map(lambda paces: [1] * 4 + paces)
quick = settings(
    max_examples=12,
    # A failing walk of hundreds of steps is read, not shrunk: that takes minutes.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


def messages() -> list[str]:
    """Return everything AWS may say about one retirement that becomes a termination."""
    return [
        health_event(said_at=START - 60),
        health_event(said_at=START - 30, due=START + 15 * 86_400),
        health_event(status="closed", said_at=START - 45),
        hook_event("drain"),
        hook_event("gate"),
        ec2_event("EC2 Instance Rebalance Recommendation", OLD),
        ec2_event("EC2 Instance State-change Notification", OLD, state="stopping"),
    ]


def joined(bodies: list[str]) -> Incident:
    found = [f for body in bodies for f in parse(body) if isinstance(f, Interruption)]
    incident = open_incident(found[0], START)
    for interruption in found[1:]:
        incident = merge(incident, interruption, START)
    return incident


@given(st.data())
def test_any_order_of_any_copies_of_its_messages_makes_the_same_incident(
    data: st.DataObject,
) -> None:
    known = joined(messages())
    copies = data.draw(st.lists(st.sampled_from(messages()), max_size=5))
    again = joined(data.draw(st.permutations(messages() + copies)))
    assert set(again.announcements) == set(known.announcements)
    same = {"announcements": (), "reason": "", "transitions": (), "hooks": {}}
    assert replace(again, **same) == replace(known, **same)  # type: ignore[arg-type]
    assert dict(again.hooks) == dict(known.hooks)


@quick
@given(st.data())
def test_any_interleaving_of_messages_and_ticks_ends_in_the_same_state(
    data: st.DataObject,
) -> None:
    station = Station(policy=PATIENT)
    station.cluster.terminate(OLD)
    world = World(station, lambda n: data.draw(st.integers(0, n - 1)))
    said = [hook_event("drain"), hook_event("gate"), health_event(said_at=START - 60)]
    copies = data.draw(st.lists(st.sampled_from(said), max_size=4))
    for body in data.draw(st.permutations(said + copies)):
        station.announce(body)
        world.run(data.draw(st.integers(0, 3)))
    world.settle(MOST_ROUNDS, data.draw(PACES))
    assert station.incident().state is State.RELEASED
    assert station.ledger.get(f"{OLD}.2") is None
    assert world.bare == []
    assert world.most_out <= 1


@quick
@given(
    st.data(),
    st.sets(st.sampled_from(BROKERS), min_size=2),
    st.sets(st.sampled_from(BROKERS)),
    st.booleans(),
)
def test_never_two_brokers_are_out_and_none_goes_without_a_replacement(
    data: st.DataObject, terminated: set[str], retired: set[str], lost: bool
) -> None:
    station = Station(policy=PATIENT)
    world = World(station, lambda n: data.draw(st.integers(0, n - 1)), lose_announcements=lost)
    for instance_id in sorted(retired - terminated):
        station.announce(health_event().replace(OLD, instance_id))
    for instance_id in sorted(terminated):
        station.cluster.terminate(instance_id)
    world.run(data.draw(st.integers(0, 60)))
    world.settle(MOST_ROUNDS, data.draw(PACES))
    assert world.most_out <= 1
    assert world.bare == []
    for instance_id in terminated | retired:
        if station.ledger.get(instance_id):
            assert station.incident(instance_id).state is State.RELEASED
    assert all(pod.ready for pod in station.cluster.pods.values())
    assert not any(node.spare_for for node in station.cluster.node_views.values())


@quick
@given(st.data(), st.integers(0, 3))
def test_an_incident_ends_in_bounded_time_when_nothing_answers(
    data: st.DataObject, silence: int
) -> None:
    """Whoever falls silent, the hold limit or the wait for its return ends a hooked incident."""
    station = Station()
    world = World(station, lambda n: data.draw(st.integers(0, n - 1)))
    station.cluster.terminate(OLD)
    station.announce(hook_event("drain"))
    world.run(data.draw(st.integers(0, 40)))
    if silence == 1:
        station.cluster.kafka = None
    elif silence == 2:
        station.cluster.groups = {
            n: replace(g, desired=0, maximum=0) for n, g in station.cluster.groups.items()
        }
    limit = 3 * (POLICY.hold_limit_seconds + POLICY.post_condition_wait_seconds)
    began = station.now
    while station.ledger.open_incidents() and station.now - began <= limit:
        station.now += 600
        sent = len(station.ticks.sent)
        station.broom.sweep(station.now)
        for body, _ in station.ticks.sent[sent:]:
            station.loop.turn(body, station.now)
    assert not station.ledger.open_incidents()
    # Nobody stopped a broker that had nowhere to go.
    assert world.bare == []
