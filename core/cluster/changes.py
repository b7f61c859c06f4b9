"""Decides what of a changed description a running cluster cannot follow, and what it feels.

`stillwater check NEW --against OLD` asks, and `preview` and `up` beside what Kafka's layer was last
made from: what is refused, whom it shuts out, what is no longer kept. Sources: Strimzi 1.2.0 (a
node keeps its id, the quorum its voters, a topic its replicas), Kafka (partitions and the metadata
version only rise), EBS (volumes only grow and keep their key), EKS (one minor version at a time,
rollback-cluster.html; network-reqs.html; CreateCluster), EC2 (a VPC keeps its first block),
pulumi-aws#4226 (a target group is not replaced while a listener uses it), CreateListener.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter

from core.cluster.addresses import routes
from core.cluster.kafka import Topic, User
from core.cluster.kafka_settings import METADATA, metadata_level
from core.cluster.network import service_cidr
from core.cluster.spec import ClusterSpec
from core.ground import naming
from core.ground.words import id_list

# Settings of a topic, and of the brokers for the topics that say nothing, by which records end.
_ENDS = ("retention.ms", "retention.bytes", "cleanup.policy")
_ENDS_OF_BROKERS = tuple(f"log.{kind}" for kind in (*_ENDS, "retention.hours", "retention.minutes"))


def _differing(before: ClusterSpec, after: ClusterSpec, *keys: str) -> Iterator[str]:
    """Yield of each key whose value differs what it was and is: KEY was A and is B."""
    for key in keys:
        was, is_ = (_value(spec, key) for spec in (before, after))
        if was != is_:
            yield f"{key} was {_text(was)} and is {_text(is_)}"


def _value(spec: ClusterSpec, key: str) -> object:
    found: object = spec
    for part in key.split("."):
        found = None if found is None else getattr(found, part)
    return found


def _text(value: object) -> str:
    if value is None:
        return "not set"
    return str(value).lower() if isinstance(value, bool) else str(value)


def shut_out(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each kind of client that would be refused, or find nobody."""
    if before.kafka.authorization != after.kafka.authorization:
        yield (
            "kafka.authorization becomes simple: clients without an ACL are refused, from the "
            "first broker on; write the ACLs of every client first."
            if after.kafka.authorization == "simple"
            else (
                "kafka.authorization becomes none: every client may do everything, and ACLs have "
                "no effect."
            )
        )
    yield from _users(before, after)
    for key in ("load_balancer.client_cidrs", "network.secondary_cidrs"):
        was, is_ = (attrgetter(key)(spec) for spec in (before, after))
        if gone := sorted(set(was) - set(is_)):
            yield f"{key} no longer names {', '.join(gone)}: clients from there are cut off."
    yield from _endpoints(before, after)
    was_zone, is_zone = before.load_balancer.private_zone, after.load_balancer.private_zone
    if was_zone is not None and was_zone != is_zone:
        yield (
            f"load_balancer.private_zone was {was_zone} and is {is_zone or 'not set'}: the zone "
            f"goes with its record, and clients find {before.kafka.listener.advertised_host} only "
            "where another DNS zone answers for it."
        )
    for change in _differing(before, after, "kafka.listener.name"):
        yield (
            f"{change}: bindings look for Services of the new name, which Strimzi makes broker by "
            "broker, and until then no client comes in from outside."
        )
    if before.connect is not None and after.connect is None:
        yield "connect is left out: its workers and every connector on them would stop."


