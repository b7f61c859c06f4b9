"""Judges what is not Strimzi's Kafka: other Kafkas, ZooKeeper, neighbours, service meshes.

Sources: the eviction API; sidecars of Istio and Linkerd, which end with their pod's first signal
unless they are init containers that restart; ZooKeeper's majority.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from core.checks.facts import ClusterFacts, every_kafka, node_of, pods_of, zone_of
from core.checks.finding import (
    Finding,
    broker_may_die,
    listing,
    not_judged,
    producer_may_stall,
    rule,
    worth_knowing,
)
from core.checks.kafka import LEAST_REPLICAS, durability, lacks, whole_number
from core.ground.fields import Unknown, known_items
from core.model.kafka import Flavour, Kafka, ZooKeeperPod
from core.model.workloads import DisruptionBudget, Neighbour

# Docker Hub's own, by a version: what is newest is still there.
BITNAMIS = re.compile(r"(docker\.io/|index\.docker\.io/)?bitnami/[a-z-]+:(?!latest$).+")
FACTOR, IN_SYNC = "default.replication.factor", "min.insync.replicas"


@rule("other_kafkas", "pods")
def whole_today(seen: ClusterFacts) -> Iterator[Finding]:
    """Find those that are not whole: pods that are missing, placed nowhere, not ready."""
    if isinstance(seen.pods, Unknown):
        return
    for other in known_items(seen.other_kafkas):
        pods = pods_of(seen, other)
        said = lacks(pods, other.replicas if other.unseen is None else None)
        if said:
            yield producer_may_stall(
                "not-running",
                other.title,
                "it is not whole: " + "; ".join(said),
                "look at the pods' events before any node leaves",
            )


@rule("other_kafkas", "pods", "nodes")
def one_zone(seen: ClusterFacts) -> Iterator[Finding]:
    """Find those whose pods all stand in one zone."""
    for other in known_items(seen.other_kafkas):
        zones = [zone_of(pod, seen) for pod in pods_of(seen, other) if pod.node]
        if len(zones) > 1 and None not in zones and len(set(zones)) == 1:
            yield producer_may_stall(
                "zones",
                other.title,
                f"{len(zones)} pods stand in {zones[0]}: a zone that fails takes all of them",
                "spread them over as many zones as a partition has replicas",
            )


@rule("other_kafkas", "pods")
def ready_too_soon(seen: ClusterFacts) -> Iterator[Finding]:
    """Find those whose pods count as ready before they serve, so that the next one may leave."""
    for other in known_items(seen.other_kafkas):
        asked = {pod.name: pod.readiness for pod in pods_of(seen, other)}
        bare = [name for name, probe in asked.items() if probe == "none"]
        port = [name for name, probe in asked.items() if probe == "port"]
        for names, what in (
            (bare, "have no readiness probe: each counts as ready as soon as its container runs"),
            (port, "ask for an open port alone, which a broker has long before it serves"),
        ):
            if names:
                yield producer_may_stall(
                    "readiness",
                    other.title,
                    f"{listing(names)} {what}: a budget lets the next pod leave while the last one "
                    f"still copies its replicas",
                    "let the readiness probe ask the broker whether it is in sync, or ask Kafka "
                    "itself before each node",
                )


@rule("other_kafkas")
def images(seen: ClusterFacts) -> Iterator[Finding]:
    """Find images that a node which has them runs, and no other node can fetch."""
    for other in known_items(seen.other_kafkas):
        if BITNAMIS.fullmatch(other.image):
            yield producer_may_stall(
                "image-gone",
                other.title,
                f"it runs {other.image}, which Docker Hub no longer has since 2025. On a node that "
                "has not run it before, its pod stays in ImagePullBackOff",
                "run a copy from a registry of your own, or the same version of bitnamilegacy, "
                "before any node leaves",
            )


@rule("other_kafkas")
def moving_images(seen: ClusterFacts) -> Iterator[Finding]:
    """Find images without a version: who starts next may be of another release."""
    for other in known_items(seen.other_kafkas):
        image = other.image
        tag = image.rpartition("/")[2].partition(":")[2]
        # What an operator makes is told in words.
        if " " not in image and "@" not in image and tag in {"", "latest"}:
            yield producer_may_stall(
                "image-moving",
                other.title,
                f"it runs {image}. On a node without it a pod takes the newest release, which may "
                "not speak with the others or read their data",
                "name a version in its image",
            )


@rule("other_kafkas")
def rolling(seen: ClusterFacts) -> Iterator[Finding]:
    """Find sets that replace their pods at this moment, or stopped half-way."""
    for other in known_items(seen.other_kafkas):
        if other.rolling:
            yield producer_may_stall(
                "rolling",
                other.title,
                "its pods have two descriptions. A roll is under way, or stopped half-way, and "
                "takes the next pod as soon as the last one is ready",
                "let it end before any node leaves",
            )


@rule("other_kafkas")
def claims(seen: ClusterFacts) -> Iterator[Finding]:
    """Find claims that several pods have together, or that end by themselves."""
    for other in known_items(seen.other_kafkas):
        held = Counter(claim for pod in pods_of(seen, other) for claim in set(pod.claims))
        if shared := [claim for claim, pods in held.items() if pods > 1]:
            yield broker_may_die(
                "claim-shared",
                other.title,
                f"several of its pods have {listing(shared)}: two brokers write to one disk, or "
                f"the second one on another node never starts",
                "give each pod a claim of its own (volumeClaimTemplates of a StatefulSet)",
            )
        if other.claims_go:
            yield producer_may_stall(
                "claims-deleted",
                other.title,
                f"its persistentVolumeClaimRetentionPolicy is Delete ({listing(other.claims_go)}): "
                "scaling it in, or deleting it, deletes its brokers' data",
                "set both of it to Retain",
            )


@rule("other_kafkas")
def settings(seen: ClusterFacts) -> Iterator[Finding]:
    """Find settings, where they were read, by which one lost broker costs data or stops writers."""
    for other in known_items(seen.other_kafkas):
        if other.flavour is Flavour.REDPANDA:
            continue
        yield from durability(other.title, other.config)
        factor, in_sync = (whole_number(other.config.get(key)) for key in (FACTOR, IN_SYNC))
        if factor is not None and (factor < LEAST_REPLICAS or factor <= (in_sync or 1)):
            yield producer_may_stall(
                "replication",
                other.title,
                f"{FACTOR} is {factor}"
                + ("" if in_sync is None else f" and {IN_SYNC} {in_sync}")
                + ": of such topics one broker that leaves takes partitions below what producers "
                "wait for, or away",
                f"set {FACTOR} to {LEAST_REPLICAS} or more, above {IN_SYNC}, and reassign the "
                f"topics that exist",
            )


@rule("other_kafkas")
def unjudged_parts(seen: ClusterFacts) -> Iterator[Finding]:
    """Name what of them was not judged, and how clients come in."""
    for other in known_items(seen.other_kafkas):
        pods = pods_of(seen, other)
        missing = ["its quorum, topics and listeners"]
        if other.flavour is Flavour.REDPANDA:
            missing = ["its replication, which is not Kafka's"]
        else:
            missing += [key for key in (FACTOR, IN_SYNC) if key not in other.config]
        if odd := [pod.name for pod in pods if pod.pre_stop_odd]:
            missing.append(f"what the preStop of {listing(odd)} does")
        if probed := [pod.name for pod in pods if pod.readiness in {"command", "http", "grpc"}]:
            missing.append(f"what the readiness probe of {listing(probed)} means")
        if other.unseen is not None or not pods:
            missing.append(f"its pods ({other.unseen or 'none was found'})")
        kafka = other.flavour is Flavour.KAFKA
        whose = "not Strimzi's" if kafka else f"{other.flavour} and not Kafka"
        came = listing(other.ways_in) if other.ways_in else "no Service that selects its pods"
        yield not_judged(
            "not-strimzi",
            other.title,
            f"it runs {other.image}, which is {whose}: not judged were "
            f"{'; '.join(missing)}. Clients come in by {came}",
            "ask Kafka itself before each node: kafka-topics.sh --describe with "
            "--under-min-isr-partitions and --at-min-isr-partitions",
        )


# Strimzi's label of pods of a Kafka, ZooKeeper's among them.
KIND = "strimzi.io/kind"


@rule("neighbours")
def neighbours(seen: ClusterFacts) -> Iterator[Finding]:
    """Find pods of others that no drain of their node gets rid of, or only late."""
    every = known_items(seen.neighbours)
    if not isinstance(seen.budgets, Unknown):
        budgets = seen.budgets
        kept = [
            (each, why)
            for each in every
            if not _is_moved(each, seen) and (why := _bar(each, budgets))
        ]
        if kept:
            yield producer_may_stall(
                "drain-barred",
                "nodes of Kafka",
                f"next to brokers run {listing(f'{each.title} ({why})' for each, why in kept)}: a "
                f"drain of {listing(each.node for each, _ in kept)} waits for these until it is "
                "over its time, or the node is taken by force",
                "let their budgets allow one pod to leave (two replicas or more), or keep such "
                "pods off the nodes of Kafka by a taint",
            )
    yield from _slow(every, seen)
    if bare := [each for each in every if each.alone]:
        yield worth_knowing(
            "pod-alone",
            "nodes of Kafka",
            f"next to brokers run {listing(each.title for each in bare)}, which nothing makes "
            "again: a drain deletes them for good, or stops at them",
            "run them as Deployments or Jobs, or off the nodes of Kafka",
        )


def _is_moved(pod: Neighbour, seen: ClusterFacts) -> bool:
    """Say whether Drain Cleaner has Strimzi move a pod: of a Kafka elsewhere, or ZooKeeper's."""
    if pod.labels.get(KIND) != "Kafka":
        return False
    return isinstance(seen.cleaners, Unknown) or any(
        each.namespaces is None or pod.namespace in each.namespaces for each in seen.cleaners
    )


