"""Several brokers of a zone at a time, and how long a plan takes for clusters of any size."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.availability.consent import may_leave, may_leave_together
from core.availability.lease import (
    Lease,
    begin,
    blocking_holder,
    companions,
    grant,
    party_name,
    release,
)
from core.incidents.observation import GroupView, PodView
from core.rotation.estimate import AWAY_SECONDS, REPLACEMENT_SECONDS, RunObservation
from core.rotation.parallel import batch_numbers, company, partings
from core.rotation.plan import Plan, plan
from core.rotation.preconditions import departure_order, objections
from core.rotation.run_record import NodeTurn, Options, open_run, run_from_document, run_to_document
from core.views import ClusterView, PartitionView
from tests.unit.core.availability import roller
from tests.unit.core.availability.clusters import around, calm, clusters, turn_of
from tests.unit.policies import policy_with
from tests.unit.views import kafka_view, node_view

MANY = settings(
    max_examples=3 * settings.default.max_examples,
    database=None,
    suppress_health_check=list(HealthCheck),
)
ZONES = ("us-east-1a", "us-east-1b")


def turns_in(view: ClusterView, zones: list[str]) -> list[NodeTurn]:
    """Return a turn for every node, in zones as they are drawn."""
    voters = {voter.node_id for voter in view.voters}
    ids = sorted(view.brokers | voters)
    return [
        replace(turn_of(n, votes=n in voters), zone=zones[place % len(zones)])
        for place, n in enumerate(ids)
    ]


def without(view: ClusterView, gone: tuple[int, ...]) -> ClusterView:
    """Return what Kafka shows once these have stopped: fenced, in no ISR, leading nothing."""
    out = frozenset(gone)
    partitions = []
    for p in view.partitions:
        isr = tuple(r for r in p.isr if r not in out)
        leader = p.leader if p.leader not in out else next(iter(isr), None)
        partitions.append(replace(p, isr=isr, leader=leader))
    return replace(view, fenced=view.fenced | out, partitions=tuple(partitions))


def chosen(
    view: ClusterView, zones: list[str], options: Options
) -> tuple[tuple[NodeTurn, ...], RunObservation]:
    """Return who would begin now, as core.rotation.progress picks them."""
    seen, policy = around(view), policy_with(isr_margin=1)
    first, *others = departure_order(turns_in(view, zones), seen.pods, view.quorum_leader)
    if next(objections(first, seen, options, policy), None) is not None:
        return (), seen
    together, _ = company(first, others, seen, options, policy)
    return (first, *together), seen


@MANY
@given(
    clusters().map(calm) | clusters(),
    st.lists(st.sampled_from(ZONES), min_size=1, max_size=6),
    st.integers(1, 4),
)
def test_who_goes_together_could_each_be_restarted_by_the_roller_in_any_order(
    view: ClusterView, zones: list[str], most: int
) -> None:
    options = Options(accepted_topics=("t",), at_once=most)
    # Brokers alone: the first of a whole cluster would always be a controller.
    view = replace(view, voters=tuple(v for v in view.voters if v.node_id not in view.brokers))
    turns, _ = chosen(replace(view, voters=()), zones, options)
    ids = tuple(turn.node_id for turn in turns)
    assert len(ids) <= most
    assert len({turn.zone for turn in turns}) <= 1
    for order in permutations(ids):
        for place, node_id in enumerate(order):
            assert roller.may_restart(node_id, without(replace(view, voters=()), order[:place]))


@MANY
@given(clusters(), st.lists(st.sampled_from(ZONES), min_size=1, max_size=6), st.integers(2, 4))
def test_a_controller_never_has_company(view: ClusterView, zones: list[str], most: int) -> None:
    turns, _ = chosen(view, zones, Options(accepted_topics=("t",), at_once=most))
    assert len(turns) <= 1 or not any(turn.votes for turn in turns)


@MANY
@given(clusters().map(calm), st.lists(st.sampled_from(ZONES), min_size=1, max_size=6))
def test_a_batch_is_of_one_zone_and_has_consent(view: ClusterView, zones: list[str]) -> None:
    policy, turns = policy_with(), turns_in(view, zones)
    batches = batch_numbers(turns, view, Options(at_once=None), policy)
    for batch in set(batches):
        those = [t for t, number in zip(turns, batches, strict=True) if number == batch]
        assert len({turn.zone for turn in those}) == 1
        if len(those) > 1:
            verdict = may_leave_together(
                frozenset(t.node_id for t in those), view, isr_margin=policy.isr_margin
            )
            assert verdict.allowed or "no quorum" in verdict.reason


@MANY
@given(clusters())
def test_company_makes_consent_no_easier_but_for_its_own_absence(view: ClusterView) -> None:
    for node_id, other in permutations(sorted(view.brokers), 2):
        together = may_leave(node_id, view, beside=frozenset({other}))
        alone = may_leave(node_id, replace(view, fenced=view.fenced - {other}))
        assert alone.allowed or not together.allowed, together.reason


def whole(*partitions: PartitionView) -> ClusterView:
    return kafka_view({10, 11, 20, 30}, *partitions)


def test_a_companion_that_is_out_keeps_nobody_who_shares_nothing_with_it() -> None:
    view = without(
        whole(
            PartitionView("t", 0, 20, (10, 20, 30), (10, 20, 30), 1),
            PartitionView("u", 0, 20, (11, 20, 30), (11, 20, 30), 1),
        ),
        (10,),
    )
    assert may_leave(11, view, beside=frozenset({10})).allowed
    assert "broker 10 is fenced" in may_leave(11, view).reason


def test_a_set_is_refused_with_what_the_partition_would_keep() -> None:
    view = whole(PartitionView("t", 0, 20, (10, 11, 20, 30), (10, 11, 20, 30), 2))
    assert may_leave(11, view).allowed
    assert may_leave_together(frozenset({10, 11}), view, isr_margin=0).allowed
    assert may_leave_together(frozenset({10, 11}), view).reason == (
        "Nodes 10, 11 may not leave together: partition t-0 would keep 2 in-sync replicas (20, 30) "
        "of 4, and it needs 3 (min.insync.replicas 2, margin 1); let one of them go after "
        "the other, each when the last is back."
    )


def test_a_partition_that_nobody_can_keep_stays_somewhere() -> None:
    view = whole(PartitionView("t", 0, 10, (10, 11), (10, 11), 2))
    assert may_leave(10, view).allowed
    refused = may_leave_together(frozenset({10, 11}), view).reason
    assert "t-0 has no in-sync replica but on them" in refused


def test_a_plan_says_what_keeps_a_zone_from_going_at_once() -> None:
    view = whole(PartitionView("t", 0, 20, (10, 11, 20), (10, 11, 20), 1))
    turns = turns_in(replace(view, voters=()), [ZONES[0]])
    options, policy = Options(at_once=None), policy_with()
    batches = batch_numbers(turns, view, options, policy)
    assert batches == [1, 2, 2, 1] or len(set(batches)) > 1
    (said,) = partings(turns, batches, view, policy)
    assert said.startswith("Brokers of us-east-1a leave in ")
    assert "because of partition t-0 (1 in all)" in said


def test_nobody_goes_in_company_while_another_replica_is_behind() -> None:
    lagging = PartitionView("t", 0, 20, (20, 30), (20,), 1)
    view = replace(whole(lagging), brokers=frozenset({10, 11, 20, 30, 31}))
    first, other = turns_in(replace(view, voters=()), [ZONES[0]])[:2]
    together, said = company(
        first, [other], around(view), Options(at_once=None), policy_with(isr_margin=0)
    )
    assert together == ()
    assert said == ("Broker 10 goes alone. Broker 30 is not in the ISR of partition t-0.",)


def test_a_controller_is_asked_to_wait_for_whoever_is_out() -> None:
    assert "controllers go one by one" in may_leave(0, whole(), beside=frozenset({10})).reason


steps = st.lists(
    st.tuples(
        st.sampled_from(("a1", "a2", "b1", "c")),
        st.sampled_from(("take", "drop")),
        st.floats(0, 40),
    )
)
PARTIES = {"a1": "a", "a2": "a", "b1": "b", "c": None}


@given(steps)
def test_the_lease_is_held_by_one_or_by_one_party(taken: list[tuple[str, str, float]]) -> None:
    leases, now = (), 0.0
    promised: dict[str, float] = {}
    for holder, what, passed in taken:
        now += passed
        if what == "drop":
            leases = tuple(lease for lease in leases if lease.holder != holder)
            promised.pop(holder, None)
            continue
        decision = grant(leases, holder, now, 30, party=PARTIES[holder], node_id=1)
        assert decision.granted == (
            blocking_holder(leases, holder, PARTIES[holder], now) in {None, holder}
        )
        leases = decision.leases
        if decision.granted:
            promised[holder] = max(promised.get(holder, 0.0), now + 30)
        believers = {h for h, until in promised.items() if now < until}
        assert len(believers) <= 1 or {PARTIES[h] for h in believers} == {"a"}


@given(steps)
def test_a_used_lease_keeps_everybody_out_for_as_long(taken: list[tuple[str, str, float]]) -> None:
    leases, now, out = (), 0.0, set[str]()
    for holder, what, passed in taken:
        now += passed * 100
        if what == "drop":
            leases = release(leases, holder)
            continue
        leases = grant(leases, holder, now, 30, party=PARTIES[holder], node_id=1).leases
        begun = begin(leases, holder, now, 30, party=PARTIES[holder], node_id=1)
        leases = begun.leases
        if begun.granted:
            out.add(holder)
        assert len(out) <= 1 or {PARTIES[holder] for holder in out} == {"a"}


def test_an_instance_does_not_wait_for_its_own_earlier_round() -> None:
    used = (Lease("i-1", 30.0, 10, None, 0.0, 0.0),)
    assert blocking_holder(used, "i-1.2", None, 99.0) is None
    assert blocking_holder(used, "i-10", None, 99.0) == "i-1"
    again = begin(grant(used, "i-1.2", 99.0, 30).leases, "i-1.2", 99.0, 30)
    assert again.granted
    assert release(again.leases, "i-1.2", ended=True) == ()
    assert [each.holder for each in release(again.leases, "i-1", ended=True)] == ["i-1.2"]


def test_what_is_out_already_is_noted_beside_whoever_holds_the_lease() -> None:
    held = grant((), "i-1", 0.0, 30).leases
    both = grant(held, "i-2", 0.0, 30, node_id=20, out=True)
    assert both.granted
    assert blocking_holder(both.leases, "i-1", None, 1.0) == "i-2"
    assert not begin(both.leases, "i-1", 1.0, 30).granted
    assert begin(both.leases, "i-1", 1.0, 30, forced=True).granted


def test_who_holds_it_together_knows_of_each_other() -> None:
    leases = grant((), "i-1", 0.0, 30, party="a", node_id=10).leases
    leases = grant(leases, "i-2", 0.0, 30, party="a", node_id=11).leases
    assert companions(leases, "i-2", "a", 1.0) == {10}
    assert companions(leases, "i-2", "a", 31.0) == frozenset()
    assert companions(leases, "i-3", None, 1.0) == frozenset()
    assert blocking_holder(leases, "i-3", None, 1.0) == "i-1"


def test_the_next_party_of_a_zone_waits_for_whoever_the_last_has_left_out() -> None:
    first, next_ = (party_name("run", "us-east-1a", ids) for ids in ((10, 11), (12, 13)))
    used = begin(grant((), "i-1", 0.0, 30, party=first, node_id=10).leases, "i-1", 1.0, 30)
    assert blocking_holder(used.leases, "i-2", first, 99.0) is None
    assert blocking_holder(used.leases, "i-3", next_, 99.0) == "i-1"
    assert used.leases[0].nodes == {10, 11}


def test_a_run_that_an_earlier_release_stored_keeps_how_many_go_together() -> None:
    run = open_run([turn_of(10)], Options(at_once=None), "ada", 0.0)
    assert run_from_document(run_to_document(run), 0) == run
    stored = run_to_document(run)
    del stored["options"]["at_once"], stored["turns"][0]["party"]
    assert run_from_document(stored, 0).options.at_once == 1
    stored["options"]["parallel_per_zone"] = 2
    assert run_from_document(stored, 0).options.at_once == 2


THREE_ZONES = ("a", "b", "c")
HOLD_SECONDS = 10
RETURN_SECONDS = AWAY_SECONDS + HOLD_SECONDS


def planned(brokers: int, at_once: int | None) -> Plan:
    """Return the plan of all brokers, each partition with a replica in every zone."""
    zone_of = {100 + n: THREE_ZONES[n % 3] for n in range(brokers)}
    of_zone = {z: [b for b, zone in zone_of.items() if zone == z] for z in THREE_ZONES}
    partitions = []
    for number in range(brokers * 4):
        replicas = [
            of_zone[z][(number // 3 + 7 * i) % (brokers // 3)] for i, z in enumerate(THREE_ZONES)
        ]
        first = number % 3
        placed = tuple(replicas[first:] + replicas[:first])
        partitions.append(PartitionView("t", number, placed[0], placed, placed, 2))
    seen = RunObservation(
        now=0.0,
        kafka=kafka_view(zone_of, *partitions),
        pods=tuple(
            PodView(name=f"k-{b}", node_id=b, role="broker", node_name=f"n-{b}", ready=True)
            for b in zone_of
        ),
        nodes=tuple(
            node_view(f"n-{b}", f"i-{b}", zone)
            for b, zone in zone_of.items()
        ),
        groups=tuple(
            GroupView(
                name=z, desired=len(ids), maximum=2 * len(ids),
                instances={f"i-{b}": "InService" for b in ids}
            )
            for z, ids in of_zone.items()
        ),
    )  # fmt: skip
    turns = [
        NodeTurn(
            node_id=b, pod=f"k-{b}", role="broker", pool="broker", zone=zone,
            instance_id=f"i-{b}", why="image"
        )
        for b, zone in zone_of.items()
    ]  # fmt: skip
    policy = policy_with(
        stops_together=True, post_condition_hold_seconds=HOLD_SECONDS, isr_margin=0
    )
    return plan(turns, seen, Options(at_once=at_once), policy)


@pytest.mark.parametrize("brokers", [6, 30, 60, 99])
def test_a_zone_at_a_time_takes_as_long_for_a_hundred_brokers_as_for_six(brokers: int) -> None:
    zone_at_once, one_by_one = planned(brokers, None), planned(brokers, 1)
    first, behind = REPLACEMENT_SECONDS + RETURN_SECONDS, max(REPLACEMENT_SECONDS, RETURN_SECONDS)
    assert one_by_one.seconds == pytest.approx(first + (brokers - 1) * behind)
    assert zone_at_once.seconds == pytest.approx(first + 2 * behind)
    assert {node.batch for node in zone_at_once.nodes} == {1, 2, 3}
    assert zone_at_once.seconds < 3600
