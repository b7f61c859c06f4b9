"""Judges how clients reach brokers: readiness gates, target groups, ingresses and node ports.

Sources: the AWS Load Balancer Controller's readiness gates; Elastic Load Balancing's target group
attributes; Strimzi's listeners and ingress controllers' TLS passthrough and streams of TCP ports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from core.checks.facts import ClusterFacts, TargetGroup, grace_of
from core.checks.finding import (
    Finding,
    Weight,
    listing,
    not_judged,
    producer_may_stall,
    rule,
    worth_knowing,
)
from core.ground.fields import Unknown, known_items, mapping_of
from core.model.kafka import Kafka, Pod
from core.model.workloads import Balanced, IngressController

GATE_LABEL = "elbv2.k8s.aws/pod-readiness-gate-inject"
AUTO_MODE_LABEL = "eks.amazonaws.com/pod-readiness-gate-inject"
# Major versions before these know no TargetGroupBindings; versions before this one may set a gate
# up to 16 min 40 s late after a failure, unless told otherwise.
FIRST_WITH_BINDINGS = (2,)
FIRST_WITHOUT_DELAY = (3, 4)


@rule("balanced")
def readiness(seen: ClusterFacts) -> Iterator[Finding]:
    """Find brokers that count as ready before their load balancer sends anybody there."""
    if isinstance(seen.balanced, Unknown) or isinstance(seen.pods, Unknown):
        return
    gated: set[tuple[str, str]] = set()
    theirs = False
    for binding in seen.balanced:
        pods = [pod for pod in seen.pods if binding.covers(pod)]
        if pods and binding.by_node:
            # What leads to brokers' own nodes is judged together.
            yield from () if binding.own_port else (_node_target_finding(binding, pods),)
        elif pods:
            label = AUTO_MODE_LABEL if binding.of_auto_mode else GATE_LABEL
            gated.add((binding.namespace, label))
            theirs = theirs or not binding.of_auto_mode
            yield from _missing_gate_findings(binding, pods, label)
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
            "there are TargetGroupBindings for brokers and no controller registers their targets",
            "install the AWS Load Balancer Controller",
        )


@rule("balanced")
def node_ports(seen: ClusterFacts) -> Iterator[Finding]:
    """Name brokers that clients know by the addresses of their nodes."""
    ports = [each for each in known_items(seen.balanced) if each.own_port]
    pods = [pod.name for pod in known_items(seen.pods) if any(port.covers(pod) for port in ports)]
    if pods:
        yield worth_knowing(
            "node-port",
            "listeners of type nodeport",
            f"clients know {listing(pods)} by the addresses of their nodes. A client with these "
            "alone as bootstrap servers finds no broker once all of them were replaced",
            "give clients a name for bootstrap that follows the nodes, and let them in to every "
            "node",
        )


def _node_target_finding(binding: Balanced, pods: list[Pod]) -> Finding:
    return producer_may_stall(
        "targets-by-node",
        binding.title,
        f"its targets are nodes: clients of {listing(pod.name for pod in pods)} are cut "
        f"when any node on their way leaves, and no readiness gate waits for a new target",
        "let it register pods: targetType ip"
        if binding.kind != "Service"
        else "let the AWS Load Balancer Controller register pods (target type ip)",
    )


def _missing_gate_findings(binding: Balanced, pods: list[Pod], label: str) -> Iterator[Finding]:
    missing = sorted(pod.name for pod in pods if binding.gate not in pod.readiness_gates)
    if missing:
        yield producer_may_stall(
            "gate-missing",
            binding.title,
            f"{listing(missing)} have no readiness gate {binding.gate}: the next broker is "
            f"rolled while clients cannot reach this one yet",
            f"label the namespace {label}=enabled, and roll the pods once",
        )


@rule("balancer_controllers")
def controller(seen: ClusterFacts) -> Iterator[Finding]:
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
                "name a version in its image, next to the digest",
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


def _is_bound(seen: ClusterFacts) -> bool:
    """Say whether a TargetGroupBinding of the controller's sends anybody to a pod of Kafka."""
    bindings = [b for b in known_items(seen.balanced) if b.kind != "Service" and not b.of_auto_mode]
    return any(binding.covers(pod) for binding in bindings for pod in known_items(seen.pods))


