"""Judges Kafkas that are not Strimzi's, as far as Kubernetes alone can tell, and names the rest.

What their pods have in common with Strimzi's (grace, budgets, nodes, volumes, memory) is judged
beside those, in the same words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from core.survey.facts import Surveyed, pods_of, zone_of
from core.survey.finding import Finding, broker_may_die, listing, not_judged, producer_may_stall
from core.survey.kafka import LEAST_REPLICAS, durability, lacks, whole_number
from core.survey.kafka_facts import Flavour, OtherKafka
from core.unknown import Unknown, of

# Docker Hub's own, by a version: what is newest is still there.
BITNAMIS = re.compile(r"(docker\.io/|index\.docker\.io/)?bitnami/[a-z-]+:(?!latest$).+")
FACTOR, IN_SYNC = "default.replication.factor", "min.insync.replicas"


def whole_today(seen: Surveyed) -> Iterator[Finding]:
    """Find those that are not whole: pods that are missing, placed nowhere, not ready."""
    if isinstance(seen.pods, Unknown):
        return
    for other in of(seen.other_kafkas):
        pods = pods_of(seen, other)
        said = lacks(pods, other.replicas if other.unseen is None else None)
        if said:
            yield producer_may_stall(
                "not-running",
                other.title,
                "it is not whole: " + "; ".join(said),
                "look at the pods' events before any node leaves",
            )


def one_zone(seen: Surveyed) -> Iterator[Finding]:
    """Find those whose pods all stand in one zone."""
    for other in of(seen.other_kafkas):
        zones = [zone_of(pod, seen) for pod in pods_of(seen, other) if pod.node]
        if len(zones) > 1 and None not in zones and len(set(zones)) == 1:
            yield producer_may_stall(
                "zones",
                other.title,
                f"{len(zones)} pods stand in {zones[0]}: a zone that fails takes all of them",
                "spread them over as many zones as a partition has replicas",
            )


def ready_too_soon(seen: Surveyed) -> Iterator[Finding]:
    """Find those whose pods count as ready before they serve, so that the next one may leave."""
    for other in of(seen.other_kafkas):
        asked = {pod.name: pod.readiness for pod in pods_of(seen, other)}
        bare = [name for name, probe in asked.items() if probe == "none"]
        port = [name for name, probe in asked.items() if probe == "port"]
        for names, what in (
            (bare, "have no readiness probe: each counts as ready as soon as its container runs"),
            (port, "are asked for an open port alone, which a broker has long before it serves"),
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


def images(seen: Surveyed) -> Iterator[Finding]:
    """Find images that a node which has them runs, and no other node can fetch."""
    for other in of(seen.other_kafkas):
        if BITNAMIS.fullmatch(other.image):
            yield producer_may_stall(
                "image-gone",
                other.title,
                f"it runs {other.image}, and Bitnami took its versions off Docker Hub in 2025: on "
                f"a node that has not run it before, its pod stays in ImagePullBackOff",
                "run a copy from a registry of your own, or the same version of bitnamilegacy, "
                "before any node leaves",
            )


def moving_images(seen: Surveyed) -> Iterator[Finding]:
    """Find images without a version: who starts next may be of another release."""
    for other in of(seen.other_kafkas):
        image = other.image
        tag = image.rpartition("/")[2].partition(":")[2]
        # What an operator makes is told in words.
        if " " not in image and "@" not in image and tag in {"", "latest"}:
            yield producer_may_stall(
                "image-moving",
                other.title,
                f"it runs {image}: a pod that starts on a node without it takes the release that "
                f"is newest then, which may not speak with the others or read their data",
                "name a version in its image",
            )


def rolling(seen: Surveyed) -> Iterator[Finding]:
    """Find sets that replace their pods at this moment, or stopped half-way."""
    for other in of(seen.other_kafkas):
        if other.rolling:
            yield producer_may_stall(
                "rolling",
                other.title,
                "its pods are of two descriptions: a roll is under way, or was left half-way, and "
                "takes the next pod as soon as the last one is ready",
                "let it end before any node leaves",
            )


def claims(seen: Surveyed) -> Iterator[Finding]:
    """Find claims that several pods have together, or that end by themselves."""
    for other in of(seen.other_kafkas):
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
                f"who scales it in, or deletes it to make it anew, deletes its brokers' data",
                "set both of it to Retain",
            )


def settings(seen: Surveyed) -> Iterator[Finding]:
    """Find settings, where they were read, by which one lost broker costs data or stops writers."""
    for other in of(seen.other_kafkas):
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


def unjudged_parts(seen: Surveyed) -> Iterator[Finding]:
    """Name what of them was not judged, and how clients come in."""
    for other in of(seen.other_kafkas):
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
        came = listing(other.ways_in) if other.ways_in else "no Service that selects its pods"
        yield not_judged(
            "not-strimzi",
            other.title,
            f"it runs {other.image}, which is {_whose(other)}: not judged were "
            f"{'; '.join(missing)}. Clients come in by {came}",
            "ask Kafka itself before each node: kafka-topics.sh --describe with "
            "--under-min-isr-partitions and --at-min-isr-partitions",
        )


def _whose(other: OtherKafka) -> str:
    return "not Strimzi's" if other.flavour is Flavour.KAFKA else f"{other.flavour} and not Kafka"
