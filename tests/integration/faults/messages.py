"""Faults of messages: twice, in another order, late, never, or not what they should be."""

import json
from collections.abc import Callable
from itertools import count
from typing import Any

from core.ground.naming import DRAIN_HOOK
from core.incidents.record import State
from tests.integration.faults.points import first_times
from tests.integration.faults.table import case
from tests.integration.faults.taps import Call
from tests.integration.faults.world import World
from tests.unit.handlers.announced import ec2_event


def hook_in(body: str) -> str:
    return str(json.loads(body)["detail"]["LifecycleHookName"])


def check_rotated(world: World, instance_id: str, *, rounds: int = 1) -> None:
    """Check that one incident carried an instance from its announcement to its end."""
    world.finish()
    incident = world.known(instance_id)
    assert incident.state is State.RELEASED, incident.reason
    assert incident.id == (instance_id if rounds == 1 else f"{instance_id}.{rounds}")
    assert world.handler.drained.count(instance_id) == 1


@case(
    "Every announcement arrives four times, the last ten minutes after the first",
    "The second joins the incident by its dedupe key; the last is an echo of one that is over",
    "Released once, one drain",
)
def announcements_duplicated(world: World) -> None:
    world.events.post = lambda _: [0.0, 0.0, 30.0, 600.0]
    (instance_id,) = world.terminate(10)
    check_rotated(world, instance_id)
    assert world.witness.forwarded == [instance_id]


@case(
    "The gate's announcement overtakes the drain's by two minutes",
    "The incident opens on the gate's; the drain's joins before or after the drain is sent",
    "Released once, one drain",
)
def announcements_reordered(world: World) -> None:
    world.events.post = lambda body: [120.0 if hook_in(body) == DRAIN_HOOK else 0.0]
    (instance_id,) = world.terminate(20)
    check_rotated(world, instance_id)
    assert world.witness.forwarded == [instance_id]


@case(
    "Both announcements are five minutes late",
    "The sweep finds the instance in its hooks within a minute; what arrives later joins",
    "Released before the announcements arrive",
)
def announcements_late(world: World) -> None:
    world.events.post = lambda _: [300.0]
    since = world.now
    (instance_id,) = world.terminate(30)
    check_rotated(world, instance_id)
    incident = world.known(instance_id)
    assert incident.transitions[0].actor == "sweep"
    assert incident.transitions[-1].at < since + 300


@case(
    "Both announcements are lost",
    "The sweep opens the incident; NTH is sent a message in place of the lost one, and the "
    "incident's end completes both hooks",
    "Released, within a minute more than otherwise",
)
def announcements_lost(world: World) -> None:
    world.events.post = lambda _: []
    (instance_id,) = world.terminate(10)
    check_rotated(world, instance_id)
    assert world.events.lost
    assert world.witness.hooks[instance_id, DRAIN_HOOK] == ["CONTINUE"]


@case(
    "The drain's announcement alone is lost",
    "One announcement stands for both hooks: both are kept waiting, and completed at the end",
    "Released",
)
def drain_announcement_lost(world: World) -> None:
    world.events.post = lambda body: [] if hook_in(body) == DRAIN_HOOK else [0.0]
    (instance_id,) = world.terminate(20)
    check_rotated(world, instance_id)
    assert world.witness.hooks[instance_id, DRAIN_HOOK] == ["CONTINUE"]


# A rotation without a fault sends fifteen.
MOST_TICKS = 20
MALFORMED = (
    "}{ not JSON",
    "[]",
    "null",
    '{"detail": null, "source": 7, "detail-type": []}',
    '{"source": "aws.autoscaling", "detail-type": "EC2 Instance-terminate Lifecycle Action"}',
    '{"source": "aws.autoscaling", "detail": {"EC2InstanceId": "../../etc"}}',
    '{"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning", "detail": {}}',
)


@case(
    "Unintelligible messages arrive among the announcements and the ticks",
    "On the events queue each is recorded with its body and its reason. A tick that cannot be read "
    "fails alone, and SQS moves it to the dead letters after five receives",
    "Released; nothing poisons the rest",
)
def messages_malformed(world: World) -> None:
    for body in MALFORMED:
        world.announce(body)
    bad_tick = "{no tick"
    world.ticks.send(bad_tick)
    (instance_id,) = world.terminate(30)
    check_rotated(world, instance_id)
    assert world.ticks.dead() == [bad_tick]
    assert world.events.dead() == []


@case(
    "Warnings about instances that EC2 does not know, or that are another cluster's",
    "Recorded as ignored, with the reason",
    "No incident",
)
def announcements_foreign(world: World) -> None:
    image = world.cloud.ec2.describe_images()["Images"][0]["ImageId"]
    made = world.cloud.ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1)
    foreign = str(made["Instances"][0]["InstanceId"])
    world.cloud.later(world.cloud.ec2.terminate_instances, InstanceIds=[foreign])
    for instance_id in (foreign, "i-0123456789abcdef0"):
        warning = {"instance-action": "terminate"}
        world.announce(ec2_event("EC2 Spot Instance Interruption Warning", instance_id, **warning))
    world.finish()
    assert world.incident(foreign) is None
    assert world.incident("i-0123456789abcdef0") is None
    assert world.witness.forwarded == []


@case(
    "Every third tick is lost",
    "The sweep finds an incident that no tick carries, 45 s after its tick was due, and wakes it",
    "Released, later",
)
def ticks_lost(world: World) -> None:
    world.ticks.post = every(3, [])
    (instance_id,) = world.terminate(10)
    check_rotated(world, instance_id)
    assert world.ticks.lost


@case(
    "SQS delivers every tick twice at once, and again a minute later",
    "A tick names the version it was sent for: one delivery claims it, the others end there",
    "Released, one drain",
)
def ticks_redelivered(world: World) -> None:
    world.ticks.post = lambda _: [0.0, 0.0, 60.0]
    (instance_id,) = world.terminate(20)
    check_rotated(world, instance_id)
    assert world.witness.forwarded == [instance_id]
    # Each delivery that took a turn would send a tick of its own, and that one two more.
    sent = [call for call in world.taps.effects if call.name == "ticks.send"]
    assert len(sent) <= MOST_TICKS


@case(
    "Another invocation writes the incident just before a function does, in each state",
    "DynamoDB's condition refuses the write: λ interruption reads again and joins, λ tick gives "
    "way or records over what has joined",
    "Released, one drain",
)
def writes_conflict(world: World) -> None:
    first, met = first_times(), set[int]()

    def overtake(call: Call) -> None:
        # Once per invocation: what it tries again is met again.
        if not first(call) or call.name != "ledger.put" or call.invocation in met:
            return
        current = world.ledger.get(call.arguments[0].id)
        if current is not None:
            met.add(call.invocation)
            world.ledger.put(current)

    world.taps.before.append(overtake)
    (instance_id,) = world.terminate(30)
    check_rotated(world, instance_id)
    assert world.witness.forwarded == [instance_id]


def every(nth: int, fate: list[float]) -> Callable[[Any], list[float]]:
    """Return a post to which something happens with every n-th message."""
    number = count(1)
    return lambda _: fate if next(number) % nth == 0 else [0.0]
