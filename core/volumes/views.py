"""Holds what is seen of volumes: modifications, forecast, load, and what a policy allows.

Strimzi sizes volumes by pool: a KafkaNodePool's entry is one size and one class for the claims of
all its nodes, so the unit of every decision is that set of volumes. Since 2026 AWS allows four
modifications of a volume in any 24 hours, each only after the one before is completed, and tells of
the latest alone: the rest is remembered here, and what is not known counts as used. A fill has two
trends. The long one is believed for as long as it was seen; the short one sees what began this
morning, and is believed for half a day only, for a Kafka volume breathes with its retention.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import attrgetter, mul
from typing import Any

from core.ground.fields import as_document, drop_keys, field_values, take_word, unread_keys
from core.volumes.sizing import INCLUDED, Gp3, Performance, Policy

MOST_IN_WINDOW = 4
WINDOW_SECONDS = 24 * 3600.0
# AWS's clock is not ours, and what it calls the start is not when it was asked.
CLOCK_SLACK_SECONDS = 120.0
# Two readings of one modification's start agree to the second.
SAME_START_SECONDS = 1.0
# A request that EC2 never saw, of a volume that has what was asked.
UNSEEN_SECONDS = 900.0
# Who looks less often may miss one that came and went.
GAP_SECONDS = 1800.0
KEPT_SECONDS = 30 * WINDOW_SECONDS


class ModificationState(StrEnum):
    """How far a modification is; `requested` is before EC2 has heard of it."""

    REQUESTED = "requested"
    MODIFYING = "modifying"
    OPTIMIZING = "optimizing"
    COMPLETED = "completed"
    FAILED = "failed"
    # A word that this release does not know: until EC2 says another, nothing else begins.
    UNKNOWN = "unknown"

    @property
    def over(self) -> bool:
        return self in {ModificationState.COMPLETED, ModificationState.FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Modification:
    """One modification of one volume; `reason` says why, where it was ours."""

    started_at: float
    state: ModificationState
    target: Gp3
    original: Gp3 | None = None
    ended_at: float | None = None
    reason: str = ""
    # What it was for, core.volumes.deciding.DecisionKind's value; empty where it was not ours.
    kind: str = ""
    unread: Mapping[str, Any] = unread_keys()

    @property
    def ours(self) -> bool:
        return bool(self.kind)

    @property
    def word(self) -> str:
        """Return its state as it was said."""
        return str(self.unread.get("state", self.state.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A volume's modifications, the oldest first, complete since `known_since`."""

    known_since: float | None = None
    looked_at: float | None = None
    modifications: tuple[Modification, ...] = ()
    unread: Mapping[str, Any] = unread_keys()

    @property
    def latest(self) -> Modification | None:
        return self.modifications[-1] if self.modifications else None

    @property
    def under_way(self) -> Modification | None:
        """The modification that AWS lets no other start before, if there is one."""
        return next((m for m in reversed(self.modifications) if not m.state.over), None)

    def started_within(self, now: float, seconds: float) -> tuple[Modification, ...]:
        return tuple(m for m in self.modifications if m.started_at > now - seconds)


def free_slots(history: History, now: float) -> int:
    """Return how many modifications may still start in the 24 hours that end now."""
    if history.known_since is None:
        return 0
    window = WINDOW_SECONDS + CLOCK_SLACK_SECONDS
    counted = history.started_within(now, window)
    before_we_looked = any(m.started_at < history.known_since and not m.ours for m in counted)
    if before_we_looked and history.known_since > now - window:
        # AWS named the latest; how many came before it nobody knows.
        return 0
    return max(0, MOST_IN_WINDOW - len(counted))


def next_slot_at(history: History, now: float) -> float:
    """Return when one more modification may start than now."""
    if history.known_since is None:
        return now + WINDOW_SECONDS
    window = WINDOW_SECONDS + CLOCK_SLACK_SECONDS
    times = [m.started_at + window for m in history.started_within(now, window)]
    times += [history.known_since + window] if free_slots(history, now) == 0 else []
    ends = sorted(t for t in times if t > now)
    free = free_slots(history, now)
    return next((t for t in ends if free_slots(history, t) > free), ends[-1] if ends else now)


