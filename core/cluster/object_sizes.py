"""Decides whether what a description puts into one object of Kubernetes fits there.

Sources: Kubernetes' ConfigMap, whose data has 1 MiB, in which Strimzi writes what a broker or a
worker is told; etcd, whose requests have 1.5 MiB, for every other object. The smaller is kept for
both, since what else an object holds is small beside either. CEL's parser takes an expression of
100,000 characters, in which a webhook names whom it does not ask; an item of DynamoDB, in which
functions are told of every node, has 400 KB (Constraints.html).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from core.cluster.node_places import nodes
from core.cluster.spec import ClusterSpec

OBJECT_BYTES = 1024**2
# What is left for the rest of an object: labels, names, what the operator adds.
_KEPT = 64 * 1024
CEL_CHARACTERS, ITEM_BYTES = 100_000, 400 * 1024
# For whom the gate never asks about, and for what else functions are told in that item.
_KEPT_OF_CEL, _KEPT_OF_ITEM = 5_000, 16 * 1024


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each part of a description that is larger than an object."""
    yield from _outside_objects(spec)
    for key, held in _held(spec):
        size = len(json.dumps(held).encode())
        if size > OBJECT_BYTES - _KEPT:
            yield (
                f"{key} takes {size} bytes, and one object of Kubernetes has room for "
                f"{OBJECT_BYTES - _KEPT} of it; name fewer, or say the same in fewer words."
            )


def _outside_objects(spec: ClusterSpec) -> Iterator[str]:
    gate = spec.eviction_gate
    named = 0 if gate is None else len(json.dumps(gate.operators))
    if named > CEL_CHARACTERS - _KEPT_OF_CEL:
        yield (
            f"eviction_gate.operators takes {named} characters, and the expression of Kubernetes' "
            f"webhook has room for {CEL_CHARACTERS - _KEPT_OF_CEL} of it; name fewer."
        )
    told = [{"node_id": n.node_id, "node_pool": n.node_pool, "role": n.role} for n in nodes(spec)]
    size = len(json.dumps(told, separators=(",", ":")))
    if size > ITEM_BYTES - _KEPT_OF_ITEM:
        yield (
            f"pools have {len(told)} nodes, a list of {size} bytes, and the item of DynamoDB in "
            f"which functions are told of them has room for {ITEM_BYTES - _KEPT_OF_ITEM} of it; "
            f"have fewer nodes, or shorter names of pools."
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
