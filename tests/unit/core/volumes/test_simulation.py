"""Thirty days under any load: what must hold however volumes fill, fail and are meddled with.

EC2's rules are written here a second time, on purpose: what keeps them in core.volumes is under
test. A step is half an hour, which is as rarely as the advisor may look.
"""

import random
from collections import deque
from dataclasses import dataclass, field, replace
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from core.cost import pricing
from core.volumes import sizing
from core.volumes.deciding import DecisionKind, VolumeDecision, above_spec, class_of, plan
from core.volumes.sizing import GIB, MIB, Gp3, Policy
from core.volumes.views import (
    FillSample,
    History,
    Hour,
    Load,
    Modification,
    ModificationState,
    VolumeSet,
    VolumeView,
    add_observation,
    add_request,
    forecast,
)

BOOK = pricing.book("us-east-1")
START = 1_800_000_000.0
STEP, HOUR, DAY = 1800.0, 3600.0, 86_400.0
# A broker cannot be sent more than this share of a volume in a step; nobody grows ahead of that.
LARGEST_SPIKE = 0.06


@dataclass
class Ec2:
    """One volume of EC2's, with AWS's own limits on its modification."""

    shape: Gp3
    starts: deque[float] = field(default_factory=deque)
    latest: Modification | None = None
    over_at: float = 0.0
    refused: list[str] = field(default_factory=list)

    def optimizing(self, now: float) -> bool:
        return self.latest is not None and now < self.over_at

    def used_slots(self, now: float) -> int:
        return sum(1 for at in self.starts if at > now - DAY)

    def may_modify(self, now: float) -> bool:
        return not self.optimizing(now) and self.used_slots(now) < 4

    def modify(self, target: Gp3, now: float, takes: float, *, fails: bool) -> None:
        if not self.may_modify(now) or target.size_gib < self.shape.size_gib:
            self.refused.append(f"{target} at {now - START:.0f}")
            return
        self.refused += sizing.refusals(target)
        self.starts.append(now)
        self.over_at = now + takes
        self.latest = Modification(
            started_at=now, state=ModificationState.OPTIMIZING, target=target, original=self.shape
        )
        if fails:
            self.over_at = now + 60
            self.latest = replace(self.latest, state=ModificationState.FAILED)
        else:
            self.shape = target

    def told(self, now: float) -> Modification | None:
        if (
            self.latest is None
            or self.latest.state is ModificationState.FAILED
            or self.optimizing(now)
        ):
            return self.latest
        return replace(self.latest, state=ModificationState.COMPLETED, ended_at=self.over_at)


