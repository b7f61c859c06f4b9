"""Judges what a Kafka resource and its topics say, and names what was asked for and not seen.

A cluster that sleeps or a node that is not listed would pass every other judge without a word.
Sources: Kafka's broker configuration and its defaults; Strimzi's Kafka resource and operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from core.availability.operator import remedy
from core.checks.facts import ClusterFacts, every_kafka, node_of, parts_of, pods_of, pool_names
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
from core.ground.fields import Unknown, known_items
from core.model.kafka import Kafka, Pod, PodSet

# Setting of a topic kind's replication -> its least in-sync replicas, with Kafka's defaults.
REPLICATION = {
    "default.replication.factor": ("min.insync.replicas", 1, 1),
    "offsets.topic.replication.factor": ("min.insync.replicas", 3, 1),
    "transaction.state.log.replication.factor": ("transaction.state.log.min.isr", 3, 2),
    "share.coordinator.state.topic.replication.factor": (
        "share.coordinator.state.topic.min.isr",
        3,
        2,
    ),
    "rlmm.config.remote.log.metadata.topic.replication.factor": (
        "rlmm.config.remote.log.metadata.topic.min.isr",
        3,
        2,
    ),
}
# Kafka makes these when they are first used; of others nobody may ever ask.
ALWAYS_MADE = ("default.replication.factor", "offsets.topic.replication.factor")
LEAST_REPLICAS = 3
LEAST_IN_SYNC = 2


@rule("kafkas", described=True)
def replication(seen: ClusterFacts) -> Iterator[Finding]:
    """Find replicas that one lost broker takes below what producers wait for."""
    for kafka in known_items(seen.kafkas):
        for setting, (in_sync_setting, default, in_sync_default) in REPLICATION.items():
            factor = number(kafka, setting, default)
            in_sync = number(kafka, in_sync_setting, in_sync_default)
            if factor is None or in_sync is None:
                continue
            if 1 < factor <= in_sync:
                yield producer_may_stall(
                    "no-spare-replica",
                    kafka.title,
                    f"{in_sync_setting} is {in_sync} and {setting} {factor}: with one replica away "
                    f"nothing can be written with acks=all, so that no broker may ever stop",
                    f"set {in_sync_setting} to {factor - 1}, or {setting} above it, and reassign "
                    f"the topics that exist",
                )
            elif factor < LEAST_REPLICAS:
                yield producer_may_stall(
                    "replication",
                    kafka.title,
                    f"{setting} is {factor} and {in_sync_setting} {in_sync}: of such topics one "
                    f"broker that leaves takes partitions below what producers wait for, or away",
                    f"set {setting} to {LEAST_REPLICAS} or more, above {in_sync_setting}, and "
                    f"reassign the topics that exist",
                )
            brokers = _brokers(kafka, seen)
            asked = setting in kafka.config or setting in ALWAYS_MADE
            if brokers and asked and factor > brokers:
                yield producer_may_stall(
                    "too-few-brokers",
                    kafka.title,
                    f"{setting} is {factor} and there are {brokers} brokers: no such topic can be "
                    f"made",
                    f"set {setting} to {brokers} at most, or add brokers",
                )
        yield from durability(kafka.title, {"min.insync.replicas": "1", **kafka.config})


def _brokers(kafka: Kafka, seen: ClusterFacts) -> int:
    """Return how many brokers there are, or are to be; 0 where nobody can tell."""
    wanted = sum(
        pool.replicas
        for pool in parts_of(seen.pools, kafka)
        if not pool.roles or "broker" in pool.roles
    )
    return max(wanted, kafka.replicas or 0, sum(pod.broker for pod in pods_of(seen, kafka)))


def durability(title: str, config: Mapping[str, str]) -> Iterator[Finding]:
    """Find settings that lose what was acknowledged; of what is not set nothing is said."""
    in_sync = whole_number(config.get("min.insync.replicas"))
    if in_sync is not None and in_sync < LEAST_IN_SYNC:
        yield broker_may_die(
            "min-insync",
            title,
            f"min.insync.replicas is {in_sync}: what one broker alone acknowledged is lost with it",
            f"set min.insync.replicas to {LEAST_IN_SYNC}",
        )
    if config.get("unclean.leader.election.enable", "").lower() == "true":
        yield broker_may_die(
            "unclean-election",
            title,
            "unclean.leader.election.enable is true: a replica that lags becomes leader when the "
            "others are gone, and what it lacks is lost",
            "set unclean.leader.election.enable to false",
        )
    if config.get("controlled.shutdown.enable", "").lower() == "false":
        yield producer_may_stall(
            "controlled-shutdown",
            title,
            "controlled.shutdown.enable is false: a broker stops with its leaders, whose clients "
            "wait until it is missed",
            "remove controlled.shutdown.enable",
        )


@rule("kafkas", "topics", described=True)
def topics(seen: ClusterFacts) -> Iterator[Finding]:
    """Find topics whose own settings are weaker than what one lost broker allows."""
    for kafka in known_items(seen.kafkas):
        default = number(kafka, "default.replication.factor", 1)
        least = number(kafka, "min.insync.replicas", 1)
        if default is None or least is None:
            continue
        weak: dict[str, list[str]] = {}
        for topic in parts_of(seen.topics, kafka):
            # What a topic leaves to the brokers is found at the brokers.
            own = topic.replicas is not None or topic.min_in_sync is not None
            replicas = default if topic.replicas is None else topic.replicas
            in_sync = least if topic.min_in_sync is None else topic.min_in_sync
            if own and replicas <= in_sync:
                check = "topic-no-spare-replica" if replicas > 1 else "topic-replicas"
                said = f"{topic.name} ({replicas} replicas, {in_sync} in sync)"
                weak.setdefault(check, []).append(said)
        for check, names in weak.items():
            yield producer_may_stall(
                check,
                kafka.title,
                f"one broker that leaves stops producers of {listing(names)}",
                "give these topics more replicas than must be in sync",
            )
        yield from _loose_topics(kafka, seen)


def _loose_topics(kafka: Kafka, seen: ClusterFacts) -> Iterator[Finding]:
    """Find topics whose own settings lose what was acknowledged."""
    mine = parts_of(seen.topics, kafka)
    # With one replica it is found among those that stop.
    kept = [t for t in mine if t.min_in_sync is not None and t.replicas != 1]
    if single := [t.name for t in kept if (t.min_in_sync or 0) < LEAST_IN_SYNC]:
        yield broker_may_die(
            "topic-min-insync",
            kafka.title,
            f"min.insync.replicas of {listing(single)} is below {LEAST_IN_SYNC}: what one broker "
            f"alone acknowledged is lost with it",
            f"set it to {LEAST_IN_SYNC}, or leave it to the brokers",
        )
    if unclean := [topic.name for topic in mine if topic.unclean]:
        yield broker_may_die(
            "topic-unclean",
            kafka.title,
            f"unclean.leader.election.enable of {listing(unclean)} is true: a replica that lags "
            f"becomes leader when the others are gone, and what it lacks is lost",
            "remove it from these topics",
        )


@rule("kafkas", described=True)
def listeners(seen: ClusterFacts) -> Iterator[Finding]:
    """Find listeners that ask nobody who they are."""
    for kafka in known_items(seen.kafkas):
        for listener in kafka.listeners:
            if listener.authentication is None:
                yield Finding(
                    "listener",
                    # Not everybody comes that far, where the network's plugin enforces policies.
                    Weight.ADVICE if listener.fenced else Weight.EXPOSED,
                    kafka.title,
                    f"listener {listener.name} does not authenticate clients"
                    + (
                        ", and only its networkPolicyPeers keep others off, if the network plugin "
                        "enforces NetworkPolicies"
                        if listener.fenced
                        else ""
                    ),
                    "give it an authentication: tls or scram-sha-512",
                )


@rule("kafkas", "pods")
def running(seen: ClusterFacts) -> Iterator[Finding]:
    """Find Kafkas that are not whole today: pods that are missing, placed nowhere, not ready."""
    if isinstance(seen.pods, Unknown):
        return
    for kafka in known_items(seen.kafkas):
        pods = pods_of(seen, kafka)
        pools = parts_of(seen.pools, kafka)
        # Without a pool the resource itself says how many.
        wanted = sum(pool.replicas for pool in pools) if pools else kafka.replicas or 1
        said = lacks(pods, wanted)
        if kafka.not_ready:
            said.append(f"Strimzi says: {kafka.not_ready}")
        if said:
            yield producer_may_stall(
                "not-running",
                kafka.title,
                "it is not whole: " + "; ".join(said),
                "look at the pods' events and at the operator's log before any node leaves",
            )


def lacks(pods: Sequence[Pod], wanted: int | None) -> list[str]:
    """Return what a Kafka's pods lack to be whole; None: nobody says how many there should be."""
    said = []
    if wanted is not None and len(pods) < wanted:
        said.append(f"{len(pods)} of {wanted} pods exist")
    if waiting := [pod.name for pod in pods if pod.node is None]:
        said.append(f"no node has taken {listing(waiting)}")
    if unready := [pod.name for pod in pods if pod.node and pod.ready is False]:
        said.append(f"{listing(unready)} not ready")
    if leaving := [pod.name for pod in pods if pod.leaving]:
        said.append(f"{listing(leaving)} on the way out")
    return said


