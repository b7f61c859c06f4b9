"""`BrokerNodes` and `Hooks` for programs in any language: machines, and hooks on groups.

Pulumi reads the annotations and the sentences below them into the schema, so annotations here are
types and never strings.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from core.cluster.adopted_names import CALLED
from core.cluster.timings import Timings
from core.ground.constants import HOOKS
from core.ground.naming import CLUSTER_TAG, kafka_node_pool
from infra.eks.launch import ClusterAccess
from infra.nodes import groups, hooks
from infra.package import facts
from infra.tags import Tags

HOOKS_TYPE = "stillwater:index:Hooks"
CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}")
# What Auto Scaling takes for a heartbeat.
SHORTEST_SECONDS, LONGEST_SECONDS = 30, 7200


class HooksArgs(TypedDict):
    scaling_groups: Mapping[str, pulumi.Input[str]]
    """Auto Scaling groups by name, each below a key of yours; another group's output may be a name.
    The keys decide which hooks there are and stand in their names."""
    cluster: str
    """Whose hooks these are: the value of the tag `stillwater:cluster` on each group."""
    heartbeat_timeout_seconds: int
    """How long a machine waits without a heartbeat before it is kept (ABANDON): 30 to 7200."""


class Hooks(pulumi.ComponentResource):
    """The lifecycle hooks `drain` and `gate` on Auto Scaling groups that stay as they are, and the
    tag that says whose they are.

    A hook without the functions that answer it keeps every machine that terminates: name those in
    `dependsOn`."""

    hook_names: pulumi.Output[list[str]]
    """What the hooks are called, in the order in which they are completed."""

    def __init__(
        self, name: str, args: HooksArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(HOOKS_TYPE, name, None, opts)
        seconds = facts.whole_number(
            args, "heartbeat_timeout_seconds", SHORTEST_SECONDS, LONGEST_SECONDS
        )
        hooks.Hooks(
            name,
            hooks.HooksArgs(
                scaling_groups=facts.names_by_key(args, "scaling_groups"),
                heartbeat_timeout_seconds=seconds,
                cluster=facts.text(args, "cluster", CLUSTER, "shop-orders"),
                answering=facts.before(opts),
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.hook_names = pulumi.Output.from_input(list(HOOKS))
        self.register_outputs({"hookNames": self.hook_names})


NODES_TYPE = "stillwater:index:BrokerNodes"
POOL = re.compile(r"[a-z][a-z0-9-]{0,19}")
ZONE = re.compile(r"[a-z]{2}(-[a-z]+)+-\d[a-z]")
INSTANCE_TYPE = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")
MOST_PER_ZONE = 100
# The kubelet keeps 60 s of it for the pods that every node needs.
SHORTEST_SHUTDOWN_SECONDS, LONGEST_SHUTDOWN_SECONDS = 61, 3600


class BrokerNodesArgs(TypedDict):
    cluster: str
    """What this Kafka is called: names begin with it, and it is the value of the tag
    `stillwater:cluster`."""
    eks_cluster: str
    """The EKS cluster's name."""
    endpoint: pulumi.Input[str]
    """Its API server: `https://` and a name."""
    certificate_authority: pulumi.Input[str]
    """Its authority as EKS gives it: base64."""
    service_cidr: pulumi.Input[str]
    """The addresses of its Services, such as 172.20.0.0/16."""
    subnet_ids: Mapping[str, pulumi.Input[str]]
    """A private subnet for each availability zone, by the zone's name. The zones decide which
    groups there are."""
    security_group_ids: Sequence[pulumi.Input[str]]
    """What the machines stand behind: the cluster's own security group at least."""
    instance_type: str
    """Of every machine, such as r7g.xlarge."""
    image_id: pulumi.Input[str]
    """An EKS image of Amazon Linux 2023 for its processor and your version of Kubernetes."""
    nodes_per_zone: NotRequired[int]
    """How many machines in each zone: 1 to 100. 1 by default."""
    pool: NotRequired[str]
    """What the machines' pool is called: it stands in their names, and is the value of the label
    `stillwater.dev/pool`. `broker` by default."""
    instance_profile_arn: NotRequired[pulumi.Input[str]]
    """An instance profile whose role may join the cluster: another pool's, or yours. Without it a
    role is made, with an access entry."""
    encryption_key: NotRequired[pulumi.Input[str]]
    """The ARN of the key of the root volumes. By default the account's own."""
    node_shutdown_seconds: NotRequired[int]
    """How long the kubelet holds a shutdown back for its pods: 61 to 3600. By default what our own
    stacks take."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of yours, for whatever is made."""


class BrokerNodes(pulumi.ComponentResource):
    """One Auto Scaling group for each zone, on one subnet: a broker's volume stays in its zone, so
    its next machine must come from there. Twice as many machines may stand there for a while, the
    replacement comes first, and a termination that is abandoned keeps the machine. Machines
    register with the taint `dedicated=kafka:NoSchedule`.

    A new image or type reaches the machines that start from then on; none is replaced by itself."""

    group_names: pulumi.Output[dict[str, str]]
    """The groups' names by zone: what `Hooks` is given."""
    instance_profile_arn: pulumi.Output[str]
    """The machines' instance profile: what the next pool is given."""

    def __init__(
        self, name: str, args: BrokerNodesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(NODES_TYPE, name, None, opts)
        made = groups.BrokerNodes(name, _facts(args), opts=pulumi.ResourceOptions(parent=self))
        pool = facts.text(args, "pool", POOL, "broker", "broker")
        self.group_names = pulumi.Output.all(
            **{
                zone: made.group_names[kafka_node_pool(pool, zone)]
                for zone in sorted(args["subnet_ids"])
            }
        )
        self.instance_profile_arn = made.instance_profile_arn
        self.register_outputs(
            {"groupNames": self.group_names, "instanceProfileArn": self.instance_profile_arn}
        )


def _facts(args: BrokerNodesArgs) -> groups.BrokerNodesArgs:
    cluster = facts.text(args, "cluster", CALLED, "shop-orders")
    subnets = facts.names_by_key(args, "subnet_ids", ZONE, "availability zones like us-east-1a")
    pool = groups.MachinePool(
        name=facts.text(args, "pool", POOL, "broker", "broker"),
        zones=list(subnets),
        nodes_per_zone=facts.whole_number(args, "nodes_per_zone", 1, MOST_PER_ZONE, 1),
        instance_type=facts.text(args, "instance_type", INSTANCE_TYPE, "r7g.xlarge"),
        image_id=args["image_id"],
    )
    return groups.BrokerNodesArgs(
        prefix=cluster,
        pools=[pool],
        cluster=ClusterAccess(
            name=facts.text(args, "eks_cluster", facts.EKS_CLUSTER, "shop"),
            endpoint=args["endpoint"],
            ca=args["certificate_authority"],
            service_cidr=args["service_cidr"],
        ),
        security_group_ids=facts.names(args, "security_group_ids"),
        private_subnet_ids=subnets,
        node_shutdown_seconds=facts.whole_number(
            args,
            "node_shutdown_seconds",
            SHORTEST_SHUTDOWN_SECONDS,
            LONGEST_SHUTDOWN_SECONDS,
            Timings().node_shutdown_seconds,
        ),
        tags=Tags(cluster=cluster, environment=None, extra=facts.tags(args, "tags")),
        encryption_key=args.get("encryption_key"),
        instance_profile_arn=args.get("instance_profile_arn"),
        not_inherited={CLUSTER_TAG},
    )
