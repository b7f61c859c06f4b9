"""core.events against real announcements (NTH's tests, AWS's pages, captures)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.events import Advisory, Interruption, Kind, parse
from tests.every_case import every_case
from tests.unit.core.events.announced import (
    DIRECT,
    LAUNCH,
    REBALANCE,
    RESERVATION,
    RETIREMENT_2018,
    SPOT,
    STOPPING,
    TERMINATE,
    one,
    retirement,
    with_detail,
)


@every_case(
    ("message", "kind", "instance"),
    [
        pytest.param(TERMINATE, Kind.ASG_TERMINATE, "i-0633ac2b0d9769723", id="terminate"),
        pytest.param(DIRECT, Kind.ASG_TERMINATE, "i-0633ac2b0d9769723", id="terminate-direct"),
        pytest.param(LAUNCH, Kind.ASG_LAUNCH, "i-0633ac2b0d9769723", id="launch"),
        pytest.param(SPOT, Kind.SPOT_INTERRUPTION, "i-0b662ef9931388ba0", id="spot"),
        pytest.param(REBALANCE, Kind.REBALANCE, "i-0b662ef9931388ba0", id="rebalance"),
        pytest.param(STOPPING, Kind.STATE_CHANGE, "i-0b662ef9931388ba0", id="state-change"),
        pytest.param(RESERVATION, Kind.CAPACITY_RESERVATION, "i-0b662ef9931388ba0", id="capacity"),
        pytest.param(
            RETIREMENT_2018, Kind.SCHEDULED_CHANGE, "i-0c608386538544571", id="health-2018"
        ),
        pytest.param(
            retirement("i-1234567890abcdef0"),
            Kind.SCHEDULED_CHANGE,
            "i-1234567890abcdef0",
            id="health-arn",
        ),
    ],
)
def test_an_announcement_names_its_kind_and_instance(
    message: dict[str, Any], kind: Kind, instance: str
) -> None:
    found = one(message)
    assert (found.kind, found.instance_id) == (kind, instance)


def test_a_lifecycle_action_carries_what_completing_its_hook_needs() -> None:
    found = one(TERMINATE)
    assert (found.group, found.hook) == ("nth-test1", "drain")
    assert found.lifecycle_token == "0befcbdb-6ecd-498a-9ff7-ae9b54447cd6"
    assert (found.account, found.region) == ("123456789012", "us-east-1")
    assert found.occurred_at == 1593641998.0


@pytest.mark.parametrize(
    "delivered",
    [
        pytest.param(TERMINATE | {"id": "00000000-0000-0000-0000-000000000000"}, id="eventbridge"),
        pytest.param(DIRECT, id="bare"),
        pytest.param({"Message": json.dumps(DIRECT)}, id="sns-message-only"),
        pytest.param(
            {"Type": "Notification", "TopicArn": "arn", "Message": json.dumps(DIRECT)}, id="sns"
        ),
        pytest.param({"Message": json.dumps(TERMINATE)}, id="eventbridge-through-sns"),
    ],
)
def test_every_delivery_of_one_announcement_has_one_key(delivered: dict[str, Any]) -> None:
    assert one(delivered).dedupe_key == one(TERMINATE).dedupe_key


def test_the_two_hooks_of_one_instance_are_two_announcements() -> None:
    gate = with_detail(TERMINATE, LifecycleHookName="gate", LifecycleActionToken="another")
    assert one(gate).dedupe_key != one(TERMINATE).dedupe_key


def test_the_body_is_the_message_unwrapped_and_untouched() -> None:
    inner = json.dumps(DIRECT, indent=1)
    (found,) = parse(json.dumps({"Type": "Notification", "Message": inner}))
    assert found.body == inner


def test_a_scheduled_change_for_three_instances_is_three_interruptions() -> None:
    found = parse(json.dumps(retirement("i-0aaaaaaa", "i-0bbbbbbb", "i-0ccccccc")))
    assert [f.instance_id for f in found if isinstance(f, Interruption)] == [
        "i-0aaaaaaa",
        "i-0bbbbbbb",
        "i-0ccccccc",
    ]
    assert len({f.dedupe_key for f in found if isinstance(f, Interruption)}) == 3


def test_an_entity_that_is_no_instance_is_named_and_the_others_kept() -> None:
    event = retirement("i-0aaaaaaa")
    event["detail"]["affectedEntities"].append({"entityValue": "h-0123456789abcdef0"})
    kept, left = parse(json.dumps(event))
    assert isinstance(kept, Interruption)
    assert isinstance(left, Advisory)
    assert left.subjects == ("h-0123456789abcdef0",)


def test_a_scheduled_change_says_when_what_and_where() -> None:
    found = one(retirement("i-0aaaaaaa", eventRegion="eu-west-1"))
    assert found.due_at == 1787836743.0
    assert found.event_type == "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
    assert found.region == "eu-west-1"
    assert not found.closed


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(retirement("i-0aaaaaaa", statusCode="closed"), id="event-closed"),
        pytest.param(
            with_detail(
                retirement("i-0aaaaaaa"),
                affectedEntities=[{"entityValue": "i-0aaaaaaa", "status": "RESOLVED"}],
            ),
            id="entity-resolved",
        ),
    ],
)
def test_a_closed_scheduled_change_is_no_duplicate_of_the_open_one(event: dict[str, Any]) -> None:
    found = one(event)
    assert found.closed
    assert found.dedupe_key != one(retirement("i-0aaaaaaa")).dedupe_key


def test_a_backup_copy_in_another_region_has_the_same_key() -> None:
    copy = retirement("i-0aaaaaaa", backupEvent="true") | {
        "id": "11111111-2222-3333-4444-555555555555",
        "region": "us-west-2",
    }
    assert one(copy).dedupe_key == one(retirement("i-0aaaaaaa")).dedupe_key


def test_an_old_schema_event_falls_back_on_resources() -> None:
    event = with_detail(RETIREMENT_2018, affectedEntities=None)
    assert one(event).instance_id == "i-0c608386538544571"


def test_a_reservation_warning_says_when_it_ends() -> None:
    assert one(RESERVATION).due_at == 1795168920.0
