"""Measures how long decisions on volumes take, and compares them with fixed rules.

    python -m bench.volumes

1,000 volumes a run, and that it grows linearly: each has two weeks of hours behind it, as in
production; every tenth fills, every tenth is throttled, every tenth was quiet for days. Seconds are
the processor's: nothing is waited for, and a busy neighbour is no work of these. Then twenty
volumes fill for two weeks, grown by this project and by pvc-autoresizer's threshold
(bench.filling): how long their brokers stood still, and what was bought. Writes
out/bench/volumes.json.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal

from bench import record
from bench.filling import race
from core.cost import pricing
from core.volumes.deciding import class_of, plan
from core.volumes.sizing import Gp3, Performance, Policy
from core.volumes.views import FillSample, History, Hour, Load, VolumeSet, VolumeView, forecast

COUNTS = (100, 200, 500, 1000)
REPEATS = 5
# Volumes that fill for two weeks under each rule.
RACED = 20
NOW = 1_800_000_000.0
HOURS = 14 * 24
HOUR, GIB, MIB = 3600.0, 1024**3, 1024**2
BUDGET = Decimal(10_000)


def main() -> None:
    """Measure, write down, say."""
    book = pricing.book("us-east-1")
    rows = []
    for count in COUNTS:
        memories = [_memory(number) for number in range(count)]
        seconds = []
        for _ in range(REPEATS):
            # What earlier rounds left behind is not this one's to clear.
            gc.collect()
            begun = time.process_time()
            planned = plan([_set(n, m) for n, m in enumerate(memories)], book, NOW, BUDGET)
            seconds.append(time.process_time() - begun)
        tracemalloc.start()
        plan([_set(n, m) for n, m in enumerate(memories)], book, NOW, BUDGET)
        peak_mib = tracemalloc.get_traced_memory()[1] / MIB
        tracemalloc.stop()
        kinds = Counter(decision.kind.value for decision in planned.decisions)
        median = statistics.median(seconds)
        rows.append(
            {"volumes": count, "seconds": median, "peak_mib": round(peak_mib, 1), "kinds": kinds}
        )
        print(f"{count:>5} volumes: {median:.3f} s, {peak_mib:.1f} MiB, {dict(kinds)}")
    first, last = rows[0], rows[-1]
    raced = _race()
    summary = {
        **_outcomes(raced),
        "volumes_per_s": round(COUNTS[-1] / float(str(last["seconds"]))),
        "growth_10x": round(float(str(last["seconds"])) / float(str(first["seconds"])), 1),
        "peak_mib": last["peak_mib"],
    }
    fills = [
        {
            "rule": rule,
            "seed": seed,
            "hours_full": round(ran.hours_full, 2),
            "modifications": ran.modifications,
            "bought_ratio": round(ran.bought_ratio, 2),
        }
        for rule, each in raced.items()
        for seed, ran in enumerate(each)
    ]
    parameters = {"hours": HOURS, "repeats": REPEATS, "raced": RACED, "days": race.DAYS}
    record.write("volumes", parameters, [*rows, *fills], summary)


def _race() -> dict[str, list[race.Ran]]:
    """Let the same volumes fill under both rules."""
    return {
        "forecast": [race.run(race.ByForecast(), seed) for seed in range(RACED)],
        "threshold": [race.run(race.ByThreshold(), seed) for seed in range(RACED)],
    }


def _outcomes(raced: Mapping[str, Sequence[race.Ran]]) -> dict[str, float]:
    return {
        f"{rule}_{figure}": value
        for rule, each in raced.items()
        for figure, value in (
            ("hours_full", round(sum(ran.hours_full for ran in each), 1)),
            ("brokers_stopped", sum(ran.hours_full > 0 for ran in each)),
            ("modifications", sum(ran.modifications for ran in each)),
            ("bought_ratio", round(statistics.mean(ran.bought_ratio for ran in each), 2)),
        )
    }


def _memory(number: int) -> tuple[tuple[FillSample, ...], tuple[Hour, ...]]:
    """Return two weeks of a volume: every tenth fills, the others breathe."""
    dice = random.Random(number)  # noqa: S311 - a load, no secret
    rate = 0.2 * GIB if number % 10 == 0 else 0.0
    begin = NOW - HOURS * HOUR
    samples = tuple(
        FillSample(begin + n * HOUR, 20 * GIB + rate * n + dice.random() * GIB)
        for n in range(HOURS)
    )
    hours = tuple(Hour(begin + n * HOUR, 500.0, 20.0 * MIB, exceeded=False) for n in range(HOURS))
    return samples, hours


def _set(number: int, memory: tuple[tuple[FillSample, ...], tuple[Hour, ...]]) -> VolumeSet:
    samples, hours = memory
    quiet = number % 10 == 2
    shape = Gp3(100, Performance(3000, 250) if quiet else Performance())
    name = class_of(shape.performance)
    load = Load(
        volume_exceeded_share=0.5 if number % 10 == 1 else 0.0,
        instance_exceeded_share=0.0,
        iops_p999=500.0,
        bytes_per_s_p999=20.0 * MIB,
        hours=hours,
    )
    volume = VolumeView(
        claim=f"data-0-{number}",
        pod=f"broker-{number}",
        volume_id=f"vol-{number}",
        actual=shape,
        requested_gib=shape.size_gib,
        given_gib=shape.size_gib,
        wanted_class=name,
        given_class=name,
        instance_type="m7g.2xlarge",
        history=History(known_since=0.0, looked_at=NOW),
        forecast=forecast(samples, samples[-1].used_bytes, NOW),
        load=load,
    )
    return VolumeSet(
        pool=f"broker-{number}",
        number=0,
        asked=shape,
        spec=Gp3(100),
        volumes=(volume,),
        policy=Policy(apply=True),
    )


if __name__ == "__main__":
    main()
