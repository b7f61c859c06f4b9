"""Holds what core.incidents decides on: one reading of everything, and the settings it obeys.

handlers.incidents.observe builds an Observation per tick; the adapters read EC2's lists, the tags
that say whose an instance is, and Karpenter's NodeClaims. All are frozen and know no client. What a
claim and a pod say to Karpenter follows sigs.k8s.io/karpenter 1.14.1 (pkg/utils/pod/scheduling.go),
and was seen on it (tests/integration/control_plane/test_karpenter.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from core.availability.consent import Freeze, freeze_of
from core.availability.operator import UNMARKED, OperatorView, Revisions
from core.ground.fields import Unknown, epoch, part, text
from core.ground.naming import CLUSTER_TAG, ENVIRONMENT_TAG, ZONE_LABEL, managed_tag
from core.ground.placement import NOT_SAID, Amounts, PodNeeds, Taint
from core.ground.window import Window
from core.views import ClusterView

# The EBS CSI driver's own tags: which claim a volume was made for.
CLAIM_TAG = "kubernetes.io/created-for/pvc/name"
# What EC2 calls a planned event -> Health's code for it, which is what decisions know.
HEALTH_CODES: Mapping[str, str] = {
    "instance-reboot": "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED",
    "system-reboot": "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED",
    "system-maintenance": "AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED",
    "instance-retirement": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
    "instance-stop": "AWS_EC2_INSTANCE_STOP_SCHEDULED",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EbsVolume:
    """One EBS volume and where it is attached."""

    volume_id: str
    instance_id: str | None
    zone: str
    tags: Mapping[str, str] = field(default_factory=dict)

    def belongs_to(self, prefix: str) -> bool:
        """Say whether the volume was made for this cluster of this environment."""
        environment, cluster = self.tags.get(ENVIRONMENT_TAG), self.tags.get(CLUSTER_TAG)
        return f"{environment}-{cluster}" == prefix

    @property
    def pod(self) -> str | None:
        """Return the Kafka pod whose claim the volume fills: data-0-orders-broker-a-10."""
        kind, _, rest = self.tags.get(CLAIM_TAG, "").partition("-")
        number, _, pod = rest.partition("-")
        return pod if kind == "data" and number.isdecimal() and pod else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledEvent:
    """What EC2 plans for an instance; `code` is EC2's, not Health's."""

    event_id: str
    code: str  # instance-retirement, instance-stop, system-reboot, ...
    description: str
    not_before: float | None  # epoch seconds

    @property
    def over(self) -> bool:
        """Say whether it is done or called off; EC2 keeps showing it for a week."""
        return self.description.startswith(("[Completed]", "[Canceled]"))

    @property
    def health_code(self) -> str:
        """Return Health's code for it, which is what decisions know."""
        return HEALTH_CODES.get(self.code, self.code)

    def name(self, last_word_at: float | None) -> str:
        """Name what the list says of it, so that a moved start is news, and a repetition is not.

        AWS may call it off and schedule it again: then it follows on another last word.
        """
        start = "" if self.not_before is None else f"{self.not_before:.0f}"
        after = "" if last_word_at is None else f" after {last_word_at:.0f}"
        state = "closed" if self.over else "open"
        return ":".join((self.event_id, self.code, start, state)) + after


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """EC2's checks of one running instance, and what is scheduled for it."""

    instance_id: str
    events: tuple[ScheduledEvent, ...] = ()
    # Check (system, instance, attached EBS) -> since when it has failed, epoch seconds.
    impaired: Mapping[str, float] = field(default_factory=dict)


GROUP_TAG = "aws:autoscaling:groupName"
# Tags that stand together: a key, and the values it may have; none: whatever it says.
Mark = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Ownership:
    """Tags of which one set is on everything of the cluster, and groups by name."""

    marks: tuple[Mark, ...] = ()
    scaling_groups: tuple[str, ...] = ()

    def owns(self, tags: Mapping[str, str]) -> bool:
        """Say whether an instance with these tags is the cluster's."""
        if tags.get(GROUP_TAG) in self.scaling_groups:
            return True
        return any(
            all(key in tags and tags[key] in (values or (tags[key],)) for key, values in m.items())
            for m in self.marks
        )

    @property
    def instance_marks(self) -> tuple[Mark, ...]:
        """Return the marks of instances: Auto Scaling writes the group's name on each."""
        by_name = ({GROUP_TAG: self.scaling_groups},) if self.scaling_groups else ()
        return (*self.marks, *by_name)

    @property
    def lacking(self) -> str:
        """Say what something of another's does not have."""
        named = [", ".join(mark) for mark in self.instance_marks]
        return f"no tag {' nor '.join(named)}" + (" of this cluster" if len(named) > 1 else "")


