from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.availability.consent import check_returned, is_back, may_leave, may_leave_together
from core.availability.lease import Lease, grant, release, valid_leases
from core.views import ClusterView, PartitionView, VoterView
from tests.every_case import every_case
from tests.unit.views import kafka_view

WIDE = (10, 20, 30, 40, 50)


def partition(
    isr: tuple[int, ...] = (10, 20, 30),
    *,
    replicas: tuple[int, ...] = (10, 20, 30),
    min_isr: int = 2,
    leader: int | None = 20,
) -> PartitionView:
    return PartitionView("orders", 3, leader, replicas, isr, min_isr)


def cluster(
    *partitions: PartitionView,
    fenced: frozenset[int] = frozenset(),
    lags: tuple[float | None, ...] = (0.0, 0.1, 0.1),
) -> ClusterView:
    return kafka_view(
        WIDE,
        *partitions,
        fenced=fenced,
        voters=tuple(VoterView(n, lag) for n, lag in enumerate(lags)),
        quorum_leader=0,
    )


PARTITIONS = [
    pytest.param(partition(), 0, True, id="in sync"),
    pytest.param(partition(), 1, True, id="no more margin than the replication factor has"),
    pytest.param(partition((10, 20)), 0, False, id="on the minimum"),
    pytest.param(partition((10,)), 0, False, id="below the minimum"),
    pytest.param(partition((20, 30)), 1, True, id="the one that leaves is behind anyway"),
    pytest.param(partition((20,)), 1, False, id="another is behind, too"),
    pytest.param(partition((10,), replicas=(10,), min_isr=1), 1, True, id="one replica"),
    pytest.param(partition(replicas=(10, 20), isr=(10, 20), min_isr=2), 1, True, id="all needed"),
    pytest.param(partition((20,), replicas=(10, 20), min_isr=2), 1, True, id="another is the last"),
    pytest.param(partition((10,), replicas=(10, 20), min_isr=2), 1, False, id="the last in sync"),
    pytest.param(partition((10,), replicas=(10, 20), min_isr=3), 0, False, id="also far below"),
    pytest.param(partition(min_isr=3), 1, True, id="all needed of three, and all in sync"),
    pytest.param(partition((10, 20), min_isr=3), 1, False, id="all needed of three, one behind"),
    pytest.param(partition((10, 20, 30, 40), replicas=WIDE), 1, True, id="margin met"),
    pytest.param(partition((10, 20, 30), replicas=WIDE), 0, True, id="margin not asked for"),
    pytest.param(partition((10, 20, 30), replicas=WIDE), 1, False, id="margin not met"),
    pytest.param(partition((20,), replicas=(20, 30, 40)), 1, True, id="not its partition"),
]


@every_case(("view", "margin", "allowed"), PARTITIONS)
def test_partitions_say_who_may_leave(view: PartitionView, margin: int, allowed: bool) -> None:
    verdict = may_leave(10, cluster(view), isr_margin=margin)
    assert verdict.allowed is allowed
    assert allowed or "orders-3" in verdict.reason


SOME = st.sets(st.sampled_from(WIDE)).map(lambda found: tuple(sorted(found)))


@given(SOME.filter(bool), SOME, st.integers(0, 4), st.integers(0, 2))
def test_what_a_stop_may_hurt_is_every_partition_that_could_refuse(
    replicas: tuple[int, ...], others: tuple[int, ...], min_isr: int, margin: int
) -> None:
    isr = tuple(b for b in replicas if b not in others) or replicas
    view = cluster(PartitionView("orders", 3, isr[0], replicas, isr, min_isr))
    for broker in replicas:
        left, most = len(set(isr) - {broker}), len(replicas) - 1
        assert may_leave(broker, view, isr_margin=margin).allowed is (
            left >= min(min_isr + margin, most)
        )


@given(SOME.filter(bool), SOME, st.integers(0, 5), st.integers(0, 2))
def test_a_minimum_that_is_raised_lets_nobody_go_whom_it_kept_before(
    replicas: tuple[int, ...], others: tuple[int, ...], min_isr: int, margin: int
) -> None:
    isr = tuple(b for b in replicas if b not in others) or replicas
    before, after = (
        cluster(PartitionView("orders", 3, isr[0], replicas, isr, n))
        for n in (min_isr, min_isr + 1)
    )
    for leaving in (frozenset(replicas[:1]), frozenset(replicas[:2])):
        now, then = (
            may_leave_together(leaving, view, isr_margin=margin).allowed for view in (after, before)
        )
        assert then or not now


