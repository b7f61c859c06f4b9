"""Decides whether what a description puts into one object of Kubernetes fits there.

Sources: Kubernetes' ConfigMap, whose data has 1 MiB, in which Strimzi writes what a broker or a
worker is told; etcd, whose requests have 1.5 MiB, for every other object. The smaller is kept for
both, since what else an object holds is small beside either.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from core.cluster.spec import ClusterSpec

OBJECT_BYTES = 1024**2
# What is left for the rest of an object: labels, names, what the operator adds.
_KEPT = 64 * 1024


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each part of a description that is larger than an object."""
    for key, held in _held(spec):
        size = len(json.dumps(held).encode())
        if size > OBJECT_BYTES - _KEPT:
            yield (
                f"{key} takes {size} bytes, and one object of Kubernetes has room for "
                f"{OBJECT_BYTES - _KEPT} of it; name fewer, or say the same in fewer words."
            )


def _held(spec: ClusterSpec) -> Iterator[tuple[str, Any]]:
    yield "metrics.allow", spec.metrics.allow
    yield "kafka.config", dict(spec.kafka.config)
    for topic in spec.topics:
        yield f"config of topic {topic.name}", dict(topic.config)
    for user in spec.users:
        yield f"acls of user {user.name}", [acl.model_dump() for acl in user.acls]
    if spec.connect is not None:
        yield "connect.config", dict(spec.connect.config)
        yield "connect.acls", [acl.model_dump() for acl in spec.connect.acls]