def _bar(pod: Neighbour, budgets: tuple[DisruptionBudget, ...]) -> str | None:
    """Return why the eviction API lets a pod not go."""
    over = sorted((each for each in budgets if each.covers(pod)), key=lambda each: each.name)
    if len(over) > 1:
        return f"covered by {' and '.join(each.name for each in over)}, which is an error"
    for budget in over:
        if budget.desired_healthy is None or budget.expected_pods is None:
            continue
        if budget.desired_healthy >= budget.expected_pods:
            return f"budget {budget.name} lets none of its {budget.expected_pods} leave"
        if budget.allowed_now == 0:
            return f"budget {budget.name} lets none leave today"
    return None


def _slow(every: tuple[Neighbour, ...], seen: ClusterFacts) -> Iterator[Finding]:
    """Find pods that may take longer to stop than a termination handler gives a drain."""
    given = [each.drain_timeout_seconds for each in known_items(seen.handlers) if each.queue_mode]
    if not given:
        return
    slow = [each for each in every if each.grace_seconds >= min(given)]
    if slow:
        yield worth_knowing(
            "drain-slow",
            "nodes of Kafka",
            "next to brokers run "
            + listing(f"{each.title} ({each.grace_seconds} s to stop)" for each in slow)
            + f", and the termination handler gives a drain {min(given)} s: it fails while they "
            f"still stop, and is begun again",
            "keep such pods off the nodes of Kafka by a taint, or raise "
            "NODE_TERMINATION_GRACE_PERIOD",
        )


