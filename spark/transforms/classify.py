"""Says what a charge bought: one component of a Kafka cluster's cost, or `other`.

Instances are brokers' where the charge is Kafka's (spark.transforms.attribute), and instances where
it is anybody else's.

Rules are data, tried in order. A CUR line is known by its usage type; a FOCUS line, which may have
none, by service, unit and description. Patterns keep to what Java and Python read alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.expressions import made_once, surely
from spark.schemas import IS_UNREADABLE
from spark.transforms.attribute import Attribution


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


@dataclass(frozen=True, slots=True)
class Rule:
    """A component, the usage types that are it, and the FOCUS charges that are it."""

    component: Component
    usage_type: str
    service: str
    unit: str
    description: str
    # Whether all that the service sells is this, whatever the meter is called.
    whole_service: bool = False


_EC2 = r"^(Amazon Elastic Compute Cloud|AmazonEC2)$"
_ANY = r"."
RULES = (
    Rule(
        Component.BROKER_COMPUTE,
        # EKS Auto Mode's fee is per machine and hour, by the machine's type; a burstable machine
        # pays for the processor beyond its share.
        r"^((Host)?BoxUsage|SpotUsage|DedicatedUsage|(Reserved)?HostUsage|EBSOptimized|EKS-Auto"
        r"|CPUCredits(?!:(db|cache)\.))(:|$)",
        _EC2,
        r"^(Hours|Hrs)$",
        r"(?i)^(?!.*\bunused\b).*(instance[- ]hour|reserved instance applied)",
    ),
    Rule(
        Component.GP3_STORAGE,
        r"^EBS:VolumeUsage\.gp3(\.outposts)?$",
        _EC2,
        r"^GB-Mo",
        r"(?i)gp3\) provisioned storage",
    ),
    Rule(
        Component.GP3_IOPS,
        r"^EBS:VolumeP-IOPS\.gp3$",
        _EC2,
        r"^IOPS-Mo",
        r"(?i)provisioned IOPS-month of gp3",
    ),
    # The description says MiBps, the unit and the price are per GiBps: match on both.
    Rule(
        Component.GP3_THROUGHPUT,
        r"^EBS:VolumeP-Throughput\.gp3$",
        _EC2,
        r"^(GiB/Second-Mo|GiBps-mo)",
        r"(?i)provisioned MiBps-month of gp3",
    ),
    Rule(
        Component.OTHER_VOLUMES,
        r"^EBS:(VolumeUsage(\.(gp2|io1|io2|st1|sc1|piops))?|VolumeP-IOPS\.(io2.*|piops)"
        r"|VolumeIOUsage)(\.outposts)?$",
        _EC2,
        r"^(GB-Mo|IOPS-Mo)",
        r"(?i)\b(gp2|io1|io2|st1|sc1|magnetic)\b.*provisioned|provisioned IOPS.*\b(io1|io2)\b",
    ),
    Rule(
        Component.SNAPSHOTS,
        r"^EBS:(Snapshot|FastSnapshotRestore|directAPI\.snapshot)",
        _EC2,
        r"^(GB-Mo|DSU-Hours)",
        r"(?i)snapshot",
    ),
    # Peering and the xAZ meters cross zones too, each at the price on its own row. The AZ meters
    # count bytes within a zone.
    Rule(
        Component.INTER_AZ,
        r"^(DataTransfer-Regional-Bytes|DataTransfer-xAZ-(In|Out)-Bytes|VpcPeering-(In|Out)-Bytes)$",
        _ANY,
        r"^GB$",
        r"(?i)regional data transfer",
    ),
    Rule(
        Component.LOAD_BALANCER,
        # LCUs may be reserved ahead of need; a trust store has hours of its own (TS). What a
        # classic one passes on is on a meter that CloudWatch Logs has as well.
        r"^(Outposts-|TS-)?(LoadBalancerUsage|(Reserved)?LCUUsage|IdleProvisionedLBCapacity)$",
        r"^(Elastic Load Balancing|AWSELB)$",
        r"^(Hours|Hrs|LCU-Hours|LCU-Hrs)$",
        _ANY,
    ),
    Rule(
        Component.PRIVATELINK,
        # Gateway load balancers', resources' and service networks' endpoints have words between.
        r"^(VpcEndpoint-([A-Za-z]+-)?(Hours|Bytes)|VpcResource-(Provider|Consumer)-Bytes)",
        r"^(Amazon Virtual Private Cloud|AmazonVPC)$",
        r"^(Hours|Hrs|GB)$",
        r"(?i)VPC ?endpoint",
    ),
    Rule(
        Component.NAT_GATEWAY,
        # Gateways of a whole region, and those with provisioned bandwidth (price list of EC2).
        r"^(Regional)?NatGateway-(Prvd-)?(Hours|Bytes|Gbps)",
        _ANY,
        r"^(Hours|Hrs|GB)$",
        r"(?i)NAT gateway",
    ),
    Rule(
        Component.REPORTS,
        r"^EMR-SERVERLESS-",
        r"^(Amazon Elastic MapReduce|ElasticMapReduce|AmazonEMR)$",
        r"(?i)hours$",
        r"(?i)serverless",
    ),
    # Both regions stand before it, and are cut off with the prefixes.
    Rule(
        Component.BETWEEN_REGIONS,
        r"^AWS-(In|Out)-Bytes$",
        _ANY,
        r"^GB$",
        r"(?i)data transfer (to|from) [^(]+\(",
    ),
    Rule(
        Component.INTERNET,
        r"^DataTransfer-Out-Bytes$",
        _ANY,
        r"^GB$",
        r"(?i)data transfer out|to internet|internet data transfer",
    ),
    Rule(
        Component.PUBLIC_IPV4,
        # As AWS called them until 2024.
        r"^(PublicIPv4|ElasticIP):",
        _ANY,
        r"^(Hours|Hrs)$",
        r"(?i)public IPv4 address",
    ),
    Rule(
        Component.CONTROL_PLANE,
        # Beside clusters by the hour: what EKS runs in them (capabilities), and hybrid nodes.
        r"^AmazonEKS(Capabilities-[A-Za-z]+(-CR)?|HybridNodes|-Local-Outposts)?-Hours:",
        r"^(Amazon Elastic (Container Service for Kubernetes|Kubernetes Service)|AmazonEKS)$",
        r"^(Hours|Hrs)$",
        r"(?i)EKS cluster",
    ),
    # Its bytes between zones and out are on the meters above; brokers, serverless clusters, Connect
    # and Replicator have meters of many names.
    Rule(
        Component.MANAGED_KAFKA,
        r"^Kafka(\.|Serverless)",
        r"^(Amazon Managed Streaming for Apache Kafka|AmazonMSK)$",
        _ANY,
        _ANY,
        whole_service=True,
    ),
)

# As CUR's billing entities and FOCUS's providers call it. AISPL sells AWS in India (Cost Explorer's
# Expression, BILLING_ENTITY); the sellers of a marketplace are no part of AWS's own meters.
AWS = r"(?i)^(AWS|AISPL|Amazon Web Services)\b(?!.*marketplace)"
EMR = r"(?i)map ?reduce|\bEMR\b"
AUTO_MODE = "EKS-Auto"
IDLE = r"^Unused(Box|Ded)(:|$)"
FREE_WHERE_UNPRICED = r"^DataTransfer-xAZ-"
# Whether a row's charges come to anything.
IS_PRICED = "is_priced"
_BY_RULE = "_by_rule"

# The part of a commitment that nothing ran under, on FOCUS bills a charge like those of use.
UNUSED = "Unused commitment"
# Bought or given back as a whole, for no component in particular.
WHOLE_BILL = (
    "Tax",
    "Credit",
    "Refund",
    "Fee",
    "RIFee",
    "SavingsPlanRecurringFee",
    "SavingsPlanUpfrontFee",
    "Purchase",
    "Adjustment",
    UNUSED,
)


# A pod's share of its node: a second view of money that the node's own line already holds.
SPLIT_OPERATIONS = ("EKSPod-EC2", "ECSTask-EC2", "ECSTask-Fargate")
SPLIT_USAGE = r"^(EKS|ECS)-EC2-(vCPU|GB|Accelerator)-Hours"


def with_component(rows: DataFrame) -> DataFrame:
    """Add the column `component`, of rows that have IS_PRICED.

    A row that cannot be read is of the component for those.
    """
    unreadable = F.lit(Component.UNREADABLE.value)
    # The rules once, in a column of their own: asked for in four places they would be planned, and
    # at worst matched, four times.
    known = rows.withColumn(_BY_RULE, _by_rule())
    component = F.when(F.col(IS_UNREADABLE), unreadable).otherwise(_component())
    return known.withColumn("component", component).drop(_BY_RULE)


@made_once
def _by_rule() -> Column:
    """Return the component of the first rule that knows a charge."""
    return reduce(
        lambda rest, rule: F.when(_matches(rule), F.lit(rule.component.value)).otherwise(rest),
        reversed(RULES),
        F.lit(Component.OTHER.value),
    )


@made_once
def _component() -> Column:
    """Return a charge's component; whatever no rule knows is `other`."""
    is_for_the_whole_bill = surely(F.col("category").isin(*WHOLE_BILL))
    is_of_no_pool = (
        F.col("tag_cluster").isNotNull() & F.col("tag_pool").isNull() & ~F.col("is_known")
    )
    is_nobodys = F.col("attribution") == Attribution.NOBODY.value
    is_system_node = (F.col("tag_node_group").isNotNull() | is_of_no_pool) & ~F.col("is_known")
    other = F.lit(Component.OTHER.value)
    by_rule = F.col(_BY_RULE)
    is_compute = by_rule == Component.BROKER_COMPUTE.value
    # EMR bills by BoxUsage too, for what it adds to hours that EC2 bills; so does EKS Auto Mode.
    is_auto = F.col("usage_type").startswith(AUTO_MODE)
    # Reserved capacity that nothing ran in is no instance's, whatever its description says.
    is_idle = F.col("usage_type").rlike(IDLE)
    is_fee = surely(F.col("service").rlike(EMR) | (is_auto & is_nobodys)) | surely(is_idle)
    # Bytes that cost nothing are on another meter as well, or within a zone.
    is_unpriced = F.col("usage_type").rlike(FREE_WHERE_UNPRICED) & ~F.col(IS_PRICED)
    is_known = is_aws() & ~is_for_the_whole_bill & ~surely(is_unpriced)
    return (
        F.when(_is_split(), F.lit(Component.SPLIT.value))
        .when(is_known & is_compute & is_fee, other)
        .when(is_known & is_compute & is_nobodys, F.lit(Component.INSTANCES.value))
        .when(is_known & is_compute & is_system_node, other)
        .when(is_known, by_rule)
        .otherwise(other)
    )


def is_aws() -> Column:
    """Say whether a line is AWS's own, and of no other cloud or seller."""
    return surely(F.col("provider").rlike(AWS))


def _is_split() -> Column:
    by_operation = F.col("operation").isin(*SPLIT_OPERATIONS)
    by_usage_type = F.col("usage_type").rlike(SPLIT_USAGE)
    return surely(F.coalesce(by_operation | by_usage_type, by_usage_type))


def _matches(rule: Rule) -> Column:
    """Say whether a rule knows a line, by its usage type or, failing that, by its description.

    A CUR line of usage has no description any more here, so only a FOCUS line is known by one; a
    whole service is known in any bill.
    """
    by_usage_type = F.col("usage_type").rlike(rule.usage_type)
    by_description = F.col("service").rlike(rule.service)
    if not rule.whole_service:
        # Most lines have none, and three patterns of each rule need not be tried then.
        has_description = F.col("description").isNotNull()
        by_description = has_description & by_description & F.col("unit").rlike(rule.unit)
        by_description &= F.col("description").rlike(rule.description)
    return surely(by_usage_type) | surely(by_description)