def _endpoints(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Sources: ModifyVpcEndpointServicePermissions, DeleteVpcEndpointServiceConfigurations."""
    was, is_ = (set(spec.load_balancer.endpoint_principals) for spec in (before, after))
    if was and not is_:
        yield (
            "load_balancer.endpoint_principals names no principal any longer: the endpoint "
            "service goes. AWS deletes none with connected endpoints; reject those first (`aws "
            "ec2 reject-vpc-endpoint-connections`)."
        )
    elif gone := sorted(was - is_):
        yield (
            f"load_balancer.endpoint_principals no longer names {', '.join(gone)}: they may "
            f"connect no further endpoint, and those that are connected stay until you reject "
            f"them (`aws ec2 reject-vpc-endpoint-connections`)."
        )


def _users(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    later = {user.name: user for user in after.users}
    if gone := sorted(user.name for user in before.users if user.name not in later):
        yield (
            f"users no longer names {', '.join(gone)}: with them go their Secrets and ACLs, and "
            f"clients that use them are refused."
        )
    for user in before.users:
        stays = later.get(user.name)
        if stays is not None and (lost := _lost_access(user, stays)):
            yield f"user {user.name} would lose {lost}."


def _lost_access(was: User, is_: User) -> str:
    if was.authentication != is_.authentication:
        return f"its credentials: authentication was {was.authentication} and is " + str(
            is_.authentication
        )
    gone = [acl for acl in was.acls if acl not in is_.acls]
    return ", ".join(
        f"{'/'.join(acl.operations)} on {acl.resource} {acl.name or ''}".rstrip() for acl in gone
    )


def given_up(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each thing that is kept or protected today and would not be."""
    if after.ephemeral and not before.ephemeral:
        yield (
            "ephemeral becomes true: nothing is protected from `destroy` any more, Kafka's volumes "
            "among it."
        )
    if before.snapshots is not None and after.snapshots is None:
        yield "snapshots is null: Kafka's volumes get no further snapshots."
    if before.eviction_gate is not None and after.eviction_gate is None:
        yield "eviction_gate is null: no drainer of Kafka's pods asks Kafka any more."
    for change in _differing(before, after, "encryption_key"):
        yield (
            f"{change}: volumes that are there keep their key, which must stay enabled; only new "
            "ones get the other."
        )
    yield from _subnets(before, after)
    policies = [spec.kubernetes.upgrade_policy for spec in (before, after)]
    if policies == ["extended", "standard"]:
        # EKS's user guide, disable-extended-support.html.
        yield (
            f"kubernetes.upgrade_policy becomes standard, which EKS refuses of a cluster that has "
            f"entered extended support; if {before.kubernetes.version} has, raise "
            f"kubernetes.version first."
        )
    for change in _differing(before, after, "kubernetes.system_instance_type"):
        yield (
            f"{change}: every zone's managed node group is deleted before another is made. "
            "Meanwhile no operator, drainer or load balancer controller runs; do it while no "
            "broker leaves."
        )
    for change in _differing(before, after, "strimzi.operator", "strimzi.namespace"):
        yield (
            f"{change}: the operator that runs is taken away, and until another watches "
            f"{after.kubernetes.namespace} a pod that is lost does not come back."
        )
    yield from _records(before, after)


def _subnets(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    was, is_ = before.network.existing, after.network.existing
    if was is None or is_ is None:
        return
    moved = [
        f"{zone} ({subnet} to {is_.private_subnet_ids[zone]})"
        for zone, subnet in sorted(was.private_subnet_ids.items())
        if is_.private_subnet_ids.get(zone, subnet) != subnet
    ]
    if moved:
        yield (
            f"network.existing.private_subnet_ids changes in {', '.join(moved)}: AWS replaces the "
            "load balancer under another name, and clients are cut off meanwhile. Nodes stay in "
            "the old subnets until you rotate them, and the control plane forever."
        )


def kept_topics(before: ClusterSpec, after: ClusterSpec) -> Iterator[tuple[Topic, Topic]]:
    """Yield the topics that both have, each as it was and as it is."""
    topics = {topic.name: topic for topic in after.topics}
    return ((each, topics[each.name]) for each in before.topics if each.name in topics)


def _records(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    for topic, later in kept_topics(before, after):
        if later.partitions > topic.partitions:
            yield (
                f"topic {topic.name} gets {later.partitions - topic.partitions} partitions more: "
                f"records of one key go to another partition from then on, so their order is lost "
                f"once."
            )
        yield from _shortened_retention(f"topic {topic.name}", _ENDS, topic.config, later.config)
    yield from _shortened_retention(
        "kafka.config", _ENDS_OF_BROKERS, before.kafka.config, after.kafka.config
    )


def _shortened_retention(
    whose: str,
    settings: tuple[str, ...],
    was: Mapping[str, str | int | bool],
    later: Mapping[str, str | int | bool],
) -> Iterator[str]:
    for key in settings:
        if key in later and str(later[key]) != str(was.get(key)):
            yield (
                f"{key} of {whose} was {was.get(key, 'not set')} and is {later[key]}: records "
                f"beyond it are deleted within minutes, and do not come back."
            )


def problems(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each change that AWS refuses, or that would replace the cluster."""
    yield from _zones(before, after)
    yield from _services(before, after)
    yield from _ports(before, after)
    yield from _key(before, after)


def _zones(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Refuse to take away a zone of a VPC of ours: its subnet goes first, and is in use."""
    gone = [each for each in before.availability_zones if each not in after.availability_zones]
    if gone and after.network.existing is None:
        yield (
            f"availability_zones no longer names {', '.join(gone)}. AWS keeps subnets with "
            "interfaces of the control plane or load balancer; keep the zone, and take pools out "
            "of it by their zones."
        )


def _services(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    was, is_ = (service_cidr(spec.network.blocks) for spec in (before, after))
    if was != is_:
        yield (
            f"network.secondary_cidrs changes the block of Kubernetes' Services from {was} to "
            f"{is_}. EKS would replace the cluster for it; leave out of secondary_cidrs the block "
            f"that overlaps {was}, or keep the former one."
        )


def _ports(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    was, is_ = before.kafka.listener, after.kafka.listener
    for change in _differing(before, after, "kafka.listener.port"):
        yield (
            f"{change}, and a target group keeps its port while a listener uses it; leave it, "
            "since clients use the ports of the load balancer."
        )
    moves = (was.first_advertised_port, was.bootstrap_port) != (
        is_.first_advertised_port,
        is_.bootstrap_port,
    )
    # Where nodes change their ids instead, core.cluster.changes says so.
    owners = {route.port: route.key for route in routes(before) if moves}
    taken = [r.port for r in routes(after) if owners.get(r.port, r.key) != r.key]
    if taken:
        yield (
            f"kafka.listener would give port {min(taken)} of the load balancer to another broker, "
            f"and {len(taken)} ports in all. AWS takes one listener at a port; choose unused ones "
            "by first_advertised_port and bootstrap_port."
        )


def _key(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Refuse to give up a key: the grants go by which its volumes are attached."""
    was, is_ = before.encryption_key, after.encryption_key
    if was is not None and was != is_:
        yield (
            f"encryption_key was {was} and is {is_ or 'not set'}. Volumes keep their key, and "
            "nodes would lose the grants to attach them; leave it, or move the partitions to "
            "another environment."
        )


def protected(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Say where `up` stops, since what would go is protected (infra.tags) until it is not."""
    going = [] if before.ephemeral else list(_protected_losses(before, after))
    if going:
        yield (
            f"{', '.join(going)} would be deleted or replaced, and what is protected is not: `up` "
            f"stops there; once that is meant, take its protection away (`pulumi state unprotect`)."
        )


def _protected_losses(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    was, is_ = before.load_balancer, after.load_balancer
    if was.private_zone not in {None, is_.private_zone}:
        yield f"the private zone {was.private_zone}"
    if was.endpoint_principals and not is_.endpoint_principals:
        yield "the endpoint service"
    if _moved_subnets(before, after):
        yield "the load balancer"
    if before.encryption_key != after.encryption_key:
        yield "the storage class of Kafka's volumes"
    if _own_topic(before) and not _own_topic(after):
        yield "the key of the alarms' topic"
    for gone in sorted(_node_pools(before) - _node_pools(after)):
        yield f"the KafkaNodePool {gone}"


def _moved_subnets(before: ClusterSpec, after: ClusterSpec) -> bool:
    was, is_ = before.network.existing, after.network.existing
    if was is None or is_ is None:
        return False
    return not set(was.private_subnet_ids.values()) <= set(is_.private_subnet_ids.values())


def _own_topic(spec: ClusterSpec) -> bool:
    return spec.alerts.enabled and spec.alerts.sns_topic_arn is None


def _node_pools(spec: ClusterSpec) -> set[str]:
    return {
        naming.kafka_node_pool(pool.name, zone)
        for pool in spec.pools
        for zone in spec.zones_of(pool)
    }


# Where another value makes everything anew beside what runs, or in its place.
_FOR_GOOD = (
    *("name", "environment", "region"),
    *("kubernetes.namespace", "network.vpc_cidr", "network.existing.vpc_id"),
)
# What clients have been told.
_TOLD = (
    "kafka.listener.advertised_host",
    "kafka.listener.first_advertised_port",
    "kafka.listener.bootstrap_port",
    "kafka.listener.authentication",
    "kafka.listener.tls",
    "kafka.internal_listener.port",
    "kafka.internal_listener.authentication",
    "kafka.internal_listener.tls",
)


def refused_changes(before: ClusterSpec, after: ClusterSpec) -> list[str]:
    """Return a sentence for each change that a running cluster cannot follow."""
    made_anew = list(_made_anew(before, after))
    if made_anew:
        return made_anew
    return [
        *problems(before, after),
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
        *protected(before, after),
    ]


def _made_anew(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    for change in _differing(before, after, *_FOR_GOOD):
        yield (
            f"{change}, which would replace the cluster without its data; leave it, or describe "
            "another environment."
        )


def _ids_of_pools(spec: ClusterSpec) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for node_id, node_pool in spec.running_nodes().items():
        found.setdefault(node_pool, []).append(node_id)
    return found


def _ids(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Refuse other ids for nodes that run: by their ids they are found behind the load balancer."""
    was, is_ = _ids_of_pools(before), _ids_of_pools(after)
    for node_pool in sorted(was.keys() & is_.keys()):
        kept = min(len(was[node_pool]), len(is_[node_pool]))
        if was[node_pool][:kept] != is_[node_pool][:kept]:
            yield (
                f"the nodes of {node_pool} have the ids {id_list(was[node_pool])}, and Stillwater "
                f"would look for {id_list(is_[node_pool])}. A node keeps its id; leave the order "
                "of availability_zones (add at the end), first_node_id and node_ids_per_zone."
            )
    owners, later = before.running_nodes(), after.running_nodes()
    moved = {
        (owners[node_id], later[node_id])
        for node_id in owners.keys() & later.keys()
        if owners[node_id] not in is_
    }
    for old, new in sorted(moved):
        yield (
            f"nodes of {old} run under ids that {new} would take. No two nodes have one id, so "
            f"those of {new} could never start. Leave the pool's name, or give {new} ids of its "
            f"own and take {old} away once it holds no partition."
        )


def _machines(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    for change in _differing(before, after, "node_provisioner"):
        yield (
            f"{change}, which would replace every machine of Kafka's at once; leave it, or "
            "describe another environment and move the partitions there."
        )


def _voters(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    was, is_ = (
        set(spec.running_nodes(lambda role: role.is_controller)) for spec in (before, after)
    )
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
                    f"{is_.size_gib}. EBS volumes never shrink; leave its size_gib, or move the "
                    "partitions to a pool with smaller volumes."
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
    was, is_ = (spec.running_nodes(lambda role: role.is_broker) for spec in (before, after))
    new = sorted(is_.keys() - was.keys())
    if not new:
        return
    first = (
        f"Bring the nodes first: `stillwater up {after.environment} --layer kafka --target "
        f"'nodes-*'`, and the whole once they are Ready (docs/how-to/grow-a-cluster.md)."
        if after.node_provisioner == "asg"
        else "Karpenter starts their nodes once the pods wait for them."
    )
    share = "They hold nothing at first: kafka-reassign-partitions.sh gives them their share."
    if after.kafka.rebalance is not None:
        first = f"`stillwater grow {after.environment}` in the place of `up` brings their nodes"
        share = "first, then them, and then their partitions."
    yield (
        f"the brokers {id_list(new)} would come. Until they are Ready, Strimzi's operator does "
        f"nothing else for this Kafka, for up to {after.timings.strimzi_operation_timeout_seconds} "
        f"s at a time (timings.strimzi_operation_timeout_seconds). {first} {share}"
    )


def _leaving(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    brokers, stay = (spec.running_nodes(lambda role: role.is_broker) for spec in (before, after))
    gone = {node_id: node_pool for node_id, node_pool in brokers.items() if node_id not in stay}
    if gone:
        moved_first = (
            "Move those first: kafka-reassign-partitions.sh."
            if before.kafka.rebalance is None
            else f"`stillwater shrink {before.environment}` moves those first, and runs `up`."
        )
        yield (
            f"the brokers {id_list(sorted(gone))} ({', '.join(sorted(set(gone.values())))}) would "
            f"go: Strimzi takes none away that holds partitions. {moved_first}"
        )
    for pool in before.pools:
        later = next((each for each in after.pools if each.name == pool.name), None)
        if later is not None and len(later.volumes) < len(pool.volumes):
            yield (
                f"pool {pool.name} would have {len(later.volumes)} volumes where it has "
                f"{len(pool.volumes)}. A broker does not start without its partitions; first move "
                "them away (kafka-reassign-partitions.sh)."
            )


def _clients(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    for change in _differing(before, after, *_TOLD):
        yield (
            f"{change}: brokers change one after the other, and clients that know the old one lose "
            "each; tell them first."
        )


def _steps(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Say what goes one step at a time; who has gone some already, or AWS for them, knows it."""
    if _minor(after) > _minor(before) + 1:
        yield (
            f"kubernetes.version was {before.kubernetes.version} and is "
            f"{after.kubernetes.version}. EKS upgrades one minor version at a time; write "
            f"1.{_minor(before) + 1} first, unless the control plane is there already."
        )
    if _minor(after) == _minor(before) - 1:
        yield (
            f"kubernetes.version was {before.kubernetes.version} and is "
            f"{after.kubernetes.version}. EKS rolls back only within seven days of an upgrade, and "
            "after every node; see docs/how-to/upgrade-eks.md."
        )
    for topic, later in kept_topics(before, after):
        was, is_ = (
            each.replication_factor or spec.kafka.default_replication_factor
            for each, spec in ((topic, before), (later, after))
        )
        if was != is_:
            yield (
                f"topic {topic.name} had {was} replicas and would have {is_}. The topic operator "
                "does not change that; reassign its partitions first "
                f"(kafka-reassign-partitions.sh), or set its replication_factor to {was}."
            )


def _minor(spec: ClusterSpec) -> int:
    return int(spec.kubernetes.version.partition(".")[2])
