"""In every shape of cluster, and at each level of an adopted one, a policy holds what is needed.

A right is taken out of each policy, one at a time, and the call that needed it is refused and
named. The calls are those of rights.py; a shape without a part does not make the calls of it.
"""

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.iam.policy import PolicyRequest
from local.iam.requests import Call
from local.iam.resources import needs
from tests.every_case import every_case
from tests.unit.infra import test_adopted as adopted
from tests.unit.infra import test_rights as one_shape
from tests.unit.infra.real_outputs import real
from tests.unit.infra.recording import Recorded
from tests.unit.infra.rights import CALLS, GROUP, PREFIX, group, look
from tests.unit.infra.test_calls import HOLDING
from tests.unit.infra.variants import VARIANTS, recorded

QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/shop-orders-nth"
Layers = Callable[[], Mapping[str, Recorded]]


def _adopted(**changes: Any) -> Mapping[str, Recorded]:
    return {"operations": adopted.run(**changes)}


LEVELS: Mapping[str, Layers] = {
    "adopted, watch": _adopted,
    "adopted, gate": functools.partial(_adopted, level="gate", eviction_gate=adopted.IMAGE),
    "adopted, act": functools.partial(_adopted, **adopted.ONE, queue_url=QUEUE),
    "adopted, drainer none": functools.partial(_adopted, **adopted.ONE, drainer="none"),
}
SHAPES: Mapping[str, Layers] = {
    **{name: functools.partial(recorded, name) for name in VARIANTS},
    **LEVELS,
}
# Calls of rights.py that a shape does not make: it has no such part.
NO_TOPIC = {"kms:Decrypt", "kms:GenerateDataKey", "sns:Publish"}
UNMADE: Mapping[str, Mapping[str, set[str]]] = {
    # Karpenter launches its nodes without groups.
    "karpenter": {"handlers-tick-policy": HOLDING},
    "karpenter with everything": {"handlers-tick-policy": HOLDING},
    **{
        f"adopted, {level}": {
            f"{prefix}-handlers-tick-policy": NO_TOPIC | HOLDING | {"sqs:SendMessage"}
            for prefix in ("shop-orders", "shop-trial")
        }
        for level in ("watch", "gate")
    },
    "adopted, act": {"shop-orders-handlers-tick-policy": NO_TOPIC},
    # Nothing is sent to a termination handler.
    "adopted, drainer none": {"shop-orders-handlers-tick-policy": NO_TOPIC | {"sqs:SendMessage"}},
}
# And calls that it alone makes: on the direct route NTH beats the hooks, and reads their timeouts.
MADE_TOO: Mapping[tuple[str, str], list[Call]] = {
    ("direct", "nth-policy"): [
        *group("RecordLifecycleActionHeartbeat"),
        *look("autoscaling", "DescribeLifecycleHooks"),
    ]
}


class Named(one_shape.Described):
    """The account, with the groups of the shape that its functions are called in."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def tags(self, region: str, resource: str) -> Mapping[str, str]:
        return {
            key: value if self._prefix == PREFIX else value.replace(GROUP, "kafka-a")
            for key, value in super().tags(region, resource).items()
        }


@dataclass(frozen=True)
class Held:
    """A role's policy; where several shapes have the same one, it is judged once."""

    role: str
    prefix: str  # what the role's function is called by
    text: str
    beside: tuple[str, str]  # of MADE_TOO

    @functools.cached_property
    def document(self) -> dict[str, Any]:
        return dict(json.loads(self.text))


@functools.cache
def policies(shape: str) -> Mapping[str, Held]:
    """Return a shape's policies by name."""
    found = {}
    for layer in SHAPES[shape]().values():
        for each in layer.of(one_shape.POLICY):
            # Several Kafkas of an adopted cluster have a policy each.
            named = re.match(r"(shop-(?:orders|trial))-", each.name)
            prefix = named[1] if named else PREFIX
            found[each.name] = Held(
                role=each.name.removeprefix(f"{prefix}-"),
                prefix=prefix,
                text=json.dumps(each.policy),
                beside=(shape, each.name) if (shape, each.name) in MADE_TOO else ("", ""),
            )
    return found


@functools.cache
def requests(held: Held) -> Sequence[PolicyRequest]:
    """Return what a role needs, of resources that are called as its shape calls them."""
    beside = _asked(MADE_TOO.get(held.beside, ()), held.prefix)
    return (*_usual(held.role, held.prefix), *beside)


