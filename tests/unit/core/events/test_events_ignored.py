"""What core.events leaves alone: announcements that ask for nothing, and what is none."""

from __future__ import annotations

import json

import pytest

from core.events import Advisory, Ignored, parse
from tests.every_case import every_case
from tests.unit.core.events.announced import (
    DIRECT,
    LAUNCH,
    REBALANCE,
    SPOT,
    TERMINATE,
    ec2,
    parse_ignored,
    retirement,
    with_detail,
)


@every_case(
    ("message", "says"),
    [
        pytest.param(
            with_detail(LAUNCH, Destination="WarmPool"), "warm pool", id="launch-into-warm-pool"
        ),
        pytest.param(
            {
                **TERMINATE,
                "detail": {
                    "Event": "autoscaling:TEST_NOTIFICATION",
                    "LifecycleTransition": "autoscaling:TEST_NOTIFICATION",
                },
            },
            "test notification",
            id="test-eventbridge",
        ),
        pytest.param(
            {"Event": "autoscaling:TEST_NOTIFICATION", "RequestId": "r", "AccountId": "1"},
            "test notification",
            id="test-direct",
        ),
        pytest.param(
            with_detail(TERMINATE, EC2InstanceId=""), "names no instance", id="no-instance"
        ),
        pytest.param(
            with_detail(TERMINATE, LifecycleTransition="autoscaling:OTHER"),
            "'autoscaling:OTHER'",
            id="unknown-transition",
        ),
        pytest.param(
            {**TERMINATE, "detail-type": "EC2 Instance Launch Unsuccessful", "detail": {}},
            "names no group in AutoScalingGroupName",
            id="launch-unsuccessful",
        ),
        pytest.param(
            ec2("EC2 Instance State-change Notification", state="running"),
            "'running'",
            id="running",
        ),
        pytest.param(
            ec2("EBS Volume Notification"),
            "'EBS Volume Notification' of source 'aws.ec2' ('') names no volume",
            id="ebs",
        ),
        pytest.param(
            with_detail(SPOT, **{"instance-id": 7}) | {"resources": []},
            "names no instance",
            id="wrong-type",
        ),
        pytest.param(
            retirement("i-0aaaaaaa", service="RDS"),
            "service 'RDS'",
            id="health-of-another-service",
        ),
        pytest.param(
            retirement(statusCode="Closed"),
            "names no affected entity",
            id="health-closed-without-entities",
        ),
        pytest.param(
            {**REBALANCE, "source": "aws.arc-zonal-shift", "detail-type": "Practice Run Started"},
            "names no zone id in awayFrom",
            id="shift-without-a-zone",
        ),
        pytest.param({"source": "aws.ec2", "detail": "x"}, "carries no detail", id="no-detail"),
        pytest.param(
            {"Type": "SubscriptionConfirmation", "Message": "Visit the URL"},
            "SubscriptionConfirmation",
            id="sns-confirmation",
        ),
        pytest.param([1, 2], "not a JSON object", id="array"),
        pytest.param({}, "without source", id="empty-object"),
    ],
)
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
def test_a_hook_that_nobody_completes_is_told_once_for_both_hooks(
    detail: dict[str, str], says: str
) -> None:
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