@rule("balanced", "target_groups")
def attributes(seen: ClusterFacts) -> Iterator[Finding]:
    """Find target groups that keep, cut or misdirect clients of a broker that leaves."""
    if isinstance(seen.target_groups, Unknown):
        return
    for binding in known_items(seen.balanced):
        pods = [pod for pod in known_items(seen.pods) if binding.covers(pod)]
        if not pods or binding.target_group is None:
            continue
        group = seen.target_groups.get(binding.target_group)
        if group is None:
            yield producer_may_stall(
                "target-group-gone",
                binding.title,
                f"it fills target group {name_in(binding.target_group)}, which does not exist in "
                f"this account and region: no client comes in by it",
                "name a target group that exists, or remove it",
            )
            continue
        subject = f"target group {group.name}"
        if not group.balancers:
            yield producer_may_stall(
                "target-group-unused",
                subject,
                f"{binding.title} fills it and no load balancer uses it. No client comes in by it, "
                "and the readiness gate of a new pod never opens",
                "let a listener of a load balancer forward to it, or remove the binding",
            )
        yield from _draining(group, binding, pods, subject, seen)
        yield from _kept_connections(group, subject)
        if len(pods) == 1 and group.network and group.cross_zone != "true":
            yield worth_knowing(
                "cross-zone",
                subject,
                f"{pods[0].name} is its one target and cross-zone balancing is off: clients that "
                "hold the balancer's address of another zone meet no broker",
                "set load_balancing.cross_zone.enabled of this target group to true",
            )


def name_in(arn: str) -> str:
    """Return a target group's name: ...:targetgroup/<name>/<id> -> <name>."""
    return arn.rpartition(":targetgroup/")[2].partition("/")[0] or arn


def _draining(
    group: TargetGroup, binding: Balanced, pods: list[Pod], subject: str, seen: ClusterFacts
) -> Iterator[Finding]:
    """Find a delay that outlasts what is given to a drain."""
    delay = group.deregistration_seconds
    if not binding.by_node:
        grace = grace_of(pods)
        if delay > grace:
            yield worth_knowing(
                "deregistration",
                subject,
                f"its deregistration delay is {delay} s, longer than the {grace} s that brokers "
                "have to stop. The broker's end cuts an open connection, and the rest of the "
                "delay protects no client",
                f"set deregistration_delay.timeout_seconds below {grace}",
            )
        return
    groups = mapping_of(seen.groups).values()
    waits = [max(hook.heartbeat_seconds for hook in g.hooks) for g in groups if g.hooks]
    if waits and delay > min(waits):
        yield producer_may_stall(
            "deregistration",
            subject,
            f"its targets are nodes, its deregistration delay is {delay} s, and a lifecycle hook "
            f"holds a node for {min(waits)} s. The node ends while the balancer still sends over "
            "it, and clients of every broker behind it are cut",
            f"set deregistration_delay.timeout_seconds below {min(waits)}, or let pods be the "
            f"targets (target type ip)",
        )


def _kept_connections(group: TargetGroup, subject: str) -> Iterator[Finding]:
    if not group.network:
        return
    if group.connection_termination != "true":
        yield worth_knowing(
            "connections-kept",
            subject,
            "it does not end connections after the deregistration delay. Clients of a lost "
            "machine's broker hold dead connections until their own timeouts",
            "set deregistration_delay.connection_termination.enabled to true",
        )
    if not group.ends_unhealthy:
        yield producer_may_stall(
            "connections-unhealthy",
            subject,
            "it does not end connections of an unhealthy target: clients of a broker that hangs "
            "stay with it until their own timeouts",
            "set target_health_state.unhealthy.connection_termination.enabled to true",
        )
    if group.preserves_client_ip:
        yield worth_knowing(
            "client-ip",
            subject,
            "it preserves clients' addresses. A client on the broker's own node cannot reach it "
            "by the balancer. Nodes must let every client's address in",
            "set preserve_client_ip.enabled to false, unless the brokers need the addresses",
        )


