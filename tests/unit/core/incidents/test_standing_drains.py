"""core.incidents.consenting: when a drain whose incident is over can do no more harm."""

from __future__ import annotations

from dataclasses import replace

from core.incidents.consenting import not_ended
from core.incidents.observation import NodeView, Observation, PodView, StandingDrain
from core.views import ClusterView, PartitionView, VoterView
from tests.every_case import every_case
from tests.unit.policies import policy_with

POLICY = policy_with(drain_life_seconds=1000.0)
WHOLE = ClusterView(
    brokers=frozenset({10, 20}),
    fenced=frozenset(),
    voters=(VoterView(0, 0.1),),
    quorum_leader=0,
    partitions=(PartitionView("t", 0, 20, (10, 20), (10, 20), 1),),
)
BACK = PodView(name="c-broker-a-10", node_id=10, role="broker", node_name="new", ready=True)
NODE = NodeView(
    name="old",
    instance_id="i-old",
    zone="z",
    pool="broker",
    ready=True,
    schedulable=False,
    csi_ready=True,
)
RETAINED = StandingDrain(
    holder="i-old",
    instance_id="i-old",
    node_id=10,
    forwarded_at=0.0,
    state="retained",
    instance_state="running",
)
WAITING = replace(WHOLE, partitions=(PartitionView("t", 0, 20, (10, 20), (20,), 1),))
LATER = Observation(now=1000.0, instance=None, nodes=(NODE,), pods=(BACK,), kafka=WHOLE)
GONE = replace(RETAINED, instance_state="terminated")
FORGOTTEN = replace(WHOLE, brokers=frozenset({20}), partitions=())

STANDING = {
    "its incident is open": (replace(RETAINED, open=True), LATER, "takes a Kafka node out first"),
    "its message may still be delivered": (RETAINED, replace(LATER, now=999.0), "given its drain"),
    "the instance has ended and its node still stands": (
        GONE,
        replace(LATER, now=999.0),
        "given its drain",
    ),
    "nobody asked Kafka": (
        RETAINED,
        replace(LATER, kafka=None, kafka_silence="Silent."),
        "Silent.",
    ),
    "a partition lacks the broker": (RETAINED, replace(LATER, kafka=WAITING), "not yet in the ISR"),
    "the quorum does not answer": (
        RETAINED,
        replace(LATER, kafka=replace(WHOLE, stale=True)),
        "have no quorum",
    ),
    "the pod is not Ready": (
        RETAINED,
        replace(LATER, pods=(replace(BACK, ready=False),)),
        "is not Ready",
    ),
    "the pod is gone and Kafka expects the broker": (
        RETAINED,
        replace(LATER, pods=()),
        "there is none",
    ),
    "a stale reading does not know the broker": (
        RETAINED,
        replace(LATER, pods=(), kafka=replace(FORGOTTEN, stale=True)),
        "there is none",
    ),
}
ENDED = {
    "the message is dropped and the broker whole": (RETAINED, LATER),
    "the instance is gone with its node": (GONE, replace(LATER, now=1.0, nodes=())),
    "nobody forwarded anything and the broker is whole": (
        replace(RETAINED, forwarded_at=None),
        replace(LATER, now=1.0),
    ),
    "the broker was let go for good": (
        replace(RETAINED, expects_return=False),
        replace(LATER, kafka=None, pods=()),
    ),
    "the cluster knows the broker no longer": (
        RETAINED,
        replace(LATER, pods=(), kafka=FORGOTTEN),
    ),
    "no Kafka ran there": (replace(RETAINED, node_id=None), replace(LATER, kafka=None)),
}


@every_case(("drain", "seen", "why"), STANDING.values(), ids=STANDING)
def test_a_drain_stands_while(drain: StandingDrain, seen: Observation, why: str) -> None:
    reason = not_ended(drain, seen, POLICY)
    assert reason is not None
    assert why in reason


@every_case(("drain", "seen"), ENDED.values(), ids=ENDED)
def test_a_drain_has_ended_once(drain: StandingDrain, seen: Observation) -> None:
    assert not_ended(drain, seen, POLICY) is None
