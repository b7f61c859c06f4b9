"""Rotation asks Kafka: may this node go, is it back, who goes next, and what a whole run does.

views        one reading of Kafka
consent      may this node go; refusals name the partition or voter
presence     is it back for good
lease        who may take a node out

core.incidents asks the first four for every instance that leaves, whoever sends it away.
"""

from __future__ import annotations

from core.rotation.consent import may_leave
from core.rotation.lease import (
    Lease,
    LeaseDecision,
    companions,
    grant,
    in_the_way,
    release,
    valid_holder,
)
from core.rotation.presence import is_back, returned
from core.rotation.views import (
    ClusterView,
    PartitionView,
    Verdict,
    VoterView,
)

__all__ = [
    "ClusterView",
    "Lease",
    "LeaseDecision",
    "PartitionView",
    "Verdict",
    "VoterView",
    "companions",
    "grant",
    "in_the_way",
    "is_back",
    "may_leave",
    "release",
    "returned",
    "valid_holder",
]
