"""Thirty days under any load: what must hold however volumes fill, fail and are meddled with."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from core.volumes.deciding import DecisionKind
from core.volumes.sizing import Policy
from tests.unit.core.volumes.simulated import DAY, HOUR, Simulation

policies = st.builds(
    Policy,
    apply=st.just(True),
    act_days=st.sampled_from([1.0, 3.0]),
    headroom_days=st.sampled_from([5.0, 14.0]),
    free_share=st.sampled_from([0.15, 0.25]),
    step_gib=st.sampled_from([1, 10]),
    quiet_seconds=st.sampled_from([12 * HOUR, DAY]),
)
budgets = st.sampled_from([None, Decimal(0), Decimal(5), Decimal(40)])


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), policy=policies, budget=budgets)
def test_thirty_days_hold_every_promise(seed: int, policy: Policy, budget: Decimal | None) -> None:
    world = Simulation(seed, policy, budget)
    world.run()
    # EC2 refused nothing: no fifth in 24 hours, none while another ran, none below the ratios.
    assert world.ec2.refused == []
    # Nothing was full that could have been grown.
    assert world.full_though_legal == []
    # The bill stayed within the budget.
    assert budget is None or max(world.above) <= budget
    # A lowering came after a quiet period each, and so did the raise that took it back.
    lowered = [at for at, d in world.changes if d.kind is DecisionKind.LOWER]
    raised = [at for at, d in world.changes if d.kind is DecisionKind.RAISE]
    assert len(lowered) <= 30 * DAY / policy.quiet_seconds
    assert len(raised) <= len(lowered) + 6


def test_a_simulation_grows_raises_and_lowers() -> None:
    kinds: set[DecisionKind] = set()
    for seed in range(2):
        world = Simulation(seed, Policy(apply=True), None)
        world.run()
        kinds |= {d.kind for _, d in world.changes}
    assert {DecisionKind.GROW, DecisionKind.RAISE, DecisionKind.LOWER} <= kinds
