"""Payloads of shapes that no schema page shows: read for what they say, or not at all.

What cannot be read is told or ignored with its reason; nothing is ever read as better news than it
is: over, resolved, healthy, or none of ours.
"""

import json
from typing import Any

import pytest

from core.events import (
    Advisory,
    Announcement,
    Ignored,
    Interruption,
    VolumeNotice,
    ZoneNotice,
    parse,
)
from tests.every_case import every_case

ID, OTHER = "i-0a", "i-0b"
ARN = f"arn:aws:ec2:us-east-1:123456789012:instance/{ID}"
RETIREMENT = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
ENGLISH = "en_US"


def event(source: str, detail_type: str, detail: object, **frame: object) -> dict[str, Any]:
    return {
        "version": "0",
        "id": "5d5555d5-dd55-5555-5555-5555dd55d55d",
        "detail-type": detail_type,
        "source": source,
        "account": "123456789012",
        "time": "2026-11-20T10:00:00Z",
        "region": "us-east-1",
        "resources": [],
        "detail": detail,
        **frame,
    }


def health(**detail: object) -> dict[str, Any]:
    """A retirement of one instance; a field that is `...` is left out."""
    fields: dict[str, object] = {
        "eventArn": f"arn:aws:health:us-east-1::event/EC2/{RETIREMENT}/1",
        "service": "EC2",
        "eventTypeCode": RETIREMENT,
        "eventTypeCategory": "scheduledChange",
        "eventScopeCode": "ACCOUNT_SPECIFIC",
        "communicationId": "c-1",
        "startTime": "Fri, 27 Nov 2026 10:00:00 GMT",
        "lastUpdatedTime": "Fri, 20 Nov 2026 10:00:00 GMT",
        "statusCode": "upcoming",
        "eventRegion": "us-east-1",
        "affectedAccount": "123456789012",
        "page": "1",
        "totalPages": "1",
        "affectedEntities": [{"entityValue": ID, "status": "PENDING"}],
        **detail,
    }
    kept = {name: value for name, value in fields.items() if value is not ...}
    return event("aws.health", "AWS Health Event", kept)


def issue(*, text: object = (), **detail: object) -> dict[str, Any]:
    """A public issue that names nobody."""
    fields: dict[str, object] = {
        "eventTypeCategory": "issue",
        "eventTypeCode": "AWS_EC2_OPERATIONAL_ISSUE",
        "eventScopeCode": "PUBLIC",
        "startTime": "Fri, 20 Nov 2026 09:00:00 GMT",
        "statusCode": "open",
        "affectedEntities": [],
        "eventDescription": text,
        **detail,
    }
    return health(**fields)


def spoken(text: str, language: str = ENGLISH) -> dict[str, str]:
    return {"language": language, "latestDescription": text}


def ec2(detail_type: str, **detail: object) -> dict[str, Any]:
    return event("aws.ec2", detail_type, detail)


def state(value: object, **detail: object) -> dict[str, Any]:
    fields = {"instance-id": ID, "state": value, **detail}
    return ec2("EC2 Instance State-change Notification", **fields)


def hook(**detail: object) -> dict[str, Any]:
    fields = {
        "LifecycleActionToken": "t",
        "AutoScalingGroupName": "g",
        "LifecycleHookName": "drain",
        "EC2InstanceId": ID,
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "Origin": "AutoScalingGroup",
        "Destination": "EC2",
        **detail,
    }
    kept = {name: value for name, value in fields.items() if value is not ...}
    return event("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", kept)


def entities(*found: object) -> dict[str, Any]:
    return health(affectedEntities=list(found))


def entity(value: str, status: str | None = None) -> dict[str, Any]:
    return {"entityValue": value} if status is None else {"entityValue": value, "status": status}


