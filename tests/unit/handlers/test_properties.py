"""What holds whatever happens, in whatever order: the invariants of the whole loop."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from core.events import Interruption, parse
from core.incidents.joining import merge, open_incident
from core.incidents.record import Incident
from tests.unit.handlers.announced import ec2_event, hook_event
from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.health_events import health_event
from tests.unit.handlers.station import POLICY, START

pytestmark = pytest.mark.usefixtures("quiet")

BROKERS = (OLD, "i-0b", "i-0c")
# The slowest pace below brings a broker back within it.
PATIENT = replace(POLICY, post_condition_wait_seconds=4 * 3600.0)
MOST_ROUNDS = 250
PACES = st.lists(st.integers(1, 9), min_size=6, max_size=6).map(lambda paces: [1] * 4 + paces)
quick = settings(
    max_examples=12,
    # A failing walk of hundreds of steps is read, not shrunk: that takes minutes.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


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
