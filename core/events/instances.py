"""aws.ec2: two-minute warnings, recommendations and state changes; volumes are read apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from core.events import volumes
from core.events.announcements import Advisory, Ignored, Interruption, Kind, VolumeNotice
from core.events.envelope import Envelope
from core.fields import display_text, epoch, instance_in, text

LEAVING_STATES = frozenset({"stopping", "stopped", "shutting-down", "terminated"})
STAYING_STATES = frozenset({"pending", "running"})


class Notice(NamedTuple):
    """What an announcement about one instance is, and the name of the rule that lets it through."""

    kind: Kind
    rule: str


NOTICES = {
    "EC2 Spot Instance Interruption Warning": Notice(Kind.SPOT_INTERRUPTION, "spot"),
    "EC2 Capacity Reservation Instance Interruption Warning": Notice(
        Kind.CAPACITY_RESERVATION, "capacity-reservation"
    ),
    "EC2 Instance Rebalance Recommendation": Notice(Kind.REBALANCE, "rebalance"),
    "EC2 Instance State-change Notification": Notice(Kind.STATE_CHANGE, "state-change"),
}
# AWS's pages name it both ways. Forty minutes before a block ends; its instances go from half an
# hour before.
BLOCK_EXPIRES = (
    "Capacity Block Expiration Warning",
    "Capacity Block Reservation Expiration Warning",
)


def read(envelope: Envelope) -> Iterator[Interruption | VolumeNotice | Advisory | Ignored]:
    if envelope.detail_type == volumes.DETAIL_TYPE:
        yield from volumes.read(envelope)
    elif (notice := NOTICES.get(envelope.detail_type or "")) is not None:
        yield _notice(envelope, notice.kind)
    elif envelope.detail_type in BLOCK_EXPIRES:
        yield _block_expires(envelope)
    else:
        yield envelope.says("is no announcement about a node.")


def _block_expires(envelope: Envelope) -> Advisory:
    """Tell of a capacity block that ends: it names a reservation, and no instance."""
    reservation = text(envelope.detail, "capacity-reservation-id")
    ends = text(envelope.detail, "end-date")
    named = display_text(reservation or next(iter(envelope.resources), None))
    return Advisory(
        sentence=(
            f"Capacity block {named} ends at {display_text(ends)}; EC2 terminates its instances "
            "in the "
            f"half hour before. Rotate brokers off them now."
        ),
        dedupe_key=":".join(("advisory", "capacity-block", reservation or envelope.event_id)),
        **envelope.identity,
    )


def _notice(envelope: Envelope, kind: Kind) -> Interruption | Ignored:
    detail = envelope.detail
    # The reservation's page shows the id in `instance-id` and the ARN in `resources`, as text.
    named = (detail.get("instance-id"), *envelope.resources)
    instance_id = next((found for value in named if (found := instance_in(value))), None)
    if instance_id is None:
        return envelope.says("names no instance in instance-id.")
    state = (text(detail, "state") or "").strip().lower() if kind is Kind.STATE_CHANGE else None
    if state in STAYING_STATES:
        return envelope.ignored(
            f"Instance {instance_id} is {display_text(state)}: it is not leaving."
        )
    if state is not None and state not in LEAVING_STATES:
        return envelope.ignored(
            f"Instance {instance_id} is {display_text(state)}, a state that nobody knows; the "
            "sweep asks "
            f"EC2 for its own."
        )
    return Interruption(
        kind=kind,
        instance_id=instance_id,
        dedupe_key=":".join((kind, instance_id, envelope.event_id)),
        instance_state=state,
        due_at=epoch(detail.get("instance-termination-time")),
        **envelope.identity,
    )
