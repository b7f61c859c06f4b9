"""Sums up what the clients saw of a stretch of time, from their programs' samples: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from local.demo.load import PARTITIONS, PAYLOAD_BYTES
from local.demo.story import percentiles

Sample = Mapping[str, Any]
# A record sent just before leaders move is answered after; the client's refresh comes after that.
MOVE_SETTLES_SECONDS = 2.0


@dataclass(frozen=True)
class Stretch:
    """From one moment to another, in epoch seconds; the end is not part of it."""

    since: float
    until: float

    def __contains__(self, at: float) -> bool:
        return self.since <= at < self.until

    @property
    def seconds(self) -> float:
        return self.until - self.since


def seconds_below(samples: Iterable[Sample], least: int, stretch: Stretch) -> float:
    """Return for how long some partition had fewer in sync: each sample holds until the next."""
    isr = [s for s in samples if s["kind"] == "isr" and s["at"] in stretch]
    ends = [s["at"] for s in isr[1:]] + [stretch.until]
    below = [float(e - s["at"]) for s, e in zip(isr, ends, strict=True) if s["smallest"] < least]
    return sum(below)


def smallest(samples: Iterable[Sample], stretch: Stretch) -> int | None:
    """Return the smallest ISR of any partition; None when nobody looked."""
    return min(
        (s["smallest"] for s in samples if s["kind"] == "isr" and s["at"] in stretch), default=None
    )


def refilled_bytes(
    samples: Iterable[Sample], stretch: Stretch, *, partitions: int, record_bytes: int
) -> int:
    """Return what replicas had to fetch once they were back: what was acknowledged without them.

    Records go round all partitions, so that each replica out of sync lacks its partition's share.
    """
    lacking, lacked = 0, 0
    for sample in sorted(samples, key=lambda s: s["at"]):
        if sample["kind"] == "isr":
            lacking = sample["lacking"]
        elif sample["kind"] == "ack" and sample["at"] in stretch:
            lacked += lacking
    return lacked * record_bytes // partitions


def moves(samples: Iterable[Sample], stretch: Stretch) -> list[Stretch]:
    """Return when leaders moved: from the last look before to what settles after the first since.

    A partition without a leader is on the move for as long as it has none.
    """
    found: list[Stretch] = []
    before: Sample | None = None
    for sample in samples:
        if sample["kind"] != "isr" or sample["at"] not in stretch:
            continue
        leaders = sample["led_by"]
        if before is not None and (leaders != before["led_by"] or None in leaders or -1 in leaders):
            found.append(Stretch(before["at"], sample["at"] + MOVE_SETTLES_SECONDS))
        before = sample
    return found


def latencies(
    samples: Iterable[Sample], kind: str, stretch: Stretch, outside: Sequence[Stretch] = ()
) -> list[float]:
    """Return the milliseconds of what was sent in a stretch and outside others."""
    return [
        s["ms"]
        for s in samples
        if s["kind"] == kind
        and s["at"] in stretch
        and not any(s["at"] in other for other in outside)
    ]


def figures(
    samples: Sequence[Sample], steady: Stretch, rotation: Stretch, least_in_sync: int
) -> dict[str, Any]:
    """Return latencies in rotation against steady, and how far the ISRs shrank."""
    moved = moves(samples, rotation)
    kinds = {"produce": "ack", "end_to_end": "read"}
    found: dict[str, Any] = {}
    for name, kind in kinds.items():
        found[f"{name}_ms"] = {
            "steady": asdict(percentiles(latencies(samples, kind, steady))),
            "rotation": asdict(percentiles(latencies(samples, kind, rotation))),
            "outside_moves": asdict(percentiles(latencies(samples, kind, rotation, moved))),
        }
    produce = found["produce_ms"]
    return {
        **found,
        "p99_ratio": _ratio(produce["rotation"]["p99"], produce["steady"]["p99"]),
        "p99_ratio_outside_moves": _ratio(
            produce["outside_moves"]["p99"], produce["steady"]["p99"]
        ),
        "leader_moves": len(moved),
        "moves_s": round(_union_seconds(moved), 1),
        "min_isr_seen": smallest(samples, rotation),
        "refilled_kib": refilled_bytes(
            samples, rotation, partitions=PARTITIONS, record_bytes=PAYLOAD_BYTES
        )
        // 1024,
        "below_min_isr_s": round(seconds_below(samples, least_in_sync, rotation), 1),
        "minutes": round(rotation.seconds / 60, 2),
        "consumer_errors": sum(s["kind"] == "consumer_error" for s in samples),
    }


def _ratio(one: float, other: float) -> float | None:
    return round(one / other, 2) if other else None


def _union_seconds(stretches: Iterable[Stretch]) -> float:
    total, reached = 0.0, float("-inf")
    for stretch in sorted(stretches, key=lambda s: s.since):
        total += max(0.0, stretch.until - max(stretch.since, reached))
        reached = max(reached, stretch.until)
    return total
