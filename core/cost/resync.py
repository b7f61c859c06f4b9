"""Models how long a broker that was away takes to be in every ISR again, and the bytes.

Two ways back: with its volume, where only what was appended meanwhile is missing (`after_outage`),
and without, where everything is (`after_loss`). Both are the same catch-up over a different
distance, so at one rate their times are to each other as what a broker holds is to what it missed:
retention to outage. A rotation's plan, the resync report and bench.resync ask here.

Flows are those of one broker, over all its replicas. While it is away and while it catches up it
leads nothing, so every byte appended to its replicas comes to it by replication.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from core.ground.errors import InvalidInput

BYTES_PER_MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What is appended to a broker's replicas, and what replication can bring in altogether.

    `limited_by` names what sets that rate.
    """

    append_bytes_per_s: float
    replication_bytes_per_s: float
    limited_by: str = "the replication rate"

    def __post_init__(self) -> None:
        _not_negative(
            append_bytes_per_s=self.append_bytes_per_s,
            replication_bytes_per_s=self.replication_bytes_per_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUp:
    """A way back into every ISR that ends.

    `gross_bytes` is what replication brings the broker meanwhile. `incremental_bytes` is what of it
    would not have been copied had the broker stayed: each byte produced is copied to every replica
    once, sooner or later, so what was merely late costs nothing more. It is negative when some of
    what was missed expired before it could be copied.
    """

    behind_bytes: float
    seconds: float
    gross_bytes: float
    incremental_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """A way back that never ends; the sentence says why, and what would end it."""

    behind_bytes: float
    sentence: str


def ending(way: CatchUp | Divergence) -> CatchUp | None:
    """Return a way back that ends, or None for one that never does."""
    return way if isinstance(way, CatchUp) else None


def held_bytes(
    append_bytes_per_s: float, retention_seconds: float, cap_bytes: float = math.inf
) -> float:
    """Return what a broker holds once its log is as old as retention lets it be.

    With tiered storage the retention that counts is the local one. `cap_bytes` is the sum of
    retention.bytes over its partitions, where that is set.
    """
    _not_negative(append_bytes_per_s=append_bytes_per_s, retention_seconds=retention_seconds)
    if not cap_bytes >= 0:
        raise InvalidInput([_negative("cap_bytes", cap_bytes)])
    return min(append_bytes_per_s * retention_seconds, cap_bytes)


def after_outage(
    flow: Flow, *, outage_seconds: float, held_bytes: float = math.inf
) -> CatchUp | Divergence:
    """Return the way back of a broker that kept its volume.

    An outage longer than retention leaves nothing to build on: then it misses all that is held.
    """
    missed = flow.append_bytes_per_s * outage_seconds
    return _catch_up(flow, min(missed, held_bytes), outage_seconds)


def after_loss(flow: Flow, *, outage_seconds: float, held_bytes: float) -> CatchUp | Divergence:
    """Return the way back of a broker whose volume came back empty.

    Segments that expire meanwhile shorten nothing: it starts at the oldest and moves forward faster
    than they expire.
    """
    _not_negative(held_bytes=held_bytes)
    return _catch_up(flow, held_bytes, outage_seconds)


def slowest(limits_bytes_per_s: Mapping[str, float]) -> tuple[str, float]:
    """Return the limit that decides, and its rate; raises InvalidInput when none is known."""
    if not limits_bytes_per_s:
        raise InvalidInput(["No limit of replication is known: measure or set at least one."])
    _not_negative(**limits_bytes_per_s)
    return min(limits_bytes_per_s.items(), key=lambda limit: (limit[1], limit[0]))


def _catch_up(flow: Flow, behind_bytes: float, outage_seconds: float) -> CatchUp | Divergence:
    _not_negative(outage_seconds=outage_seconds)
    seconds = _seconds(flow, behind_bytes)
    if math.isinf(seconds):
        return Divergence(behind_bytes=behind_bytes, sentence=_never(flow))
    return CatchUp(
        behind_bytes=behind_bytes,
        seconds=seconds,
        gross_bytes=behind_bytes + flow.append_bytes_per_s * seconds,
        # What goes on being appended would have come anyway, and so would have what was missed.
        incremental_bytes=behind_bytes - flow.append_bytes_per_s * outage_seconds,
    )


def _seconds(flow: Flow, behind_bytes: float) -> float:
    if behind_bytes == 0:
        return 0.0
    left = flow.replication_bytes_per_s - flow.append_bytes_per_s
    return behind_bytes / left if left > 0 else math.inf


def _never(flow: Flow) -> str:
    appended = flow.append_bytes_per_s / BYTES_PER_MB
    brought = flow.replication_bytes_per_s / BYTES_PER_MB
    return (
        f"The broker never catches up: {appended:.2f} MB/s are appended to its replicas. "
        f"{flow.limited_by} brings in {brought:.2f} MB/s; raise it above {appended:.2f} MB/s, or "
        "move replicas to other brokers first."
    )


def _not_negative(**values: float) -> None:
    problems = [
        _negative(name, value)
        for name, value in values.items()
        if not (value >= 0 and math.isfinite(value))
    ]
    if problems:
        raise InvalidInput(problems)


def _negative(name: str, value: float) -> str:
    return f"{name} is {value}: it must be a number, 0 or more; correct it."
