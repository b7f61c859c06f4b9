"""Finds what a bill pays for that is cheap to do without: the meters everybody forgets.

By meter alone, so that it is found on any bill; what a finding would save is all that its meter
costs where nothing is lost by it, and at most that where somebody has to look first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark.expressions import made_once, surely
from spark.rows import Found, grouped, summed
from spark.transforms.attribute import Attribution
from spark.transforms.classify import UNUSED, is_aws
from spark.transforms.daily import is_discount


class Easy(StrEnum):
    """What is paid for, in the order a report lists it."""

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


@dataclass(frozen=True, slots=True)
class Rule:
    """A finding: its usage types, the FOCUS texts that are it, and what is known of its saving."""

    easy: Easy
    usage_type: str
    description: str
    how: str
    # Whether somebody has to look at it before it is known what can go.
    at_most: bool = True
    operation: str = ""
    # What part of its cost it would save, or save at most.
    saved: Decimal = Decimal(1)


RULES = (
    Rule(
        Easy.EXTENDED_SUPPORT,
        r"^AmazonEKS-Hours:extendedSupport",
        r"(?i)extended support.*kubernetes|(eks|kubernetes).*extended support",
        "upgrade the clusters to a Kubernetes version in standard support",
        at_most=False,
    ),
    Rule(
        Easy.IDLE_RESERVATION,
        r"^(UnusedBox|UnusedDed)",
        r"(?i)\bunused\b.*reservation|capacity reservation.*\bunused\b",
        "cancel the On-Demand Capacity Reservations that nobody needs, or run in them",
        at_most=False,
    ),
    Rule(
        Easy.IDLE_IPV4,
        r"^(PublicIPv4|ElasticIP):IdleAddress",
        r"(?i)idle public IPv4|elastic IP address not attached",
        "release the addresses that nothing uses",
        at_most=False,
    ),
    Rule(
        Easy.OLD_VOLUMES,
        r"^EBS:(VolumeUsage\.(piops|io1|io2)|VolumeP-IOPS\.(piops|io1|io2.*))$",
        r"(?i)\b(io1|io2)\b.*provisioned|provisioned IOPS.*\b(io1|io2)\b",
        "move those that gp3 does as well to gp3, online; what is left to pay is gp3's price",
    ),
    Rule(
        Easy.GP2_VOLUMES,
        r"^EBS:VolumeUsage\.gp2$",
        r"(?i)\bgp2\b.*provisioned",
        "move them to gp3, online; more than 3,000 IOPS or 125 MiB/s cost extra there",
        # Amazon EBS, general purpose volumes: "up to 20 % lower price per GB than gp2".
        saved=Decimal("0.2"),
    ),
    Rule(
        Easy.SNAPSHOTS,
        r"^EBS:SnapshotUsage",
        r"(?i)snapshot data stored|snapshots? storage",
        "let a lifecycle policy delete those that nobody would restore",
    ),
    Rule(
        Easy.NAT_BYTES,
        r"^(Regional)?NatGateway-Bytes",
        r"(?i)NAT gateway.*data processed|data processed by NAT",
        "give S3 and DynamoDB gateway endpoints (free) and registries interface endpoints",
    ),
    Rule(
        Easy.CROSS_ZONE_LB,
        r"^DataTransfer-Regional-Bytes",
        r"(?!)",
        "switch cross-zone load balancing off where every zone has targets of its own",
        operation=r"^LoadBalancing",
    ),
    Rule(
        Easy.PUBLIC_IPV4,
        r"^PublicIPv4:InUseAddress",
        r"(?i)in-use public IPv4",
        "take public addresses from what a private subnet and a load balancer can serve",
    ),
    Rule(
        Easy.INTERNET,
        r"^DataTransfer-Out-Bytes",
        r"(?i)data transfer out.*internet|to internet",
        "compress, cache, or read from within the region; PrivateLink and peering are cheaper",
    ),
)
# Fees of commitments: their amortised cost is the part that nothing used.
UNUSED_FEES = ("RIFee", "SavingsPlanRecurringFee", UNUSED)
UNUSED_HOW = "let more run under them; they are paid until they end, so buy fewer then"
HOW = {rule.easy: rule.how for rule in RULES} | {Easy.UNUSED_COMMITMENT: UNUSED_HOW}
PARTS = {rule.easy: rule.saved for rule in RULES}
SURE = frozenset(rule.easy for rule in RULES if not rule.at_most)


@dataclass(frozen=True, slots=True)
class EasySaving:
    """What one meter came to in the month, of Kafka or of everybody else."""

    easy: Easy
    is_kafkas: bool
    usd: Decimal

    @property
    def saving(self) -> Decimal:
        """Return what could be saved of it, or at most."""
        return self.usd * PARTS.get(self.easy, Decimal(1))

    @property
    def at_most(self) -> bool:
        return self.easy not in SURE


def easy_savings(grain: Iterable[Found]) -> list[EasySaving]:
    """Return what the easy findings of these rows cost, net and amortised; a handful."""
    found = (row for row in grain if row.easy is not None)
    keyed = grouped(found, lambda row: (row.easy, row.attribution != Attribution.NOBODY.value))
    costs = ((*key, summed(rows, "net_cost")) for key, rows in keyed.items())
    saved = [EasySaving(Easy(easy), is_kafkas, cost) for easy, is_kafkas, cost in costs if cost > 0]
    return sorted(saved, key=lambda each: (not each.is_kafkas, -each.saving))


@made_once
def finding_of() -> Column:
    """Return which finding a charge is of, if any."""
    is_fee = F.col("category").isin(*UNUSED_FEES)
    found = F.when(is_fee, Easy.UNUSED_COMMITMENT.value)
    # What was given back on a meter is nothing that could be saved once more.
    is_bought = is_discount() | F.col("category").isin(
        "Usage", "DiscountedUsage", "SavingsPlanCoveredUsage", "SavingsPlanNegation"
    )
    for rule in RULES:
        found = found.when(is_bought & _matches(rule), rule.easy.value)
    return F.when(is_aws(), found)


def _matches(rule: Rule) -> Column:
    by_text = F.col("usage_type").isNull() & F.col("description").rlike(rule.description)
    meter = surely(F.col("usage_type").rlike(rule.usage_type)) | surely(by_text)
    if not rule.operation:
        return meter
    return meter & surely(F.col("operation").rlike(rule.operation))
