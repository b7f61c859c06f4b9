"""Facts of the account and region around a cluster that somebody else made, as AWS tells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """A subnet in which nodes of Kafka stand, or would start."""

    zone: str
    # As AWS names the zone in every account: eun1-az1.
    zone_id: str
    free_addresses: int
    vpc: str = ""
    ipv6_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """How what stands in a subnet leaves its VPC: by the default route of its table."""

    table: str
    # What the route leads to: nat-0a1b, igw-0a1b, tgw-0a1b; None: there is no such route.
    target: str | None = None
    # What it leads to is no more.
    gone: bool = False
    # Of a NAT gateway that stands in one zone.
    nat_zone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VpcEndpoint:
    """A way from a VPC to one of AWS's services: ec2, ecr.api, s3."""

    vpc: str
    service: str
    available: bool = True
    # Of one that is a route: the tables that have it; None: every subnet of the VPC reaches it.
    tables: frozenset[str] | None = None

    def reached_from(self, subnet: Subnet, way: WayOut) -> bool:
        inside = self.available and self.vpc == subnet.vpc
        return inside and (self.tables is None or way.table in self.tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionKey:
    """A key of KMS's under which Kafka's disks, or root volumes of its machines, are encrypted."""

    # Enabled, or why it decrypts nothing: Disabled, PendingDeletion, Unavailable; gone.
    state: str = "Enabled"
    deleted_on: str | None = None
    # Whom its policy and its grants name; None: not asked, as of AWS's own key.
    users: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A volume as EBS describes it."""

    type: str
    gib: float
    state: str = "in-use"
    multi_attach: bool = False
    # The ARN of the key that it is encrypted under.
    key: str | None = None
    # Machine -> whether it is attached there: attaching, attached, detaching, busy.
    attached: Mapping[str, str] = field(default_factory=dict)
    # How far its last modification is, where that is not over: modifying, optimizing, failed.
    change: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountQuota:
    """How much of something the account may have in this region, and has."""

    # Service Quotas' name of it.
    name: str
    service: str
    limit: float
    used: float

    @property
    def left(self) -> float:
        return self.limit - self.used


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """An EKS cluster as EKS describes it, with how long its version is supported."""

    name: str
    arn: str
    version: str
    status: str = "ACTIVE"
    # STANDARD_SUPPORT, EXTENDED_SUPPORT or UNSUPPORTED; None: EKS lists no such version.
    support: str | None = "STANDARD_SUPPORT"
    # Epoch seconds; None where EKS names no day.
    standard_ends: float | None = None
    extended_ends: float | None = None
    # What follows standard support: STANDARD, an upgrade by AWS; EXTENDED, a dearer year.
    policy: str | None = None
    ipv6: bool = False
    # Its API server has an address in the VPC; None: EKS does not say.
    private: bool | None = None
    # How callers are known: API, API_AND_CONFIG_MAP or CONFIG_MAP; None: EKS does not say.
    authentication: str | None = None
    # What EKS says is wrong with it: code and message.
    issues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight:
    """What EKS has found that an upgrade of a cluster would meet."""

    name: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shiftable:
    """A resource that ARC knows: where it is shifted away from, and whether AWS may do that."""

    arn: str
    # Zone, by its name or id, -> who shifted it and until when.
    shifted: Mapping[str, str]
    autoshift: bool = False

    @property
    def name(self) -> str:
        """Return what the resource is called: the end of its ARN."""
        return self.arn.rpartition(":")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthEvent:
    """An event of AWS Health's that is open or to come; `entities` are the resources it names."""

    code: str
    service: str
    # issue, investigation or scheduledChange.
    category: str
    place: str
    begins: str
    entities: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsHealth:
    """What AWS Health tells this account; without a plan of Support's it tells nothing."""

    events: tuple[HealthEvent, ...] = ()
    without_plan: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetGroup:
    """A target group that a binding sends pods of Kafka to."""

    name: str
    balancers: tuple[str, ...] = ()
    deregistration_seconds: int = 300
    # What becomes of connections: when that delay is over, and when a target is unhealthy.
    ends_deregistered: bool = False
    ends_unhealthy: bool = True
    preserves_client_ip: bool = False
    cross_zone: bool = False
    network: bool = True