@rule("balanced")
def unread_groups(seen: ClusterFacts) -> Iterator[Finding]:
    """Name bindings whose target group is not named in them, so that it was not judged."""
    silent = [
        each.title
        for each in known_items(seen.balanced)
        if each.kind != "Service"
        and each.target_group is None
        and any(each.covers(pod) for pod in known_items(seen.pods))
    ]
    if silent:
        yield not_judged(
            "target-group-unnamed",
            "target groups",
            f"{listing(silent)} names no targetGroupARN: what its target group does with "
            f"connections was not judged",
            "look at the target group's attributes yourself",
        )


INGRESS, BEHIND_A_PROXY = "ingress", ("ingress", "cluster-ip")


@rule("kafkas", "ingress_controllers")
def ingresses(seen: ClusterFacts) -> Iterator[Finding]:
    """Find proxies by which all clients of a Kafka come in, and which one node takes along."""
    if isinstance(seen.ingress_controllers, Unknown):
        return
    for kafka in known_items(seen.kafkas):
        named = {each.kind: each.name for each in kafka.listeners if each.kind in BEHIND_A_PROXY}
        streams = {each.title: _streams(each, kafka) for each in seen.ingress_controllers}
        if named:
            yield from _listeners(kafka, named, seen.ingress_controllers)
        elif any(streams.values()):
            sending = [each for each in seen.ingress_controllers if streams[each.title]]
            services = {service for each in sending for service in streams[each.title]}
            yield from _proxies(kafka, f"Service {listing(services)}", sending, sure=True)


def _streams(proxy: IngressController, kafka: Kafka) -> list[str]:
    """Return the Services of a Kafka's brokers that a proxy sends whole TCP ports to."""
    return [
        service
        for namespace, service in proxy.streams
        if namespace == kafka.namespace and service.startswith(f"{kafka.name}-kafka-")
    ]


def _listeners(
    kafka: Kafka, named: Mapping[str, str], found: Sequence[IngressController]
) -> Iterator[Finding]:
    by_ingress = INGRESS in named
    if by_ingress and not found:
        yield not_judged(
            "ingress-unknown",
            kafka.title,
            f"clients of listener {named[INGRESS]} come by an ingress controller, and none was "
            f"found: what becomes of them when a node leaves was not judged",
            "look at that controller yourself",
        )
    yield from _proxies(kafka, listing(named.values()), found, sure=by_ingress)
    serving = [each for each in found if not each.down]
    deaf = [each for each in serving if each.passes_tls is False]
    if by_ingress and deaf and len(deaf) == len(serving):
        yield producer_may_stall(
            "ingress-tls",
            kafka.title,
            f"{listing(each.title for each in deaf)} does not hand TLS on, and listener "
            f"{named[INGRESS]} needs it: no client comes in by it",
            "start it with TLS passthrough (nginx: --enable-ssl-passthrough)",
        )


def _proxies(
    kafka: Kafka, whose: str, found: Sequence[IngressController], *, sure: bool
) -> Iterator[Finding]:
    """Find proxies of which none serves, or one pod does; `sure`: clients come by no other way."""
    serving = [each for each in found if not each.down]
    if found and not serving:
        yield producer_may_stall(
            "ingress-down",
            kafka.title,
            f"no pod of {listing(each.title for each in found)} is available, by which clients "
            f"of {whose} come in",
            "look at its pods",
        )
    elif serving and all(each.replicas < 2 for each in serving):
        yield Finding(
            "ingress-single",
            Weight.PRODUCER if sure else Weight.ADVICE,
            kafka.title,
            f"clients of {whose} come by {listing(each.title for each in serving)}, which is one "
            "pod: with its node all clients of all brokers are cut off",
            "run two of it or more, with a PodDisruptionBudget, off the nodes of Kafka",
        )
