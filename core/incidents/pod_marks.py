"""Reads what a pod says to Karpenter: evict me not before, or not at all.

    karpenter.sh/do-not-disrupt   no eviction, and no room is made for it elsewhere
    a toleration of its taint     no eviction, and the node is ended while the pod runs there

Source: sigs.k8s.io/karpenter 1.14.1 (pkg/utils/pod/scheduling.go), and seen on it
(tests/integration/control_plane/test_karpenter.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from core.fields import epoch
from core.incidents.nodeclaims import DISRUPTED_TAINT, DO_NOT_DISRUPT, seconds_in

Json = Mapping[str, Any]


def undisturbed_until(pod: Json) -> float | None:
    """Return until when Karpenter does not evict a pod, in epoch seconds; infinity: ever.

    The annotation says `true`, or for how long from the pod's start; anything else counts for
    nothing with Karpenter, and so here.
    """
    said = (pod["metadata"].get("annotations") or {}).get(DO_NOT_DISRUPT)
    if said == "true":
        return math.inf
    lasts = seconds_in(said)
    if not lasts:
        return None
    started = epoch(pod.get("status", {}).get("startTime"))
    return math.inf if started is None else started + lasts


def ignores_disruption(pod: Json) -> bool:
    """Say whether a pod tolerates the taint by which Karpenter empties a node."""
    return any(_tolerates(each) for each in pod.get("spec", {}).get("tolerations") or ())


def _tolerates(toleration: Json) -> bool:
    if toleration.get("effect") not in {None, "", "NoSchedule"}:
        return False
    exists, key = toleration.get("operator") == "Exists", toleration.get("key")
    if not key:
        return exists
    return key == DISRUPTED_TAINT and (exists or not toleration.get("value"))
