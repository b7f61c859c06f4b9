"""core.events against real announcements, and against any bytes, JSON and damage: no error."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.events import Advisory, Ignored, Interruption, Kind, parse
from tests.announcements import load
from tests.every_case import every_case

LAUNCH = load("asg-launch-hook")
SPOT = load("spot")
REBALANCE = load("rebalance")
STOPPING = load("state-stopping")
RESERVATION = load("capacity-reservation")
# The older schema: bare ids, no communicationId. A real capture.
RETIREMENT_2018 = load("health-2018")
TERMINATE: dict[str, Any] = {
    "version": "0",
    "id": "782d5b4c-0f6f-1fd6-9d62-ecf6aed0a470",
    "detail-type": "EC2 Instance-terminate Lifecycle Action",
    "source": "aws.autoscaling",
    "account": "123456789012",
    "time": "2020-07-01T22:19:58Z",
    "region": "us-east-1",
    "resources": ["arn:aws:autoscaling:us-east-1:123456789012:autoScalingGroup:26e7234b:nth"],
    "detail": {"LifecycleActionToken": "0befcbdb-6ecd-498a-9ff7-ae9b54447cd6",
        "AutoScalingGroupName": "nth-test1", "LifecycleHookName": "drain",
        "EC2InstanceId": "i-0633ac2b0d9769723",
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING", "Origin": "AutoScalingGroup",
        "Destination": "EC2"},
}  # fmt: skip
# The same announcement as the group sends it to a queue of its own, and as SNS wraps it.
DIRECT: dict[str, Any] = {
    **TERMINATE["detail"],
    "AccountId": "123456789012",
    "Event": "",
    "RequestId": "3775fac9-93c3-7ead-8713-159816566000",
    "Service": "AWS Auto Scaling",
    "Time": "2020-07-01T22:19:58.872Z",
}


def ec2(detail_type: str, **detail: str) -> dict[str, Any]:
    return {
        "version": "0",
        "id": "5d5555d5-dd55-5555-5555-5555dd55d55d",
        "detail-type": detail_type,
        "source": "aws.ec2",
        "account": "123456789012",
        "time": "2020-10-26T14:14:14Z",
        "region": "us-east-1",
        "resources": ["arn:aws:ec2:us-east-1b:instance/i-0b662ef9931388ba0"],
        "detail": {"instance-id": "i-0b662ef9931388ba0", **detail},
    }


def retirement(*entities: str, **detail: str) -> dict[str, Any]:
    """A retirement in today's schema: ARNs for entities, `resources` absent."""
    return {
        "version": "0",
        "id": "7bf73129-1428-4cd3-a780-95db273d1602",
        "detail-type": "AWS Health Event",
        "source": "aws.health",
        "account": "123456789012",
        "time": "2026-01-27T01:43:21Z",
        "region": "us-east-1",
        "detail": {
            "eventArn": "arn:aws:health:us-east-1::event/AWS_EC2_INSTANCE_RETIREMENT_9035",
            "service": "EC2",
            "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
            "eventTypeCategory": "scheduledChange",
            "communicationId": "1234abc01232a4012345678-1",
            "startTime": "Thu, 27 Aug 2026 13:19:03 GMT",
            "lastUpdatedTime": "Thu, 27 Jan 2026 13:44:13 GMT",
            "statusCode": "open",
            "eventRegion": "us-east-1",
            "affectedEntities": [
                {
                    "entityValue": f"arn:aws:ec2:us-east-1:123456789012:instance/{entity}",
                    "status": "PENDING",
                }
                for entity in entities
            ],
            "affectedAccount": "123456789012",
            "page": "1",
            "totalPages": "1",
            "backupEvent": "false",
            **detail,
        },
    }


def one(message: object) -> Interruption:
    (found,) = parse(json.dumps(message))
    assert isinstance(found, Interruption), found
    return found


def parse_ignored(message: object) -> Ignored:
    (found,) = parse(json.dumps(message))
    assert isinstance(found, Ignored), found
    return found


