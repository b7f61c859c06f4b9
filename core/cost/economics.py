"""Compares EBS volumes with disks inside the instances, and foretells a figure from its past.

A volume survives its instance, so a rotation copies only what the broker missed. A disk inside the
instance costs nothing extra and dies with it, so a rotation copies everything the broker holds,
between zones, with a replica fewer meanwhile; unless the rotation was planned and is done in place,
where the machine stays and its disks with it. `compare` answers which is cheaper for one cluster at
the prices of its region; docs/reference/formulas.md says where each formula comes from. `forecast`
is a straight line by least squares with a prediction interval (Student's t), which is what a
handful of days or months carry; `backtest` says how well it would have done on the known days.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import NormalDist, fmean

from core.cost import pricing, resync
from core.cost.pricing import HOURS_PER_MONTH, PriceBook, Rates
from core.ground import instances
from core.ground.errors import InvalidInput

# Fewer leave no room to judge the scatter by.
FEWEST_POINTS = 5
CONFIDENCE = 0.8


@dataclass(frozen=True, slots=True)
class Forecast:
    """A value expected at one x, with the interval that holds it as often as CONFIDENCE says."""

    expected: float
    low: float
    high: float
    slope: float  # per unit of x
    points: int


@dataclass(frozen=True, slots=True)
class Backtest:
    """How forecasts one step ahead did: mean absolute error as a share, hits of the interval."""

    forecasts: int
    mape: float
    coverage: float


def forecast(points: Sequence[tuple[float, float]], at: float) -> Forecast | None:
    """Return what is expected at `at`, or None of too few points or of one x alone."""
    n = len(points)
    xs, ys = [x for x, _ in points], [y for _, y in points]
    if n < FEWEST_POINTS or min(xs) == max(xs):
        return None
    mean_x, mean_y = fmean(xs), fmean(ys)
    spread = math.fsum((x - mean_x) ** 2 for x in xs)
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    residuals = math.fsum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    freedom = n - 2
    deviation = math.sqrt(residuals / freedom * (1 + 1 / n + (at - mean_x) ** 2 / spread))
    expected = mean_y + slope * (at - mean_x)
    half = student_t(CONFIDENCE, freedom) * deviation
    return Forecast(expected, expected - half, expected + half, slope, n)


def backtest(points: Sequence[tuple[float, float]]) -> Backtest | None:
    """Return how the rule would have foretold each known point from those before it."""
    ordered = sorted(points)
    errors, hits = [], 0
    for index in range(FEWEST_POINTS, len(ordered)):
        x, y = ordered[index]
        told = forecast(ordered[:index], x)
        if told is None or not y:
            continue
        errors.append(abs(told.expected - y) / abs(y))
        hits += told.low <= y <= told.high
    return Backtest(len(errors), fmean(errors), hits / len(errors)) if errors else None


def student_t(confidence: float, freedom: int) -> float:
    """Return the two-sided quantile of Student's t.

    Abramowitz and Stegun 26.7.5; within 1 % of the tables for 80 % and 3 degrees of freedom or
    more, which FEWEST_POINTS grants.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


