"""Checks a ClusterSpec against limits that AWS and Kubernetes set and no request changes.

The limits of a single setting are in the ClusterSpec itself. Here are those that take a table of
instance types, every name the stacks give, or the size of a whole object. With 50 listeners a load
balancer never has 500 targets, so that quota needs no rule. What the pods beside Kafka request is
read by infra's charts; of EKS's add-ons it is in their charts' values. Sizes: a ConfigMap's data
has 1 MiB and etcd's requests 1.5 MiB, of which the smaller is kept for both; CEL's parser takes
100,000 characters; an item of DynamoDB has 400 KB (Constraints.html).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from core.cluster.nodes import NodePool
from core.cluster.spec import ClusterSpec
from core.cost.pricing import GP3_INCLUDED_IOPS, GP3_INCLUDED_MIB_PER_S
from core.ground import instances, naming
from core.ground.instances import InstanceType


@dataclass(frozen=True, slots=True)
class Request:
    """What one pod requests."""

    cpu_millis: int
    memory_mib: int


NONE = Request(0, 0)
OPERATOR = Request(200, 768)
KARPENTER = Request(1000, 1024)
LOAD_BALANCER_CONTROLLER = Request(100, 128)
CLUSTER_AUTOSCALER = Request(100, 300)
TERMINATION_HANDLER = Request(50, 64)
GATE = Request(100, 256)
PROBE = Request(50, 128)
COREDNS = Request(100, 70)
VOLUME_CONTROLLER = Request(60, 240)
# EKS's add-ons that run one pod on every node.
NODE_MONITORING = "eks-node-monitoring-agent"
ON_EVERY_NODE: Mapping[str, Request] = {
    "vpc-cni": Request(50, 0),
    "kube-proxy": Request(100, 0),
    "eks-pod-identity-agent": NONE,
    "aws-ebs-csi-driver": Request(30, 120),
    NODE_MONITORING: Request(10, 30),
}
# Karpenter reckons that so much of a machine's memory is its kernel's and firmware's
# (VM_MEMORY_OVERHEAD_PERCENT), and launches nothing for a pod that the rest does not hold.
KARPENTERS_OVERHEAD = 0.075


def daemons(*, node_monitoring: bool) -> Mapping[str, Request]:
    """Return what runs on every node, by its add-on."""
    return {
        addon: request
        for addon, request in ON_EVERY_NODE.items()
        if node_monitoring or addon != NODE_MONITORING
    }


def requested_room(instance: InstanceType, *, node_monitoring: bool) -> Request:
    """Return what the system and the pods of every node leave the other pods of a node."""
    every = daemons(node_monitoring=node_monitoring).values()
    return Request(
        instance.allocatable_cpu_millis - sum(each.cpu_millis for each in every),
        instance.allocatable_memory_mib - sum(each.memory_mib for each in every),
    )


def overhead_mib(instance: InstanceType) -> int:
    """Return what a machine's memory may be short of what EC2 says it has."""
    return int(instance.memory_mib * KARPENTERS_OVERHEAD)


def nodes(spec: ClusterSpec) -> tuple[naming.NodePlace, ...]:
    """Return every Kafka node.

    Strimzi gives a pool's nodes the first ids of those reserved in a zone.
    """
    return tuple(
        naming.NodePlace(
            node_id=node_id, node_pool=naming.kafka_node_pool(pool.name, zone), role=pool.role.value
        )
        for pool in spec.pools
        for zone, reserved in spec.node_ids_of(pool).items()
        for node_id in reserved[: pool.nodes_per_zone]
    )


OBJECT_BYTES = 1024**2
# What is left for the rest of an object: labels, names, what the operator adds.
_KEPT = 64 * 1024
CEL_CHARACTERS, ITEM_BYTES = 100_000, 400 * 1024
# For whom the gate never asks about, and for what else functions are told in that item.
_KEPT_OF_CEL, _KEPT_OF_ITEM = 5_000, 16 * 1024


