"""Decides what of a cluster that exists is no longer as its description names it, by its level.

cli.doctor.adopted reads; nothing here repairs. Below `act` a hook of ours is a leftover, from `act`
on a missing one lets machines go; what a level does not need is not looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from core.checks.drift import MISSING, PRESENT, drift
from core.checks.finding import Finding
from core.cluster.adopted import operated_kafka
from core.cluster.adoption import AdoptedKafka, Adoption, Drainer, Level
from core.ground import naming
from core.ground.constants import ABANDON, HOOKS
from core.ground.fields import Unknown, known_items, mapping_of
from core.model.nodes import ScalingGroup
from core.model.workloads import TerminationHandler, TerminationQueue, is_announced

REPLICAS = 2
# The version in which the functions list StrimziPodSets.
POD_SETS = "v1"
UP = "`pulumi up --refresh` of its operations stack"
RENAMED = "name what holds Kafka's nodes now, and run `stillwater adopt plan`"
TITLES = {
    "groups": "Auto Scaling groups",
    "node_groups": "managed node groups",
    "node_pools": "NodePools",
    "node_labels": "nodes",
    "kafkas": "Kafkas",
    "secrets": "Secrets",
    "handlers": "termination handlers",
    "handler_queues": "the termination handler's queue",
    "fed": "rules that feed termination handlers",
    "operators": "Strimzi's operators",
    "functions": "functions",
    "queues": "queues",
    "gates": "eviction gates",
    "going": "what is being deleted",
    "pod_set_versions": "versions of StrimziPodSets",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingGate:
    """One eviction gate as it stands: replicas that answer, their image, who trusts them."""

    available: int
    image: str
    # Whether a webhook of its name asks it, and knows its authority.
    trusted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What was found, part by part; each by names as the description has them, or Unknown."""

    groups: Mapping[str, ScalingGroup] | Unknown
    node_groups: frozenset[str] | Unknown
    node_pools: frozenset[str] | Unknown
    # The labels' keys of all nodes.
    node_labels: frozenset[str] | Unknown
    # namespace/name
    kafkas: frozenset[str] | Unknown
    secrets: frozenset[str] | Unknown
    handlers: tuple[TerminationHandler, ...] | Unknown
    # Those that were asked for and are there, by URL.
    handler_queues: frozenset[str] | Unknown
    # By URL, the queues of whatever termination handlers stand there; read at `act` alone.
    fed: Mapping[str, TerminationQueue] | Unknown
    # Accounts of the operators that look after one of the Kafkas.
    operators: frozenset[str] | Unknown
    functions: frozenset[str] | Unknown
    queues: frozenset[str] | Unknown
    gates: Mapping[str, StandingGate] | Unknown
    # What of it somebody has deleted and is still there, by kind and name.
    going: frozenset[str] | Unknown = frozenset()
    # Versions in which the API server serves StrimziPodSets.
    pod_set_versions: frozenset[str] | Unknown = frozenset({POD_SETS})


def unread_parts(standing: Standing) -> list[tuple[str, Unknown]]:
    """Return each part nothing is known of, with why."""
    found = ((each.name, getattr(standing, each.name)) for each in fields(standing))
    return [(TITLES[name], part) for name, part in found if isinstance(part, Unknown)]


def secrets_named(adopted: Adoption) -> list[str]:
    """Return the Secrets that the functions read, as namespace/name."""
    return sorted(
        f"{kafka.namespace}/{name}"
        for kafka in adopted.kafkas
        for name in operated_kafka(adopted, kafka).secrets["tick"]
    )


