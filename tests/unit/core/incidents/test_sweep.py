"""sweep: whose turn it is, what is lost or stuck, and that a second look finds nothing new."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.availability.lease import Lease
from core.events import Interruption, Kind
from core.incidents.actions import settle, stay
from core.incidents.consenting import asking, turn_due_at, waiting_turns, who_goes_first
from core.incidents.joining import merge, open_incident
from core.incidents.observation import (
    GroupView,
    InstanceView,
    NodeView,
    Observation,
    ScheduledEvent,
    StatusView,
    WaitingTurn,
)
from core.incidents.record import Incident, InPlace, NodeDisruption, Release, State, Transition
from core.incidents.sweep import (
    Announce,
    Finding,
    Snapshot,
    Wake,
    findings,
    is_answered,
    is_stranded,
    turn,
)
from tests.every_case import every_case
from tests.unit.policies import policy_with
from tests.unit.views import node_view

NOW = 1_795_168_800.0
LATE = 45.0
ID = "i-0a"
RETIREMENT = ScheduledEvent(
    event_id="instance-event-1",
    code="instance-retirement",
    description="The instance is running on degraded hardware",
    not_before=NOW + 86_400,
)


def group(**lifecycle: str) -> GroupView:
    instances = {key.replace("_", "-"): state for key, state in lifecycle.items()}
    return GroupView(name="g-broker-a", desired=1, maximum=2, instances=instances)


def node(instance_id: str = ID) -> NodeView:
    return node_view(f"ip-{instance_id}", instance_id, "us-east-1a", ready=False, csi_ready=False)


def found(seen: Snapshot, *ids: str) -> list[Finding]:
    return list(findings(seen, ids or (ID,), LATE))


def announced(seen: Snapshot) -> Interruption:
    (finding,) = found(seen)
    assert isinstance(finding, Announce)
    return finding.interruption


def incident_of(interruption: Interruption, **changed: object) -> Incident:
    opened = open_incident(interruption, NOW)
    return replace(opened, **{"ticked_at": NOW, **changed})


def lost(kind: Kind = Kind.STATE_CHANGE, key: str = "k") -> Interruption:
    return Interruption(
        kind=kind,
        instance_id=ID,
        event_id=key,
        dedupe_key=key,
        account=None,
        region=None,
        occurred_at=None,
        body="",
    )


def test_a_lease_is_stranded_that_was_not_used_and_whose_holder_is_over() -> None:
    holder, unused = incident_of(lost()), Lease(ID, NOW + 60)
    over = replace(holder, state=State.RELEASED)
    assert is_stranded(unused, over, NOW)
    assert not is_stranded(replace(unused, out_at=NOW), over, NOW)
    assert not is_stranded(replace(unused, expires_at=NOW), over, NOW)
    assert not any(is_stranded(unused, who, NOW) for who in (holder, None))


def test_an_instance_that_waits_in_its_hooks_is_announced() -> None:
    told = announced(Snapshot(now=NOW, groups=(group(i_0a="Terminating:Wait"),)))
    assert (told.kind, told.group, told.hook) == (Kind.ASG_TERMINATE, "g-broker-a", "gate")


@pytest.mark.parametrize("state", ["Pending", "InService", "Terminating:Proceed", "Terminated"])
def test_an_instance_that_does_not_wait_is_left_alone(state: str) -> None:
    seen = Snapshot(now=NOW, groups=(group(i_0a=state),), states={ID: "running"}, nodes=(node(),))
    assert found(seen) == []


@pytest.mark.parametrize("state", ["stopping", "stopped", "shutting-down", "terminated", None])
def test_an_instance_that_ended_while_its_node_stays_is_announced(state: str | None) -> None:
    seen = Snapshot(now=NOW, states={} if state is None else {ID: state}, nodes=(node(),))
    told = announced(seen)
    assert (told.kind, told.instance_state) == (Kind.STATE_CHANGE, state)


@pytest.mark.parametrize("nodes", [(), None], ids=["no node", "no answer"])
def test_who_ended_and_has_no_node_is_left_alone(nodes: tuple[NodeView, ...] | None) -> None:
    assert found(Snapshot(now=NOW, states={ID: "terminated"}, nodes=nodes)) == []


def test_what_ec2_has_scheduled_is_announced_as_health_would() -> None:
    status = StatusView(instance_id=ID, events=(RETIREMENT,))
    told = announced(Snapshot(now=NOW, states={ID: "running"}, statuses={ID: status}))
    assert told.kind is Kind.SCHEDULED_CHANGE
    assert told.event_type == "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
    assert (told.due_at, told.closed) == (NOW + 86_400, False)


def test_a_moved_start_is_announced_again_and_a_repetition_is_not() -> None:
    status = StatusView(instance_id=ID, events=(RETIREMENT,))
    seen = Snapshot(now=NOW, states={ID: "running"}, statuses={ID: status})
    seen = replace(seen, incidents=(incident_of(announced(seen)),))
    assert found(seen) == []
    moved = replace(RETIREMENT, not_before=NOW + 2 * 86_400)
    later = replace(seen, statuses={ID: replace(status, events=(moved,))})
    assert announced(later).due_at == NOW + 2 * 86_400


def test_what_health_has_announced_already_is_not_announced_again() -> None:
    told = replace(lost(Kind.SCHEDULED_CHANGE), due_at=RETIREMENT.not_before)
    seen = Snapshot(
        now=NOW + 3600,
        states={ID: "running"},
        statuses={ID: StatusView(instance_id=ID, events=(RETIREMENT,))},
        incidents=(incident_of(told, ticked_at=NOW + 3600),),
    )
    assert found(seen) == []


@pytest.mark.parametrize("word", ["[Completed]", "[Canceled]"])
def test_what_is_over_ends_the_incident_about_it(word: str) -> None:
    over = replace(RETIREMENT, description=f"{word} {RETIREMENT.description}")
    seen = Snapshot(
        now=NOW, states={ID: "running"}, statuses={ID: StatusView(instance_id=ID, events=(over,))}
    )
    assert found(seen) == []  # nobody waits for it
    about_it = incident_of(replace(lost(Kind.SCHEDULED_CHANGE), due_at=RETIREMENT.not_before))
    told = announced(replace(seen, incidents=(about_it,)))
    assert told.closed
    assert merge(about_it, told, NOW).called_off
    another = replace(about_it, due_at=NOW + 7 * 86_400)
    assert found(replace(seen, incidents=(another,))) == []


@pytest.mark.parametrize(
    ("check", "kind"),
    [
        ("attached EBS", Kind.VOLUME_PROBLEM),
        ("system", Kind.INSTANCE_ISSUE),
        ("instance", Kind.INSTANCE_ISSUE),
    ],
)
def test_a_check_that_fails_for_long_is_announced(check: str, kind: Kind) -> None:
    status = StatusView(instance_id=ID, impaired={check: NOW - 121})
    seen = Snapshot(now=NOW, states={ID: "running"}, statuses={ID: status})
    assert announced(seen).kind is kind
    # A node's is a sign of its sickness.
    assert not any(isinstance(each, Announce) for each in found(replace(seen, nodes=(node(),))))
    fresh = replace(status, impaired={check: NOW - 119})
    assert found(replace(seen, statuses={ID: fresh})) == []


def test_a_failed_check_of_an_instance_that_leaves_is_no_news() -> None:
    status = StatusView(instance_id=ID, impaired={"system": NOW - 500})
    seen = Snapshot(
        now=NOW, states={ID: "running"}, statuses={ID: status}, incidents=(incident_of(lost()),)
    )
    assert found(seen) == []


def test_an_incident_without_a_tick_is_woken() -> None:
    seen = Snapshot(now=NOW + 46, states={ID: "running"}, incidents=(incident_of(lost()),))
    (finding,) = found(seen)
    assert isinstance(finding, Wake)
    assert found(replace(seen, now=NOW + 44)) == []


def test_an_incident_that_sleeps_past_its_instances_end_is_woken() -> None:
    sleeping = incident_of(lost(Kind.SCHEDULED_CHANGE), next_tick_at=NOW + 900)
    seen = Snapshot(now=NOW, states={ID: "terminated"}, incidents=(sleeping,))
    assert [type(f) for f in found(seen)] == [Wake]
    assert found(replace(seen, states={ID: "running"})) == []


def test_a_hook_announcement_that_is_missing_joins_another_incident() -> None:
    seen = Snapshot(
        now=NOW,
        groups=(group(i_0a="Terminating:Wait"),),
        incidents=(incident_of(lost(Kind.SCHEDULED_CHANGE)),),
    )
    assert announced(seen).kind is Kind.ASG_TERMINATE


def test_a_retained_instance_is_announced_until_an_incident_has_said_so() -> None:
    (finding,) = found(Snapshot(now=NOW, groups=(group(i_0a="Terminating:Retained"),)))
    assert isinstance(finding, Announce)
    past = replace(open_incident(lost(), NOW), state=State.RETAINED)
    assert is_answered((past,), finding, NOW)
    assert not is_answered((replace(past, state=State.CANCELLED),), finding, NOW)
    (waits,) = found(Snapshot(now=NOW, groups=(group(i_0a="Terminating:Wait"),)))
    assert not is_answered((past,), waits, NOW)


def test_a_state_may_come_back_and_a_planned_event_may_not() -> None:
    (waits,) = found(Snapshot(now=NOW, groups=(group(i_0a="Terminating:Wait"),)))
    status = StatusView(instance_id=ID, events=(RETIREMENT,))
    (planned,) = found(Snapshot(now=NOW, states={ID: "running"}, statuses={ID: status}))
    assert isinstance(waits, Announce)
    assert isinstance(planned, Announce)
    for finding, state, again in (
        (waits, State.CANCELLED, True),
        (planned, State.RIDDEN_THROUGH, False),
        (planned, State.CANCELLED, True),  # And the event was not called off: it is left to come.
    ):
        over = replace(open_incident(finding.recurrence(1), NOW), state=state)
        assert is_answered((over,), finding, NOW) is not again
    in_place = replace(over, state=State.RIDDEN_THROUGH, in_place=InPlace(image_id="ami-new"))
    assert not is_answered((in_place,), planned, NOW)  # A new root volume ends no retirement.
    passing = replace(over, kind=Kind.EVICTION, state=State.RIDDEN_THROUGH)
    assert not is_answered((passing,), planned, NOW)  # Nor does a drain of others.
    for left in (over, in_place, passing):
        assert is_answered((replace(left, ignored_by="ann"),), planned, NOW)


# Property tests: who has a turn, and that nothing is found twice.

ids = st.integers(0, 60).map(lambda n: f"i-{n:04x}")


@given(st.sets(ids, min_size=1, max_size=40), st.integers(1, 45), st.text(max_size=4))
def test_everybody_has_a_turn_in_bounded_runs(everybody: set[str], most: int, cursor: str) -> None:
    had: list[str] = []
    for _ in range(-(-len(everybody) // most)):
        chosen, cursor = turn(tuple(everybody), cursor, most)
        assert len(chosen) <= most
        had += chosen
    assert set(had) == everybody


@given(st.lists(st.sets(ids, max_size=30), min_size=1, max_size=12), st.integers(1, 10))
def test_who_stays_has_a_turn_whoever_comes_and_goes(days: list[set[str]], most: int) -> None:
    stays = "i-0020"
    cursor, waited = "", 0
    for here in [*days, *days, *days]:
        chosen, cursor = turn(tuple(here | {stays}), cursor, most)
        waited = 0 if stays in chosen else waited + 1
        assert waited <= -(-62 // most)


lifecycles = st.sampled_from(
    ["Pending", "InService", "Terminating:Wait", "Terminating:Proceed", "Terminating:Retained"]
)
states = st.sampled_from(["running", "stopping", "stopped", "shutting-down", "terminated"])
events = st.builds(
    ScheduledEvent,
    event_id=st.sampled_from(["e1", "e2"]),
    code=st.sampled_from(["instance-retirement", "system-reboot", "new-code"]),
    description=st.sampled_from(["soon", "[Completed] soon", "[Canceled] soon"]),
    not_before=st.none() | st.sampled_from([NOW + 10, NOW + 1000]),
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    known = draw(st.lists(ids, unique=True, max_size=8))
    running = {id_: draw(states) for id_ in known if draw(st.booleans())}
    return Snapshot(
        now=NOW,
        groups=(group(**{id_: draw(lifecycles) for id_ in known if draw(st.booleans())}),),
        states=running,
        nodes=draw(st.none() | st.just(tuple(node(id_) for id_ in known if draw(st.booleans())))),
        statuses={
            id_: StatusView(
                instance_id=id_,
                events=tuple(draw(st.lists(events, max_size=2))),
                impaired=draw(st.sampled_from([{}, {"system": NOW - 500.0}])),
            )
            for id_, state in running.items()
            if state == "running"
        },
    )


@given(snapshots())
def test_what_was_found_and_taken_in_is_not_found_again(seen: Snapshot) -> None:
    incidents: dict[str, Incident] = {}
    for finding in findings(seen, seen.instance_ids(), LATE):
        if not isinstance(finding, Announce):
            continue  # what a person is told
        told = finding.recurrence(1)
        known = incidents.get(told.instance_id)
        incidents[told.instance_id] = (
            merge(known, told, NOW) if known else replace(open_incident(told, NOW), ticked_at=NOW)
        )
    after = replace(seen, incidents=tuple(incidents.values()))
    again = [
        f
        for f in findings(after, after.instance_ids(), LATE)
        if isinstance(f, Announce)
        and f.recurrence(1).dedupe_key not in incidents[f.interruption.instance_id].announcements
    ]
    # The first look at an instance without an incident leaves out what only an incident can join.
    assert all(f.interruption.closed for f in again)


TURN_AT = 100_000.0
TURNS = policy_with(tick_interval_seconds=15, hold_limit_seconds=14_400)
RUNS = InstanceView(instance_id="i-0a", state="running", zone="a", private_dns_name="ip")
HOOKS = {"hooks": {"drain": "t", "gate": None}, "group": "g"}


def incident(id_: str = "i-0a", *, held_at: float = TURN_AT - 600, **changes: object) -> Incident:
    """Return an incident that has waited for its turn since then."""
    steps = (
        Transition(TURN_AT - 900, State.OPENED, "interruption", "It is announced."),
        Transition(held_at, State.HOLDING, "tick", "It has a replacement."),
    )
    blank = Incident(
        id=id_,
        instance_id=id_,
        kind=Kind.ASG_TERMINATE,
        state=State.HOLDING,
        opened_at=TURN_AT - 900,
        announced_at=TURN_AT - 900,
        announcements=(),
        transitions=steps,
        ticked_at=TURN_AT - 5,
        next_tick_at=TURN_AT + 10,
    )
    return replace(blank, **changes)


def seen(*waiting: WaitingTurn, **changes: object) -> Observation:
    return replace(Observation(now=TURN_AT, instance=RUNS), waiting=waiting, **changes)


def other(due_in: float, id_: str = "i-0b", looked_in: float = 10.0) -> WaitingTurn:
    return WaitingTurn(id_, TURN_AT + due_in, TURN_AT + looked_in)


RETIRES = {
    "scheduled_said_at": TURN_AT - 900,
    "event_type": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
}
# What an incident's turn is due by, in seconds from now.
DUE: dict[str, tuple[Incident, float]] = {
    "a rotation's node": (incident(kind=Kind.ROTATION), 14_400 - 600),
    "one in its hooks": (incident(**HOOKS), 14_400 - 900),
    "one in its hooks that a person held": (incident(**HOOKS, kept_at=TURN_AT - 700), 14_400 - 700),
    "a retirement tomorrow": (incident(**RETIRES, due_at=TURN_AT + 86_400), 14_400 - 600),
    "a retirement within the hour": (incident(**RETIRES, due_at=TURN_AT + 3_000), 3_000),
    "a retirement whose date has passed": (incident(**RETIRES, due_at=TURN_AT - 60), -60),
    "a node that Karpenter forces": (
        incident(disruption=NodeDisruption(reason="expiry", forced_at=TURN_AT + 500)),
        500,
    ),
    "one that a person let go": (incident(release=Release(by="ann", at=TURN_AT - 5)), -5),
    "one that has just come to its turn": (incident(held_at=TURN_AT), 14_400),
}


@every_case("mine, due_in", DUE.values(), ids=DUE)
def test_a_turn_is_due_by_the_first_thing_that_ends_its_wait(mine: Incident, due_in: float) -> None:
    assert turn_due_at(mine, seen(), TURNS) == TURN_AT + due_in


MINE = 14_400 - 600.0


@every_case(
    "what, seen_now, first",
    [
        ("nobody waits", seen(), None),
        ("somebody has less time", seen(other(60)), "i-0b"),
        ("somebody has more time", seen(other(MINE + 1)), None),
        ("two of one moment go by their names", seen(other(MINE, "i-00")), "i-00"),
        ("two of one moment go by their names, and it is first", seen(other(MINE, "i-0z")), None),
        ("the least time of several", seen(other(90), other(30, "i-0c")), "i-0c"),
        ("whoever is first is not looked at any more", seen(other(60, looked_in=-46)), None),
        ("whoever is first is late", seen(other(60, looked_in=-44)), "i-0b"),
        ("another holds the lease", seen(other(60), lease_holder="i-0d"), None),
        ("it holds the lease itself", seen(other(60), lease_holder="i-0a"), None),
        ("a companion is out", seen(other(60), beside=frozenset({11})), None),
    ],
)
def test_the_least_time_goes_first(what: str, seen_now: Observation, first: str | None) -> None:
    assert who_goes_first(incident(kind=Kind.ROTATION), seen_now, TURNS) == first, what


def test_an_incident_asks_in_its_record_until_its_next_look() -> None:
    mine = incident()
    waits = asking(
        stay(mine, TURNS, "Incident i-0b takes a Kafka node out first."), mine, seen(), TURNS
    )
    asked = settle(mine, waits, TURN_AT)
    assert asked.turn_due_at == turn_due_at(mine, seen(), TURNS)
    assert settle(asked, stay(asked, TURNS, "Node 10 may not leave."), TURN_AT).turn_due_at is None


def test_companions_of_a_party_do_not_wait_for_each_other() -> None:
    asked = incident("i-0b", turn_due_at=TURN_AT, party="run/a/10+11")
    alone = incident("i-0c", turn_due_at=TURN_AT)
    mine = incident(party="run/a/10+11")
    assert [w.incident_id for w in waiting_turns([asked, alone], mine)] == ["i-0c"]


@given(
    arrivals=st.lists(st.floats(0, 40_000), min_size=2, max_size=8),
    looks=st.lists(st.integers(0, 7), min_size=20, max_size=400),
    taken_for=st.integers(1, 6),
)
def test_latecomers_pass_nobody(arrivals: list[float], looks: list[int], taken_for: int) -> None:
    """Ticks come in any order; each look asks for the lease, and keeps it for a while."""
    now, holder, freed_at = 0.0, "", 0.0
    waiting = {
        f"i-{n}": incident(
            f"i-{n}", held_at=at, ticked_at=None, next_tick_at=None, opened_at=at, announced_at=at
        )
        for n, at in enumerate(sorted(arrivals))
    }
    served: list[str] = []
    for look in looks:
        now += 15.0
        here = [i for i in waiting.values() if i.entered_at <= now]
        if holder and now >= freed_at:
            holder = ""
        if not here:
            continue
        mine = here[look % len(here)]
        view = Observation(
            now=now,
            instance=RUNS,
            lease_holder=holder or None,
            waiting=tuple(waiting_turns([i for i in here if i.id != mine.id], mine)),
        )
        if not holder and who_goes_first(mine, view, TURNS) is None:
            earlier = [i.id for i in here if i.turn_due_at is not None and i.id < mine.id]
            late = [i for i in earlier if now > (waiting[i].next_tick_at or 0.0) + 45]
            assert set(earlier) == set(late)
            holder, freed_at = mine.id, now + 15.0 * taken_for
            served.append(mine.id)
            del waiting[mine.id]
        else:
            asked = settle(mine, asking(stay(mine, TURNS, "It waits."), mine, view, TURNS), now)
            waiting[mine.id] = replace(asked, ticked_at=now)
    assert len(served) == len(set(served))