def with_detail(message: dict[str, Any], **detail: object) -> dict[str, Any]:
    return {**message, "detail": {**message["detail"], **detail}}


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
            RETIREMENT_2018, Kind.SCHEDULED_CHANGE, "i-0c608386538544571", id="health-2018"),
        pytest.param(retirement("i-1234567890abcdef0"), Kind.SCHEDULED_CHANGE,
            "i-1234567890abcdef0", id="health-arn"),
    ],
)  # fmt: skip
def test_an_announcement_names_both(message: dict[str, Any], kind: Kind, instance: str) -> None:
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
    expected = ["i-0aaaaaaa", "i-0bbbbbbb", "i-0ccccccc"]
    assert [f.instance_id for f in found if isinstance(f, Interruption)] == expected
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


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20)
)
anything = st.recursive(
    scalars, lambda c: st.lists(c, max_size=4) | st.dictionaries(st.text(max_size=8), c, max_size=4)
)
ENVELOPE = ["id", "source", "detail-type", "account", "region", "time", "resources", "detail"]
DETAILS = (DIRECT, RETIREMENT_2018["detail"], retirement()["detail"], RESERVATION["detail"])
KEYS = sorted({"Message", "Type", *ENVELOPE, *(key for detail in DETAILS for key in detail)})
VALUES = [
    "aws.autoscaling", "aws.ec2", "aws.health", "EC2", "scheduledChange", "i-0aaaaaaa", "closed",
    "autoscaling:EC2_INSTANCE_TERMINATING", "EC2 Instance State-change Notification", "stopped",
    "AWS Health Event", "EC2 Spot Instance Interruption Warning", "\ud800", "2020-13-45T99:00:00Z",
    "Thu, 99 Foo 99999 25:61:61 GMT", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59",
]  # fmt: skip
values = st.sampled_from(VALUES) | anything
shaped = st.recursive(
    st.dictionaries(st.sampled_from(KEYS), values, max_size=12),
    lambda c: st.dictionaries(
        st.sampled_from(KEYS), values | c | st.lists(c, max_size=3), max_size=12
    ),
    max_leaves=6,
)


def settle(found: tuple[Interruption | Ignored, ...]) -> None:
    assert found
    for result in found:
        result.body.encode()
        if isinstance(result, Ignored):
            assert result.reason.endswith(".")
            result.reason.encode()
        else:
            result.dedupe_key.encode()


@given(st.binary() | st.text(st.characters(exclude_categories=())))
def test_parse_never_raises_whatever_the_bytes(raw: str | bytes) -> None:
    settle(parse(raw))


@given(anything | shaped)
@example({"source": "aws.health", "detail": {"service": "EC2", "affectedEntities": {"a": 1}}})
def test_parse_never_raises_whatever_the_json(message: object) -> None:
    settle(parse(json.dumps(message)))


@given(
    st.sampled_from([TERMINATE, LAUNCH, SPOT, STOPPING, RESERVATION, retirement("i-0aaaaaaa")]),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=4),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=4),
)
def test_parse_never_raises_on_a_damaged_announcement(
    event: dict[str, Any], envelope: dict[str, object], detail: dict[str, object]
) -> None:
    settle(parse(json.dumps(with_detail(event, **detail) | envelope)))


BROKEN = [None, True, 7, "x", "\ud800", [], [7], [None], {}, {"a": 1}, [{"entityValue": 7}]]


def places(fields: dict[str, Any], *above: str) -> Iterator[tuple[str, ...]]:
    """Return the way to every field of an announcement."""
    for key, value in fields.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from places(value, *above, key)


@every_case("broken", BROKEN, ids=repr)
def test_parse_never_raises_whichever_field_is_broken(broken: object) -> None:
    events = [TERMINATE, DIRECT, SPOT, STOPPING, RESERVATION, RETIREMENT_2018, retirement("i-0a")]
    for event in events:
        for *above, last in places(event):
            damaged = copy.deepcopy(event)
            here = damaged
            for key in above:
                here = here[key]
            here[last] = broken
            settle(parse(json.dumps(damaged)))