def add_request(history: History, modification: Modification) -> History:
    """Return a history with a modification that is about to be asked for."""
    return replace(history, modifications=(*history.modifications, modification))


def add_observation(
    history: History, latest: Modification | None, actual: Gp3, now: float, asked: Gp3 | None = None
) -> History:
    """Return a history with what AWS said of a volume's latest modification, and of the volume.

    `asked` is what its pool asks for; a request of ours for something else never reached it.
    """
    known = history.known_since
    if known is None or _may_have_missed(history, latest, now):
        known = now
    kept = [m for m in history.modifications if m.started_at > now - KEPT_SECONDS]
    if latest is not None:
        kept = _merge_latest(kept, latest)
    kept = [m for m in kept if not _came_to_nothing(m, actual, asked, now)]
    return replace(history, known_since=known, looked_at=now, modifications=tuple(kept))


def end_modification(history: History, state: ModificationState, at: float) -> History:
    """Return a history whose modification under way has ended, as AWS announced."""
    running = history.under_way
    if running is None or running.state is ModificationState.REQUESTED or at < running.started_at:
        # An announcement of what we have not seen start: the next look at EC2 tells the rest.
        return history
    unread = drop_keys(running.unread, "state")
    done = replace(running, state=state, ended_at=at, unread=unread)
    changed = tuple(done if m is running else m for m in history.modifications)
    return replace(history, modifications=changed)


def _may_have_missed(history: History, latest: Modification | None, now: float) -> bool:
    """Say whether more than AWS's latest may have begun since the last look."""
    last = history.looked_at
    if last is None or latest is None or now - last <= GAP_SECONDS:
        return False
    return latest.started_at > last and not any(
        abs(m.started_at - latest.started_at) <= SAME_START_SECONDS
        or (m.state is ModificationState.REQUESTED and _answers(latest, m))
        for m in history.modifications
    )


def _merge_latest(known: list[Modification], latest: Modification) -> list[Modification]:
    """Put AWS's latest in the place of what is known of it, or behind it."""
    for number, each in enumerate(known):
        if abs(each.started_at - latest.started_at) <= SAME_START_SECONDS:
            if each.state.over:
                return known
            known[number] = _merge_ours(latest, each)
            return known
    for number, each in enumerate(known):
        if each.state is ModificationState.REQUESTED and _answers(latest, each):
            known[number] = _merge_ours(latest, each)
            return sorted(known, key=lambda m: m.started_at)
    # A later one can only have started once those before were over, whatever we missed.
    over = [
        replace(
            m,
            state=ModificationState.COMPLETED,
            ended_at=latest.started_at,
            unread=drop_keys(m.unread, "state"),
        )
        if not m.state.over and m.state is not ModificationState.REQUESTED
        else m
        for m in known
    ]
    return sorted([*over, latest], key=lambda m: m.started_at)


def _merge_ours(latest: Modification, known: Modification) -> Modification:
    """Return AWS's word of a modification with what only we know of it."""
    unread = {**drop_keys(known.unread, "state"), **latest.unread}
    return replace(latest, reason=known.reason, kind=known.kind, unread=unread)


def _answers(latest: Modification, asked: Modification) -> bool:
    return (
        latest.started_at >= asked.started_at - CLOCK_SLACK_SECONDS
        and latest.target == asked.target
    )


def _came_to_nothing(each: Modification, actual: Gp3, asked: Gp3 | None, now: float) -> bool:
    """Say whether EC2 was never asked: there was nothing to do, or its pool was not changed."""
    if each.state is not ModificationState.REQUESTED or now - each.started_at <= UNSEEN_SECONDS:
        return False
    return each.target == actual or (asked is not None and each.target != asked)


def ledger_to_json(history: History) -> dict[str, Any]:
    modifications = [
        {
            **as_document(m),
            "target": _shape(m.target),
            "original": None if m.original is None else _shape(m.original),
        }
        for m in history.modifications
    ]
    return {**as_document(replace(history, modifications=())), "modifications": modifications}


