"""One look at all volumes: pools, claims, EC2, fill, load and memory, put together as sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from core.errors import StillwaterError
from core.incident_record import Incident, State
from core.naming import node_id_of_pod
from core.volumes.decisions import Kind
from core.volumes.forecast import forecast
from core.volumes.ledger import Modification, observed
from core.volumes.limits import Gp3, Performance
from core.volumes.views import Hour, Load, Rotation, VolumeSet, VolumeView
from handlers import volume_records
from handlers.adapters.claims import Claims, ClaimView, PoolView
from handlers.adapters.ebs import Ebs, EbsView
from handlers.adapters.fill import Fills, FillView
from handlers.adapters.load import Loads
from handlers.ledger import Ledger
from handlers.records import Records
from handlers.volume_records import HOUR_SECONDS, Memory
from handlers.volume_settings import PoolSettings, VolumeSettings

logger = Logger(service="stillwater", child=True)
GIB = 1024**3
# From the drain to the first fetch: leaders, stop, volume, start (research: kafka-measured).
AWAY_SECONDS = 300.0
BEFORE_THE_DRAIN = {State.OPENED, State.REPLACING, State.HOLDING}


@dataclass(frozen=True, slots=True)
class Seen:
    """The sets, the pools they are of, and what is remembered of their volumes."""

    sets: tuple[VolumeSet, ...]
    pools: Mapping[str, PoolView]
    memories: Mapping[str, Memory]


@dataclass(frozen=True, slots=True)
class _Readings:
    """What each source said, by volume id where nothing else is said."""

    ebs: Mapping[str, EbsView]
    latest: Mapping[str, Modification]
    types: Mapping[str, str]
    fills: Mapping[tuple[int, int], FillView]
    loads: Mapping[str, Load]
    incidents: tuple[Incident, ...]


@dataclass(frozen=True)
class Lookout:
    """Reads every source once; a source that does not answer leaves what it says unknown."""

    claims: Claims
    ebs: Ebs
    fills: Fills
    loads: Loads
    ledger: Ledger
    records: Records
    settings: VolumeSettings

    def look(self, now: float) -> Seen:
        """Return what there is; raises StillwaterError where Kubernetes or EC2 does not answer."""
        pools = {
            pool.name: pool for pool in self.claims.pools() if pool.name in self.settings.pools
        }
        claims = tuple(claim for claim in self.claims.claims() if claim.pool in pools)
        classes = self.claims.classes()
        readings = self._readings(claims, now)
        memories: dict[str, Memory] = {}
        sets = []
        for pool in pools.values():
            for number, asked in pool.volumes.items():
                mine = [c for c in claims if (c.pool, c.number) == (pool.name, number)]
                seen = self._set(pool, number, asked, mine, readings, memories, now)
                if seen is not None:
                    sets.append(replace(seen, classes=classes))
        return Seen(tuple(sets), pools, memories)

    def _readings(self, claims: tuple[ClaimView, ...], now: float) -> _Readings:
        ids = [claim.volume_id for claim in claims]
        ebs = self.ebs.volumes(ids)
        instances = {i: v.instance_id for i, v in ebs.items()}
        attached = sorted({i for i in instances.values() if i})
        return _Readings(
            ebs=ebs,
            latest=self.ebs.modifications(ids),
            types=self.ebs.instance_types(attached),
            fills=self._filled(),
            loads=self._loaded(instances, now),
            incidents=self.ledger.open_incidents(),
        )

    def _filled(self) -> Mapping[tuple[int, int], FillView]:
        try:
            return self.fills.fills()
        except StillwaterError as error:
            logger.warning("No broker said how full its volumes are.", error=str(error))
            return {}

    def _loaded(self, instances: Mapping[str, str | None], now: float) -> Mapping[str, Load]:
        try:
            return self.loads.loads(instances, now)
        except (BotoCoreError, ClientError) as error:
            logger.warning("CloudWatch did not say what is asked of the volumes.", error=str(error))
            return {}

    def _set(
        self,
        pool: PoolView,
        number: int,
        asked: Gp3,
        claims: list[ClaimView],
        readings: _Readings,
        memories: dict[str, Memory],
        now: float,
    ) -> VolumeSet | None:
        settings = self.settings.pools[pool.name]
        volumes = []
        for claim in claims:
            if (ebs := readings.ebs.get(claim.volume_id)) is None:
                # EC2 does not know it, or it is no gp3: nothing here is about it.
                continue
            memory = self._remembered(claim, asked, ebs, readings, now)
            memories[claim.volume_id] = memory
            volumes.append(_view(claim, ebs, memory, readings, now))
        if not volumes:
            return None
        frozen = pool.frozen or (
            "volumes.frozen in the ClusterSpec" if self.settings.frozen else ""
        )
        seen = VolumeSet(
            pool=pool.name,
            number=number,
            asked=asked,
            spec=_spec(settings, number, asked),
            volumes=tuple(volumes),
            policy=settings.policy,
            beside=tuple(v.performance for n, v in pool.volumes.items() if n != number),
            frozen=frozen,
        )
        return replace(seen, rotation=_rotation(seen, readings.incidents))

    def _remembered(
        self, claim: ClaimView, asked: Gp3, ebs: EbsView, readings: _Readings, now: float
    ) -> Memory:
        """Return a volume's record with what was seen now, and write it where that is worth it."""
        before = volume_records.read(self.records, claim.volume_id)
        latest = readings.latest.get(claim.volume_id)
        history = observed(before.history, latest, ebs.shape, now, asked)
        fill = _fill_of(claim, readings)
        used = None if fill is None else float(fill.used_bytes(claim.given_gib * GIB))
        after = volume_records.with_hour(
            replace(before, history=history),
            used,
            _hour(readings.loads.get(claim.volume_id), now),
            now,
        )
        if volume_records.worth_writing(before, after, now):
            return volume_records.write(self.records, claim.volume_id, after)
        return after


def _view(
    claim: ClaimView, ebs: EbsView, memory: Memory, readings: _Readings, now: float
) -> VolumeView:
    fill = _fill_of(claim, readings)
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


def _fill_of(claim: ClaimView, readings: _Readings) -> FillView | None:
    node_id = node_id_of_pod(claim.pod)
    return None if node_id is None else readings.fills.get((node_id, claim.number))


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


def _rotation(of: VolumeSet, incidents: tuple[Incident, ...]) -> Rotation | None:
    """Return the rotation that a broker of the set is about to go through, or has behind it."""
    for volume in of.volumes:
        rate = volume.load.bytes_per_s_p999 or 0.0
        mine = [i for i in incidents if i.pod_name == volume.pod]
        if mine:
            if any(i.state in BEFORE_THE_DRAIN for i in mine):
                return Rotation(pod=volume.pod, append_bytes_per_s=rate, away_seconds=AWAY_SECONDS)
            # It is away: neither raised any more nor lowered already.
            return Rotation(pod=volume.pod, append_bytes_per_s=0.0, away_seconds=AWAY_SECONDS)
    for volume in of.volumes:
        latest = volume.history.latest
        if latest is not None and latest.kind == Kind.ROTATION.value:
            return Rotation(
                pod=volume.pod, append_bytes_per_s=0.0, away_seconds=AWAY_SECONDS, over=True
            )
    return None
