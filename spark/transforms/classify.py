"""Says what a charge bought: one component of a Kafka cluster's cost, or `other`.

Rules are data, tried in order. A CUR line is known by its usage type; a FOCUS 1.0 line, which has
none, by service, unit and description. Patterns keep to what Java and Python read alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from core.naming import CLUSTER_TAG, POOL_TAG
from spark.tag_keys import NODE_GROUP_TAG
from spark.transforms.tags import tagged


class Component(StrEnum):
    """What money buys, in the order the report lists it."""

    BROKER_COMPUTE = "broker compute"
    GP3_STORAGE = "gp3 storage"
    GP3_IOPS = "gp3 IOPS"
    GP3_THROUGHPUT = "gp3 throughput"
    INTER_AZ = "inter-AZ transfer"
    LOAD_BALANCER = "load balancer"
    CONTROL_PLANE = "control plane"
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


_EC2 = r"^(Amazon Elastic Compute Cloud|AmazonEC2)$"
_ANY = r"."
RULES = (
    Rule(
        Component.BROKER_COMPUTE,
        r"^(BoxUsage|SpotUsage|DedicatedUsage|HostUsage|EBSOptimized)(:|$)",
        _EC2,
        r"^(Hours|Hrs)$",
        r"(?i)instance[- ]hour|reserved instance applied",
    ),
    Rule(
        Component.GP3_STORAGE,
        r"^EBS:VolumeUsage\.gp3$",
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
    # Peering and the xAZ meters cross zones too, each at the price on its own row.
    Rule(
        Component.INTER_AZ,
        r"^(DataTransfer-Regional-Bytes|DataTransfer-x?AZ-(In|Out)-Bytes|VpcPeering-(In|Out)-Bytes)$",
        _ANY,
        r"^GB$",
        r"(?i)regional data transfer",
    ),
    Rule(
        Component.LOAD_BALANCER,
        r"^(LoadBalancerUsage|LCUUsage)$",
        r"^(Elastic Load Balancing|AWSELB)$",
        r"^(Hours|Hrs|LCU-Hours|LCU-Hrs)$",
        _ANY,
    ),
    Rule(
        Component.CONTROL_PLANE,
        r"^AmazonEKS-Hours:",
        r"^(Amazon Elastic Container Service for Kubernetes|AmazonEKS)$",
        r"^(Hours|Hrs)$",
        r"(?i)EKS cluster",
    ),
)

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
)


def classified(charges: DataFrame) -> DataFrame:
    """Add the column `component`."""
    return charges.withColumn("component", component())


def component() -> Column:
    """Return a charge's component; whatever no rule knows is `other`."""
    is_aws = F.coalesce(F.col("provider") == "AWS", F.lit(False))  # noqa: FBT003 - a literal column
    is_for_the_whole_bill = F.coalesce(F.col("category").isin(*WHOLE_BILL), F.lit(False))  # noqa: FBT003 - the same
    is_of_no_pool = tagged(CLUSTER_TAG).isNotNull() & tagged(POOL_TAG).isNull()
    is_system_node = tagged(NODE_GROUP_TAG).isNotNull() | is_of_no_pool
    other = F.lit(Component.OTHER.value)
    by_rule = reduce(
        lambda rest, rule: F.when(_matches(rule), F.lit(rule.component.value)).otherwise(rest),
        reversed(RULES),
        other,
    )
    is_compute = by_rule == Component.BROKER_COMPUTE.value
    return F.when(
        is_aws & ~is_for_the_whole_bill & ~(is_compute & is_system_node), by_rule
    ).otherwise(other)


def _matches(rule: Rule) -> Column:
    by_usage_type = F.col("usage_type").rlike(rule.usage_type)
    by_description = (
        F.col("service").rlike(rule.service)
        & F.col("unit").rlike(rule.unit)
        & F.col("description").rlike(rule.description)
    )
    return F.when(F.col("usage_type").isNotNull(), by_usage_type).otherwise(by_description)
