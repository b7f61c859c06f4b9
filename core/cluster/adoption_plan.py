"""Decides what the next level of adoption adds to a cluster that exists, in words and as a diff."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from core.cluster.adoption import AdoptedKafka, Adoption, Drainer, Level
from core.ground import naming

ORDER = tuple(Level)
# What a level may do to what is theirs.
TOUCHES = {
    Level.WATCH: "Nothing of theirs is written: it reads, keeps a ledger of its own, and tells.",
    Level.GATE: (
        "Evictions and deletions of Kafka's pods, and deletions of nodes, wait for Kafka's "
        "consent; nothing of theirs changes."
    ),
    Level.ACT: "The named groups get termination hooks and a tag; their machines are held.",
}
LEAVING = {
    Level.WATCH: "delete what was added; nothing else is there",
    Level.GATE: "take the level back: the webhook goes first, and budgets alone answer",
    Level.ACT: "wait until nothing is held, then take hooks and tag away with the rest",
}


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One line of the diff: + made, ~ changed, or left as it is."""

    mark: str
    what: str
    detail: str

    def __str__(self) -> str:
        return f"{self.mark} {self.what}: {self.detail}"


@dataclass(frozen=True, slots=True)
class AdoptionPlan:
    """What stands between a level and the next."""

    now: Level
    following: Level
    changes: tuple[PlanLine, ...]
    # What must be filled in or settled first.
    missing: tuple[str, ...]

    @property
    def words(self) -> str:
        return TOUCHES[self.following]

    @property
    def leaving(self) -> str:
        return LEAVING[self.following]

    def diff(self) -> list[str]:
        return [f"--- {self.now}", f"+++ {self.following}", *map(str, self.changes)]


def next_level(adopted: Adoption) -> AdoptionPlan | None:
    """Return the plan of the next level, or None at the last."""
    place = ORDER.index(adopted.level)
    if place + 1 == len(ORDER):
        return None
    following = ORDER[place + 1]
    changes = {Level.WATCH: _watch, Level.GATE: _gate, Level.ACT: _act}[following]
    before = {
        Level.WATCH: _watching_needs,
        Level.GATE: _answering_needs,
        Level.ACT: _acting_needs,
    }.get(following)
    missing = [*_missing(adopted), *(before(adopted) if before else ())]
    return AdoptionPlan(adopted.level, following, tuple(changes(adopted)), tuple(missing))


def _missing(adopted: Adoption) -> Iterator[str]:
    for kafka in adopted.kafkas:
        if kafka.bootstrap is None:
            yield f"Kafka {kafka.title} has no bootstrap; name a listener as HOST:PORT."
        if kafka.credentials_secret is None:
            yield (
                f"Kafka {kafka.title} has no credentials_secret; name the Secret of a KafkaUser, "
                "unless the listener authenticates no clients."
            )
    for key in ("subnets", "security_groups"):
        if not getattr(adopted, key):
            yield f"{key} is empty; name those from which the functions reach Kafka."
    if adopted.scaling_groups and adopted.pool_label is None:
        yield "pool_label is not set; name the node label that tells Kafka's nodes from others."


def _watching_needs(_: Adoption) -> Iterator[str]:
    """Say what the functions ask for and nobody can see in a description."""
    yield (
        "Strimzi must be 0.49 or newer; the functions list StrimziPodSets in v1, and learn from "
        "them who must be there."
    )


def _answering_needs(adopted: Adoption) -> Iterator[str]:
    """Say what the gate needs that nobody can see in a description."""
    if adopted.eviction_gate is None:
        yield (
            "eviction_gate is not set; name the gate's image in it, built by `docker build "
            "--target gate`."
        )
    yield "EKS Pod Identity's agent must run (add-on eks-pod-identity-agent): the gate has a role."
    spaces = " or ".join(sorted({kafka.namespace for kafka in adopted.kafkas}))
    yield (
        "Name the account of Strimzi's operator in eviction_gate.operators, unless it is "
        f"strimzi-cluster-operator in {spaces}. The webhook judges rolls of other accounts."
    )
    if adopted.scaling_groups:
        yield (
            "Give your own termination hooks time: a machine whose drain is refused until its hook "
            "ends is lost instead."
        )


def _acting_needs(adopted: Adoption) -> Iterator[str]:
    """Say what only the groups' owner can do, before hooks of ours stand on them."""
    if adopted.scaling_groups:
        yield (
            "Set the instance lifecycle policy of each group to retain on TerminateHookAbandon: "
            "without it a hook that runs out lets its machine go."
        )
        yield "Rename your own hooks drain and gate: ours would take their place."
    if adopted.drainer is not Drainer.NONE:
        yield (
            "Let your own rule for lifecycle actions name your hook alone: one that matches "
            "`drain` and `gate` would drain at once what is held."
        )
    else:
        yield (
            "Let no other tool drain a node that a lifecycle hook holds: it would not wait for "
            "the replacement."
        )
    if adopted.drainer is Drainer.OURS and not adopted.gated:
        yield (
            "EKS Pod Identity's agent must run (add-on eks-pod-identity-agent): the termination "
            "handler has a role."
        )


def _watch(adopted: Adoption) -> Iterator[PlanLine]:
    for kafka in adopted.kafkas:
        yield from _watcher_changes(adopted.called(kafka), kafka)
        if adopted.alerts.enabled:
            ours = adopted.called(kafka)
            topic = adopted.alerts.sns_topic_arn or f"{ours}-alerts, with a key of its own"
            yield PlanLine("+", f"CloudWatch alarms and dashboard {ours}-*", f"they tell {topic}")
    yield from _unchanged_parts(adopted)


