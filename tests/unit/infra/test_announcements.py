"""announcements against real announcements: what a rule lets through, and what it leaves."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from core.events import Ignored, parse
from infra.functions.termination import direct_rules, events_rules, our_groups
from tests.announcements import BODIES, load
from tests.every_case import every_case

RULES = events_rules(our_groups("test-orders", ["controller", "broker"]))
# Sent by a group or a topic itself, without EventBridge.
UNRULED = {"asg-terminate-direct", "asg-terminate-through-sns"}
# A rule asks for what it can; the parser has the last word on these.
LET_THROUGH = {
    "asg-to-warm-pool",
    "asg-replace-root-volume",
    "health-operational-region",
}


def heard(event: dict[str, Any], rules: Any = RULES) -> set[str]:
    # The twin's EventBridge brings all of moto's EC2: not for every worker that only collects this.
    from moto.events.models import EventPattern  # noqa: PLC0415

    from local.aws.events import matches  # noqa: PLC0415

    return {
        name
        for name, pattern in rules.items()
        if matches(EventPattern("", copy.deepcopy(dict(pattern))), event)
    }


@every_case("name", sorted(set(BODIES) - UNRULED))
def test_one_rule_hears_what_is_acted_on_and_none_the_rest(name: str) -> None:
    ignored = all(isinstance(found, Ignored) for found in parse(BODIES[name]))
    # A launch is announced by its outcome; our hooks hold none.
    expected = 0 if name == "asg-launch-hook" or (ignored and name not in LET_THROUGH) else 1
    assert len(heard(load(name))) == expected


@pytest.mark.parametrize(
    ("change", "value"),
    [
        pytest.param("AutoScalingGroupName", "test-orders-2-broker-a", id="another-cluster"),
        pytest.param("LifecycleHookName", "their-hook", id="another-hook"),
    ],
)
def test_terminations_of_others_are_not_heard(change: str, value: str) -> None:
    event = load("asg-terminate")
    event["detail"][change] = value
    assert heard(event) == set()


def test_launches_of_other_groups_are_not_heard() -> None:
    event = load("group-launch-failed")
    event["detail"]["AutoScalingGroupName"] = "web"
    assert heard(event) == set()


def test_an_alarm_is_heard_by_any_metric_it_watches() -> None:
    event = load("alarm-of-another-metric")
    event["detail"]["configuration"]["metrics"] += load("alarm-stalled-volume")["detail"][
        "configuration"
    ]["metrics"]
    assert heard(event) == {"stalled-io"}


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("asg-terminate", "nth-terminate"),
        ("spot", "nth-spot"),
        ("state-stopping", "nth-state-change"),
        ("health-retirement", "nth-health"),
    ],
)
def test_on_the_direct_route_the_termination_handler_hears_four_kinds(name: str, rule: str) -> None:
    assert heard(load(name), direct_rules(our_groups("test-orders", ["broker"]))) == {rule}


@pytest.mark.parametrize("name", ["group-launch-failed", "zone-autoshift", "health-volume-lost"])
def test_the_termination_handler_never_hears_what_it_cannot_read(name: str) -> None:
    assert heard(load(name), direct_rules(our_groups("test-orders", ["broker"]))) == set()