def ledger_from_json(document: Mapping[str, Any] | None) -> History:
    """Read a history; of a volume nobody looked at, an unknown one."""
    if not document:
        return History()
    known = field_values(History, document)
    return History(**{**known, "modifications": tuple(map(_modification, known["modifications"]))})


def _modification(stored: Mapping[str, Any]) -> Modification:
    known = field_values(Modification, stored)
    known |= {
        "target": _gp3(stored["target"]),
        "original": None if stored["original"] is None else _gp3(stored["original"]),
    }
    take_word(known, "state", ModificationState, ModificationState.UNKNOWN)
    return Modification(**known)


def _shape(volume: Gp3) -> list[int]:
    return [volume.size_gib, volume.iops, volume.throughput_mib_per_s]


def _gp3(shape: list[int]) -> Gp3:
    return Gp3(shape[0], Performance(shape[1], shape[2]))


SHORT_SECONDS = 6 * 3600.0
SHORT_BELIEVED_SECONDS = 12 * 3600.0
# Of the distances above the trend, this share is below the one that is reckoned with.
QUANTILE = 0.95
LEAST_SPAN_SECONDS = 600.0
# A long trend over less than this is no trend of days.
LONG_LEAST_SECONDS = 24 * 3600.0
_AT, _USED = attrgetter("at"), attrgetter("used_bytes")


@dataclass(frozen=True, slots=True)
class FillSample:
    """What a volume held at a moment."""

    at: float
    used_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FillForecast:
    """A volume's fill from now on; rates are bytes a second."""

    used_bytes: float
    long_rate: float = 0.0
    short_rate: float = 0.0
    # What it may stand above its trend, beyond where it stands now.
    spread_bytes: float = 0.0
    # How far back the samples go that it rests on; a long trend is believed for no longer ahead.
    span_seconds: float = 0.0
    long_believed_seconds: float = math.inf

    def used_in(self, seconds: float) -> float:
        """Return what it holds then, with the spread."""
        short = max(0.0, self.short_rate) * min(seconds, SHORT_BELIEVED_SECONDS)
        long = max(0.0, self.long_rate) * min(seconds, self.long_believed_seconds)
        ahead = max(long, short)
        return self.used_bytes + ahead + self.spread_bytes

    def seconds_until(self, level_bytes: float) -> float | None:
        """Return when it holds so much, 0 where it does already; None where it never will."""
        left = level_bytes - self.used_bytes - self.spread_bytes
        if left <= 0:
            return 0.0
        found = [left / self.long_rate] if self.long_rate > 0 else []
        if self.short_rate > 0 and left / self.short_rate <= SHORT_BELIEVED_SECONDS:
            found.append(left / self.short_rate)
        return min(found, default=None)


def forecast(samples: Sequence[FillSample], used_bytes: float, now: float) -> FillForecast:
    """Return the forecast of a volume that holds `used_bytes` now, from what it held before.

    Samples come the oldest first.
    """
    points = [*samples[: bisect_left(samples, now, key=_AT)], FillSample(now, used_bytes)]
    recent = points[bisect_left(points, now - SHORT_SECONDS, key=_AT) :]
    short = max(_Line(recent).slope, _steepest_end(recent))
    span = now - points[0].at
    if span < LONG_LEAST_SECONDS:
        return FillForecast(used_bytes=used_bytes, short_rate=short, span_seconds=span)
    long = _Line(points)
    return FillForecast(
        used_bytes=used_bytes,
        long_rate=long.slope,
        short_rate=short,
        spread_bytes=long.spread(),
        span_seconds=span,
        long_believed_seconds=span,
    )


