"""Estimates a new cluster's month at list price, and its brokers' size from the load.

What is billed for being there is counted from the ClusterSpec; what depends on use from a Usage,
whose figures are assumptions. What was spent is answered by `stillwater report`. Sizing is the
arithmetic of docs/how-to/choose-instance-types.md: what an instance sustains counts, never bursts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from core.cluster import ClusterSpec, NodePool
from core.cluster.own import own_use
from core.cluster.spec import LISTENERS_PER_LOAD_BALANCER
from core.cost import economics, pricing
from core.cost.pricing import HOURS_PER_MONTH, Price, PriceBook
from core.ground import instances
from core.ground.errors import InvalidInput
from core.ground.instances import InstanceType
from core.volumes.sizing import (
    IOPS_PER_MIB_PER_S,
    LARGEST_GIB,
    LEAST_IOPS,
    LEAST_MIB_PER_S,
    MOST_MIB_PER_S,
)

# AWS's own calculator: a year's hours in twelve parts.
DAYS_PER_MONTH = Decimal(HOURS_PER_MONTH) / 24
# What infra/ gives every node, and how many services infra/network.py reaches: tests compare.
ROOT_VOLUME_GIB = 50
INTERFACE_SERVICES = 13
# One capacity unit of a network load balancer carries 1 GiB of TCP an hour.
LCU_GIB_PER_HOUR = 1
# Traffic between zones is billed where it leaves and where it arrives.
SIDES = 2
CENT = Decimal("0.01")
# The component of what Stillwater itself uses.
OWN = "Stillwater"
# How long a broker is away in a rotation, before any was measured: a new node, and its catch-up.
OUTAGE_SECONDS = 300
REFERENCE_REGION = "us-east-1"


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
            f"{name} is {value}: it is not a number; correct it."
            for name, value in given.items()
            if not value.is_finite()
        ] or [
            f"{name} is {value}: it must be 0 or more; correct it."
            for name, value in given.items()
            if value < 0
        ]
        if not problems and self.filled > 1:
            problems.append(
                f"filled is {self.filled}: it is a share of the volumes, between 0 and 1."
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
        return _cents(self.quantity * self.price.usd)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A month of one cluster; `total` is the sum of the lines that have a price, as printed."""

    region: str
    lines: tuple[EstimateLine, ...]
    # The lines without a price, their likely share, and the remedy; empty where all are priced.
    unpriced: str = ""

    @property
    def total(self) -> Decimal | None:
        """Return the sum of all lines with a price; None where no line has one."""
        return together(self.lines)

    @property
    def prices_as_of(self) -> tuple[date, date] | None:
        """Return the oldest and the newest day a price of it was read; None: it has none."""
        days = [line.price.as_of for line in self.lines if line.price is not None]
        return (min(days), max(days)) if days else None


def together(lines: Iterable[EstimateLine]) -> Decimal | None:
    """Return the dollars of the lines that have a price; None where no line has one."""
    known = [line.usd for line in lines if line.usd is not None]
    return pricing.total(known) if known else None


def monthly(
    spec: ClusterSpec, book: PriceBook, usage: Usage | None = None, *, in_own_zone: bool = False
) -> Estimate:
    """Return what a cluster costs a month at the list prices of a region, as far as known.

    `in_own_zone`: clients use the internal listener, and read from a replica of their own zone.
    """
    lines = tuple(
        replace(line, price=book.find(line.item))
        for line in _unpriced_lines(spec, usage or Usage(), in_own_zone=in_own_zone)
        if line.quantity != 0
    )
    missing = [line for line in lines if line.price is None]
    if not missing:
        return Estimate(book.region, lines)
    reference = pricing.book(REFERENCE_REGION)
    there = [replace(line, price=reference.find(line.item)) for line in lines]
    items = {line.item for line in missing}
    share = (together(line for line in there if line.item in items) or 0) / (together(there) or 1)
    named = ["what Stillwater itself uses" if m.component == OWN else m.item for m in missing]
    likely = f"In {REFERENCE_REGION} that is {share:.1%} of this cluster's cost."
    return Estimate(book.region, lines, f"{book.unknown(named)} {likely}")


