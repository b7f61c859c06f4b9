"""Decides what a broker of a new cluster is: its instance type and its volume, from the load.

The arithmetic of docs/how-to/choose-instance-types.md: what an instance sustains for ever counts,
never what it bursts to. A size to begin with; volumes grow later, and nodes are exchanged one by
one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from core.cluster.spec import LISTENERS_PER_LOAD_BALANCER
from core.cost import pricing
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
            f"each of {load.brokers} brokers, and a gp3 volume ends at {LARGEST_GIB:,}: "
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
            f"{load.brokers} brokers: AWS gives a load balancer {LISTENERS_PER_LOAD_BALANCER} "
            f"listeners for good, and the bootstrap, every broker and a spare one per zone take "
            f"one each; ask for {most} at most."
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
