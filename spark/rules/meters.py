"""Knows AWS's meters, and names what a line of a bill can be.

The table is meters.toml beside this module, a row a meter. A line is known by its usage type or,
in FOCUS, by its texts. Patterns find what Java's find: letters and digits are ASCII, and any end of
a line is one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from importlib import resources
from typing import Any


class Component(StrEnum):
    """What money buys, in the order the report lists it."""

    BROKER_COMPUTE = "broker compute"
    INSTANCES = "EC2 instances"
    GP3_STORAGE = "gp3 storage"
    GP3_IOPS = "gp3 IOPS"
    GP3_THROUGHPUT = "gp3 throughput"
    OTHER_VOLUMES = "other volumes"
    SNAPSHOTS = "snapshots"
    INTER_AZ = "inter-AZ transfer"
    LOAD_BALANCER = "load balancer"
    PRIVATELINK = "PrivateLink"
    NAT_GATEWAY = "NAT gateway"
    CONTROL_PLANE = "control plane"
    REPORTS = "Stillwater's reports"
    BETWEEN_REGIONS = "inter-region transfer"
    INTERNET = "internet egress"
    PUBLIC_IPV4 = "public IPv4"
    MANAGED_KAFKA = "Amazon MSK"
    SPLIT = "split cost allocation"
    OTHER = "other"
    UNREADABLE = "unreadable rows"


class Attribution(StrEnum):
    """How closely a charge's owner is known."""

    NODE_POOL = "node pool"
    CLUSTER = "cluster"
    NOBODY = "unattributed"


class Flow(StrEnum):
    """Why bytes moved, in the order the report lists it."""

    PRODUCE = "produce"
    REPLICATE = "replicate"
    CONSUME = "consume"
    UNEXPLAINED = "between zones, flow not known"
    LOAD_BALANCER_ZONES = "load balancer between zones"
    PEERING = "peering"
    LOAD_BALANCER = "load balancer"
    PRIVATELINK = "PrivateLink"


class Certainty(StrEnum):
    """How a row's money was found."""

    BILLED = "billed"
    SHARED = "shared"
    # What consumers may have fetched from other zones, of which some may have stayed in their own.
    AT_MOST = "at most"


class VolumePart(StrEnum):
    """What of a volume a meter counts; a snapshot stands for itself."""

    STORAGE = "storage"
    IOPS = "iops"
    THROUGHPUT = "throughput"
    SNAPSHOT = "snapshot"


class Easy(StrEnum):
    """What is paid for and cheap to do without, in the order in which it is looked for."""

    EXTENDED_SUPPORT = "extended support of EKS versions"
    IDLE_RESERVATION = "capacity reservations that nothing runs in"
    UNUSED_COMMITMENT = "commitments that nothing uses"
    IDLE_IPV4 = "public IPv4 addresses of nothing"
    OLD_VOLUMES = "io1 and io2 volumes"
    GP2_VOLUMES = "gp2 volumes"
    SNAPSHOTS = "snapshots"
    NAT_BYTES = "bytes through NAT gateways"
    CROSS_ZONE_LB = "load balancers' bytes between zones"
    PUBLIC_IPV4 = "public IPv4 addresses in use"
    INTERNET = "bytes to the internet"


FILE = "meters.toml"
# Different texts that are remembered: more than a bill has meters, and little memory.
REMEMBERED = 1 << 16
_LINE_ENDS = re.compile(r"\r\n|[\r\x85\u2028\u2029]")


@cache
def pattern(text: str) -> re.Pattern[str]:
    """Return a pattern whose letters and digits are ASCII, as Java's are.

    A word ends where no letter of any language follows, as in Java 17.
    """
    return re.compile(text.replace(r"\b", r"(?u:\b)"), re.ASCII)


def search(wanted: re.Pattern[str] | None, text: str | None) -> re.Match[str] | None:
    """Return where a pattern is found in a text, if both are there."""
    if wanted is None or text is None:
        return None
    return wanted.search(_LINE_ENDS.sub("\n", text))