def size_problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each part of a description that is larger than an object."""
    yield from _outside_objects(spec)
    for key, held in _held(spec):
        size = len(json.dumps(held).encode())
        if size > OBJECT_BYTES - _KEPT:
            yield (
                f"{key} takes {size} bytes, and one object of Kubernetes has room for "
                f"{OBJECT_BYTES - _KEPT} of it; name fewer, or say the same in fewer words."
            )


def _outside_objects(spec: ClusterSpec) -> Iterator[str]:
    gate = spec.eviction_gate
    named = 0 if gate is None else len(json.dumps(gate.operators))
    if named > CEL_CHARACTERS - _KEPT_OF_CEL:
        yield (
            f"eviction_gate.operators takes {named} characters, and the expression of Kubernetes' "
            f"webhook has room for {CEL_CHARACTERS - _KEPT_OF_CEL} of it; name fewer."
        )
    told = [{"node_id": n.node_id, "node_pool": n.node_pool, "role": n.role} for n in nodes(spec)]
    size = len(json.dumps(told, separators=(",", ":")))
    if size > ITEM_BYTES - _KEPT_OF_ITEM:
        yield (
            f"pools have {len(told)} nodes, a list of {size} bytes. The item of DynamoDB with the "
            f"functions' settings holds {ITEM_BYTES - _KEPT_OF_ITEM} of it; have fewer nodes, or "
            "shorter names of pools."
        )


def _held(spec: ClusterSpec) -> Iterator[tuple[str, Any]]:
    yield "metrics.allow", spec.metrics.allow
    yield "kafka.config", dict(spec.kafka.config)
    for topic in spec.topics:
        yield f"config of topic {topic.name}", dict(topic.config)
    for user in spec.users:
        yield f"acls of user {user.name}", [acl.model_dump() for acl in user.acls]
    if spec.connect is not None:
        yield "connect.config", dict(spec.connect.config)
        yield "connect.acls", [acl.model_dump() for acl in spec.connect.acls]


# The shortest limit on a name of ours, an EventBridge rule's, and its longest suffix.
RULE_NAME_LIMIT = 64
LONGEST_SUFFIX = {"asg": "-capacity-reservation", "karpenter": "-karpenter-capacity-reservation"}
# What is left for names as JSON says them: for groups' of the 2,048 characters of EventBridge's
# longest rule (infra.functions.termination), and of the 10,240 of a role's policy for the ARNs of
# pools' groups and the same names in a condition (infra.functions.catalogue). Held against AWS's
# limits in tests/unit/stacks.
MOST_MATCHED_CHARACTERS, MOST_GRANTED_OF_POOLS = 1550, 5800
# A group's ARN without its name, in the region of the longest name.
ARN_CHARACTERS = 95
# How no name of these may begin. Sources: CreateLoadBalancer, CreateSecurityGroup, S3's bucket
# naming rules.
BUCKET = "a bucket's name"
RESERVED_STARTS = {
    "internal-": "a load balancer's name",
    "sg-": "a security group's name",
    "amzn-s3-demo-": BUCKET,
    "sthree-": BUCKET,
    "xn--": BUCKET,
}
# A VPC of ours is divided by the letter of the zone; no region has more.
ZONE_LETTERS = "abcdefgh"
# Each letter owns an eighth of it, and its private subnet half of that.
ZONE_BITS = (len(ZONE_LETTERS) - 1).bit_length()
PRIVATE_BITS = ZONE_BITS + 1
# The network plugin keeps one warm interface beside the one that is in use.
WARM_INTERFACES = 1
ROOT_VOLUMES = 1


def problems(spec: ClusterSpec) -> list[str]:
    """Return a sentence for every limit that the spec exceeds: what breaks, and the remedy."""
    found = [*_names(spec), *_groups(spec), *_zones(spec)]
    known = instances.table().types
    for pool in spec.pools:
        if pool.instance_type in known:
            instance = known[pool.instance_type]
            found += _performance(pool, instance)
            found += _attachments(pool, instance)
            found += _requests(spec, pool, instance)
    return found


def unchecked_types(spec: ClusterSpec) -> list[str]:
    """Return a sentence for each instance type that is in no table of ours."""
    table = instances.table()
    asked = [(f"pool {pool.name}", pool.instance_type) for pool in spec.pools]
    asked.append(("the system nodes", spec.kubernetes.system_instance_type))
    return [
        f"Instance type {name} of {whose} is not in this release's table ({table.source}): whether "
        f"volumes and pods fit it was not checked{_nearest(name)}."
        for whose, name in asked
        if name not in table.types
    ]


def tight(spec: ClusterSpec) -> list[str]:
    """Return a sentence for each pool whose pod fits only if its machine has all of its memory."""
    known, sentences = instances.table().types, []
    for pool in spec.pools:
        instance = known.get(pool.instance_type)
        if instance is None or spec.node_provisioner == "karpenter":
            continue
        room = requested_room(instance, node_monitoring=spec.kubernetes.node_monitoring).memory_mib
        sure = room - overhead_mib(instance)
        if sure < pool.memory_request_mib <= room:
            sentences.append(
                f"memory_request_mib of pool {pool.name} is {pool.memory_request_mib} MiB. An "
                f"{instance.name} has {instance.memory_mib} MiB, and its kernel and firmware keep "
                f"up to {KARPENTERS_OVERHEAD:.1%}. The pod might never find a node; request {sure} "
                "MiB or less."
            )
    return sentences


def _nearest(instance_type: str) -> str:
    types = instances.table().types
    close = difflib.get_close_matches(instance_type, types, n=1, cutoff=0.75)
    return f"; the nearest that is in it is {close[0]}" if close else ""


def _names(spec: ClusterSpec) -> Iterator[str]:
    suffix = LONGEST_SUFFIX[spec.node_provisioner]
    left = RULE_NAME_LIMIT - len(suffix)
    if len(spec.prefix) > left:
        yield (
            f"environment and name make the prefix {spec.prefix!r}, {len(spec.prefix)} characters "
            f"long, but AWS's {RULE_NAME_LIMIT} for a rule's name leave {left} before {suffix}. "
            "The first `up` would stop halfway; shorten one."
        )

    for start, what in RESERVED_STARTS.items():
        if spec.prefix.startswith(start):
            yield (
                f"environment and name make the prefix {spec.prefix!r}, but AWS keeps {start!r} at "
                f"the beginning of {what} for itself. The first `up` would stop halfway; choose "
                "another environment."
            )


def _groups(spec: ClusterSpec) -> Iterator[str]:
    """Refuse more pools than a rule can name, or a role's policy; Karpenter has no groups."""
    if spec.node_provisioner == "karpenter":
        return
    names = [naming.auto_scaling_group(spec.prefix, pool.name, "?") for pool in spec.pools]
    matched = len(json.dumps([{"prefix": name} for name in names]))
    granted = sum(ARN_CHARACTERS + 2 * len(json.dumps(name)) for name in names)
    for what, asked, most in (
        ("a rule of EventBridge's", matched, MOST_MATCHED_CHARACTERS),
        ("a role's policy", granted, MOST_GRANTED_OF_POOLS),
    ):
        if asked > most:
            yield (
                f"the names of {len(names)} pools' groups, which begin with {spec.prefix!r}, take "
                f"{asked} characters of {what}, but AWS's limit leaves {most} there. The first "
                "`up` would stop halfway; use fewer pools, or shorten environment, name or the "
                "pools' names."
            )
            return


