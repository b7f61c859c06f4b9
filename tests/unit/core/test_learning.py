"""core.learning: a broker's way through its lifecycle stands in its incident's timeline."""

from __future__ import annotations

from dataclasses import replace

from core.events import Kind
from core.incident_record import MOST_NOTES, Incident, State, Transition
from core.learning import learn
from core.observations import Observation
from core.rotation import ClusterView

OPENED = Transition(1.0, State.OPENED, "interruption", "AWS announced it.")
INCIDENT = Incident(
    id="i-1",
    instance_id="i-1",
    kind=Kind.ASG_TERMINATE,
    state=State.GATING,
    opened_at=1.0,
    announced_at=1.0,
    announcements=(),
    node_id=11,
    role="broker",
    transitions=(OPENED,),
)


def seen(
    at: float, *, fenced: bool = False, known: bool = True, stale: bool = False
) -> Observation:
    view = ClusterView(
        brokers=frozenset({10, 11} if known else {10}),
        fenced=frozenset({11} if fenced else ()),
        voters=(),
        quorum_leader=None if stale else 0,
        partitions=(),
        stale=stale,
    )
    return Observation(now=at, instance=None, kafka=view)


def told(incident: Incident) -> list[str]:
    return [note.reason for note in incident.notes]


def test_a_broker_that_goes_and_returns_leaves_its_way_in_the_timeline() -> None:
    incident = INCIDENT
    for at, fenced in enumerate((False, True, True, False)):
        incident = learn(incident, seen(float(at), fenced=fenced))
    assert told(incident) == [
        "Broker 11 is fenced: the quorum fenced it; it was online.",
        "Broker 11 is online: it is registered and not fenced; it was fenced.",
    ]
    assert [note.at for note in incident.notes] == [1.0, 3.0]


def test_the_same_reading_twice_is_noted_once() -> None:
    once = learn(INCIDENT, seen(5.0, fenced=True))
    assert learn(once, seen(5.0, fenced=True)).notes == once.notes


def test_that_a_broker_is_online_at_first_is_no_news() -> None:
    assert learn(INCIDENT, seen(5.0)).notes == ()


def test_without_a_quorum_nothing_is_concluded() -> None:
    fenced = learn(INCIDENT, seen(5.0, fenced=True))
    assert learn(fenced, seen(6.0, stale=True)) == replace(fenced)


def test_a_broker_that_is_not_registered_is_offline() -> None:
    (said,) = told(learn(INCIDENT, seen(5.0, known=False)))
    assert said == "Broker 11 is offline: it is not registered."


def test_a_controller_has_no_such_way() -> None:
    controller = replace(INCIDENT, role="controller", node_id=0)
    assert learn(controller, seen(5.0, known=False)).notes == ()


def test_a_timeline_that_is_full_takes_no_more_and_the_state_is_still_kept() -> None:
    full = replace(INCIDENT, notes=(OPENED,) * MOST_NOTES)
    after = learn(full, seen(5.0, fenced=True))
    assert (len(after.notes), after.lifecycle) == (MOST_NOTES, "fenced")
