"""Wires the shipped functions to an explored world, once: every adapter stands behind a tap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from core.incidents.actions import ACTING, OWN, Level, Reach
from core.incidents.observation import Policy
from handlers.adapters.kubernetes import NO_CLAIMS, NO_ENDS
from handlers.eviction.gate import Gate
from handlers.incidents.act import Effects, ErrorSnapshots
from handlers.incidents.broom import Archivist, Broom
from handlers.incidents.desk import IntakeDesk, Notices
from handlers.incidents.loop import Loop
from handlers.incidents.observe import Sources
from handlers.incidents.reception import Reception
from handlers.incidents.shifts import Leadership, Shifts
from handlers.rotation.turns import Rotations, Throttles
from handlers.store.documents import Freezes, Runs
from handlers.store.ledger import Stories
from handlers.webhook import Door
from tests.explorer import drainers, karpenter, roots
from tests.explorer.adapters import (
    ExploredCloud,
    ExploredNodes,
    ExploredQueue,
    ExploredTopic,
    Stage,
    Tap,
)
from tests.explorer.answers import Token
from tests.explorer.ledger import ObjectLedger, ObjectRecords
from tests.explorer.limits import LATE, LEASE, POLICY
from tests.explorer.own_drain import ExploredDrain
from tests.explorer.refills import RefilledKafka
from tests.explorer.world import CLUSTER, PREFIX, WHOSE, World
from tests.unit.handlers.in_memory import MemoryArchive

ASKED = replace(POLICY, drain_route="asked")
# Below `act`: nothing of what is theirs is changed.
LEVELS: tuple[Level, ...] = ("watch", "gate")


@dataclass(frozen=True, slots=True)
class Way:
    """How a world's nodes are drained: by whom, told by whom, and in what company."""

    emptied_by_us: bool = False
    together: bool = False  # the disruption budgets open for a party
    direct: bool = False  # the termination handler hears AWS itself
    level: Level = OWN
    karpenter: bool = False  # the machines are Karpenter's
    asked: bool = False  # and whoever evicts asks the gate

    @classmethod
    def of(cls, world: World) -> Way:
        """Return how it is done in a world."""
        if world.level != OWN:
            return cls(level=world.level)
        if world.karpenter:
            return cls(karpenter=True, asked=world.gated)
        return cls(world.emptied_by_us, world.together, world.direct)

    @property
    def gate(self) -> Level | Literal["karpenter"]:
        """Return which gate answers."""
        return "karpenter" if self.karpenter else self.level

    def policy(self) -> Policy:
        """Return the policy of whoever is drained so."""
        if self.asked:
            return ASKED
        route = "evict" if self.emptied_by_us else "direct" if self.direct else POLICY.drain_route
        return replace(POLICY, drain_route=route, stops_together=self.together)


@dataclass(frozen=True, slots=True)
class Functions:
    """What is deployed."""

    desk: IntakeDesk
    brooms: dict[bool, Broom]  # whether machines are Karpenter's
    door: Door
    gates: dict[Level | Literal["karpenter"], Gate]
    loops: dict[Way, Loop]


def functions(stage: Stage, clock: Callable[[], float]) -> Functions:
    """Return the functions, each adapter of theirs a tap of the stage's."""
    ledger: Any = Tap(stage, "ledger", "ledger", ObjectLedger(lambda: stage.world))
    records: Any = Tap(stage, "ledger", "records", ObjectRecords(lambda: stage.world))
    cloud: Any = Tap(stage, "aws", "cloud", ExploredCloud(stage))
    nodes: Any = Tap(stage, "api", "nodes", ExploredNodes(stage))
    kafka: Any = Tap(stage, "kafka", "kafka", RefilledKafka(stage))
    ticks: Any = Tap(stage, "sqs", "ticks", ExploredQueue(stage, "ticks"))
    topic: Any = Tap(stage, "sns", "topic", ExploredTopic(stage))
    nth: Any = Tap(stage, "sqs", "nth", ExploredQueue(stage, "nth"))
    root_volumes: Any = Tap(stage, "aws", "roots", roots.ExploredRoots(stage))
    own: Any = Tap(stage, "api", "drain", ExploredDrain(stage))
    claims: Any = Tap(stage, "api", "claims", karpenter.ExploredClaims(stage))
    freezes = Freezes(records, CLUSTER)
    reception = Reception(ledger, cloud, ticks, WHOSE, records)
    leadership = Leadership(kafka, records, CLUSTER)
    sources = Sources(cloud, nodes, kafka, ledger, freezes, roots=root_volumes)
    snapshots = ErrorSnapshots(kafka, nodes, records)

    def loop(way: Way) -> Loop:
        policy, level = way.policy(), way.level
        drain = own if way.emptied_by_us else None
        seen = replace(sources, drain=drain, claims=claims if way.karpenter else NO_CLAIMS)
        return Loop(
            sources=seen,
            effects=Effects(
                cloud=cloud,
                nodes=nodes,
                ledger=ledger,
                freezes=freezes,
                leadership=leadership,
                snapshots=snapshots,
                termination_handler=None if drain else nth,
                drain=drain,
                roots=root_volumes,
                cordons=own,
                claims=claims if way.asked else NO_ENDS,
                ticks=ticks,
                policy=policy,
                lease_seconds=LEASE,
                clock=clock,
                reach=Reach(level),
            ),
            ticks=ticks,
            policy=policy,
            late_seconds=LATE,
            shifts=Shifts(
                freezes=freezes,
                ledger=ledger,
                cloud=cloud,
                inventory=cloud,
                nodes=nodes,
                leadership=leadership,
                records=records,
                ticks=ticks,
                whose=WHOSE,
                cluster=CLUSTER,
                acts=level in ACTING,
            ),
            topic=topic,
            rotations=Rotations(
                runs=Runs(records, CLUSTER),
                sources=seen,
                reception=reception,
                snapshots=snapshots,
                ticks=ticks,
                policy=policy,
                late_seconds=LATE,
                told=Stories(None).tell_run,
                throttles=Throttles(kafka, records, CLUSTER),
                leadership=leadership,
            ),
        )

    def gate(level: Level, way: Way = Way()) -> Gate:
        return Gate(
            sources=replace(sources, claims=claims) if way.karpenter else sources,
            reception=reception,
            forget_readings=lambda: None,
            policy=way.policy(),
            namespace=drainers.NAMESPACE,
            cluster="orders",
            operators=frozenset(),
            lease_seconds=LEASE,
            reach=Reach(level),
            clock=clock,
        )

    ways = [
        Way(by_us, together, direct)
        for by_us, together, direct in product((False, True), repeat=3)
        if not (by_us and direct)
    ]
    ways += [Way(level=level) for level in LEVELS]
    behind = Way(karpenter=True, asked=True)
    ways += [behind, Way(karpenter=True)]
    broom = Broom(
        reception=reception,
        inventory=cloud,
        nodes=nodes,
        records=records,
        freezes=freezes,
        cluster=CLUSTER,
        late_seconds=LATE,
        archivist=Archivist(ledger, MemoryArchive(), lambda _: None, PREFIX),
    )
    return Functions(
        desk=IntakeDesk(reception, Notices(reception, cloud, freezes, PREFIX)),
        brooms={False: broom, True: replace(broom, claims=claims)},
        door=Door(ledger, ticks, Token()),
        gates={**{level: gate(level) for level in (OWN, *LEVELS)}, "karpenter": gate(OWN, behind)},
        loops={way: loop(way) for way in ways},
    )