def cluster_ownership(prefix: str) -> Ownership:
    """Return how a cluster of ours is known."""
    return Ownership(marks=({managed_tag(prefix): ()},))


DEADLINE_ANNOTATION = "karpenter.sh/nodeclaim-termination-timestamp"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
# Karpenter does not cordon: this taint is all that keeps pods off a node that it empties.
DISRUPTED_TAINT = "karpenter.sh/disrupted"
NEVER = "Never"
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d{1,9})([smh])")
Json = Mapping[str, Any]


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


def _conditions(status: Json) -> dict[str, Condition]:
    found = {}
    listed = status.get("conditions")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping) and (kind := text(each, "type")):
            holds = {"True": True, "False": False}.get(str(each.get("status")))
            said = (text(each, "reason") or "", text(each, "message") or "")
            found[kind] = Condition(holds, *said)
    return found


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


def takes_pods(spec: Json) -> bool:
    """Say whether a Node's spec lets pods be scheduled there: neither cordoned nor disrupted."""
    tainted = any(each.get("key") == DISRUPTED_TAINT for each in spec.get("taints") or ())
    return not (tainted or spec.get("unschedulable", False))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOnNode:
    """One pod that has not ended, of whatever namespace."""

    namespace: str
    name: str
    uid: str
    # A DaemonSet's, or the kubelet's own (a mirror pod): an eviction brings it back at once.
    stays: bool = False
    # Somebody makes it anew elsewhere; without an owner it is gone for good.
    owned: bool = True
    stopping: bool = False
    # Of the Kafka that is looked after: it never goes unasked.
    kafka: bool = False

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


