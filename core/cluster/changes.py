"""Decides what of a changed description a running cluster cannot follow, and what it feels.

`stillwater check NEW --against OLD`, and `preview` and `up` beside what Kafka's layer was last made
from. Sources: Strimzi 1.2.0 (a node keeps its id, the quorum its voters, a topic its replicas),
Kafka (partitions and the metadata version only rise), EBS (volumes only grow), EKS (one minor
version at a time, back by one alone: user guide, rollback-cluster.html), EC2 (a VPC keeps its first
block). What AWS keeps as it was made is in core.cluster.changes_kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from core import naming
from core.cluster import changes_kept
from core.cluster.changes_felt import given_up, kept_topics, shut_out
from core.cluster.kafka_releases import METADATA, metadata_level
from core.cluster.spec import ClusterSpec
from core.health.node import Role
from core.views import id_list

# Where another value makes everything anew beside what runs, or in its place.
_FOR_GOOD: Mapping[str, Callable[[ClusterSpec], object]] = {
    "name": lambda spec: spec.name,
    "environment": lambda spec: spec.environment,
    "region": lambda spec: spec.region,
    "kubernetes.namespace": lambda spec: spec.kubernetes.namespace,
    "network.vpc_cidr": lambda spec: spec.network.vpc_cidr,
    "network.existing.vpc_id": lambda spec: spec.network.existing and spec.network.existing.vpc_id,
}
# What clients have been told.
_TOLD: Mapping[str, Callable[[ClusterSpec], object]] = {
    "kafka.listener.advertised_host": lambda spec: spec.kafka.listener.advertised_host,
    "kafka.listener.first_advertised_port": lambda spec: spec.kafka.listener.first_advertised_port,
    "kafka.listener.bootstrap_port": lambda spec: spec.kafka.listener.bootstrap_port,
    "kafka.listener.authentication": lambda spec: spec.kafka.listener.authentication,
    "kafka.listener.tls": lambda spec: spec.kafka.listener.tls,
    "kafka.internal_listener.port": lambda spec: spec.kafka.internal_listener.port,
    "kafka.internal_listener.authentication": lambda spec: (
        spec.kafka.internal_listener.authentication
    ),
    "kafka.internal_listener.tls": lambda spec: spec.kafka.internal_listener.tls,
}


def refused_changes(before: ClusterSpec, after: ClusterSpec) -> list[str]:
    """Return a sentence for each change that a running cluster cannot follow."""
    made_anew = list(_made_anew(before, after))
    if made_anew:
        return made_anew
    return [
        *changes_kept.problems(before, after),
        *_machines(before, after),
        *_ids(before, after),
        *_voters(before, after),
        *_volumes(before, after),
        *_versions(before, after),
        *_topics(before, after),
    ]


def felt_changes(before: ClusterSpec, after: ClusterSpec) -> list[str]:
    """Return a sentence for each change that works, and that somebody should expect."""
    return [
        *_joining(before, after),
        *_leaving(before, after),
        *_clients(before, after),
        *_steps(before, after),
        *shut_out(before, after),
        *given_up(before, after),
        *changes_kept.protected(before, after),
    ]


def _made_anew(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    for key, value in _FOR_GOOD.items():
        was, is_ = value(before), value(after)
        if was != is_:
            yield (
                f"{key} was {was or 'not set'} and is {is_ or 'not set'}, by which what runs would "
                f"be made anew without its data; leave it, or describe another environment."
            )


def _running(spec: ClusterSpec, of: Callable[[Role], bool] = lambda _role: True) -> dict[int, str]:
    """Return the KafkaNodePool of each Kafka node of some roles that runs, by node id."""
    return {
        node_id: naming.kafka_node_pool(pool.name, zone)
        for pool in spec.pools
        if of(pool.role)
        for zone, ids in spec.node_ids_of(pool).items()
        for node_id in ids[: pool.nodes_per_zone]
    }


def _by_node_pool(spec: ClusterSpec) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for node_id, node_pool in _running(spec).items():
        found.setdefault(node_pool, []).append(node_id)
    return found


def _ids(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Refuse other ids for nodes that run: by their ids they are found behind the load balancer."""
    was, is_ = _by_node_pool(before), _by_node_pool(after)
    for node_pool in sorted(was.keys() & is_.keys()):
        kept = min(len(was[node_pool]), len(is_[node_pool]))
        if was[node_pool][:kept] != is_[node_pool][:kept]:
            yield (
                f"the nodes of {node_pool} have the ids {id_list(was[node_pool])}, and would be "
                f"looked for under {id_list(is_[node_pool])}: a node keeps its id, so that none "
                f"would be reached; leave the order of availability_zones (add at the end), "
                f"first_node_id and node_ids_per_zone."
            )
    owners, later = _running(before), _running(after)
    moved = {
        (owners[node_id], later[node_id])
        for node_id in owners.keys() & later.keys()
        if owners[node_id] not in is_
    }
    for old, new in sorted(moved):
        yield (
            f"nodes of {old} run under ids that {new} would take: no two nodes have one id, so "
            f"those of {new} could never start; leave the pool's name, or give {new} ids of its "
            f"own and take {old} away once it holds no partition."
        )


