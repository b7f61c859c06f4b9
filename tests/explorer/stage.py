"""The shipped functions wired to an explored world, and one step of either.

`step` lets the next thing of the agenda happen. Where that is a message for one of our functions,
the function runs as it is deployed below its entry point (Desk.take, Loop.turn, Broom.sweep), and
the faults that were planned for this step meet it at its calls, by their number.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from core.ground.errors import StillwaterError
from handlers.adapters import metrics
from handlers.eviction.gate import Gate
from tests.explorer import (
    agenda,
    drainers,
    handler,
    karpenter,
    nature,
    operator,
    outages,
    refills,
    roots,
    rules,
)
from tests.explorer.answers import failure, lost_race, posted
from tests.explorer.limits import EVENT_RECEIVES, FUNCTION_VISIBILITY, SWEEP, TICK_RECEIVES
from tests.explorer.rules import Invocation
from tests.explorer.swift import swiftly
from tests.explorer.wiring import Way, functions
from tests.explorer.world import Key, World

Faults = Mapping[int, str]  # number of the call -> what goes wrong there
# A list or a description may be this far behind what was written.
STALE_SECONDS = 300.0
REMEMBERED = 5
# What AWS and Kubernetes may answer from a copy; DynamoDB's reads of items are consistent.
LATE_READS = frozenset(
    {
        *("cloud.instance", "cloud.group", "cloud.groups_of", "cloud.volumes_on"),
        *("cloud.instance_states", "nodes.nodes", "nodes.kafka_pods", "nodes.attachments"),
        "nodes.operator",
        *("kafka.read", "ledger.open_incidents", "claims.claims"),
    }
)
# Writes that are refused when somebody else was faster.
RACED = frozenset(
    {
        *("ledger.put", "ledger.take_lease", "ledger.begin_drain", "ledger.drop_lease"),
        "records.write",
    }
)
# Between a check and the one call it guards lies no more than a function may run.
GUARDED = frozenset({"nth.send", "cloud.set_desired", "kafka.reorder"})
# Instead of a call's number: every kind of write loses its race once.
EVERY_WRITE = -1


_HAPPENING = (roots, outages, handler, karpenter, operator)


class Died(BaseException):
    """The function ends here, without another word."""


class Stage:
    """Everything that is wired once; the world it shows is exchanged at every step."""

    def __init__(self) -> None:
        self.world = World()
        self.invocation = Invocation("nobody", 0.0)
        self.turns = 0
        self.decided: Callable[[str], None] | None = None
        ours = functions(self, lambda: self.world.now + self.invocation.skew)
        self.desk, self.door, self._brooms = ours.desk, ours.door, ours.brooms
        self.loops, self._gates = ours.loops, ours.gates

    @property
    def gate(self) -> Gate:
        """Return the gate of the world that is shown."""
        return self._gates[Way.of(self.world).gate]

    def step(self, world: World, faults: Faults | None = None) -> Key | None:
        """Let the next thing happen in a world, which is changed; return what it was."""
        following = agenda.due(world)
        if following is None:
            return None
        at, key = following
        world.now = max(world.now, at)
        if nature.withheld(world, key):
            return key
        if key[0] in nature.OURS:
            self.run(world, key, faults or {})
        elif key[0] == "drain" and world.gated:
            drainers.handler_asks(self, world, key, faults or {})
        elif not any(each.happen(world, key) for each in _HAPPENING):
            nature.happen(world, key)
            refills.follow(world, key)
            outages.autoscaled(world, key)
        karpenter.follow(world, key)
        return key

    def run(self, world: World, key: Key, faults: Faults) -> None:
        """Run one of our functions on what the agenda names."""
        if key[0] == "sweep":
            world.agenda[key] = world.now + SWEEP
            self.invoke(world, "sweep", faults, self._brooms[world.karpenter].sweep)
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
            # The dead letters have an alarm of their own.
            rules.called(world, message.body)
            return
        world.messages[number] = replace(message, receives=message.receives + 1)
        world.agenda[key] = world.now + FUNCTION_VISIBILITY
        loop = self.loops[Way.of(world)]
        take = loop.turn if message.queue == "ticks" else self.desk.take
        if self.invoke(world, message.queue, faults, lambda now: take(message.body, now)):
            agenda.delete(self.world, number)

    def invoke(
        self, world: World, function: str, faults: Faults, call: Callable[[float], object]
    ) -> bool:
        """Run a function to its end; False when its message is not deleted."""
        outer_world, outer = self.world, self.invocation
        self.world, self.turns = world, self.turns + 1
        began, world.skew = world.now + world.skew + world.clocks.get(function, 0.0), 0.0
        self.invocation = mine = Invocation(
            function, began, faults=dict(faults), skew=began - world.now, again=call
        )
        world.function, mine.trace = function, self._trace
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
        planned = mine.faults or self.world.armed
        fault = self._fault(mine, number, name) if planned else None
        if fault is not None:
            return self._failing(mine, service, name, thunk, fault)
        if self.world.down and (self.world.is_down(service) or self.world.is_down(name)):
            raise failure(service, name)
        return self._noted(mine, name, thunk())

    def _failing(
        self, mine: Invocation, service: str, name: str, thunk: Callable[[], Any], fault: str
    ) -> Any:
        """Answer a call at which something goes wrong: before it, with it, or after."""
        kind, _, seconds = fault.partition(":")
        if kind == "race":
            return lost_race(name)
        if kind == "error":
            raise failure(service, name)
        if kind == "stale" and name in LATE_READS:
            return self._noted(mine, name, self._stale(thunk))
        if kind == "twin":
            self._twin(mine)
        if kind == "pause":
            self._pause(mine, min(float(seconds), 60.0) if name in GUARDED else float(seconds))
        answer = self._noted(mine, name, thunk())
        if kind == "late_error":
            raise failure(service, name)
        if kind == "late_race" and name in RACED:
            return lost_race(name)  # The client asked twice, and was refused by its own write.
        if kind == "death":
            raise Died
        return answer

    def _fault(self, mine: Invocation, number: int, name: str) -> str | None:
        """Return what goes wrong at a call; a kind of write loses every race only once."""
        if EVERY_WRITE in mine.faults and name in RACED and name not in mine.raced:
            mine.raced.add(name)
            return mine.faults[EVERY_WRITE]
        armed = self.world.armed.get(name)
        if armed is not None:
            self.world.armed = {k: v for k, v in self.world.armed.items() if k != name}
        return armed or mine.faults.get(number)

    def _twin(self, mine: Invocation) -> None:
        """Let the same message be taken by another invocation, from its beginning to its end."""
        if mine.again is None or mine.function not in nature.OURS:
            return
        trace, self._trace = self._trace, None
        self.invoke(self.world, mine.function, {}, mine.again)
        self.world.function, self._trace = mine.function, trace

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
    """Return a copy of a world that knows the moments before it; nobody changes that world now."""
    following = world.copy()
    following.past = (*world.past[-(REMEMBERED - 1) :], world.moment())
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
    counted = metrics.count
    for module in modules:
        module.logger = recorder  # type: ignore[attr-defined]
    metrics.count = lambda *_: None
    try:
        with swiftly():
            yield stage
    finally:
        metrics.count = counted
        for module, logger in before:
            module.logger = logger  # type: ignore[attr-defined]