@functools.cache
def _usual(role: str, prefix: str) -> Sequence[PolicyRequest]:
    return tuple(_asked(one_shape.calls_of(role), prefix))


def _asked(calls: Iterable[Call], prefix: str) -> Iterator[PolicyRequest]:
    for call in calls:
        for need in needs(_called(call, prefix), Named(prefix)):
            yield PolicyRequest(
                action=need.action,
                resource=need.resource,
                principal=one_shape.CALLER.principal,
                context=one_shape.context(need, one_shape.CALLER, call.region),
            )


def _called(call: Call, prefix: str) -> Call:
    if call.parameters.get("applicationId"):
        parameters = {**call.parameters, "applicationId": _application()}
    elif prefix == PREFIX:
        return call
    else:
        parameters = _renamed(call.parameters, prefix)
    if call.operation == "TerminateInstanceInAutoScalingGroup":
        parameters |= {"AutoScalingGroupName": "kafka-a"}
    return Call(
        service=call.service, operation=call.operation, region=call.region, parameters=parameters
    )


@functools.cache
def _application() -> str:
    """Return the id of the report's application, which AWS makes."""
    found = recorded("asg")["analytics"].one("emrserverless/application:Application")
    arn: str = real(found.type, found.name, found.inputs)[1]["arn"]
    return arn.rpartition("/")[2]


def _renamed(value: Any, prefix: str) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(each, prefix) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, prefix) for each in value]
    if not isinstance(value, str):
        return value
    # An item that is a Kafka's own ends with its name.
    key = value.replace("#orders", f"#{prefix.removeprefix('shop-')}")
    called = key.replace(GROUP, "kafka-a").replace(PREFIX, prefix)
    return "shop/slack" if called == "orders/slack" else called


@functools.cache
def made(held: Held) -> Sequence[PolicyRequest]:
    """Return what a role needs and is allowed, in a shape that has the part."""
    return tuple(each for each in requests(held) if one_shape.judged(held.document, each).allowed)


@functools.cache
def unused(held: Held) -> Sequence[str]:
    """Return the rights that no call misses; whoever misses one is told which."""
    found = []
    for right in sorted(one_shape.rights(held.document)):
        # That no other action misses it, test_rights shows of one shape.
        lacking = one_shape.without(held.document, right)
        needing = [each for each in made(held) if each.action == right]
        verdicts = [one_shape.judged(lacking, each) for each in needing]
        refused = [verdict.because for verdict in verdicts if not verdict.allowed]
        assert all(f"allows the {right} action" in why for why in refused), (held.role, refused)
        if not refused:
            found.append(right)
    return found


@functools.cache
def vain(held: Held) -> Sequence[str]:
    """Return the statements without which everything that they name is allowed all the same."""
    found = []
    for statement in held.document["Statement"]:
        if statement["Effect"] == "Deny":
            continue  # Its own tests say what it denies.
        left = [each for each in held.document["Statement"] if each is not statement]
        lacking = {**held.document, "Statement": left}
        granted = [each for each in made(held) if each.action in statement["Action"]]
        if all(one_shape.judged(lacking, each).allowed for each in granted):
            found.append(str(statement["Sid"]))
    return found


def test_every_policy_of_every_shape_has_its_calls() -> None:
    known = {held.role for shape in SHAPES for held in policies(shape).values()}
    assert known == CALLS.keys()


@every_case("shape", SHAPES)
def test_a_shape_makes_the_calls_that_its_parts_make(shape: str) -> None:
    unmade = {
        (name, request.action)
        for name, held in policies(shape).items()
        for request in requests(held)
        if request not in made(held)
    }
    listed = UNMADE.get(shape, {})
    assert unmade == {(name, action) for name, actions in listed.items() for action in actions}


@every_case("shape", SHAPES)
def test_a_right_taken_away_is_missed_and_named(shape: str) -> None:
    found = [(name, each) for name, held in policies(shape).items() for each in unused(held)]
    assert found == [], f"rights that no call needs; take them away: {found}"


@every_case("shape", SHAPES)
def test_no_statement_is_there_in_vain(shape: str) -> None:
    found = [(name, each) for name, held in policies(shape).items() for each in vain(held)]
    assert found == []
