"""Refuses sizes of workers that EMR Serverless does not take, or beyond the maximum."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from local.refusals.fields import values
from local.refusals.limits import first_of, limit, outside
from local.refusals.refusal import Refusal, Wanted

_EMR = "https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/"
# vCPUs of a worker -> the least and the most of its memory in GB, and the step between.
MEMORY: Mapping[int, tuple[int, int, int]] = {
    1: (2, 8, 1),
    2: (4, 16, 1),
    4: (8, 30, 1),
    8: (16, 60, 4),
    16: (32, 120, 8),
}
DISK_GB = (20, 200)
SHUFFLE_DISK_GB = (20, 2000)
_TYPES = {"SPARK": {"Driver", "Executor"}, "HIVE": {"HiveDriver", "TezTask"}}


@limit("emrserverless/application:Application", source=f"{_EMR}app-behavior.html")
def workers_of_an_application(wanted: Wanted) -> Iterator[Refusal]:
    """Each of a size that there is and of its kind; all together within the maximum."""
    inputs = wanted.inputs
    kind = str(inputs.get("type") or "").upper()
    initial = [*values(inputs, "initialCapacities.*")]
    sizes = [*values(initial, "*.initialCapacityConfig.workerConfiguration")]
    wrong = next(filter(None, map(_of_a_size, sizes)), "")
    known = _TYPES.get(kind, set())
    strange = [
        e["initialCapacityType"] for e in initial if e.get("initialCapacityType") not in known
    ]
    counts = values(initial, "*.initialCapacityConfig.workerCount")
    over = next((k for k in ("cpu", "memory") if _sum(initial, k) > _most(inputs, k)), "")
    yield from first_of(
        "CreateApplication",
        "ValidationException",
        (
            known and strange,
            f"Worker type {strange[:1]} is not valid for {kind}.",
            "initialCapacities",
        ),
        (
            any(outside(e, 1, 10**6) for e in counts),
            "The worker count must be at least 1.",
            "initialCapacities",
        ),
        (wrong, wrong, "initialCapacities"),
        (over, f"The initial capacity's {over} exceeds the maximum capacity.", "maximumCapacity"),
    )


def _of_a_size(size: Mapping[str, Any]) -> str:
    cpu, memory = _number(size.get("cpu")), _number(size.get("memory"))
    disk = _number(size.get("disk"))
    if cpu is None or cpu not in MEMORY:
        return f"A worker has 1, 2, 4, 8 or 16 vCPU, and not {size.get('cpu')}."
    least, most, step = MEMORY[int(cpu)]
    if memory is not None and (outside(memory, least, most) or (memory - least) % step):
        return (
            f"A worker of {cpu:.0f} vCPU has {least} to {most} GB of memory in steps of {step}, "
            f"and not {size.get('memory')}."
        )
    ends = SHUFFLE_DISK_GB if size.get("diskType") == "SHUFFLE_OPTIMIZED" else DISK_GB
    if disk is not None and outside(disk, *ends):
        return f"A worker's disk has {ends[0]} to {ends[1]} GB, and not {size.get('disk')}."
    return ""


def _number(written: Any) -> float | None:
    found = re.match(r"\s*(\d+(?:\.\d+)?)", str(written)) if written is not None else None
    return float(found[1]) if found else None


def _sum(initial: list[Mapping[str, Any]], key: str) -> float:
    configured = [each.get("initialCapacityConfig") or {} for each in initial]
    return sum(
        int(each.get("workerCount") or 0)
        * (_number((each.get("workerConfiguration") or {}).get(key)) or 0)
        for each in configured
    )


def _most(inputs: Mapping[str, Any], key: str) -> float:
    most = _number((inputs.get("maximumCapacity") or {}).get(key))
    return float("inf") if most is None else most