PLANNED, CLOSED = f"scheduled_change {ID}", f"scheduled_change {ID} closed"
SPOT = "EC2 Spot Instance Interruption Warning"
STATUSES = {
    "upcoming": PLANNED,
    "UPCOMING": PLANNED,
    "open": PLANNED,
    "": PLANNED,
    "closed": CLOSED,
    " Closed": CLOSED,
    "cancelled": "told",
    "completed": "told",
    "resolved": "told",
    5: "told",
    ("closed",): "told",
}
DATES = {
    "2026-11-27T10:00:00Z": PLANNED,
    "2026-11-27T10:00:00+09:00": PLANNED,
    "2026-11-27 10:00": PLANNED,
    "Fri, 27 Nov 2026 10:00:00 -0000": PLANNED,
    "27/11/2026 10:00": "told",
    "11/12/2026": "told",
    "1795773600": "told",
    "1795773600000": "told",
    1795773600: "told",
    "Ven, 27 nov. 2026 10:00:00 GMT": "told",
    "2026年11月27日": "told",
    "27. November 2026": "told",
    "2026-11-27T10:00:00Z/2026-11-27T12:00:00Z": "told",
    "2026-02-30T10:00:00Z": "told",
    "next Friday": "told",
}
SHAPES: dict[str, tuple[object, list[str]]] = {
    # Around the event.
    "a batch as a JSON list": ([health(), health()], ["ignored"]),
    "a batch of SQS": ({"Records": [{"body": json.dumps(health())}]}, ["ignored"]),
    "a batch of Firehose, two objects in one body": (
        json.dumps(health()) + json.dumps(health()),
        ["ignored"],
    ),
    "the event one level deeper": ({"event": health()}, ["ignored"]),
    "the detail one level deeper": (
        event("aws.health", "AWS Health Event", {"event": health()["detail"]}),
        ["ignored"],
    ),
    "the detail as text": ({**health(), "detail": json.dumps(health()["detail"])}, ["ignored"]),
    "the detail as a list": ({**health(), "detail": [health()["detail"]]}, ["ignored"]),
    "the names that PutEvents uses": (
        {"Source": "aws.ec2", "DetailType": SPOT, "Detail": {"instance-id": ID}},
        ["ignored"],
    ),
    "a byte order mark": ("\ufeff" + json.dumps(health()), [PLANNED]),
    "blanks around it": (f"\n {json.dumps(health())} \n", [PLANNED]),
    "UTF-16": (json.dumps(health()).encode("utf-16"), ["ignored"]),
    "a frame without id, time, account and resources": (
        {k: health()[k] for k in ("source", "detail-type", "detail")},
        [PLANNED],
    ),
    "another version of the frame": ({**health(), "version": "2"}, [PLANNED]),
    "resources as text": (
        event("aws.ec2", SPOT, {"instance-action": "terminate"}, resources=ARN),
        [f"spot_interruption {ID}"],
    ),
    "another source with a known detail-type": ({**health(), "source": "my.health"}, ["ignored"]),
    # Warnings and states.
    "a warning that hibernates": (
        ec2(SPOT, **{"instance-id": ID, "instance-action": "hibernate"}),
        [f"spot_interruption {ID}"],
    ),
    "a warning in other words": (ec2(SPOT.lower(), **{"instance-id": ID}), ["ignored"]),
    "a warning that names its instance otherwise": (ec2(SPOT, instanceId=ID), ["ignored"]),
    "a warning about a list of instances": (ec2(SPOT, **{"instance-id": [ID, OTHER]}), ["ignored"]),
    "an id in capitals": (state("terminated", **{"instance-id": ID.upper()}), ["ignored"]),
    "a state in capitals": (state("Terminated"), [f"state_change {ID}"]),
    "a state with blanks": (state(" shutting-down "), [f"state_change {ID}"]),
    "a state nobody knows": (state("vanished"), ["ignored: unknown state"]),
    "a state that is a number": (state(48), ["ignored: unknown state"]),
    "a state that is none": (state(None), ["ignored: unknown state"]),
    "a machine that runs": (state("running"), ["ignored: not leaving"]),
    # Lifecycle actions.
    "an action with fields nobody knows": (hook(NotificationMetadata={"a": 1}, New=[1]), ["hook"]),
    "an action without a token": (hook(LifecycleActionToken=...), ["hook"]),
    "an action without a destination": (hook(Destination=...), ["hook"]),
    "a destination in other letters": (hook(Destination="ec2"), ["told"]),
    "a transition nobody knows": (hook(LifecycleTransition="autoscaling:REBOOT"), ["ignored"]),
    # Whom Health names.
    "an entity as text": (health(affectedEntities=ID), [PLANNED]),
    "an entity that is not in a list": (health(affectedEntities=entity(ID)), [PLANNED]),
    "two instances in one entity": (entities(entity(f"{ID}, {OTHER}")), ["told"]),
    "an entity under another name": (entities({"value": ID}), ["told"]),
    "an entity beside an account": (
        entities(entity(ID), entity("123456789012")),
        [PLANNED, "told"],
    ),
    "an instance and its ARN": (entities(entity(ID), entity(ARN)), [PLANNED]),
    "pending as an id and resolved as an ARN": (
        entities(entity(ID, "PENDING"), entity(ARN, "RESOLVED")),
        [PLANNED],
    ),
    "resolved as an id and pending as an ARN": (
        entities(entity(ID, "RESOLVED"), entity(ARN, "PENDING")),
        [PLANNED],
    ),
    "impaired and resolved at once": (
        entities(entity(ID, "IMPAIRED"), entity(ID, "RESOLVED")),
        [PLANNED],
    ),
    "resolved in every form": (entities(entity(ID, "resolved"), entity(ARN, "RESOLVED")), [CLOSED]),
    "a status of an entity nobody knows": (entities(entity(ID, "DONE")), [PLANNED]),
    "a category in other letters": (health(eventTypeCategory="ScheduledChange"), [PLANNED]),
    "a category nobody knows": (health(eventTypeCategory="investigation"), ["ignored"]),
    "no category": (health(eventTypeCategory=...), ["ignored"]),
    "no code": (health(eventTypeCode=...), ["told"]),
    "a code that is a list": (health(eventTypeCode=[RETIREMENT]), ["told"]),
    "no start": (health(startTime=...), [PLANNED]),
    # What issues say.
    "a text in no list": (issue(text=spoken("Power is lost in use1-az4.")), ["zones use1-az4"]),
    "a text without its language": (issue(text="Power is lost in use1-az4."), ["zones use1-az4"]),
    "a list of plain texts": (issue(text=["Power is lost in use1-az4."]), ["zones use1-az4"]),
    "another language alone": (
        issue(text=[spoken("use1-az6 で障害が発生しています。", "ja_JP")]),
        ["zones use1-az6"],
    ),
    "healthy in another language": (
        issue(text=[spoken("use1-az6 は正常に動作しています。", "ja_JP")]),
        ["zones use1-az6"],
    ),
    "an end in another language": (
        issue(text=[spoken("Das Problem in use1-az4 wurde behoben.", "de_DE")]),
        ["zones use1-az4"],
    ),
    "two languages": (
        issue(text=[spoken("Power is lost in use1-az4."), spoken("In use1-az6 gut.", "de_DE")]),
        ["zones use1-az4"],
    ),
    "an end that lies ahead": (
        issue(text=[spoken("Power is lost in use1-az4.")], endTime="Fri, 27 Nov 2026 10:00:00 GMT"),
        ["zones use1-az4"],
    ),
    "an end that nobody can date": (
        {
            **issue(
                text=[spoken("Power is lost in use1-az4.")],
                endTime="Fri, 27 Nov 2026 10:00:00 GMT",
                lastUpdatedTime=...,
            ),
            "time": "yesterday",
        },
        ["zones use1-az4"],
    ),
    "an issue of an instance": (
        issue(affectedEntities=[entity(ID, "IMPAIRED")]),
        [f"instance_issue {ID}"],
    ),
    "a volume that is both impaired and resolved": (
        issue(
            eventTypeCode="AWS_EBS_VOLUME_LOST",
            affectedEntities=[entity("vol-1", "IMPAIRED"), entity("vol-1", "RESOLVED")],
        ),
        ["volume vol-1 lost"],
    ),
    "a shift out of a list of zones": (
        event(
            "aws.arc-zonal-shift",
            "Autoshift In Progress",
            {"metadata": {"awayFrom": ["use1-az1", "use1-az4"]}},
        ),
        ["ignored"],
    ),
    "a shift in other letters": (
        event("aws.arc-zonal-shift", "AUTOSHIFT COMPLETED", {"metadata": {"awayFrom": "use1-az1"}}),
        ["ignored"],
    ),
    **{f"status {name!r}": (health(statusCode=name), [told]) for name, told in STATUSES.items()},
    **{f"start {name!r}": (health(startTime=name), [told]) for name, told in DATES.items()},
}


