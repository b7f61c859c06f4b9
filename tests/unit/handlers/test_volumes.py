"""λ volumes over days, and which source is asked for what.

Time is passed in. EC2 is the twin's rules (local.aws.volumes), and every call of
ModifyVolume is written down, refused ones too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from moto.ec2.exceptions import EC2ClientError

from core.cost import pricing
from core.cost.pricing import PriceBook
from core.ground import constants
from core.ground.errors import Conflict, StillwaterError
from core.settings.volumes import PoolSettings, VolumeSettings
from core.volumes.deciding import class_of
from core.volumes.sizing import Gp3, Performance, Policy, steps
from core.volumes.views import Load, Modification, ModificationState
from handlers.adapters.claims import ClaimView, PoolView
from handlers.adapters.volumes import EbsView, FillView, PrometheusVolumes, SeriesResult
from handlers.store import volume_records
from handlers.store.documents import Runs
from handlers.store.table import Record
from handlers.store.volume_records import PLAN
from handlers.volume.steward import Departing, Lookout, Sources, Steward
from local.aws.volumes import VolumeShape, check
from tests.every_case import every_case
from tests.unit.handlers.failing import fail, noted
from tests.unit.handlers.in_memory import MemoryLedger, MemoryRecords

pytestmark = pytest.mark.usefixtures("quiet")

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
            raise Conflict("The object was changed meanwhile.")
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
        except EC2ClientError as refused:
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


def test_a_filling_volume_is_grown_through_its_pool_alone() -> None:
    at = desk(OneVolume(used=95.0 * GIB))
    decision = at.first()
    assert (decision["kind"], decision["applied"]) == ("grow", True)
    assert at.world.asked.size_gib == decision["target"][0] > 100
    assert at.world.sent == []
    memory = volume_records.read(at.records, "vol-0a")
    assert [m.state for m in memory.history.modifications] == [ModificationState.REQUESTED]


@every_case(
    ("of", "given", "said"),
    [
        ({}, {"dry_run": True}, {"kind": "grow"}),
        ({"applies": False}, {}, {"kind": "grow", "applied": False}),
        ({"frozen": "audit"}, {}, {"refused_by": "frozen"}),
        ({"budget": Decimal(1)}, {}, {"refused_by": "budget"}),
    ],
    ids=["a dry run", "advice", "a frozen pool", "a budget"],
)
def test_what_keeps_a_filling_volume_as_it_is_writes_nothing_but_the_plan(
    of: dict[str, Any], given: dict[str, bool], said: dict[str, object]
) -> None:
    at = desk(OneVolume(used=95.0 * GIB, frozen=of.pop("frozen", "")), **of)
    shown = at.look(**given)
    assert said.items() <= shown["decisions"][0].items()
    assert at.world.writes == 0
    assert at.records.read(PLAN).document == (None if given else shown)


def test_a_pool_changed_meanwhile_gets_its_slot_back() -> None:
    at = desk(OneVolume(used=95.0 * GIB, conflicts=1))
    assert at.first()["applied"] is False
    assert volume_records.read(at.records, "vol-0a").history.modifications == ()
    at.world.now += LOOK
    assert at.first()["applied"] is True


def test_two_functions_at_once_use_one_slot() -> None:
    at = desk(OneVolume(used=95.0 * GIB))
    seen = at.steward.lookout.look(at.world.now)
    other = volume_records.read(at.records, "vol-0a")
    volume_records.write(at.records, "vol-0a", other)
    of = seen.sets[0]
    (decision,) = at.steward.turn(at.world.now, dry_run=True)["decisions"]
    assert decision["kind"] == "grow"
    late = replace(at.steward, lookout=_Stale(seen, at.steward.lookout))
    assert late.turn(at.world.now)["decisions"][0]["applied"] is False
    assert at.world.writes == 0
    assert of.pool == "broker-a"


class _Stale:
    """A lookout whose reading is already old."""

    def __init__(self, seen: Any, real: Lookout) -> None:
        self._seen, self.settings = seen, real.settings
        self.records, self.claims = real.records, real.claims

    def look(self, now: float) -> Any:
        return self._seen


def test_an_announced_end_closes_the_ledgers_entry() -> None:
    world = OneVolume(used=95.0 * GIB, optimizing_seconds=5 * HOUR)
    at = desk(world)
    at.run(LOOK)
    at.look()
    assert volume_records.read(at.records, "vol-0a").history.under_way is not None
    assert volume_records.close(at.records, "vol-0a", ModificationState.COMPLETED, world.now)
    assert volume_records.read(at.records, "vol-0a").history.under_way is None
    assert not volume_records.close(at.records, "vol-0a", ModificationState.COMPLETED, world.now)


def test_a_throttled_volume_is_raised_and_lowered_after_a_quiet_day() -> None:
    world = OneVolume(
        load=Load(
            volume_exceeded_share=0.5,
            instance_exceeded_share=0.0,
            iops_p999=500.0,
            bytes_per_s_p999=125.0 * MIB,
        )
    )
    at = desk(world)
    at.run(HOUR)
    assert world.actual.performance == Performance(3000, 250)
    world.load = Load(
        volume_exceeded_share=0.0,
        instance_exceeded_share=0.0,
        iops_p999=200.0,
        bytes_per_s_p999=20.0 * MIB,
    )
    at.run(20 * HOUR)
    assert world.actual.performance == Performance(3000, 250)
    at.run(8 * HOUR)
    assert world.actual.performance == Performance()
    assert world.refused == []


@pytest.mark.parametrize("optimizing", [10 * MINUTE, 7 * HOUR])
def test_a_fifth_modification_in_24_hours_is_never_sent(optimizing: float) -> None:
    """Two days in which ten modifications a day are wanted: room for hours only, load in waves."""
    world = OneVolume(optimizing_seconds=optimizing)
    at = desk(world, act_days=0.05, headroom_days=0.1, step_gib=1)
    wild = Load(
        volume_exceeded_share=0.9,
        instance_exceeded_share=0.0,
        iops_p999=9000.0,
        bytes_per_s_p999=240.0 * MIB,
    )
    for hour in range(2 * 24):
        world.used = min(world.used + 6 * GIB, world.actual.size_gib * GIB)
        world.load = wild if hour % 2 else Load(volume_exceeded_share=0.0)
        at.run(HOUR)
    assert len(world.sent) > 4
    assert world.refused == []
    times = [sent for sent, _ in world.sent]
    for begin in times:
        assert sum(1 for t in times if begin <= t < begin + DAY) <= 4


def test_an_end_that_aws_announces_during_a_look_stays_closed() -> None:
    world = OneVolume(used=95.0 * GIB, optimizing_seconds=5 * HOUR)
    at = desk(world)
    at.run(LOOK)
    at.look()
    seen = at.records.read("volume#vol-0a")
    read = at.records.read

    def announced_meanwhile(key: str) -> Record:
        # The look has its reading, and is about to write.
        if key == "volume#vol-0a" and at.records.read is announced_meanwhile:
            at.records.read = read
            volume_records.close(at.records, "vol-0a", ModificationState.COMPLETED, world.now)
            return seen
        return read(key)

    at.records.read = announced_meanwhile
    world.now += 20 * MINUTE
    at.look(dry_run=True)
    assert volume_records.read(at.records, "vol-0a").history.under_way is None


CLAIM, VOLUME = "data-0-orders-broker-a-10", "vol-0a"


def test_where_no_price_is_known_disks_are_watched_all_the_same() -> None:
    at = desk(OneVolume(used=95.0 * GIB))
    unpriced = replace(at.steward, book=PriceBook("eu-west-1", "The shipped price file"))
    shown = unpriced.turn(at.world.now)
    assert shown["decisions"][0]["applied"] is True
    assert (shown["planned_usd"], shown["decisions"][0]["monthly_usd_change"]) == (None, None)
    assert "stillwater prices fetch --region eu-west-1" in shown["unpriced"]


@dataclass
class Watching:
    """A Prometheus that knows what it is told to."""

    fill: FillView | None = None
    load: Load | None = None
    before: Mapping[float, float] = field(default_factory=dict)
    asked_past: list[Sequence[str]] = field(default_factory=list)

    def fills(self, claims: Sequence[str], now: float) -> SeriesResult[FillView]:
        if self.fill is None:
            return SeriesResult(
                {}, ("Prometheus has no kubelet_volume_stats_capacity_bytes of any",)
            )
        return SeriesResult(dict.fromkeys(claims, self.fill))

    def past(self, claims: Sequence[str], now: float) -> Mapping[str, Mapping[float, float]]:
        self.asked_past.append(claims)
        return dict.fromkeys(claims, self.before)

    def loads(self, volumes: Sequence[str], now: float) -> SeriesResult[Load]:
        return SeriesResult({} if self.load is None else dict.fromkeys(volumes, self.load))


def room(used_gib: float) -> FillView:
    return FillView(int(used_gib * GIB), 100 * GIB, int((100 - used_gib) * GIB))


def test_where_prometheus_knows_all_nobody_else_is_asked() -> None:
    world = OneVolume(series=Watching(room(95), IDLE))
    brokers, cloudwatch = noted(world, "fills"), noted(world, "loads")
    assert desk(world).first()["kind"] == "grow"
    assert (len(brokers), len(cloudwatch)) == (0, 0)


def test_what_prometheus_lacks_the_brokers_and_cloudwatch_are_asked() -> None:
    lacking = replace(IDLE, iops_p999=None)
    world = OneVolume(used=95.0 * GIB, load=IDLE, series=Watching(None, lacking))
    brokers, cloudwatch = noted(world, "fills"), noted(world, "loads")
    shown = desk(world).look()
    assert shown["decisions"][0]["kind"] == "grow"
    assert (len(brokers), len(cloudwatch)) == (1, 1)
    assert shown["unknown"] == ["Prometheus has no kubelet_volume_stats_capacity_bytes of any"]


def test_a_prometheus_that_does_not_answer_is_said_and_the_others_are_asked() -> None:
    world = OneVolume(used=95.0 * GIB, load=IDLE, series=Watching())
    fail(world.series, "fills", StillwaterError("The Kubernetes API answered 503 to GET"))
    shown = desk(world).look()
    assert shown["decisions"][0]["kind"] == "grow"
    assert "Prometheus did not answer" in shown["unknown"][0]


def test_a_volume_whose_fill_nobody_knows_is_named_and_not_taken_for_empty() -> None:
    world = OneVolume()
    fail(world, "fills", StillwaterError("No broker answers."))
    at = desk(world)
    shown = at.look()
    (verdict,) = shown["decisions"]
    assert verdict["kind"] == "unknown"
    assert verdict["reason"].startswith(f"the fill of {CLAIM} is not known, so nothing is grown")
    assert shown["unknown"] == ["No broker said how full its volumes are: No broker answers."]
    assert volume_records.read(at.records, VOLUME).samples == ()


def test_what_is_unknown_counts_once_the_cluster_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[str] = []
    monkeypatch.setattr(
        "handlers.volume.steward.metrics.count", lambda name, _=1: counts.append(name)
    )
    at = desk(OneVolume(load=Load()))
    at.look()
    at.world.now += HOUR - LOOK
    at.look()
    assert counts == []
    at.world.now += LOOK
    at.look()
    assert counts == [constants.VOLUMES_UNKNOWN]


def test_what_prometheus_saw_before_is_a_trend_at_the_first_look_and_asked_once() -> None:
    # 30 GiB two days ago, 70 now: 20 a day.
    before = {NOW - h * HOUR: (70 - 20 * h / 24) * GIB for h in range(1, 49)}
    watching = Watching(room(70), IDLE, before)
    at = desk(OneVolume(series=watching))
    decision = at.first()
    assert (decision["kind"], decision["emergency"]) == ("grow", False)
    assert "+20.0 GiB a day" in decision["reason"]
    at.world.now += LOOK
    at.look()
    assert watching.asked_past == [[CLAIM]]
