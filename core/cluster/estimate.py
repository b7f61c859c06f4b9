"""Estimates a cluster's month at list price: the ClusterSpec counted, times the price book.

Everything that is billed for being there is counted from the spec. What depends on use is counted
from a Usage, whose figures are assumptions until somebody measures them. What was spent is another
question, answered from a bill by `stillwater report`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from core.cluster import ClusterSpec, NodePool
from core.cost import pricing
from core.cost.pricing import HOURS_PER_MONTH, Price, PriceBook
from core.ground.errors import InvalidInput

# AWS's own calculator: a year's hours in twelve parts.
DAYS_PER_MONTH = Decimal(HOURS_PER_MONTH) / 24
# What infra/ gives every node, and how many services infra/network/vpc.py reaches: tests
# compare.
ROOT_VOLUME_GIB = 50
INTERFACE_SERVICES = 13
# One capacity unit of a network load balancer carries 1 GiB of TCP an hour.
LCU_GIB_PER_HOUR = 1
# Traffic between zones is billed where it leaves and where it arrives.
SIDES = 2
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a spec does not say; the defaults are assumptions, printed with every estimate."""

    produce_mib_per_s: Decimal = Decimal(0)
    # How many consumer groups read each byte.
    readers: Decimal = Decimal(1)
    # The share of each volume that holds data.
    filled: Decimal = Decimal("0.5")
    log_gib_per_day: Decimal = Decimal("0.5")

    def __post_init__(self) -> None:
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        problems = [
            f"{name} is {value}: it is no number; correct it."
            for name, value in given.items()
            if not value.is_finite()
        ] or [
            f"{name} is {value}: it must be 0 or more; correct it."
            for name, value in given.items()
            if value < 0
        ]
        if not problems and self.filled > 1:
            problems.append(
                f"filled is {self.filled}: it is a share of the volumes, between 0 and 1; "
                f"correct it."
            )
        if problems:
            raise InvalidInput(problems)

    @property
    def produced_gib_per_month(self) -> Decimal:
        return self.produce_mib_per_s * pricing.SECONDS_PER_HOUR * HOURS_PER_MONTH / 1024


