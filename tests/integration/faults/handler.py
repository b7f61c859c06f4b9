"""Faults of the drain itself: NTH that dies, budgets that refuse, groups that launch nothing."""

import json
from dataclasses import replace

from core.ground.naming import DRAIN_HOOK, GATE_HOOK
from core.incidents.joining import ask_release
from core.incidents.record import State
from tests.announcements import load
from tests.integration.faults.messages import check_rotated
from tests.integration.faults.outages import held
from tests.integration.faults.table import case
from tests.integration.faults.world import World


@case(
    "NTH is killed in the middle of a drain and starts again",
    "SQS shows its message again after the visibility timeout, and the drain goes on where the "
    "cluster stands",
    "Released",
)
def handler_killed_in_the_drain(world: World) -> None:
    (instance_id,) = world.terminate(10)
    world.run_until(lambda: 10 in world.machinery.out())
    world.handler.kill()
    world.run(60)
    world.handler.start()
    check_rotated(world, instance_id)


@case(
    "NTH is down for twelve minutes",
    "The broker serves on. The drain is sent again under the same id, three times in all, and then"
    " Stillwater pages a person. NTH finds the messages when it is back",
    "Released, one drain",
)
def handler_down_for_long(world: World) -> None:
    world.handler.kill()
    (instance_id,) = world.terminate(20)
    world.run(720)
    assert world.machinery.out() == []
    incident = world.known(instance_id)
    assert incident.forwarded is not None
    assert (incident.state, incident.forwarded.times) == (State.DRAINING, 3)
    assert "drain_stuck" in incident.pages
    world.handler.start()
    check_rotated(world, instance_id)


@case(
    "NTH is away past the limit of the drain and comes back, with another broker's node to leave",
    "The node is kept, and Stillwater pages a person. No other node goes while NTH may still find "
    "the drain. The queue keeps the drain no longer than the node is held",
    "Retained and never drained, the other released; then released when a person lets it go",
)
def handler_away_past_the_drain_limit(world: World) -> None:
    # Hours would be many steps; the queue's retention stays below the hold, as core.timing has it.
    world.policy = replace(world.policy, hold_limit_seconds=1200.0, drain_life_seconds=600.0)
    world.handler.kill()
    (kept,) = world.terminate(10)
    world.run(900)
    assert world.state(kept) is State.DRAINING
    (other,) = world.terminate(20)
    world.run_until(lambda: world.state(kept) is State.RETAINED)
    assert world.witness.forwarded.count(other) == 0
    world.handler.expire()
    world.handler.start()
    world.run_until(lambda: world.state(other) is State.RELEASED)
    assert world.handler.drained == [other]
    assert "drain_limit" in world.known(kept).pages
    world.ledger.put(ask_release(replace(world.known(kept)), "a person", world.now))
    check_rotated(world, kept, rounds=2)


@case(
    "A disruption budget refuses the eviction for six minutes",
    "The incident names the budget and pages a person, and the hooks are kept",
    "Released once the budget allows it",
)
def eviction_refused(world: World) -> None:
    world.machinery.evictions_allowed = False
    (instance_id,) = world.terminate(30)
    world.run(360)
    incident = world.known(instance_id)
    assert incident.state is State.DRAINING
    assert "budget:orders-kafka" in incident.pages
    assert world.machinery.out() == []
    world.machinery.evictions_allowed = True
    check_rotated(world, instance_id)


@case(
    "The group launches no replacement for ten minutes: no capacity in the zone",
    "The old node is kept and a person called; the group's next launch wakes the incident",
    "Released once the replacement is Ready",
)
def no_capacity(world: World) -> None:
    group = world.machinery.groups["us-east-1a"]
    world.cloud.autoscaling.suspend_processes(
        AutoScalingGroupName=group, ScalingProcesses=["Launch"]
    )
    (instance_id,) = world.terminate(10)
    world.run(30)
    event = load("group-launch-failed")
    event["detail"]["AutoScalingGroupName"] = group
    world.announce(json.dumps(event))
    world.run(600)
    incident = world.known(instance_id)
    assert incident.state is State.REPLACING
    assert "no_capacity" in incident.pages
    assert world.machinery.out() == []
    world.cloud.autoscaling.resume_processes(
        AutoScalingGroupName=group, ScalingProcesses=["Launch"]
    )
    check_rotated(world, instance_id)


@case(
    "A hook is abandoned by hand while the broker waits for its turn",
    "The group retains the instance: the incident ends and pages a person, and the broker serves "
    "on",
    "Retained; released through fresh hooks when a person lets it go",
)
def hook_abandoned(world: World) -> None:
    with held(world, 20) as instance_id:
        world.cloud.complete(
            world.machinery.groups["us-east-1b"], GATE_HOOK, instance_id, "ABANDON"
        )
        world.run_until(lambda: world.state(instance_id) is State.RETAINED)
    assert world.witness.forwarded == []
    assert world.machinery.out() == []
    retained = world.known(instance_id)
    released = world.ledger.put(ask_release(replace(retained), "a person", world.now))
    assert released.open
    check_rotated(world, instance_id, rounds=2)


@case(
    "A person completes both hooks by hand while the broker still serves",
    "The instance ends under the broker, as that person asked; EC2's word frees its volume, and it "
    "starts on the replacement",
    "Lost, the broker back",
)
def hooks_completed_by_hand(world: World) -> None:
    with held(world, 30) as instance_id:
        world.witness.killed.add(instance_id)
        for hook in (DRAIN_HOOK, GATE_HOOK):
            world.cloud.complete(world.machinery.groups["us-east-1c"], hook, instance_id)
        world.ended(instance_id)
        world.run(60)
    world.finish()
    assert world.state(instance_id) is State.LOST
    assert world.witness.forwarded == []
