"""Writes the bill of what the twin really ran, as a CUR 2.0 export: last stop of a demo's money.

Instances, volumes and EKS clusters are read from moto and metered as AWS does: by the second,
instances and volumes for a minute at least, volumes as a share of the calendar month; one line per
resource, meter and clock hour. Prices come from the price book. Every line says that it is
simulated, and so does the manifest. What moto has forgotten (a deleted volume) is not billed.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from core.cost import pricing
from core.cost.pricing import Price, PriceBook
from core.ground.naming import CLUSTER_TAG
from local.bills import export
from local.bills.line import BillLine
from local.environment import ACCOUNT, REGION
from local.place import Place

# "User initiated (2026-11-20 22:10:09 UTC)", the only place where EC2 says when.
_STOPPED_AT = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:UTC|GMT)\)")
_HOUR = timedelta(hours=1)
# EC2 Linux instances and EBS volumes are billed by the second, one minute at least.
_MINIMUM = timedelta(minutes=1)
_AMOUNT = Decimal("0.0000000001")


@dataclass(frozen=True, slots=True)
class BilledMeter:
    """One thing a resource is billed for: an amount, per hour or per month of its life."""

    usage_type: str
    operation: str
    product: str
    unit: str
    price: Price
    amount: Decimal
    monthly: bool = False


@dataclass(frozen=True, slots=True)
class Bill:
    """A written bill: the folder of its export, and what it adds up to in US dollars."""

    total: Decimal
    path: Path


@dataclass(frozen=True, slots=True)
class BilledResource:
    """Something that ran, from when until when, and its meters."""

    resource_id: str
    zone: str
    begins: datetime
    ends: datetime
    tags: Mapping[str, str]
    meters: Sequence[BilledMeter]


def write_bill(
    place: Place,
    *,
    ec2: Any,
    out: Path,
    started_at: float,
    ended_at: float,
    bytes_between_zones: int | None = None,
    eks: Any = None,
) -> Bill:
    """Write the export of what ran between two moments (epoch seconds) and return its total.

    `bytes_between_zones` are those sent across zones; each is billed going out and coming in.
    Raises InvalidInput when the price book lacks something that ran.
    """
    book = pricing.book(REGION)
    window = (datetime.fromtimestamp(started_at, UTC), datetime.fromtimestamp(ended_at, UTC))
    resources = [
        *_instances(ec2, book, *window),
        *_volumes(ec2, book, *window),
        *(_clusters(eks, book, *window) if eks else ()),
    ]
    lines = [line for resource in resources for line in _lines(resource)]
    if bytes_between_zones:
        lines += _transfer(bytes_between_zones, book, window[1], _cluster_tag(resources))
    name = f"stillwater-twin-{place.number}"
    for old in out.glob(f"*/*/{name}-*"):
        old.unlink()
    export.write(out, lines, name=name)
    return Bill(total=pricing.plain(pricing.total(line.unblended for line in lines)), path=out)


def _instances(
    ec2: Any, book: PriceBook, start: datetime, end: datetime
) -> Iterator[BilledResource]:
    for reservation in _all(ec2.describe_instances, "Reservations"):
        for instance in reservation["Instances"]:
            launched = instance["LaunchTime"].astimezone(UTC)
            stopped = _STOPPED_AT.search(instance.get("StateTransitionReason") or "")
            last = _utc(stopped[1]) if stopped else end
            kind = instance["InstanceType"]
            meter = BilledMeter(
                usage_type=f"BoxUsage:{kind}",
                operation="RunInstances",
                product="AmazonEC2",
                unit="Hrs",
                price=book.instance_hour(kind),
                amount=Decimal(1),
            )
            resource = BilledResource(
                resource_id=instance["InstanceId"],
                zone=instance["Placement"]["AvailabilityZone"],
                begins=max(launched, start),
                ends=max(min(last, end), launched + _MINIMUM),
                tags=_tags(instance.get("Tags")),
                meters=[meter],
            )
            if last > start and launched < end:
                yield resource


def _volumes(ec2: Any, book: PriceBook, start: datetime, end: datetime) -> Iterator[BilledResource]:
    for volume in _all(ec2.describe_volumes, "Volumes"):
        created = volume["CreateTime"].astimezone(UTC)
        if created < end:
            yield BilledResource(
                resource_id=volume["VolumeId"],
                zone=volume["AvailabilityZone"],
                begins=max(created, start),
                ends=max(end, created + _MINIMUM),
                tags=_tags(volume.get("Tags")),
                meters=list(_volume_meters(volume, book)),
            )


def _volume_meters(volume: Mapping[str, Any], book: PriceBook) -> Iterator[BilledMeter]:
    kind, size = volume["VolumeType"], Decimal(volume["Size"])
    rows = [(f"VolumeUsage.{kind}", "GB-Mo", f"{kind}_gib_month", size)]
    if kind == "gp3":
        # AWS writes these lines for a volume at its baseline too, with quantity 0.
        iops = pricing.billed_iops(volume.get("Iops") or pricing.GP3_INCLUDED_IOPS)
        speed = pricing.billed_gib_per_s(volume.get("Throughput") or pricing.GP3_INCLUDED_MIB_PER_S)
        rows += [
            ("VolumeP-IOPS.gp3", "IOPS-Mo", "gp3_iops_month", Decimal(iops)),
            ("VolumeP-Throughput.gp3", "GiBps-mo", "gp3_gibps_month", speed),
        ]
    for usage_type, unit, price, amount in rows:
        yield BilledMeter(
            usage_type=f"EBS:{usage_type}",
            operation=f"CreateVolume-{kind.capitalize()}",
            product="AmazonEC2",
            unit=unit,
            price=book.price(price),
            amount=amount,
            monthly=True,
        )


def _clusters(
    eks: Any, book: PriceBook, start: datetime, end: datetime
) -> Iterator[BilledResource]:
    for name in eks.list_clusters()["clusters"]:
        cluster = eks.describe_cluster(name=name)["cluster"]
        created = cluster["createdAt"].astimezone(UTC)
        if created < end:
            yield BilledResource(
                resource_id=cluster["arn"],
                zone="",
                begins=max(created, start),
                ends=end,
                tags=dict(cluster.get("tags") or {}),
                meters=[
                    BilledMeter(
                        # EKS prefixes its meters in us-east-1 too, where EC2 does not.
                        usage_type="USE1-AmazonEKS-Hours:perCluster",
                        operation="CreateOperation",
                        product="AmazonEKS",
                        unit="Hours",
                        price=book.price("eks_cluster_hour"),
                        amount=Decimal(1),
                    )
                ],
            )


def _transfer(
    size_bytes: int, book: PriceBook, at: datetime, tags: Mapping[str, str]
) -> Iterator[BillLine]:
    """Bill bytes that crossed zones, once on the side that sent and once on the one that got them.

    The twin counts them for the whole cluster, so the lines name no instance.
    """
    price = book.price("inter_zone_gib")
    hour = _hour_of(at)
    for operation in ("InterZone-Out", "InterZone-In"):
        meter = BilledMeter(
            usage_type="DataTransfer-Regional-Bytes",
            operation=operation,
            product="AmazonEC2",
            unit="GB",
            price=price,
            amount=Decimal(size_bytes) / pricing.BYTES_PER_GIB,
        )
        everyone = BilledResource("", "", hour, hour + _HOUR, tags, [meter])
        yield _line(everyone, meter, hour, meter.amount)


def _cluster_tag(resources: Iterable[BilledResource]) -> dict[str, str]:
    """Return the one cluster's tag that these resources share, or none."""
    clusters = {r.tags[CLUSTER_TAG] for r in resources if CLUSTER_TAG in r.tags}
    return {CLUSTER_TAG: clusters.pop()} if len(clusters) == 1 else {}