def is_found(wanted: re.Pattern[str] | None, text: str | None) -> bool:
    """Say whether a pattern is found in a text: false where either is missing."""
    return search(wanted, text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """One row of the table, its columns as meters.toml explains them."""

    example: str
    usage_type: re.Pattern[str]
    service: re.Pattern[str] | None = None
    unit: re.Pattern[str] | None = None
    description: re.Pattern[str] | None = None
    component: Component | None = None
    flow: Flow | None = None
    volume_part: VolumePart | None = None
    easy: Easy | None = None
    easy_description: re.Pattern[str] | None = None
    easy_operation: re.Pattern[str] | None = None

    @property
    def is_of_service(self) -> bool:
        """Say whether all that the service sells is this meter's."""
        return self.service is not None and self.description is None

    def is_saved(
        self, usage_type: str | None, operation: str | None, description: str | None
    ) -> bool:
        """Say whether a line is what `easy` finds."""
        if self.easy_operation is not None and not is_found(self.easy_operation, operation):
            return False
        if usage_type is None:
            return is_found(self.easy_description, description)
        return is_found(self.usage_type, usage_type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Why bytes crossed zones, and by what that is known."""

    flow: Flow
    usage_type: re.Pattern[str] | None = None
    operation: re.Pattern[str] | None = None
    resource_id: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Special:
    """What a line says by one of its texts, whatever component the others make it."""

    split: re.Pattern[str]
    split_operations: frozenset[str]
    idle: re.Pattern[str]
    auto_mode: re.Pattern[str]
    emr: re.Pattern[str]
    free_where_unpriced: re.Pattern[str]


# How a column of the table is read; every other one is a pattern.
_KINDS: Mapping[str, Any] = {
    "example": str,
    "component": Component,
    "flow": Flow,
    "volume_part": VolumePart,
    "easy": Easy,
    "split_operations": frozenset,
}


def _columns(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _KINDS.get(name, pattern)(value) for name, value in row.items()}


_TABLE = tomllib.loads((resources.files(__package__) / FILE).read_text(encoding="utf-8"))
METERS = tuple(Meter(**_columns(row)) for row in _TABLE["meters"])
FLOWS = {m.component.value: m.flow for m in METERS if m.component and m.flow}
MOVED = tuple(Moved(**_columns(row)) for row in _TABLE["moved"])
SPECIAL = Special(**_columns(_TABLE["special"]))


def component_meter(
    usage_type: str | None, service: str | None, unit: str | None, description: str | None
) -> Meter | None:
    """Return the first meter with a component that knows a line, if any."""
    in_doubt, known = _candidates(usage_type, service, unit)
    described = (meter for meter in in_doubt if is_found(meter.description, description))
    return next(described, known)


@lru_cache(REMEMBERED)
def _candidates(
    usage_type: str | None, service: str | None, unit: str | None
) -> tuple[tuple[Meter, ...], Meter | None]:
    """Return the meters that a description decides about, and the one after them that is known.

    Descriptions are of many kinds, and one after the other would be held against every meter.
    """
    in_doubt: list[Meter] = []
    for meter in METERS:
        if meter.component is None:
            continue
        is_sold = is_found(meter.service, service)
        if is_found(meter.usage_type, usage_type) or (is_sold and meter.is_of_service):
            return tuple(in_doubt), meter
        if is_sold and is_found(meter.unit, unit):
            in_doubt.append(meter)
    return tuple(in_doubt), None


@lru_cache(REMEMBERED)
def billed_part(usage_type: str) -> VolumePart | None:
    """Return the part of a volume that a usage type counts, if any."""
    parts = (meter.volume_part for meter in METERS if is_found(meter.usage_type, usage_type))
    return next(filter(None, parts), None)


@lru_cache(REMEMBERED)
def easy_finding(
    usage_type: str | None, operation: str | None, description: str | None
) -> Easy | None:
    """Return the first of Easy that a line is, if any."""
    texts = usage_type, operation, description
    found = {meter.easy for meter in METERS if meter.easy is not None and meter.is_saved(*texts)}
    return next((easy for easy in Easy if easy in found), None)


def moved_between_zones(
    usage_type: str | None, operation: str | None, resource_id: str | None
) -> Flow:
    """Return why bytes crossed zones, where a line says it."""
    for reason in MOVED:
        if (
            is_found(reason.usage_type, usage_type)
            or is_found(reason.operation, operation)
            or is_found(reason.resource_id, resource_id)
        ):
            return reason.flow
    return Flow.UNEXPLAINED