@rule("kafkas")
def operators(seen: ClusterFacts) -> Iterator[Finding]:
    """Find Kafkas that nobody reconciles, or two operators do, or one that ignores something."""
    for kafka in known_items(seen.kafkas):
        if kafka.paused:
            yield producer_may_stall(
                "paused",
                kafka.title,
                "strimzi.io/pause-reconciliation is true. The operator makes lost pods again and "
                "does nothing else: no rolls, and no new certificates",
                "remove the annotation",
            )
        for ignored in kafka.ignored:
            yield producer_may_stall(
                "ignored",
                kafka.title,
                "Strimzi's operator did not carry out all of its description: "
                f"{ignored.message.rstrip('.') or ignored.reason}",
                remedy(ignored),
            )
        if isinstance(seen.operators, Unknown):
            continue
        watching = [each for each in seen.operators if each.looks_after(kafka)]
        if not watching:
            others = listing(each.title for each in seen.operators)
            yield producer_may_stall(
                "operator-missing",
                kafka.title,
                (
                    f"{others} does not watch its namespace, or its labels"
                    if others
                    else "no operator was found"
                )
                + ": a pod that is lost does not come back",
                "run Strimzi's cluster operator for its namespace and labels",
            )
        if watching and all(each.down for each in watching):
            yield producer_may_stall(
                "operator-down",
                kafka.title,
                f"no pod of {listing(each.title for each in watching)} is available: a broker that "
                f"is lost does not come back",
                "look at the operator's pods",
            )
        if watching and all(each.pod_sets_only for each in watching):
            yield producer_may_stall(
                "operator-partial",
                kafka.title,
                f"STRIMZI_POD_SET_RECONCILIATION_ONLY of {listing(e.title for e in watching)} is "
                f"true: it brings lost pods back, and rolls none that Drain Cleaner asks for",
                "set STRIMZI_POD_SET_RECONCILIATION_ONLY to false",
            )
        if len(watching) > 1:
            yield broker_may_die(
                "operator-several",
                kafka.title,
                f"{listing(each.title for each in watching)} all watch its namespace: each rolls "
                f"brokers without regard to the other",
                "leave one of them, or keep their namespaces apart (STRIMZI_NAMESPACE)",
            )