# A Kafka disk is not run fuller: retention lags, and a full disk stops the broker.
FILL_LIMIT = 0.75
# Traffic between zones is billed where it leaves and where it arrives.
SIDES = 2
EBS, NVME, IN_PLACE = "EBS", "NVMe", "NVMe in place"
_LEAST = {
    **dict.fromkeys(("number", "zones", "volume_gib"), 1),
    **dict.fromkeys(("append_bytes_per_s", "held_bytes", "outage_seconds"), 0),
    **dict.fromkeys(("rotations_per_month", "in_place_seconds", "planned_per_month"), 0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """The brokers as they are, every figure that of one of them but `number` and `zones`.

    `append_bytes_per_s` is what all its replicas take in; `held_bytes` what it stores. Replicas are
    in zones of their own, so every byte of replication crosses from one to another.
    `seen_bytes_per_s` is the fastest catch-up that was measured, where one was. Of the rotations a
    month so many were planned, which may be done in place: then a broker is away for
    `in_place_seconds`.
    """

    number: int
    zones: int
    instance_type: str
    volume_gib: int
    iops: int
    throughput_mib_per_s: int
    append_bytes_per_s: float
    held_bytes: float
    outage_seconds: float
    rotations_per_month: float
    in_place_seconds: float
    planned_per_month: float = 0.0
    seen_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        problems = [
            f"{name} is {value}: {least} is the least it can be; correct it."
            for name, least in _LEAST.items()
            if not (value := getattr(self, name)) >= least or math.isinf(value)
        ]
        if not problems and self.planned_per_month > self.rotations_per_month:
            problems.append(
                f"planned_per_month is {self.planned_per_month}: more than all rotations, "
                f"{self.rotations_per_month}; correct it."
            )
        if problems:
            raise InvalidInput(problems)

    @property
    def planned_share(self) -> float:
        return self.planned_per_month / self.rotations_per_month if self.planned_per_month else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """One way to run the cluster; dollars are those of all brokers.

    `rotation_usd` and `rotation_seconds` are those of one broker, the mean of those planned and
    those not where they differ. Nodes go one by one, so a design
    with twice the brokers sees twice the rotations: `rotations_ratio`.
    """

    name: str
    instance_type: str
    brokers: int
    instances_usd: Decimal  # a month
    storage_usd: Decimal  # a month
    rotation_usd: Decimal  # one rotation's bytes beyond what replication copies anyway
    rotation_seconds: float  # from the stop to the last ISR; inf when it never gets there
    limited_by: str
    fill: float  # share of the disks that holds data
    rotations_ratio: float = 1.0

    @property
    def fixed_usd(self) -> Decimal:
        return self.instances_usd + self.storage_usd

    def monthly_usd(self, rotations: float) -> Decimal:
        """Return a month's dollars where today's brokers see so many rotations."""
        each_usd = self.rotation_usd * Decimal(repr(self.rotations_ratio))
        return self.fixed_usd + each_usd * Decimal(repr(rotations))

    def risk_hours(self, rotations: float) -> float:
        """Return the hours a month that partitions are one replica short."""
        return rotations * self.rotations_ratio * self.rotation_seconds / 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Each design; `nvme` is None where no type with disks and a price would do.

    `in_place` is there where some rotations were planned. `break_even_fill`: a local disk fuller
    than this is cheaper per stored GiB than gp3, above 1 never. `break_even_rotations`: from so
    many rotations a month on EBS is cheaper; 0 when it always is, None when it never is.
    """

    ebs: Design
    nvme: Design | None
    rotations: float
    in_place: Design | None = None
    break_even_fill: float | None = None
    break_even_rotations: float | None = None

    @property
    def designs(self) -> tuple[Design, ...]:
        found = (self.ebs, self.nvme, self.in_place)
        return tuple(design for design in found if design is not None)

    @property
    def cheaper(self) -> Design:
        """Return the cheapest one that gets its brokers back."""
        return min(
            (d for d in self.designs if d is self.ebs or not math.isinf(d.rotation_seconds)),
            key=lambda design: design.monthly_usd(self.rotations),
        )


def compare(brokers: Brokers, book: PriceBook) -> Comparison:
    """Return what the cluster costs on its volumes and on the cheapest type with disks that fits.

    Raises InvalidInput for a type that is in no table or has no price.
    """
    ebs = _volume_design(brokers, book)
    rotations = brokers.rotations_per_month
    nvme = _cheapest(_disk_designs(brokers, book), rotations)
    if nvme is None:
        return Comparison(ebs=ebs, nvme=None, rotations=rotations)
    planned = brokers.planned_share
    return Comparison(
        ebs=ebs,
        nvme=nvme,
        rotations=rotations,
        in_place=_cheapest(_disk_designs(brokers, book, planned), rotations) if planned else None,
        break_even_fill=break_even_fill(ebs, nvme, book),
        break_even_rotations=break_even_rotations(ebs, nvme),
    )


def _cheapest(candidates: Iterator[Design], rotations: float) -> Design | None:
    """Return the cheapest that gets its brokers back, or where none does the cheapest."""
    return min(
        candidates,
        # Prices are linear in size, so the same dollars come in many sizes: fewer brokers are less
        # to run.
        key=lambda design: (
            math.isinf(design.rotation_seconds),
            round(design.monthly_usd(rotations)),
            design.brokers,
        ),
        default=None,
    )


def break_even_fill(ebs: Design, nvme: Design, book: PriceBook) -> float | None:
    """Return how full a local disk must be for its GiB to cost what a stored GiB of gp3 costs.

    What the disk costs is what its instance costs more. A volume is paid for whole, so a stored GiB
    of gp3 costs its price divided by how full the volumes are.
    """
    disks = nvme.brokers * pricing.table()[nvme.instance_type].nvme_bytes
    if not ebs.fill or not disks:
        return None
    extra = nvme.instances_usd - ebs.instances_usd
    per_stored_gib = float(book.price("gp3_gib_month").usd) / ebs.fill
    return float(extra) / (disks / pricing.BYTES_PER_GIB * per_stored_gib)


def break_even_rotations(ebs: Design, nvme: Design) -> float | None:
    """Return from how many rotations a month EBS is cheaper; None: never."""
    cheaper_by = ebs.fixed_usd - nvme.fixed_usd
    dearer_each = nvme.monthly_usd(1) - nvme.fixed_usd - ebs.monthly_usd(1) + ebs.fixed_usd
    if cheaper_by <= 0:
        return 0.0 if dearer_each >= 0 else None
    return float(cheaper_by / dearer_each) if dearer_each > 0 else None


def _volume_design(brokers: Brokers, book: PriceBook) -> Design:
    rates, instance = _rates(brokers.instance_type), _instance(brokers.instance_type)
    limits = {
        "the volume's throughput": brokers.throughput_mib_per_s * instances.BYTES_PER_MIB,
        "the instance's EBS baseline": instance.ebs_mb_per_s * instances.BYTES_PER_MB,
        **_network(rates),
        **_seen_rates(brokers),
    }
    flow = _flow(brokers, limits)
    way = resync.after_outage(
        flow, outage_seconds=brokers.outage_seconds, held_bytes=brokers.held_bytes
    )
    storage = (
        brokers.volume_gib * book.price("gp3_gib_month").usd
        + pricing.billed_iops(brokers.iops) * book.price("gp3_iops_month").usd
        + pricing.billed_gib_per_s(brokers.throughput_mib_per_s) * book.price("gp3_gibps_month").usd
    )
    usd, seconds = _rotation(way, brokers.outage_seconds, book)
    return Design(
        name=EBS,
        instance_type=rates.name,
        brokers=brokers.number,
        instances_usd=_instances_usd(brokers.number, rates, book),
        storage_usd=brokers.number * storage,
        rotation_usd=usd,
        rotation_seconds=seconds,
        limited_by=flow.limited_by,
        fill=brokers.held_bytes / (brokers.volume_gib * pricing.BYTES_PER_GIB),
    )


def _disk_designs(
    brokers: Brokers, book: PriceBook, in_place_share: float = 0.0
) -> Iterator[Design]:
    """Yield the cluster on every priced type with disks, with as many brokers as it then needs.

    A broker stays at least as large as it is: a cluster of many small ones is another cluster.
    """
    graviton = _rates(brokers.instance_type).is_graviton
    now = _instance(brokers.instance_type)
    held = brokers.number * brokers.held_bytes
    for rates in pricing.table().values():
        fits = rates.nvme_gb and rates.is_graviton == graviton
        if not fits or f"{pricing.INSTANCE_HOUR}:{rates.name}" not in book.prices:
            continue
        instance = _instance(rates.name)
        if instance.vcpus < now.vcpus or instance.memory_mib < now.memory_mib:
            continue
        needed = max(brokers.number, math.ceil(held / (rates.nvme_bytes * FILL_LIMIT)))
        number = math.ceil(needed / brokers.zones) * brokers.zones
        share = brokers.number / number
        flow = _flow(brokers, {**_network(rates), **_seen_rates(brokers)}, share)
        usd, seconds = _disk_rotation(
            brokers, flow, brokers.held_bytes * share, book, in_place_share
        )
        yield Design(
            name=IN_PLACE if in_place_share else NVME,
            instance_type=rates.name,
            brokers=number,
            instances_usd=_instances_usd(number, rates, book),
            storage_usd=Decimal(0),
            rotation_usd=usd,
            rotation_seconds=seconds,
            limited_by=flow.limited_by,
            fill=held / (number * rates.nvme_bytes),
            rotations_ratio=number / brokers.number,
        )


def _disk_rotation(
    brokers: Brokers, flow: resync.Flow, held_bytes: float, book: PriceBook, in_place_share: float
) -> tuple[Decimal, float]:
    """Return what a rotation costs and takes where that share of them keeps the disk's data."""
    away, in_place = brokers.outage_seconds, brokers.in_place_seconds
    lost = resync.after_loss(flow, outage_seconds=away, held_bytes=held_bytes)
    kept = resync.after_outage(flow, outage_seconds=in_place, held_bytes=held_bytes)
    usd, seconds = Decimal(0), 0.0
    for share, (each_usd, each_seconds) in (
        (1 - in_place_share, _rotation(lost, away, book)),
        (in_place_share, _rotation(kept, in_place, book)),
    ):
        if share:
            usd += each_usd * Decimal(repr(share))
            seconds += each_seconds * share
    return usd, seconds


def _rotation(
    way: resync.CatchUp | resync.Divergence, away_seconds: float, book: PriceBook
) -> tuple[Decimal, float]:
    """Return what one rotation costs beyond what replication copies anyway, and how long it is."""
    if isinstance(way, resync.Divergence):
        return crossing_usd(way.behind_bytes, book), math.inf
    usd = crossing_usd(max(0.0, way.incremental_bytes), book)
    return usd, away_seconds + way.seconds


def _instances_usd(number: int, rates: Rates, book: PriceBook) -> Decimal:
    return number * HOURS_PER_MONTH * book.instance_hour(rates.name).usd


def crossing_usd(size_bytes: float, book: PriceBook) -> Decimal:
    """Return what bytes cost that cross from one zone to another, billed on both sides."""
    gib = Decimal(repr(size_bytes)) / pricing.BYTES_PER_GIB
    return gib * SIDES * book.price("inter_zone_gib").usd


def _flow(brokers: Brokers, limits: Mapping[str, float], share: float = 1.0) -> resync.Flow:
    limited_by, rate = resync.slowest(limits)
    return resync.Flow(
        append_bytes_per_s=brokers.append_bytes_per_s * share,
        replication_bytes_per_s=rate,
        limited_by=limited_by,
    )


def _network(rates: Rates) -> Mapping[str, float]:
    # A broker that catches up leads nothing: its whole network is there for replication.
    return {"the instance's network baseline": rates.network_bytes_per_s}


def _seen_rates(brokers: Brokers) -> Mapping[str, float]:
    seen = brokers.seen_bytes_per_s
    return {} if seen is None else {"the rate measured in past rotations": seen}


def _rates(instance_type: str) -> Rates:
    found = pricing.table().get(instance_type)
    if found is None:
        problem = (
            f"Instance type {instance_type} is not in core/instance_rates.json, so its network and "
            f"disks are unknown; compare with one of {len(pricing.table())} that are."
        )
        raise InvalidInput([problem])
    return found


def _instance(instance_type: str) -> instances.InstanceType:
    found = instances.table().types.get(instance_type)
    if found is None:
        problem = f"Instance type {instance_type} is not in core/instances.json."
        raise InvalidInput([problem])
    return found
