"""Faults of machines: several at once, warnings of two minutes, ends without any warning."""

import json
from datetime import UTC, datetime

from core.incidents.record import State
from local.aws.instances import MARKET_TAG
from tests.integration.faults.messages import check_rotated
from tests.integration.faults.outages import held
from tests.integration.faults.table import case
from tests.integration.faults.world import World
from tests.unit.handlers.announced import ec2_event


def spot_warning(world: World, instance_id: str) -> str:
    """Return EC2's warning, made now, for an instance that says it is spot."""
    world.cloud.ec2.create_tags(
        Resources=[instance_id], Tags=[{"Key": MARKET_TAG, "Value": "spot"}]
    )
    kind = "EC2 Spot Instance Interruption Warning"
    event = json.loads(ec2_event(kind, instance_id, **{"instance-action": "terminate"}))
    return json.dumps(event | {"time": datetime.fromtimestamp(world.now, UTC).isoformat()})


@case(
    "Two brokers' nodes in two zones are terminated in the same second",
    "Both replacements come at once; one lease, so the second drains after the first is back",
    "Both released, never more than one broker out",
)
def two_at_once(world: World) -> None:
    pair = world.terminate(10, 20)
    world.finish()
    assert [world.state(i) for i in pair] == [State.RELEASED] * 2
    assert sorted(world.witness.forwarded) == sorted(pair)


@case(
    "Every broker's node is terminated in the same second, announced twice and in any order",
    "The same: the lease goes round",
    "All released, never more than one broker out",
)
def all_at_once(world: World) -> None:
    world.events.post = lambda _: [10.0, 0.0]
    everyone = world.terminate(30, 10, 20)
    world.finish()
    assert [world.state(i) for i in everyone] == [State.RELEASED] * 3
    assert sorted(world.witness.forwarded) == sorted(everyone)


@case(
    "A two-minute spot warning arrives for a node that waits for its turn",
    "The warning governs: the drain starts at once, whatever Kafka or the lease say",
    "Released before EC2 takes it",
)
def spot_warning_in_a_rotation(world: World) -> None:
    with held(world, 10) as instance_id:
        world.announce(spot_warning(world, instance_id))
        warned = world.now
        world.run_until(lambda: 10 in world.machinery.out(), 60)
        assert world.now - warned <= 15
    check_rotated(world, instance_id)


@case(
    "A two-minute spot warning arrives for a second broker while the first is out",
    "It cannot be kept, so it is drained cleanly at once; its group replaces what EC2 has taken",
    "Both brokers back; two out only because EC2 takes the second anyway",
)
def spot_warning_beside_a_rotation(world: World) -> None:
    (first,) = world.terminate(10)
    world.run_until(lambda: 10 in world.machinery.out())
    world.witness.may_be_out = 2
    second = world.instance(20)
    world.announce(spot_warning(world, second))
    world.run_until(lambda: world.machinery.home(20) is None, 60)
    world.run(30)
    world.cloud.ec2.terminate_instances(InstanceIds=[second])
    world.ended(second)
    world.finish()
    assert world.state(first) is State.RELEASED
    assert world.state(second) in {State.RELEASED, State.LOST}


@case(
    "An instance is killed without warning",
    "The sweep sees its Node without a machine, and EC2 confirms the end. The taint frees pod and "
    "volume, and the broker starts on the group's replacement",
    "Lost, the broker back within two minutes of its replacement",
)
def killed_without_warning(world: World) -> None:
    instance_id = world.kill(20)
    world.ended(instance_id)
    world.run_until(lambda: 20 in world.machinery.out())
    world.finish()
    assert world.state(instance_id) is State.LOST
    assert world.witness.forwarded == []


@case(
    "Another broker's instance is killed while one waits for its turn",
    "The rotation is refused, naming the broker that is out, until that one is back",
    "The killed one lost and back, then the other released; never two out",
)
def killed_beside_a_rotation(world: World) -> None:
    with held(world, 10) as leaving:
        killed = world.kill(20)
        world.ended(killed)
        world.run_until(lambda: 20 in world.machinery.out())
    world.run_until(lambda: world.state(killed) is State.LOST)
    assert world.witness.forwarded == []
    check_rotated(world, leaving)


@case(
    "The instance that is to leave is killed while it waits for its turn",
    "The drain is given up for the loss: the pod is freed once EC2 confirms the end",
    "Lost, the broker back on the replacement that was Ready",
)
def killed_in_its_own_rotation(world: World) -> None:
    with held(world, 30) as instance_id:
        world.kill(30)
        world.ended(instance_id)
        world.run(30)
    world.finish()
    assert world.state(instance_id) is State.LOST
    assert world.witness.forwarded == []


@case(
    "An instance is stopped, not terminated, without warning",
    "The group replaces it through its hooks; EC2 confirms it stopped, the taint frees its volume, "
    "the hooks let it go",
    "Lost, the broker back",
)
def stopped_without_warning(world: World) -> None:
    instance_id = world.instance(10)
    world.witness.killed.add(instance_id)
    world.cloud.ec2.stop_instances(InstanceIds=[instance_id])
    world.run_until(lambda: 10 in world.machinery.out())
    world.finish()
    assert world.state(instance_id) is State.LOST


@case(
    "The replacement dies while the broker waits for its turn",
    "Back to replacing: nothing is drained towards a node that is gone",
    "Released on the next replacement",
)
def replacement_dies_before_the_drain(world: World) -> None:
    with held(world, 20) as instance_id:
        spare = world.spare("us-east-1b", instance_id)
        world.cloud.ec2.terminate_instances(InstanceIds=[spare])
        world.ended(spare)
        world.run_until(lambda: world.state(instance_id) is State.REPLACING)
    assert world.witness.forwarded == []
    check_rotated(world, instance_id)


@case(
    "The replacement dies after the drain has begun, before the broker runs on it",
    "The old instance stays behind its gate until another replacement has the broker in sync",
    "Released; the broker is out for as long as the second launch takes",
)
def replacement_dies_after_the_drain(world: World) -> None:
    (instance_id,) = world.terminate(30)
    world.run_until(lambda: 30 in world.machinery.out())
    spare = world.spare("us-east-1c", instance_id)
    world.cloud.ec2.terminate_instances(InstanceIds=[spare])
    world.witness.killed.add(spare)
    world.ended(spare)
    check_rotated(world, instance_id)


@case(
    "A node that Kubernetes never knew is terminated",
    "No pod is there to be moved: its announcement is forwarded, and the gate opens at once",
    "Released",
)
def unknown_to_kubernetes(world: World) -> None:
    group = world.machinery.groups["us-east-1a"]
    world.cloud.autoscaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=2)
    (spare,) = set(world.cloud.members(group)) - {world.instance(10)}
    world.cloud.eventually(lambda: world.cloud.members(group)[spare] == "InService")
    world.cloud.terminate(spare, decrement=True)
    world.finish()
    assert world.state(spare) is State.RELEASED
    assert world.machinery.node(spare) is None