class _Line:
    """The least squares' line through points; its slope is 0 where there is too little to say.

    Two weeks of hours for every volume at every look: sums run over lists of their own.
    """

    def __init__(self, points: Sequence[FillSample]) -> None:
        self._from_mid = _deviations(list(map(_AT, points)))
        self._above_mid = _deviations(list(map(_USED, points)))
        self.slope = 0.0
        if len(points) >= 2 and points[-1].at - points[0].at >= LEAST_SPAN_SECONDS:
            over = sum(map(mul, self._from_mid, self._above_mid))
            self.slope = over / sum(map(mul, self._from_mid, self._from_mid))

    def spread(self) -> float:
        """Return how much higher above the line a volume may stand than it does now."""
        slope = self.slope
        above = [
            used - slope * at for at, used in zip(self._from_mid, self._above_mid, strict=True)
        ]
        high = sorted(above)[min(len(above) - 1, int(QUANTILE * len(above)))]
        return max(0.0, high - above[-1])


def _deviations(values: list[float]) -> list[float]:
    """Return values less their mean."""
    mid = sum(values) / len(values)
    return [value - mid for value in values]


def _steepest_end(points: Sequence[FillSample]) -> float:
    """Return the slope since the sample before: what began just now shows nowhere else."""
    last = points[-1]
    for before in reversed(points):
        if last.at - before.at >= LEAST_SPAN_SECONDS:
            return (last.used_bytes - before.used_bytes) / (last.at - before.at)
    return 0.0


@dataclass(frozen=True, slots=True)
class Hour:
    """One hour of a volume's load, at its highest."""

    at: float
    iops: float
    bytes_per_s: float
    exceeded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is asked of a volume; None is what nobody measured."""

    # Shares of the last minutes in which more was asked than the volume, or its instance, gives.
    volume_exceeded_share: float | None = None
    instance_exceeded_share: float | None = None
    iops_p999: float | None = None
    bytes_per_s_p999: float | None = None
    # What is on record of the hours before.
    hours: tuple[Hour, ...] = ()


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a volume, as a sentence, and what to do about it."""

    kind: str
    sentence: str
    remedy: str
    # Whether nothing may be changed before it is mended.
    blocks: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeView:
    """One claim of a set, its EBS volume, and where it is attached."""

    claim: str
    pod: str
    volume_id: str
    # EC2's word for it.
    actual: Gp3
    # The claim's: asked for, and given.
    requested_gib: int
    given_gib: int
    wanted_class: str
    given_class: str
    instance_type: str | None
    history: History
    forecast: FillForecast | None = None
    load: Load = field(default_factory=Load)
    # What Kubernetes or EC2 says is wrong with it: (what, remedy).
    troubles: tuple[Trouble, ...] = ()

    @property
    def held_gib(self) -> int:
        """Return the largest size that its claim or EC2 says it has, or is to get."""
        return max(self.requested_gib, self.given_gib, self.actual.size_gib)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAbsence:
    """A broker of the set that is about to be away, and what it has to catch up with."""

    pod: str
    append_bytes_per_s: float
    away_seconds: float
    over: bool = False
    # How many nodes of the set are still to go; they catch up one after another.
    nodes: int = 1
    # On how many earlier departures `away_seconds` rests; 0: on none, it is assumed.
    measured: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeSet:
    """The volumes of one number of one KafkaNodePool."""

    pool: str
    number: int
    # As the KafkaNodePool asks for them now, and as the ClusterSpec does: it is never less.
    asked: Gp3
    spec: Gp3
    volumes: tuple[VolumeView, ...]
    policy: Policy
    # The other volumes of its nodes.
    beside: tuple[Performance, ...] = ()
    rotation: BrokerAbsence | None = None
    # Classes that exist, by what they give; None: nobody asked which.
    classes: frozenset[Performance] | None = None
    # Somebody's reason to leave it alone; empty where there is none.
    frozen: str = ""
    # Strimzi's sentence, where its operator ignores changes of the pool's storage.
    ignored: str = ""
    # Whether a Prometheus is asked of them, beside brokers and CloudWatch.
    prometheus: bool = False

    @property
    def name(self) -> str:
        return f"volume {self.number} of pool {self.pool}"

    @property
    def held_gib(self) -> int:
        return max((volume.held_gib for volume in self.volumes), default=0)

    @property
    def floor(self) -> Performance:
        return self.spec.performance if self.spec.performance.covers(INCLUDED) else INCLUDED