def findings(
    adopted: Adoption, standing: Standing, functions: Mapping[str, str], queues: Mapping[str, str]
) -> list[Finding]:
    """Return what differs; `functions` and `queues` are the names of ours that are to be there."""
    return [
        *_named_parts_drift(adopted, standing),
        *_going(adopted, standing),
        *_groups(adopted, standing),
        *_there("Kafka", [k.title for k in adopted.kafkas], standing.kafkas, "name the Kafka"),
        *_there(
            "Secret",
            secrets_named(adopted),
            standing.secrets,
            "name the Secret of a KafkaUser that is there, as credentials_secret",
        ),
        *_pod_sets(standing),
        *_handler(adopted, standing),
        *_there("function", functions, standing.functions, UP),
        *_there("queue", queues, standing.queues, UP),
        *_gates(adopted, standing),
    ]


def _there(
    member: str,
    wanted: Mapping[str, str] | list[str] | tuple[str, ...],
    found: Mapping[str, ScalingGroup] | frozenset[str] | Unknown,
    remedy: str,
) -> Iterator[Finding]:
    if isinstance(found, Unknown):
        return
    for name in wanted:
        if name not in found:
            yield drift(f"{member} {name}", PRESENT, MISSING, remedy)


def _named_parts_drift(adopted: Adoption, standing: Standing) -> Iterator[Finding]:
    yield from _there("Auto Scaling group", adopted.scaling_groups, standing.groups, RENAMED)
    yield from _there(
        "managed node group", adopted.managed_node_groups, standing.node_groups, RENAMED
    )
    yield from _there("NodePool", adopted.node_pools, standing.node_pools, RENAMED)
    labels = () if adopted.pool_label is None else (adopted.pool_label,)
    yield from _there(
        "node label", labels, standing.node_labels, "name the label that Kafka's nodes carry"
    )


def _going(adopted: Adoption, standing: Standing) -> Iterator[Finding]:
    """Find what is named, is there, and is about to be gone."""
    named = (
        *(f"Auto Scaling group {name}" for name in adopted.scaling_groups),
        *(f"NodePool {name}" for name in adopted.node_pools),
        *(f"Kafka {kafka.title}" for kafka in adopted.kafkas),
    )
    for title in named:
        if title in known_items(standing.going):
            remedy = "find out who deletes it; its machines and pods end with it"
            yield drift(title, PRESENT, "somebody deletes it", remedy)


def _pod_sets(standing: Standing) -> Iterator[Finding]:
    """Find a Strimzi of before v1, or none: the functions learn from pod sets who must be there."""
    found = standing.pod_set_versions
    if not isinstance(found, Unknown) and POD_SETS not in found:
        remedy = "upgrade Strimzi to 0.49 or newer, with its CRDs: the functions ask for v1"
        served = f"{', '.join(sorted(found))} alone" if found else MISSING
        yield drift("API of StrimziPodSets", POD_SETS, served, remedy)


def _groups(adopted: Adoption, standing: Standing) -> Iterator[Finding]:
    ours = {adopted.called(kafka) for kafka in adopted.kafkas}
    for name in adopted.scaling_groups:
        group = mapping_of(standing.groups).get(name)
        if group is None:
            continue
        owner = (group.tags or {}).get(naming.CLUSTER_TAG)
        what = f"tag {naming.CLUSTER_TAG} of Auto Scaling group {name}"
        if owner is not None and owner not in ours:
            remedy = "leave it to that Stillwater, or take it out of scaling_groups"
            yield drift(what, "none of another's", owner, remedy)
        elif adopted.level is Level.ACT:
            if group.managed_node_group:
                yield drift(
                    f"owner of Auto Scaling group {name}",
                    "none but yours",
                    f"EKS's node group {group.managed_node_group}",
                    "EKS takes no hooks of others: name it in managed_node_groups instead",
                )
            if owner is None:
                yield drift(what, min(ours), MISSING, UP)
            yield from _hooks_drift(adopted, group)
        elif owner is not None:
            yield drift(what, "none below act", owner, UP)
        else:
            yield from _namesakes(group)


def _namesakes(group: ScalingGroup) -> Iterator[Finding]:
    """Find hooks of theirs that ours would take the place of: Auto Scaling knows them by name."""
    for hook in group.hooks:
        if hook.name in HOOKS and not group.managed_node_group:
            yield drift(
                f"hook {hook.name} of Auto Scaling group {group.name}",
                "none of this name below act",
                PRESENT,
                "give your hook another name before level act: ours would take its place, and "
                "leaving would take it away",
            )


