"""The same volumes, the same bytes, the same EC2: grown by forecast, and by a threshold.

The threshold is what a cluster has without this project: pvc-autoresizer (topolvm) asks the same
Prometheus and, at its defaults, makes a claim a tenth larger when less than a tenth of it is free.
EC2 is as it is: four modifications in 24 hours, each after the one before, which may take hours.
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field

from core.cost import pricing
from core.volumes.deciding import DecisionKind, class_of, plan
from core.volumes.sizing import GIB, Gp3, Policy
from core.volumes.views import (
    FillSample,
    History,
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
START, STEP, HOUR, DAY = 1_800_000_000.0, 300.0, 3600.0, 86_400.0
DAYS = 14
SIZE_GIB = 200
# pvc-autoresizer's own defaults.
THRESHOLD, INCREASE = 0.10, 0.10
RETENTION_SECONDS = 3 * DAY
OPTIMIZING_SECONDS = (600.0, 3600.0, 4 * HOUR)


def weather(seed: int) -> list[float]:
    """Return what a broker's fill changes by in each step: a trend, days and nights, bursts.

    A burst is a backfill or a new topic, of 2 to 20 MB a second for hours; it is gone again when
    its retention has passed. A trend is what stays.
    """
    dice = random.Random(seed)  # noqa: S311 - a load, no secret
    steps = int(DAYS * DAY / STEP)
    trend = dice.uniform(0.0, 10.0) * GIB / DAY
    changes = [
        (trend + 0.3 * GIB / HOUR * math.sin(2 * math.pi * step * STEP / DAY)) * STEP
        for step in range(steps)
    ]
    for begin in range(steps):
        if dice.random() < STEP / (3 * DAY):
            rate, kept = dice.uniform(2e6, 20e6), int(RETENTION_SECONDS / STEP)
            for step in range(begin, min(steps, begin + int(dice.uniform(1, 8) * HOUR / STEP))):
                changes[step] += rate * STEP
                if step + kept < steps:
                    changes[step + kept] -= rate * STEP
    return changes


@dataclass
class SimulatedEc2:
    """One volume and the modifications EC2 takes of it; `seed` decides how long each lasts."""

    seed: int
    size_gib: int = SIZE_GIB
    starts: deque[float] = field(default_factory=deque)
    over_at: float = 0.0
    latest: Modification | None = None

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)  # noqa: S311 - how long, no secret

    def takes(self, now: float) -> bool:
        recent = sum(1 for at in self.starts if at > now - DAY)
        return now >= self.over_at and recent < 4

    def grow(self, size_gib: int, now: float) -> None:
        self.starts.append(now)
        self.over_at = now + self._dice.choice(OPTIMIZING_SECONDS)
        self.latest = Modification(
            started_at=now,
            state=ModificationState.OPTIMIZING,
            target=Gp3(size_gib),
            original=Gp3(self.size_gib),
        )
        # Usable while it is optimized.
        self.size_gib = size_gib

    def last_modification(self, now: float) -> Modification | None:
        if self.latest is None or now < self.over_at:
            return self.latest
        return Modification(
            started_at=self.latest.started_at,
            state=ModificationState.COMPLETED,
            target=self.latest.target,
            original=self.latest.original,
            ended_at=self.over_at,
        )


@dataclass
class ByThreshold:
    """pvc-autoresizer at its defaults; the EBS driver tries again what EC2 does not take yet."""

    asked_gib: int = SIZE_GIB

    def wants(self, used: float, ec2: SimulatedEc2, now: float) -> int:
        del now
        if self.asked_gib <= ec2.size_gib and used > (1 - THRESHOLD) * ec2.size_gib * GIB:
            self.asked_gib = math.ceil(ec2.size_gib * (1 + INCREASE))
        return self.asked_gib


@dataclass
class ByForecast:
    """This project's plan, with its history and its samples, as λ volumes has them."""

    asked_gib: int = SIZE_GIB
    policy: Policy = field(default_factory=lambda: Policy(apply=True))

    def __post_init__(self) -> None:
        self.history = History(known_since=START - 2 * DAY)
        self.samples: deque[FillSample] = deque(maxlen=14 * 24)

    def wants(self, used: float, ec2: SimulatedEc2, now: float) -> int:
        actual = Gp3(ec2.size_gib)
        self.history = add_observation(
            self.history, ec2.last_modification(now), actual, now, Gp3(self.asked_gib)
        )
        if not self.samples or self.samples[-1].at <= now - HOUR:
            self.samples.append(FillSample(now, used))
        for decision in plan([self._set(used, now, actual)], BOOK, now).changes:
            if decision.kind is DecisionKind.GROW and decision.target is not None:
                self.asked_gib = decision.target.size_gib
                asked = Modification(
                    started_at=now,
                    state=ModificationState.REQUESTED,
                    target=decision.target,
                    kind="grow",
                )
                self.history = add_request(self.history, asked)
        return self.asked_gib

    def _set(self, used: float, now: float, actual: Gp3) -> VolumeSet:
        asked = Gp3(self.asked_gib)
        name = class_of(asked.performance)
        volume = VolumeView(
            claim="data-0",
            pod="broker-0",
            volume_id="vol-0",
            actual=actual,
            requested_gib=self.asked_gib,
            given_gib=actual.size_gib,
            wanted_class=name,
            given_class=name,
            instance_type="m7g.2xlarge",
            history=self.history,
            forecast=forecast(tuple(self.samples), used, now),
            load=Load(),
        )
        return VolumeSet(
            pool="broker-a",
            number=0,
            asked=asked,
            spec=Gp3(SIZE_GIB),
            volumes=(volume,),
            policy=self.policy,
        )


Rule = ByThreshold | ByForecast


@dataclass
class Ran:
    """How one volume fared under one rule."""

    hours_full: float = 0.0
    modifications: int = 0
    # Bytes that were paid for, for each that was used, over the two weeks.
    bought_ratio: float = 0.0


def run(rule: Rule, seed: int) -> Ran:
    """Let one volume fill for two weeks."""
    ec2, ran, used = SimulatedEc2(seed), Ran(), 100.0 * GIB
    bought = held = 0.0
    for step, change in enumerate(weather(seed)):
        now = START + step * STEP
        used = max(GIB, used + change)
        if used >= ec2.size_gib * GIB:
            used = float(ec2.size_gib * GIB)  # the broker has stopped
            ran.hours_full += STEP / HOUR
        wanted = rule.wants(used, ec2, now)
        if wanted > ec2.size_gib and ec2.takes(now):
            ec2.grow(wanted, now)
        bought += ec2.size_gib * GIB
        held += used
    ran.modifications = len(ec2.starts)
    ran.bought_ratio = bought / held
    return ran