@dataclass(frozen=True, slots=True)
class Answer:
    """One question about an estimate, and its dollars a month; None: a price is unknown."""

    name: str
    question: str
    usd: Decimal | None


def answers(spec: ClusterSpec, book: PriceBook, usage: Usage) -> Iterator[Answer]:
    """Yield what people ask of an estimate: shares of it, and the same cluster run otherwise."""
    now = monthly(spec, book, usage)
    share = _cents(None if now.total is None else now.total / spec.brokers)
    yield Answer("per_broker", f"per broker, of {spec.brokers}", share)
    if usage.produce_mib_per_s:
        rate = None if now.total is None else now.total / usage.produce_mib_per_s
        yield Answer("per_mib_per_s", "per MiB/s that clients write", _cents(rate))
        near = monthly(spec, book, usage, in_own_zone=True).total
        question = "if clients use the internal listener and read in their own zone"
        yield Answer("in_own_zone", question, near)
    for years, item in pricing.COMMITTED_HOURS.items():
        question = f"if you commit to the instances for {years} year{'s' * (years > 1)}, no upfront"
        yield Answer(f"committed_{years}y", question, _committed(now, book, item))
    yield from _on_local_disks(spec, book, usage, now)


def _committed(now: Estimate, book: PriceBook, item: str) -> Decimal | None:
    """Return the month with each instance's hour at its price under a commitment."""
    hours = [
        (line, book.usd(f"{item}:{kind}"))
        for line in now.lines
        for known, _, kind in [line.item.partition(":")]
        if known == pricing.INSTANCE_HOUR
    ]
    if now.total is None or any(usd is None or line.usd is None for line, usd in hours):
        return None
    saved = sum((line.usd or 0) - line.quantity * (usd or 0) for line, usd in hours)
    return _cents(now.total - saved)


def _cents(usd: Decimal | None) -> Decimal | None:
    return None if usd is None else usd.quantize(CENT, ROUND_HALF_UP)


def _on_local_disks(
    spec: ClusterSpec, book: PriceBook, usage: Usage, now: Estimate
) -> Iterator[Answer]:
    """Yield the month if one pool's brokers had the cheapest local disks that hold their data."""
    for pool in (each for each in spec.pools if each.role.is_broker):
        number, volumes = spec.nodes_of(pool), pool.volumes
        written = usage.produce_mib_per_s * spec.kafka.default_replication_factor / number
        held = usage.filled * sum(volume.size_gib for volume in volumes)
        try:
            found = economics.compare(
                economics.Brokers(
                    number=number,
                    zones=len(spec.broker_zones),
                    instance_type=pool.instance_type,
                    volume_gib=sum(volume.size_gib for volume in volumes),
                    iops=sum(volume.iops for volume in volumes),
                    throughput_mib_per_s=sum(volume.throughput_mib_per_s for volume in volumes),
                    append_bytes_per_s=float(written * BYTES_PER_MIB),
                    held_bytes=float(held * pricing.BYTES_PER_GIB),
                    outage_seconds=OUTAGE_SECONDS,
                    rotations_per_month=number,
                    in_place_seconds=OUTAGE_SECONDS,
                ),
                book,
            )
        except InvalidInput:
            continue
        if found.nvme is None or now.total is None:
            continue
        rotations = found.rotations
        change = found.nvme.monthly_usd(rotations) - found.ebs.monthly_usd(rotations)
        question = (
            f"if pool {pool.name} were {found.nvme.brokers} {found.nvme.instance_type} with local "
            f"disks, each replaced once a month"
        )
        yield Answer(f"local_disks_{pool.name}", question, _cents(now.total + change))


def crossings_per_produced_byte(
    zones: int, replicas: int, readers: Decimal, *, in_own_zone: bool = False
) -> list[Decimal]:
    """Return how often a produced byte changes its zone, on average: for clients, for replicas.

    Clients, the load balancer's nodes and leaders are spread evenly over the zones, so each of the
    two hops between them crosses with probability (zones - 1) / zones, on the way in and for each
    reader. A replica in another zone than the leader is one crossing more; racks hold
    replicas / zones of them each, and the leader's at least itself. With `in_own_zone` there is one
    hop to the leader, and a reader crosses only where its zone has no replica.
    """
    z = Decimal(zones)
    hop = (z - 1) / z
    between = replicas - max(Decimal(1), replicas / z)
    if in_own_zone:
        return [hop + readers * max(Decimal(0), 1 - replicas / z), between]
    return [2 * hop * (1 + readers), between]


