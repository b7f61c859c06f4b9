"""Finds, in EC2's lists, trouble beside the instances: volumes, status checks, planned events.

handlers.adapters.inventory reads them; core.incidents.sweep and handlers.incidents.notices decide
by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.naming import CLUSTER_TAG, ENVIRONMENT_TAG

# The EBS CSI driver's own tags: which claim a volume was made for.
CLAIM_TAG = "kubernetes.io/created-for/pvc/name"
# What EC2 calls a planned event -> Health's code for it, which is what decisions know.
HEALTH_CODES: Mapping[str, str] = {
    "instance-reboot": "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED",
    "system-reboot": "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED",
    "system-maintenance": "AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED",
    "instance-retirement": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
    "instance-stop": "AWS_EC2_INSTANCE_STOP_SCHEDULED",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EbsVolume:
    """One EBS volume and where it is attached."""

    volume_id: str
    instance_id: str | None
    zone: str
    tags: Mapping[str, str] = field(default_factory=dict)

    def belongs_to(self, prefix: str) -> bool:
        """Say whether the volume was made for this cluster of this environment."""
        environment, cluster = self.tags.get(ENVIRONMENT_TAG), self.tags.get(CLUSTER_TAG)
        return f"{environment}-{cluster}" == prefix

    @property
    def pod(self) -> str | None:
        """Return the Kafka pod whose claim the volume fills: data-0-orders-broker-a-10."""
        kind, _, rest = self.tags.get(CLAIM_TAG, "").partition("-")
        number, _, pod = rest.partition("-")
        return pod if kind == "data" and number.isdecimal() and pod else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledEvent:
    """What EC2 plans for an instance; `code` is EC2's, not Health's."""

    event_id: str
    code: str  # instance-retirement, instance-stop, system-reboot, ...
    description: str
    not_before: float | None  # epoch seconds

    @property
    def over(self) -> bool:
        """Say whether it is done or called off; EC2 keeps showing it for a week."""
        return self.description.startswith(("[Completed]", "[Canceled]"))

    @property
    def health_code(self) -> str:
        """Return Health's code for it, which is what decisions know."""
        return HEALTH_CODES.get(self.code, self.code)

    def name(self, last_word_at: float | None) -> str:
        """Name what the list says of it, so that a moved start is news, and a repetition is not.

        AWS may call it off and schedule it again: then it follows on another last word.
        """
        start = "" if self.not_before is None else f"{self.not_before:.0f}"
        after = "" if last_word_at is None else f" after {last_word_at:.0f}"
        state = "closed" if self.over else "open"
        return ":".join((self.event_id, self.code, start, state)) + after


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """EC2's checks of one running instance, and what is scheduled for it."""

    instance_id: str
    events: tuple[ScheduledEvent, ...] = ()
    # Check (system, instance, attached EBS) -> since when it has failed, epoch seconds.
    impaired: Mapping[str, float] = field(default_factory=dict)
