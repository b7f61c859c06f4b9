"""What happens to a whole cluster without anybody's fault: where every exploration begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.rotation.run_record import NodeTurn, Options, open_run, to_document
from handlers.store.messages import rotation_message
from tests.explorer import agenda, drainers, hands
from tests.explorer.limits import HOLD_LIMIT
from tests.explorer.roots import IMAGE
from tests.explorer.world import CLUSTER, FIRST, START, ZONES, World, three_brokers
from tests.unit.handlers.announced import ec2_event
from tests.unit.handlers.health_events import health_event


@dataclass(frozen=True, slots=True)
class Scenario:
    """A beginning, by name."""

    name: str
    begin: Callable[[World], None]

    def world(self) -> World:
        world = three_brokers()
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


def _lost(world: World) -> None:
    """One machine dies while another leaves."""
    _leaving("i-0b")(world)
    world.agenda["die", "i-0a"] = START + 200


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


def _rotated(world: World, image_id: str | None = None) -> None:
    """A person rotates two nodes, and AWS takes the third."""
    turns = (
        NodeTurn(
            node_id=node_id,
            pod=world.pods[node_id].name,
            role="broker",
            pool="broker",
            zone=ZONES[node_id],
            instance_id=FIRST[node_id],
            why="asked for",
            image_id=image_id,
        )
        for node_id in (10, 20)
    )
    options = Options(deadline_seconds=4 * HOLD_LIMIT, in_place=image_id is not None)
    run = open_run(turns, options, "ann", START)
    world.records[f"rotation#{CLUSTER}"] = (1, to_document(run))
    agenda.send(world, "ticks", rotation_message(1), 5.0)
    world.agenda["leave", "i-0c"] = START + 400


def _rotated_in_place(world: World) -> None:
    """The same, and the two keep their machines."""
    world.in_place = True
    _rotated(world, IMAGE)


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


IN_PLACE = (
    Scenario("a rotation in place and a leaver", _rotated_in_place),
    Scenario("a rotation in place and a leaver that we drain", _emptied_by_us(_rotated_in_place)),
)
ONE = Scenario("one leaver", _leaving("i-0a"))
TWO = Scenario("two leavers", _leaving("i-0a", "i-0b"))
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
    Scenario("a rotation and a leaver that we drain", _emptied_by_us(_rotated)),
)
SCENARIOS = (
    ONE,
    TWO,
    Scenario("three leavers", _leaving("i-0a", "i-0b", "i-0c")),
    Scenario("two leavers without capacity", _without_capacity),
    Scenario("a loss and a leaver", _lost),
    Scenario("a retirement and a leaver", _retired),
    RETIRED,
    Scenario("two leavers of combined roles", _combined(_leaving("i-0a", "i-0b"))),
    Scenario("a spot warning and a leaver", _spot),
    Scenario("a rotation and a leaver", _rotated),
    *BEHIND_THE_GATE,
    *WITHOUT_A_HANDLER,
    *IN_PLACE,
)
