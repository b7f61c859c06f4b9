"""No two resources have one name in the account: the second would take the first one over."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.unit.infra.variants import recorded

# A hook's name is its group's own.
WITHIN_ANOTHER = {"aws:autoscaling/lifecycleHook:LifecycleHook"}


@pytest.mark.parametrize("variant", ["certificates", "karpenter with everything"])
def test_every_name_of_a_kind_is_given_once(variant: str, cache: None) -> None:
    named = Counter(
        (resource.type, str(resource.inputs["name"]))
        for layer in recorded(variant).values()
        for resource in layer.resources
        if resource.type.startswith("aws:")
        and resource.type not in WITHIN_ANOTHER
        and "name" in resource.inputs
    )
    assert [key for key, times in named.items() if times > 1] == []
    assert len(named) > 50
