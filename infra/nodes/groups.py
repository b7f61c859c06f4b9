"""Builds the nodes of Kafka: an Auto Scaling group per pool and zone, its hooks, the nodes' role.

No group spans two zones, since a volume lives in one; max is twice min, so that every node's
replacement can stand beside it. The termination handler completes the hook `drain`, our tick the
hook `gate`; both end in ABANDON, and the group's lifecycle policy then keeps the instance. A hook
that nobody answers keeps every instance for good: hooks come after all functions and go before any
(ADR 0017). Of a group that is not ours only the hooks are made.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from core.cluster import ClusterSpec
from core.ground import naming
from core.ground.constants import (
    ABANDON,
    HEALTHY_PERCENT,
    HOOKS,
    MAXIMUM_PER_NODE,
    RETAIN_INSTANCE,
    SUSPENDED_PROCESSES,
    TERMINATING,
)
from core.ground.naming import CLUSTER_TAG
from infra import iam
from infra.eks import launch
from infra.eks.cluster import NODE_POLICIES
from infra.eks.launch import Launch, launch_template
from infra.tags import Tags, group_tags, node_template_tags


def role_name(prefix: str) -> str:
    """Return the name of the nodes' role and of its instance profile."""
    return f"{prefix}-nodes"


def node_identity(
    name: str, *, prefix: str, eks_cluster: str, parent: pulumi.Resource
) -> tuple[aws.iam.InstanceProfile, list[pulumi.Resource]]:
    """Create the instance profile of Kafka's nodes; return what must be there before the first."""
    child = pulumi.ResourceOptions(parent=parent)
    role, attachments = iam.service_role(
        f"{name}-role",
        role_name=role_name(prefix),
        service="ec2.amazonaws.com",
        managed_policies=NODE_POLICIES,
        parent=parent,
    )
    profile = aws.iam.InstanceProfile(
        f"{name}-profile", name=role_name(prefix), role=role.name, opts=child
    )
    # EKS writes the entries of managed node groups itself, never those of our own groups.
    entry = aws.eks.AccessEntry(
        f"{name}-access",
        cluster_name=eks_cluster,
        principal_arn=role.arn,
        type="EC2_LINUX",
        opts=iam.entry_options(role, parent),
    )
    return profile, [*attachments, entry]


TYPE = "stillwater:infra:BrokerNodes"
TAINT = f"{naming.DEDICATED_TAINT_KEY}={naming.DEDICATED_TAINT_VALUE}:NoSchedule"
# Longer than a node needs to boot, join and register its volume driver: until then a launched
# instance does not count as the replacement of one to be terminated.
WARMUP_SECONDS = 180


@dataclass(frozen=True, kw_only=True)
class MachinePool:
    """Machines that are alike: how many in which zones, of what type, from which image."""

    name: str
    zones: Sequence[str]
    nodes_per_zone: int
    instance_type: str
    image_id: pulumi.Input[str]


@dataclass(frozen=True, kw_only=True)
class BrokerNodesArgs:
    # What every name begins with.
    prefix: str
    pools: Sequence[MachinePool]
    cluster: launch.ClusterAccess
    security_group_ids: Sequence[pulumi.Input[str]]
    private_subnet_ids: Mapping[str, pulumi.Input[str]]
    node_shutdown_seconds: int
    tags: Tags
    # Of the root volume; None: the account's default key.
    encryption_key: pulumi.Input[str] | None = None
    # None: a role of our own, with the right to join the cluster.
    instance_profile_arn: pulumi.Input[str] | None = None
    # Tags that machines have from their template alone: `infra.nodes.groups` writes them on the
    # group, too, and there for the group only.
    not_inherited: Collection[str] = ()


