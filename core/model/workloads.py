"""Holds what runs beside Kafka and makes its pods leave, or keeps them, and matches event patterns.

Source: Amazon EventBridge event patterns. What a pattern asks that is not known here counts as met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from core.ground.constants import TERMINATING
from core.ground.placement import ANYWHERE, HOST, Placement, Requirement, selects
from core.model.kafka import Kafka, Pod
from core.model.nodes import Node

ACTION = "EC2 Instance-terminate Lifecycle Action"
_COMPARED: Mapping[str, Callable[[str, str], bool]] = {
    "prefix": str.startswith,
    "suffix": str.endswith,
    "equals-ignore-case": lambda value, wanted: value.lower() == wanted.lower(),
}


def is_announced(pattern: Mapping[str, Any], group: str, hook: str) -> bool:
    """Say whether a pattern matches what Auto Scaling announces of a hook.

    >>> is_announced({"detail": {"LifecycleHookName": ["launch"]}}, "kafka-a", "drain")
    False
    """
    return _meets(
        pattern,
        {
            "source": "aws.autoscaling",
            "detail-type": ACTION,
            "detail": {
                "AutoScalingGroupName": group,
                "LifecycleHookName": hook,
                "LifecycleTransition": TERMINATING,
            },
        },
    )


def _meets(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    return all(_field(wanted, event[key]) for key, wanted in pattern.items() if key in event)


def _field(wanted: object, value: object) -> bool:
    if isinstance(wanted, Mapping) and isinstance(value, Mapping):
        return _meets(wanted, value)
    if not isinstance(wanted, list) or not isinstance(value, str):
        return True
    return any(_matches(each, value) for each in wanted)


def _matches(wanted: object, value: str) -> bool:
    if isinstance(wanted, Mapping):
        return all(_compares(str(how), what, value) for how, what in wanted.items())
    return not isinstance(wanted, str) or wanted == value


def _compares(how: str, what: object, value: str) -> bool:
    if how == "anything-but" and isinstance(what, str | list):
        return value not in ([what] if isinstance(what, str) else what)
    if how in _COMPARED and isinstance(what, str):
        return _COMPARED[how](value, what)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A pod of something else on a node of Kafka's, which a drain of that node evicts as well."""

    namespace: str
    name: str
    node: str
    grace_seconds: int
    labels: Mapping[str, str]
    # Nothing makes it again once it has left.
    alone: bool = False

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionBudget:
    """A PodDisruptionBudget: its selector, what it says, and its status where it has one."""

    namespace: str
    name: str
    match_labels: Mapping[str, str] = field(default_factory=dict)
    expressions: tuple[Requirement, ...] = ()
    # As written: a number, or a share such as "50%".
    least_available: str | None = None
    most_unavailable: str | None = None
    # The disruption controller's own numbers; None before it has looked.
    desired_healthy: int | None = None
    expected_pods: int | None = None
    # How many of them may leave at this moment.
    allowed_now: int | None = None
    # Pods that run and are not ready may be evicted however many are out (AlwaysAllow).
    unready_always: bool = False

    @property
    def title(self) -> str:
        return f"PodDisruptionBudget {self.namespace}/{self.name}"

    def covers(self, pod: Pod | Neighbour) -> bool:
        """Say whether its selector matches a pod; an empty one matches every pod beside it."""
        return pod.namespace == self.namespace and self.selects(pod.labels)

    def selects(self, labels: Mapping[str, str]) -> bool:
        return selects(self.match_labels, self.expressions, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationHandler:
    """An installation of aws-node-termination-handler."""

    title: str
    queue_mode: bool = True
    # Negative: the pod's own grace.
    pod_grace_seconds: int = -1
    drain_timeout_seconds: int
    # Of its own pod.
    grace_seconds: int | None = None
    wants: Placement = ANYWHERE
    # How often it tells a hook that it still works; None: never.
    beat_seconds: int | None = None
    queue_url: str | None = None
    # The tag an instance must carry to be drained; None: any instance.
    asks_for_tag: str | None = None
    # It cordons, or only writes what it would do.
    drains: bool = True
    taints_out_of_service: bool = False
    # Settings by which it drains no node on which some pods run.
    refuses: tuple[str, ...] = ()
    # None of its pods is available today.
    down: bool = False
    # In metadata mode: it drains when its group takes the machine away.
    sees_hooks: bool = False
    # Its pods are in their machines' own network.
    on_host: bool = False
    # Of its image, or of its chart's label: 1.25.6; None: neither says.
    version: str | None = None
    # It looks for nodes by providerID, and not by EC2's private DNS name.
    by_provider_id: bool = False

    @property
    def runs(self) -> bool:
        return not self.down

    @property
    def queue_name(self) -> str | None:
        """The queue that it reads; None: it asks the instance metadata."""
        return (self.queue_url or "").rpartition("/")[2] if self.queue_mode else None

    def finds(self, node: Node, private_dns_name: str) -> bool:
        """Say whether its lookup leads from an instance to its node."""
        names = {private_dns_name, private_dns_name.partition(".")[0]}
        return (
            self.by_provider_id or node.name in names or node.labels.get(HOST, node.name) in names
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationQueue:
    """The SQS queue that a termination handler reads."""

    arn: str
    kept_seconds: int
    # Patterns of the enabled EventBridge rules that send to it.
    patterns: tuple[Mapping[str, Any], ...] = ()
    # Why nothing that these rules send arrives.
    barred: str | None = None
    # A topic may send to it; what that one forwards is not seen, and not taken for nothing.
    by_topic: bool = False

    def hears(self, group: str, hook: str) -> bool:
        """Say whether it is told that a machine of a group waits in a hook."""
        if self.by_topic:
            return True
        return self.barred is None and any(is_announced(p, group, hook) for p in self.patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainCleaner:
    """An installation of Strimzi's Drain Cleaner."""

    title: str
    denies: bool
    drains_kafka: bool
    # None: every one.
    namespaces: frozenset[str] | None = None
    # None of its pods is available today.
    down: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionWebhook:
    """A webhook that is asked about evictions."""

    name: str
    # One that changes what it is asked about judges nothing, and refuses where it is away.
    mutating: bool = False
    # Without its service, evictions are refused (Fail) or pass it (Ignore).
    fails_closed: bool = False
    # Why nobody answers it: its service, and what is wrong with that.
    unanswered: str | None = None
    # Asked about any resource at all, as policy engines are: not for the sake of Kafka.
    general: bool = False
    # Namespaces of whose evictions it is not asked; None: of none it is asked.
    leaves_out: frozenset[str] | None = frozenset()

    def asked_in(self, namespace: str) -> bool:
        return self.leaves_out is not None and namespace not in self.leaves_out

    @property
    def title(self) -> str:
        return f"{'Mutating' if self.mutating else 'Validating'}WebhookConfiguration {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionPolicy:
    """A ValidatingAdmissionPolicy that is bound to deny, and what of a broker's move it judges."""

    name: str
    # In words: a pod is evicted, a node is cordoned.
    steps: frozenset[str]
    # In words, of what Stillwater would make: a Deployment is created.
    installs: frozenset[str] = frozenset()
    # Namespaces that it leaves out.
    leaves_out: frozenset[str] = frozenset()
    # What the API server finds wrong with its expressions; where they fail, it denies.
    broken: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IngressController:
    """A proxy by which clients may come in, where a listener is for such."""

    title: str
    replicas: int
    down: bool = False
    # It hands TLS on unread, as Kafka's listeners by ingress need; None: it does so by itself.
    passes_tls: bool | None = None
    # Services that it sends whole TCP ports to, by namespace and name.
    streams: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeScaler:
    """An autoscaler of pods (HPA, KEDA), and what it changes the size of."""

    title: str
    namespace: str
    # Kind and name of its target.
    kind: str
    target: str
    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """An installation of Strimzi's cluster operator."""

    title: str
    # None: every one, or nobody can tell.
    namespaces: frozenset[str] | None
    # Who it is to the API server.
    account: str = ""
    # It looks at resources with these labels only.
    selector: Mapping[str, str] = field(default_factory=dict)
    # None of its pods is available today.
    down: bool = False
    # It brings lost pods back, and looks at no Kafka (STRIMZI_POD_SET_RECONCILIATION_ONLY).
    pod_sets_only: bool = False
    # Of its image, where that names one of Strimzi's own: major, minor, patch.
    version: tuple[int, int, int] | None = None
    # It is told which Kubernetes it runs on (STRIMZI_KUBERNETES_VERSION), and does not ask.
    knows_kubernetes: bool = False

    def watches(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    def looks_after(self, kafka: Kafka) -> bool:
        return self.watches(kafka.namespace) and selects(self.selector, (), kafka.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """An installation of Cluster Autoscaler."""

    title: str
    scales_down: bool
    # It takes nodes whose pods belong to a kind it does not know, as Strimzi's do.
    takes_custom: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Evictor:
    """Something else that evicts pods or drains nodes by its own rules."""

    title: str
    tool: str
    # It takes the part of a termination handler: it hears of hooks and drains before they end.
    hears_hooks: bool = False
    # Of a program that nobody here knows: the role that lets it evict pods or delete nodes.
    by_role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Balanced:
    """A TargetGroupBinding, and the selector of its Service."""

    namespace: str
    name: str
    selector: Mapping[str, str]
    # Its targets are nodes, each of which forwards to any pod, and not the pods themselves.
    by_node: bool = False
    kind: str = "TargetGroupBinding"
    # EKS Auto Mode's own controller looks after it.
    of_auto_mode: bool = False
    # ARN or name of the target group that it fills, where it says so.
    target_group: str | None = None
    # A port of nodes without a balancer, by which Strimzi's clients reach the broker's own node.
    own_port: bool = False

    @property
    def title(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def gate(self) -> str:
        return f"target-health.elbv2.k8s.aws/{self.name}"

    def covers(self, pod: Pod) -> bool:
        """Say whether it sends to a pod; a Service without a selector is filled by others."""
        return (
            bool(self.selector)
            and pod.namespace == self.namespace
            and selects(self.selector, (), pod.labels)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancerController:
    """An installation of the AWS Load Balancer Controller."""

    title: str
    version: str
    # Its own limit of the wait between two tries.
    limits_backoff: bool = False
    down: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProvisioner:
    """An installation of Karpenter's controller."""

    title: str
    # The queue in which AWS announces interruptions and maintenance.
    queue: str | None
    down: bool = False
    # It ends nodes that are unhealthy for long (feature gate NodeRepair).
    repairs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeController:
    """An installation of the controller of EBS's CSI driver."""

    title: str
    down: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Essential:
    """An installation of what no pod of a cluster starts without."""

    title: str
    what: str
    down: bool
    # The VPC CNI gives pods addresses of subnets that other objects name (custom networking).
    elsewhere: bool = False
    # The VPC CNI takes addresses by blocks of 16 (prefix delegation).
    by_prefix: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PodWebhook:
    """A webhook that is asked before a pod is created, and refuses it where it does not answer."""

    name: str
    # Why nobody answers it; or where somebody does, of whom nothing is known here.
    unanswered: str | None
    outside: str | None = None
    leaves_out: frozenset[str] | None
    # By labels of the pod.
    match_labels: Mapping[str, str]
    expressions: tuple[Requirement, ...]
    # It is asked of some pods alone, by expressions that are not judged.
    conditional: bool = False
    # Whether it is asked before a pod is created, and what else of a broker's move waits for its
    # answer, in words: of its pod (a pod is given its node), and of whatever is in no namespace.
    of_pods: bool = True
    pod_steps: frozenset[str] = frozenset()
    steps: frozenset[str] = frozenset()
    # Until when its certificate's authority is trusted, in epoch seconds; None: nobody can tell.
    trusted_until: float | None = None

    def asked_of(self, pod: Pod) -> bool:
        return (
            self.of_pods
            and self.leaves_out is not None
            and pod.namespace not in self.leaves_out
            and selects(self.match_labels, self.expressions, pod.labels)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRelease:
    """A release of Helm's that was begun and has not ended."""

    namespace: str
    name: str
    # pending-install, pending-upgrade or pending-rollback.
    status: str
    # When it was begun, as Kubernetes writes it.
    since: str
    # What it installs that a broker needs to come back.
    carries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRange:
    """The most memory that a LimitRange lets a container or a pod have."""

    namespace: str
    name: str
    most_bytes: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A ResourceQuota of which more is used than it allows."""

    namespace: str
    name: str
    exceeded: tuple[str, ...]