def _hooks_drift(adopted: Adoption, group: ScalingGroup) -> Iterator[Finding]:
    standing = {hook.name: hook for hook in group.hooks}
    for name in HOOKS:
        what, hook = f"hook {name} of Auto Scaling group {group.name}", standing.get(name)
        if hook is None:
            yield drift(what, PRESENT, MISSING, UP)
            continue
        if hook.default_result != ABANDON:
            yield drift(f"default result of {what}", ABANDON, hook.default_result, UP)
        beat = adopted.timings.hook_heartbeat_timeout_seconds
        if hook.heartbeat_seconds != beat:
            found = f"{hook.heartbeat_seconds} s"
            yield drift(f"heartbeat timeout of {what}", f"{beat} s", found, UP)
    if not group.retains_on_abandon:
        yield drift(
            f"lifecycle policy of Auto Scaling group {group.name}",
            "retain on TerminateHookAbandon",
            "terminate",
            "set it, as docs/how-to/adopt-act.md says: a hook that runs out lets the machine go",
        )


def _handler(adopted: Adoption, standing: Standing) -> Iterator[Finding]:
    url = adopted.queue_url
    if adopted.level is Level.ACT:
        yield from _metadata_drainers(standing)
    if adopted.installs_handler:
        yield from _handler_drift(adopted, standing)
    if adopted.evicts:
        yield from _second_drainers(standing)
    elif adopted.level is Level.ACT:
        yield from _rules_that_drain(adopted, standing)
    if adopted.level is not Level.ACT or adopted.drainer is not Drainer.THEIRS or url is None:
        return
    yield from _there("queue", (url,), standing.handler_queues, "name the queue as queue_url")
    if isinstance(standing.handlers, Unknown):
        return
    reading = [each for each in standing.handlers if each.queue_mode and each.queue_url == url]
    if not reading:
        remedy = "run it in queue mode on that queue, or name its own as queue_url"
        yield drift("termination handler", f"one that reads {url}", "none", remedy)
    for each in reading:
        yield from _their_handler(adopted, each)


def _their_handler(adopted: Adoption, found: TerminationHandler) -> Iterator[Finding]:
    """Find a termination handler of theirs that drains nothing of ours, or waits for longer."""
    if not found.drains:
        remedy = "let it drain: CORDON_ONLY and DRY_RUN off"
        yield drift(found.title, "drains", "only cordons, or only says so", remedy)
    if found.down:
        remedy = "see its pods: held nodes are not drained"
        yield drift(found.title, "runs", "none of its pods is available", remedy)
    if found.refuses:
        remedy = "set these to true: Strimzi's pods have an emptyDir, nodes a DaemonSet's pods"
        yield drift(found.title, "drains every pod", f"{', '.join(found.refuses)} false", remedy)
    given = adopted.timings.nth_drain_timeout_seconds
    if found.drain_timeout_seconds > given:
        yield drift(
            f"NODE_TERMINATION_GRACE_PERIOD of {found.title}",
            f"{given} s at the most",
            f"{found.drain_timeout_seconds} s",
            "set timings.nth_drain_timeout_seconds as high, or lower it: the hook's time is "
            "reckoned with it",
        )


def _handler_drift(adopted: Adoption, standing: Standing) -> Iterator[Finding]:
    """Find a termination handler of ours that is away, and another that takes its messages."""
    if isinstance(standing.handlers, Unknown):
        return
    names = [naming.adopted_handler(adopted.called(kafka)) for kafka in adopted.kafkas]
    for name in names:
        reading = [
            each for each in standing.handlers if (each.queue_url or "").endswith(f"/{name}")
        ]
        own = [each for each in reading if each.title.endswith(f"/{name}")]
        if not own or own[0].down:
            found = "none of its pods is available" if own else MISSING
            yield drift(f"termination handler {name}", "runs", found, UP)
        for each in reading:
            if each not in own:
                remedy = "give it a queue of its own: it takes drains that are meant for ours"
                yield drift(f"queue {name}", "read by ours alone", each.title, remedy)


