"""Says what a changed description takes from clients, and what it no longer keeps.

core.cluster.changes asks it, beside what brokers themselves would feel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.cluster.identity import User
from core.cluster.kafka import Topic
from core.cluster.spec import ClusterSpec

# Settings of a topic, and of the brokers for the topics that say nothing, by which records end.
_ENDS = ("retention.ms", "retention.bytes", "cleanup.policy")
_ENDS_OF_BROKERS = tuple(f"log.{kind}" for kind in (*_ENDS, "retention.hours", "retention.minutes"))


def shut_out(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each kind of client that would be refused, or find nobody."""
    if before.kafka.authorization != after.kafka.authorization:
        yield (
            "kafka.authorization becomes simple: whoever has no ACL among users is refused, from "
            "the first broker on; write the ACLs of every client first."
            if after.kafka.authorization == "simple"
            else "kafka.authorization becomes none: whoever is let in may do everything, and ACLs "
            "count for nothing."
        )
    yield from _users(before, after)
    for key, was, is_ in (
        (
            "load_balancer.client_cidrs",
            before.load_balancer.client_cidrs,
            after.load_balancer.client_cidrs,
        ),
        ("network.secondary_cidrs", before.network.secondary_cidrs, after.network.secondary_cidrs),
    ):
        if gone := sorted(set(was) - set(is_)):
            yield f"{key} no longer names {', '.join(gone)}: whoever comes from there is cut off."
    yield from _endpoints(before, after)
    was_zone, is_zone = before.load_balancer.private_zone, after.load_balancer.private_zone
    if was_zone is not None and was_zone != is_zone:
        yield (
            f"load_balancer.private_zone was {was_zone} and is {is_zone or 'not set'}: the zone "
            f"goes with its record, and clients find {before.kafka.listener.advertised_host} only "
            f"where somebody else answers for it."
        )
    if before.kafka.listener.name != after.kafka.listener.name:
        yield (
            f"kafka.listener.name was {before.kafka.listener.name} and is "
            f"{after.kafka.listener.name}: bindings look for Services of the new name, which "
            f"Strimzi makes broker by broker, and until then nobody comes in from outside."
        )
    if before.connect is not None and after.connect is None:
        yield "connect is left out: its workers and every connector on them would stop."


def _endpoints(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Sources: ModifyVpcEndpointServicePermissions, DeleteVpcEndpointServiceConfigurations."""
    was, is_ = (set(spec.load_balancer.endpoint_principals) for spec in (before, after))
    if was and not is_:
        yield (
            "load_balancer.endpoint_principals names nobody any more: the endpoint service goes, "
            "and AWS deletes none that endpoints are connected to; reject those first (`aws ec2 "
            "reject-vpc-endpoint-connections`)."
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
        yield "snapshots is null: no more are taken of Kafka's volumes."
    if before.encryption_key != after.encryption_key:
        yield (
            f"encryption_key was {before.encryption_key or 'not set'} and is "
            f"{after.encryption_key or 'not set'}: volumes that are there keep their key, which "
            f"must stay enabled; only new ones get the other."
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
    types = [spec.kubernetes.system_instance_type for spec in (before, after)]
    if types[0] != types[1]:
        yield (
            f"kubernetes.system_instance_type was {types[0]} and is {types[1]}: a managed node "
            f"group keeps its type, so that every zone's is deleted, at once, before another is "
            f"made, and meanwhile no operator, drainer or load balancer controller runs; do it "
            f"while no broker leaves."
        )
    for key, was, is_ in (
        ("strimzi.operator", before.strimzi.operator, after.strimzi.operator),
        ("strimzi.namespace", before.strimzi.namespace, after.strimzi.namespace),
    ):
        if was != is_:
            yield (
                f"{key} was {was} and is {is_}: the operator that runs is taken away, and until "
                f"another watches {after.kubernetes.namespace} a pod that is lost does not come "
                f"back."
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
            f"network.existing.private_subnet_ids changes in {', '.join(moved)}: AWS makes a load "
            f"balancer anew whose subnets are taken away, with another name, and clients are cut "
            f"off meanwhile; nodes stand in the old subnets until they are rotated, and the "
            f"control plane for good."
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
