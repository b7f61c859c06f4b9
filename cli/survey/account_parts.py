"""Reads what AWS knows of a cluster's machines and of the account around them, part by part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from cli.answers import answer_or_reason, on, on_any
from cli.survey import account, ebs, joining, keys, machine_templates, surroundings, ways_out
from cli.survey import queues as handler_queues
from cli.survey.cluster_name import eks_cluster
from core.instances import vcpu_quota
from core.survey.account_facts import ControlPlane, Disk, EncryptionKey, Subnet, VpcEndpoint, WayOut
from core.survey.kafka_facts import Volume
from core.survey.node_facts import MachineTemplate, Node, NodeRole, ScalingGroup
from core.survey.tool_facts import TerminationHandler, TerminationQueue
from core.unknown import Unknown, mapping_of
from infra.eks.api import Api


def machines_below(
    aws: Callable[[str], Any], nodes: Mapping[str, Node] | Unknown
) -> dict[str, Any]:
    """Read what AWS knows of the nodes: instances, their groups, EKS's own among these."""
    wanted = on(nodes, lambda found: [n.instance_id for n in found.values() if n.instance_id])
    instances = on_any(wanted, lambda ids: account.instances(aws("ec2"), ids))
    here = not isinstance(instances, Unknown)
    group_of = on_any(
        wanted,
        lambda ids: account.seen_here(account.group_of(aws("autoscaling"), ids), known=here),
    )
    groups = on_any(group_of, lambda found: account.every_group(aws("autoscaling"), found.values()))
    return {
        "instances": instances,
        "statuses": on_any(instances, lambda found: account.statuses(aws("ec2"), found)),
        "group_of": group_of,
        "groups": groups,
        **changes_of(aws, groups),
        "managed_node_groups": on(
            groups,
            lambda found: (
                account.managed_node_groups(aws("eks"), found.values())
                if any(group.managed_node_group for group in found.values())
                else {}
            ),
        ),
    }


def changes_of(
    aws: Callable[[str], Any], groups: Mapping[str, ScalingGroup] | Unknown
) -> dict[str, Any]:
    """Read what groups start next, and what lowers or exchanges their machines."""
    return {
        "templates": on_any(
            groups,
            lambda found: machine_templates.templates(
                aws("ec2"), aws("autoscaling"), found.values()
            ),
        ),
        "scale_ins": on_any(groups, lambda found: account.scale_ins(aws("autoscaling"), found)),
        "refreshes": on_any(groups, lambda found: account.refreshes(aws("autoscaling"), found)),
    }


def cluster_of(machinery: Mapping[str, Any], context: str) -> str | None:
    """Return what EKS calls the cluster of some machines."""
    return eks_cluster(
        mapping_of(machinery["groups"]).values(),
        mapping_of(machinery["instances"]).values(),
        context,
    )


def around(
    aws: Callable[[str], Any],
    machinery: Mapping[str, Any],
    cluster: str | None,
    region: str | None,
    subnets: Collection[str] = (),
) -> dict[str, Any]:
    """Read the account around the machines: what a replacement needs, what AWS has announced."""
    instances, groups = machinery["instances"], machinery["groups"]
    held, owned = mapping_of(instances), mapping_of(groups)
    named = {subnet for group in owned.values() for subnet in group.subnets}
    named |= {each.subnet for each in held.values() if each.subnet} | set(subnets)
    plane = answer_or_reason(lambda: surroundings.control_plane(aws("eks"), cluster))
    types = {each.type for each in held.values() if each.lifecycle is None}
    subnets_read = on(instances, lambda _: surroundings.subnets(aws("ec2"), named) if named else {})
    return {
        "subnets": subnets_read,
        **_ways(aws, subnets_read),
        "machine_quotas": on(
            instances,
            lambda _: (
                surroundings.machine_quotas(aws("service-quotas"), aws("ec2"), types)
                if any(map(vcpu_quota, types))
                else {}
            ),
        ),
        "disk_quota": answer_or_reason(
            lambda: surroundings.disk_quota(aws("service-quotas"), aws("ec2"))
        ),
        "control_plane": plane,
        "upgrade_insights": on(
            plane, lambda found: surroundings.upgrade_insights(aws("eks"), found)
        ),
        "zonal_shifts": answer_or_reason(lambda: surroundings.zonal_shifts(aws("arc-zonal-shift"))),
        "aws_health": answer_or_reason(
            lambda: surroundings.aws_health(aws("health"), region or _of(plane))
        ),
    }


