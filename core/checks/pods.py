"""Judges what pods of Kafka say of themselves, and who changes how many there are.

Sources: Kubernetes' scheduler, eviction and HorizontalPodAutoscaler; the JVM's heap; Strimzi's
annotations of pods, and its check before it removes a broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from core.checks.facts import ClusterFacts, every_kafka, node_of, pods_of
from core.checks.finding import (
    Finding,
    Weight,
    broker_may_die,
    listing,
    not_judged,
    producer_may_stall,
    rule,
    worth_knowing,
)
from core.ground.fields import Unknown, known_items, mapping_of
from core.ground.placement import (
    HOST,
    KUBERNETES_OWN,
    NODE_NAME,
    VOLUME_SLOTS,
    PodNeeds,
    barrier,
    shortage,
)
from core.model.kafka import Pod
from core.model.nodes import EBS_DRIVERS, Node, VolumeSlots
from core.model.workloads import SizeScaler

# A broker that was killed reads its logs again before it opens a port: minutes for full disks.
RECOVERY_SECONDS = 600
# Of a pod's memory; what Java needs beside its heap is rarely less than a fifth.
LARGEST_HEAP = Decimal("0.8")
NO_LIMIT = VolumeSlots()
CORDON = ("node.kubernetes.io/unschedulable", "", "NoSchedule")
DELETED_WITH_CLAIM = "strimzi.io/delete-pod-and-pvc"
ROLLED = "strimzi.io/manual-rolling-update"


@rule("pods")
def memory(seen: ClusterFacts) -> Iterator[Finding]:
    """Find pods that a node short of memory gives up first, or that the kernel ends."""
    for kafka in every_kafka(seen):
        pods = pods_of(seen, kafka)
        if first := [pod.name for pod in pods if pod.quality == "BestEffort"]:
            yield broker_may_die(
                "best-effort",
                kafka.title,
                f"{listing(first)} request no memory (BestEffort). The kernel and the kubelet end "
                "them first when their node runs out of it, without asking a budget",
                "set resources.requests and limits of memory, equal, where they are described",
            )
        if ended := [pod.name for pod in pods if pod.out_of_memory]:
            yield broker_may_die(
                "out-of-memory",
                kafka.title,
                f"the kernel has ended {listing(ended)} for their memory (OOMKilled), and does it "
                f"again whenever they take as much",
                "raise their resources.limits.memory, or lower the heap (-Xmx)",
            )


@rule("pods", described=True)
def heap(seen: ClusterFacts) -> Iterator[Finding]:
    """Find heaps that leave the JVM itself too little of its pod's memory."""
    for kafka in every_kafka(seen):
        shares = {
            pod.name: pod.heap_bytes / pod.memory_bytes
            for pod in pods_of(seen, kafka)
            if pod.heap_bytes and pod.memory_bytes
        }
        if full := [name for name, share in shares.items() if share >= 1]:
            yield broker_may_die(
                "heap",
                kafka.title,
                f"the heap of {listing(full)} (-Xmx) may take all that resources.limits.memory "
                f"allows: the kernel ends the broker before the heap is full",
                "leave half of the limit, or a few GiB, to the JVM itself and the page cache",
            )
        if large := [name for name, share in shares.items() if LARGEST_HEAP < share < 1]:
            yield heap_large(kafka.title, listing(large))


def heap_large(subject: str, whose: str) -> Finding:
    """Return that a heap leaves Java too little of its pod's memory."""
    return worth_knowing(
        "heap-large",
        subject,
        f"the heap of {whose} may take more than {LARGEST_HEAP:.0%} of its pod's memory. Java "
        "needs more memory for threads, classes and buffers, and the kernel ends a pod that "
        "exceeds its limit",
        "leave half of the memory, or a few GiB, to the JVM itself and the page cache",
    )


@rule("pods")
def liveness(seen: ClusterFacts) -> Iterator[Finding]:
    """Find pods that the kubelet restarts before their broker has recovered its logs."""
    for kafka in every_kafka(seen):
        brief = [
            pod
            for pod in pods_of(seen, kafka)
            if pod.broker and pod.liveness != "none" and pod.liveness_seconds < RECOVERY_SECONDS
        ]
        # A port is opened after log recovery. What a command asks is not known.
        closed = {p.name: p.liveness_seconds for p in brief if p.liveness != "command"}
        if closed:
            yield broker_may_die(
                "liveness-brief",
                kafka.title,
                f"the probes of {listing(closed)} ask a port, which opens after log recovery, and "
                f"the kubelet restarts the broker after {min(closed.values())} s. A killed broker "
                "begins its recovery again and again",
                f"give them a startupProbe whose periodSeconds x failureThreshold is above "
                f"{RECOVERY_SECONDS} s",
            )
        if asked := [pod.name for pod in brief if pod.liveness == "command"]:
            yield not_judged(
                "liveness-command",
                kafka.title,
                f"the kubelet restarts {listing(asked)} if a command fails for "
                f"{min(p.liveness_seconds for p in brief if p.name in asked)} s: whether that "
                f"command succeeds during log recovery was not judged",
                f"see that it does, or give them a startupProbe of more than {RECOVERY_SECONDS} s",
            )