NOT_ASKED = "Kafka was not asked."
# EC2's states of an instance that is ending, and of one that certainly runs nothing any more;
# None is an instance EC2 has already forgotten.
ENDING = frozenset({"shutting-down", "terminated", None})
STOPPED = frozenset({"stopped", "terminated", None})


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceView:
    """One EC2 instance; `tags` say whose it is."""

    instance_id: str
    state: str  # EC2's: pending, running, shutting-down, terminated, stopping, stopped
    zone: str
    private_dns_name: str
    group: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    market: str | None = None  # EC2's lifecycle: on-demand, spot, ...; None: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One Auto Scaling group and the lifecycle state of each of its instances."""

    name: str
    desired: int
    maximum: int
    instances: Mapping[str, str]  # instance id -> InService, Terminating:Wait, ...
    zones: tuple[str, ...] = ()
    protected: frozenset[str] = frozenset()  # instances that a scale-in may not take

    def lifecycle_of(self, instance_id: str) -> str | None:
        """Return an instance's lifecycle state; one leaves a warm pool as it leaves the group."""
        state = self.instances.get(instance_id, "")
        leaving = state.startswith("Warmed:Terminating")
        return (state.removeprefix("Warmed:") if leaving else state) or None

    def staying(self) -> frozenset[str]:
        """Return the instances that serve or are being launched."""
        return frozenset(
            i for i, state in self.instances.items() if state.startswith(("Pending", "InService"))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One Kubernetes node; `csi_ready` says that the EBS driver is registered on its CSINode.

    `spare_for` names the incident for which it is kept from Cluster Autoscaler; `out_of_service`
    says that it carries the taint which lets go of the pods and volumes of a dead machine.
    """

    name: str
    instance_id: str | None
    zone: str | None
    pool: str | None
    ready: bool
    schedulable: bool
    csi_ready: bool
    spare_for: str | None = None
    kubelet: str = ""  # its version
    out_of_service: bool = False
    # Conditions of the node monitoring agent that are False -> since when, in epoch seconds.
    sick: Mapping[str, float] = field(default_factory=dict)
    unready_since: float | None = None  # epoch seconds; None: it is Ready, or nobody said
    unready_why: str = ""  # the kubelet's words
    created_at: float | None = None  # epoch seconds, when it joined the cluster
    do_not_disrupt: bool = False  # somebody keeps it from Karpenter
    boot_id: str | None = None  # another one after each boot
    cordoned_for: str | None = None  # the incident that keeps new pods off it
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()  # but a cordon's
    allocatable: Amounts = field(default_factory=dict)  # what it has for its pods in all


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """One Kafka pod; `node_name` is None until it is scheduled."""

    name: str
    node_id: int
    role: str | None  # broker, controller or combined, as its labels say
    node_name: str | None
    ready: bool
    stopping: bool = False  # told to stop, by an eviction or otherwise
    out_since: float | None = None  # epoch seconds, when not Ready; None: it is, or nobody said
    trouble: str = ""  # why it does not start: Unschedulable, CrashLoopBackOff, ...
    cause: str = ""  # the same as a clause, with what to do
    revisions: Revisions = UNMARKED  # of what Strimzi made it
    roll_asked: bool = False  # somebody asked Strimzi to restart it
    grace_seconds: float | None = None  # what it is given to stop in; None: not known
    may_leave: str | None = None  # the incident that its label says it may leave for
    # Of Karpenter (core.incidents.learn): epoch seconds before which it evicts nobody, and
    # whether it ends the node under the pod.
    undisturbed_until: float | None = None
    ignores_disruption: bool = False
    needs: PodNeeds = field(default=NOT_SAID, hash=False)  # as the scheduler sees it


def zones_of(nodes: Iterable[NodeView], pods: Iterable[PodView]) -> dict[int, str]:
    """Return where each Kafka node stands, by its id; an empty name where that is not known."""
    homes = {node.name: node.zone or "" for node in nodes}
    return {pod.node_id: homes.get(pod.node_name or "", "") for pod in pods}


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetView:
    """One disruption budget, and the Kafka pods it speaks for.

    `yields` says that it leaves out whoever is labelled to leave (core.incidents.consenting).
    """

    name: str
    pods: frozenset[str]
    disruptions_allowed: int
    yields: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingDrain:
    """A lease of another incident that was used and not given back, and what is known of it."""

    holder: str  # the incident's id
    instance_id: str
    node_id: int | None
    forwarded_at: float | None  # when its message was last sent; None: somebody else took it out
    open: bool = False
    state: str = "unknown"  # the incident's
    expects_return: bool = True
    instance_state: str | None = None  # EC2's; None: EC2 does not know it


@dataclass(frozen=True, slots=True)
class WaitingTurn:
    """Another incident that asked for its turn when it was last looked at."""

    incident_id: str
    due_at: float  # epoch seconds: by when its turn is to have come (core.incidents.consenting)
    next_look_at: float  # epoch seconds: when its next tick is due


@dataclass(frozen=True, slots=True)
class RootTask:
    """EC2's replacement of an instance's root volume that was asked for in an incident's name."""

    id: str
    state: str  # pending, in-progress, succeeded, failing(-detached), failed(-detached)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything true at `now` that a decision about one incident may rest on."""

    now: float  # epoch seconds
    instance: InstanceView | None  # None: EC2 no longer knows it
    group: GroupView | None = None
    nodes: tuple[NodeView, ...] = ()
    claims: tuple[NodeClaim, ...] = ()  # of Karpenter's, where it launches the nodes
    pods: tuple[PodView, ...] = ()  # the cluster's Kafka pods
    attachments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # node -> volumes
    # Every pod on each node that the incident's pod may move to, or why they are not known.
    # What is wrong with the claims of the incident's pod, as clauses.
    claim_troubles: tuple[str, ...] = ()
    tenants: Mapping[str, tuple[PodNeeds, ...] | Unknown] = field(default_factory=dict)
    volumes: tuple[str, ...] = ()  # of the EBS driver's, what EC2 still has on the instance
    budgets: tuple[BudgetView, ...] = ()
    operator: OperatorView | Unknown | None = None  # Strimzi's; None: it was not looked at
    kafka: ClusterView | None = None
    kafka_silence: str = NOT_ASKED  # why `kafka` is None, as a sentence
    # The incident that validly holds the cluster's lease; one of the same party is no hindrance.
    lease_holder: str | None = None
    beside: frozenset[int] = frozenset()  # Kafka nodes that its party takes out meanwhile
    waiting: tuple[WaitingTurn, ...] = ()  # others than its party that ask for their turn
    drains: tuple[StandingDrain, ...] = ()  # of others than its party
    own_drain_at: float | None = None  # when its own drain was last sent, as the lease has it
    on_node: tuple[PodOnNode, ...] = ()  # all that runs on its node, where we drain it ourselves
    root_task: RootTask | None = None  # of this incident's, where its root is replaced in place
    leaving: frozenset[str] = frozenset()  # instances of the other open incidents
    # Pods that the other open incidents have taken out, or are taking out.
    taken_out: frozenset[str] = frozenset()
    # Ids of those whose pod has not moved yet: the nodes they keep are for nobody else.
    to_be_placed: frozenset[str] = frozenset()
    # Of the others, who asked this instance's group for room and has not let its instance go.
    asking: frozenset[str] = frozenset()
    lost: Mapping[str, str] = field(default_factory=dict)  # of those, lost instances -> zone
    freezes: tuple[Freeze, ...] = ()
    watched: bool = False  # nobody of ours acts on this machine: who drains it does not say so
    paused: str = ""  # who has paused the cluster, and why; known even where the rest is blind
    blind: str = ""  # why nothing could be read, as a sentence; then nothing above counts

    @property
    def kafka_silent(self) -> bool:
        """Say whether Kafka was asked and gave no answer at all."""
        return self.kafka is None and self.kafka_silence != NOT_ASKED

    @property
    def busy(self) -> frozenset[str | None]:
        """Return the names of the nodes that run a Kafka pod."""
        return frozenset(pod.node_name for pod in self.pods)

    @property
    def staying(self) -> frozenset[str]:
        """Return the instances that serve or are launched in this one's group; empty without."""
        return frozenset() if self.group is None else self.group.staying()

    @property
    def ec2_state(self) -> str | None:
        return None if self.instance is None else self.instance.state

    @property
    def lifecycle_state(self) -> str | None:
        if self.group is None or self.instance is None:
            return None
        return self.group.lifecycle_of(self.instance.instance_id)

    def node_of(self, instance_id: str) -> NodeView | None:
        return next((n for n in self.nodes if n.instance_id == instance_id), None)

    def pod_named(self, name: str | None) -> PodView | None:
        return next((p for p in self.pods if p.name == name), None)

    def pod_on(self, node_name: str | None) -> PodView | None:
        if node_name is None:
            return None
        return next((p for p in self.pods if p.node_name == node_name), None)

    def node_named(self, name: str | None) -> NodeView | None:
        return next((n for n in self.nodes if n.name == name), None)

    def freeze(self, zone: str | None) -> Freeze | None:
        return freeze_of(zone, self.freezes, self.now)

    def refusing_budget(self, pod_name: str | None) -> BudgetView | None:
        """Return a disruption budget that lets no pod go now, of those over a pod."""
        return next(
            (b for b in self.budgets if pod_name in b.pods and b.disruptions_allowed < 1), None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings a decision obeys; infra.functions.function makes it of the ClusterSpec.

    No figure has a default here: core.cluster says what a description that names none means.
    """

    # evict: held, and then drained by ourselves through the eviction API.
    # asked: nobody of ours drains; whoever does is answered by the eviction gate.
    drain_route: Literal["held", "direct", "evict", "asked"]
    scale_in: Literal["restore", "release"]
    isr_margin: int
    tick_interval_seconds: float
    hold_limit_seconds: float
    heartbeat_timeout_seconds: float
    # AWS ends a hook then, whatever heartbeats it gets.
    hook_limit_seconds: float
    post_condition_hold_seconds: float
    post_condition_wait_seconds: float
    # From a drain that was forwarded to one that is taken for lost: the termination handler's own
    # limit for it, and the time its message stays hidden from another attempt.
    forward_again_seconds: float
    # From a drain that was forwarded to when its message can do nothing any more: its queue has
    # dropped it, and a termination handler that had just received it has given up.
    drain_life_seconds: float
    gate: Literal["isr", "ready"]  # what a broker must be again before its old instance goes
    planned_margin_seconds: float  # planned work begins that long before AWS's own time
    maintenance: Window | None = None  # None: planned work begins when it is announced
    stops_together: bool = False  # the disruption budgets open for a party (ADR 0023)
