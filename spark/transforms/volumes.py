"""Joins bill and samples per volume: what is paid for, and what of it is used.

A bill says GB-months, which AWS counts by the second of the calendar month: a day's share times
the month's days is the size. The largest of the last days is taken, since on its first and last
day a volume is billed for a part; quantities of performance are what is above gp3's included part.
"""

from __future__ import annotations

import math
import re
import statistics
from calendar import monthrange
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Any

from core.cost.pricing import GP3_INCLUDED_IOPS, GP3_INCLUDED_MIB_PER_S
from core.volumes.speed import LEAST_SECONDS
from spark.rows import Found, grouped, largest, summed
from spark.rules.meters import billed_part
from spark.rules.names import Component, VolumePart
from spark.samples import (
    BYTES_IN,
    INSTANCE_EXCEEDED,
    REPLICATION_IN,
    VOLUME_BYTES,
    VOLUME_EXCEEDED,
    VOLUME_OPS,
    VOLUME_USED,
    Series,
    day_of,
    increases,
    of_all_topics,
)

# Days looked at for a size; three of them hold a whole one.
LAST_DAYS = 3
SNAPSHOT = "snapshot"
P999 = 0.999
_HOUR_SECONDS = 3600


class Finding(StrEnum):
    """What is to be said of a volume, the dearest kind of waste first."""

    ORPHAN = "attached to nothing"
    ORPHAN_SNAPSHOT = "snapshot of a volume that is gone"
    MOVE_TO_GP3 = "move to gp3"
    SMALLER = "larger than needed"
    SLOWER = "faster than needed"
    LARGER = "too small"
    FASTER = "too slow"
    INSTANCE = "held back by its instance"
    FITS = "fits"
    NOT_MEASURED = "not measured"