def _lines(resource: BilledResource) -> Iterator[BillLine]:
    """Cut a resource's life into clock hours and meter each."""
    hour = _hour_of(resource.begins)
    while hour < resource.ends:
        begins, ends = max(hour, resource.begins), min(hour + _HOUR, resource.ends)
        seconds = (ends - begins).total_seconds()
        for meter in resource.meters:
            share = volume_months(seconds, hour) if meter.monthly else billed_hours(seconds)
            yield _line(resource, meter, hour, meter.amount * share)
        hour += _HOUR


def billed_hours(seconds: float) -> Decimal:
    """Return seconds as hours, rounded as EC2's bill rounds them: to a millionth."""
    return (Decimal(repr(seconds)) / pricing.SECONDS_PER_HOUR).quantize(Decimal("0.000001"))


def seconds_in_month(moment: datetime) -> int:
    """Return the length of a moment's calendar month in UTC, by which EBS prorates (not 730 h)."""
    utc = moment.astimezone(UTC)
    return calendar.monthrange(utc.year, utc.month)[1] * 24 * pricing.SECONDS_PER_HOUR


def volume_months(seconds: float, moment: datetime) -> Decimal:
    """Return the share of a calendar month that a volume existed for."""
    return Decimal(repr(seconds)) / seconds_in_month(moment)


def _line(
    resource: BilledResource, meter: BilledMeter, hour: datetime, quantity: Decimal
) -> BillLine:
    quantity = quantity.quantize(_AMOUNT)
    # AWS keeps ten places; a double holds them exactly at this size.
    cost = (quantity * meter.price.usd).quantize(_AMOUNT)
    return BillLine(
        hour=hour,
        product=meter.product,
        usage_type=meter.usage_type,
        operation=meter.operation,
        unit=meter.unit,
        quantity=quantity,
        unblended=cost,
        amortised=cost,
        resource_id=resource.resource_id,
        zone=resource.zone,
        account=ACCOUNT,
        tags=resource.tags,
        description=f"${meter.price.usd:f} per {meter.unit} of {meter.usage_type}",
    )


def _hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def _utc(written: str) -> datetime:
    return datetime.strptime(f"{written}+0000", "%Y-%m-%d %H:%M:%S%z")


def _tags(pairs: Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    return {pair["Key"]: pair["Value"] for pair in pairs or ()}


def _all(describe: Any, key: str) -> Iterator[Mapping[str, Any]]:
    query: dict[str, str] = {}
    while True:
        answer = describe(**query)
        yield from answer[key]
        if not answer.get("NextToken"):
            return
        query = {"NextToken": answer["NextToken"]}
