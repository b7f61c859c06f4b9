"""Decides by its code what a scheduled change means for an instance: one table, nothing guessed.

A code that is not in the table tells a person and never replaces anything: AWS announces more under
this category than the end of machines, a planned lifecycle event of EC2 for example, which asks
every owner to act and names every instance.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class ChangeResponse(StrEnum):
    """What becomes of an instance that a scheduled change names."""

    RETIRE = "retire"  # replaced in a maintenance window before AWS's date
    RIDE_THROUGH = "ride_through"  # AWS gives it back: leaders move away meanwhile
    TELL = "tell"  # a person decides


_RETIRED = (
    "INSTANCE_RETIREMENT_SCHEDULED",
    "INSTANCE_RETIREMENT_EXPEDITED",
    "PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
    "PERSISTENT_INSTANCE_RETIREMENT_EXPEDITED",
    "INSTANCE_STOP_SCHEDULED",
    "INSTANCE_TERMINATION_SCHEDULED",
    "DEDICATED_HOST_RETIREMENT_SCHEDULED",
    "DEDICATED_HOST_ACCESSREVOKED_RETIREMENT_SCHEDULED",
)
_RIDDEN_THROUGH = (
    "INSTANCE_REBOOT_MAINTENANCE_SCHEDULED",
    "INSTANCE_REBOOT_FLEXIBLE_MAINTENANCE_SCHEDULED",
    "SYSTEM_REBOOT_MAINTENANCE_SCHEDULED",
    "INSTANCE_NETWORK_MAINTENANCE_SCHEDULED",
    "INSTANCE_POWER_MAINTENANCE_SCHEDULED",
    "PERSISTENT_INSTANCE_POWER_MAINTENANCE_SCHEDULED",
    "DEDICATED_HOST_NETWORK_MAINTENANCE_SCHEDULED",
    "DEDICATED_HOST_POWER_MAINTENANCE_SCHEDULED",
)
# Known, and a person's business: when to move to another version or instance type, what to do about
# a volume, and what AWS does to software and hosts that it does not name an end for.
_TOLD = (
    "AWS_EC2_PLANNED_LIFECYCLE_EVENT",
    "AWS_EBS_PLANNED_LIFECYCLE_EVENT",
    "AWS_EKS_PLANNED_LIFECYCLE_EVENT",
)
CODES: Mapping[str, ChangeResponse] = {
    **{f"AWS_EC2_{code}": ChangeResponse.RETIRE for code in _RETIRED},
    **{f"AWS_EC2_{code}": ChangeResponse.RIDE_THROUGH for code in _RIDDEN_THROUGH},
    **dict.fromkeys(_TOLD, ChangeResponse.TELL),
}


def answer_to(code: str | None) -> ChangeResponse:
    """Return what a scheduled change of this code asks for; of one that is not known: tell.

    >>> [answer_to(c).value for c in ("aws_ec2_instance_stop_scheduled", "AWS_EC2_NEW", None)]
    ['retire', 'tell', 'tell']
    """
    return CODES.get((code or "").strip().upper(), ChangeResponse.TELL)
