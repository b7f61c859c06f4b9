"""Defines the actions core.incidents may order; handlers.incidents.act carries them out.

Each is frozen, says what is to be true afterwards, and may be done twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class HookResult(StrEnum):
    CONTINUE = "CONTINUE"
    ABANDON = "ABANDON"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Keep one lifecycle hook waiting for another heartbeat timeout."""

    hook: str


@dataclass(frozen=True, slots=True)
class ForwardDrain:
    """Hand the announcement to the node termination handler, which cordons and drains.

    Where none does, the lease alone is put to use; `Cordon` and `Evict` follow.
    """


@dataclass(frozen=True, slots=True)
class Cordon:
    """Keep new pods off a node, in this incident's name."""

    node: str


@dataclass(frozen=True, slots=True)
class Uncordon:
    """Let a node take pods again, if this incident kept them off."""

    node: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Ask once for the eviction of this very pod; a refusal is an answer, and nothing is forced."""

    namespace: str
    name: str
    uid: str
    # Kafka's own needs the lease; any other only its budgets' consent.
    kafka: bool = False


@dataclass(frozen=True, slots=True)
class ReplaceRoot:
    """Have EC2 replace the root volume of the instance, once, however often it is asked.

    `trial` only asks whether it would. A refusal is an answer, and is kept.
    """

    image_id: str
    trial: bool = False


@dataclass(frozen=True, slots=True)
class EndClaim:
    """Delete this very NodeClaim: Karpenter makes room for its pods, evicts them, ends the node."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class KeepErrors:
    """Keep the counters of metadata errors before a restart sets them back; nothing waits for it.

    A drain that is forwarded keeps them by itself.
    """


@dataclass(frozen=True, slots=True)
class CompleteHook:
    hook: str
    result: HookResult


@dataclass(frozen=True, slots=True)
class TakeLease:
    """Take the cluster's lease, or renew it; `out` notes that the node is out, and it holds on."""

    out: bool = False


@dataclass(frozen=True, slots=True)
class DropLease:
    """Give the lease back, if this incident holds it; one that was used, only once it `ended`."""

    ended: bool = False


@dataclass(frozen=True, slots=True)
class EndDrain:
    """Give back another incident's lease whose drain was seen to have ended safely."""

    holder: str


@dataclass(frozen=True, slots=True)
class OpenBudget:
    """Let a pod be evicted beside others of its party, by a label for this incident.

    Whoever is not labelled is counted anew, so that nobody of them goes.
    """

    pod: str


@dataclass(frozen=True, slots=True)
class CloseBudget:
    """Take a pod's label off again, if it is this incident's."""

    pod: str


@dataclass(frozen=True, slots=True)
class SetDesired:
    """Set the group's desired capacity to an absolute number, so that doing it twice is once."""

    desired: int


@dataclass(frozen=True, slots=True)
class TerminateInGroup:
    """Terminate the instance through its group, which runs the lifecycle hooks.

    `decrement` lowers the desired capacity by one, where it was raised for the replacement.
    `instance_id` names another instance of the group: a spare that nobody needs after all.
    """

    decrement: bool
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class KeepSpare:
    """Keep a node that waits for the pod from Cluster Autoscaler, which sees only an idle one."""

    node: str


@dataclass(frozen=True, slots=True)
class FreeSpare:
    """Leave a node to Cluster Autoscaler again."""

    node: str


@dataclass(frozen=True, slots=True)
class TaintOutOfService:
    """Let Kubernetes give up a dead machine's pods and volumes; refused unless EC2 confirms."""

    node: str


@dataclass(frozen=True, slots=True)
class ReleaseAttachments:
    """Let go of what a Node that is gone still holds; refused unless EC2 confirms the end."""

    node: str


@dataclass(frozen=True, slots=True)
class Untaint:
    """Take the out-of-service taint off a node whose machine runs again."""

    node: str


@dataclass(frozen=True, slots=True)
class MoveLeaders:
    """Have other brokers lead what these lead, until `RestoreLeaders`."""

    broker_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RestoreLeaders:
    """Give the leaders back that this incident moved away.

    Without an election whoever goes on with the broker, a run, has it lead little by little.
    """

    elect: bool = True


@dataclass(frozen=True, slots=True)
class FreezeZone:
    """Freeze a zone that is lost as a whole; whoever is first calls a person, once for all."""

    zone: str
    reason: str


@dataclass(frozen=True, slots=True)
class Page:
    """Call a person; once per incident and key."""

    key: str
    reason: str


Action = (
    Heartbeat
    | ForwardDrain
    | Cordon
    | Uncordon
    | Evict
    | ReplaceRoot
    | EndClaim
    | KeepErrors
    | CompleteHook
    | TakeLease
    | DropLease
    | EndDrain
    | OpenBudget
    | CloseBudget
    | SetDesired
    | TerminateInGroup
    | KeepSpare
    | FreeSpare
    | TaintOutOfService
    | ReleaseAttachments
    | Untaint
    | MoveLeaders
    | RestoreLeaders
    | FreezeZone
    | Page
)