def _zones(spec: ClusterSpec) -> Iterator[str]:
    if spec.network.existing is not None:
        return
    for zone in spec.availability_zones:
        if zone[-1] not in ZONE_LETTERS:
            yield (
                f"availability_zones names {zone} but the VPC is divided among zones "
                f"{ZONE_LETTERS[0]} to {ZONE_LETTERS[-1]}. The zone has no addresses; choose one "
                "of those, or bring a VPC of your own in network.existing."
            )


def _performance(pool: NodePool, instance: InstanceType) -> Iterator[str]:
    """Refuse what is paid for beyond gp3's included part and the instance never sustains."""
    if pool.volumes_may_burst:
        return
    throughputs = [volume.throughput_mib_per_s for volume in pool.volumes]
    iops = [volume.iops for volume in pool.volumes]
    for setting, unit, asked, included, baseline in (
        (
            "throughput_mib_per_s",
            "MiB/s",
            throughputs,
            GP3_INCLUDED_MIB_PER_S,
            instance.ebs_mib_per_s,
        ),
        ("iops", "IOPS", iops, GP3_INCLUDED_IOPS, instance.ebs_iops),
    ):
        # What gp3 includes costs nothing and cannot be lowered.
        if max(asked) > included and sum(asked) > baseline:
            yield (
                f"{setting} of pool {pool.name} adds up to {sum(asked)} {unit} over the volumes of "
                f"a node but its {instance.name} sustains {baseline} {unit} to EBS. The rest costs "
                f"money and helps only in bursts; lower {setting}, choose an instance type that "
                f"sustains {sum(asked)} {unit}, or set volumes_may_burst."
            )


def _attachments(pool: NodePool, instance: InstanceType) -> Iterator[str]:
    taken = ROOT_VOLUMES + (WARM_INTERFACES if instance.attachments_shared else 0)
    room = instance.attachments - taken
    if len(pool.volumes) > room:
        yield (
            f"pool {pool.name} has {len(pool.volumes)} volumes per node but an {instance.name} "
            f"attaches {room} in addition to its root volume and network interfaces. The pod waits "
            "forever for the last of them; use fewer, larger volumes or another instance type."
        )


def _requests(spec: ClusterSpec, pool: NodePool, instance: InstanceType) -> Iterator[str]:
    room = requested_room(instance, node_monitoring=spec.kubernetes.node_monitoring)
    karpenter = spec.node_provisioner == "karpenter"
    memory = room.memory_mib - (overhead_mib(instance) if karpenter else 0)
    as_reckoned = " (as Karpenter reckons it)" if karpenter else ""
    for setting, unit, asked, has in (
        ("memory_request_mib", "MiB", pool.memory_request_mib, memory),
        ("cpu_request_millis", "m", pool.cpu_request_millis, room.cpu_millis),
    ):
        if asked > has:
            yield (
                f"{setting} of pool {pool.name} is {asked} {unit} but an {instance.name} leaves it "
                f"{has} {unit} after the system{as_reckoned} and the pods of every node. No node "
                f"can ever run the pod; lower {setting} or choose a larger instance type."
            )
