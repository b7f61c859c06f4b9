"""Decides what a NodeClaim of Karpenter's means for the broker on it: why it goes, and until when.

    marked    condition DisruptionReason: drift or consolidation, its replacement awaited first
    deleted   every other reason begins here, and no way leads back
    deadline  so long before it as a pod takes to stop, Karpenter deletes it, whatever budgets say

Source: sigs.k8s.io/karpenter 1.14.1 (pkg/controllers/disruption, nodeclaim/expiration, node/health,
node/termination). An interruption and a person's `kubectl delete` leave the same claim behind, so
that neither is guessed: EC2 is asked, and what stays unknown is taken for the worst.

A pod says to Karpenter: evict me not before, or not at all.

    karpenter.sh/do-not-disrupt   no eviction, and no room is made for it elsewhere
    a toleration of its taint     no eviction, and the node is ended while the pod runs there

Source: sigs.k8s.io/karpenter 1.14.1 (pkg/utils/pod/scheduling.go), and seen on it
(tests/integration/control_plane/test_karpenter.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from core.fields import epoch, part, text
from core.incidents.inventory import StatusView
from core.incidents.record import NodeDisruption
from core.naming import ZONE_LABEL
from core.window import clock

DEADLINE_ANNOTATION = "karpenter.sh/nodeclaim-termination-timestamp"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
# Karpenter does not cordon: this taint is all that keeps pods off a node that it empties.
DISRUPTED_TAINT = "karpenter.sh/disrupted"
NEVER = "Never"
# What a condition says that nobody has come to yet.
_UNTRIED = frozenset({"", "Unknown", "AwaitingReconciliation"})
# A repair writes its deadline a moment before it deletes the claim.
AT_ONCE_SECONDS = 60.0
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d{1,9})([smh])")
Json = Mapping[str, Any]


class Reason(StrEnum):
    """Why Karpenter ends a node."""

    INTERRUPTION = "interruption"  # AWS takes the instance, or stops it
    EXPIRY = "expiry"  # older than expireAfter
    DRIFT = "drift"  # no longer what its NodePool and node class say
    CONSOLIDATION = "consolidation"  # its pods fit elsewhere, or it has none
    REPAIR = "repair"  # its agent, its kubelet or EC2 calls it sick
    ROTATION = "rotation"  # a run of ours has deleted its claim
    UNTOLD = "untold"  # a person's word, or a warning that Karpenter alone has heard


_MARKED: Mapping[str, Reason] = {
    "Drifted": Reason.DRIFT,
    "Underutilized": Reason.CONSOLIDATION,
    "Empty": Reason.CONSOLIDATION,
}
_TOLD: Mapping[Reason, str] = {
    Reason.INTERRUPTION: "AWS takes its instance",
    Reason.EXPIRY: "it is older than its expireAfter",
    Reason.DRIFT: "it has drifted from its NodePool",
    Reason.CONSOLIDATION: "its pods are to fit elsewhere",
    Reason.REPAIR: "it is called sick, and no budget is asked",
    Reason.ROTATION: "a rotation has asked for that",
    Reason.UNTOLD: "nothing says why: a person, or a warning that Karpenter alone has heard",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a claim; `holds` is None where it says Unknown, or nothing readable."""

    holds: bool | None
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClaim:
    """One NodeClaim, as far as it can be read."""

    name: str
    uid: str
    instance_id: str | None = None  # None: nothing is launched yet
    node_name: str | None = None
    zone: str | None = None
    pool: str | None = None  # as its node says it
    created_at: float | None = None  # epoch seconds
    deleted: bool = False
    deleted_at: float | None = None  # epoch seconds; None with `deleted`: it cannot be read
    deadline: float | None = None  # epoch seconds, as Karpenter wrote it down
    grace_seconds: float | None = None  # terminationGracePeriod; None: a drain has no end
    expire_after_seconds: float | None = None  # None: Never
    unreadable: tuple[str, ...] = ()  # fields that are there and say nothing
    do_not_disrupt: bool = False
    conditions: Mapping[str, Condition] = field(default_factory=dict)

    def says(self, condition: str) -> bool:
        """Say whether a condition holds; one that is absent or Unknown does not."""
        found = self.conditions.get(condition)
        return found is not None and found.holds is True

    @property
    def joined(self) -> bool:
        """Say whether its node has come to the cluster: EC2 has shown its instance since."""
        return self.says("Registered") or self.says("Initialized")

    @property
    def serves(self) -> bool:
        """Say whether it is capacity: its node has joined, and nobody is about to end it."""
        return self.says("Initialized") and not self.leaves

    @property
    def leaves(self) -> bool:
        """Say whether Karpenter ends it, or is about to."""
        marks = ("DisruptionReason", "InstanceTerminating")
        return self.deleted or any(self.says(each) for each in marks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruption:
    """What Karpenter does to a node, and why."""

    claim: str  # its NodeClaim
    reason: Reason
    begun: bool  # the claim is deleted: Karpenter goes on until the node has ended
    # Epoch seconds by which pods have stopped, evicted or deleted; None: Karpenter waits.
    deadline: float | None
    sentence: str


def takes_pods(spec: Json) -> bool:
    """Say whether a Node's spec lets pods be scheduled there: neither cordoned nor disrupted."""
    tainted = any(each.get("key") == DISRUPTED_TAINT for each in spec.get("taints") or ())
    return not (tainted or spec.get("unschedulable", False))


def claim_in(item: Json, pool_labels: Mapping[str, object]) -> NodeClaim:
    """Read a NodeClaim as the API server shows it; `pool_labels` tell pools apart, as on nodes."""
    metadata, spec, status = (part(item.get(each)) for each in ("metadata", "spec", "status"))
    marks, labels = part(metadata.get("annotations")), part(metadata.get("labels"))
    deletion, deadline = metadata.get("deletionTimestamp"), marks.get(DEADLINE_ANNOTATION)
    grace, expiry = spec.get("terminationGracePeriod"), spec.get("expireAfter")
    read: dict[str, tuple[object, float | None]] = {
        "deletionTimestamp": (deletion, epoch(deletion)),
        DEADLINE_ANNOTATION: (deadline, epoch(deadline)),
        "terminationGracePeriod": (grace, seconds_in(grace)),
        "expireAfter": (None if expiry == NEVER else expiry, seconds_in(expiry)),
    }
    return NodeClaim(
        name=text(metadata, "name") or "",
        uid=text(metadata, "uid") or "",
        instance_id=(text(status, "providerID") or "").rpartition("/")[2] or None,
        node_name=text(status, "nodeName"),
        zone=text(labels, ZONE_LABEL),
        pool=next((said for key in pool_labels if (said := text(labels, key))), None),
        created_at=epoch(metadata.get("creationTimestamp")),
        deleted=deletion is not None,
        deleted_at=read["deletionTimestamp"][1],
        deadline=read[DEADLINE_ANNOTATION][1],
        grace_seconds=read["terminationGracePeriod"][1],
        expire_after_seconds=read["expireAfter"][1],
        unreadable=tuple(
            name for name, (said, known) in read.items() if said is not None and known is None
        ),
        do_not_disrupt=marks.get(DO_NOT_DISRUPT) not in {None, "false"},
        conditions=_conditions(status),
    )


def disruption_of(
    claim: NodeClaim, now: float, status: StatusView | None = None, *, rotated: bool = False
) -> Disruption | None:
    """Say what Karpenter does to a claim's node; None: nothing, as far as the claim shows.

    `status` is EC2's word about its instance, where it was asked; `rotated`: a run of ours has
    come to it, which is the reason where the claim shows no other.
    """
    if not claim.leaves:
        return None
    reason = _reason(claim, status)
    if rotated and reason is Reason.UNTOLD:
        reason = Reason.ROTATION
    begun = claim.deleted or claim.says("InstanceTerminating")
    deadline = _deadline(claim, now) if begun else None
    return Disruption(
        claim=claim.name,
        reason=reason,
        begun=begun,
        deadline=deadline,
        sentence=_sentence(claim, reason, deadline, begun=begun),
    )


def disrupted_for(known: NodeDisruption | None, told: str) -> NodeDisruption:
    """Return a disruption with the reason that says more: a known one outlasts an untold one."""
    if known is None:
        return NodeDisruption(reason=told)
    return known if told == Reason.UNTOLD else replace(known, reason=told)


def coming(claims: Iterable[NodeClaim], zone: str | None, pool: str | None) -> str | None:
    """Return what Karpenter launches for a pool in a zone, to end a sentence; None: nothing."""
    # A claim has no zone before it is launched, and its pool's zone is its NodePool's.
    for claim in claims:
        if claim.pool != pool or claim.leaves or claim.zone not in {None, zone}:
            continue
        if claim.serves:
            continue
        launched = claim.conditions.get("Launched")
        tried = launched is not None and launched.reason not in _UNTRIED
        if launched is not None and launched.holds is not True and tried:
            said = launched.message or launched.reason
            return f"Karpenter cannot launch NodeClaim {claim.name}: {said.rstrip('.')}"
        return f"NodeClaim {claim.name} is not initialized yet"
    return None


def seconds_in(value: object) -> float | None:
    """Return the seconds of a duration as Karpenter writes it, or None.

    >>> seconds_in("48h"), seconds_in("1h30m"), seconds_in("Never"), seconds_in(720)
    (172800.0, 5400.0, None, None)
    """
    if not isinstance(value, str):
        return None
    parts = _DURATION.findall(value)
    if not parts or "".join(map("".join, parts)) != value:
        return None
    return sum(float(count) * _SECONDS[unit] for count, unit in parts)


def _reason(claim: NodeClaim, status: StatusView | None) -> Reason:
    """Name the reason that the claim bears out by itself, else the one that EC2 does."""
    if claim.says("DisruptionReason"):
        return _MARKED.get(claim.conditions["DisruptionReason"].reason, Reason.UNTOLD)
    if _at_once(claim):
        return Reason.REPAIR
    if status is not None and any(not event.over for event in status.events):
        return Reason.INTERRUPTION
    born, age = claim.created_at, claim.expire_after_seconds
    if born is not None and age is not None and claim.deleted_at is not None:
        return Reason.EXPIRY if claim.deleted_at - born >= age else Reason.UNTOLD
    return Reason.UNTOLD


def _at_once(claim: NodeClaim) -> bool:
    """Say whether the deadline was set to the deletion itself, as a repair does."""
    if claim.deadline is None or claim.deleted_at is None:
        return False
    given = claim.deadline - claim.deleted_at
    return given <= AT_ONCE_SECONDS and given < (claim.grace_seconds or AT_ONCE_SECONDS)


def _deadline(claim: NodeClaim, now: float) -> float | None:
    """Return when Karpenter asks no budget any more; what cannot be read is taken for now."""
    if claim.deadline is not None:
        return claim.deadline
    if claim.says("InstanceTerminating"):
        return now
    if {DEADLINE_ANNOTATION, "terminationGracePeriod"} & set(claim.unreadable):
        return now
    if claim.grace_seconds is None:
        return None
    return now if claim.deleted_at is None else claim.deleted_at + claim.grace_seconds


def _sentence(claim: NodeClaim, reason: Reason, deadline: float | None, *, begun: bool) -> str:
    what = "ends" if begun else "is about to end"
    kept = f", {DO_NOT_DISRUPT} or not" if claim.do_not_disrupt else ""
    said = f"Karpenter {what} NodeClaim {claim.name}{kept}: {_TOLD[reason]}."
    if not begun:
        return said
    if deadline is None:
        return f"{said} Its drain has no deadline."
    by = clock(deadline)
    return (
        f"{said} It deletes pods past their disruption budgets, so that they have stopped by {by}."
    )


def _conditions(status: Json) -> dict[str, Condition]:
    found = {}
    listed = status.get("conditions")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping) and (kind := text(each, "type")):
            holds = {"True": True, "False": False}.get(str(each.get("status")))
            said = (text(each, "reason") or "", text(each, "message") or "")
            found[kind] = Condition(holds, *said)
    return found


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
