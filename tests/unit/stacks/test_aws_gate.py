"""What AWS would refuse of any cluster the program can build: nothing, as far as can be known here.

Every resource of every variant, with outputs as long as AWS makes them, is put to botocore's
models, to the table of limits that the models lack, and to what AWS adds by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from local.pulumi.aws_provider import ADAPTERS, REPLACING
from local.refusals import calls, gate
from local.refusals.model import input_shape
from local.refusals.refusal import Wanted
from tests.unit.infra.aws_gate import wanted
from tests.unit.infra.programs import BROKER, CONTROLLER, ZONES, description, run_layers
from tests.unit.infra.real_outputs import real
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
        pools=[
            CONTROLLER,
            *({**pool(n), "name": f"broker-{n}-{'p' * 8}"} for n in range(8)),
        ],
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
                if gate.deletion_refusals(leaving, [Wanted(r.type, r.name, r.inputs)])
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
    assert {each.type for each in resources} <= ADAPTERS.keys() | REPLACING.keys()


def test_every_input_is_put_to_a_call_or_has_a_reason_why_not(resources: list[Wanted]) -> None:
    left = {(each.type, name) for each in resources for name in unmatched_inputs(each)}
    assert left == set()
