"""Judges how load balancers learn of brokers: readiness gates and the controller that sets them.

Source: the AWS Load Balancer Controller's pod readiness gates.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.facts import Surveyed
from core.survey.finding import Finding, listing, not_judged, producer_may_stall, worth_knowing
from core.survey.kafka_facts import Pod
from core.survey.tool_facts import Balanced
from core.unknown import Unknown, of

GATE_LABEL = "elbv2.k8s.aws/pod-readiness-gate-inject"
AUTO_MODE_LABEL = "eks.amazonaws.com/pod-readiness-gate-inject"
# Major versions before these know no TargetGroupBindings; versions before this one may set a gate
# up to 16 min 40 s late after a failure, unless told otherwise.
FIRST_WITH_BINDINGS = (2,)
FIRST_WITHOUT_DELAY = (3, 4)


def readiness(seen: Surveyed) -> Iterator[Finding]:
    """Find brokers that count as ready before their load balancer sends anybody there."""
    if isinstance(seen.balanced, Unknown) or isinstance(seen.pods, Unknown):
        return
    gated: set[tuple[str, str]] = set()
    theirs = False
    for binding in seen.balanced:
        pods = [pod for pod in seen.pods if binding.covers(pod)]
        if pods and binding.by_node:
            # What leads to brokers' own nodes is judged together.
            yield from () if binding.own_port else (_by_node(binding, pods),)
        elif pods:
            label = AUTO_MODE_LABEL if binding.of_auto_mode else GATE_LABEL
            gated.add((binding.namespace, label))
            theirs = theirs or not binding.of_auto_mode
            yield from _without_gate(binding, pods, label)
    if not isinstance(seen.gated_namespaces, Unknown):
        for namespace, label in sorted(gated):
            if label in seen.gated_namespaces.get(namespace, ()):
                continue
            yield producer_may_stall(
                "gate-label",
                f"namespace {namespace}",
                f"it is not labelled {label}=enabled: new pods get no readiness gate",
                f"label it {label}=enabled",
            )
    if theirs and seen.balancer_controllers == ():
        yield producer_may_stall(
            "lbc-missing",
            "AWS Load Balancer Controller",
            "there are TargetGroupBindings for brokers and nobody registers their targets",
            "install the AWS Load Balancer Controller",
        )


def node_ports(seen: Surveyed) -> Iterator[Finding]:
    """Name brokers that clients know by the addresses of their nodes."""
    ports = [each for each in of(seen.balanced) if each.own_port]
    pods = [pod.name for pod in of(seen.pods) if any(port.covers(pod) for port in ports)]
    if pods:
        yield worth_knowing(
            "node-port",
            "listeners of type nodeport",
            f"clients know {listing(pods)} by the addresses of their nodes: a client that was "
            f"given these alone as bootstrap servers finds nobody once all of them were replaced",
            "give clients a name for bootstrap that follows the nodes, and let them in to every "
            "node",
        )


def _by_node(binding: Balanced, pods: list[Pod]) -> Finding:
    return producer_may_stall(
        "targets-by-node",
        binding.title,
        f"its targets are nodes: clients of {listing(pod.name for pod in pods)} are cut "
        f"when any node on their way leaves, and no readiness gate waits for a new target",
        "let it register pods: targetType ip"
        if binding.kind != "Service"
        else "let the AWS Load Balancer Controller register pods (target type ip)",
    )


def _without_gate(binding: Balanced, pods: list[Pod], label: str) -> Iterator[Finding]:
    missing = sorted(pod.name for pod in pods if binding.gate not in pod.readiness_gates)
    if missing:
        yield producer_may_stall(
            "gate-missing",
            binding.title,
            f"{listing(missing)} have no readiness gate {binding.gate}: the next broker is "
            f"rolled while clients cannot reach this one yet",
            f"label the namespace {label}=enabled, and roll the pods once",
        )


def controller(seen: Surveyed) -> Iterator[Finding]:
    """Find controllers too old for TargetGroupBindings and readiness gates by IP."""
    if isinstance(seen.balancer_controllers, Unknown):
        return
    bound = _is_bound(seen)
    if bound and seen.balancer_controllers and all(e.down for e in seen.balancer_controllers):
        yield producer_may_stall(
            "lbc-down",
            listing(each.title for each in seen.balancer_controllers),
            "none of its pods is available: a broker that comes back gets no clients, and where "
            "its webhook refuses pods without it, none comes back",
            "look at its pods",
        )
    for each in seen.balancer_controllers:
        version = _version(each.version)
        if version is None and bound:
            yield not_judged(
                "lbc-unknown",
                each.title,
                "its image names no version: how late it may set readiness gates was not judged",
                "name a version in its image, beside the digest",
            )
        if version is None:
            continue
        if version < FIRST_WITH_BINDINGS:
            yield producer_may_stall(
                "lbc-version",
                each.title,
                f"version {each.version} has no TargetGroupBindings: pods get no readiness gates",
                "upgrade it to a version that AWS still supports",
            )
        elif bound and version < FIRST_WITHOUT_DELAY and not each.limits_backoff:
            yield worth_knowing(
                "lbc-backoff",
                each.title,
                f"version {each.version} may set a readiness gate up to 16 min 40 s late after a "
                f"failure, and a roll waits for it",
                "upgrade it to 3.4 or newer, or set "
                "--targetgroupbinding-max-exponential-backoff-delay to 30s",
            )


def _version(written: str) -> tuple[int, ...] | None:
    parts = written.removeprefix("v").split("-")[0].split(".")[:2]
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else None


def _is_bound(seen: Surveyed) -> bool:
    """Say whether a TargetGroupBinding of the controller's sends anybody to a pod of Kafka."""
    bindings = [b for b in of(seen.balanced) if b.kind != "Service" and not b.of_auto_mode]
    return any(binding.covers(pod) for binding in bindings for pod in of(seen.pods))
