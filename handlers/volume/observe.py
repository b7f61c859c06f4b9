"""One look at all volumes: pools, claims, sources and memory, put together as sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.errors import Conflict
from core.settings.volumes import PoolSettings, VolumeSettings
from core.volumes.departures import rotation_of
from core.volumes.forecast import FillSample, forecast
from core.volumes.ledger import with_observation
from core.volumes.limits import Gp3, Performance
from core.volumes.views import Hour, Load, VolumeSet, VolumeView
from handlers.adapters.claims import ClaimView, PoolView, VolumeClaims
from handlers.adapters.ebs import EbsView
from handlers.store import volume_records
from handlers.store.records import Records
from handlers.store.volume_records import HOUR_SECONDS, SAMPLES_KEPT, Memory
from handlers.volume.departures import Departing
from handlers.volume.sources import Readings, Sources

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class SeenVolumes:
    """The sets, the pools they are of, what is remembered of their volumes, and what is unknown."""

    sets: tuple[VolumeSet, ...]
    pools: Mapping[str, PoolView]
    memories: Mapping[str, Memory]
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lookout:
    """Reads everything once."""

    claims: VolumeClaims
    sources: Sources
    departing: Departing
    records: Records
    settings: VolumeSettings

    def look(self, now: float) -> SeenVolumes:
        """Return what there is; raises StillwaterError where Kubernetes or EC2 does not answer."""
        pools = {
            pool.name: pool for pool in self.claims.pools() if pool.name in self.settings.pools
        }
        claims = tuple(claim for claim in self.claims.claims() if claim.pool in pools)
        classes = self.claims.classes()
        known = {c.volume_id: volume_records.read(self.records, c.volume_id) for c in claims}
        unseen = [c.name for c in claims if not known[c.volume_id].samples]
        readings = self.sources.read(claims, unseen, now)
        departures = self.departing.read()
        memories: dict[str, Memory] = {}
        sets = []
        for pool in pools.values():
            for number, asked in pool.volumes.items():
                volumes = []
                for claim in claims:
                    ebs = readings.ebs.get(claim.volume_id)
                    if (claim.pool, claim.number) != (pool.name, number) or ebs is None:
                        # EC2 does not know it, or it is no gp3: nothing here is about it.
                        continue
                    before = known[claim.volume_id]
                    memory = self._remember(claim, asked, before, readings, now)
                    memories[claim.volume_id] = memory
                    volumes.append(_view(claim, ebs, memory, readings, now))
                if volumes:
                    seen = self._set(pool, number, asked, tuple(volumes))
                    rotation = rotation_of(seen, departures)
                    sets.append(replace(seen, rotation=rotation, classes=classes))
        return SeenVolumes(tuple(sets), pools, memories, readings.gaps)

    def _set(
        self, pool: PoolView, number: int, asked: Gp3, volumes: tuple[VolumeView, ...]
    ) -> VolumeSet:
        settings = self.settings.pools[pool.name]
        frozen = pool.frozen or (
            "volumes.frozen in the ClusterSpec" if self.settings.frozen else ""
        )
        return VolumeSet(
            pool=pool.name,
            number=number,
            asked=asked,
            spec=_spec(settings, number, asked),
            volumes=volumes,
            policy=settings.policy,
            beside=tuple(v.performance for n, v in pool.volumes.items() if n != number),
            frozen=frozen,
            ignored=pool.ignored,
            prometheus=self.sources.series is not None,
        )

    def _remember(
        self, claim: ClaimView, asked: Gp3, before: Memory, readings: Readings, now: float
    ) -> Memory:
        """Return a volume's record with what was seen now, and write it where that is worth it."""
        after = _with_what_is_seen(claim, asked, before, readings, now)
        if not volume_records.worth_writing(before, after, now):
            return after
        try:
            return volume_records.write(self.records, claim.volume_id, after)
        except Conflict:
            # AWS announced the end of a modification meanwhile: what it closed stays closed.
            since = volume_records.read(self.records, claim.volume_id)
            again = _with_what_is_seen(claim, asked, since, readings, now)
            return volume_records.write(self.records, claim.volume_id, again)


def _with_what_is_seen(
    claim: ClaimView, asked: Gp3, before: Memory, readings: Readings, now: float
) -> Memory:
    latest, actual = readings.latest.get(claim.volume_id), readings.ebs[claim.volume_id].shape
    history = with_observation(before.history, latest, actual, now, asked)
    fill = readings.fills.get(claim.name)
    used = None if fill is None else float(fill.used_bytes(claim.given_gib * GIB))
    samples = before.samples or _samples_before(claim, readings)
    return volume_records.with_hour(
        replace(before, history=history, samples=samples),
        used,
        _hour(readings.loads.get(claim.volume_id), now),
        now,
    )


def _samples_before(claim: ClaimView, readings: Readings) -> tuple[FillSample, ...]:
    """Return what Prometheus saw of a volume before anybody here looked at it."""
    fill = readings.fills.get(claim.name)
    if fill is None or fill.total_bytes is None or fill.usable_bytes is None:
        return ()
    # What a file system keeps for itself counts as used: then as now.
    kept = fill.used_bytes(claim.given_gib * GIB) - (fill.total_bytes - fill.usable_bytes)
    past = readings.past.get(claim.name, {})
    return tuple(FillSample(at, used + kept) for at, used in sorted(past.items()))[-SAMPLES_KEPT:]


def _view(
    claim: ClaimView, ebs: EbsView, memory: Memory, readings: Readings, now: float
) -> VolumeView:
    fill = readings.fills.get(claim.name)
    load = readings.loads.get(claim.volume_id, Load())
    used = None if fill is None else fill.used_bytes(claim.given_gib * GIB)
    return VolumeView(
        claim=claim.name,
        pod=claim.pod,
        volume_id=claim.volume_id,
        actual=ebs.shape,
        requested_gib=claim.requested_gib,
        given_gib=claim.given_gib,
        wanted_class=claim.wanted_class,
        given_class=claim.given_class,
        instance_type=readings.types.get(ebs.instance_id or ""),
        history=memory.history,
        forecast=None if used is None else forecast(memory.samples, used, now),
        load=replace(load, hours=memory.hours),
        troubles=claim.troubles,
    )


def _hour(load: Load | None, now: float) -> Hour | None:
    """Return the hour that has just ended, from the load of the last sixty minutes."""
    if load is None or load.iops_p999 is None or load.bytes_per_s_p999 is None:
        return None
    exceeded = (load.volume_exceeded_share or 0) > 0 or (load.instance_exceeded_share or 0) > 0
    return Hour(
        now - now % HOUR_SECONDS - HOUR_SECONDS,
        load.iops_p999,
        load.bytes_per_s_p999,
        exceeded=exceeded,
    )


def _spec(settings: PoolSettings, number: int, asked: Gp3) -> Gp3:
    """Return what the ClusterSpec asks of a volume; of one it does not know, what is asked."""
    if number < len(settings.volumes):
        return settings.volumes[number]
    return Gp3(asked.size_gib, Performance())
