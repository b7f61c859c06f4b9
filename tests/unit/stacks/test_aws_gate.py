"""What AWS would refuse of any cluster the program can build or adopt: nothing known here.

Every resource of every variant, with outputs as long as AWS makes them, is put to botocore's
models, to the table of limits that the models lack, and to what AWS adds by itself.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from hypothesis import Phase, given, settings

from cli.survey import draft
from core.cluster import adoption
from core.ground.errors import InvalidInput
from local.pulumi.aws_provider import ADAPTERS
from local.refusals import calls, changing, gate
from local.refusals.model import input_shape
from local.refusals.refusal import Wanted
from stacks.program import main
from tests.effort import EFFORT
from tests.unit.cli.survey.changes import without
from tests.unit.cli.survey.changes_of_machines import karpenters, of_eks
from tests.unit.cli.survey.descriptions import at, described
from tests.unit.cli.survey.others import combined, own, terraform_aws_eks, two_kafkas
from tests.unit.cli.survey.worlds import World
from tests.unit.infra import real_outputs, recording
from tests.unit.infra.any_description import descriptions
from tests.unit.infra.programs import BROKER, CONTROLLER, ZONES, description, run_layers
from tests.unit.infra.real_outputs import real
from tests.unit.infra.recording import Recorded, Resource, run_program
from tests.unit.infra.test_adopted import ADOPTED, KAFKA
from tests.unit.infra.variants import EPHEMERAL, EVERYTHING, VARIANTS

WORKSPACE = "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-01234567-89ab-cdef-0123-456789abcdef"


def pool(index: int) -> dict[str, Any]:
    """Return one more pool of brokers, as growing by a pool adds it."""
    first = 100 + 100 * index
    return {**BROKER, "name": f"broker-pool-{index}", "first_node_id": first}


def controllers(count: int, length: int) -> list[dict[str, Any]]:
    """Return pools of controllers in one zone each, and one of brokers."""
    named = [
        {
            **CONTROLLER,
            "name": f"p{number}".ljust(length, "x"),
            "zones": [ZONES[number % 3]],
            "first_node_id": 10 * number,
        }
        for number in range(count)
    ]
    return [*named, {**BROKER, "first_node_id": 5000}]


# What people grow into: more pools, zones, tags and longer names than the examples have.
GROWN: Mapping[str, dict[str, Any]] = {
    "as many groups as there are listeners, and thirty tags": description(
        tags={f"cost-centre-{n}": "x" * 256 for n in range(30)},
        name="o" * 20,
        environment="e" * 22,
        availability_zones=[f"us-east-1{letter}" for letter in "abcdef"],
        pools=[CONTROLLER, *({**pool(n), "name": f"broker-{n}-{'p' * 8}"} for n in range(8))],
    ),
    # One pool more of either, and `check` refuses them.
    "as many pools as a rule names": description(
        name="o" * 20, environment="e" * 22, pools=controllers(20, 10)
    ),
    "as many pools as a role's policy names": description(
        name="o", environment="e", pools=controllers(48, 3)
    ),
    # Each function is told of a server of each pool and zone, in 4 KB.
    "the longest host, in every pool and zone": description(
        environment="e" * 22,
        name="o" * 10,
        availability_zones=[f"us-east-1{letter}" for letter in "abcdef"],
        pools=[CONTROLLER, BROKER, *(pool(n) for n in range(6))],
        kafka={
            "listener": {
                "authentication": "oauth",
                "advertised_host": ".".join(["h" * 60] * 4) + ".host",
                "oauth": {
                    "valid_issuer_url": f"https://id.example/{'i' * 381}",
                    "jwks_url": f"https://id.example/{'j' * 381}",
                    "token_url": f"https://id.example/{'t' * 381}",
                },
            },
            "functions": {"secret_name": "s" * 253, "authority_secret_name": "a" * 253},
        },
        probe={"image": "registry.example/gate:1"},
        metrics={"prometheus": {"address": WORKSPACE, "labels": {"cluster": "x" * 980}}},
    ),
    "long names and every option": description(
        **{
            **EVERYTHING,
            "pools": [CONTROLLER, BROKER, *(pool(n) for n in range(3))],
            "metrics": {"prometheus_operator": True, "prometheus": {"address": WORKSPACE}},
        },
        name="orders-and-payments-x",
        environment="production-eu-1",
        availability_zones=[*ZONES, "us-east-1d", "us-east-1e", "us-east-1f"],
        volumes={"mode": "apply", "max_monthly_increase_usd": 100},
        slack={"channel": "C0HARBOUR1", "secret_name": "platform/streaming/orders/slack"},
        kafka={"internal_listener": {"authentication": "tls"}},
    ),
}
EVERY_VARIANT = {**VARIANTS, **GROWN}


def wanted(layers: Mapping[str, Recorded]) -> list[Wanted]:
    """Return every resource of AWS's, with the default tags of its layer's provider."""
    found = []
    for layer in layers.values():
        providers = layer.of("providers:aws")
        default = json.loads(providers[0].inputs["defaultTags"])["tags"] if providers else {}
        found += [_wanted(r, default) for r in layer.resources if r.type.startswith("aws:")]
    return found


def _wanted(resource: Resource, default: Mapping[str, str]) -> Wanted:
    own = resource.inputs.get("tags") or {}
    if isinstance(own, list):
        return Wanted(resource.type, resource.name, resource.inputs)
    override = resource.inputs.get("overrideProvider") or {}
    if "defaultTags" in override:
        default = override["defaultTags"].get("tags") or {}
    return Wanted(resource.type, resource.name, {**resource.inputs, "tagsAll": {**default, **own}})


@pytest.fixture(scope="module", params=EVERY_VARIANT)
def resources(request: pytest.FixtureRequest, cache: None) -> list[Wanted]:
    return wanted(run_layers(EVERY_VARIANT[request.param], real_sizes=True))


def unmatched_inputs(wanted: Wanted) -> set[str]:
    """Return the inputs of a resource that no call takes and no reason explains."""
    known = calls.TYPES[wanted.type]
    left = set(wanted.inputs) - set(known.apart) - {"tags", "tagsAll", "region"}
    for call in known.calls:
        members = {name.lower() for name in input_shape(call.service, call.operation).members}
        left -= call.built | {key for key in left if call.names.get(key, key).lower() in members}
    return left


def test_aws_refuses_nothing(resources: list[Wanted]) -> None:
    found = gate.all_refusals(resources)
    assert [refusal.sentence for refusal in found] == []


@pytest.mark.parametrize("variant", EPHEMERAL)
def test_what_holds_another_is_deleted_before_it(variant: str, cache: None) -> None:
    """The engine deletes what depends first, and the layers from the last to the first."""
    layers = run_layers(EPHEMERAL[variant], real_sizes=True)
    made = [r for layer in layers.values() for r in layer.resources if r.type.startswith("aws:")]
    kept: list[str] = []
    for resource in made:
        leaving = Wanted(resource.type, real(resource.type, resource.name, resource.inputs)[0])
        leaving = replace(leaving, inputs=resource.inputs)
        for layer in layers.values():
            if resource not in layer.resources:
                continue
            beside = [r for r in layer.resources if r.type.startswith("aws:") and r is not resource]
            holders = [
                r
                for r in beside
                if list(changing.deletion_refusals(leaving, [Wanted(r.type, r.name, r.inputs)]))
            ]
            kept += [
                f"{r.name} holds {resource.name}"
                for r in holders
                if resource.mock_urn not in set().union(*r.references.values())
                and resource.urn not in r.depends_on
            ]
    assert len(made) > 100
    assert kept == []


def test_a_type_that_is_only_stored_says_what_replaces_it(resources: list[Wanted]) -> None:
    assert {each.type for each in resources} <= ADAPTERS.keys()


def test_every_input_is_put_to_a_call_or_has_a_reason_why_not(resources: list[Wanted]) -> None:
    left = {(each.type, name) for each in resources for name in unmatched_inputs(each)}
    assert left == set()


NO_MACHINES: Mapping[str, Any] = {"scaling_groups": [], "managed_node_groups": [], "node_pools": []}
ACT: Mapping[str, Any] = {**NO_MACHINES, "level": "act", "kafkas": [KAFKA], "drainer": "none"}
SLACK = {
    "channel": "C0HARBOUR1",
    "secret_name": "s" * 255,
    "api_url": f"https://{'a' * 60}.example/{'b/' * 50}",
}
ALERTS = {"enabled": True, "email": ["oncall@example.org"]}


def groups(count: int, length: int) -> list[str]:
    return [f"kafka-{index:03}-".ljust(length, "g") for index in range(count)]


def servers(count: int, length: int) -> str:
    return ",".join(f"{f'b{index}'.ljust(length, 'b')}.example:9093" for index in range(count))


# At the edge of what is taken: one more of anything is refused (BEYOND).
TAKEN: Mapping[str, Mapping[str, Any]] = {
    "Karpenter alone, watched": {**NO_MACHINES, "node_pools": ["kafka"]},
    "Karpenter alone, gated": {
        **NO_MACHINES,
        "node_pools": ["kafka"],
        "level": "gate",
        "eviction_gate": {"image": "registry.example/gate:1"},
    },
    "many groups": {**ACT, "scaling_groups": groups(35, 40)},
    "many short groups": {**ACT, "scaling_groups": groups(57, 11)},
    "groups of any letters": {**ACT, "scaling_groups": ["Kafka nodes/eu (a) 'x' \"y\" é", "b!"]},
    "many managed groups": {**NO_MACHINES, "managed_node_groups": groups(25, 39)},
    "long NodePools": {
        **NO_MACHINES,
        "node_pools": [f"p{index}".ljust(63, "o") for index in range(10)],
    },
    "everything": {
        **ACT,
        "drainer": "theirs",
        "queue_url": f"https://sqs.us-east-1.amazonaws.com/111122223333/{'q' * 80}",
        "kafkas": [
            {
                **KAFKA,
                "called": "c" * 43,
                "name": "k" * 47,
                "namespace": "n" * 63,
                "credentials_secret": "s" * 63,
                "authority_secret": "a" * 63,
                "bootstrap": servers(3, 100),
            }
        ],
        "scaling_groups": groups(16, 40),
        "alerts": ALERTS,
        "pool_label": f"{'a' * 200}.example/{'l' * 63}",
        "slack": SLACK,
        "eviction_gate": {"image": "registry.example/gate:1"},
        "maintenance": {"start_utc": "03:00"},
    },
}
BEYOND: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "many groups": ({**ACT, "scaling_groups": groups(37, 40)}, "a rule of EventBridge's"),
    "many short groups": ({**ACT, "scaling_groups": groups(61, 11)}, "a role's policy"),
    "many managed groups": (
        {**NO_MACHINES, "managed_node_groups": groups(27, 39)},
        "a rule of EventBridge's",
    ),
    "long NodePools": (
        {**NO_MACHINES, "node_pools": [f"p{index}".ljust(63, "o") for index in range(20)]},
        "a function's environment",
    ),
    "a bootstrap of every broker": (
        {**ACT, "scaling_groups": ["g"], "kafkas": [{**KAFKA, "bootstrap": servers(40, 60)}]},
        "name fewer bootstrap servers",
    ),
}


@pytest.mark.parametrize("changed", TAKEN.values(), ids=TAKEN.keys())
def test_of_what_is_taken_aws_refuses_nothing(changed: Mapping[str, Any], cache: None) -> None:
    raw = {"adopt": {**ADOPTED, **changed}}
    adoption.parse(raw)
    stack = run_program(
        main, stack_name="shop-operations", config={"cluster": json.dumps(raw)}, real_sizes=True
    )
    found = gate.all_refusals(wanted({"operations": stack}))
    assert [refusal.sentence for refusal in found] == []


@pytest.mark.parametrize(("changed", "words"), BEYOND.values(), ids=BEYOND.keys())
def test_what_aws_would_refuse_is_refused_before(changed: Mapping[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        adoption.parse({"adopt": {**ADOPTED, **changed}})


def own_without_handler() -> World:
    world = own()
    without("termination-handler")(world)
    return world


TAKEN_WORLDS: dict[str, tuple[Callable[[], World], tuple[str, ...]]] = {
    "groups and a handler": (own, ("watch", "gate", "act")),
    "groups without a handler": (own_without_handler, ("watch", "gate", "act")),
    "combined roles": (combined, ("watch", "gate", "act")),
    "managed node groups": (of_eks(), ("watch", "gate")),
    "one managed node group": (terraform_aws_eks, ("watch", "gate")),
    "Karpenter": (karpenters(), ("watch", "gate")),
    "two Kafkas of one name": (two_kafkas, ("watch", "gate")),
}


@pytest.mark.parametrize(("build", "levels"), TAKEN_WORLDS.values(), ids=TAKEN_WORLDS.keys())
def test_at_every_level_it_is_taken_and_aws_refuses_nothing_of_it(
    build: Callable[[], World], levels: tuple[str, ...], cache: None
) -> None:
    section, text = described(build())
    adoption.parse({"adopt": section})
    assert draft.refusals(text) == []
    for level in levels:
        raw = at(level, section)
        adoption.parse(raw)
        stack = run_program(
            main, stack_name="shop-operations", config={"cluster": json.dumps(raw)}, real_sizes=True
        )
        found = gate.all_refusals(wanted({"operations": stack}))
        assert [refusal.sentence for refusal in found] == []


# A program takes seconds: `make test-long` tries twenty.
@settings(max_examples=EFFORT, phases=[Phase.reuse, Phase.generate], deadline=None)
@given(raw=descriptions())
def test_aws_refuses_nothing_of_a_right_description(raw: Mapping[str, Any]) -> None:
    with (
        mock.patch.object(recording, "REGION", raw["region"]),
        mock.patch.object(real_outputs, "REGION", raw["region"]),
    ):
        # Layers are recorded when they are asked for: in this region, as long as it is said.
        everything = wanted(run_layers(raw, real_sizes=True))
    assert [refusal.sentence for refusal in gate.all_refusals(everything)] == []
