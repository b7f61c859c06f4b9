"""Whatever AWS says of one machine, in any order and however often, is one incident."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.events import Interruption, parse
from core.incidents.joining import merge, open_incident
from core.incidents.record import Incident
from tests.unit.handlers.announced import ec2_event, hook_event
from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.health_events import health_event
from tests.unit.handlers.station import START


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
