"""What happens to a whole cluster without anybody's fault: where every exploration begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from core.events import Interruption, parse
from core.incidents.actions import Level
from core.incidents.joining import merge, open_incident
from core.rotation.run_record import NodeTurn, Options, open_run, run_to_document
from handlers.store.ledger import rotation_message
from tests.explorer import agenda, drainers, hands, karpenter, nature, refills
from tests.explorer.limits import HOLD_LIMIT, HOOK_LIMIT
from tests.explorer.partitions import CROSSED, THIN
from tests.explorer.roots import IMAGE
from tests.explorer.world import (
    CLUSTER,
    CONTROLLERS,
    FIRST,
    SECOND,
    START,
    ZONES,
    World,
    controllers_apart,
    pool_of,
    six_brokers,
    three_brokers,
)
from tests.unit.handlers.announced import ec2_event, health_event


@dataclass(frozen=True, slots=True)
class Scenario:
    """A beginning, by name."""

    name: str
    begin: Callable[[World], None]
    whole: Callable[[], World] = three_brokers

    def world(self) -> World:
        world = self.whole()
        world.agenda["sweep",] = START + 30
        self.begin(world)
        return world


def _leaving(*ids: str) -> Callable[[World], None]:
    def begin(world: World) -> None:
        for place, instance_id in enumerate(ids):
            world.agenda["leave", instance_id] = START + 10 + 30 * place

    return begin


def _without_capacity(world: World) -> None:
    _leaving("i-0a", "i-0b")(world)
    world.down["capacity"] = START + 2 * HOLD_LIMIT


def _leaving_beside_a_loss(leaves: str, dies: str) -> Callable[[World], None]:
    """One machine dies while another leaves."""

    def begin(world: World) -> None:
        _leaving(leaves)(world)
        world.agenda["die", dies] = START + 200

    return begin


def _retired(world: World) -> None:
    """AWS announces the end of one machine weeks ahead, and another leaves."""
    body = health_event(said_at=START, due=START + 7 * 86_400)
    agenda.send(world, "events", body, 10.0)
    world.agenda["leave", "i-0b"] = START + 60


def _retired_and_rebooted(world: World) -> None:
    """AWS announces a reboot of the machine that it retires; the reboot comes first."""
    for code, days in hands.AHEAD.items():
        hands.scheduled(world, code, days)
    world.agenda["leave", "i-0b"] = START + 60


def _combined(begin: Callable[[World], None]) -> Callable[[World], None]:
    """Every broker is a controller as well: two of three are the quorum."""

    def begins(world: World) -> None:
        begin(world)
        world.combined = True

    return begins


def _spot(world: World) -> None:
    """EC2 takes one machine within two minutes while another leaves in order."""
    _leaving("i-0b")(world)
    detail = {"instance-action": "terminate"}
    body = ec2_event("EC2 Spot Instance Interruption Warning", "i-0a", **detail)
    agenda.send(world, "events", body, 200.0)
    world.agenda["leave", "i-0a"] = START + 320


@dataclass(frozen=True, slots=True)
class _Rotated:
    """A person rotates nodes, and AWS takes another."""

    nodes: tuple[int, ...] = (10, 20)
    in_place: bool = False
    at_once: int | None = 1
    together: bool = False
    deadline_seconds: float = 4 * HOLD_LIMIT

    def __call__(self, world: World) -> None:
        world.in_place, world.together = self.in_place, self.together
        turns = (
            NodeTurn(
                node_id=node_id,
                pod=world.pods[node_id].name,
                role=pool_of(node_id),
                pool=pool_of(node_id),
                zone=ZONES[node_id],
                instance_id={**FIRST, **SECOND, **CONTROLLERS}[node_id],
                why="asked for",
                image_id=IMAGE if self.in_place else None,
            )
            for node_id in self.nodes
        )
        options = Options(
            deadline_seconds=self.deadline_seconds, in_place=self.in_place, at_once=self.at_once
        )
        run = open_run(turns, options, "ann", START)
        world.records[f"rotation#{CLUSTER}"] = (1, run_to_document(run))
        agenda.send(world, "ticks", rotation_message(1), 5.0)
        world.agenda["leave", "i-0c"] = START + 400


def _parties(**told: Any) -> _Rotated:
    nodes = told.pop("nodes", (10, 11, 20, 21))
    return _Rotated(nodes=nodes, deadline_seconds=HOLD_LIMIT, **{"at_once": None, **told})


def _drained(*whose: tuple[str, str]) -> Callable[[World], None]:
    """Drainers of others empty nodes one after another, and the gate answers them."""

    def begin(world: World) -> None:
        world.gated = True
        for place, (instance_id, who) in enumerate(whose):
            until = round(START + drainers.PATIENCE)
            world.agenda["asks", instance_id, who, until] = START + 10 + 30 * place

    return begin


def _gated_leavers(world: World) -> None:
    """What the termination handler evicts is asked for, too."""
    _leaving("i-0a", "i-0b")(world)
    world.gated = True


def _drained_beside_a_leaver(world: World) -> None:
    _drained(("i-0a", drainers.UPDATE))(world)
    world.agenda["leave", "i-0b"] = START + 20


def _emptied_by_us(begin: Callable[[World], None]) -> Callable[[World], None]:
    """Nobody drains for us, so we do."""

    def begins(world: World) -> None:
        begin(world)
        world.emptied_by_us = True

    return begins


def _heard_by_the_handler(begin: Callable[[World], None]) -> Callable[[World], None]:
    """The termination handler hears AWS itself: the plain wiring, without the hold."""

    def begins(world: World) -> None:
        world.direct = True
        begin(world)

    return begins


def _of_others(level: Level, begin: Callable[[World], None]) -> Callable[[World], None]:
    """Groups, hooks and the termination handler are theirs: we answer evictions, or only watch."""

    def begins(world: World) -> None:
        world.level, world.direct = level, True
        begin(world)
        world.gated = level == "gate"

    return begins


def _on_local_disks(begin: Callable[[World], None]) -> Callable[[World], None]:
    """A broker on another node has lost what it held."""

    def begins(world: World) -> None:
        begin(world)
        refills.on_local_disks(world)

    return begins


def _held_for_a_day(world: World) -> None:
    """A pause has held an instance until near the end that AWS sets its hooks."""
    held, left = HOOK_LIMIT - 2 * 3600, 2 * 3600.0
    nature.terminate(world, "i-0a")
    for message in [m for m in world.messages.values() if m.queue == "events"]:
        for found in parse(message.body):
            if isinstance(found, Interruption):
                _joined(world, replace(found, occurred_at=START - held), START - held)
    for at in list(world.messages):
        agenda.delete(world, at)
    for key, hook in world.hooks.items():
        world.hooks[key] = replace(hook, until=START + left)
    hands.paused_until(world, START + 3600)
    world.agenda["leave", "i-0b"] = START + 300


def _joined(world: World, found: Interruption, at: float) -> None:
    known = world.incidents.get(found.instance_id)
    joined = open_incident(found, at) if known is None else merge(known, found, at)
    world.incidents[joined.id] = replace(
        joined, kept_at=START, heartbeat_at=START, version=joined.version + 1
    )


def _leaving_and_lost(world: World) -> None:
    """Both machines of a zone leave, and one of another dies meanwhile."""
    _leaving("i-0a", "i-1a")(world)
    world.agenda["die", "i-0b"] = START + 90


def _refreshed(world: World) -> None:
    """Somebody begins an instance refresh of every group at once."""
    for place, instance_id in enumerate(FIRST.values()):
        world.agenda["leave", instance_id] = START + 10 + place


IN_PLACE = (
    Scenario("a rotation in place and a leaver", _Rotated(in_place=True)),
    Scenario(
        "a rotation in place and a leaver that we drain", _emptied_by_us(_Rotated(in_place=True))
    ),
)
ONE = Scenario("one leaver", _leaving("i-0a"))
_LEAVERS = _leaving("i-0a", "i-0b")
TWO = Scenario("two leavers", _LEAVERS)
RETIRED = Scenario("a retirement, a reboot and a leaver", _retired_and_rebooted)
BEHIND_THE_GATE = (
    Scenario(
        "three drainers",
        _drained(
            ("i-0a", drainers.KUBECTL), ("i-0b", drainers.UPDATE), ("i-0c", drainers.AUTOSCALER)
        ),
    ),
    Scenario("a drainer and a leaver", _drained_beside_a_leaver),
    Scenario("two leavers behind the gate", _gated_leavers),
)
WITHOUT_A_HANDLER = (
    Scenario("two leavers that we drain", _emptied_by_us(_leaving("i-0a", "i-0b"))),
    Scenario("a spot warning and a leaver that we drain", _emptied_by_us(_spot)),
    Scenario("a rotation and a leaver that we drain", _emptied_by_us(_Rotated())),
)
PARTIES = (
    Scenario("one by one of six, machines ahead", _parties(at_once=1), six_brokers),
    Scenario("a zone at a time", _parties(), six_brokers),
    Scenario("a zone that stops together", _parties(together=True), six_brokers),
    Scenario("a zone that we drain", _emptied_by_us(_parties(together=True)), six_brokers),
    Scenario("a zone in place", _parties(in_place=True, together=True), six_brokers),
    Scenario(
        "a zone whose brokers share a partition",
        _parties(together=True),
        partial(six_brokers, CROSSED),
    ),
)
DIRECT = (
    Scenario("two leavers that the handler hears of", _heard_by_the_handler(_LEAVERS)),
    Scenario("a spot warning that the handler hears", _heard_by_the_handler(_spot)),
    Scenario("a retirement that the handler hears", _heard_by_the_handler(_retired)),
    Scenario("a rotation that the handler hears of", _heard_by_the_handler(_Rotated())),
)
THEIRS = (
    Scenario("two leavers, and we are only asked", _of_others("gate", _LEAVERS)),
    Scenario(
        "three drainers, and we are only asked",
        _of_others(
            "gate",
            _drained(
                ("i-0a", drainers.KUBECTL), ("i-0b", drainers.UPDATE), ("i-0c", drainers.AUTOSCALER)
            ),
        ),
    ),
    Scenario("a spot warning, and we are only asked", _of_others("gate", _spot)),
    Scenario("two leavers, and we only watch", _of_others("watch", _LEAVERS)),
)
REFILLED = (
    Scenario("a rotation of local disks and a leaver", _on_local_disks(_Rotated())),
    Scenario("a zone of local disks", _on_local_disks(_parties(together=True)), six_brokers),
)
LONG_HELD = Scenario("hooks near their end and a leaver", _held_for_a_day)
REFRESHED = Scenario("an instance refresh of all groups", _refreshed)
ONE_ZONE = Scenario("two leavers of one zone, and a loss", _leaving_and_lost, six_brokers)
THIN_TOPICS = Scenario(
    "three leavers and topics of too few replicas",
    _leaving("i-0a", "i-0b", "i-0c"),
    partial(three_brokers, THIN),
)
APART = (
    Scenario("two controllers leave", _leaving("i-q0a", "i-q0b"), controllers_apart),
    Scenario(
        "a controller and two brokers leave", _leaving("i-q0a", "i-0b", "i-0c"), controllers_apart
    ),
    Scenario(
        "a controller is lost while another leaves",
        _leaving_beside_a_loss("i-q0b", "i-q0a"),
        controllers_apart,
    ),
    Scenario(
        "a rotation of brokers and controllers", _Rotated(nodes=(0, 1, 10, 20)), controllers_apart
    ),
    Scenario(
        "two leavers of two roles that we drain",
        _emptied_by_us(_leaving("i-q0a", "i-0a")),
        controllers_apart,
    ),
)
KARPENTERS = (
    Scenario(
        "two claims expire behind the gate", karpenter.scenario(karpenter.ending("i-0a", "i-0b"))
    ),
    Scenario(
        "a drift and an expiry behind the gate",
        karpenter.scenario(karpenter.ending("i-0b", drifts="i-0a")),
    ),
    Scenario(
        "two claims expire, and nobody is asked",
        karpenter.scenario(karpenter.ending("i-0a", "i-0b"), gated=False),
    ),
    Scenario(
        "a claim expires while a machine dies",
        karpenter.scenario(karpenter.ending("i-0b", dies="i-0a")),
    ),
    Scenario("a rotation of Karpenter's nodes", karpenter.scenario(_Rotated())),
)
ELSEWHERE = (
    *DIRECT,
    *THEIRS,
    *REFILLED,
    LONG_HELD,
    REFRESHED,
    ONE_ZONE,
    THIN_TOPICS,
    *APART,
    *KARPENTERS,
)
SCENARIOS = (
    ONE,
    TWO,
    Scenario("three leavers", _leaving("i-0a", "i-0b", "i-0c")),
    Scenario("two leavers without capacity", _without_capacity),
    Scenario("a loss and a leaver", _leaving_beside_a_loss("i-0b", "i-0a")),
    Scenario("a retirement and a leaver", _retired),
    RETIRED,
    Scenario("two leavers of combined roles", _combined(_leaving("i-0a", "i-0b"))),
    Scenario("a spot warning and a leaver", _spot),
    Scenario("a rotation and a leaver", _Rotated()),
    *BEHIND_THE_GATE,
    *WITHOUT_A_HANDLER,
    *IN_PLACE,
    *PARTIES,
    *ELSEWHERE,
)
