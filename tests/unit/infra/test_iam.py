"""infra.iam: names that are not the same in every part of AWS."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pulumi_aws as aws
import pytest

from infra.iam import managed_policy
from tests.unit.infra.recording import Recorded


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_a_managed_policy_is_named_in_the_partition_of_its_region(
    partition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws, "get_partition", lambda **_: SimpleNamespace(partition=partition))
    nobody: Any = None
    expected = f"arn:{partition}:iam::aws:policy/AmazonEKSClusterPolicy"
    assert managed_policy("AmazonEKSClusterPolicy", nobody) == expected


@pytest.mark.parametrize("layer", ["kafka", "operations"])
def test_an_access_entry_is_replaced_when_its_role_is_another_one(
    layers: dict[str, Recorded], layer: str
) -> None:
    entries = layers[layer].of("eks/accessEntry:AccessEntry")
    roles = {role.inputs["name"] for role in layers[layer].of("iam/role:Role")}
    assert entries
    for entry in entries:
        name = entry.inputs["principalArn"].rpartition("/")[2]
        assert name in roles
        assert entry.replacement_trigger == f"AROA-{name}"
        assert entry.delete_before_replace
