"""Judges the ZooKeeper pods of a Kafka that keeps its metadata there: votes, nodes, zones.

Source: ZooKeeper's majority; a Kafka without one elects no leaders, as one without its quorum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from core.survey.facts import Surveyed, node_of, pods_of
from core.survey.finding import Finding, listing, producer_may_stall
from core.survey.kafka_facts import Kafka, ZooKeeperPod
from core.unknown import Unknown, of


def ensembles(seen: Surveyed) -> Iterator[Finding]:
    """Find ensembles whose majority is away, or goes with one node or one zone."""
    if isinstance(seen.zookeepers, Unknown):
        return
    for kafka in of(seen.kafkas):
        wanted = kafka.zookeeper_replicas
        if wanted:
            mine = [
                pod
                for pod in seen.zookeepers
                if (pod.namespace, pod.kafka) == (kafka.namespace, kafka.name)
            ]
            yield from _ensemble(kafka, wanted, mine, seen)


def _ensemble(
    kafka: Kafka, wanted: int, pods: list[ZooKeeperPod], seen: Surveyed
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
    kafka: Kafka, most_away: int, pods: list[ZooKeeperPod], seen: Surveyed
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
                f"{listing(crowded)}: without it they are no majority, and no partition gets "
                f"another leader",
                f"spread them over {kind}s (spec.zookeeper.template.pod), or migrate to KRaft",
            )
            return  # Those on one node are in one zone, too.


def _finding(kafka: Kafka, evidence: str, remedy: str) -> Finding:
    return producer_may_stall("zookeeper-votes", kafka.title, evidence, remedy)
