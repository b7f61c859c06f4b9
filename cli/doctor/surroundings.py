"""Reads the account around a cluster for the doctor: what a replacement needs, what AWS announces.

The same facts and judges as `stillwater survey`'s, for the machines of a cluster that the doctor
knows by name: free addresses, quotas, support, AWS Health, zones that are shifted away.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from cli.answers import answer_or_reason, on, on_any
from cli.aws import Clients, pages
from cli.survey import account
from cli.survey.account_parts import around, changes_of, keys_below
from cli.survey.command import CLIENT, region_of
from cli.survey.surroundings import RUNNING
from core.checks import table
from core.checks.finding import Finding, unknown
from core.ground.errors import StillwaterError
from core.ground.unknown import Unknown, mapping_of
from core.model.account import Subnet
from core.model.facts import ClusterFacts
from core.model.nodes import Instance, Node

OWNED = "kubernetes.io/cluster/"
WHOLE = "the account around it"
# Domains of AWS's own endpoints, those in a VPC among them.
AWS = re.compile(r"\.(amazonaws\.com(\.cn)?|api\.aws|c2s\.ic\.gov|sc2s\.sgov\.gov)(:\d+)?/?$")
# Karpenter's tag of an instance, and Auto Mode's.
POOL_TAGS = ("karpenter.sh/nodepool", "eks:kubernetes-node-pool-name")
Aws = Callable[[str], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Which machines of an EKS cluster's hold Kafka: by group, managed node group or NodePool."""

    eks_cluster: str
    region: str
    groups: Collection[str] = ()
    node_groups: Collection[str] = ()
    # None: whichever it has.
    node_pools: Collection[str] | None = None
    # Where functions of ours stand in subnets of others, and the services of AWS's they call.
    function_subnets: Collection[str] = ()
    called: Collection[str] = ()


def findings(session: Any, wanted: Machines) -> list[Finding]:
    """Return what the account would refuse a replacement of these machines, or has announced.

    Whoever stands in for AWS has no quotas, calendars or announcements, and is not asked.
    """

    @Clients
    def aws(service: str) -> Any:
        where = region_of(service, wanted.region)
        return session.client(service, region_name=where, config=CLIENT)

    def found() -> list[Finding]:
        asked = AWS.search(str(aws("ec2").meta.endpoint_url))
        return table.findings(read(aws, wanted)) if asked else []

    answer = answer_or_reason(found)
    return [unknown(WHOLE, answer)] if isinstance(answer, Unknown) else answer


def read(aws: Aws, wanted: Machines) -> ClusterFacts:
    """Read the account around some machines; each part may fail by itself."""
    every = answer_or_reason(lambda: _instances(aws("ec2"), wanted))
    held = on_any(every, lambda found: account.group_of(aws("autoscaling"), list(found)))
    groups = on(
        held,
        lambda found: {
            name: group
            for name, group in account.groups(
                aws("autoscaling"), {*wanted.groups, *found.values()}
            ).items()
            if name in wanted.groups or group.managed_node_group in wanted.node_groups
        },
    )
    kept = mapping_of(groups)
    grouped = mapping_of(held) if kept else {}
    instances = on(
        every,
        lambda found: {
            name: each
            for name, each in found.items()
            if grouped.get(name) in kept or _is_meant(_pool(each), wanted)
        },
    )
    machinery: dict[str, Any] = {"instances": instances, "groups": groups}
    beside = around(aws, machinery, wanted.eks_cluster, wanted.region, wanted.function_subnets)
    changes = changes_of(aws, groups)
    zones = mapping_of(beside["subnets"])
    return ClusterFacts(
        read_at=time.time(),
        **machinery,
        **changes,
        encryption_keys=keys_below(aws, {}, changes["templates"], beside["control_plane"]),
        group_of=held,
        nodes=on(
            instances, lambda found: {name: _node(name, found[name], zones) for name in found}
        ),
        function_subnets=frozenset(wanted.function_subnets),
        function_services=frozenset(wanted.called),
        **beside,
    )


def _instances(ec2: Any, wanted: Machines) -> dict[str, Instance]:
    """Return the cluster's running machines; raise where some should be there and none is."""
    tag = f"{OWNED}{wanted.eks_cluster}"
    asked = [*RUNNING, {"Name": "tag-key", "Values": [tag]}]
    found = {
        str(item["InstanceId"]): account.instance(item)
        for reservation in pages(ec2, "describe_instances", "Reservations", Filters=asked)
        for item in reservation["Instances"]
    }
    if not found and (wanted.node_groups or wanted.node_pools):
        raise StillwaterError(
            f"EC2 knows no running machine with the tag {tag}, by which those of managed node "
            f"groups and NodePools are known"
        )
    return found


def _pool(instance: Instance) -> str | None:
    """Return the NodePool that has started an instance."""
    return next((instance.tags[key] for key in POOL_TAGS if key in instance.tags), None)


def _is_meant(pool: str | None, wanted: Machines) -> bool:
    return pool is not None and (wanted.node_pools is None or pool in wanted.node_pools)


def _node(name: str, instance: Instance, subnets: Mapping[str, Subnet]) -> Node:
    """Return an instance as a node, of which only its place is known."""
    subnet = subnets.get(instance.subnet or "")
    return Node(
        name=name,
        zone=None if subnet is None else subnet.zone,
        instance_id=name,
        node_pool=_pool(instance),
        auto_mode=POOL_TAGS[1] in instance.tags,
    )