def test_a_refusal_names_what_would_be_left_and_what_is_needed() -> None:
    reason = may_leave(10, cluster(partition((10, 20)))).reason
    assert reason == (
        "Node 10 may not leave: partition orders-3 would keep 1 in-sync replicas (20) of 3, and "
        "it needs 2 (min.insync.replicas 2, margin 1); wait until its other replicas have caught "
        "up."
    )


def test_an_offline_partition_keeps_every_broker() -> None:
    offline = partition((), replicas=(20,), min_isr=1, leader=None)
    verdict = may_leave(10, cluster(offline))
    assert not verdict.allowed
    assert "orders-3 is offline" in verdict.reason


def test_no_second_broker_goes_while_one_is_fenced() -> None:
    verdict = may_leave(10, cluster(partition(), fenced=frozenset({30})))
    assert not verdict.allowed
    assert "broker 30 is fenced" in verdict.reason


def test_a_broker_that_is_out_already_may_leave_with_its_partitions_offline() -> None:
    last_copy = partition((10,), replicas=(10,), min_isr=1, leader=None)
    assert may_leave(10, cluster(last_copy, fenced=frozenset({10}))).allowed


@pytest.mark.parametrize("broken", [{"stale": True}, {"quorum_leader": None}])
def test_nobody_leaves_without_a_quorum(broken: dict[str, object]) -> None:
    view = replace(cluster(partition()), **broken)
    assert "no quorum" in may_leave(10, view).reason
    assert not may_leave(10, view).allowed
    assert not check_returned(10, view).allowed


VOTERS = [
    pytest.param((0.0, 0.1, 0.1), 1, True, id="all caught up"),
    pytest.param((0.0, 0.1, 5.0), 1, False, id="another lags"),
    pytest.param((0.0, 0.1, None), 1, False, id="another never fetched"),
    pytest.param((0.0, 0.1, 5.0), 2, True, id="it is the one that lags"),
    pytest.param((0.0, 0.1, 0.1), 0, True, id="the leader, the others caught up"),
    pytest.param((0.0, 0.1), 1, True, id="two voters, the other caught up"),
    pytest.param((0.0, 3.0), 0, False, id="two voters, the other lags"),
    pytest.param((0.0,), 0, True, id="a single voter cannot be kept"),
    pytest.param((0.0, 0.1, 0.1, 9.0, 9.0), 1, False, id="five voters, two lag"),
    pytest.param((0.0, 0.1, 0.1, 0.1, 9.0), 1, True, id="five voters, one lags"),
]


@every_case(("lags", "leaving", "allowed"), VOTERS)
def test_a_controller_leaves_only_if_a_caught_up_majority_stays(
    lags: tuple[float | None, ...], leaving: int, allowed: bool
) -> None:
    assert may_leave(leaving, cluster(partition(), lags=lags)).allowed is allowed


def test_a_combined_node_is_asked_about_both_roles() -> None:
    view = replace(
        cluster(partition((10, 20))), voters=tuple(VoterView(n, 0.0) for n in (10, 20, 30))
    )
    assert "orders-3" in may_leave(10, view).reason
    lagging = replace(
        cluster(partition()), voters=(VoterView(10, 0.0), VoterView(20, 0.0), VoterView(30, 9.0))
    )
    assert "wait for 30" in may_leave(10, lagging).reason


RETURNS = [
    pytest.param(cluster(partition()), "", id="back"),
    pytest.param(cluster(partition((20, 30))), "not yet in the ISR of 1 of its 1", id="behind"),
    pytest.param(cluster(partition(), fenced=frozenset({10})), "still fenced", id="fenced"),
    pytest.param(
        replace(cluster(partition()), brokers=frozenset({20, 30})), "not registered", id="absent"
    ),
]


@every_case(("view", "missing"), RETURNS)
def test_leaders_have_a_broker_back_in_every_isr(view: ClusterView, missing: str) -> None:
    verdict = check_returned(10, view)
    assert verdict.allowed is not bool(missing)
    assert missing in verdict.reason


def test_a_controller_is_back_when_it_has_caught_up() -> None:
    assert check_returned(1, cluster(partition())).allowed
    assert not check_returned(1, cluster(partition(), lags=(0.0, 7.0, 0.1))).allowed


def test_being_back_must_last() -> None:
    view = cluster(partition())
    assert not is_back(10, view, back_since=None, now=100, hold_seconds=10).allowed
    assert not is_back(10, view, back_since=95, now=100, hold_seconds=10).allowed
    assert is_back(10, view, back_since=90, now=100, hold_seconds=10).allowed
    gone = cluster(partition((20, 30)))
    assert not is_back(10, gone, back_since=1, now=100, hold_seconds=10).allowed


