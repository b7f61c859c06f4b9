"""One look at all volumes, one plan (core.volumes), then at most one change of each node pool.

The change is written down before it is asked for: whoever dies between the two has used a slot in
the ledger, and never one that is not there. Prometheus is asked first, where there is one: it knows
controllers' volumes, too, and costs nothing a question. The brokers and CloudWatch are asked of
whatever it does not know; what then is still not known is a verdict of its own
(core.volumes.series). `volume#away` remembers which incidents were open at the last look: one that
has closed since tells how long its broker was away, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from aws_lambda_powertools import Logger

from core.cost.pricing import PriceBook
from core.ground import constants
from core.ground.errors import Conflict, StillwaterError
from core.ground.naming import node_id_of_pod
from core.rotation.departures import Absences, Departures, remembered_absences, rotation_of
from core.settings.volumes import PoolSettings, VolumeSettings
from core.volumes.deciding import DecisionKind, VolumeDecision, VolumePlan, decision_lines, plan
from core.volumes.series import UNKNOWN, is_whole, merged_load
from core.volumes.sizing import Gp3, Performance
from core.volumes.views import (
    FillSample,
    Hour,
    Load,
    Modification,
    ModificationState,
    VolumeSet,
    VolumeView,
    add_observation,
    add_request,
    forecast,
)
from handlers.adapters import metrics
from handlers.adapters.calls import NO_ANSWER
from handlers.adapters.claims import ClaimView, EksClaims, PoolView
from handlers.adapters.volumes import (
    CloudWatchLoads,
    EbsView,
    Ec2Ebs,
    FillView,
    KafkaFills,
    PrometheusVolumes,
    SeriesResult,
)
from handlers.store import volume_records
from handlers.store.documents import Runs
from handlers.store.ledger import Ledger
from handlers.store.table import Records
from handlers.store.volume_records import HOUR_SECONDS, PLAN, SAMPLES_KEPT, Memory

logger = Logger(service="stillwater")
AWAY = "volume#away"


@dataclass(frozen=True)
class Departing:
    """Reads the incidents, the run and what is remembered of earlier ones."""

    ledger: Ledger
    runs: Runs
    records: Records

    def read(self, now: float) -> Departures:
        """Return who leaves; what has closed since the last look is remembered."""
        incidents = self.ledger.open_incidents()
        record = self.records.read(AWAY)
        before = Absences.from_json(record.document)
        gone = set(before.open_ids) - {each.id for each in incidents}
        closed = [found for id_ in sorted(gone) if (found := self.ledger.get(id_)) is not None]
        # The index may be behind: what is not over yet is looked at again.
        late = [each for each in closed if each.open]
        after = remembered_absences(before, (*incidents, *late), closed)
        if after != before:
            try:
                self.records.write(AWAY, after.to_json(), record.version)
            except Conflict:
                logger.info("Another invocation remembered the departures at the same moment.")
        run = self.runs.current()
        return Departures(incidents=incidents, run=run, absences=after, now=now)


@dataclass(frozen=True, slots=True)
class Readings:
    """What the sources said, by volume id where nothing else is said; `gaps` is what none did."""

    ebs: Mapping[str, EbsView]
    latest: Mapping[str, Modification]
    types: Mapping[str, str]
    # By claim.
    fills: Mapping[str, FillView]
    loads: Mapping[str, Load]
    past: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sources:
    """Asks every source once; one that does not answer leaves what it says unknown."""

    ebs: Ec2Ebs
    fills: KafkaFills
    loads: CloudWatchLoads
    series: PrometheusVolumes | None = None

    def read(self, claims: Sequence[ClaimView], unseen: Sequence[str], now: float) -> Readings:
        """Return what is known now, and of `unseen` claims what Prometheus saw before.

        Raises botocore's errors where EC2 does not answer: without it there is nothing to decide.
        """
        ids = [claim.volume_id for claim in claims]
        ebs = self.ebs.volumes(ids)
        instances = {i: v.instance_id for i, v in ebs.items()}
        gaps: list[str] = []
        seen = self._prometheus_figures([c.name for c in claims], sorted(ebs), unseen, now)
        fills = self._fills(claims, seen.fills, gaps)
        loads = self._loads(instances, seen.loads, gaps, now)
        return Readings(
            ebs=ebs,
            latest=self.ebs.modifications(ids),
            types=self.ebs.instance_types(sorted({i for i in instances.values() if i})),
            fills=fills,
            loads=loads,
            past=seen.past,
            gaps=(*seen.gaps, *gaps),
        )

    def _prometheus_figures(
        self, claims: Sequence[str], volumes: Sequence[str], unseen: Sequence[str], now: float
    ) -> _Seen:
        """Return what Prometheus says; one that fails once is not asked again this time."""
        if self.series is None or not claims:
            return _Seen()
        fills: SeriesResult[FillView] = SeriesResult()
        try:
            fills = self.series.fills(claims, now)
            loads = self.series.loads(volumes, now)
            past = self.series.past(unseen, now) if unseen else {}
        except StillwaterError as error:
            logger.warning("Prometheus did not say all of the volumes.", error=str(error))
            return _Seen(fills.found, gaps=(*fills.gaps, f"Prometheus did not answer: {error}"))
        return _Seen(fills.found, loads.found, past, (*fills.gaps, *loads.gaps))

    def _fills(
        self, claims: Sequence[ClaimView], seen: Mapping[str, FillView], gaps: list[str]
    ) -> Mapping[str, FillView]:
        missing = [claim for claim in claims if claim.name not in seen]
        if not missing:
            return seen
        try:
            told = self.fills.fills()
        except StillwaterError as error:
            logger.warning("No broker said how full its volumes are.", error=str(error))
            gaps.append(f"No broker said how full its volumes are: {error}")
            told = {}
        found = {**seen}
        for claim in missing:
            node_id = node_id_of_pod(claim.pod)
            if node_id is not None and (node_id, claim.number) in told:
                found[claim.name] = told[node_id, claim.number]
        return found

    def _loads(
        self,
        instances: Mapping[str, str | None],
        seen: Mapping[str, Load],
        gaps: list[str],
        now: float,
    ) -> Mapping[str, Load]:
        missing = {
            volume: instance
            for volume, instance in instances.items()
            if not is_whole(seen.get(volume, Load()))
        }
        if not missing:
            return seen
        try:
            told = self.loads.loads(missing, now)
        except (StillwaterError, *NO_ANSWER) as error:
            logger.warning("CloudWatch did not have the load of the volumes.", error=str(error))
            gaps.append(f"CloudWatch did not have the load of {len(missing)} volumes: {error}")
            return seen
        joined = {v: merged_load(seen.get(v, Load()), told.get(v, Load())) for v in missing}
        return {**seen, **joined}


@dataclass(frozen=True, slots=True)
class _Seen:
    """What Prometheus said."""

    fills: Mapping[str, FillView] = field(default_factory=dict)
    loads: Mapping[str, Load] = field(default_factory=dict)
    past: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()


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

    claims: EksClaims
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
        departures = self.departing.read(now)
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
        after = _updated_memory(claim, asked, before, readings, now)
        if not volume_records.worth_writing(before, after, now):
            return after
        try:
            return volume_records.write(self.records, claim.volume_id, after)
        except Conflict:
            # AWS announced the end of a modification meanwhile: what it closed stays closed.
            since = volume_records.read(self.records, claim.volume_id)
            again = _updated_memory(claim, asked, since, readings, now)
            return volume_records.write(self.records, claim.volume_id, again)


def _updated_memory(
    claim: ClaimView, asked: Gp3, before: Memory, readings: Readings, now: float
) -> Memory:
    latest, actual = readings.latest.get(claim.volume_id), readings.ebs[claim.volume_id].shape
    history = add_observation(before.history, latest, actual, now, asked)
    fill = readings.fills.get(claim.name)
    used = None if fill is None else float(fill.used_bytes(claim.given_gib * GIB))
    samples = before.samples or _samples_before(claim, readings)
    return volume_records.add_hour(
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


# What of a decision is counted for an alarm.
COUNTED: Mapping[str, str] = {
    "slots": constants.VOLUMES_OUT_OF_SLOTS,
    "instance": constants.VOLUMES_INSTANCE_BOUND,
    "budget": constants.VOLUMES_REFUSED,
    "ceiling": constants.VOLUMES_REFUSED,
    "gp3": constants.VOLUMES_REFUSED,
    "class-drift": constants.VOLUMES_DRIFTED,
    "class-missing": constants.VOLUMES_STUCK,
    "class-refused": constants.VOLUMES_STUCK,
    "class-stuck": constants.VOLUMES_STUCK,
    "resize-stuck": constants.VOLUMES_STUCK,
    "resize-refused": constants.VOLUMES_STUCK,
    "file-system-pending": constants.VOLUMES_STUCK,
    "not-applied": constants.VOLUMES_STUCK,
    "storage-ignored": constants.VOLUMES_STUCK,
    UNKNOWN: constants.VOLUMES_UNKNOWN,
}


@dataclass(frozen=True)
class Steward:
    """Looks after the volumes."""

    lookout: Lookout
    book: PriceBook

    def turn(self, now: float, *, dry_run: bool = False) -> dict[str, Any]:
        """Look, plan, and do what may be done; return the plan as it is shown."""
        seen = self.lookout.look(now)
        settings = self.lookout.settings
        planned = plan(seen.sets, self.book, now, settings.budget_usd)
        done: list[VolumeDecision] = []
        if settings.applies and not dry_run:
            for name, pool in seen.pools.items():
                mine = [d for d in planned.changes if d.pool == name]
                if mine and self._change(pool, mine, seen, now):
                    done += mine
        self._tell(planned.decisions, done)
        for gap in seen.gaps:
            logger.warning("Something is not known of the volumes.", gap=gap)
        shown = self._plan_document(planned, seen, done, now)
        if not dry_run:
            self._keep(shown)
        return shown

    def _change(
        self, pool: PoolView, decisions: Iterable[VolumeDecision], seen: SeenVolumes, now: float
    ) -> bool:
        """Write down what is about to be asked of a pool's volumes, then ask it; once for all."""
        wanted = {d.number: d.target for d in decisions if d.target is not None}
        before = [self._request(d, seen, now) for d in decisions]
        if not all(before):
            return False
        try:
            self.lookout.claims.ask(pool, wanted)
        except StillwaterError as error:
            logger.warning("A pool was not changed.", pool=pool.name, error=str(error))
            self._withdraw(wanted, pool, seen)
            return False
        return True

    def _request(self, decision: VolumeDecision, seen: SeenVolumes, now: float) -> bool:
        """Use a slot of every volume of a set; another invocation that does so as well wins."""
        set_ = next(s for s in seen.sets if (s.pool, s.number) == (decision.pool, decision.number))
        asked = Modification(
            started_at=now,
            state=ModificationState.REQUESTED,
            target=decision.target or set_.asked,
            original=set_.asked,
            reason=decision.reason,
            kind=decision.kind.value,
        )
        records = self.lookout.records
        for volume in set_.volumes:
            memory = seen.memories[volume.volume_id]
            changed = replace(memory, history=add_request(memory.history, asked))
            try:
                volume_records.write(records, volume.volume_id, changed)
            except Conflict:
                logger.warning("Another invocation has the volume.", volume_id=volume.volume_id)
                return False
        return True

    def _withdraw(self, wanted: Mapping[int, Gp3], pool: PoolView, seen: SeenVolumes) -> None:
        """Give back the slots of a request that Kubernetes refused."""
        records = self.lookout.records
        for set_ in seen.sets:
            if set_.pool != pool.name or set_.number not in wanted:
                continue
            for volume in set_.volumes:
                now = volume_records.read(records, volume.volume_id)
                kept = tuple(
                    m
                    for m in now.history.modifications
                    if m.state is not ModificationState.REQUESTED
                )
                history = replace(now.history, modifications=kept)
                volume_records.write(records, volume.volume_id, replace(now, history=history))

    def _tell(self, decisions: Iterable[VolumeDecision], done: list[VolumeDecision]) -> None:
        for decision in decisions:
            if decision.kind is not DecisionKind.KEEP:
                logger.info(
                    decision_lines([decision])[0],
                    applied=decision in done,
                    emergency=decision.emergency,
                )
            if decision.refused_by in COUNTED:
                metrics.count(COUNTED[decision.refused_by])
        if done:
            metrics.count(constants.VOLUMES_CHANGED, len(done))

    def _plan_document(
        self, planned: VolumePlan, seen: SeenVolumes, done: list[VolumeDecision], now: float
    ) -> dict[str, Any]:
        settings = self.lookout.settings
        return {
            "at": now,
            "mode": "apply" if settings.applies else "advise",
            "budget_usd": _dollars(settings.budget_usd),
            "above_spec_usd": _dollars(planned.above_spec_usd),
            "planned_usd": _dollars(planned.planned_usd),
            "unpriced": planned.unpriced,
            "unknown": list(seen.gaps),
            "volumes": {v.claim: v.volume_id for set_ in seen.sets for v in set_.volumes},
            "sizes_gib": {v.claim: v.actual.size_gib for set_ in seen.sets for v in set_.volumes},
            "decisions": [
                {
                    "pool": d.pool,
                    "volume": d.number,
                    "kind": d.kind.value,
                    "reason": d.reason,
                    "target": None
                    if d.target is None
                    else [d.target.size_gib, d.target.iops, d.target.throughput_mib_per_s],
                    "monthly_usd_change": _dollars(d.monthly_usd_change),
                    "emergency": d.emergency,
                    "refused_by": d.refused_by,
                    "applied": d in done,
                }
                for d in planned.decisions
            ],
        }

    def _keep(self, shown: Mapping[str, Any]) -> None:
        records = self.lookout.records
        try:
            records.write(PLAN, shown, records.read(PLAN).version)
        except Conflict:
            logger.info("Another invocation kept its plan at the same moment.")


def _dollars(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount)
