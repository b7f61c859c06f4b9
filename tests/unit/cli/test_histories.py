"""Recorded histories held to the rules: what the loop wrote keeps them; every break is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cli.incidents import RULES, breaks
from core.incidents.record import Forwarding, Incident, State, Transition
from tests.explorer.scenarios import TWO
from tests.explorer.search import play
from tests.explorer.stage import explored


@pytest.fixture(scope="module")
def two() -> tuple[Incident, Incident]:
    with explored() as stage:
        world, _ = play(stage, TWO, {})
    first, second = world.incidents.values()
    return first, second


def test_what_the_functions_recorded_keeps_every_rule(two: tuple[Incident, Incident]) -> None:
    """Of two that leave; of every other course tests/unit/explorer says so."""
    assert breaks(two) == []


def retimed(incident: Incident, seconds: float) -> Incident:
    """Return an incident that happened earlier."""
    ready, sent = incident.replacement, incident.forwarded
    return replace(
        incident,
        opened_at=incident.opened_at - seconds,
        transitions=tuple(replace(t, at=t.at - seconds) for t in incident.transitions),
        forwarded=sent and replace(sent, first_at=sent.first_at - seconds),
        replacement=ready and replace(ready, ready_at=ready.ready_at - seconds),
        broker_back_at=(incident.broker_back_at or 0.0) - seconds,
    )


def skipped(incident: Incident) -> Incident:
    drained = {State.DRAINING, State.GATING}
    kept = tuple(t for t in incident.transitions if t.state not in drained)
    return replace(incident, transitions=kept)


def backwards(incident: Incident) -> Incident:
    *before, last = incident.transitions
    return replace(incident, transitions=(*before, replace(last, at=last.at - 4000)))


def kept_unheard(incident: Incident) -> Incident:
    *before, last = incident.transitions
    ended = Transition(last.at, State.RETAINED, "tick", "kept")
    return replace(incident, state=State.RETAINED, transitions=(*before, ended), pages=())


def drained_early(incident: Incident) -> Incident:
    at = incident.opened_at - 500
    return replace(incident, forwarded=Forwarding(first_at=at, last_at=at))


BROKEN: dict[str, tuple[str, Callable[[Incident], Incident]]] = {
    "a step is left out": ("steps", skipped),
    "it ends elsewhere": ("steps", lambda i: replace(i, state=State.LOST)),
    "time runs back": ("order", backwards),
    "before its turn": ("turn", drained_early),
    "no replacement": ("replacement", lambda i: replace(i, replacement=None)),
    "never back": ("gate", lambda i: replace(i, broker_back_at=None)),
    "nobody was called": ("paged", kept_unheard),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_history_names_its_rule(name: str, two: tuple[Incident, Incident]) -> None:
    rule, broken = BROKEN[name]
    found = breaks([broken(two[1])])
    assert rule in {b.rule for b in found}
    assert {b.incident_id for b in found} == {two[1].id}
    assert {b.rule for b in found} <= set(RULES)


def test_two_drains_at_a_time_name_the_second(two: tuple[Incident, Incident]) -> None:
    first, second = two
    (found,) = breaks([first, retimed(second, 300)])
    assert (found.rule, found.incident_id) == ("one out", second.id)
    assert f"is drained while node {first.node_id} of incident {first.id} is out" in str(found)


def test_members_of_one_party_may_be_out_together(two: tuple[Incident, Incident]) -> None:
    first, second = (replace(i, party="run/us-east-1a") for i in two)
    assert breaks([first, retimed(second, 300)]) == []


def test_an_instance_that_is_gone_has_no_further_round(two: tuple[Incident, Incident]) -> None:
    again = replace(retimed(two[0], -9000), id=f"{two[0].id}.2")
    assert [b.rule for b in breaks([two[0], again])] == ["rounds"]


def test_the_first_break_comes_first(two: tuple[Incident, Incident]) -> None:
    found = breaks([kept_unheard(two[0]), backwards(two[1])])
    assert [b.at for b in found] == sorted(b.at for b in found)


def test_where_ready_is_enough_the_isr_need_not_have_been_seen(
    two: tuple[Incident, Incident],
) -> None:
    unseen = replace(two[0], broker_back_at=None)
    assert [b.rule for b in breaks([unseen])] == ["gate"]
    assert breaks([unseen], gate="ready") == []