def _unpriced_lines(
    spec: ClusterSpec, usage: Usage, *, in_own_zone: bool
) -> Iterator[EstimateLine]:
    for pool in spec.pools:
        yield from _pool(spec, pool)
    yield from _foundation(spec)
    yield from _balancer(usage, in_own_zone=in_own_zone)
    yield from _snapshots(spec, usage)
    yield from _logs(spec, usage)
    crossings = crossings_per_produced_byte(
        len(spec.broker_zones),
        spec.kafka.default_replication_factor,
        usage.readers,
        in_own_zone=in_own_zone,
    )
    for what, times in zip(("of clients", "of replicas"), crossings, strict=True):
        crossed = usage.produced_gib_per_month * times * SIDES
        yield EstimateLine("traffic", f"between zones, {what}", crossed, "GiB", "inter_zone_gib")
    for use in own_use(spec):
        yield EstimateLine(OWN, *use)


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


def _balancer(usage: Usage, *, in_own_zone: bool) -> Iterator[EstimateLine]:
    yield EstimateLine("load balancer", "one NLB", Decimal(HOURS_PER_MONTH), "hours", "nlb_hour")
    if in_own_zone:
        return
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


# Memory for the page cache, on Graviton, and sold in nearly every region; the smaller first.
CANDIDATES = tuple(f"r7g.{size}" for size in ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge"))
REPLICAS = 3
# A broker that was away catches up while records go on coming: it writes as fast again.
CATCHING_UP = 2
# Of the network's baseline; the rest is for a broker that catches up.
NETWORK_SHARE = 0.75
FILLED = 0.6
VOLUME_STEP_GIB = 50
SMALLEST_VOLUME_GIB = 100
# Kafka reads followers and prompt readers from memory, this far back.
CACHED_SECONDS = 60
LARGE_HEAP_MIB, SMALL_HEAP_MIB = 6144, 4096
POD_SHARE = 0.75
MIB_PER_GIB = 1024
BYTES_PER_MIB = 1024**2


@dataclass(frozen=True, slots=True)
class ClientLoad:
    """What a cluster has to carry; `readers` is how many consumer groups read each byte."""

    zones: int
    brokers: int
    produce_mib_per_s: float
    readers: float = 2
    retention_hours: int = 168

    @property
    def written_mib_per_s(self) -> float:
        """What each broker writes: every record on REPLICAS of them."""
        return self.produce_mib_per_s * REPLICAS / self.brokers

    @property
    def sent_mib_per_s(self) -> float:
        """What each broker sends at most: all are there, or one zone's brokers are not."""
        left = self.brokers - self.brokers // self.zones
        together = self.produce_mib_per_s * (REPLICAS - 1 + self.readers) / self.brokers
        alone = self.produce_mib_per_s * (REPLICAS - 2 + self.readers) / left
        return max(together, alone)


@dataclass(frozen=True, slots=True)
class BrokerSize:
    """One broker: its machine and its volume."""

    instance: InstanceType
    heap_mib: int
    memory_request_mib: int
    cpu_request_millis: int
    size_gib: int
    iops: int
    throughput_mib_per_s: int


def size(load: ClientLoad) -> BrokerSize:
    """Return the smallest broker that carries a load; raise InvalidInput where none does."""
    if problems := [*_problems(load)]:
        raise InvalidInput(problems)
    volume = _volume_gib(load)
    throughput = _throughput(load)
    fitting = _fitting(load)
    if not fitting or throughput > MOST_MIB_PER_S:
        raise InvalidInput([_too_much(load)])
    if volume > LARGEST_GIB:
        problem = (
            f"{load.retention_hours} h of {load.produce_mib_per_s:g} MiB/s are {volume:,} GiB on "
            f"each of {load.brokers} brokers. A gp3 volume has at most {LARGEST_GIB:,}: "
            f"{_remedy(load)}, or keep records for a shorter time."
        )
        raise InvalidInput([problem])
    chosen = instances.table().types[fitting[0]]
    request = int(chosen.memory_mib * POD_SHARE)
    return BrokerSize(
        instance=chosen,
        heap_mib=SMALL_HEAP_MIB if request < 3 * LARGE_HEAP_MIB else LARGE_HEAP_MIB,
        memory_request_mib=request,
        cpu_request_millis=1000 * (chosen.vcpus - 1),
        size_gib=volume,
        iops=max(LEAST_IOPS, IOPS_PER_MIB_PER_S * throughput),
        throughput_mib_per_s=throughput,
    )


def _fits(load: ClientLoad) -> bool:
    return (
        bool(_fitting(load))
        and _throughput(load) <= MOST_MIB_PER_S
        and _volume_gib(load) <= LARGEST_GIB
    )


def _fitting(load: ClientLoad) -> list[str]:
    return [name for name in CANDIDATES if _carries(instances.table().types[name], load)]


def _throughput(load: ClientLoad) -> int:
    return max(LEAST_MIB_PER_S, math.ceil(CATCHING_UP * load.written_mib_per_s))


def _problems(load: ClientLoad) -> Iterator[str]:
    if load.zones < REPLICAS:
        zones = "zone" if load.zones == 1 else "zones"
        yield (
            f"{load.zones} availability {zones}: {REPLICAS} replicas need {REPLICAS} of them, and "
            f"so does a quorum of controllers; name {REPLICAS} or more."
        )
    elif load.brokers < load.zones or load.brokers % load.zones:
        nearest = load.zones * max(1, round(load.brokers / load.zones))
        yield (
            f"{load.brokers} brokers cannot stand evenly in {load.zones} availability zones: ask "
            f"for {nearest}, or another number of zones."
        )
    elif load.brokers > (most := _most_brokers(load.zones)):
        yield (
            f"{load.brokers} brokers. AWS gives a load balancer {LISTENERS_PER_LOAD_BALANCER} "
            "listeners. The bootstrap, every broker and a spare one per zone take one each; ask "
            f"for {most} at most."
        )
    for name, value in (
        ("produced MiB/s", load.produce_mib_per_s),
        ("hours of retention", load.retention_hours),
    ):
        if not (math.isfinite(value) and value > 0):
            yield f"{value} {name}: it must be a number above 0; correct it."
    if not (math.isfinite(load.readers) and load.readers >= 0):
        yield f"{load.readers} consumer groups: it must be 0 or more; correct it."


def _most_brokers(zones: int) -> int:
    """Return how many brokers, as many per zone, have a listener beside those that are to come."""
    return (LISTENERS_PER_LOAD_BALANCER - 1) // zones * zones - zones


def _carries(instance: InstanceType, load: ClientLoad) -> bool:
    rates = pricing.table()[instance.name]
    network = NETWORK_SHARE * rates.network_bytes_per_s / BYTES_PER_MIB
    cached = load.written_mib_per_s * CACHED_SECONDS
    return (
        instance.ebs_mib_per_s >= CATCHING_UP * load.written_mib_per_s
        and network >= max(load.sent_mib_per_s, load.written_mib_per_s)
        and instance.memory_mib * POD_SHARE - SMALL_HEAP_MIB >= cached
    )


def _volume_gib(load: ClientLoad) -> int:
    kept = load.written_mib_per_s * load.retention_hours * 3600 / MIB_PER_GIB / FILLED
    return max(SMALLEST_VOLUME_GIB, VOLUME_STEP_GIB * math.ceil(kept / VOLUME_STEP_GIB))


def _too_much(load: ClientLoad) -> str:
    return (
        f"{load.produce_mib_per_s:g} MiB/s over {load.brokers} brokers are "
        f"{load.written_mib_per_s:,.0f} MiB/s written and {load.sent_mib_per_s:,.0f} sent by each, "
        f"beyond what an {CANDIDATES[-1]} sustains: {_remedy(load)}."
    )


def _remedy(load: ClientLoad) -> str:
    """Say how many brokers carry a load, or that no cluster behind one load balancer does."""
    most = _most_brokers(load.zones)
    for brokers in range(load.brokers + load.zones, most + 1, load.zones):
        more = replace(load, brokers=brokers)
        if _fits(more):
            return f"name {brokers} brokers or more"
    return f"{most} brokers, the most behind one load balancer, are too few; make it several Kafkas"