IGNORED: dict[str, tuple[Any, str]] = {
    "launch-into-warm-pool": (with_detail(LAUNCH, Destination="WarmPool"), "warm pool"),
    "test-eventbridge": (
        {**TERMINATE,
            "detail": {"Event": "autoscaling:TEST_NOTIFICATION",
                "LifecycleTransition": "autoscaling:TEST_NOTIFICATION"}}, "test notification"),
    "test-direct": ({"Event": "autoscaling:TEST_NOTIFICATION", "RequestId": "r", "AccountId": "1"},
        "test notification"),
    "no-instance": (with_detail(TERMINATE, EC2InstanceId=""), "names no instance"),
    "unknown-transition": (with_detail(TERMINATE, LifecycleTransition="autoscaling:OTHER"),
        "'autoscaling:OTHER'"),
    "launch-unsuccessful": (
        {**TERMINATE, "detail-type": "EC2 Instance Launch Unsuccessful", "detail": {}},
        "names no group in AutoScalingGroupName"),
    "running": (ec2("EC2 Instance State-change Notification", state="running"), "'running'"),
    "ebs": (ec2("EBS Volume Notification"),
        "'EBS Volume Notification' of source 'aws.ec2' ('') names no volume"),
    "wrong-type": (with_detail(SPOT, **{"instance-id": 7}) | {"resources": []},
        "names no instance"),
    "health-of-another-service": (retirement("i-0aaaaaaa", service="RDS"), "service 'RDS'"),
    "health-closed-without-entities": (retirement(statusCode="Closed"), "names no affected entity"),
    "shift-without-a-zone": (
        {**REBALANCE, "source": "aws.arc-zonal-shift", "detail-type": "Practice Run Started"},
        "names no zone id in awayFrom"),
    "no-detail": ({"source": "aws.ec2", "detail": "x"}, "carries no detail"),
    "sns-confirmation": ({"Type": "SubscriptionConfirmation", "Message": "Visit the URL"},
        "SubscriptionConfirmation"),
    "array": ([1, 2], "not a JSON object"),
    "empty-object": ({}, "without source"),
}  # fmt: skip


@every_case(("message", "says"), IGNORED.values(), ids=IGNORED)
def test_what_asks_for_nothing_is_ignored_with_its_reason(message: object, says: str) -> None:
    found = parse_ignored(message)
    assert says in found.reason
    assert found.reason.endswith(".")
    assert found.body == json.dumps(message)


@every_case(
    "raw",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff\xfe\x00", id="no-utf8"),
        pytest.param("\ud800", id="surrogate"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('{"a":' * 100_000, id="deep-objects"),
        pytest.param("9" * 10_000, id="huge-integer"),
        pytest.param("NaN", id="nan"),
        pytest.param('"text"', id="string"),
    ],
)
def test_bytes_that_are_no_message_are_kept_as_ignored(raw: str | bytes) -> None:
    (found,) = parse(raw)
    assert isinstance(found, Ignored)
    found.body.encode()  # any store accepts it


def test_endless_wrapping_is_refused() -> None:
    message = json.dumps(DIRECT)
    for _ in range(4):
        message = json.dumps({"Message": message})
    (found,) = parse(message)
    assert isinstance(found, Ignored)
    assert "wrapped" in found.reason


@pytest.mark.parametrize(
    ("detail", "says"),
    [
        ({"Destination": "WarmPool"}, "warm pool"),
        ({"Destination": "AutoScalingGroup", "Action": "ReplaceRootVolume"}, "root volume"),
        ({"Destination": "AutoScalingGroup"}, "'AutoScalingGroup'"),
    ],
)
def test_a_hook_nobody_completes_is_told_once(detail: dict[str, str], says: str) -> None:
    found = [
        parse(json.dumps(with_detail(TERMINATE, LifecycleHookName=hook, **detail)))[0]
        for hook in ("drain", "gate")
    ]
    assert all(isinstance(each, Advisory) and says in each.sentence for each in found)
    assert len({each.dedupe_key for each in found if isinstance(each, Advisory)}) == 1


def test_a_scheduled_change_that_is_over_and_names_no_instance_is_still_answered() -> None:
    detail = {
        "service": "EC2",
        "eventTypeCategory": "scheduledChange",
        "eventTypeCode": "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
        "statusCode": "closed",
        "affectedEntities": [{"entityValue": "vol-0123456789abcdef0"}],
    }
    (found,) = parse(json.dumps({"source": "aws.health", "id": "e1", "detail": detail}))
    assert isinstance(found, Ignored)
    assert "is over" in found.reason
