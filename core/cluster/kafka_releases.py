"""Decides whether the pinned operator can run a spec's Kafka and metadata version together.

Sources: Strimzi 1.2.0's supported Kafka versions (its change log and kafka-versions.yaml);
Kafka 4.3's MetadataVersion, whose levels begin at 3.3-IV3 and end in production at 4.3-IV0.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from core.cluster.spec import ClusterSpec
from core.ground.constants import STRIMZI_KAFKA_VERSIONS as VERSIONS

# A test holds this to the chart that infra/ pins.
OPERATOR = "1.2.0"
# Oldest first. 3.7-IV3 was never used for anything.
METADATA = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1"),
    "4.3-IV0",
)
_VERSION = re.compile(r"(\d+\.\d+)\.\d+")
# The oldest Kubernetes that this operator runs on.
KUBERNETES = (1, 30)


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each version that cannot run, or not with the other."""
    version, metadata = spec.kafka.version, spec.kafka.metadata_version
    ours = spec.strimzi.operator == "chart"
    if ours and version not in VERSIONS:
        yield (
            f"kafka.version {version} is not among those that Strimzi {OPERATOR} runs "
            f"({', '.join(VERSIONS)}){_nearest_release(version, VERSIONS)}."
        )
    elif _VERSION.fullmatch(version) is None:
        yield f"kafka.version {version} is no version of Kafka; write it as in {VERSIONS[0]}."
    level = metadata_level(metadata)
    if level is None:
        yield (
            f"kafka.metadata_version {metadata} is not among those this release knows, "
            f"{METADATA[0]} to {METADATA[-1]}{_nearest_release(metadata, METADATA)}."
        )
    elif _release(level) > _release(version):
        yield (
            f"kafka.metadata_version {metadata} is newer than kafka.version {version}: no broker "
            f"of that version can read it; raise kafka.version first, and the metadata version "
            f"once every node runs it."
        )
    minor = tuple(int(part) for part in spec.kubernetes.version.split("."))
    if ours and minor < KUBERNETES:
        yield (
            f"kubernetes.version {spec.kubernetes.version} is older than "
            f"{'.'.join(map(str, KUBERNETES))}, the oldest that Strimzi {OPERATOR} runs on; raise "
            f"it."
        )


def doubts(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for what only an operator of somebody else's knows."""
    if spec.strimzi.operator == "external":
        yield (
            f"Whether your operator runs kafka.version {spec.kafka.version} was not checked: "
            f"strimzi.operator is external, and only Strimzi {OPERATOR} is known here."
        )


def metadata_level(metadata: str) -> str | None:
    """Return a metadata version's level: `4.2` is the last of that release; None: unknown."""
    if metadata in METADATA:
        return metadata
    of_release = [level for level in METADATA if level.startswith(f"{metadata}-")]
    return of_release[-1] if of_release else None


def _release(version: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", version)
    # An unreadable version has its own sentence.
    return tuple(int(part) for part in found.groups()) if found else (10**6,)


def _nearest_release(written: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(written, known, n=1)
    return f"; {close[0]} is the nearest" if close else "; choose one of them"
