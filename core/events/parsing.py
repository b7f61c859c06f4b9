"""Unwraps a queue message and asks the reader of its source."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from core.events import alarms, groups, health, instances, lifecycle, zones
from core.events.announcements import Advisory, Announcement, Ignored
from core.events.envelope import Envelope
from core.fields import Fields, digest, display_text, readable, text

# SNS may deliver to SNS's own wrapper once more (topic -> queue -> topic); deeper is not a message.
DEEPEST_WRAPPING = 3
# SQS and EventBridge carry no longer message; the ledger's items may have 400 KB.
LONGEST_BODY_BYTES = 1_048_576
LONGEST_KEPT = 16_384
BYTE_ORDER_MARK = "\ufeff"

_Reader = Callable[[Envelope], Iterable[Announcement | Ignored]]
_READERS: Mapping[str, _Reader] = {
    "aws.autoscaling": groups.read,
    "aws.ec2": instances.read,
    "aws.health": health.read,
    "aws.arc-zonal-shift": zones.read,
    "aws.cloudwatch": alarms.read,
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
        return [lifecycle.action(Envelope(message, message, body))]
    if not isinstance(detail, dict):
        return [Envelope(message, {}, body).says("carries no detail.")]
    envelope = Envelope(message, detail, body)
    reader = _READERS.get(source)
    if reader is None:
        return [envelope.says("is no announcement about a node.")]
    return reader(envelope)
