"""One look at all volumes, one plan (core.volumes), then at most one change of each node pool.

The change is written down before it is asked for: whoever dies between the two has used a slot in
the ledger, and never one that is not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from aws_lambda_powertools import Logger

from core import metric_names as counted
from core.cost.pricing import PriceBook
from core.errors import Conflict, StillwaterError
from core.volumes.decisions import DecisionKind, VolumeDecision
from core.volumes.ledger import Modification, ModificationState, with_request
from core.volumes.limits import Gp3
from core.volumes.plan import VolumePlan, decision_lines, plan
from core.volumes.unknown import UNKNOWN
from handlers.adapters import metrics
from handlers.adapters.claims import PoolView
from handlers.store import volume_records
from handlers.store.volume_records import PLAN
from handlers.volume.observe import Lookout, SeenVolumes

logger = Logger(service="stillwater")
# What of a decision is counted for an alarm.
COUNTED: Mapping[str, str] = {
    "slots": counted.VOLUMES_OUT_OF_SLOTS,
    "instance": counted.VOLUMES_INSTANCE_BOUND,
    "budget": counted.VOLUMES_REFUSED,
    "ceiling": counted.VOLUMES_REFUSED,
    "gp3": counted.VOLUMES_REFUSED,
    "class-drift": counted.VOLUMES_DRIFTED,
    "class-missing": counted.VOLUMES_STUCK,
    "class-refused": counted.VOLUMES_STUCK,
    "class-stuck": counted.VOLUMES_STUCK,
    "resize-stuck": counted.VOLUMES_STUCK,
    "resize-refused": counted.VOLUMES_STUCK,
    "file-system-pending": counted.VOLUMES_STUCK,
    "not-applied": counted.VOLUMES_STUCK,
    "storage-ignored": counted.VOLUMES_STUCK,
    UNKNOWN: counted.VOLUMES_UNKNOWN,
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
        of = next(s for s in seen.sets if (s.pool, s.number) == (decision.pool, decision.number))
        asked = Modification(
            started_at=now,
            state=ModificationState.REQUESTED,
            target=decision.target or of.asked,
            original=of.asked,
            reason=decision.reason,
            kind=decision.kind.value,
        )
        records = self.lookout.records
        for volume in of.volumes:
            memory = seen.memories[volume.volume_id]
            changed = replace(memory, history=with_request(memory.history, asked))
            try:
                volume_records.write(records, volume.volume_id, changed)
            except Conflict:
                logger.warning("Another invocation has the volume.", volume_id=volume.volume_id)
                return False
        return True

    def _withdraw(self, wanted: Mapping[int, Gp3], pool: PoolView, seen: SeenVolumes) -> None:
        """Give back the slots of a request that Kubernetes refused."""
        records = self.lookout.records
        for of in seen.sets:
            if of.pool != pool.name or of.number not in wanted:
                continue
            for volume in of.volumes:
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
            metrics.count(counted.VOLUMES_CHANGED, len(done))

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
            "volumes": {v.claim: v.volume_id for of in seen.sets for v in of.volumes},
            "sizes_gib": {v.claim: v.actual.size_gib for of in seen.sets for v in of.volumes},
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