# EBS:VolumeUsage.gp2; io1 is `piops`, and magnetic has no ending.
_STORAGE = re.compile(r"^EBS:VolumeUsage(?:\.(\w+))?$")
_BY_COMPONENT = {
    Component.GP3_STORAGE.value: "storage",
    Component.GP3_IOPS.value: "iops",
    Component.GP3_THROUGHPUT.value: "throughput",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """One volume or snapshot of a bill: what it is, what it costs, and what was measured of it.

    What was not measured is None.
    """

    billing_period: str
    resource_id: str
    kind: str
    cluster: str | None
    owner: str | None
    node_id: int | None
    zone: str | None
    days: int
    last_day: date
    size_gib: float | None
    billed_iops: float | None
    billed_gib_per_s: float | None
    gib_month_price: float | None
    iops_month_price: float | None
    billed_cost: Decimal
    # Of its node: what the claims hold, how fast that grows, and what the node takes in.
    used_bytes: int | None = None
    growth_bytes_per_day: float | None = None
    append_bytes_per_s: float | None = None
    # The 99.9th percentile of its rates, and its worst hour beyond a limit.
    iops_p999: float | None = None
    throughput_p999_bytes_per_s: float | None = None
    volume_exceeded_share: float | None = None
    instance_exceeded_share: float | None = None


def meter_of(usage_type: str | None, component: str) -> tuple[str | None, str | None]:
    """Return which part of a volume a charge is for, and of storage the volume's type.

    FOCUS, which may name no usage type, says gp3 by the component.
    """
    if usage_type is None:
        part = _BY_COMPONENT.get(component)
        return part, "gp3" if part == "storage" else None
    part = billed_part(usage_type)
    if part is VolumePart.SNAPSHOT:
        return "storage", SNAPSHOT
    found = _STORAGE.search(usage_type)
    if found:
        return "storage", "io1" if found[1] == "piops" else found[1] or "standard"
    return part and part.value, None


def billed_volumes(usage: Iterable[Found]) -> list[Volume]:
    """Return the volumes and snapshots of USAGE rows."""
    known = [
        (row, *meter_of(row.usage_type, row.component))
        for row in usage
        if row.resource_id is not None
    ]
    of_resource = grouped((each for each in known if each[1]), lambda each: each[0].resource_id)
    found = (_billed_volume(resource, rows) for resource, rows in of_resource.items())
    return sorted((each for each in found if each is not None), key=lambda v: v.resource_id)


def _billed_volume(
    resource_id: str, charges: Sequence[tuple[Found, str | None, str | None]]
) -> Volume | None:
    kind = largest(kind for _, _, kind in charges)
    rows = [row for row, _, _ in charges]
    days = {row.day for row in rows if row.day is not None}
    if kind is None or not days:
        return None
    recent = sorted(days, reverse=True)[:LAST_DAYS]

    def provisioned(part: str) -> float | None:
        """Return what was so on the fullest of the last days; a day is 1/28 to 1/31 month."""
        of_days = (
            float(summed(own, "quantity")) * monthrange(day.year, day.month)[1]
            for day in recent
            if (own := [row for row, of, _ in charges if of == part and row.day == day])
        )
        return max(of_days, default=None)

    def price(part: str) -> float | None:
        own = [row for row, of, _ in charges if of == part]
        quantity = float(summed(own, "quantity"))
        return float(summed(own, "billed_cost")) / quantity if quantity else None

    return Volume(
        billing_period=max(row.billing_period for row in rows),
        resource_id=resource_id,
        kind=kind,
        cluster=largest(row.cluster for row in rows),
        owner=largest(row.owner for row in rows),
        node_id=largest(row.node_id for row in rows),
        zone=largest(row.zone for row in rows),
        days=len(days),
        last_day=max(days),
        size_gib=provisioned("storage"),
        billed_iops=provisioned("iops"),
        billed_gib_per_s=provisioned("throughput"),
        gib_month_price=price("storage"),
        iops_month_price=price("iops"),
        billed_cost=summed(rows, "billed_cost"),
    )


def with_measures(volumes: Iterable[Volume], samples: Sequence[Series]) -> list[Volume]:
    """Return volumes with what was measured of each, and of its node's claims."""
    used, loads = used_by_node(samples), load_by_volume(samples)
    return [
        replace(
            volume,
            **(used.get((volume.owner, volume.node_id), {}) if volume.node_id is not None else {}),
            **loads.get(volume.resource_id, {}),
        )
        for volume in volumes
    ]


def used_by_node(samples: Sequence[Series]) -> dict[tuple[str | None, int | None], dict[str, Any]]:
    """Return what the claims of each Kafka node hold, by its pool and id, as fields of Volume."""
    appended = _append_rates(samples)
    claims = [series for series in samples if series.name == VOLUME_USED]
    found = {}
    for (pool, node_id), own in grouped(claims, lambda s: (s.pool, s.node_id)).items():
        # The last sample of each claim on a day, added up over the node's claims.
        days: dict[date, float] = defaultdict(float)
        for claim in grouped(own, lambda s: s.claim).values():
            last: dict[date, tuple[float, float]] = {}
            for series in claim:
                for point in series.points:
                    last[day_of(point[0])] = max(last.get(day_of(point[0]), point), point)
            for day, (_, value) in last.items():
                days[day] += value
        if days:
            found[pool, node_id] = {
                "used_bytes": int(days[max(days)]),
                "growth_bytes_per_day": _slope(days),
                "append_bytes_per_s": appended.get(node_id),
            }
    return found


def _slope(days: Mapping[date, float]) -> float:
    """Return what a value grows by a day; of a single day nothing is known, which is 0."""
    if len(days) < 2:
        return 0.0
    places = [float(day.toordinal()) for day in days]
    return statistics.linear_regression(places, list(days.values())).slope


def _append_rates(samples: Iterable[Series]) -> dict[int | None, float]:
    """Return what each node took in, of its clients and of leaders, on its busiest day."""
    taken: dict[tuple[int | None, date], float] = defaultdict(float)
    seconds: dict[tuple[int | None, date], float] = defaultdict(float)
    for series in of_all_topics(samples, BYTES_IN, REPLICATION_IN):
        for each in increases(series):
            key = (series.node_id, day_of(each.at))
            taken[key] += each.value
            seconds[key] += each.seconds if series.name == REPLICATION_IN else 0.0
    rates: dict[int | None, float] = {}
    for (node_id, day), bytes_in in taken.items():
        if known := seconds[node_id, day]:
            rates[node_id] = max(rates.get(node_id, 0.0), bytes_in / known)
    return rates


def load_by_volume(samples: Iterable[Series]) -> dict[str, dict[str, Any]]:
    """Return what was measured of each volume's load, as fields of Volume."""
    counted = (*VOLUME_OPS, *VOLUME_BYTES, *VOLUME_EXCEEDED, *INSTANCE_EXCEEDED)
    own = [s for s in samples if s.volume_id is not None and s.name in counted]
    return {
        volume_id: _load(series)
        for volume_id, series in grouped(own, lambda s: s.volume_id or "").items()
    }


def _load(own: Iterable[Series]) -> dict[str, float | None]:
    rates: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    seconds: dict[float, float] = {}
    for series in own:
        for each in increases(series):
            rates[series.name][each.at] += each.value / each.seconds
            seconds[each.at] = max(seconds.get(each.at, 0.0), each.seconds)
    return {
        "iops_p999": _percentile(_added(rates, VOLUME_OPS), P999),
        "throughput_p999_bytes_per_s": _percentile(_added(rates, VOLUME_BYTES), P999),
        "volume_exceeded_share": _worst_hour(rates, VOLUME_EXCEEDED, seconds),
        "instance_exceeded_share": _worst_hour(rates, INSTANCE_EXCEEDED, seconds),
    }


def _added(rates: Mapping[str, Mapping[float, float]], names: Sequence[str]) -> list[float]:
    moments = {at for name in names for at in rates.get(name, ())}
    return sorted(sum(rates.get(name, {}).get(at, 0.0) for name in names) for at in moments)


def _percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the value at a share of the way, between two values in proportion."""
    if not ordered:
        return None
    place = (len(ordered) - 1) * share
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


def _worst_hour(
    rates: Mapping[str, Mapping[float, float]], names: Sequence[str], seconds: Mapping[float, float]
) -> float | None:
    """Return the share of an hour in which a limit was exceeded; a few minutes are no whole one.

    Both limits must be measured: the operations and the bytes.
    """
    first, second = (rates.get(name, {}) for name in names)
    exceeded: dict[int, float] = defaultdict(float)
    measured: dict[int, float] = defaultdict(float)
    for at in first.keys() & second.keys():
        hour = int(at // _HOUR_SECONDS)
        exceeded[hour] += min(max(first[at], second[at]), 1.0) * seconds[at]
        measured[hour] += seconds[at]
    return max((exceeded[h] / max(measured[h], LEAST_SECONDS) for h in measured), default=None)


def performance(row_iops: float | None, row_gib_per_s: float | None) -> tuple[int, int]:
    """Return the provisioned IOPS and MiB/s of a gp3 volume by what was billed above the included.

    The bill counts throughput in GiB/s although its text says MiBps.
    """
    return (
        GP3_INCLUDED_IOPS + round(row_iops or 0),
        GP3_INCLUDED_MIB_PER_S + round((row_gib_per_s or 0) * 1024),
    )
