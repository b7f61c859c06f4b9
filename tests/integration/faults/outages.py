"""Faults of what the functions call: AWS, Kubernetes, Kafka, the node termination handler."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from core.ground.errors import StillwaterError
from core.ground.naming import GATE_HOOK
from core.incidents.record import State
from tests.integration.faults.messages import check_rotated
from tests.integration.faults.table import case
from tests.integration.faults.taps import AWS, Call, throttling_error, timeout_error
from tests.integration.faults.wiring import LEASE_SECONDS
from tests.integration.faults.world import DRAINS, World


def refusal(call: Call) -> Exception:
    """Return what an adapter raises when what it asks does not answer."""
    if call.adapter in AWS:
        return throttling_error(call)
    return StillwaterError(f"{call.adapter} did not answer.")


@contextmanager
def refusing(world: World, which: Callable[[Call], bool]) -> Iterator[None]:
    """Have calls fail for the block."""

    def refuse(call: Call) -> None:
        if which(call):
            raise refusal(call)

    world.taps.before.append(refuse)
    yield
    world.taps.before.remove(refuse)


def once_each() -> Callable[[Call], bool]:
    """Return a question answered yes for the first call of each function to each method."""
    seen = set[tuple[str, str]]()

    def new(call: Call) -> bool:
        known = (call.function, call.name) in seen
        seen.add((call.function, call.name))
        return not known

    return new


@case(
    "The first call of each function to each API it uses is refused: throttling, or no answer",
    "The incident names a reading that fails, and repeats it. An action that fails is not "
    "recorded, so it is decided again. SQS delivers a message again whose ledger failed",
    "Released, one drain",
)
def every_call_refused_once(world: World) -> None:
    with refusing(world, once_each()):
        (instance_id,) = world.terminate(10)
        check_rotated(world, instance_id)


@case(
    "The first effect of each kind takes place and its answer is lost",
    "It is decided again and done again: hooks, lease, desired capacity and drain are idempotent",
    "Released, one drain",
)
def every_answer_lost_once(world: World) -> None:
    new = once_each()

    def lose(call: Call, _: Any) -> None:
        if call.effect and new(call):
            raise timeout_error(call)

    world.taps.after.append(lose)
    (instance_id,) = world.terminate(20)
    check_rotated(world, instance_id)


def refuse_in(world: World, state: State, adapters: set[str], node_id: int) -> str:
    """Refuse adapters for five minutes once an incident is in a state; nothing may get worse."""
    (instance_id,) = world.terminate(node_id)
    world.run_until(lambda: world.state(instance_id) is state)
    world.machinery.api_answers = "nodes" not in adapters
    with refusing(world, lambda call: call.adapter in adapters):
        world.run(300)
    world.machinery.api_answers = True
    return instance_id


@contextmanager
def held(world: World, node_id: int) -> Iterator[str]:
    """Have a broker's node wait for its turn: while the block lasts, Kafka answers nobody."""
    with refusing(world, lambda call: call.adapter == "kafka"):
        (instance_id,) = world.terminate(node_id)
        world.run_until(lambda: world.state(instance_id) is State.HOLDING)
        yield instance_id


@case(
    "EC2 and Auto Scaling throttle every call for five minutes before the drain",
    "Nothing can be read, so nothing is decided: the instance stays in its hooks",
    "Released once they answer",
)
def aws_throttled_before_the_drain(world: World) -> None:
    instance_id = refuse_in(world, State.REPLACING, {"cloud", "inventory"}, 10)
    assert world.state(instance_id) is State.REPLACING
    assert world.witness.forwarded == []
    check_rotated(world, instance_id)


@case(
    "EC2 and Auto Scaling throttle every call for five minutes in the middle of a drain",
    "NTH goes on by itself; the gate stays shut until it can be seen to be safe",
    "Released once they answer",
)
def aws_throttled_in_the_drain(world: World) -> None:
    instance_id = refuse_in(world, State.DRAINING, {"cloud", "inventory"}, 20)
    assert world.state(instance_id) in DRAINS
    check_rotated(world, instance_id)