@rule("kafkas", "pods")
def marked_pods(seen: ClusterFacts) -> Iterator[Finding]:
    """Find pods that Strimzi was asked to delete or to roll."""
    for kafka in known_items(seen.kafkas):
        pods = pods_of(seen, kafka)
        if lost := [pod.name for pod in pods if _says(pod, DELETED_WITH_CLAIM)]:
            yield broker_may_die(
                "pod-marked",
                kafka.title,
                f"{listing(lost)} are annotated {DELETED_WITH_CLAIM}: the operator deletes them "
                f"with their volumes' claims at its next turn",
                "remove the annotation, unless every partition of theirs is whole elsewhere",
            )
        if rolled := [pod.name for pod in pods if _says(pod, ROLLED)]:
            yield producer_may_stall(
                "pod-marked",
                kafka.title,
                f"{listing(rolled)} are annotated {ROLLED}: the operator is about to roll them",
                "let that end before any node leaves",
            )


def _says(pod: Pod, annotation: str) -> bool:
    return pod.annotations.get(annotation, "").lower() == "true"


@rule("pods", "nodes")
def returning(seen: ClusterFacts) -> Iterator[Finding]:
    """Find pods that could not start again: on their node, on another, or that start too soon."""
    if isinstance(seen.nodes, Unknown):
        return
    for kafka in every_kafka(seen):
        pods = pods_of(seen, kafka)
        # What is bound to its disk is found by its disk.
        if pinned := [p.name for p in pods if p.wants.names(HOST) or p.wants.names(NODE_NAME)]:
            yield producer_may_stall(
                "pinned",
                kafka.title,
                f"{listing(pinned)} may run on a host of one name alone ({HOST}): without that "
                "node they wait forever",
                "let them choose their nodes by a label of a pool, and not by a host's name",
            )
        barred = [
            f"{pod.name} ({why})"
            for pod in pods
            if (node := node_of(pod, seen)) and (why := _placement_barrier(pod, node))
        ]
        if barred:
            yield producer_may_stall(
                "node-unfit",
                kafka.title,
                f"if they restart, the scheduler does not let them back on their nodes: "
                f"{listing(barred)}",
                "give the nodes the labels that the pods ask for, by whatever starts these nodes, "
                "and let the pods tolerate the nodes' taints",
            )
        yield from _hasty(kafka.title, pods, seen)


def _placement_barrier(pod: Pod, node: Node) -> str | None:
    """Return why a pod would not be placed on its node today."""
    # Kubernetes sets its own by itself, and the state behind them is judged.
    taints = [t for t in node.taints if not (t.key.startswith(KUBERNETES_OWN) or node.leaving)]
    said = barrier(node.name, node.labels, taints, pod.wants)
    return said and f"{node.name} {said}"


@rule("idle_nodes", "pods")
def idle(seen: ClusterFacts) -> Iterator[Finding]:
    """Find nodes that are there for Kafka's pods and could take none of them."""
    barred = {}
    for name, node in mapping_of(seen.idle_nodes).items():
        pods = [
            pod
            for pod in known_items(seen.pods)
            if pod.wants.fits({**node.labels, NODE_NAME: node.name})
        ]
        said = [_idle_barrier(pod, node, seen) for pod in pods]
        if said and all(said):
            barred[name] = said[0]
    if barred:
        yield producer_may_stall(
            "node-takes-none",
            "idle nodes",
            f"no broker or controller can start on "
            f"{listing(f'{name}, which {why}' for name, why in barred.items())}: Stillwater takes "
            f"none of them for a replacement",
            "`kubectl describe node` shows the cause; fix it, or end these machines",
        )


def _idle_barrier(pod: Pod, node: Node, seen: ClusterFacts) -> str | None:
    """Return why a node with nothing of Kafka's could not take a pod, were it otherwise empty."""
    if not node.ready:
        return "is not Ready"
    if node.leaving:
        return "is cordoned, or marked to be emptied"
    if node.ailments:
        return f"reports {', '.join(node.ailments)}"
    slots = NO_LIMIT if isinstance(seen.slots, Unknown) else seen.slots.get(node.name)
    if slots is None and _is_on_ebs(pod, seen):
        return "has no EBS driver in its CSINode"
    held = slots or NO_LIMIT
    allocatable = {**node.allocatable, VOLUME_SLOTS: held.count}
    return barrier(node.name, node.labels, node.taints, pod.wants) or shortage(
        PodNeeds(requests=pod.requests), allocatable, (), held.attached
    )


def _is_on_ebs(pod: Pod, seen: ClusterFacts) -> bool:
    mine = {(pod.namespace, claim) for claim in pod.claims}
    return any(
        v.driver in EBS_DRIVERS and (v.namespace, v.claim) in mine
        for v in known_items(seen.volumes)
    )


