"""No resource is renamed or dropped by accident: the URNs of whole clusters, written down."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.unit.infra.programs import run_layers
from tests.unit.stacks.golden_urns import COMMAND, clusters, golden, urns


@pytest.fixture(scope="module", params=clusters())
def named(request: pytest.FixtureRequest, cache: None) -> tuple[str, list[str]]:
    return request.param, urns(run_layers(clusters()[request.param]))


def test_no_resource_changes_its_urn_unnoticed(named: tuple[str, list[str]]) -> None:
    name, now = named
    before = golden(name)
    gone = "\n  ".join(sorted(set(before) - set(now)))
    assert not gone, (
        f"`pulumi up` would delete what it no longer finds under its URN:\n  {gone}\n"
        f"Keep the name and the parents, or give the resource an alias "
        f"(pulumi.ResourceOptions(aliases=...)); if it is meant to go, run `{COMMAND}`."
    )
    added = "\n  ".join(sorted(set(now) - set(before)))
    assert not added, f"New resources; if they are meant, run `{COMMAND}`:\n  {added}"


def test_no_urn_stands_for_two_resources(named: tuple[str, list[str]]) -> None:
    counted = Counter(named[1])
    assert [urn for urn, times in counted.items() if times > 1] == []
