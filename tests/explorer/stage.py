"""The shipped functions wired to an explored world, and one step of either.

`step` lets the next thing of the agenda happen. Where that is a message for one of our functions,
the function runs as it is deployed below its entry point (Desk.take, Loop.turn, Broom.sweep), and
the faults that were planned for this step meet it at its calls, by their number.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from core.errors import StillwaterError
from core.incidents.observation import Policy
from handlers.adapters import metrics
from handlers.adapters.node_drain import NodeDrain
from handlers.eviction.gate import Gate
from handlers.incidents.act import Effects
from handlers.incidents.broom import Broom
from handlers.incidents.desk import Desk
from handlers.incidents.door import Door
from handlers.incidents.error_snapshots import ErrorSnapshots
from handlers.incidents.leadership import Leadership
from handlers.incidents.loop import Loop
from handlers.incidents.notices import Notices
from handlers.incidents.observe import Sources
from handlers.incidents.reception import Reception
from handlers.incidents.shifts import Shifts
from handlers.rotation.throttles import Throttles
from handlers.rotation.turns import Rotations
from handlers.store.archive import Archivist
from handlers.store.freezes import LedgerFreezes
from handlers.store.notifying import RunChronicle
from handlers.store.runs import LedgerRuns
from tests.explorer import agenda, drainers, nature, roots, rules
from tests.explorer.adapters import (
    ExploredCloud,
    ExploredKafka,
    ExploredNodes,
    ExploredQueue,
    ExploredTopic,
    Tap,
)
from tests.explorer.answers import Kept, Token, failure, lost_race, posted
from tests.explorer.ledger import ObjectLedger, ObjectRecords
from tests.explorer.limits import (
    EVENT_RECEIVES,
    FUNCTION_VISIBILITY,
    LATE,
    LEASE,
    POLICY,
    SWEEP,
    TICK_RECEIVES,
)
from tests.explorer.own_drain import ExploredDrain
from tests.explorer.rules import Invocation
from tests.explorer.swift import swift_replace
from tests.explorer.world import CLUSTER, PREFIX, WHOSE, Key, World
from tests.unit.handlers.memory_archive import MemoryArchive

Faults = Mapping[int, str]  # number of the call -> what goes wrong there
# A list or a description may be this far behind what was written.
STALE_SECONDS = 300.0
REMEMBERED = 5
# What AWS and Kubernetes may answer from a copy; DynamoDB's reads of items are consistent.
LATE_READS = frozenset(
    {
        *("cloud.instance", "cloud.group", "cloud.groups_of", "cloud.volumes_on"),
        *("cloud.instance_states", "nodes.nodes", "nodes.kafka_pods", "nodes.attachments"),
        *("kafka.read", "ledger.open_incidents"),
    }
)
# Writes that are refused when somebody else was faster.
RACED = frozenset(
    {
        *("ledger.put", "ledger.take_lease", "ledger.begin_drain", "ledger.drop_lease"),
        "records.write",
    }
)


class Died(BaseException):
    """The function ends here, without another word."""


class Stage:
    """Everything that is wired once; the world it shows is exchanged at every step."""

    def __init__(self) -> None:
        self.world = World()
        self.invocation = Invocation("nobody", 0.0)
        self.turns = 0
        self.decided: Callable[[str], None] | None = None
        ledger = Tap(self, "ledger", "ledger", ObjectLedger(lambda: self.world))
        records = Tap(self, "ledger", "records", ObjectRecords(lambda: self.world))
        cloud = Tap(self, "aws", "cloud", ExploredCloud(self))
        nodes = Tap(self, "api", "nodes", ExploredNodes(self))
        kafka = Tap(self, "kafka", "kafka", ExploredKafka(self))
        ticks = Tap(self, "sqs", "ticks", ExploredQueue(self, "ticks"))
        topic = Tap(self, "sns", "topic", ExploredTopic(self))
        drains = Tap(self, "sqs", "nth", ExploredQueue(self, "nth"))
        root_volumes = Tap(self, "aws", "roots", roots.ExploredRoots(self))
        drain = Tap(self, "api", "drain", ExploredDrain(self))
        freezes = LedgerFreezes(records, CLUSTER)
        reception = Reception(ledger, cloud, ticks, WHOSE)
        self.desk = Desk(reception, Notices(reception, cloud, freezes, PREFIX))
        self.broom = Broom(
            reception=reception,
            inventory=cloud,
            nodes=nodes,
            records=records,
            freezes=freezes,
            cluster=CLUSTER,
            late_seconds=LATE,
            archivist=Archivist(ledger, MemoryArchive(), lambda _: None, PREFIX),
        )
        self.door = Door(ledger, ticks, Token())
        leadership = Leadership(kafka, records, CLUSTER)
        sources = Sources(cloud, nodes, kafka, ledger, freezes, roots=root_volumes)
        self.gate = Gate(
            sources=sources,
            reception=reception,
            readings=Kept(),
            policy=POLICY,
            namespace=drainers.NAMESPACE,
            cluster="orders",
            operators=frozenset(),
            lease_seconds=LEASE,
            clock=lambda: self.world.now + self.invocation.skew,
        )
        snapshots = ErrorSnapshots(kafka, nodes, records)

        cordons = drain

        def loop(policy: Policy, drain: NodeDrain | None) -> Loop:
            return Loop(
                sources=replace(sources, drain=drain),
                effects=Effects(
                    cloud=cloud,
                    nodes=nodes,
                    ledger=ledger,
                    freezes=freezes,
                    leadership=leadership,
                    snapshots=snapshots,
                    termination_handler=None if drain else drains,
                    drain=drain,
                    roots=root_volumes,
                    cordons=cordons,
                    ticks=ticks,
                    lease_seconds=LEASE,
                    clock=lambda: self.world.now + self.invocation.skew,
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
                ),
                topic=topic,
                rotations=Rotations(
                    runs=LedgerRuns(records, CLUSTER),
                    sources=replace(sources, drain=drain),
                    reception=reception,
                    snapshots=snapshots,
                    ticks=ticks,
                    policy=policy,
                    late_seconds=LATE,
                    told=RunChronicle(None),
                    throttles=Throttles(kafka, records, CLUSTER),
                    leadership=leadership,
                ),
            )

        # By who drains, and whether the disruption budgets open for a party.
        self.loops = {
            (emptied_by_us, together): loop(
                replace(
                    POLICY,
                    drain_route="evict" if emptied_by_us else POLICY.drain_route,
                    stops_together=together,
                ),
                drain if emptied_by_us else None,
            )
            for emptied_by_us in (False, True)
            for together in (False, True)
        }

    def step(self, world: World, faults: Faults | None = None) -> Key | None:
        """Let the next thing happen in a world, which is changed; return what it was."""
        following = agenda.due(world)
        if following is None:
            return None
        at, key = following
        world.now = max(world.now, at)
        if key[0] in nature.OURS:
            self.run(world, key, faults or {})
        elif key[0] == "drain" and world.gated:
            drainers.handler_asks(self, world, key, faults or {})
        elif not roots.happen(world, key):
            nature.happen(world, key)
        return key

    def run(self, world: World, key: Key, faults: Faults) -> None:
        """Run one of our functions on what the agenda names."""
        if key[0] == "sweep":
            world.agenda[key] = world.now + SWEEP
            self.invoke(world, "sweep", faults, self.broom.sweep)
            return
        if key[0] == "asks":
            drainers.asks(self, world, key, faults)
            return
        number = key[1]
        message = world.messages[number]
        if message.queue == "webhook":
            # The termination handler waits for no answer and never repeats.
            agenda.delete(world, number)
            if not world.is_down("functions"):
                request = posted(message.body)
                self.invoke(world, "webhook", faults, lambda now: self.door.answer(request, now))
            return
        most = TICK_RECEIVES if message.queue == "ticks" else EVENT_RECEIVES
        if message.receives >= most:
            agenda.delete(world, number)
            world.wasted += 1
            # The dead letters have an alarm of their own.
            rules.called(world, message.body)
            return
        world.messages[number] = replace(message, receives=message.receives + 1)
        world.agenda[key] = world.now + FUNCTION_VISIBILITY
        loop = self.loops[world.emptied_by_us, world.together]
        take = loop.turn if message.queue == "ticks" else self.desk.take
        if self.invoke(world, message.queue, faults, lambda now: take(message.body, now)):
            agenda.delete(self.world, number)

    def invoke(
        self, world: World, function: str, faults: Faults, call: Callable[[float], object]
    ) -> bool:
        """Run a function to its end; False when its message is not deleted."""
        outer_world, outer = self.world, self.invocation
        self.world, self.turns = world, self.turns + 1
        began, world.skew = world.now + world.skew, 0.0
        self.invocation = mine = Invocation(
            function, began, faults=dict(faults), skew=began - world.now
        )
        mine.trace = self._trace
        try:
            call(began)
            done = True
        except (Died, StillwaterError, ClientError):
            done = False
        finally:
            self.invocation = outer
            if outer_world is not world:
                self.world = world
        return done

    _trace: list[tuple[str, bool]] | None = None

    @contextmanager
    def traced(self) -> Iterator[list[tuple[str, bool]]]:
        """Collect the names of the calls of the next step, and whether each has an effect."""
        self._trace = []
        try:
            yield self._trace
        finally:
            self._trace = None

    def call(self, service: str, name: str, thunk: Callable[[], Any], *, effect: bool) -> Any:
        """Answer one call of the running function, or let it fail as was planned."""
        mine = self.invocation
        number, mine.calls = mine.calls, mine.calls + 1
        if mine.trace is not None:
            mine.trace.append((name, effect))
        fault = mine.faults.get(number) if mine.faults else None
        if fault is None:
            if self.world.down and self.world.is_down(service):
                raise failure(service, name)
            return self._noted(mine, name, thunk())
        kind, _, seconds = fault.partition(":")
        if kind == "race":
            return lost_race(name)
        if kind == "error":
            raise failure(service, name)
        if kind == "pause":
            # Between a check and the one call it guards lies no more than a function may run.
            self._pause(mine, min(float(seconds), 60.0) if name == "nth.send" else float(seconds))
        if kind == "stale":
            return self._noted(mine, name, self._stale(thunk))
        answer = self._noted(mine, name, thunk())
        if kind == "late_error":
            raise failure(service, name)
        if kind == "death":
            raise Died
        return answer

    def _noted(self, mine: Invocation, name: str, answer: Any) -> Any:
        if name == "ledger.put":
            mine.versions[answer.id] = answer.version
        return answer

    def _pause(self, mine: Invocation, seconds: float) -> None:
        """Stand still in the middle of a function while everything else goes on."""
        world, trace, self._trace = self.world, self._trace, None
        until = world.now + seconds
        while (following := agenda.due(world)) is not None and following[0] <= until:
            self.step(world)
        world.now = max(world.now, until)
        self.world, self.invocation, self._trace = world, mine, trace

    def _stale(self, thunk: Callable[[], Any]) -> Any:
        """Answer with the last thing that was different, if that is not too long ago."""
        world, fresh = self.world, thunk()
        try:
            for earlier in reversed(world.past):
                if world.now - earlier.now > STALE_SECONDS:
                    break
                self.world = earlier
                if (answer := thunk()) != fresh:
                    return answer
        finally:
            self.world = world
        return thunk()


def remember(world: World) -> World:
    """Return a copy of a world that knows the moments before it."""
    following = world.copy()
    moment = world.copy()
    moment.past = ()
    following.past = (*world.past[-(REMEMBERED - 1) :], moment)
    return following


class _Recorder:
    """Stands for the loggers of the functions: a story is told from their lines."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def info(self, reason: str, /, **_: Any) -> None:
        if self._stage.decided is not None:
            self._stage.decided(reason)

    def warning(self, reason: str, *, error: str = "", **_: Any) -> None:
        if self._stage.decided is not None:
            self._stage.decided(f"{reason} {error}".strip())

    error = critical = info

    @contextmanager
    def append_context_keys(self, **_: Any) -> Iterator[None]:
        yield


@contextmanager
def explored() -> Iterator[Stage]:
    """Wire the functions, and hear their pages instead of writing log lines and metrics."""
    stage = Stage()
    recorder = _Recorder(stage)
    modules = [
        module
        for name, module in sys.modules.items()
        if name.startswith("handlers.") and hasattr(module, "logger")
    ]
    before = [(module, module.logger) for module in modules]
    copying = [
        module
        for name, module in sys.modules.items()
        if name.startswith(("core.", "handlers.", "tests.explorer."))
        and getattr(module, "replace", None) is replace
    ]
    counted = metrics.count
    for module in modules:
        module.logger = recorder  # type: ignore[attr-defined]
    for module in copying:
        module.replace = swift_replace  # type: ignore[attr-defined]
    metrics.count = lambda *_: None
    try:
        yield stage
    finally:
        metrics.count = counted
        for module in copying:
            module.replace = dataclasses.replace  # type: ignore[attr-defined]
        for module, logger in before:
            module.logger = logger  # type: ignore[attr-defined]
