"""Reads what the desk shows: the ledger every two seconds, volumes and λ health more seldom.

A reading that fails leaves the one before it, with the sentence that says why it is old.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from cli import health, stack_settings
from cli.aws import out_of_reach
from cli.target import Cluster
from core.availability.lease import Lease
from core.cluster import estimate
from core.cost import pricing
from core.ground.errors import StillwaterError
from core.incidents.joining import Pause
from core.incidents.record import Incident
from core.rotation.run_record import Run
from core.zones.incident import ZoneIncident
from handlers.adapters.calls import NO_ANSWER
from handlers.store import volume_records
from handlers.store.documents import Freezes, Runs
from handlers.store.volume_records import PLAN, Memory

# Closed incidents stand in the index until the sweep files them, which takes a minute.
MOST_CLOSING = 20


class DeskSource(StrEnum):
    """What is asked, each at its own pace."""

    LEDGER = "ledger"
    VOLUMES = "volumes"
    HEALTH = "health"


EVERY_SECONDS: Mapping[DeskSource, float] = {
    DeskSource.LEDGER: 2.0,
    DeskSource.VOLUMES: 30.0,
    # One examination asks every broker.
    DeskSource.HEALTH: 30.0,
}


@dataclass(frozen=True, slots=True)
class LedgerSeen:
    """What the ledger holds now; every value of it was read."""

    incidents: tuple[Incident, ...] = ()
    leases: tuple[Lease, ...] = ()
    zones: tuple[ZoneIncident, ...] = ()
    pause: Pause | None = None
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class VolumesSeen:
    """λ volumes' last plan, and what is remembered of each claim's volume."""

    plan: Mapping[str, Any] = field(default_factory=dict)
    memories: Mapping[str, Memory] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """What a source said last, when, and why it says nothing now."""

    value: Any = None
    read_at: float | None = None
    failed: str = ""


@dataclass(frozen=True, slots=True)
class DeskCluster:
    """What does not change while the desk is open; dollars are list prices, None is unknown."""

    environment: str
    name: str
    region: str
    hold_limit_seconds: float
    monthly_usd: float | None = None
    hourly_usd_by_pool: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeskReading:
    """All answers there are; a source that was never asked has none."""

    cluster: DeskCluster
    answers: Mapping[DeskSource, LastAnswer] = field(default_factory=dict)

    def answer(self, source: DeskSource) -> LastAnswer:
        return self.answers.get(source, LastAnswer())

    def update(self, source: DeskSource, answer: LastAnswer) -> DeskReading:
        """Return the reading with a new answer; one that failed keeps the value before it."""
        before = self.answer(source)
        kept = replace(before, failed=answer.failed) if answer.failed else answer
        return replace(self, answers={**self.answers, source: kept})


class Stores:
    """The gateways of one environment, opened once and asked again and again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ledger = cluster.ledger
        self._records = cluster.records
        self._freezes = Freezes(self._records, cluster.spec.name)
        self._runs = Runs(self._records, cluster.spec.name)

    def ask(self, source: DeskSource) -> LastAnswer:
        """Ask one source; what it refuses is a sentence."""
        asked: Mapping[DeskSource, Callable[[], Any]] = {
            DeskSource.LEDGER: self._ledger_seen,
            DeskSource.VOLUMES: self._volumes_seen,
            DeskSource.HEALTH: lambda: health.ask(self._cluster).document,
        }
        try:
            return LastAnswer(asked[source](), time.time())
        except (StillwaterError, *NO_ANSWER) as error:
            return LastAnswer(failed=out_of_reach("AWS does not answer.", error))

    def _ledger_seen(self) -> LedgerSeen:
        leases = self._ledger.leases()
        found = {
            each.id: each
            for each in (*self._ledger.closing(MOST_CLOSING), *self._ledger.open_incidents())
        }
        # An instance that was retained keeps its lease, and its incident is over and filed.
        for lease in leases:
            known = found.get(lease.holder) or self._ledger.get(lease.holder)
            if known is not None:
                found[known.id] = known
        return LedgerSeen(
            incidents=tuple(sorted(found.values(), key=lambda each: each.opened_at)),
            leases=leases,
            zones=self._freezes.incidents(),
            pause=self._freezes.current_pause(time.time()),
            run=self._runs.current(),
        )

    def _volumes_seen(self) -> VolumesSeen:
        plan = self._records.read(PLAN).document or {}
        memories = {
            claim: volume_records.read(self._records, volume_id)
            for claim, volume_id in sorted(plan.get("volumes", {}).items())
        }
        return VolumesSeen(plan, memories)


def desk_cluster(environment: str, cluster: Cluster) -> DeskCluster:
    """Return what of a cluster does not change, with the list prices of its region."""
    spec = cluster.own_spec
    book = stack_settings.prices(spec.region)
    total = estimate.monthly(spec, book).total
    hourly = {
        pool.name: float(price.usd)
        for pool in spec.pools
        if (price := book.find(f"{pricing.INSTANCE_HOUR}:{pool.instance_type}")) is not None
    }
    return DeskCluster(
        environment=environment,
        name=spec.prefix,
        region=spec.region,
        hold_limit_seconds=float(spec.timings.hold_limit_seconds),
        monthly_usd=None if total is None else float(total),
        hourly_usd_by_pool=hourly,
    )
