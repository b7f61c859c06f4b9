"""The three functions wired to fakes, with a clock and queues that a test turns by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from core.incidents.actions import ACTING, OWN, Level, Reach
from core.incidents.observation import Policy
from core.incidents.record import Incident, State
from handlers.incidents.act import Effects, ErrorSnapshots
from handlers.incidents.broom import Archivist, Broom
from handlers.incidents.desk import IntakeDesk, Notices
from handlers.incidents.loop import Loop
from handlers.incidents.observe import Sources
from handlers.incidents.reception import Reception
from handlers.incidents.shifts import Leadership, Shifts
from handlers.rotation.conductor import Conductor
from handlers.rotation.turns import Rotations, Throttles
from handlers.store.documents import Freezes, Runs
from handlers.store.ledger import Stories
from tests.explorer.world import START
from tests.unit.handlers.fakes import PREFIX, WHOSE, FakeCluster, three_brokers
from tests.unit.handlers.in_memory import (
    FakeQueue,
    FakeRoots,
    MemoryArchive,
    MemoryLedger,
    MemoryRecords,
)
from tests.unit.policies import policy_with

POLICY = policy_with(tick_interval_seconds=5, post_condition_hold_seconds=10)


@dataclass
class Station:
    policy: Policy = POLICY
    cluster: FakeCluster = field(default_factory=three_brokers)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    ticks: FakeQueue = field(default_factory=FakeQueue)
    termination_handler: FakeQueue = field(default_factory=FakeQueue)
    roots: FakeRoots = field(default_factory=FakeRoots)
    records: MemoryRecords = field(default_factory=MemoryRecords)
    archive: MemoryArchive = field(default_factory=MemoryArchive)
    told: list[Incident] = field(default_factory=list)
    stories: FakeQueue = field(default_factory=FakeQueue)
    now: float = START
    level: Level = OWN
    reach: Reach | None = None

    def __post_init__(self) -> None:
        self.reception = Reception(self.ledger, self.cluster, self.ticks, WHOSE, self.records)
        self.freezes = Freezes(self.records, "orders")
        self.notices = Notices(self.reception, self.cluster, self.freezes, PREFIX)
        self.desk = IntakeDesk(self.reception, self.notices)
        self.broom = Broom(
            reception=self.reception,
            inventory=self.cluster,
            nodes=self.cluster,
            records=self.records,
            freezes=self.freezes,
            cluster="orders",
            late_seconds=45,
            archivist=Archivist(self.ledger, self.archive, self.told.append, PREFIX),
            claims=self.cluster,
        )
        self.leadership = Leadership(self.cluster, self.records, "orders")
        self.shifts = Shifts(
            freezes=self.freezes,
            ledger=self.ledger,
            cloud=self.cluster,
            inventory=self.cluster,
            nodes=self.cluster,
            leadership=self.leadership,
            records=self.records,
            ticks=self.ticks,
            whose=WHOSE,
            cluster="orders",
            acts=self.level in ACTING,
        )
        # Where we drain ourselves, there is no termination handler to send anything to.
        drain = self.cluster if self.policy.drain_route == "evict" else None
        cluster = self.cluster
        sources = Sources(
            cluster,
            cluster,
            cluster,
            self.ledger,
            self.freezes,
            drain,
            claims=cluster,
            roots=self.roots,
        )
        snapshots = ErrorSnapshots(self.cluster, self.cluster, self.records)
        self.runs = Runs(self.records, "orders")
        self.rotations = Rotations(
            runs=self.runs,
            sources=sources,
            reception=self.reception,
            snapshots=snapshots,
            ticks=self.ticks,
            policy=self.policy,
            late_seconds=45,
            told=Stories(self.stories).tell_run,
            throttles=Throttles(self.cluster, self.records, "orders"),
            leadership=self.leadership,
        )
        self.conductor = Conductor(
            runs=self.runs,
            sources=sources,
            templates=self.cluster,
            snapshots=snapshots,
            ticks=self.ticks,
            policy=self.policy,
            whose=WHOSE,
        )
        self.loop = Loop(
            sources=sources,
            effects=Effects(
                cloud=self.cluster,
                nodes=self.cluster,
                ledger=self.ledger,
                freezes=self.freezes,
                leadership=self.leadership,
                snapshots=snapshots,
                termination_handler=self.termination_handler if drain is None else None,
                drain=drain,
                ticks=self.ticks,
                policy=self.policy,
                lease_seconds=900,
                reach=self.reach or Reach(self.level),
                claims=cluster,
                roots=self.roots,
                cordons=cluster,
                clock=lambda: self.now,
            ),
            ticks=self.ticks,
            policy=self.policy,
            late_seconds=45,
            shifts=self.shifts,
            rotations=self.rotations,
        )

    def announce(self, body: str) -> None:
        self.desk.take(body, self.now)

    def tick(self, times: int = 1) -> Station:
        """Deliver the tick that was sent last, once its delay is over, and so on."""
        for _ in range(times):
            body, delay = self.ticks.sent[-1]
            self.now += delay + 0.1
            self.loop.turn(body, self.now)
        return self

    def sweep(self, after: float = 0) -> dict[str, int]:
        """Let so many seconds go by, and sweep."""
        self.now += after
        return self.broom.sweep(self.now)

    def tick_until_quiet(self, most: int = 20) -> Station:
        """Deliver ticks as long as they come without a wait."""
        for _ in range(most):
            self.tick()
            if self.ticks.sent[-1][1] > 0 or not self.ledger.open_incidents():
                return self
        raise AssertionError("the loop does not come to rest")

    def tick_until(self, state: State, most: int = 40) -> None:
        for _ in range(most):
            if self.incident().state is state:
                return
            self.tick()
        raise AssertionError(f"never {state}: {self.incident().reason}")

    def tick_while_open(self, most: int) -> Station:
        for _ in range(most):
            if self.incident().open:
                self.tick()
        return self

    def incident(self, id_: str = "i-0a") -> Incident:
        found = self.ledger.get(id_)
        assert found is not None
        return found

    @property
    def forwarded(self) -> list[dict[str, object]]:
        return [json.loads(body) for body, _ in self.termination_handler.sent]
