"""The handlers as their entry points put them together, tapped, on the clock of a World."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from handlers import interruption, sweep, tick
from handlers.adapters.aws import AwsCloud, Ec2Inventory, Queue
from handlers.incidents.act import Effects, ErrorSnapshots
from handlers.incidents.broom import Archivist, Broom
from handlers.incidents.desk import IntakeDesk, Notices
from handlers.incidents.loop import Loop
from handlers.incidents.observe import Sources
from handlers.incidents.reception import Reception
from handlers.incidents.shifts import Leadership, Shifts
from handlers.rotation.turns import Rotations, Throttles
from handlers.store.documents import Freezes, Runs
from handlers.store.ledger import Ledger
from handlers.store.table import Records
from local import environment
from tests.integration.aws.cloud import Cloud
from tests.unit.handlers import tables
from tests.unit.handlers.fakes import PREFIX, WHOSE, FakeCluster
from tests.unit.handlers.in_memory import MemoryArchive
from tests.unit.policies import policy_with

if TYPE_CHECKING:
    from tests.integration.faults.world import World

LATE_SECONDS = 45.0
LEASE_SECONDS = 900.0
# Above the visibility timeout of NTH's queue, as core.timing wants it, and no more.
POLICY = policy_with(
    tick_interval_seconds=15, post_condition_hold_seconds=10, forward_again_seconds=130
)


def wire(world: World, table: str) -> Ledger:
    """Put the handlers together as their entry points do; return the ledger without its tap."""
    region, on = environment.REGION, world.taps.on
    untapped = Ledger(table, "orders", region)
    ledger = on("ledger", untapped)
    records = on("records", Records(table, region))
    cloud, inventory = on("cloud", AwsCloud(region)), on("inventory", Ec2Inventory(region))
    nodes, kafka = on("nodes", world.machinery.cluster), on("kafka", world.machinery.cluster)
    ticks = on("ticks", world.ticks)
    handler = on("nth", Queue(world.handler.url, region))
    reception = Reception(ledger, cloud, ticks, WHOSE, records)
    freezes = Freezes(records, "orders")
    leadership = Leadership(kafka, records, "orders")
    snapshots = ErrorSnapshots(FakeCluster(), nodes, records)
    shifts = Shifts(
        freezes=freezes,
        ledger=ledger,
        cloud=cloud,
        inventory=inventory,
        nodes=nodes,
        leadership=leadership,
        records=records,
        ticks=ticks,
        whose=WHOSE,
        cluster="orders",
    )
    desk = IntakeDesk(reception, Notices(reception, inventory, freezes, PREFIX))
    sources = Sources(cloud, nodes, kafka, ledger, freezes)
    loop = Loop(
        sources=sources,
        effects=Effects(
            cloud=cloud,
            nodes=nodes,
            ledger=ledger,
            freezes=freezes,
            leadership=leadership,
            snapshots=snapshots,
            termination_handler=handler,
            ticks=ticks,
            policy=POLICY,
            lease_seconds=LEASE_SECONDS,
            clock=lambda: world.now,
        ),
        ticks=ticks,
        policy=POLICY,
        late_seconds=LATE_SECONDS,
        shifts=shifts,
        rotations=Rotations(
            runs=Runs(records, "orders"),
            sources=sources,
            reception=reception,
            snapshots=snapshots,
            ticks=ticks,
            policy=POLICY,
            late_seconds=LATE_SECONDS,
            told=lambda _: None,
            throttles=Throttles(kafka, records, "orders"),
            leadership=leadership,
        ),
    )
    broom = Broom(
        reception=reception,
        inventory=inventory,
        nodes=nodes,
        records=records,
        freezes=freezes,
        cluster="orders",
        late_seconds=LATE_SECONDS,
        archivist=Archivist(ledger, MemoryArchive(), lambda _: None, PREFIX),
    )
    # The entry points as Lambda calls them, with our clock for the machine's.
    world.monkeypatch.setattr(interruption, "_desk", lambda: _OnTime(world, desk))
    world.monkeypatch.setattr(
        tick, "_loop", lambda: _OnTime(world, replace(loop, policy=world.policy))
    )
    world.monkeypatch.setattr(sweep, "_broom", lambda: _OnTime(world, broom))
    return untapped


class _OnTime:
    """A part of the handlers whose last argument, the time, is the world's."""

    def __init__(self, world: World, part: Any) -> None:
        self._world, self._part = world, part

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)
        if not callable(method):
            return method
        return lambda *arguments, **named: method(*arguments[:-1], self._world.now, **named)


def make_table(cloud: Cloud) -> str:
    """Make a ledger's table for one case."""
    table = cloud.name("incidents")
    tables.make_table(cloud.dynamodb, table)
    cloud.later(cloud.dynamodb.delete_table, TableName=table)
    return table
