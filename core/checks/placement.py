"""Judges where the pods of a Kafka stand: zones, nodes, the quorum's votes, time to stop.

Sources: Kafka's rack awareness and controlled shutdown (docs/adr/0005), KRaft's majority.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from core.checks.facts import (
    ClusterFacts,
    every_kafka,
    machine_of,
    node_of,
    parts_of,
    pods_of,
    zone_of,
)
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
from core.checks.kafka import number
from core.ground.constants import CONTROLLED_SHUTDOWN_SECONDS
from core.ground.fields import known_items
from core.model.kafka import Flavour, Kafka, OtherKafka, Pod

LEAST_VOTERS = 3
SPOT = "spot"
# Labels that tell hosts apart, or nothing.
NO_ZONES = (
    "kubernetes.io/hostname",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/region",
)


@rule("kafkas", "pods", "nodes", described=True)
def zones(seen: ClusterFacts) -> Iterator[Finding]:
    """Find brokers that stand in fewer zones than a partition has replicas."""
    for kafka in known_items(seen.kafkas):
        # A pod that no node has taken is found where pods are counted.
        placed = [zone_of(pod, seen) for pod in pods_of(seen, kafka) if pod.broker and pod.node]
        found = {zone for zone in placed if zone}
        factor = number(kafka, "default.replication.factor", 1) or 1
        if not found or None in placed:
            continue
        if len(found) == 1 or len(found) < min(factor, len(placed)):
            yield producer_may_stall(
                "zones",
                kafka.title,
                f"{len(placed)} brokers stand in {listing(found)} and a partition has {factor} "
                f"replicas: a zone that fails takes more than one of them, or all",
                "spread the brokers over as many zones as there are replicas",
            )
        if not kafka.rack_aware and len(found) > 1:
            yield producer_may_stall(
                "rack",
                kafka.title,
                "spec.kafka.rack is missing: Kafka places replicas without regard to zones",
                "set spec.kafka.rack.topologyKey to topology.kubernetes.io/zone, and rebalance",
            )
        elif len(found) > 1:
            yield from _racks(kafka, seen)


def _racks(kafka: Kafka, seen: ClusterFacts) -> Iterator[Finding]:
    """Find racks that are no zones, by the labels of the nodes that brokers stand on."""
    key = kafka.rack_key
    if key is None:
        yield not_judged(
            "rack-unknown",
            kafka.title,
            "spec.kafka.rack names no topologyKey: how Kafka tells brokers apart was not judged",
            "set spec.kafka.rack.topologyKey to topology.kubernetes.io/zone, and rebalance",
        )
        return
    nodes = [node for pod in pods_of(seen, kafka) if pod.broker and (node := node_of(pod, seen))]
    racks = {(node.zone, node.labels.get(key)) for node in nodes if key in node.labels}
    zones = {zone for zone, _ in racks}
    split = key in NO_ZONES or len({rack for _, rack in racks}) > len(zones)
    joined = len({rack for _, rack in racks}) < len(zones)
    if split or joined:
        yield producer_may_stall(
            "rack",
            kafka.title,
            f"spec.kafka.rack.topologyKey is {key}"
            + (
                ", which is the same in several zones: Kafka may place all replicas in one"
                if joined and not split
                else ": Kafka spreads replicas over these, and not over zones"
            ),
            "set spec.kafka.rack.topologyKey to topology.kubernetes.io/zone, and rebalance",
        )


@rule("kafkas", "pods", described=True)
def quorum(seen: ClusterFacts) -> Iterator[Finding]:
    """Find controllers whose majority one node or one zone takes along."""
    for kafka in known_items(seen.kafkas):
        voters = [pod for pod in pods_of(seen, kafka) if pod.controller]
        if not voters:
            continue
        spare = (len(voters) - 1) // 2
        missing = max(0, _voters_wanted(kafka, seen) - len(voters))
        if missing:
            yield from _incomplete(kafka, len(voters), missing)
        elif len(voters) < LEAST_VOTERS:
            yield producer_may_stall(
                "quorum",
                kafka.title,
                f"of {len(voters)} controllers none can leave: the rest lacks a majority",
                f"run {LEAST_VOTERS} controllers; a static quorum is not enlarged in place",
            )
        else:
            yield from _together(kafka, voters, spare, seen)
        if len(voters) % 2 == 0 and len(voters) > LEAST_VOTERS and not missing:
            yield worth_knowing(
                "quorum-even",
                kafka.title,
                f"it has {len(voters)} controllers, which bear the loss of {spare} as "
                f"{len(voters) - 1} would",
                "run an odd number of controllers in the next cluster",
            )
        if both := sorted(pod.name for pod in voters if pod.broker):
            yield worth_knowing(
                "combined",
                kafka.title,
                f"{listing(both)} are broker and controller in one: whatever leaves takes a vote "
                f"of the quorum along, and a broker under load delays the metadata",
                "give the next cluster a node pool of controllers alone",
            )


def _voters_wanted(kafka: Kafka, seen: ClusterFacts) -> int:
    """Return how many controllers the node pools want; 0 where none says so."""
    pools = parts_of(seen.pools, kafka)
    return sum(pool.replicas for pool in pools if "controller" in pool.roles)


def _incomplete(kafka: Kafka, there: int, missing: int) -> Iterator[Finding]:
    wanted = there + missing
    spare = there - (wanted // 2 + 1)
    if spare < 1:
        yield producer_may_stall(
            "quorum",
            kafka.title,
            f"{there} of {wanted} controllers exist: "
            + ("none of them can leave" if spare == 0 else "they are no majority"),
            "bring the missing ones back before any node leaves",
        )


def _together(kafka: Kafka, voters: list[Pod], spare: int, seen: ClusterFacts) -> Iterator[Finding]:
    places = {
        "node": Counter(pod.node for pod in voters if pod.node),
        "zone": Counter(zone for pod in voters if (zone := zone_of(pod, seen))),
    }
    for kind, counts in places.items():
        # All of them in one zone is a cluster of one zone, which is said of its brokers.
        if kind == "zone" and len(counts) == 1:
            continue
        for place, count in sorted(counts.items()):
            if count > spare:
                yield producer_may_stall(
                    f"quorum-{kind}",
                    kafka.title,
                    f"{count} of {len(voters)} controllers stand on {kind} {place}: without it the "
                    "rest lacks a majority",
                    f"spread the controllers so that no {kind} holds more than {spare} of them",
                )


@rule("pods", described=True)
def grace(seen: ClusterFacts) -> Iterator[Finding]:
    """Find brokers that are killed while Kafka still hands over its leaders."""
    for kafka in every_kafka(seen):
        # Redpanda has no controlled shutdown of Kafka's.
        if isinstance(kafka, OtherKafka) and kafka.flavour is Flavour.REDPANDA:
            continue
        left = {
            pod.name: pod.grace_seconds - pod.pre_stop_seconds
            for pod in pods_of(seen, kafka)
            if pod.broker
        }
        short = {name: time for name, time in left.items() if time <= CONTROLLED_SHUTDOWN_SECONDS}
        if short:
            slept = any(pod.pre_stop_seconds for pod in pods_of(seen, kafka))
            yield broker_may_die(
                "grace",
                kafka.title,
                f"terminationGracePeriodSeconds of {listing(short)} "
                + ("leaves, after what their preStop sleeps, " if slept else "is ")
                + (
                    f"{min(short.values())}, and a broker waits up to "
                    f"{CONTROLLED_SHUTDOWN_SECONDS} s for its controlled shutdown. It is killed "
                    "meanwhile, and recovers its logs at the next start"
                ),
                f"set terminationGracePeriodSeconds of its pods (Strimzi's template.pod) above "
                f"{CONTROLLED_SHUTDOWN_SECONDS}, for example to 330"
                + (", and what preStop sleeps more" if slept else ""),
            )


@rule("pods")
def nodes(seen: ClusterFacts) -> Iterator[Finding]:
    """Find brokers that share a node, or may."""
    for kafka in every_kafka(seen):
        brokers = [pod for pod in pods_of(seen, kafka) if pod.broker]
        shared = {
            node: count
            for node, count in Counter(pod.node for pod in brokers if pod.node).items()
            if count > 1
        }
        free = [pod.name for pod in brokers if not pod.alone_on_its_node]
        if shared:
            held = listing(f"{count} on {node}" for node, count in shared.items())
            yield producer_may_stall(
                "shared-node",
                kafka.title,
                f"brokers share a node: {held}; all of them leave with it",
                "require podAntiAffinity on kubernetes.io/hostname, and roll them apart",
            )
        elif free and len(brokers) > 1:
            yield producer_may_stall(
                "anti-affinity",
                kafka.title,
                f"nothing forbids two brokers on one node: {listing(free)} have neither a "
                f"required podAntiAffinity nor a strict spread over kubernetes.io/hostname",
                "require podAntiAffinity on kubernetes.io/hostname in their affinity (Strimzi's "
                "template.pod.affinity)",
            )


@rule("pods", "nodes")
def ailing(seen: ClusterFacts) -> Iterator[Finding]:
    """Find pods of Kafka on nodes that do not answer."""
    for kafka in every_kafka(seen):
        held = {pod.node: node_of(pod, seen) for pod in pods_of(seen, kafka)}
        for ready, said in ((False, "not Ready"), (None, "silent about being Ready")):
            names = [node.name for node in held.values() if node and node.ready is ready]
            if names:
                yield Finding(
                    "node-not-ready",
                    Weight.PRODUCER if ready is False else Weight.UNKNOWN,
                    kafka.title,
                    f"its pods are on {listing(names)}, which "
                    f"{'is' if len(names) == 1 else 'are'} {said}",
                    "look at these nodes before any other leaves",
                )


@rule("pods", "nodes")
def unwell(seen: ClusterFacts) -> Iterator[Finding]:
    """Find nodes of Kafka that somebody empties, or that say of themselves what ails them."""
    for kafka in every_kafka(seen):
        held = [node_of(pod, seen) for pod in pods_of(seen, kafka)]
        nodes = {node.name: node for node in held if node is not None}
        if leaving := [name for name, node in nodes.items() if node.leaving]:
            yield producer_may_stall(
                "node-leaving",
                kafka.title,
                f"its pods are on {listing(leaving)}, cordoned or marked for a drain. A pod that "
                "stops does not start there again",
                "let the drain end before any other node leaves, or uncordon them",
            )
        ailing = [f"{name} ({', '.join(n.ailments)})" for name, n in nodes.items() if n.ailments]
        if ailing:
            yield producer_may_stall(
                "node-unwell",
                kafka.title,
                f"its pods are on {listing(ailing)}. Under pressure the kubelet evicts pods "
                "without asking any budget, and a sick machine is soon replaced",
                "see to these nodes before any other leaves",
            )


@rule("pods", "nodes")
def spot(seen: ClusterFacts) -> Iterator[Finding]:
    """Find brokers and controllers whose machine AWS takes back by itself."""
    for kafka in every_kafka(seen):
        sold: dict[str, list[str]] = {}
        for pod in pods_of(seen, kafka):
            if how := _purchase_option(pod, seen):
                sold.setdefault(how, []).append(pod.name)
        for how, names in sold.items():
            yield broker_may_die(
                "spot",
                kafka.title,
                f"{listing(names)} run on spot instances: AWS takes them back with two minutes' "
                f"notice, several of a zone at once"
                if how == SPOT
                else f"{listing(names)} run on instances sold as {how}: AWS ends them when that "
                f"does, whatever runs there",
                "run Kafka on on-demand or reserved instances",
            )


def _purchase_option(pod: Pod, seen: ClusterFacts) -> str | None:
    """Return how AWS sold a pod's machine, where that is not on demand."""
    node = node_of(pod, seen)
    if node is None:
        return None
    if (instance := machine_of(node, seen)) is None:
        return SPOT if node.spot else None
    return instance.lifecycle
