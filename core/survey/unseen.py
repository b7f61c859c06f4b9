"""Names what was asked for and not seen: of such a part nothing good is said either.

A cluster that sleeps, a node or claim that is not listed, a setting that is no number: each would
pass every other judge without a word.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.facts import Surveyed, every_kafka, node_of, of_kafka, pods_of, pool_names
from core.survey.finding import Finding, listing, not_judged
from core.survey.kafka import REPLICATION, number
from core.unknown import Unknown, of


def asleep(seen: Surveyed) -> Iterator[Finding]:
    """Find Kafkas that want no pods today, so that nothing below them was judged."""
    for kafka in of(seen.kafkas):
        if seen.pods == () or (of(seen.pods) and not pods_of(seen, kafka)):
            pools = of_kafka(seen.pools, kafka)
            if pools and not sum(pool.replicas for pool in pools):
                yield not_judged(
                    "asleep",
                    kafka.title,
                    "its node pools want no pods today: of its nodes, groups and volumes nothing "
                    "was judged",
                    "survey it again when it runs",
                )


def settings(seen: Surveyed) -> Iterator[Finding]:
    """Find settings of replication that are written as something else than a number."""
    names = {each for setting, (in_sync, *_) in REPLICATION.items() for each in (setting, in_sync)}
    for kafka in of(seen.kafkas):
        mine = names & set(kafka.config)
        odd = [f"{n} {kafka.config[n]}" for n in mine if number(kafka, n, 1) is None]
        if odd:
            yield not_judged(
                "setting-odd",
                kafka.title,
                f"{listing(odd)} is no whole number: what producers wait for was not judged",
                "write it as a whole number, which Kafka wants too",
            )


def nodes(seen: Surveyed) -> Iterator[Finding]:
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
                f"{listing(foreign)} is no EC2 instance by its providerID (Fargate, hybrid, or not "
                f"AWS's): what ends or replaces it was not judged",
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


def volumes(seen: Surveyed) -> Iterator[Finding]:
    """Find claims whose volume or class is not there to be judged."""
    if isinstance(seen.volumes, Unknown):
        return
    read = {volume.title for volume in seen.volumes}
    claims = {f"{pod.namespace}/{claim}" for pod in of(seen.pods) for claim in pod.claims}
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


def node_pools(seen: Surveyed) -> Iterator[Finding]:
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
