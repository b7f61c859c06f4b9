"""Unwraps a queue message, asks the reader of its source, and doubts what cannot be true any more.

Buses may forward to each other, archives be replayed and dead letters redriven: what arrives may be
another account's, another region's, or long over. Such a word is told, and nothing is done for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from core.events import health, instances
from core.events.announcements import (
    ISSUES,
    URGENT,
    Advisory,
    Announcement,
    Envelope,
    Ignored,
    Interruption,
    Kind,
)
from core.ground.fields import Fields, digest, display_text, readable, text
from core.ground.window import clock

# SNS may deliver to SNS's own wrapper once more (topic -> queue -> topic); deeper is not a message.
DEEPEST_WRAPPING = 3
# SQS and EventBridge carry no longer message; the ledger's items may have 400 KB.
LONGEST_BODY_BYTES = 1_048_576
LONGEST_KEPT = 16_384
BYTE_ORDER_MARK = "\ufeff"

_Reader = Callable[[Envelope], Iterable[Announcement | Ignored]]
_READERS: Mapping[str, _Reader] = {
    "aws.autoscaling": instances.read,
    "aws.ec2": instances.read_instance,
    "aws.health": health.read,
    "aws.arc-zonal-shift": instances.read_zonal_shift,
    "aws.cloudwatch": instances.read_alarm,
}


def parse(raw: str | bytes) -> tuple[Announcement | Ignored, ...]:
    """Read one queue message: at least one result, one per affected instance; never raises.

    >>> [type(found).__name__ for found in parse(b"not json")]
    ['Ignored']
    """
    body = readable(raw).removeprefix(BYTE_ORDER_MARK)
    size = len(body.encode())
    if size > LONGEST_BODY_BYTES:
        return (_too_long(body, size),)
    for _ in range(DEEPEST_WRAPPING):
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            # ValueError also covers an integer of more digits than Python converts.
            return (Ignored("The message is not readable JSON.", body),)
        if not isinstance(message, dict):
            return (Ignored("The message is not a JSON object.", body),)
        wrapped = message.get("Message")
        if not isinstance(wrapped, str) or "detail" in message or "LifecycleTransition" in message:
            return tuple(_read(message, body))
        kind = text(message, "Type")
        if kind in {"SubscriptionConfirmation", "UnsubscribeConfirmation"}:
            return (Ignored(f"SNS sent a {kind}, which announces nothing.", body),)
        body = readable(wrapped)
    return (Ignored(f"The message is wrapped more than {DEEPEST_WRAPPING} times.", body),)


def _too_long(body: str, size: int) -> Advisory:
    """Tell of a message that nothing should be able to send: it may be an announcement.

    Its beginning is kept: enough to see whose it is, and never more than a store accepts.
    """
    event_id = digest(body)
    return Advisory(
        sentence=(
            f"A message has {size} bytes, and SQS carries {LONGEST_BODY_BYTES} at most: it was not "
            f"read. It begins with {display_text(body)}."
        ),
        event_id=event_id,
        dedupe_key=f"advisory:too-long:{event_id}",
        account=None,
        region=None,
        occurred_at=None,
        body=body[:LONGEST_KEPT],
    )


def _read(message: Fields, body: str) -> Iterable[Announcement | Ignored]:
    source, detail = text(message, "source"), message.get("detail")
    if source is None:
        # Sent by the group itself: frame and detail are one.
        return [instances.action(Envelope(message, message, body))]
    if not isinstance(detail, dict):
        return [Envelope(message, {}, body).says("carries no detail.")]
    envelope = Envelope(message, detail, body)
    reader = _READERS.get(source)
    if reader is None:
        return [envelope.says("is not an announcement about a node.")]
    return reader(envelope)


# Health's name for a region where an event is nobody's region's; it is delivered in us-east-1.
GLOBAL = "global"
# EC2 warns two minutes ahead. EventBridge and SQS may be late; by then the instance would be gone.
OLDEST_WARNING_SECONDS = 600.0
# What is wrong with a machine is said again, or found by the sweep.
OLDEST_ISSUE_SECONDS = 7 * 86_400.0
# A date that AWS gave may slip by days; what is still planned stands on EC2's list, too.
OLDEST_SCHEDULE_SECONDS = 7 * 86_400.0
SPOT = "spot"


@dataclass(frozen=True, slots=True)
class Home:
    """The account and region whose announcements count here."""

    account: str
    region: str

    @classmethod
    def from_queue_arn(cls, queue_arn: str | None) -> Home | None:
        """Read them from our own queue's ARN, which SQS puts into every record.

        >>> Home.from_queue_arn("arn:aws:sqs:us-east-1:123456789012:prod-orders-events")
        Home(account='123456789012', region='us-east-1')
        """
        parts = (queue_arn or "").split(":")
        usable = len(parts) == 6 and parts[2] == "sqs" and parts[3] and parts[4]
        return cls(account=parts[4], region=parts[3]) if usable else None


def foreign(found: Announcement, home: Home | None) -> str | None:
    """Say why an announcement is another's; None: it is ours, or says nothing of it.

    Health's own rules are kept by the parser: an event counts for the account it affects and the
    region it happens in, wherever it was delivered, the backup region included.
    """
    if home is None:
        return None
    if found.account is not None and found.account != home.account:
        return f"It is about account {found.account}, and this is {home.account}."
    if found.region is not None and found.region.lower() not in {home.region, GLOBAL}:
        return f"It is about region {found.region}, and this is {home.region}."
    return None


def doubt(found: Interruption, market: str | None, now: float) -> str | None:
    """Say why an announcement about an instance cannot be true any more; None: it can.

    `market` is EC2's word for how the instance was bought; None: it is not known.
    """
    if found.kind in URGENT:
        return _doubted_warning(found, market, now)
    if found.kind is Kind.SCHEDULED_CHANGE:
        return _doubted_schedule(found, now)
    age = now - found.said_at(now)
    if found.kind in ISSUES and not found.closed and age > OLDEST_ISSUE_SECONDS:
        return f"{_event_name(found)} is from {clock(found.said_at(now))}: it was replayed."
    return None


def _doubted_warning(found: Interruption, market: str | None, now: float) -> str | None:
    if found.kind is Kind.SPOT_INTERRUPTION and market not in {None, SPOT}:
        return f"{_event_name(found)} is a spot warning, and EC2 calls the instance {market}."
    said_at = found.announced_at(now)
    latest = max(said_at, found.due_at or said_at)
    if now - latest > OLDEST_WARNING_SECONDS:
        return (
            f"{_event_name(found)} is from {clock(said_at)}, and the instance still stands: a "
            "warning is two minutes old at most."
        )
    return None


def _doubted_schedule(found: Interruption, now: float) -> str | None:
    """Doubt a change whose date and last word are both long past; AWS repeats what it means."""
    said_at = found.said_at(now)
    latest = max(said_at, found.due_at or said_at)
    if found.closed or now - latest <= OLDEST_SCHEDULE_SECONDS:
        return None
    return (
        f"{_event_name(found)} is from {clock(said_at)}, for {clock(found.due_at or said_at)}: it "
        "was replayed, and EC2's own list of planned events says what still stands."
    )


def _event_name(found: Interruption) -> str:
    return f"The {found.kind.value} of instance {found.instance_id}"
