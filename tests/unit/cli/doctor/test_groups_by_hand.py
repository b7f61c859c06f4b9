"""The doctor and groups that somebody changed by hand, so that they end machines by themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.cli.doctor.test_surroundings import checks, world
from tests.unit.cli.survey.changes_of_machines import action, policy
from tests.unit.cli.survey.hidden_changes import refreshing
from tests.unit.cli.survey.platforms import each_group, short, template, without_template
from tests.unit.cli.survey.worlds import World

WARM = {"InstanceReusePolicy": {"ReuseOnScaleIn": True}}
SHARE = {"InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 0}}
BY_HAND: dict[str, tuple[Callable[[World], object], set[str]]] = {
    "a maximum lifetime": (each_group(MaxInstanceLifetime=604_800), {"group-lifetime"}),
    "the load balancer's health": (each_group(HealthCheckType="ELB"), {"group-health"}),
    "a target of processor time": (policy, {"group-scales-in"}),
    "nights without nodes": (action, {"group-scales-in"}),
    "an instance refresh": (refreshing("InProgress"), {"group-refreshing"}),
    "an instance refresh of last month": (refreshing("Successful"), set()),
    "a warm pool that takes nodes back": (
        each_group(WarmPoolConfiguration=WARM),
        {"group-warm-pool"},
    ),
    "a share for spot": (each_group(MixedInstancesPolicy=SHARE), {"group-spot"}),
    "a template for spot": (
        template(InstanceMarketOptions={"MarketType": "spot"}),
        {"group-spot"},
    ),
    "a template that is gone": (without_template, {"template-gone"}),
    # A rotation does so, too: the alerts watch it.
    "a machine that is not there yet": (short, set()),
}


@pytest.mark.parametrize(("change", "said"), BY_HAND.values(), ids=BY_HAND.keys())
def test_what_ends_machines_by_itself_is_found_of_our_own_groups(
    change: Callable[[World], object], said: set[str]
) -> None:
    assert set(checks(world(change))) == said