@dataclass
class Simulation:
    """One set of one volume through its days."""

    seed: int
    policy: Policy
    budget: Decimal | None
    instance_type: str = "m7g.2xlarge"
    failures: float = 0.02
    strangers: float = 0.001

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)  # noqa: S311 - a load, no secret
        self.ec2 = Ec2(Gp3(100))
        self.spec = Gp3(100)
        self.asked = self.ec2.shape
        self.history = History()
        self.used = self.dice.uniform(0.1, 0.6) * 100 * GIB
        self.rate = 0.0
        self.demand = 0.0
        self.samples: deque[FillSample] = deque(maxlen=14 * 24)
        self.hours: deque[Hour] = deque(maxlen=10 * 24)
        self.changes: list[tuple[float, VolumeDecision]] = []
        self.full_though_legal: list[float] = []
        self.above: list[Decimal] = []
        self.failed = False

    def run(self, days: int = 30) -> None:
        now, could_grow = START, False
        for step in range(int(days * DAY / STEP)):
            now = START + step * STEP
            self._load(step)
            if self.used >= self.ec2.shape.size_gib * GIB:
                if could_grow:
                    self.full_though_legal.append(now)
                self.used = float(self.ec2.shape.size_gib * GIB)  # the broker stopped taking
            could_grow = self._decide(step, now)

    def _load(self, step: int) -> None:
        """Let what is produced and what expires change the fill, and the load its pace."""
        dice, size = self.dice, self.ec2.shape.size_gib * GIB
        if step % 24 == 0:
            self.rate = dice.choice([0, 0, 0.5, 2, 5, -2]) * GIB * dice.random()
            self.demand = dice.choice([20, 60, 110, 150, 240, 400]) * MIB * dice.random()
        change = min(self.rate, LARGEST_SPIKE * size)
        if dice.random() < 0.005:
            change = dice.uniform(0, LARGEST_SPIKE) * size
        self.used = max(GIB, self.used + change)

    def _decide(self, step: int, now: float) -> bool:
        """Take a turn; return whether the fill that follows finds a volume that could have grown.

        A volume that was legally growable and was left too small is the advisor's fault.
        """
        if self.dice.random() < self.strangers and self.ec2.may_modify(now):
            self.ec2.modify(self.ec2.shape, now, 600, fails=False)
        self.history = add_observation(self.history, self.ec2.told(now), self.ec2.shape, now)
        seen = self._set(now)
        self._remember(step, now)
        before = self.ec2.may_modify(now)
        decided = plan([seen], BOOK, now, self.budget)
        self.above.append(above_spec(seen, BOOK))
        for decision in decided.changes:
            self._apply(decision, now)
        known = self.history.known_since is not None and now - self.history.known_since > DAY
        grew = any(d.kind is DecisionKind.GROW for d in decided.changes)
        denied = any(d.refused_by in {"budget", "ceiling"} for d in decided.decisions)
        # Nobody sees a spike coming that takes all that was free above the emergency's mark.
        return before and known and not grew and not denied and self._in_need()

    def _in_need(self) -> bool:
        free = self.asked.size_gib * GIB - self.used
        return free < (self.policy.free_share / 2) * self.asked.size_gib * GIB

    def _apply(self, decision: VolumeDecision, now: float) -> None:
        assert decision.target is not None
        self.changes.append((now, decision))
        asked = Modification(
            started_at=now,
            state=ModificationState.REQUESTED,
            target=decision.target,
            kind=decision.kind.value,
        )
        self.history = add_request(self.history, asked)
        fails = self.dice.random() < self.failures
        takes = self.dice.choice([600, 3600, 4 * 3600, 8 * 3600])
        self.ec2.modify(decision.target, now + 5, takes, fails=fails)
        # The driver tries again what failed, once it may; the claim asks for it all the while.
        self.asked = decision.target if not fails else self.asked

    def _remember(self, step: int, now: float) -> None:
        if step % 2 == 0:
            self.samples.append(FillSample(now, self.used))
            limit = self.ec2.shape.throughput_mib_per_s * MIB
            had = min(self.demand, limit)
            self.hours.append(Hour(now, had / MIB * 4, had, exceeded=self.demand > limit))

    def _set(self, now: float) -> VolumeSet:
        limit = self.ec2.shape.throughput_mib_per_s * MIB
        had = min(self.demand, limit)
        load = Load(
            volume_exceeded_share=max(0.0, 1 - limit / self.demand) if self.demand else 0.0,
            instance_exceeded_share=0.0,
            iops_p999=had / MIB * 4,
            bytes_per_s_p999=had,
            hours=tuple(self.hours),
        )
        name = class_of(self.asked.performance)
        volume = VolumeView(
            claim="data-0",
            pod="broker-0",
            volume_id="vol-0",
            actual=self.ec2.shape,
            requested_gib=self.asked.size_gib,
            given_gib=self.asked.size_gib,
            wanted_class=name,
            given_class=name,
            instance_type=self.instance_type,
            history=self.history,
            forecast=forecast(tuple(self.samples), self.used, now),
            load=load,
        )
        return VolumeSet(
            pool="broker-a",
            number=0,
            asked=self.asked,
            spec=self.spec,
            volumes=(volume,),
            policy=self.policy,
        )


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
