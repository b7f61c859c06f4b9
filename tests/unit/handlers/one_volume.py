"""One broker's volume from the KafkaNodePool down to EC2, for tests of λ volumes over days.

Time is passed in. EC2 is the twin's rules (local.aws.volumes), and every call of
ModifyVolume is written down, refused ones too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from core.cost import pricing
from core.ground.errors import Conflict
from core.settings.volumes import PoolSettings, VolumeSettings
from core.volumes.deciding import class_of
from core.volumes.sizing import Gp3, Performance, Policy, steps
from core.volumes.views import Load, Modification, ModificationState
from handlers.adapters.claims import ClaimView, PoolView
from handlers.adapters.volumes import EbsView, FillView, PrometheusVolumes
from handlers.store.documents import Runs
from handlers.volume.steward import Departing, Lookout, Sources, Steward
from local.aws.volumes import RefusedModification, VolumeShape, check
from tests.unit.handlers.memory_ledger import MemoryLedger
from tests.unit.handlers.memory_records import MemoryRecords

NOW, MINUTE, HOUR, DAY = 1_800_000_000.0, 60.0, 3600.0, 86_400.0
GIB, MIB = 1024**3, 1024**2
LOOK = 5 * MINUTE
SPEC = Gp3(100)
IDLE = Load(
    volume_exceeded_share=0.0, instance_exceeded_share=0.0, iops_p999=1.0, bytes_per_s_p999=1.0
)


@dataclass
class OneVolume:
    """One broker's volume from the KafkaNodePool down to EC2, and what it holds."""

    asked: Gp3 = SPEC
    actual: Gp3 = SPEC
    used: float = 30.0 * GIB
    load: Load = IDLE
    optimizing_seconds: float = 10 * MINUTE
    now: float = NOW
    version: int = 1
    starts: list[float] = field(default_factory=list)
    sent: list[tuple[float, Gp3]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    writes: int = 0
    frozen: str = ""
    conflicts: int = 0
    series: PrometheusVolumes | None = None
    ledger: MemoryLedger = field(default_factory=MemoryLedger)

    # Kubernetes
    def pools(self) -> tuple[PoolView, ...]:
        entry = {
            "id": 0,
            "type": "persistent-claim",
            "size": f"{self.asked.size_gib}Gi",
            "volumeAttributesClass": class_of(self.asked.performance),
        }
        storage = {"type": "jbod", "volumes": [entry]}
        return (
            PoolView(
                name="broker-a", version=str(self.version), storage=storage, frozen=self.frozen
            ),
        )

    def claims(self) -> tuple[ClaimView, ...]:
        name = class_of(self.asked.performance)
        given = class_of(self.actual.performance)
        return (
            ClaimView(
                name="data-0-orders-broker-a-10",
                pool="broker-a",
                number=0,
                pod="orders-broker-a-10",
                volume_id="vol-0a",
                requested_gib=self.asked.size_gib,
                given_gib=self.actual.size_gib,
                wanted_class=name,
                given_class=given,
                troubles=(),
            ),
        )

    def classes(self) -> frozenset[Performance]:
        return frozenset(steps(SPEC.performance, Performance(12_000, 298)))

    def ask(self, pool: PoolView, wanted: Mapping[int, Gp3]) -> None:
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict("The object was changed by somebody else meanwhile.")
        assert pool.version == str(self.version)
        self.asked, self.version, self.writes = wanted[0], self.version + 1, self.writes + 1

    # The operator and the EBS driver, a moment later
    def reconcile(self) -> None:
        if self.asked != self.actual:
            self.modify(self.asked)

    # EC2
    @property
    def state(self) -> str | None:
        if not self.starts:
            return None
        running = self.now - self.starts[-1] < self.optimizing_seconds
        return "optimizing" if running else "completed"

    def modify(self, target: Gp3) -> None:
        self.sent.append((self.now, target))
        try:
            check(
                "vol-0a",
                VolumeShape(
                    self.actual.size_gib, self.actual.iops, self.actual.throughput_mib_per_s
                ),
                VolumeShape(target.size_gib, target.iops, target.throughput_mib_per_s),
                state=self.state,
                starts=[datetime.fromtimestamp(at, UTC) for at in self.starts],
                now=datetime.fromtimestamp(self.now, UTC),
            )
        except RefusedModification as refused:
            self.refused.append(str(refused))
            return
        self.starts.append(self.now)
        self.actual = target

    def volumes(self, ids: Sequence[str]) -> Mapping[str, EbsView]:
        return dict.fromkeys(ids, EbsView(self.actual, "i-0a"))

    def modifications(self, ids: Sequence[str]) -> Mapping[str, Modification]:
        if not self.starts:
            return {}
        latest = Modification(
            started_at=self.starts[-1],
            state=ModificationState(self.state or ""),
            target=self.actual,
        )
        return dict.fromkeys(ids, latest)

    def instance_types(self, ids: Sequence[str]) -> Mapping[str, str]:
        return dict.fromkeys(ids, "m7g.2xlarge")

    # Kafka and CloudWatch
    def fills(self) -> Mapping[tuple[int, int], FillView]:
        return {(10, 0): FillView(int(self.used))}

    def loads(self, volumes: Mapping[str, str | None], now: float) -> Mapping[str, Load]:
        return dict.fromkeys(volumes, self.load)


@dataclass
class Desk:
    world: OneVolume
    records: MemoryRecords
    steward: Steward

    def look(self, **given: bool) -> dict[str, Any]:
        return self.steward.turn(self.world.now, **given)

    def first(self, **given: bool) -> dict[str, Any]:
        found: dict[str, Any] = self.look(**given)["decisions"][0]
        return found

    def run(self, seconds: float) -> None:
        """Let time pass, with a look every five minutes and the driver a minute behind."""
        until = self.world.now + seconds
        while self.world.now < until:
            self.look()
            self.world.now += MINUTE
            self.world.reconcile()
            self.world.now += LOOK - MINUTE


def desk(
    world: OneVolume, *, applies: bool = True, budget: Decimal | None = None, **policies: Any
) -> Desk:
    records = MemoryRecords()
    policy = Policy(apply=applies, **policies)
    settings = VolumeSettings(
        applies=applies,
        frozen=False,
        budget_usd=budget,
        pools={"broker-a": PoolSettings(policy, (SPEC,))},
    )
    lookout = Lookout(
        world,
        Sources(world, world, world, world.series),
        Departing(world.ledger, Runs(records, "orders"), records),
        records,
        settings,
    )
    return Desk(world, records, Steward(lookout, pricing.book("us-east-1")))