@rule("pods")
def meshes(seen: ClusterFacts) -> Iterator[Finding]:
    """Find brokers that lose their network first when they stop, or once they start again."""
    for kafka in every_kafka(seen):
        pods = pods_of(seen, kafka)
        if beside := [pod for pod in pods if pod.proxies]:
            yield producer_may_stall(
                "mesh-sidecar",
                kafka.title,
                f"{listing(pod.name for pod in beside)} have a proxy next to Kafka "
                f"({listing(name for pod in beside for name in pod.proxies)}), which ends at the "
                "pod's first signal. The broker then reaches no controller, hands over no leader, "
                "and is killed after its grace",
                "keep Kafka out of the mesh, or have the mesh inject native sidecars",
            )
        later = [
            pod.name
            for pod in pods
            if pod.namespace in known_items(seen.injected_namespaces)
            and not pod.proxies
            and not pod.outside_meshes
            # A native sidecar is seen by nobody here.
            and not pod.native_proxy
        ]
        if later:
            yield producer_may_stall(
                "mesh-later",
                kafka.title,
                f"namespace {kafka.namespace} has a mesh that puts a proxy into new pods, and "
                f"{listing(later)} have none. They get one at their next start, and brokers with "
                "and without it may not understand each other",
                "say sidecar.istio.io/inject: 'false' (Linkerd: linkerd.io/inject: disabled) in "
                "the pods' template",
            )