@dataclass(frozen=True, slots=True)
class EstimateLine:
    """So many units of one thing, a month; dollars are rounded to the cent, as on a bill."""

    component: str
    what: str
    quantity: Decimal
    unit: str
    item: str
    # None where the price book does not know.
    price: Price | None = None

    @property
    def usd(self) -> Decimal | None:
        if self.price is None:
            return None
        return (self.quantity * self.price.usd).quantize(CENT, ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A month of one cluster; `total` is the sum of the lines as printed."""

    region: str
    lines: tuple[EstimateLine, ...]
    # What nobody knows the price of, and the command that fetches it; empty where all is known.
    unpriced: str = ""

    @property
    def total(self) -> Decimal | None:
        """Return the sum of all lines; None where the price of one is unknown."""
        return together(self.lines)

    @property
    def prices_as_of(self) -> tuple[date, date] | None:
        """Return the oldest and the newest day a price of it was read; None: it has none."""
        days = [line.price.as_of for line in self.lines if line.price is not None]
        return (min(days), max(days)) if days else None


def together(lines: Iterable[EstimateLine]) -> Decimal | None:
    """Return the dollars of lines together; None where those of one are unknown."""
    amounts = [line.usd for line in lines]
    known = [usd for usd in amounts if usd is not None]
    return pricing.total(known) if len(known) == len(amounts) else None


def monthly(spec: ClusterSpec, book: PriceBook, usage: Usage | None = None) -> Estimate:
    """Return what a cluster costs a month at the list prices of its region, as far as known."""
    lines = tuple(
        replace(line, price=book.find(line.item))
        for line in _unpriced_lines(spec, usage or Usage())
        if line.quantity != 0
    )
    missing = [line.item for line in lines if line.price is None]
    return Estimate(spec.region, lines, book.unknown(missing) if missing else "")


def crossings_per_produced_byte(zones: int, replicas: int, readers: Decimal) -> Decimal:
    """Return how often a produced byte changes its availability zone, on average.

    Clients, the load balancer's nodes and leaders are spread evenly over the zones, so each of the
    two hops between them crosses with probability (zones - 1) / zones, on the way in and for each
    reader. A replica in another zone than the leader is one crossing more; racks hold
    replicas / zones of them each, and the leader's at least itself.
    """
    z = Decimal(zones)
    hops = 2 * (z - 1) / z
    return hops * (1 + readers) + replicas - max(Decimal(1), replicas / z)


def _unpriced_lines(spec: ClusterSpec, usage: Usage) -> Iterator[EstimateLine]:
    for pool in spec.pools:
        yield from _pool(spec, pool)
    yield from _foundation(spec)
    yield from _balancer(usage)
    yield from _snapshots(spec, usage)
    yield from _logs(spec, usage)
    crossings = crossings_per_produced_byte(
        len(spec.broker_zones), spec.kafka.default_replication_factor, usage.readers
    )
    crossed = usage.produced_gib_per_month * crossings * SIDES
    yield EstimateLine("traffic", "between zones, both sides", crossed, "GiB", "inter_zone_gib")


def _instances(component: str, instance_type: str, number: int) -> Iterator[EstimateLine]:
    hours = Decimal(number * HOURS_PER_MONTH)
    item = f"{pricing.INSTANCE_HOUR}:{instance_type}"
    yield EstimateLine(component, f"{number} {instance_type}", hours, "hours", item)
    gib = Decimal(number * ROOT_VOLUME_GIB)
    yield EstimateLine(component, f"{number} root volumes", gib, "GiB-months", "gp3_gib_month")


def _pool(spec: ClusterSpec, pool: NodePool) -> Iterator[EstimateLine]:
    nodes = spec.nodes_of(pool)
    component = f"pool {pool.name}"
    yield from _instances(component, pool.instance_type, nodes)
    size = sum(volume.size_gib for volume in pool.volumes)
    iops = sum(pricing.billed_iops(volume.iops) for volume in pool.volumes)
    throughput = sum(
        (pricing.billed_gib_per_s(volume.throughput_mib_per_s) for volume in pool.volumes),
        Decimal(0),
    )
    volumes = nodes * len(pool.volumes)
    yield EstimateLine(
        component, f"{volumes} gp3 volumes", Decimal(nodes * size), "GiB-months", "gp3_gib_month"
    )
    yield EstimateLine(
        component,
        f"IOPS above {pricing.GP3_INCLUDED_IOPS}",
        Decimal(nodes * iops),
        "IOPS-months",
        "gp3_iops_month",
    )
    yield EstimateLine(
        component,
        f"throughput above {pricing.GP3_INCLUDED_MIB_PER_S} MiB/s",
        nodes * throughput,
        "GiB/s-months",
        "gp3_gibps_month",
    )


def _foundation(spec: ClusterSpec) -> Iterator[EstimateLine]:
    zones = len(spec.availability_zones)
    kubernetes = spec.kubernetes
    yield from _instances(
        "system nodes", kubernetes.system_instance_type, kubernetes.system_nodes_per_zone * zones
    )
    hours = Decimal(HOURS_PER_MONTH)
    yield EstimateLine("EKS", "control plane", hours, "hours", "eks_cluster_hour")
    if kubernetes.upgrade_policy == "extended":
        # Charged from the day the version leaves standard support, which nobody here knows.
        what = f"extended support, once {kubernetes.version} is past standard"
        yield EstimateLine("EKS", what, hours, "hours", "eks_extended_support_hour")
    yield EstimateLine("EKS", "key of Kubernetes' secrets", Decimal(1), "keys", "kms_key_month")
    if spec.alerts.enabled and spec.alerts.sns_topic_arn is None:
        yield EstimateLine("alerts", "key of the topic", Decimal(1), "keys", "kms_key_month")
    if spec.network.existing is None:
        yield EstimateLine("network", f"{zones} NAT gateways", zones * hours, "hours", "nat_hour")
        yield EstimateLine(
            "network", f"{zones} public addresses", zones * hours, "hours", "public_ipv4_hour"
        )
    if spec.network.interface_endpoints:
        yield EstimateLine(
            "network",
            f"{INTERFACE_SERVICES} interface endpoints in {zones} zones",
            INTERFACE_SERVICES * zones * hours,
            "hours",
            "interface_endpoint_hour",
        )


def _balancer(usage: Usage) -> Iterator[EstimateLine]:
    yield EstimateLine("load balancer", "one NLB", Decimal(HOURS_PER_MONTH), "hours", "nlb_hour")
    units = usage.produced_gib_per_month * (1 + usage.readers) / LCU_GIB_PER_HOUR
    yield EstimateLine("load balancer", "capacity units", units, "LCU-hours", "nlb_lcu_hour")


def _snapshots(spec: ClusterSpec, usage: Usage) -> Iterator[EstimateLine]:
    """Count the oldest snapshot in full, and what each later one finds changed."""
    if spec.snapshots is None:
        return
    held = usage.filled * sum(
        spec.nodes_of(pool) * sum(volume.size_gib for volume in pool.volumes) for pool in spec.pools
    )
    written = (
        usage.produce_mib_per_s
        * spec.kafka.default_replication_factor
        * spec.snapshots.every_hours
        * pricing.SECONDS_PER_HOUR
        / 1024
    )
    stored = held + (spec.snapshots.kept - 1) * min(held, written)
    what = f"{spec.snapshots.kept} of each volume, changed blocks"
    yield EstimateLine("snapshots", what, stored, "GiB-months", "snapshot_gib_month")


def _logs(spec: ClusterSpec, usage: Usage) -> Iterator[EstimateLine]:
    if not spec.kubernetes.control_plane_logs:
        return
    days = spec.kubernetes.control_plane_log_retention_days
    ingested = usage.log_gib_per_day * DAYS_PER_MONTH
    yield EstimateLine("logs", "of the control plane", ingested, "GiB", "log_gib_ingested")
    kept = usage.log_gib_per_day * days
    yield EstimateLine("logs", f"kept {days} days", kept, "GiB-months", "log_gib_month")