class BrokerNodes(pulumi.ComponentResource):
    """Auto Scaling groups keyed by KafkaNodePool (`broker-a`), which they carry the nodes of."""

    group_names: Mapping[str, pulumi.Output[str]]
    group_arns: Mapping[str, pulumi.Output[str]]
    instance_profile_arn: pulumi.Output[str]

    def __init__(
        self, name: str, args: BrokerNodesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        profile_arn, ready_to_join = self._identity()
        groups = {
            naming.kafka_node_pool(pool.name, zone): self._group(
                pool, zone, profile_arn, ready_to_join
            )
            for pool in args.pools
            for zone in pool.zones
        }
        self.instance_profile_arn = pulumi.Output.from_input(profile_arn)
        self.group_names = {key: group.name for key, group in groups.items()}
        self.group_arns = {key: group.arn for key, group in groups.items()}
        self.register_outputs({"group_names": self.group_names})

    def _identity(self) -> tuple[pulumi.Input[str], list[pulumi.Resource]]:
        args = self._args
        if args.instance_profile_arn is not None:
            return args.instance_profile_arn, []
        profile, ready_to_join = node_identity(
            self._name, prefix=args.prefix, eks_cluster=args.cluster.name, parent=self
        )
        return profile.arn, ready_to_join

    def _template(
        self, pool: MachinePool, zone: str, profile_arn: pulumi.Input[str]
    ) -> aws.ec2.LaunchTemplate:
        args = self._args
        group = naming.auto_scaling_group(args.prefix, pool.name, zone)
        return launch_template(
            f"{self._name}-{zone}-{pool.name}-template",
            Launch(
                template_name=group,
                tags=args.tags.node_tags(group, pool.name, args.cluster.name, args.prefix),
                image_id=pool.image_id,
                instance_type=pool.instance_type,
                encryption_key=args.encryption_key,
                instance_profile_arn=profile_arn,
                security_group_ids=args.security_group_ids,
                user_data=launch.user_data(
                    args.cluster,
                    labels=_labels(pool),
                    taints=[TAINT],
                    node_shutdown_seconds=args.node_shutdown_seconds,
                ),
            ),
            self,
        )

    def _group(
        self,
        pool: MachinePool,
        zone: str,
        profile_arn: pulumi.Input[str],
        ready_to_join: list[pulumi.Resource],
    ) -> aws.autoscaling.Group:
        args = self._args
        group_name = naming.auto_scaling_group(args.prefix, pool.name, zone)
        template = self._template(pool, zone, profile_arn)
        inherited = args.tags.node_tags(group_name, pool.name, args.cluster.name, args.prefix)
        own = {key: inherited.pop(key) for key in args.not_inherited}
        return aws.autoscaling.Group(
            f"{self._name}-{zone}-{pool.name}",
            name=group_name,
            vpc_zone_identifiers=[args.private_subnet_ids[zone]],
            min_size=pool.nodes_per_zone,
            desired_capacity=pool.nodes_per_zone,
            max_size=MAXIMUM_PER_NODE * pool.nodes_per_zone,
            launch_template=aws.autoscaling.GroupLaunchTemplateArgs(
                id=template.id, version=template.latest_version.apply(str)
            ),
            health_check_type="EC2",
            default_instance_warmup=WARMUP_SECONDS,
            instance_maintenance_policy={
                "min_healthy_percentage": HEALTHY_PERCENT[0],
                "max_healthy_percentage": HEALTHY_PERCENT[1],
            },
            # Without it ABANDON on a terminating instance still terminates it.
            instance_lifecycle_policy={
                "retention_triggers": {"terminate_hook_abandon": RETAIN_INSTANCE}
            },
            # A new template reaches nodes that start from now on. Running ones are
            # terminated one at a time: an instance refresh would take every zone at once.
            termination_policies=["OldestLaunchTemplate", "OldestInstance"],
            suspended_processes=list(SUSPENDED_PROCESSES),
            tags=group_tags(
                inherited, own | node_template_tags(args.cluster.name, zone, _labels(pool))
            ),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=ready_to_join,
                # Whoever replaces a node raises it for a while: Cluster Autoscaler, our tick.
                ignore_changes=["desired_capacity"],
            ),
        )


def group_arns(spec: ClusterSpec, account: iam.Account) -> list[str]:
    """Return the ARNs of every Kafka group, a pool's as one, for layers before or after this."""
    return [
        account.group_arn(
            naming.group_pattern(
                naming.auto_scaling_group(spec.prefix, pool.name, spec.zones_of(pool)[0])
            )
        )
        for pool in spec.pools
    ]


def _labels(pool: MachinePool) -> dict[str, str]:
    return {naming.NODE_POOL_LABEL: pool.name}


DEPARTURE_TYPE = "stillwater:infra:DepartureHooks"


class DepartureHooks(pulumi.ComponentResource):
    """`drain` and `gate` on the group of each pool and zone; both end in ABANDON by default."""

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        answering: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`answering` is whoever answers what stands in a hook, with their rights."""
        super().__init__(DEPARTURE_TYPE, name, None, opts)
        # A component's own order does not reach its children.
        child = pulumi.ResourceOptions(parent=self, depends_on=list(answering))
        for pool in spec.pools:
            for zone in spec.zones_of(pool):
                group = naming.auto_scaling_group(spec.prefix, pool.name, zone)
                seconds = spec.timings.hook_heartbeat_timeout_seconds
                add_hooks(f"{name}-{zone}-{pool.name}", group, seconds, child)
        self.register_outputs({})


def add_hooks(
    below: str, group: pulumi.Input[str], heartbeat_seconds: int, opts: pulumi.ResourceOptions
) -> None:
    """Put both hooks on a group; an instance whose hook nobody completes is kept."""
    for hook in HOOKS:
        aws.autoscaling.LifecycleHook(
            f"{below}-{hook}",
            name=hook,
            autoscaling_group_name=group,
            lifecycle_transition=TERMINATING,
            default_result=ABANDON,
            heartbeat_timeout=heartbeat_seconds,
            opts=opts,
        )


HOOKS_TYPE = "stillwater:infra:Hooks"


@dataclass(frozen=True, kw_only=True)
class HooksArgs:
    """Auto Scaling groups by name, and what they are tagged as."""

    # Below keys that stand in the names of what is made; a name may be known later.
    scaling_groups: Mapping[str, pulumi.Input[str]]
    heartbeat_timeout_seconds: int
    # The value of the tag stillwater:cluster: whose hooks these are.
    cluster: str
    # Whoever answers what stands in a hook, with their rights.
    answering: Sequence[pulumi.Resource] = ()


class Hooks(pulumi.ComponentResource):
    """`drain` and `gate`, and the tag that says whose they are, on each group."""

    def __init__(
        self, name: str, args: HooksArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(HOOKS_TYPE, name, None, opts)
        # A component's own order does not reach its children.
        child = pulumi.ResourceOptions(parent=self, depends_on=list(args.answering))
        for key, group in args.scaling_groups.items():
            aws.autoscaling.Tag(
                f"{name}-{key}-tag",
                autoscaling_group_name=group,
                # Not at launch: instances are known by their group.
                tag={"key": CLUSTER_TAG, "value": args.cluster, "propagate_at_launch": False},
                opts=child,
            )
            add_hooks(f"{name}-{key}", group, args.heartbeat_timeout_seconds, child)
        self.register_outputs({})