@rule("volumes")
def drivers(seen: ClusterFacts) -> Iterator[Finding]:
    """Find nodes on which the kubelet knows no EBS driver."""
    if isinstance(seen.slots, Unknown):
        return
    for kafka in every_kafka(seen):
        pods = [pod for pod in pods_of(seen, kafka) if node_of(pod, seen) and _is_on_ebs(pod, seen)]
        if gone := {pod.node or "" for pod in pods} - set(seen.slots):
            yield producer_may_stall(
                "csi-node",
                kafka.title,
                f"the CSINode of {listing(gone)} lists no EBS driver: a pod that restarts there "
                f"cannot mount its volume",
                "bring the driver's DaemonSet (ebs-csi-node) back on these nodes",
            )
    for name, held in seen.slots.items():
        for error in held.errors:
            yield producer_may_stall(
                "attachment-error",
                f"node {name}",
                f"a volume is neither attached to it nor taken from it: {error}",
                "see `kubectl describe volumeattachment` and the EBS driver's controller",
            )


def _hasty(title: str, pods: list[Pod], seen: ClusterFacts) -> Iterator[Finding]:
    """Find pods that a cordon does not keep off: a drain moves them back to the same node."""
    held = [
        pod.name
        for pod in pods
        if pod.wants.tolerates(*CORDON)
        # Karpenter asks for another taint, judged with its pool.
        and not ((node := node_of(pod, seen)) and node.node_pool)
    ]
    if held:
        yield broker_may_die(
            "tolerates-cordon",
            title,
            f"{listing(held)} tolerate {CORDON[0]}: once evicted they may start again on the node "
            f"that is drained, and end with it",
            "name the taints that the pods tolerate, instead of all of them",
        )


@rule("pods")
def interfaces(seen: ClusterFacts) -> Iterator[Finding]:
    """Find pods that only some types of machines have a network interface for."""
    for kafka in every_kafka(seen):
        if found := [pod.name for pod in pods_of(seen, kafka) if pod.own_interface]:
            yield worth_knowing(
                "branch-interfaces",
                kafka.title,
                f"{listing(found)} have security groups of their own, which need branch "
                "interfaces. Few instance types have many of them, and a pod waits for one",
                "see that whatever starts the next node chooses types with branch interfaces",
            )


@rule("pods")
def schedulers(seen: ClusterFacts) -> Iterator[Finding]:
    """Name schedulers of somebody's own, without which a pod stays Pending."""
    for kafka in every_kafka(seen):
        others = {pod.scheduler for pod in pods_of(seen, kafka) if pod.scheduler}
        for name in sorted(others):
            yield not_judged(
                "scheduler",
                kafka.title,
                f"its pods are placed by scheduler {name}, and not by Kubernetes' own: whether it "
                f"runs, and what it asks of a node, was not judged",
                "see that it runs before any node leaves, or leave schedulerName out",
            )


@rule("pods")
def priority(seen: ClusterFacts) -> Iterator[Finding]:
    """Find pods that any other pod may push off its node."""
    for kafka in every_kafka(seen):
        if low := [pod.name for pod in pods_of(seen, kafka) if pod.priority < 0]:
            yield broker_may_die(
                "priority",
                kafka.title,
                f"{listing(low)} have a priority below that of any usual pod: the scheduler ends "
                f"them to make room, and a budget does not stop it",
                "give them a priorityClassName of their own, above the others",
            )


@rule("nodes")
def versions(seen: ClusterFacts) -> Iterator[Finding]:
    """Name nodes of Kafka that run different versions of Kubernetes."""
    found = {node.version for node in mapping_of(seen.nodes).values() if node.version}
    if len(found) > 1:
        yield worth_knowing(
            "version-skew",
            "nodes of Kafka",
            f"they run {listing(found)}: an upgrade is under way, or was left half-way",
            "know who upgrades them next, and when",
        )


@rule("size_scalers")
def scalers(seen: ClusterFacts) -> Iterator[Finding]:
    """Find autoscalers that take a broker away when a metric is low."""
    pools = {(each.namespace, each.name) for each in known_items(seen.pools)}
    for each in known_items(seen.size_scalers):
        mine = (each.namespace, each.target)
        if each.least >= each.most:
            continue
        if each.kind == "KafkaNodePool" and mine in pools:
            yield _finding(
                each,
                Weight.ADVICE,
                "Strimzi removes a broker only once nothing is on it, and until then reverts it "
                "at each turn",
            )
        elif f"{each.kind} {each.namespace}/{each.target}" in {
            other.title for other in known_items(seen.other_kafkas)
        }:
            yield _finding(
                each, Weight.BROKER, "the last broker is ended with the replicas that are on it"
            )


def _finding(scaler: SizeScaler, weight: Weight, result: str) -> Finding:
    return Finding(
        "size-scaled",
        weight,
        scaler.title,
        f"it changes the number of brokers of {scaler.kind} {scaler.target} between {scaler.least} "
        f"and {scaler.most} by a metric: {result}",
        "take it away, and change the number of brokers by hand, after their partitions",
    )
