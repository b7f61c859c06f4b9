"""Judges the volumes below Kafka: what ends with a pod, a claim or a node, what cannot grow.

Sources: Kubernetes' persistent volumes and storage classes, EBS's volume types, Strimzi's storage.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.facts import Surveyed, every_kafka, pods_of
from core.survey.finding import (
    Finding,
    broker_may_die,
    listing,
    not_judged,
    producer_may_stall,
    worth_knowing,
)
from core.survey.kafka_facts import Flavour, OtherKafka, Volume
from core.unknown import of

# A gp2 volume of this size earns what its burst gives; a smaller one lives on credits.
GP2_WITHOUT_BURST_GIB = 1000
DISKS = ("st1", "sc1", "standard")


def volumes(seen: Surveyed) -> Iterator[Finding]:
    """Find disks that end with their pod, claim or node, or bind where the pod cannot run."""
    for kafka in every_kafka(seen):
        if isinstance(kafka, OtherKafka) and kafka.flavour is Flavour.AUTOMQ:
            continue
        bare = [pod.name for pod in pods_of(seen, kafka) if not pod.claims or pod.scratch]
        if bare:
            yield broker_may_die(
                "ephemeral",
                kafka.title,
                f"{listing(bare)} have no persistent volume for all of their data: it ends with "
                f"the pod",
                "give them a persistent volume for each of their directories (Strimzi's type "
                "persistent-claim)",
            )
    ending = [f"{each.namespace}/{each.name}" for each in of(seen.pools) if each.claims_go]
    if ending:
        yield worth_knowing(
            "claims-deleted",
            "volumes of Kafka",
            f"storage of node pools {listing(ending)} says deleteClaim: who deletes such a pool, "
            f"or its Kafka, deletes the claims of its brokers too",
            "set deleteClaim to false",
        )
    every = of(seen.volumes)
    yield from _local(every)
    yield from _shared_volumes(every)
    yield from _leaving(every)
    yield from _stuck_claims(every)
    yield from _resizing(every)
    yield from _unknown_drivers(every)
    kept = [volume for volume in every if not volume.on_node]
    yield from _reclaimed_volumes(kept)
    yield from _classes(kept)
    yield from _credits(kept)


def _claims(found: list[Volume]) -> str:
    return listing(volume.title for volume in found)


def _local(every: tuple[Volume, ...]) -> Iterator[Finding]:
    if found := [volume for volume in every if volume.on_node]:
        yield broker_may_die(
            "local-volume",
            "volumes of Kafka",
            f"{_claims(found)} are disks of their node and end with it: the pod waits for a node "
            f"that is gone until somebody deletes its claim, and then copies all its data",
            "keep data on EBS, or have a routine that deletes the claim and watches the copy",
        )


def _shared_volumes(every: tuple[Volume, ...]) -> Iterator[Finding]:
    if found := [volume for volume in every if volume.shared_by]:
        yield broker_may_die(
            "network-file-system",
            "volumes of Kafka",
            f"{_claims(found)} are on {listing(v.shared_by or '' for v in found)}: Kafka's logs "
            f"are not made for a network file system, and a broker stops at its first odd answer",
            "use block storage, such as EBS",
        )


def _leaving(every: tuple[Volume, ...]) -> Iterator[Finding]:
    if found := [volume for volume in every if volume.leaving]:
        yield broker_may_die(
            "claim-leaving",
            "volumes of Kafka",
            f"{_claims(found)} are deleted, and only their running pod keeps them: they are gone "
            f"with its next restart",
            "let no node of theirs leave before their data is copied: a deletion cannot be undone",
        )


def _stuck_claims(every: tuple[Volume, ...]) -> Iterator[Finding]:
    for volume in every:
        if volume.stuck:
            yield producer_may_stall(
                "claim-stuck",
                "volumes of Kafka",
                f"the last change of {volume.title} cannot be done "
                f"({volume.stuck}): it grows no further, and a disk that fills up stops its broker",
                "write a size or class in the claim that EBS can give",
            )


def _resizing(every: tuple[Volume, ...]) -> Iterator[Finding]:
    for volume in every:
        if volume.resizing:
            yield producer_may_stall(
                "claim-resizing",
                "volumes of Kafka",
                f"{volume.title} has grown at EBS and says {volume.resizing}: the file system that "
                f"the broker writes to has its former size until the kubelet of its node has grown "
                f"it",
                "see `kubectl describe pvc` and the log of the EBS driver's pod on that node; let "
                "the node stay until the word is gone, or restart the pod there",
            )


def _unknown_drivers(every: tuple[Volume, ...]) -> Iterator[Finding]:
    for driver in sorted({volume.unknown_driver for volume in every if volume.unknown_driver}):
        found = [volume for volume in every if volume.unknown_driver == driver]
        yield not_judged(
            "volume-driver",
            "volumes of Kafka",
            f"{_claims(found)} are of {driver}, which is not EBS: whether they follow a pod to "
            f"another node was not judged",
            "find out whether they are disks of the nodes",
        )


def _reclaimed_volumes(kept: list[Volume]) -> Iterator[Finding]:
    if found := [volume for volume in kept if volume.reclaim not in ("Retain", None)]:
        yield broker_may_die(
            "reclaim",
            "volumes of Kafka",
            f"{_claims(found)} are deleted with their claims",
            "set persistentVolumeReclaimPolicy of the volumes to Retain, and of the class that "
            "makes the next ones",
        )


def _classes(kept: list[Volume]) -> Iterator[Finding]:
    early = {v.storage_class for v in kept if v.binding not in ("WaitForFirstConsumer", None)}
    for name in sorted(each for each in early if each):
        yield producer_may_stall(
            "binding",
            f"StorageClass {name}",
            "it binds a volume before its pod is placed: the volume may be made in a zone where "
            "the pod cannot run",
            "use a class with volumeBindingMode WaitForFirstConsumer",
        )
    fixed = {v.storage_class for v in kept if v.expandable is False}
    for name in sorted(each for each in fixed if each):
        yield producer_may_stall(
            "expansion",
            f"StorageClass {name}",
            "it does not allow volumes to grow: a disk that fills up stops its broker",
            "set allowVolumeExpansion to true",
        )


def _credits(kept: list[Volume]) -> Iterator[Finding]:
    if slow := [volume for volume in kept if volume.ebs_type in DISKS]:
        yield producer_may_stall(
            "slow-volume",
            "volumes of Kafka",
            f"{_claims(slow)} are magnetic disks ({listing(v.ebs_type or '' for v in slow)}): a "
            f"broker that copies its replicas back starves its producers",
            "change the volumes to gp3",
        )
    found = [
        volume
        for volume in kept
        if volume.ebs_type == "gp2" and volume.gib and volume.gib < GP2_WITHOUT_BURST_GIB
    ]
    if found:
        yield producer_may_stall(
            "gp2",
            "volumes of Kafka",
            f"{_claims(found)} are gp2 of less than {GP2_WITHOUT_BURST_GIB} GiB, whose speed is "
            f"borrowed: when a broker copies its replicas back the credits end, and it crawls",
            "change the volumes to gp3, which can be done while they are in use",
        )