@rule("kafkas")
def carried_out(seen: ClusterFacts) -> Iterator[Finding]:
    """Find pod sets that bring no pod back, and rebalances that move replicas at this moment."""
    for kafka in known_items(seen.kafkas):
        for each in parts_of(seen.pod_sets, kafka):
            yield from _pod_set(each, kafka.title)
        if kafka.unreconciled:
            yield worth_knowing(
                "unreconciled",
                kafka.title,
                "it was changed since the operator carried it out last. The operator rolls its "
                "pods at any moment, or once a pause or an error is over",
                "let the operator carry it out before any node leaves",
            )
        if moving := [each.name for each in parts_of(seen.rebalances, kafka)]:
            yield producer_may_stall(
                "rebalancing",
                kafka.title,
                f"KafkaRebalance {listing(moving)} is carried out: replicas are moved, and a "
                f"broker that leaves meanwhile takes some that are whole nowhere else",
                "let it end, or stop it (strimzi.io/rebalance: stop), before any node leaves",
            )


def _pod_set(found: PodSet, title: str) -> Iterator[Finding]:
    named = f"StrimziPodSet {found.name}"
    if found.leaving:
        yield broker_may_die(
            "pod-set",
            title,
            f"{named} is deleted and not gone: Strimzi leaves its pods alone, and a lost one does "
            f"not come back",
            "see what holds it (finalizers), and let the operator make it again",
        )
    if found.error:
        yield producer_may_stall(
            "pod-set",
            title,
            f"{named} has an error ({found.error}): a pod that is lost may not come back",
            "settle what Strimzi names before any node leaves",
        )
    if found.outdated:
        yield producer_may_stall(
            "pod-set",
            title,
            f"{found.outdated} of its pods are not as {named} describes them: the operator rolls "
            f"them, one after the other",
            "let that end before any node leaves",
        )