def _watcher_changes(ours: str, kafka: AdoptedKafka) -> Iterator[PlanLine]:
    yield PlanLine("+", f"DynamoDB table {ours}-incidents", "incidents and their history")
    yield PlanLine("+", f"S3 bucket {ours}-incidents-<account>", "incidents that are over")
    yield PlanLine("+", f"SQS queues {ours}-events, {ours}-ticks", "with their dead letter queues")
    yield PlanLine(
        "+", f"EventBridge rules {ours}-*", "what AWS announces of EC2, Auto Scaling, Health, ARC"
    )
    yield PlanLine(
        "+",
        f"Lambda functions {ours}-interruption, -tick, -sweep, -health",
        "roles that read EC2 and Auto Scaling, and write to the table, queues and bucket alone",
    )
    yield PlanLine(
        "+",
        f"EKS access entries, roles of RBAC stillwater-{ours}-*",
        f"get and list of nodes, and of pods and budgets in {kafka.namespace}",
    )
    if kafka.credentials_secret is not None:
        yield PlanLine(
            " ",
            f"ACLs of Kafka {kafka.title}",
            f"the user of {kafka.credentials_secret} needs Describe and DescribeConfigs of the "
            "cluster and of every topic: grant them in its KafkaUser",
        )


def _gate(adopted: Adoption) -> Iterator[PlanLine]:
    for kafka in adopted.kafkas:
        yield from _gate_changes(adopted.called(kafka), kafka)
    yield from _unchanged_parts(adopted)


def _gate_changes(ours: str, kafka: AdoptedKafka) -> Iterator[PlanLine]:
    name = naming.adopted_gate(ours)
    yield PlanLine(
        "+",
        f"ValidatingWebhookConfiguration {name}",
        f"the API server asks it before a pod of Kafka {kafka.title} is evicted or deleted, and "
        "before a node is. Without an answer no pod is evicted",
    )
    yield PlanLine(
        "+",
        f"kube-system: Deployment, Service, Secret, PodDisruptionBudget, ServiceAccount {name}",
        "two replicas, off Kafka's machines where there are others",
    )
    yield PlanLine(
        "+",
        f"role, Pod Identity association and access entry {name}",
        f"reads EC2, Auto Scaling, nodes, pods and budgets in {kafka.namespace}; writes to the "
        f"table, and to its own Secret and webhook",
    )
    yield PlanLine(
        "+",
        f"lease of Kafka {kafka.title} in {ours}-incidents",
        "one node out at a time, with any drainer",
    )


def _act(adopted: Adoption) -> Iterator[PlanLine]:
    for group in adopted.scaling_groups:
        yield PlanLine(
            "~", f"Auto Scaling group {group}", "+ hooks drain and gate, default ABANDON"
        )
        yield PlanLine("~", f"Auto Scaling group {group}", "+ tag stillwater:cluster")
    then = "gate answers" if adopted.eviction_gate is not None else "watched, without eviction_gate"
    for group in adopted.managed_node_groups:
        yield PlanLine(" ", f"Managed node group {group}", f"EKS takes no hook of others; {then}")
    for pool in adopted.node_pools:
        yield PlanLine(" ", f"NodePool {pool}", f"Karpenter has no hooks; {then}")
    if adopted.scaling_groups:
        yield from _drain_changes(adopted)
    yield PlanLine("+", "rights of the functions", "complete and beat hooks, set desired capacity")


def _drain_changes(adopted: Adoption) -> Iterator[PlanLine]:
    if adopted.drainer is Drainer.THEIRS:
        queue = adopted.queue_url or "its queue, which queue_url must name"
        yield PlanLine("~", f"messages to {queue}", "sent once the replacement is ready")
    elif adopted.drainer is Drainer.OURS:
        for kafka in adopted.kafkas:
            yield from _handler_changes(adopted.called(kafka))
    else:
        yield PlanLine(
            "~",
            "nodes of the named groups",
            "cordoned, and their pods evicted, once the replacement is ready: Kafka's last",
        )
        yield PlanLine(
            "+",
            "rights of RBAC of the function tick",
            "list pods and create pods/eviction in every namespace, patch nodes",
        )


def _handler_changes(ours: str) -> Iterator[PlanLine]:
    name = naming.adopted_handler(ours)
    yield PlanLine("+", f"SQS queue {name}", "what the tick sends once the replacement is ready")
    yield PlanLine(
        "+",
        f"kube-system: Helm release {name}",
        "aws-node-termination-handler in queue mode, off Kafka's machines where there are others; "
        "it cordons, evicts and completes the hook drain",
    )
    yield PlanLine(
        "+",
        f"role and Pod Identity association {name}",
        "reads its queue and EC2, completes lifecycle actions of the named groups",
    )


def _unchanged_parts(adopted: Adoption) -> Iterator[PlanLine]:
    named = (
        *(f"Kafka {kafka.title}" for kafka in adopted.kafkas),
        *(f"Auto Scaling group {name}" for name in adopted.scaling_groups),
        *(f"Managed node group {name}" for name in adopted.managed_node_groups),
        *(f"NodePool {name}" for name in adopted.node_pools),
    )
    for name in named:
        yield PlanLine(" ", name, "as it is")