replica_ids = st.sampled_from((10, 20, 30, 40, 50))


@st.composite
def partitions(draw: st.DrawFn) -> PartitionView:
    replicas = tuple(draw(st.sets(replica_ids, min_size=1)))
    isr = tuple(draw(st.sets(st.sampled_from(replicas), min_size=1)))
    return partition(isr, replicas=replicas, min_isr=draw(st.integers(1, 4)), leader=isr[0])


@given(partitions(), st.integers(0, 3))
def test_what_may_leave_leaves_the_minimum_in_sync(view: PartitionView, margin: int) -> None:
    allowed = may_leave(10, cluster(view), isr_margin=margin).allowed
    kept = len(set(view.isr) - {10})
    if allowed and 10 in view.replicas and len(view.replicas) > view.min_isr:
        assert kept >= view.min_isr
    if not may_leave(10, cluster(view), isr_margin=0).allowed:
        assert not allowed  # a larger margin never allows more


requests = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(("take", "release")), st.floats(0, 40))
)


@given(requests)
def test_the_lease_never_has_two_holders(steps: list[tuple[str, str, float]]) -> None:
    leases: tuple[Lease, ...] = ()
    now = 0.0
    promised: dict[str, float] = {}  # holder -> until when it may believe it holds the lease
    for holder, what, passed in steps:
        now += passed
        if what == "take":
            decision = grant(leases, holder, now, ttl_seconds=30)
            leases = decision.leases
            if decision.granted:
                promised[holder] = leases[-1].expires_at
        else:
            leases = release(leases, holder)
            promised.pop(holder, None)
        believers = [h for h, until in promised.items() if now < until]
        assert len(believers) <= 1
        assert {each.holder for each in valid_leases(leases, now)[:1]} <= {*believers}


def test_a_refused_lease_says_who_holds_it() -> None:
    decision = grant([Lease("i-1", 60.0)], "i-2", 10.0, 30)
    assert not decision.granted
    assert decision.reason == (
        "i-1 is taking a Kafka node out and holds the lease for another 50 s."
    )


def test_an_expired_lease_goes_to_whoever_asks() -> None:
    assert grant([Lease("i-1", 60.0)], "i-2", 60.0, 30).leases == (Lease("i-2", 90.0),)


def test_a_renewal_never_shortens_the_lease() -> None:
    assert grant([Lease("i-1", 60.0)], "i-1", 10.0, 30).leases == (Lease("i-1", 60.0),)


def test_a_verdict_says_what_nobody_can_keep_writable() -> None:
    kept, lost = partition(), replace(partition((10, 20), replicas=(10, 20)), topic="two")
    assert may_leave(10, cluster(kept, lost)).reason == (
        "Node 10 may leave: 1 of its 2 partitions stay in sync without it; the rest cannot stay "
        "writable, among them two-3, and the quorum keeps its majority."
    )


def test_a_fenced_broker_that_holds_nothing_stops_nobody() -> None:
    view = replace(
        cluster(partition(), fenced=frozenset({40})), brokers=frozenset({10, 20, 30, 40})
    )
    assert may_leave(10, view).allowed


def test_a_broker_that_is_not_registered_and_holds_partitions_is_out() -> None:
    view = cluster(partition((10, 20), replicas=(10, 20, 60)), partition())
    assert "broker 60 is not registered" in may_leave(30, view).reason


@pytest.mark.parametrize(("replicas", "allowed"), [((60,), True), ((60, 70), True), ((30,), False)])
def test_a_partition_only_on_brokers_that_were_removed_stops_nobody(
    replicas: tuple[int, ...], *, allowed: bool
) -> None:
    left = partition((), replicas=replicas, leader=None)
    view = cluster(partition(), replace(left, topic="left"))
    assert may_leave(10, view).allowed is allowed


def test_an_offline_partition_names_the_replica_that_holds_all_of_it() -> None:
    view = cluster(replace(partition((), leader=None), eligible=(30,)))
    assert "bring one of its replicas 30 which hold all of it back first" in (
        may_leave(10, view).reason
    )


def test_a_voter_keeps_up_within_the_clusters_own_fetch_timeout() -> None:
    slow = tuple(VoterView(n, lag, 5.0) for n, lag in enumerate((0.0, 4.0, 4.0)))
    assert may_leave(0, replace(cluster(partition()), voters=slow)).allowed
    quick = tuple(VoterView(n, lag, 0.5) for n, lag in enumerate((0.0, 1.0, 1.0)))
    assert not may_leave(0, replace(cluster(partition()), voters=quick)).allowed