def summary(found: Announcement | Ignored) -> str:
    over = " closed" if getattr(found, "closed", False) or getattr(found, "over", False) else ""
    said = "told"
    match found:
        case Interruption():
            said = "hook" if found.hook else f"{found.kind.value} {found.instance_id}"
        case VolumeNotice():
            said = f"volume {found.volume_id} {found.change.value}"
        case ZoneNotice():
            well = f" well {'+'.join(found.healthy_ids)}" if found.healthy_ids else ""
            said = f"zones {'+'.join(found.zone_ids)}{well}"
        case Ignored():
            said = f"ignored: {found.reason}"
        case _:
            assert isinstance(found, Advisory)
    return said + over


@every_case(("message", "wanted"), SHAPES.values(), ids=SHAPES)
def test_a_shape_is_read_for_what_it_says_at_worst(message: object, wanted: list[str]) -> None:
    raw = message if isinstance(message, str | bytes) else json.dumps(message)
    found = parse(raw)
    assert all(f.body for f in found)
    said = [summary(f) for f in found]
    assert len(said) == len(wanted), said
    for each, hoped in zip(said, wanted, strict=True):
        kind, _, words = hoped.partition(": ")
        assert each == hoped or (kind == "ignored" and each.startswith("ignored: ")), said
        assert words in each


@pytest.mark.parametrize("code", ["AWS_EC2_INSTANCE_ISSUE", "AWS_EC2_INSTANCE_STORE_DEGRADED"])
def test_the_beginning_of_an_issue_is_no_date_to_act_by(code: str) -> None:
    body = issue(eventTypeCode=code, affectedEntities=[entity(ID)])
    (found,) = parse(json.dumps(body))
    assert isinstance(found, Interruption)
    assert found.due_at is None
