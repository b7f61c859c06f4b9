"""Judges how load balancers learn of brokers: readiness gates and the controller that sets them.

Source: the AWS Load Balancer Controller's pod readiness gates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.survey.facts import Surveyed, Unread
from core.survey.finding import Finding, Weight, listed
from core.survey.kafka_facts import Pod

GATE_LABEL = "elbv2.k8s.aws/pod-readiness-gate-inject"
# Major versions before these know no TargetGroupBindings; versions before this one may set a gate
# up to 16 min 40 s late after a failure, unless told otherwise.
FIRST_WITH_BINDINGS = (2,)
FIRST_WITHOUT_DELAY = (3, 4)


def readiness(seen: Surveyed) -> Iterator[Finding]:
    """Find brokers that count as ready before their load balancer sends anybody there."""
    if isinstance(seen.balanced, Unread) or isinstance(seen.pods, Unread):
        return
    namespaces: set[str] = set()
    for binding in seen.balanced:
        pods = [
            pod
            for pod in seen.pods
            if pod.namespace == binding.namespace and _selects(binding.selector, pod)
        ]
        if pods and not binding.by_node:
            namespaces.add(binding.namespace)
        if pods and binding.by_node:
            yield Finding(
                "targets-by-node",
                Weight.PRODUCER,
                f"TargetGroupBinding {binding.namespace}/{binding.name}",
                f"its targets are nodes: clients of {listed(pod.name for pod in pods)} are cut "
                f"when any node on their way leaves, and no readiness gate waits for a new target",
                "let it register pods: targetType ip",
            )
            continue
        missing = sorted(pod.name for pod in pods if binding.gate not in pod.readiness_gates)
        if missing:
            yield Finding(
                "gate-missing",
                Weight.PRODUCER,
                f"TargetGroupBinding {binding.namespace}/{binding.name}",
                f"{listed(missing)} have no readiness gate {binding.gate}: the next broker is "
                f"rolled while clients cannot reach this one yet",
                f"label the namespace {GATE_LABEL}=enabled, and roll the pods once",
            )
    if not isinstance(seen.gated_namespaces, Unread):
        for namespace in sorted(namespaces - seen.gated_namespaces):
            yield Finding(
                "gate-label",
                Weight.PRODUCER,
                f"namespace {namespace}",
                f"it is not labelled {GATE_LABEL}=enabled: new pods get no readiness gate",
                f"label it {GATE_LABEL}=enabled",
            )
    if namespaces and seen.balancer_controllers == ():
        yield Finding(
            "lbc-missing",
            Weight.PRODUCER,
            "AWS Load Balancer Controller",
            "there are TargetGroupBindings for brokers and nobody registers their targets",
            "install the AWS Load Balancer Controller",
        )


def controller(seen: Surveyed) -> Iterator[Finding]:
    """Find controllers too old for TargetGroupBindings and readiness gates by IP."""
    if isinstance(seen.balancer_controllers, Unread):
        return
    bound = bool(_bound(seen))
    for each in seen.balancer_controllers:
        version = _version(each.version)
        if version is None and bound:
            yield Finding(
                "lbc-unknown",
                Weight.UNKNOWN,
                each.title,
                "its image names no version: how late it may set readiness gates was not judged",
                "name a version in its image, beside the digest",
            )
        if version is None:
            continue
        if version < FIRST_WITH_BINDINGS:
            yield Finding(
                "lbc-version",
                Weight.PRODUCER,
                each.title,
                f"version {each.version} has no TargetGroupBindings: pods get no readiness gates",
                "upgrade it to a version that AWS still supports",
            )
        elif bound and version < FIRST_WITHOUT_DELAY and not each.limits_backoff:
            yield Finding(
                "lbc-backoff",
                Weight.ADVICE,
                each.title,
                f"version {each.version} may set a readiness gate up to 16 min 40 s late after a "
                f"failure, and a roll waits for it",
                "upgrade it to 3.4 or newer, or set "
                "--targetgroupbinding-max-exponential-backoff-delay to 30s",
            )


def _version(written: str) -> tuple[int, ...] | None:
    parts = written.removeprefix("v").split("-")[0].split(".")[:2]
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else None


def _bound(seen: Surveyed) -> list[str]:
    """Return the TargetGroupBindings that send anybody to a pod of Kafka."""
    if isinstance(seen.balanced, Unread) or isinstance(seen.pods, Unread):
        return []
    return [
        binding.name
        for binding in seen.balanced
        for pod in seen.pods
        if pod.namespace == binding.namespace and _selects(binding.selector, pod)
    ]


def _selects(selector: Mapping[str, str], pod: Pod) -> bool:
    # A Service without a selector has its endpoints from somebody else.
    return bool(selector) and all(pod.labels.get(key) == value for key, value in selector.items())