@rule("kafkas")
def eras(seen: ClusterFacts) -> Iterator[Finding]:
    """Name what is judged in part: ZooKeeper, and the way from it to KRaft."""
    for kafka in known_items(seen.kafkas):
        if kafka.migrating:
            yield producer_may_stall(
                "migrating",
                kafka.title,
                "its metadata is on the way between ZooKeeper and KRaft: its pods are rolled "
                "several times, and controllers have just begun to vote",
                "let no node go until the migration is finalized",
            )
        elif kafka.zookeeper:
            yield worth_knowing(
                "zookeeper",
                kafka.title,
                "it keeps its metadata in ZooKeeper, which Strimzi 0.46 and Kafka 4.0 removed",
                "migrate it to KRaft",
            )


def number(kafka: Kafka, setting: str, default: int) -> int | None:
    """Return a setting's number, or None where it is written as something else."""
    return whole_number(kafka.config.get(setting, str(default)))


def whole_number(written: str | None) -> int | None:
    """Return a whole number, or None where none is written.

    >>> whole_number("3"), whole_number("three"), whole_number(None)
    (3, None, None)
    """
    try:
        return None if written is None else int(written)
    except ValueError:
        return None


@rule("kafkas", "pods")
def asleep(seen: ClusterFacts) -> Iterator[Finding]:
    """Find Kafkas that want no pods today, so that nothing below them was judged."""
    for kafka in known_items(seen.kafkas):
        if seen.pods == () or (known_items(seen.pods) and not pods_of(seen, kafka)):
            pools = parts_of(seen.pools, kafka)
            if pools and not sum(pool.replicas for pool in pools):
                yield not_judged(
                    "asleep",
                    kafka.title,
                    "its node pools want no pods today: its nodes, groups and volumes are unknown",
                    "survey it again when it runs",
                )


@rule("kafkas")
def settings(seen: ClusterFacts) -> Iterator[Finding]:
    """Find settings of replication that are written as something else than a number."""
    names = {each for setting, (in_sync, *_) in REPLICATION.items() for each in (setting, in_sync)}
    for kafka in known_items(seen.kafkas):
        mine = names & set(kafka.config)
        odd = [f"{n} {kafka.config[n]}" for n in mine if number(kafka, n, 1) is None]
        if odd:
            yield not_judged(
                "setting-odd",
                kafka.title,
                f"{listing(odd)} is not a whole number: the acknowledgements of producers are "
                "unknown",
                "write it as a whole number, which Kafka wants too",
            )


