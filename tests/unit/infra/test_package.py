"""The components for programs in any language: what they refuse, and what they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from core.constants import ABANDON, HOOKS
from core.errors import InvalidInput
from infra.package.bill_export import BillExport
from infra.package.hooks import Hooks
from infra.package.host import COMPONENTS, schema
from tests.unit.infra.recording import ACCOUNT, REGION, Recorded, run_program

HOOKS_ARGS: dict[str, Any] = {
    "scaling_groups": {"a": "their-a", "b": "their-b"},
    "cluster": "shop-orders",
    "heartbeat_timeout_seconds": 900.0,
}
BAD_KEYS = (
    "scalingGroups has the key 'a b'; keys are letters, digits, '.', '_' and '-'.\n"
    "scalingGroups.c is 1.0; it must be a name."
)
TOO_LATE = (
    "prefix is another resource's output; it decides what is made, so write the value itself."
)
BILL_ARGS: dict[str, Any] = {"prefix": "shop"}


def made(kind: Any, args: Mapping[str, Any]) -> Recorded:
    return run_program(lambda: kind("part", args, None))


def refusal(kind: Any, args: Mapping[str, Any]) -> str:
    with pytest.raises(InvalidInput) as refused:
        made(kind, args)
    return str(refused.value)


def test_hooks_stand_below_their_groups_keys() -> None:
    recorded = made(Hooks, HOOKS_ARGS)
    found = recorded.of("autoscaling/lifecycleHook:LifecycleHook")
    assert {each.name for each in found} == {f"part-{key}-{hook}" for key in "ab" for hook in HOOKS}
    assert {each.inputs["defaultResult"] for each in found} == {ABANDON}
    assert {each.inputs["heartbeatTimeout"] for each in found} == {900}


def test_a_groups_name_may_be_known_late() -> None:
    def program() -> None:
        late = pulumi.Output.from_input("made-beside")
        Hooks("part", {**HOOKS_ARGS, "scaling_groups": {"a": late}})  # type: ignore[typeddict-item]

    found = run_program(program).of("autoscaling/lifecycleHook:LifecycleHook")
    assert {each.inputs["autoscalingGroupName"] for each in found} == {"made-beside"}


def test_a_bill_export_has_a_private_bucket_of_its_own() -> None:
    recorded = made(BillExport, BILL_ARGS)
    (bucket,) = recorded.of("s3/bucket:Bucket")
    assert bucket.inputs["bucket"] == f"shop-billing-{ACCOUNT}"
    (export,) = recorded.of("bcmdata/export:Export")
    (destination,) = export.inputs["export"]["destinationConfigurations"]
    assert destination["s3Destinations"][0]["s3Region"] == REGION
    (policy,) = recorded.of("s3/bucketPolicy:BucketPolicy")
    assert {each["Sid"] for each in policy.policy_statements} == {"OnlyOverTls", "DataExports"}


@pytest.mark.parametrize(
    ("kind", "args", "sentence"),
    [
        (
            Hooks,
            {**HOOKS_ARGS, "heartbeat_timeout_seconds": 29.0},
            "heartbeatTimeoutSeconds is 29; it must be a whole number from 30 to 7200.",
        ),
        (
            Hooks,
            {**HOOKS_ARGS, "heartbeat_timeout_seconds": 900.5},
            "heartbeatTimeoutSeconds is 900.5; it must be a whole number from 30 to 7200.",
        ),
        (
            Hooks,
            {**HOOKS_ARGS, "heartbeat_timeout_seconds": True},
            "heartbeatTimeoutSeconds is True; it must be a whole number from 30 to 7200.",
        ),
        (
            Hooks,
            {**HOOKS_ARGS, "cluster": "shop orders"},
            "cluster is 'shop orders'; it must be like shop-orders.",
        ),
        (
            Hooks,
            {**HOOKS_ARGS, "scaling_groups": {}},
            "scalingGroups is {}; it must have at least one entry, like {a: a-name}.",
        ),
        (
            Hooks,
            {**HOOKS_ARGS, "scaling_groups": {"a b": "x", "c": 1.0}},
            BAD_KEYS,
        ),
        (BillExport, {"prefix": "Shop"}, "prefix is 'Shop'; it must be like shop-orders."),
        (
            BillExport,
            {**BILL_ARGS, "ephemeral": "yes"},
            "ephemeral is 'yes'; it must be true or false.",
        ),
        (
            BillExport,
            {"prefix": pulumi.UNKNOWN},
            TOO_LATE,
        ),
    ],
    ids=[
        "short",
        "half a second",
        "no number",
        "a blank",
        "no group",
        "keys",
        "capitals",
        "a word",
        "unknown",
    ],
)
def test_a_mistake_is_a_sentence(kind: Any, args: Mapping[str, Any], sentence: str) -> None:
    assert refusal(kind, args) == sentence


def test_every_argument_and_output_is_described() -> None:
    resources = schema()["resources"]
    assert set(resources) == {f"stillwater:index:{kind.__name__}" for kind in COMPONENTS}
    for component in resources.values():
        described = [component, *component["inputProperties"].values()]
        described += component["properties"].values()
        assert all(each["description"].endswith(".") for each in described)