def _ways(aws: Callable[[str], Any], subnets: Mapping[str, Subnet] | Unknown) -> dict[str, Any]:
    """Read how subnets reach AWS; endpoints are asked for where one of them has no other way."""
    found = on_any(subnets, lambda known: ways_out.ways_out(aws("ec2"), known))

    def alone(ways: Mapping[str, WayOut]) -> tuple[VpcEndpoint, ...]:
        # A function's way out is no internet gateway.
        mine = {
            name: subnet
            for name, subnet in mapping_of(subnets).items()
            if name in ways and (ways[name].target or "igw-").startswith("igw-")
        }
        return ways_out.endpoints(aws("ec2"), mine) if mine else ()

    return {"ways_out": found, "vpc_endpoints": on(found, alone)}


def data_below(
    aws: Callable[[str], Any],
    volumes: tuple[Volume, ...] | Unknown,
    templates: Mapping[str, tuple[MachineTemplate, ...]] | Unknown,
    plane: ControlPlane | Unknown,
) -> dict[str, Any]:
    """Read Kafka's disks as EBS has them, and the keys that they and next machines' disks have."""
    disks = on(volumes, lambda found: ebs.disks(aws("ec2"), found))
    return {
        "volumes": ebs.as_they_are(volumes, disks),
        "disks": disks,
        "disk_checks": on_any(disks, lambda found: ebs.checks(aws("ec2"), found)),
        "disk_snapshots": on_any(disks, lambda found: ebs.snapshots(aws("ec2"), found)),
        "encryption_keys": keys_below(aws, disks, templates, plane),
    }


def joining_below(
    aws: Callable[[str], Any],
    api: Api,
    templates: Mapping[str, tuple[MachineTemplate, ...]] | Unknown,
    plane: ControlPlane | Unknown,
) -> dict[str, Any]:
    """Read by which roles the next machines come, and which the cluster knows."""

    def read_roles(found: Mapping[str, tuple[MachineTemplate, ...]]) -> dict[str, NodeRole | None]:
        started = _every(found)
        named = any(each.profile for each in started)
        return joining.node_roles(aws("iam"), started) if named else {}

    roles = on(templates, read_roles)

    # Without a role to look for nobody is asked which the cluster knows.
    wanted = {role.name for role in mapping_of(roles).values() if role}
    if not wanted:
        return {"node_roles": roles, "admitted_roles": {}}
    admitted = on(plane, lambda found: joining.admitted_roles(aws("eks"), api, found, wanted))
    return {"node_roles": roles, "admitted_roles": admitted}


def _every(templates: Mapping[str, tuple[MachineTemplate, ...]]) -> list[MachineTemplate]:
    return [each for group in templates.values() for each in group]


def keys_below(
    aws: Callable[[str], Any],
    disks: Mapping[str, Disk] | Unknown,
    templates: Mapping[str, tuple[MachineTemplate, ...]] | Unknown,
    plane: ControlPlane | Unknown,
) -> Mapping[str, EncryptionKey] | Unknown:
    """Read the keys of some disks and templates; where none is named nobody is asked."""
    started = _every(mapping_of(templates))

    def read_keys(found: Mapping[str, Disk]) -> dict[str, EncryptionKey]:
        named = any(disk.key for disk in found.values()) or any(each.keys for each in started)
        if not named:
            return {}
        return keys.encryption_keys(aws("kms"), found.values(), started, account_id(plane))

    return on(disks, read_keys)


def account_id(plane: ControlPlane | Unknown) -> str | None:
    """Return the account that a cluster's ARN names."""
    return None if isinstance(plane, Unknown) else plane.arn.split(":")[4]


def _of(plane: ControlPlane | Unknown) -> str | None:
    """Return the region that a cluster's ARN names."""
    return None if isinstance(plane, Unknown) else plane.arn.split(":")[3]


def queues(
    aws: Callable[[str], Any], handlers: tuple[TerminationHandler, ...]
) -> dict[str, TerminationQueue]:
    urls = {each.queue_url for each in handlers if each.queue_mode and each.queue_url}
    return {url: handler_queues.queue(aws("sqs"), aws("events"), url) for url in sorted(urls)}
