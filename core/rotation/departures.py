"""Says which rotation a set of volumes is prepared for, and how long its brokers will be away.

Stands between what leaves (incidents, the run that goes on) and what volumes are asked to give
(core.volumes.deciding): how long a broker is away was measured of those before it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.ground.fields import drop_keys, unread_keys
from core.incidents.planned import serves_on
from core.incidents.record import UNDRAINED, Incident, State
from core.rotation.preconditions import departure_order
from core.rotation.run_record import NodeTurn, Run, RunState
from core.volumes.deciding import DecisionKind
from core.volumes.sizing import MIB
from core.volumes.views import BrokerAbsence, VolumeSet, VolumeView

# From the drain to the first fetch where none was measured: leaders, stop, volume, start.
ASSUMED_AWAY_SECONDS = 300.0
MOST_REMEMBERED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Absences:
    """What is remembered of departures: those open at the last look, and what earlier ones took."""

    open_ids: tuple[str, ...] = ()
    # From the drain until the broker was back in every ISR, the latest last.
    seconds: tuple[float, ...] = ()
    unread: Mapping[str, Any] = unread_keys()

    def to_json(self) -> dict[str, Any]:
        return {**self.unread, "open": list(self.open_ids), "seconds": list(self.seconds)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any] | None) -> Absences:
        found = document or {}
        return cls(
            open_ids=tuple(found.get("open", ())),
            seconds=tuple(found.get("seconds", ())),
            unread=drop_keys(found, "open", "seconds"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Departures:
    """Who is leaving, who will, and how long those before them were away."""

    incidents: tuple[Incident, ...] = ()
    run: Run | None = None
    absences: Absences = Absences()
    now: float = 0.0  # epoch seconds

    @property
    def next_turn(self) -> NodeTurn | None:
        """The node that a run takes next, while it goes on."""
        run = self.run
        if run is None or run.state is not RunState.RUNNING:
            return None
        if run.pause_asked_by or run.abort_asked_by:
            return None
        return next(iter(departure_order(run.waiting, (), None)), None)

    def waiting(self, pods: frozenset[str]) -> int:
        """Return how many of these pods a run that goes on has still to take."""
        run = self.run
        if run is None or run.state is not RunState.RUNNING:
            return 0
        return sum(1 for turn in run.waiting if turn.pod in pods)


def remembered_absences(
    before: Absences, open_now: Sequence[Incident], closed: Sequence[Incident]
) -> Absences:
    """Return what is remembered once incidents have closed; one without a drain taught nothing."""
    took = [
        each.broker_back_at - each.forwarded.first_at
        for each in closed
        if each.state is State.RELEASED
        and each.forwarded is not None
        and each.broker_back_at is not None
        and each.broker_back_at > each.forwarded.first_at
    ]
    return replace(
        before,
        open_ids=tuple(sorted(each.id for each in open_now)),
        seconds=(*before.seconds, *took)[-MOST_REMEMBERED:],
    )


def rotation_of(set_: VolumeSet, seen: Departures) -> BrokerAbsence | None:
    """Return the rotation that a broker of a set is about to go through, or has behind it."""
    pods = frozenset(volume.pod for volume in set_.volumes)
    left = seen.waiting(pods)
    leaving = [
        each
        for each in seen.incidents
        if not (each.state is State.OPENED and serves_on(each, seen.now))
    ]
    for volume in set_.volumes:
        mine = [each for each in leaving if each.pod_name == volume.pod]
        if any(each.state in UNDRAINED for each in mine):
            return _ahead(set_, volume, seen, max(1, left + _begun_count(volume, seen)))
        if mine:
            # It is away: neither raised any more nor lowered already.
            return _still(volume)
    turn = seen.next_turn
    for volume in set_.volumes:
        if turn is not None and turn.is_broker and turn.pod == volume.pod:
            return _ahead(set_, volume, seen, left)
    turning = seen.run is not None and any(turn.pod in pods for turn in seen.run.open_turns)
    for volume in set_.volumes:
        latest = volume.history.latest
        if latest is not None and latest.kind == DecisionKind.ROTATION.value:
            # Raised once for all nodes of the set, lowered after the last: two slots and no more.
            return replace(_still(volume), over=not (left or turning))
    return None


def _begun_count(volume: VolumeView, seen: Departures) -> int:
    """Return 1 for a node whose turn has begun: it is no longer among those that wait."""
    waiting = () if seen.run is None else seen.run.waiting
    return 0 if any(turn.pod == volume.pod for turn in waiting) else 1


def _ahead(set_: VolumeSet, volume: VolumeView, seen: Departures, nodes: int) -> BrokerAbsence:
    appended = volume.load.bytes_per_s_p999 or 0.0
    took = seen.absences.seconds
    return BrokerAbsence(
        pod=volume.pod,
        append_bytes_per_s=appended,
        away_seconds=_away(took, appended, set_.asked.throughput_mib_per_s * MIB),
        nodes=nodes,
        measured=len(took),
    )


def _away(took: Sequence[float], appended: float, rate: float) -> float:
    """Return how long a broker is away, from how long others took until they were back in sync.

    What was measured is D + T, with T = D·W / (R - W): so D is a share (R - W) / R of it.
    """
    if not took:
        return ASSUMED_AWAY_SECONDS
    share = (rate - appended) / rate if 0 < appended < rate else 1.0
    return statistics.median(took) * share


def _still(volume: VolumeView) -> BrokerAbsence:
    return BrokerAbsence(pod=volume.pod, append_bytes_per_s=0.0, away_seconds=0.0)
