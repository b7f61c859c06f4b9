"""Holds what a cluster takes of an account, and what the account says of itself.

What could not be asked is an Unknown, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    # What endpoints are made of: gateways in the tables, interfaces under the API's public name.
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
class StandingVpc:
    """A VPC that is there already; services are as EC2 calls them: com.amazonaws.REGION.s3."""

    blocks: frozenset[str]
    # Of enableDnsSupport and enableDnsHostnames, those that are off.
    attributes_off: tuple[str, ...] = ()
    # Service -> the route tables in which its gateway stands.
    gateways: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # Services whose public name an endpoint answers to.
    private_names: frozenset[str] = frozenset()
    hosted_zones: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Lambda's concurrency in this region: all of it, and what no function has reserved."""

    limit: int
    unreserved: int
    # By the environment's own webhook already.
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class VolumesKey:
    """The account's default key of EBS volumes; `usable_by` are the ends of its grantees' ARNs."""

    key: str
    of_customer: bool
    enabled: bool = True
    usable_by: frozenset[str] | Unknown = frozenset()


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
    quotas: Mapping[str, float | Unknown] | Unknown
    used: Mapping[str, float | Unknown] | Unknown
    concurrency: Concurrency | Unknown
    # Version -> STANDARD_SUPPORT, EXTENDED_SUPPORT, UNSUPPORTED.
    kubernetes: Mapping[str, str] | Unknown
    addons: Mapping[str, frozenset[str] | Unknown] | Unknown
    # The JSON schema an add-on's version publishes.
    addon_schemas: Mapping[str, Mapping[str, object] | Unknown] | Unknown
    volumes_key: VolumesKey | Unknown
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