@case(
    "DynamoDB answers nothing for five minutes in the middle of a rotation",
    "Without the ledger nothing is done; the messages return, the sweep fails and runs again",
    "Released once it answers",
)
def dynamodb_down(world: World) -> None:
    instance_id = refuse_in(world, State.REPLACING, {"ledger", "records"}, 30)
    assert world.witness.forwarded == []
    check_rotated(world, instance_id)


@case(
    "SQS takes no message for five minutes: neither ticks nor drains can be sent",
    "The drain is not recorded as sent; the message that could not schedule its next is delivered "
    "again, or the sweep finds the incident",
    "Released once it does, one drain",
)
def sqs_takes_nothing(world: World) -> None:
    (instance_id,) = world.terminate(10)
    world.run_until(lambda: world.state(instance_id) is State.REPLACING)
    with refusing(world, lambda call: call.method == "send"):
        world.run(300)
    assert world.witness.forwarded == []
    check_rotated(world, instance_id)


@contextmanager
def no_api_server(world: World) -> Iterator[None]:
    world.machinery.api_answers = False
    with refusing(world, lambda call: call.adapter == "nodes"):
        yield
    world.machinery.api_answers = True


@case(
    "The API server is down for five minutes before the drain",
    "Nothing can be read: the incident waits, its hooks are kept",
    "Released once it answers",
)
def api_server_down_before_the_drain(world: World) -> None:
    instance_id = refuse_in(world, State.REPLACING, {"nodes"}, 20)
    assert world.state(instance_id) is State.REPLACING
    assert world.witness.forwarded == []
    check_rotated(world, instance_id)


@case(
    "The API server is down for five minutes after Kubernetes stops the broker's pod",
    "The pod waits for a scheduler and the gate for a reading; the old instance stays",
    "Released once it answers",
)
def api_server_down_in_the_drain(world: World) -> None:
    (instance_id,) = world.terminate(30)
    world.run_until(lambda: 30 in world.machinery.out())
    with no_api_server(world):
        world.run(300)
        assert world.state(instance_id) in DRAINS
        assert (instance_id, GATE_HOOK) not in world.witness.hooks
    check_rotated(world, instance_id)


@case(
    "The API server is down for longer than the lease, between the drain's message and its "
    "eviction. Another broker's node is to leave as well",
    "A drain that was sent keeps all others waiting, whatever the lease says. NTH evicts when the "
    "API server is back. The other's turn comes after that broker's return",
    "Both released, never more than one broker out; a person called after a quarter of an hour",
)
def api_server_down_beyond_the_lease(world: World) -> None:
    world.handler.kill()
    (first,) = world.terminate(10)
    world.run_until(lambda: world.state(first) is State.DRAINING)
    with no_api_server(world):
        world.handler.start()
        (second,) = world.terminate(20)
        world.run(LEASE_SECONDS + 120)
        assert world.witness.forwarded == [first]
        assert "blind" in world.known(first).pages
    check_rotated(world, first)
    check_rotated(world, second)


@case(
    "No Kafka broker answers for five minutes before the drain",
    "Silence does not count as consent: the broker is held, and the incident says why",
    "Released once Kafka answers",
)
def kafka_unreachable_before_the_drain(world: World) -> None:
    with held(world, 10) as instance_id:
        world.run(300)
        assert world.state(instance_id) is State.HOLDING
        assert world.witness.forwarded == []
    check_rotated(world, instance_id)


@case(
    "No Kafka broker answers for five minutes while the gate waits",
    "The old instance is kept until the leaders show the broker in every ISR",
    "Released once Kafka answers",
)
def kafka_unreachable_at_the_gate(world: World) -> None:
    instance_id = refuse_in(world, State.GATING, {"kafka"}, 20)
    assert world.state(instance_id) is State.GATING
    assert (instance_id, GATE_HOOK) not in world.witness.hooks
    check_rotated(world, instance_id)
