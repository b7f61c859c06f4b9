"""Holds what a cluster takes of an account, and what the account says of itself.

What could not be asked is an Unknown, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.ground.fields import Unknown

# What is called while the layers are made: one action per way in which a policy tends to refuse.
ACTIONS = (
    *("ec2:CreateVpc", "ec2:AllocateAddress", "ec2:CreateSecurityGroup", "ec2:RunInstances"),
    *("eks:CreateCluster", "eks:CreateAddon", "iam:CreateRole", "iam:PassRole"),
    *("iam:CreateServiceLinkedRole", "autoscaling:CreateAutoScalingGroup"),
    *("autoscaling:PutLifecycleHook", "elasticloadbalancing:CreateLoadBalancer"),
    *("lambda:CreateFunction", "sqs:CreateQueue", "dynamodb:CreateTable", "events:PutRule"),
    *("kms:CreateKey", "logs:CreateLogGroup", "cloudwatch:PutMetricAlarm", "s3:CreateBucket"),
    *("emr-serverless:CreateApplication", "bcm-data-exports:CreateExport"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededNetwork:
    """What a cluster takes of a VPC that is there already."""

    vpc: str
    # The primary first.
    blocks: tuple[str, ...]
    # The block that Kubernetes' Services get beside those.
    services: str
    # A subnet -> the zone it is named for, and the addresses it must have free.
    subnets: Mapping[str, tuple[str, int]]
    route_tables: tuple[str, ...] = ()
    # What endpoints are made of: gateways in the tables, interfaces under the API's public name:
    # s3, ecr.api.
    gateways: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    private_zone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What one cluster takes; quotas are keyed as in core.checks.new_cluster."""

    prefix: str
    region: str
    zones: tuple[str, ...]
    # Instance type -> the zones it must be offered in.
    instance_types: Mapping[str, frozenset[str]]
    quotas: Mapping[str, float]
    # None: a VPC of its own.
    network: NeededNetwork | None
    kubernetes: str
    addons: Mapping[str, str]
    # What is told to an add-on beyond its defaults.
    addon_configuration: Mapping[str, Mapping[str, object]]
    buckets: tuple[str, ...]
    export: str
    slack_secret: str | None
    slack_url: str = ""
    # The key of volumes that the spec names; None: the account's default.
    encryption_key: str | None = None
    # Executions that functions take out of what the account's share.
    reserved_concurrency: int = 0
    actions: tuple[str, ...] = ACTIONS


@dataclass(frozen=True, slots=True)
class Zone:
    """One availability zone as this account names it."""

    zone_id: str
    available: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """A subnet in which nodes of Kafka stand, or would start."""

    zone: str
    # As AWS names the zone in every account: eun1-az1.
    zone_id: str = ""
    free_addresses: int
    vpc: str = ""
    ipv6_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VpcEndpoint:
    """A way from a VPC to one of AWS's services: ec2, ecr.api, s3."""

    vpc: str
    service: str
    available: bool = True
    # Of one that is a route: the tables that have it; None: every subnet of the VPC reaches it.
    tables: frozenset[str] | None = None
    # It answers to the public name of the service.
    private_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingVpc:
    """A VPC that is there already."""

    blocks: frozenset[str]
    # Of enableDnsSupport and enableDnsHostnames, those that are off.
    attributes_off: tuple[str, ...] = ()
    endpoints: tuple[VpcEndpoint, ...] = ()
    hosted_zones: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Lambda's concurrency in this region: all of it, and what no function has reserved."""

    limit: int
    unreserved: int
    # By the environment's own webhook already.
    reserved: int = 0


# Of a key of KMS's that decrypts.
ENABLED = "Enabled"
# Who starts the machines of a group that names no role of its own.
SCALING_ROLE = "AWSServiceRoleForAutoScaling"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionKey:
    """A key of KMS's under which Kafka's disks, or root volumes of its machines, are encrypted."""

    # As whoever uses it calls it: an ARN, an id or an alias.
    name: str
    # Enabled, or why it decrypts nothing: Disabled, PendingDeletion, Unavailable; gone.
    state: str = ENABLED
    deleted_on: str | None = None
    # Whom its policy and its grants name; None: not asked, as of AWS's own key.
    users: frozenset[str] | None = None

    def bars(self, role: str) -> bool:
        """Say whether nobody lets a role use it."""
        if self.users is None or "*" in self.users:
            return False
        return not any(each.rpartition("/")[2] == role for each in self.users)


@dataclass(frozen=True, slots=True)
class QuotaName:
    """One quota: its service's code and its name in Service Quotas, and its name in a sentence."""

    service: str
    name: str
    what: str


@dataclass(frozen=True, slots=True)
class AccountQuota:
    """How much of something the account may have in this region, and has."""

    of: QuotaName
    limit: float
    used: float

    @property
    def left(self) -> float:
        return self.limit - self.used


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One account in one region, seen by one caller."""

    caller: str
    number: str
    region: str
    # opt-in-not-required, opted-in, not-opted-in.
    region_status: str | Unknown
    # Whether the environment's cluster stands already: names and quotas are then its own.
    stands: bool | Unknown
    zones: Mapping[str, Zone] | Unknown
    offerings: Mapping[str, frozenset[str]] | Unknown
    # Of those that a spec names; None: there is no such VPC, or none is named.
    subnets: Mapping[str, Subnet] | Unknown
    vpc: StandingVpc | Unknown | None
    quotas: Mapping[str, AccountQuota | Unknown] | Unknown
    concurrency: Concurrency | Unknown
    # Version -> STANDARD_SUPPORT, EXTENDED_SUPPORT, UNSUPPORTED.
    kubernetes: Mapping[str, str] | Unknown
    addons: Mapping[str, frozenset[str] | Unknown] | Unknown
    # The JSON schema an add-on's version publishes.
    addon_schemas: Mapping[str, Mapping[str, object] | Unknown] | Unknown
    volumes_key: EncryptionKey | Unknown
    # Names that are taken and not tagged as this environment's: roles, buckets, ...
    taken: Mapping[str, tuple[str, ...] | Unknown] | Unknown
    # Secrets scheduled for deletion: their names are free only after that.
    pending_secrets: tuple[str, ...] | Unknown
    # Action -> who denies it.
    denied: Mapping[str, str] | Unknown
    # Why the bill cannot be seen; empty where it can.
    bill: str | Unknown
    # Why Slack refuses the token; empty where it does not; None: no Slack is asked for.
    slack: str | Unknown | None
