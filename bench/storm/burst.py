"""A bad quarter of an hour of one account: what AWS would announce about 200 instances at once.

Pure: instances in, messages out, the same for the same seed. Every message says what it is about,
so that a reader of the outcome need not trust the parser that was measured.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

ACCOUNT, REGION = "123456789012", "us-east-1"
# A warning counts for minutes: a storm happens now.
TIME = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
NOBODY: frozenset[str] = frozenset()
# What no queue of AWS should ever carry, and some day does.
POISON = (
    "not json",
    "[]",
    "null",
    '{"source": "aws.ec2", "detail": {',
    '{"source": "aws.ec2", "detail-type": 7, "detail": "\\u0000"}',
    "[" * 5000,
)


@dataclass(frozen=True, slots=True)
class Member:
    """An instance of the cluster's groups."""

    id: str
    zone: str
    group: str
    node: str


@dataclass(frozen=True, slots=True)
class BurstMessage:
    """One message of the burst."""

    kind: str
    body: str
    # Instances that leave according to it, and so need an incident, or a drain.
    leaving: frozenset[str] = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Which instances meet which fate."""

    terminated: Sequence[Member]
    spot: Sequence[Member]
    retired: Sequence[Member]
    stopped: Sequence[Member]
    advised: Sequence[Member]  # rebalance recommendations, and nothing after them
    untouched: Sequence[Member]  # what is said of them looks like a termination, and is none

    @classmethod
    def split(cls, members: Sequence[Member]) -> Shares:
        """Share out instances: a fifth terminated, a fifth spot, 35 in 100 retired, ..."""
        bounds = [round(share * len(members)) for share in (0, 0.2, 0.4, 0.75, 0.87, 0.97, 1)]
        names = ("terminated", "spot", "retired", "stopped", "advised", "untouched")
        return cls(
            **{
                name: members[start:end]
                for name, start, end in zip(names, bounds, bounds[1:], strict=False)
            }
        )

    @property
    def leaving(self) -> frozenset[str]:
        """Every instance that somebody must answer for."""
        groups = (self.terminated, self.spot, self.retired, self.stopped)
        return frozenset(m.id for group in groups for m in group)


def burst(
    shares: Shares, lifecycle_events: Mapping[str, str], *, size: int, seed: int
) -> list[BurstMessage]:
    """Return `size` messages: every distinct one, then deliveries of some again, in any order.

    `lifecycle_events` are the bodies that the groups themselves sent, by instance.
    """
    luck = random.Random(seed)  # noqa: S311 - a bench's order, which is to repeat
    ids = _ids(luck)
    distinct = [
        *(
            BurstMessage("terminate hook", lifecycle_events[m.id], _one(m))
            for m in shares.terminated
        ),
        *(_state(ids, m, "shutting-down") for m in shares.terminated),
        *(message for m in shares.spot for message in _spot(ids, m)),
        *_health(ids, shares.retired),
        *(_state(ids, m, state) for m in shares.stopped for state in ("stopping", "stopped")),
        *(_advice(ids, m) for m in shares.advised),
        *(_look_alike(ids, number, m) for number, m in enumerate(shares.untouched)),
        *_about_no_instance(ids, shares),
        *(BurstMessage("poison", body) for body in POISON),
    ]
    again = [message for message in distinct if message.kind != "poison"]
    messages = distinct + luck.choices(again, k=size - len(distinct))
    luck.shuffle(messages)
    return messages


def retirement(member: Member, event_id: str) -> str:
    """Return a retirement that AWS hurries: its replacement is to begin at once."""
    detail = _health_detail("AWS_EC2_INSTANCE_RETIREMENT_EXPEDITED", event_id, [_arn(member)])
    return _event("aws.health", "AWS Health Event", event_id, detail)


def _one(member: Member) -> frozenset[str]:
    return frozenset({member.id})


def _ids(luck: random.Random) -> Iterator[str]:
    while True:
        yield str(uuid.UUID(int=luck.getrandbits(128), version=4))


def _event(source: str, detail_type: str, event_id: str, detail: Any, **fields: Any) -> str:
    frame = {
        "version": "0",
        "id": event_id,
        "detail-type": detail_type,
        "source": source,
        "account": ACCOUNT,
        "time": TIME,
        "region": REGION,
        "resources": [],
        "detail": detail,
    }
    return json.dumps(frame | fields)


def _arn(member: Member) -> str:
    return f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{member.id}"


def _state(ids: Iterator[str], member: Member, state: str) -> BurstMessage:
    detail = {"instance-id": member.id, "state": state}
    kind = "EC2 Instance State-change Notification"
    body = _event("aws.ec2", kind, next(ids), detail, resources=[_arn(member)])
    return BurstMessage("state change", body, _one(member))


def _advice(ids: Iterator[str], member: Member) -> BurstMessage:
    kind = "EC2 Instance Rebalance Recommendation"
    detail = {"instance-id": member.id}
    return BurstMessage("rebalance", _event("aws.ec2", kind, next(ids), detail))


def _spot(ids: Iterator[str], member: Member) -> Iterator[BurstMessage]:
    yield _advice(ids, member)
    kind = "EC2 Spot Instance Interruption Warning"
    detail = {"instance-id": member.id, "instance-action": "terminate"}
    yield BurstMessage("spot", _event("aws.ec2", kind, next(ids), detail), _one(member))
    yield _state(ids, member, "shutting-down")


def _health_detail(code: str, communication: str, entities: Sequence[str]) -> dict[str, Any]:
    return {
        "eventArn": f"arn:aws:health:{REGION}::event/{code}_{communication}",
        "service": "EC2",
        "eventTypeCode": code,
        "eventTypeCategory": "scheduledChange",
        "eventScopeCode": "ACCOUNT_SPECIFIC",
        "communicationId": communication,
        "startTime": "Thu, 27 Aug 2026 13:19:03 GMT",
        "lastUpdatedTime": "Tue, 27 Jan 2026 01:43:21 GMT",
        "statusCode": "open",
        "eventRegion": REGION,
        "eventDescription": [{"language": "en_US", "latestDescription": "Degraded hardware."}],
        "affectedEntities": [{"entityValue": entity, "status": "PENDING"} for entity in entities],
        "affectedAccount": ACCOUNT,
        "page": "1",
        "totalPages": "1",
        "backupEvent": "false",
    }


def _health(ids: Iterator[str], retired: Sequence[Member]) -> Iterator[BurstMessage]:
    """Yield four events with many entities, two by id and two by ARN, each with a copy."""
    quarter = -(-len(retired) // 4)
    for number in range(4):
        some = retired[number * quarter : (number + 1) * quarter]
        by_arn = number % 2 == 1
        entities = [_arn(m) if by_arn else m.id for m in some]
        communication = next(ids)
        detail = _health_detail("AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", communication, entities)
        resources = [] if by_arn else entities
        for copy in (False, True):
            changes = {"backupEvent": "true"} if copy else {}
            body = _event(
                "aws.health",
                "AWS Health Event",
                next(ids),
                detail | changes,
                resources=resources,
                region="us-west-2" if copy else REGION,
            )
            kind = "health, by ARN" if by_arn else "health, by id"
            yield BurstMessage(kind, body, frozenset(m.id for m in some))


def _look_alike(ids: Iterator[str], number: int, member: Member) -> BurstMessage:
    """Return a lifecycle action that takes no node away: to a warm pool, or of its root volume."""
    detail = {
        "LifecycleActionToken": next(ids),
        "AutoScalingGroupName": member.group,
        "LifecycleHookName": "drain",
        "EC2InstanceId": member.id,
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "Origin": "AutoScalingGroup",
    }
    detail |= (
        {"Destination": "WarmPool"}
        if number % 2
        else {"Destination": "AutoScalingGroup", "Action": "ReplaceRootVolume"}
    )
    kind = "EC2 Instance-terminate Lifecycle Action"
    return BurstMessage("look-alike", _event("aws.autoscaling", kind, next(ids), detail))


def _about_no_instance(ids: Iterator[str], shares: Shares) -> Iterator[BurstMessage]:
    """Yield what a volume, a zone or a group has to say, and what others' instances do."""
    detail: dict[str, Any]
    for number in range(10):
        arn = f"arn:aws:ec2:{REGION}:{ACCOUNT}:volume/vol-{number:017x}"
        detail = {"result": "completed", "cause": "", "event": "modifyVolume"}
        body = _event("aws.ec2", "EBS Volume Notification", next(ids), detail, resources=[arn])
        yield BurstMessage("volume", body)
    for member in shares.terminated[:20]:
        detail = {
            "StatusCode": "InProgress",
            "AutoScalingGroupName": member.group,
            "ActivityId": next(ids),
            "EC2InstanceId": f"i-{next(ids).replace('-', '')[:17]}",
            "Details": {"Availability Zone": member.zone},
            "Cause": "a difference between desired and actual capacity",
        }
        kind = "EC2 Instance Launch Successful"
        yield BurstMessage("group", _event("aws.autoscaling", kind, next(ids), detail))
    for kind in ("Autoshift In Progress", "Practice Run Started", "Autoshift Completed"):
        detail = {"version": "0.0.1", "data": "", "metadata": {"awayFrom": "use1-az2"}}
        yield BurstMessage("zone", _event("aws.arc-zonal-shift", kind, next(ids), detail))
    for _ in range(8):
        stranger = Member(f"i-{next(ids).replace('-', '')[:17]}", "", "", "")
        body = _state(ids, stranger, "terminated").body
        yield BurstMessage("another's instance", body)
