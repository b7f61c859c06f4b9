"""Whose turn it is: the least time left first, and nobody is passed for ever."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.events import Kind
from core.incidents.actions import settle, stay
from core.incidents.consenting import asking, turn_due_at, waiting_turns, who_goes_first
from core.incidents.observation import InstanceView, Observation, WaitingTurn
from core.incidents.record import Incident, NodeDisruption, Release, State, Transition
from tests.every_case import every_case
from tests.unit.policies import policy_with

NOW = 100_000.0
POLICY = policy_with(tick_interval_seconds=15, hold_limit_seconds=14_400)
RUNS = InstanceView(instance_id="i-0a", state="running", zone="a", private_dns_name="ip")
HOOKS = {"hooks": {"drain": "t", "gate": None}, "group": "g"}


def incident(id_: str = "i-0a", *, held_at: float = NOW - 600, **changes: object) -> Incident:
    """Return an incident that has waited for its turn since then."""
    steps = (
        Transition(NOW - 900, State.OPENED, "interruption", "It is announced."),
        Transition(held_at, State.HOLDING, "tick", "It has a replacement."),
    )
    blank = Incident(
        id=id_,
        instance_id=id_,
        kind=Kind.ASG_TERMINATE,
        state=State.HOLDING,
        opened_at=NOW - 900,
        announced_at=NOW - 900,
        announcements=(),
        transitions=steps,
        ticked_at=NOW - 5,
        next_tick_at=NOW + 10,
    )
    return replace(blank, **changes)  # type: ignore[arg-type]


def seen(*waiting: WaitingTurn, **changes: object) -> Observation:
    return replace(Observation(now=NOW, instance=RUNS), waiting=waiting, **changes)  # type: ignore[arg-type]


def other(due_in: float, id_: str = "i-0b", looked_in: float = 10.0) -> WaitingTurn:
    return WaitingTurn(id_, NOW + due_in, NOW + looked_in)


RETIRES = {"scheduled_said_at": NOW - 900, "event_type": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"}
# What an incident's turn is due by, in seconds from now.
DUE: dict[str, tuple[Incident, float]] = {
    "a rotation's node": (incident(kind=Kind.ROTATION), 14_400 - 600),
    "one in its hooks": (incident(**HOOKS), 14_400 - 900),
    "one in its hooks that a person held": (incident(**HOOKS, kept_at=NOW - 700), 14_400 - 700),
    "a retirement tomorrow": (incident(**RETIRES, due_at=NOW + 86_400), 14_400 - 600),
    "a retirement within the hour": (incident(**RETIRES, due_at=NOW + 3_000), 3_000),
    "a retirement whose date has passed": (incident(**RETIRES, due_at=NOW - 60), -60),
    "a node that Karpenter forces": (
        incident(disruption=NodeDisruption(reason="expiry", forced_at=NOW + 500)),
        500,
    ),
    "one that a person let go": (incident(release=Release(by="ann", at=NOW - 5)), -5),
    "one that has just come to its turn": (incident(held_at=NOW), 14_400),
}


@every_case("mine, due_in", DUE.values(), ids=DUE)
def test_a_turn_is_due_by_the_first_thing_that_ends_its_wait(mine: Incident, due_in: float) -> None:
    assert turn_due_at(mine, seen(), POLICY) == NOW + due_in


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
def test_who_has_the_least_time_goes_first(
    what: str, seen_now: Observation, first: str | None
) -> None:
    assert who_goes_first(incident(kind=Kind.ROTATION), seen_now, POLICY) == first, what


def test_an_incident_asks_in_its_record_until_its_next_look() -> None:
    mine = incident()
    waits = asking(
        stay(mine, POLICY, "Incident i-0b takes a Kafka node out first."), mine, seen(), POLICY
    )
    asked = settle(mine, waits, NOW)
    assert asked.turn_due_at == turn_due_at(mine, seen(), POLICY)
    assert settle(asked, stay(asked, POLICY, "Node 10 may not leave."), NOW).turn_due_at is None


def test_companions_of_a_party_do_not_wait_for_each_other() -> None:
    asked = incident("i-0b", turn_due_at=NOW, party="run/a/10+11")
    alone = incident("i-0c", turn_due_at=NOW)
    mine = incident(party="run/a/10+11")
    assert [w.incident_id for w in waiting_turns([asked, alone], mine)] == ["i-0c"]


@given(
    arrivals=st.lists(st.floats(0, 40_000), min_size=2, max_size=8),
    looks=st.lists(st.integers(0, 7), min_size=20, max_size=400),
    taken_for=st.integers(1, 6),
)
def test_whoever_came_later_passes_nobody_that_asks(
    arrivals: list[float], looks: list[int], taken_for: int
) -> None:
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
        if not holder and who_goes_first(mine, view, POLICY) is None:
            earlier = [i.id for i in here if i.turn_due_at is not None and i.id < mine.id]
            late = [i for i in earlier if now > (waiting[i].next_tick_at or 0.0) + 45]
            assert set(earlier) == set(late)
            holder, freed_at = mine.id, now + 15.0 * taken_for
            served.append(mine.id)
            del waiting[mine.id]
        else:
            asked = settle(mine, asking(stay(mine, POLICY, "It waits."), mine, view, POLICY), now)
            waiting[mine.id] = replace(asked, ticked_at=now)
    assert len(served) == len(set(served))