@rule("kafkas", "zookeepers")
def ensembles(seen: ClusterFacts) -> Iterator[Finding]:
    """Find ensembles whose majority is away, or goes with one node or one zone."""
    if isinstance(seen.zookeepers, Unknown):
        return
    for kafka in known_items(seen.kafkas):
        wanted = kafka.zookeeper_replicas
        if wanted:
            mine = [
                pod
                for pod in seen.zookeepers
                if (pod.namespace, pod.kafka) == (kafka.namespace, kafka.name)
            ]
            yield from _ensemble(kafka, wanted, mine, seen)


def _ensemble(
    kafka: Kafka, wanted: int, pods: list[ZooKeeperPod], seen: ClusterFacts
) -> Iterator[Finding]:
    most_away = (wanted - 1) // 2
    ready = [pod for pod in pods if pod.ready]
    away = wanted - len(ready)
    if most_away == 0:
        yield _finding(
            kafka,
            f"its ZooKeeper has {wanted} pods, of which none can leave: meanwhile no partition "
            f"gets another leader",
            "run three of it, or migrate to KRaft",
        )
    elif away >= most_away:
        end = "none of them can leave" if away == most_away else "they are no majority"
        yield _finding(
            kafka,
            f"{len(ready)} of {wanted} ZooKeeper pods are ready: {end}",
            "bring the others back before any node leaves",
        )
    else:
        yield from _together(kafka, most_away, ready, seen)


def _together(
    kafka: Kafka, most_away: int, pods: list[ZooKeeperPod], seen: ClusterFacts
) -> Iterator[Finding]:
    zones = Counter(pod.zone for pod in pods if pod.zone)
    of_brokers = {
        node.zone for pod in pods_of(seen, kafka) if (node := node_of(pod, seen)) and node.zone
    }
    if of_brokers == set(zones) and len(zones) == 1:
        zones.clear()  # A cluster of one zone, which is said of its brokers.
    for kind, counts in (("node", Counter(pod.node for pod in pods if pod.node)), ("zone", zones)):
        crowded = [place for place, count in counts.items() if count > most_away]
        if crowded:
            yield _finding(
                kafka,
                f"{counts[crowded[0]]} of {len(pods)} ZooKeeper pods stand on {kind} "
                f"{listing(crowded)}: without it the rest lacks a majority, and no partition gets "
                "another leader",
                f"spread them over {kind}s (spec.zookeeper.template.pod), or migrate to KRaft",
            )
            return  # Those on one node are in one zone, too.


def _finding(kafka: Kafka, evidence: str, remedy: str) -> Finding:
    return producer_may_stall("zookeeper-votes", kafka.title, evidence, remedy)
