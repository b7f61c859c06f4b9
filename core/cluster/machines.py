"""Decides which instance types can be no node here, from what EC2 says of them.

Sources: AL2023's system requirements (ARMv8.2, so no A1), EC2's user guide on Mac instances, on
accelerated computing and on EBS-optimized instance types; DescribeInstanceTypes as recorded in moto
5.2.5 (EbsOptimizedSupport "unsupported"; GpuInfo, FpgaInfo, NeuronInfo and the like).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from core import instances
from core.cluster.spec import ClusterSpec

_ACCELERATED = (
    "its accelerators need an image with their drivers, and every node here runs the standard one"
)
_NOT_OPTIMIZED = (
    "every node here is launched EBS-optimized, which EC2 refuses of it as it does not support that"
)
# How instance types begin that no node here can be.
NEVER_NODES = {
    r"a1": "A1's processors are too old for Amazon Linux 2023, which every node runs",
    r"mac\d*(-\w+)?": "EC2 launches it on a Dedicated Host alone, and it runs macOS",
    r"(g\d\w*|gr\d\w*|p\d\w*(-\w+)?|dl\d\w*|trn\d\w*|inf\d|vt1|f\d)": _ACCELERATED,
    r"t[12]|[cm]1|m2|m3\.(medium|large)|c[cgr][12]|hs1": _NOT_OPTIMIZED,
}
_NOT_OPTIMIZED_SIZES = frozenset({"c3.large", "c3.8xlarge", "r3.large", "r3.8xlarge", "i2.8xlarge"})
# From small to large, as EC2 counts them: so many times an xlarge.
_SIZES = {"nano": 0.03, "micro": 0.06, "small": 0.13, "medium": 0.25, "large": 0.5, "xlarge": 1.0}


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each instance type that there is not, or that can be no node."""
    asked = {f"pool {pool.name}": pool.instance_type for pool in spec.pools}
    asked["the system nodes"] = spec.kubernetes.system_instance_type
    for whose, name in asked.items():
        why = _never(name)
        if why is not None:
            yield f"{name} of {whose} cannot be a node here: {why}; choose another type."
        elif (sizes := _sizes_of(name)) is not None:
            yield (
                f"{name} of {whose} is no instance type: the sizes of {name.partition('.')[0]} are "
                f"{', '.join(sizes)}; choose one of them."
            )


def _never(name: str) -> str | None:
    if name in _NOT_OPTIMIZED_SIZES:
        return _NOT_OPTIMIZED
    family = name.partition(".")[0]
    for pattern, why in NEVER_NODES.items():
        if re.fullmatch(pattern, family) or re.fullmatch(pattern, name):
            return why
    return None


def _sizes_of(name: str) -> list[str] | None:
    """Return the sizes of a known family that has not this one; None: it may have it.

    AWS adds larger sizes to a family, and bare metal, and nothing between those it began with.
    """
    family, _, size = name.partition(".")
    every = (each.partition(".") for each in instances.table().types)
    known = [its_size for its_family, _, its_size in every if its_family == family]
    asked = _rank(size)
    if not known or size in known or size.startswith("metal"):
        return None
    if asked is not None and asked > max(_rank(each) or 0 for each in known):
        return None
    return sorted(known, key=lambda each: _rank(each) or 0)


def _rank(size: str) -> float | None:
    times = re.fullmatch(r"([1-9]\d*)xlarge", size)
    return float(times[1]) if times else _SIZES.get(size)
