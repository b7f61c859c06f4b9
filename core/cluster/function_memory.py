"""Decides how much memory the functions have: as the spec says, or as its brokers ask for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from core.cluster.fields import Frozen

if TYPE_CHECKING:
    from core.cluster.spec import ClusterSpec

# Lambda gives processor time by memory; below this the imports alone take seconds.
LEAST_MIB = 512
STEP_MIB = 64
# A function with everything it imports, and what a plan of all brokers takes for each of them
# with 4,000 replicas (`python -m bench.reading`, and half as much again).
BEFORE_READING_MIB, MIB_PER_BROKER = 200, 2.0


class FunctionMemory(Frozen):
    """The functions that act on what AWS announces."""

    memory_mib: Annotated[int | None, Field(ge=LEAST_MIB, le=10_240)] = None
    """Each function's memory; Lambda gives processor time in proportion. Left out: 200 MiB and 2
    for each broker, which is what planning a rotation of all of them takes; 512 MiB at least.
    """


def memory_mib(spec: ClusterSpec) -> int:
    """Return the memory of each function of a cluster."""
    if spec.functions.memory_mib is not None:
        return spec.functions.memory_mib
    needed = BEFORE_READING_MIB + spec.brokers * MIB_PER_BROKER
    return max(LEAST_MIB, math.ceil(needed / STEP_MIB) * STEP_MIB)
