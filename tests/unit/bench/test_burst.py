"""The burst of bench.interruptions: as large as it says, repeatable, and true to its word."""

from __future__ import annotations

import json
from collections import Counter

from bench.storm.burst import POISON, BurstMessage, Member, Shares, burst, retirement
from core.events import Advisory, Ignored, Interruption, Kind, parse

MEMBERS = [Member(f"i-{n:017x}", "us-east-1a", "group", f"node-{n}") for n in range(200)]
SHARES = Shares.split(MEMBERS)
HOOKS = {
    m.id: json.dumps(
        {
            "source": "aws.autoscaling",
            "detail-type": "EC2 Instance-terminate Lifecycle Action",
            "id": m.id,
            "detail": {
                "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
                "EC2InstanceId": m.id,
                "AutoScalingGroupName": "group",
                "LifecycleHookName": "drain",
                "LifecycleActionToken": "t",
            },
        }
    )
    for m in SHARES.terminated
}


def _burst(seed: int = 1) -> list[BurstMessage]:
    return burst(SHARES, HOOKS, size=1000, seed=seed)


def test_every_instance_meets_one_fate() -> None:
    groups = (SHARES.terminated, SHARES.spot, SHARES.retired, SHARES.stopped)
    shared = [m for g in (*groups, SHARES.advised, SHARES.untouched) for m in g]
    assert sorted(m.id for m in shared) == [m.id for m in MEMBERS]
    assert all((*groups, SHARES.advised, SHARES.untouched))


def test_it_is_as_long_as_asked_and_the_same_for_a_seed() -> None:
    assert len(_burst()) == 1000
    assert _burst() == _burst()
    assert _burst() != _burst(seed=2)


def test_every_kind_is_delivered_more_than_once_but_poison() -> None:
    counted = Counter(_burst())
    twice = {message.kind for message, times in counted.items() if times > 1}
    assert twice == {message.kind for message in counted} - {"poison"}
    assert sum(message.kind == "poison" for message in counted.elements()) == len(POISON)


def test_what_a_message_says_of_leaving_is_what_is_read_in_it() -> None:
    for message in set(_burst()):
        found = {
            each.instance_id
            for each in parse(message.body)
            if isinstance(each, Interruption)
            and each.kind is not Kind.REBALANCE
            and message.kind != "another's instance"
        }
        assert found == message.leaving, message.kind


def test_poison_and_look_alikes_ask_for_nothing() -> None:
    for message in set(_burst()):
        if message.kind in ("poison", "look-alike"):
            found = parse(message.body)
            assert all(isinstance(each, Ignored | Advisory) for each in found), message.body


def test_a_retirement_names_its_instance() -> None:
    (found,) = parse(retirement(MEMBERS[0], "drill"))
    assert isinstance(found, Interruption)
    assert (found.kind, found.instance_id) == (Kind.SCHEDULED_CHANGE, MEMBERS[0].id)