def _rules_that_drain(adopted: Adoption, standing: Standing) -> Iterator[Finding]:
    """Find rules that tell a termination handler of our hooks beside us: it drains what is held."""
    draining = {
        each.queue_url for each in known_items(standing.handlers) if each.queue_mode and each.drains
    }
    for url, queue in mapping_of(standing.fed).items():
        told = sorted(
            {
                name
                for name in adopted.scaling_groups
                for hook in HOOKS
                for pattern in queue.patterns
                if queue.barred is None and is_announced(pattern, name, hook)
            }
        )
        if told and url in draining:
            yield drift(
                f"rules that feed {url}",
                f"none for the hooks {' and '.join(HOOKS)}",
                f"those of {', '.join(told)}",
                "give the rule detail.LifecycleHookName with the name of your own hook, as "
                "docs/how-to/adopt-act.md says. Otherwise it drains held nodes at once",
            )


def _metadata_drainers(standing: Standing) -> Iterator[Finding]:
    """Find a handler that reads of its own machine that it waits in a hook, and drains it then."""
    for each in known_items(standing.handlers):
        if each.sees_hooks and not each.queue_mode and each.drains:
            remedy = "set ENABLE_ASG_LIFECYCLE_DRAINING to false, or keep it off Kafka's nodes"
            found = f"{each.title} drains at once what is held"
            yield drift("lifecycle draining by the instance metadata", "none", found, remedy)


def _second_drainers(standing: Standing) -> Iterator[Finding]:
    """Find a termination handler that hears of the same machines where we drain them ourselves."""
    for each in known_items(standing.handlers):
        if each.queue_mode and each.drains:
            remedy = "name its queue as queue_url with drainer: theirs, or take it away"
            yield drift("termination handler", "none: drainer is none", each.title, remedy)


def _gates(adopted: Adoption, standing: Standing) -> Iterator[Finding]:
    if isinstance(standing.gates, Unknown):
        return
    for kafka in adopted.kafkas:
        name = naming.adopted_gate(adopted.called(kafka))
        gate = standing.gates.get(name)
        if not adopted.gated:
            if gate is not None:
                yield drift(f"eviction gate {name}", "none at this level", PRESENT, UP)
            continue
        if gate is None:
            yield drift(f"eviction gate {name}", PRESENT, MISSING, UP)
            continue
        yield from _gate(adopted, name, gate)
        yield from _operators(adopted, kafka, standing)


def _gate(adopted: Adoption, name: str, gate: StandingGate) -> Iterator[Finding]:
    wanted = "" if adopted.eviction_gate is None else adopted.eviction_gate.image
    if gate.available < REPLICAS:
        remedy = "see its pods in kube-system; while none answers, no pod is evicted"
        replicas = f"replicas of eviction gate {name} that answer"
        yield drift(replicas, str(REPLICAS), str(gate.available), remedy)
    if not gate.trusted:
        yield drift(f"webhook {name}", "asks the gate, and trusts it", "does not", UP)
    if gate.image != wanted:
        yield drift(f"image of eviction gate {name}", wanted, gate.image, UP)


def _operators(adopted: Adoption, kafka: AdoptedKafka, standing: Standing) -> Iterator[Finding]:
    if adopted.eviction_gate is None:
        return
    beside = naming.operator_account(kafka.namespace)
    known = {beside, *adopted.eviction_gate.operators}
    for account in sorted({*known_items(standing.operators)} - known):
        yield drift(
            f"account of Strimzi's operator for Kafka {kafka.title}",
            "not asked by the gate before it rolls a pod",
            account,
            "name it in eviction_gate.operators",
        )