@rule("pods", "nodes")
def nodes(seen: ClusterFacts) -> Iterator[Finding]:
    """Find pods whose node, or whose node's machine, zone or state, is not known."""
    if isinstance(seen.nodes, Unknown):
        return
    for kafka in every_kafka(seen):
        pods = [pod for pod in pods_of(seen, kafka) if pod.node]
        held = {pod.node or "": node_of(pod, seen) for pod in pods}
        if gone := [name for name, node in held.items() if node is None]:
            yield not_judged(
                "node-unseen",
                kafka.title,
                f"its pods are on {listing(gone)}, which the API server does not list: what they "
                f"stand on was not judged",
            )
        known = [node for node in held.values() if node is not None]
        if foreign := [node.name for node in known if node.instance_id is None]:
            yield not_judged(
                "machine-unknown",
                kafka.title,
                f"{listing(foreign)} is not an EC2 instance by its providerID (Fargate, hybrid, or "
                "not AWS's): its end and its replacement are unknown",
                "run brokers on EC2 instances, or judge these machines yourself",
            )
        instances = None if isinstance(seen.instances, Unknown) else seen.instances
        if lost := [
            node.name
            for node in known
            if instances is not None and node.instance_id and node.instance_id not in instances
        ]:
            yield not_judged(
                "instance-unseen",
                kafka.title,
                f"EC2 does not know the machines of {listing(lost)}: they are gone, or of another "
                f"account or region, and were not judged",
            )
        if nowhere := [node.name for node in known if node.zone is None]:
            yield not_judged(
                "zone-unknown",
                kafka.title,
                f"{listing(nowhere)} says nothing of its zone: how brokers are spread was not "
                f"judged",
                "label it topology.kubernetes.io/zone",
            )
        if silent := [pod.name for pod in pods if pod.ready is None]:
            yield not_judged(
                "pod-silent",
                kafka.title,
                f"the status of {listing(silent)} says nothing of its readiness",
            )


@rule("volumes", "pods")
def volumes(seen: ClusterFacts) -> Iterator[Finding]:
    """Find claims whose volume or class is not there to be judged."""
    if isinstance(seen.volumes, Unknown):
        return
    read = {volume.title for volume in seen.volumes}
    claims = {f"{pod.namespace}/{claim}" for pod in known_items(seen.pods) for claim in pod.claims}
    if missing := claims - read:
        yield not_judged(
            "claim-unseen",
            "volumes of Kafka",
            f"{listing(missing)} is not among the claims: what becomes of its data was not judged",
        )
    unbound = [volume.title for volume in seen.volumes if volume.reclaim is None]
    if unbound:
        yield not_judged(
            "volume-unseen",
            "volumes of Kafka",
            f"{listing(unbound)} has no volume that is listed: whether it survives its claim was "
            f"not judged",
        )
    classes = {v.storage_class for v in seen.volumes if v.storage_class and v.binding is None}
    for name in sorted(each for each in classes if each):
        yield not_judged(
            "class-unseen",
            f"StorageClass {name}",
            "it is not listed: whether its volumes grow, and bind where the pod can run, was not "
            "judged",
        )


@rule("node_pools")
def node_pools(seen: ClusterFacts) -> Iterator[Finding]:
    """Find NodePools that nodes name and nobody lists."""
    if isinstance(seen.node_pools, Unknown):
        return
    named = set(pool_names(seen))
    for name in sorted(named - set(seen.node_pools)):
        yield not_judged(
            "pool-unseen",
            f"NodePool {name}",
            "nodes of Kafka are labelled with it and it is not listed: how it replaces them was "
            "not judged",
        )
    classes = seen.node_classes
    for name in sorted(named & set(seen.node_pools)):
        wanted = seen.node_pools[name].node_class
        if wanted and not isinstance(classes, Unknown) and wanted not in classes:
            yield not_judged(
                "class-unseen",
                f"NodePool {name}",
                f"it names {wanted}, which is not listed: in which subnets and of which image its "
                f"next node starts was not judged",
            )
