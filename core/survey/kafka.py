"""Judges what a Kafka resource, its pods and their volumes say: replicas, zones, grace, disks.

Sources: Kafka's broker configuration and its defaults, Strimzi's Kafka resource, docs/adr/0005.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from core.survey.facts import Kafka, Pod, Surveyed, Unread
from core.survey.finding import Finding, Weight

# KafkaBroker.shutdown waits so long for its controlled shutdown.
CONTROLLED_SHUTDOWN_SECONDS = 300
# Setting of a topic kind's replication -> its least in-sync replicas, with Kafka's defaults.
REPLICATION = {
    "default.replication.factor": ("min.insync.replicas", 1, 1),
    "offsets.topic.replication.factor": ("min.insync.replicas", 3, 1),
    "transaction.state.log.replication.factor": ("transaction.state.log.min.isr", 3, 2),
}
LEAST_REPLICAS = 3
LEAST_IN_SYNC = 2
T = TypeVar("T")


def replication(seen: Surveyed) -> Iterator[Finding]:
    """Find replicas that one lost broker takes below what producers wait for."""
    for kafka in _of(seen.kafkas):
        for setting, (in_sync_setting, default, in_sync_default) in REPLICATION.items():
            factor = _number(kafka, setting, default)
            in_sync = _number(kafka, in_sync_setting, in_sync_default)
            if factor is None or in_sync is None:
                continue
            if factor <= in_sync or factor < LEAST_REPLICAS:
                yield Finding(
                    "replication",
                    Weight.PRODUCER,
                    kafka.title,
                    f"{setting} is {factor} and {in_sync_setting} {in_sync}: of such topics one "
                    f"broker that leaves takes partitions below what producers wait for, or away",
                    f"set {setting} to {LEAST_REPLICAS} or more, above {in_sync_setting}, and "
                    f"reassign the topics that exist",
                )
        in_sync = _number(kafka, "min.insync.replicas", 1)
        if in_sync is not None and in_sync < LEAST_IN_SYNC:
            yield Finding(
                "min-insync",
                Weight.BROKER,
                kafka.title,
                f"min.insync.replicas is {in_sync}: what one broker alone acknowledged is lost "
                f"with it",
                f"set min.insync.replicas to {LEAST_IN_SYNC}",
            )


def listeners(seen: Surveyed) -> Iterator[Finding]:
    """Find listeners that ask nobody who they are."""
    for kafka in _of(seen.kafkas):
        for listener in kafka.listeners:
            if listener.authentication is None:
                yield Finding(
                    "listener",
                    Weight.EXPOSED,
                    kafka.title,
                    f"listener {listener.name} asks nobody who they are",
                    "give it an authentication: tls or scram-sha-512",
                )


def zones(seen: Surveyed) -> Iterator[Finding]:
    """Find brokers that stand in fewer zones than a partition has replicas."""
    if isinstance(seen.nodes, Unread):
        return
    for kafka in _of(seen.kafkas):
        brokers = [pod for pod in pods_of(seen, kafka) if pod.broker and pod.node]
        found = {
            node.zone
            for pod in brokers
            if pod.node and (node := seen.nodes.get(pod.node)) and node.zone
        }
        factor = _number(kafka, "default.replication.factor", 1) or 1
        if not found:
            continue
        if len(found) == 1 or len(found) < min(factor, len(brokers)):
            yield Finding(
                "zones",
                Weight.PRODUCER,
                kafka.title,
                f"{len(brokers)} brokers stand in {', '.join(sorted(found))} and a partition has "
                f"{factor} replicas: a zone that fails takes more than one of them",
                "spread the brokers over as many zones as there are replicas",
            )
        if not kafka.rack_aware and len(found) > 1:
            yield Finding(
                "rack",
                Weight.PRODUCER,
                kafka.title,
                "spec.kafka.rack is missing: Kafka places replicas without regard to zones",
                "set spec.kafka.rack.topologyKey to topology.kubernetes.io/zone, and rebalance",
            )


def grace(seen: Surveyed) -> Iterator[Finding]:
    """Find pods that are killed while Kafka still hands over its leaders."""
    for pod in _of(seen.pods):
        if pod.grace_seconds <= CONTROLLED_SHUTDOWN_SECONDS and pod.broker:
            yield Finding(
                "grace",
                Weight.BROKER,
                pod.title,
                f"terminationGracePeriodSeconds is {pod.grace_seconds}, and a broker waits up to "
                f"{CONTROLLED_SHUTDOWN_SECONDS} s for its controlled shutdown: it is killed in "
                f"the middle and recovers its logs on the next start",
                f"set template.pod.terminationGracePeriodSeconds above "
                f"{CONTROLLED_SHUTDOWN_SECONDS}, for example to 330",
            )


def running(seen: Surveyed) -> Iterator[Finding]:
    """Find Kafka resources without a broker, and brokers that no node has taken."""
    if isinstance(seen.pods, Unread):
        return
    for kafka in _of(seen.kafkas):
        brokers = [pod for pod in pods_of(seen, kafka) if pod.broker]
        waiting = sorted(pod.name for pod in brokers if pod.node is None)
        if waiting or not brokers:
            yield Finding(
                "not-running",
                Weight.PRODUCER,
                kafka.title,
                f"{', '.join(waiting)} have no node" if waiting else "it has no broker's pod",
                "look at the pods' events and at the operator's log",
            )


def placement(seen: Surveyed) -> Iterator[Finding]:
    """Find brokers that share a node, or may."""
    for kafka in _of(seen.kafkas):
        brokers = [pod for pod in pods_of(seen, kafka) if pod.broker]
        per_node = Counter(pod.node for pod in brokers if pod.node)
        for node, count in sorted(per_node.items()):
            if count > 1:
                yield Finding(
                    "shared-node",
                    Weight.PRODUCER,
                    kafka.title,
                    f"{count} brokers run on node {node}: all of them leave with it",
                    "require podAntiAffinity on kubernetes.io/hostname, and roll them apart",
                )
        free = sorted(pod.name for pod in brokers if not pod.alone_on_its_node)
        if free:
            yield Finding(
                "anti-affinity",
                Weight.PRODUCER,
                kafka.title,
                f"nothing forbids two brokers on one node: {', '.join(free)} have neither a "
                f"required podAntiAffinity nor a strict spread over kubernetes.io/hostname",
                "require podAntiAffinity on kubernetes.io/hostname in template.pod.affinity",
            )


def volumes(seen: Surveyed) -> Iterator[Finding]:
    """Find disks that end with their pod or claim, or bind where the pod cannot run."""
    for pod in _of(seen.pods):
        if not pod.claims:
            yield Finding(
                "ephemeral",
                Weight.BROKER,
                pod.title,
                "it has no persistent volume: its data ends with the pod",
                "give its pool storage of type persistent-claim",
            )
    reclaimed, early, fixed = [], set(), set()
    for volume in _of(seen.volumes):
        if volume.reclaim not in ("Retain", None):
            reclaimed.append(f"{volume.namespace}/{volume.claim}")
        if volume.binding not in ("WaitForFirstConsumer", None):
            early.add(volume.storage_class or "")
        if volume.expandable is False:
            fixed.add(volume.storage_class or "")
    if reclaimed:
        yield Finding(
            "reclaim",
            Weight.BROKER,
            "volumes of Kafka",
            f"the volumes of {', '.join(sorted(reclaimed))} are deleted with their claims",
            "set persistentVolumeReclaimPolicy of the volumes to Retain, and of the class that "
            "makes the next ones",
        )
    for name in sorted(early):
        yield Finding(
            "binding",
            Weight.PRODUCER,
            f"StorageClass {name}",
            "it binds a volume before its pod is placed: the volume may be made in a zone where "
            "the pod cannot run",
            "use a class with volumeBindingMode WaitForFirstConsumer",
        )
    for name in sorted(fixed):
        yield Finding(
            "expansion",
            Weight.PRODUCER,
            f"StorageClass {name}",
            "it does not allow volumes to grow: a disk that fills up stops its broker",
            "set allowVolumeExpansion to true",
        )


def pods_of(seen: Surveyed, kafka: Kafka) -> list[Pod]:
    """Return the pods of one Kafka resource."""
    return [
        pod
        for pod in _of(seen.pods)
        if pod.namespace == kafka.namespace and pod.kafka == kafka.name
    ]


def _of(part: tuple[T, ...] | Unread) -> tuple[T, ...]:
    return () if isinstance(part, Unread) else part


def _number(kafka: Kafka, setting: str, default: int) -> int | None:
    """Return a setting's number, or None where it is written as something else."""
    try:
        return int(kafka.config.get(setting, default))
    except ValueError:
        return None