def _machines(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    if before.node_provisioner != after.node_provisioner:
        yield (
            f"node_provisioner was {before.node_provisioner} and is {after.node_provisioner}, by "
            f"which every machine of Kafka's would go at once, and others come after it; leave it, "
            f"or describe another environment and move the partitions there."
        )


def _voters(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    was, is_ = (set(_running(spec, lambda role: role.is_controller)) for spec in (before, after))
    if was != is_:
        changed = [
            *([f"{id_list(sorted(is_ - was))} would join"] if is_ - was else []),
            *([f"{id_list(sorted(was - is_))} would go"] if was - is_ else []),
        ]
        yield (
            f"of the controllers {' and '.join(changed)}, and the voters of a live cluster cannot "
            f"change; leave zones, nodes_per_zone and ids of the pools with controllers."
        )


def _volumes(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    if after.volumes.applies:
        # The sizes there are λ volumes' own, and a description's are their floor.
        return
    pools = {pool.name: pool for pool in after.pools}
    for pool in before.pools:
        later = pools.get(pool.name)
        if later is None:
            continue
        for number, (was, is_) in enumerate(zip(pool.volumes, later.volumes, strict=False)):
            if is_.size_gib < was.size_gib:
                yield (
                    f"volume {number} of pool {pool.name} has {was.size_gib} GiB and would have "
                    f"{is_.size_gib}, and EBS volumes never shrink; leave its size_gib, or add a "
                    f"pool with smaller ones and move the partitions there."
                )


def _versions(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    if _minor(after) < _minor(before) - 1:
        yield (
            f"kubernetes.version was {before.kubernetes.version} and is "
            f"{after.kubernetes.version}, and EKS goes back one minor version and no further; "
            f"leave it."
        )
    levels = [metadata_level(spec.kafka.metadata_version) for spec in (before, after)]
    if None not in levels and METADATA.index(str(levels[1])) < METADATA.index(str(levels[0])):
        yield (
            f"kafka.metadata_version was {before.kafka.metadata_version} and is "
            f"{after.kafka.metadata_version}, and that step cannot be undone; leave it."
        )


def _topics(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    for topic, later in kept_topics(before, after):
        if later.partitions < topic.partitions:
            yield (
                f"topic {topic.name} has {topic.partitions} partitions and would have "
                f"{later.partitions}, and Kafka takes none away; leave them, or make another topic."
            )


def _joining(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Say what brokers without a node keep Strimzi from, and that nodes may come first."""
    was, is_ = (_running(spec, lambda role: role.is_broker) for spec in (before, after))
    new = sorted(is_.keys() - was.keys())
    if not new:
        return
    first = (
        f"Bring the nodes first: `stillwater up {after.environment} --layer kafka --target "
        f"'nodes-*'`, and the whole once they are Ready (docs/how-to/grow-a-cluster.md)."
        if after.node_provisioner == "asg"
        else "Karpenter starts their nodes once the pods wait for them."
    )
    yield (
        f"the brokers {id_list(new)} would come: until they are Ready, Strimzi's operator does "
        f"nothing else for this Kafka, not even take the change back, for up to "
        f"{after.timings.strimzi_operation_timeout_seconds} s at a time "
        f"(timings.strimzi_operation_timeout_seconds). {first}"
    )


def _leaving(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    brokers, stay = (_running(spec, lambda role: role.is_broker) for spec in (before, after))
    gone = {node_id: node_pool for node_id, node_pool in brokers.items() if node_id not in stay}
    if gone:
        yield (
            f"the brokers {id_list(sorted(gone))} ({', '.join(sorted(set(gone.values())))}) would "
            f"go: Strimzi takes none away that holds partitions, so move those first "
            f"(kafka-reassign-partitions.sh)."
        )
    for pool in before.pools:
        later = next((each for each in after.pools if each.name == pool.name), None)
        if later is not None and len(later.volumes) < len(pool.volumes):
            yield (
                f"pool {pool.name} would have {len(later.volumes)} volumes where it has "
                f"{len(pool.volumes)}: move what is on the others first "
                f"(kafka-reassign-partitions.sh), as a broker does not start without a directory "
                f"that holds partitions."
            )


def _clients(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    for key, value in _TOLD.items():
        was, is_ = value(before), value(after)
        if was != is_:
            yield (
                f"{key} was {str(was).lower()} and is {str(is_).lower()}: brokers change one after "
                f"the other, and clients that know the old one lose each; tell them first."
            )


def _steps(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Say what goes one step at a time; who has gone some already, or AWS for them, knows it."""
    if _minor(after) > _minor(before) + 1:
        yield (
            f"kubernetes.version was {before.kubernetes.version} and is "
            f"{after.kubernetes.version}, and EKS goes up one minor version at a time; write "
            f"1.{_minor(before) + 1} first, unless the control plane is there already."
        )
    if _minor(after) == _minor(before) - 1:
        yield (
            f"kubernetes.version was {before.kubernetes.version} and is "
            f"{after.kubernetes.version}: EKS rolls back within seven days of an upgrade alone, "
            f"and after every node; see docs/how-to/upgrade-eks.md."
        )
    for topic, later in kept_topics(before, after):
        was, is_ = (
            each.replication_factor or spec.kafka.default_replication_factor
            for each, spec in ((topic, before), (later, after))
        )
        if was != is_:
            yield (
                f"topic {topic.name} had {was} replicas and would have {is_}, which the topic "
                f"operator does not change: reassign its partitions first "
                f"(kafka-reassign-partitions.sh), unless that is done, or set its "
                f"replication_factor to {was}."
            )


def _minor(spec: ClusterSpec) -> int:
    return int(spec.kubernetes.version.partition(".")[2])
