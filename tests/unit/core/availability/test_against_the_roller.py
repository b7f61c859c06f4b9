"""Strimzi's own checks as an oracle: ours are never laxer, and say why where they are stricter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hypothesis import HealthCheck, given, settings

from core.availability.consent import may_leave
from core.rotation.preconditions import objections
from core.rotation.run_record import Options
from core.views import ClusterView
from tests.unit.core.availability import roller
from tests.unit.core.availability.clusters import around, clusters, turn_of
from tests.unit.policies import policy_with

# Each cluster is asked about every node of it under three margins: 10,000 questions and more.
MANY = settings(
    max_examples=3 * settings.default.max_examples,
    database=None,
    suppress_health_check=list(HealthCheck),
)
MARGINS = (0, 1, 2)


@MANY
@given(clusters())
def test_what_the_roller_refuses_a_rotation_refuses(view: ClusterView) -> None:
    for node_id in view.brokers | {voter.node_id for voter in view.voters}:
        for margin in MARGINS:
            check(view, node_id, margin)


def check(view: ClusterView, node_id: int, margin: int) -> None:
    votes = any(voter.node_id == node_id for voter in view.voters)
    turn, accepted = turn_of(node_id, votes=votes), Options(accepted_topics=("t",))
    said = list(objections(turn, around(view), accepted, policy_with(isr_margin=margin)))
    verdict = may_leave(node_id, view, isr_margin=margin)
    if not roller.may_restart(node_id, view):
        assert said
        # Of a broker that is fenced nothing more is lost. The roller restarts such a one without
        # any check when it does not answer, and a machine that AWS takes is no choice of ours.
        assert not verdict.allowed or node_id in view.fenced
        return
    for sentence in said:
        assert any(true(sentence) for true in reasons(view, node_id, margin)), sentence
    if not verdict.allowed:
        assert verdict.reason in said


def reasons(view: ClusterView, node_id: int, margin: int) -> Iterator[Callable[[str], bool]]:
    """Yield, for each way of ours to be stricter, a test that a sentence states a fact."""
    yield lambda said: "no quorum" in said and view.quorum_leader is None
    yield lambda said: any(f"broker {other} is fenced" in said for other in view.fenced - {node_id})
    yield lambda said: any(
        f"{p.name} is offline" in said for p in view.partitions if p.leader is None
    )
    yield lambda said: any(
        f"Broker {node_id} is fenced, and partition {p.name} " in said
        and len(set(p.isr) - {node_id}) < p.min_isr
        for p in view.partitions
    )
    yield lambda said: any(
        re.search(rf"partition {p.name} would keep \d+ .*margin {margin}", said)
        and len(set(p.isr) - {node_id}) < min(p.min_isr + margin, len(p.replicas) - 1)
        for p in view.partitions
    )
    yield lambda said: any(
        f"last in-sync replica of partition {p.name}" in said and set(p.isr) == {node_id}
        for p in view.partitions
    )
    yield lambda said: any(
        f"Partition {p.name} has {len(p.isr)} in-sync replicas" in said
        and len(p.isr) < min(p.min_isr, len(p.replicas))
        for p in view.partitions
    )
