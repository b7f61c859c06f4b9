"""infra.iam: names that are not the same in every part of AWS."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pulumi_aws as aws
import pytest

from infra.iam import managed_policy


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_a_managed_policy_is_named_in_the_partition_of_its_region(
    partition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws, "get_partition", lambda **_: SimpleNamespace(partition=partition))
    nobody: Any = None
    expected = f"arn:{partition}:iam::aws:policy/AmazonEKSClusterPolicy"
    assert managed_policy("AmazonEKSClusterPolicy", nobody) == expected
