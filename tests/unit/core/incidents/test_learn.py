"""core.incidents.learn: a broker's way through its lifecycle stands in its incident's timeline."""

from __future__ import annotations

from dataclasses import replace

from core.events import Kind
from core.incidents.learn import learn
from core.incidents.observation import Observation, PodView
from core.incidents.record import MOST_NOTES, Forwarding, Incident, State, Transition
from core.views import ClusterView

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


BROKER_POD = PodView(name="c-a-11", node_id=11, role="broker", node_name="old", ready=True)
SENT = Forwarding(first_at=1.0, last_at=1.0)
DRAINING = replace(
    INCIDENT, state=State.DRAINING, forwarded=SENT, pod_name="c-a-11", node_name="old"
)


def where(pod: PodView | None) -> tuple[PodView, ...]:
    return () if pod is None else (pod,)


def test_a_rotation_reads_stopping_offline_fenced_online_in_the_timeline() -> None:
    stopping = replace(BROKER_POD, stopping=True)
    starting = replace(BROKER_POD, node_name="new", ready=False)
    returned = replace(starting, ready=True)
    incident = learn(DRAINING, replace(seen(1.0), pods=where(BROKER_POD)))
    # While the node drains Kafka is not asked: the pod alone tells.
    incident = learn(incident, Observation(now=2.0, instance=None, pods=where(stopping)))
    incident = replace(incident, state=State.GATING)
    for at, pod, fenced in (
        (3.0, None, True),
        (4.0, replace(starting, node_name=None), True),
        (5.0, starting, True),
        (6.0, returned, False),
    ):
        incident = learn(incident, replace(seen(at, fenced=fenced), pods=where(pod)))
    assert told(incident) == [
        "Broker 11 is stopping: its pod was told to stop; it was online.",
        "Broker 11 is offline: the quorum fenced it, and no process of it runs; it was stopping.",
        "Broker 11 is fenced: the quorum fenced it; it was offline.",
        "Broker 11 is online: it is registered and not fenced; it was fenced.",
    ]
    assert [note.at for note in incident.notes] == [2.0, 3.0, 5.0, 6.0]


def test_a_reading_without_kafka_of_a_pod_that_stays_changes_nothing() -> None:
    online = learn(DRAINING, replace(seen(1.0), pods=where(BROKER_POD)))
    assert learn(online, Observation(now=2.0, instance=None, pods=where(BROKER_POD))) == online


def test_a_broker_on_a_machine_that_ended_is_offline_though_its_pod_is_still_listed() -> None:
    lost = replace(DRAINING, state=State.GATING, lost_at=1.0)
    dead = replace(BROKER_POD, ready=False, stopping=True)
    (said,) = told(learn(lost, replace(seen(2.0, fenced=True), pods=where(dead))))
    assert "is offline: the quorum fenced it, and no process of it runs" in said


def test_a_broker_that_died_within_its_session_is_offline_only_once_it_is_fenced() -> None:
    online = learn(DRAINING, replace(seen(1.0), pods=where(BROKER_POD)))
    unfenced = learn(replace(online, state=State.GATING), replace(seen(2.0), pods=()))
    assert unfenced.lifecycle == "online"
    (said,) = told(learn(unfenced, replace(seen(9.0, fenced=True), pods=())))
    assert "is offline" in said
