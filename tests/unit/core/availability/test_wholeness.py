"""Leaving anything out of an answer never makes a decision laxer, whatever the cluster."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from core.availability.consent import check_returned, may_leave
from core.availability.wholeness import (
    Answers,
    BrokerAnswer,
    DirectoryAnswer,
    PartitionAnswer,
    QuorumAnswer,
    ReplicaAnswer,
    is_current,
    view_of,
)
from core.health.kafka import broker_verdict, controller_verdict, partitions_verdict, quorum_verdict
from core.rotation.preconditions import objections
from core.rotation.run_record import Options
from core.views import ClusterView
from tests.unit.core.availability.clusters import around, clusters, turn_of
from tests.unit.policies import policy_with

MANY = settings(
    max_examples=3 * settings.default.max_examples,
    database=None,
    suppress_health_check=list(HealthCheck),
)
NOW_MS = 1_000_000


def answers_of(view: ClusterView, *, listed: bool = True) -> Answers:
    """Return what a Kafka in this state answers: every source whole, topics of one partition each
    but the first, which has two.
    """
    partitions = []
    for place, each in enumerate(view.partitions):
        name, number = ("t0", place) if place < 2 else (f"t{place}", 0)
        leader = -1 if each.leader is None else each.leader
        partitions.append(PartitionAnswer(name, number, leader, each.replicas, each.isr))
    described: dict[str, tuple[int, int]] = {}
    for found in partitions:
        count, _ = described.get(found.topic, (0, -1))
        described[found.topic] = (count + 1, count)
    there = view.brokers - view.fenced
    quorum = None
    if view.quorum_leader is not None:
        behind = {v.node_id: v.lag_seconds for v in view.voters}
        quorum = QuorumAnswer(
            leader=view.quorum_leader,
            voters=tuple(ReplicaAnswer(n, _at(lag)) for n, lag in behind.items()),
            observers=tuple(ReplicaAnswer(b, NOW_MS) for b in view.brokers - behind.keys()),
            nodes=frozenset(behind),
        )
    return Answers(
        brokers=tuple(BrokerAnswer(b, b in view.fenced) for b in sorted(view.brokers)),
        brokers_again=view.brokers,
        quorum=quorum,
        partitions=tuple(partitions),
        described=described,
        minimums={each.topic: 2 for each in partitions},
        topic_names=frozenset(described) if listed else None,
        directories={
            b: (
                DirectoryAnswer(
                    path="/data",
                    held=frozenset((p.topic, p.number) for p in partitions if b in p.replicas),
                ),
            )
            for b in there
        },
        counted=there,
        asked=next((b for b in sorted(there) if quorum and is_current(b, quorum)), None),
    )


def _at(lag: float | None) -> int:
    return -1 if lag is None else NOW_MS - round(lag * 1000)


def good_news(view: ClusterView) -> set[str]:
    """Return everything that a reading allows, or finds well."""
    nodes = (*range(6), *range(10, 16))
    found = {f"{n} may leave" for n in nodes if may_leave(n, view).allowed}
    found |= {f"{n} is back" for n in nodes if check_returned(n, view).allowed}
    found |= {f"broker {n} is healthy" for n in nodes if broker_verdict(n, view).healthy}
    found |= {f"controller {n} is healthy" for n in nodes if controller_verdict(n, view).healthy}
    found |= {
        f"{n} may be rotated"
        for n in nodes
        if not list(objections(turn_of(n), around(view), Options(), policy_with(isr_margin=1)))
    }
    if partitions_verdict(view).healthy:
        found.add("partitions are healthy")
    if quorum_verdict(view).healthy:
        found.add("the quorum is healthy")
    return found


def _described(partitions: tuple[PartitionAnswer, ...]) -> dict[str, tuple[int, int]]:
    """Count as the adapter does what an answer describes."""
    found: dict[str, tuple[int, int]] = {}
    for each in partitions:
        count, highest = found.get(each.topic, (0, -1))
        found[each.topic] = (count + 1, max(highest, each.number))
    return found


def without_partitions(answers: Answers, left_out: set[int]) -> Answers:
    """Leave partitions out, and topics with the last of theirs."""
    # What only fenced brokers hold, nobody but the metadata says.
    unseen = {
        place
        for place, p in enumerate(answers.partitions)
        if not answers.counted.intersection(p.replicas)
    }
    assume(left_out - unseen)
    left_out = left_out - unseen
    kept = tuple(p for place, p in enumerate(answers.partitions) if place not in left_out)
    return replace(answers, partitions=kept, described=_described(kept))


def with_partition(answers: Answers, place: int, changed: PartitionAnswer) -> Answers:
    kept = list(answers.partitions)
    kept[place] = changed
    return replace(answers, partitions=tuple(kept))


@st.composite
def less(draw: st.DrawFn, answers: Answers) -> Answers:
    """Leave something out of one answer."""
    places = st.integers(0, len(answers.partitions) - 1)
    change: Callable[[], Answers] = draw(
        st.sampled_from(
            [
                lambda: without_partitions(answers, draw(st.sets(places, min_size=1))),
                lambda: _without_replica(draw, answers, draw(places)),
                lambda: _without_broker(draw, answers),
                lambda: _without_voter(draw, answers),
                lambda: replace(answers, minimums=dict(list(answers.minimums.items())[1:])),
                lambda: _without_flag(draw, answers),
                lambda: replace(answers, directories=dict(list(answers.directories.items())[1:])),
                lambda: replace(
                    answers, topic_names=frozenset(sorted(answers.topic_names or ())[1:])
                ),
                lambda: replace(answers, quorum=None),
                lambda: _without_ends(answers),
            ]
        )
    )
    return change()


def _without_replica(draw: st.DrawFn, answers: Answers, place: int) -> Answers:
    found = answers.partitions[place]
    # Of a broker that is fenced nobody but the metadata says what it holds.
    there = [r for r in found.replicas if r in answers.counted]
    assume(there)
    gone = draw(st.sampled_from(there))
    replicas = tuple(r for r in found.replicas if r != gone)
    isr = tuple(r for r in found.isr if r != gone) if draw(st.booleans()) else found.isr
    leader = -1 if found.leader == gone and draw(st.booleans()) else found.leader
    return with_partition(answers, place, found._replace(replicas=replicas, isr=isr, leader=leader))


def _without_broker(draw: st.DrawFn, answers: Answers) -> Answers:
    gone = draw(st.sampled_from(answers.brokers))
    return replace(answers, brokers=tuple(b for b in answers.brokers if b != gone))


def _without_flag(draw: st.DrawFn, answers: Answers) -> Answers:
    place = draw(st.integers(0, len(answers.brokers) - 1))
    brokers = list(answers.brokers)
    brokers[place] = brokers[place]._replace(fenced=None)
    return replace(answers, brokers=tuple(brokers))


def _without_voter(draw: st.DrawFn, answers: Answers) -> Answers:
    assume(answers.quorum is not None)
    gone = draw(st.sampled_from(answers.quorum.voters))
    left = tuple(v for v in answers.quorum.voters if v != gone)
    return replace(answers, quorum=replace(answers.quorum, voters=left))


def _without_ends(answers: Answers) -> Answers:
    assume(answers.quorum is not None)
    voters = tuple(ReplicaAnswer(v.node_id, -1) for v in answers.quorum.voters)
    return replace(answers, quorum=replace(answers.quorum, voters=voters, observers=()))


@MANY
@given(clusters(), st.booleans(), st.data())
def test_leaving_anything_out_of_an_answer_allows_nothing_more(
    view: ClusterView, listed: bool, data: st.DataObject
) -> None:
    whole = answers_of(view, listed=listed)
    assume(whole.asked is not None)
    allowed = good_news(view_of(whole))
    assert good_news(view_of(data.draw(less(whole)))) <= allowed


@given(clusters())
def test_whatever_is_named_twice_is_doubted(view: ClusterView) -> None:
    whole = answers_of(view)
    for name, of in (("brokers", whole), ("partitions", whole), ("voters", whole.quorum)):
        for each in getattr(of, name, ())[:1]:
            twice = replace(of, **{name: (*getattr(of, name), each)})
            assert view_of(twice if of is whole else replace(whole, quorum=twice)).doubts


@given(clusters())
def test_a_replica_that_is_named_twice_is_doubted(view: ClusterView) -> None:
    whole = answers_of(view)
    for each in whole.partitions[:1]:
        twice = each._replace(replicas=(*each.replicas, each.replicas[0]))
        assert "was described with replicas" in view_of(with_partition(whole, 0, twice)).doubt


@MANY
@given(clusters())
def test_answers_that_agree_leave_no_doubt(view: ClusterView) -> None:
    whole = answers_of(view)
    assume(whole.asked is not None)
    assert view_of(whole).doubts == ()
