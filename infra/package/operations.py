"""`Operations` for programs in any language: what operates one Kafka that exists."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi

from infra.adopt import operations
from infra.adopt.owners import refuse_others
from infra.iam import Account
from infra.package import adopted, facts
from infra.package.adopted import Kafka, Machines

TYPE = "stillwater:index:Operations"
LEVELS = ("watch", "gate", "act")


class OperationsArgs(TypedDict):
    level: str
    """How much may be done: `watch`, `gate` or `act`."""
    cluster: str
    """What everything of ours is called by, such as shop-orders."""
    eks_cluster: str
    """The EKS cluster's name."""
    endpoint: pulumi.Input[str]
    """Its API server: `https://` and a name."""
    certificate_authority: pulumi.Input[str]
    """Its authority as EKS gives it: base64."""
    kafka: Kafka
    """The one Kafka that is meant."""
    machines: Machines
    """What holds its nodes: one kind of machines at least."""
    subnet_ids: Sequence[pulumi.Input[str]]
    """Where the functions stand: subnets from which the API server, the listener and AWS's own
    addresses are reached."""
    security_group_ids: Sequence[pulumi.Input[str]]
    """What the functions stand behind: the API server and the brokers must let them in."""
    drainer: NotRequired[str]
    """Whose termination handler drains at `act`: `theirs`, `ours`, or `none`, where the functions
    evict. `theirs` by default."""
    queue_url: NotRequired[str]
    """The queue of their termination handler. `act` with `theirs` needs it."""
    gate_image: NotRequired[str]
    """The eviction gate's image with its version. `gate` needs it; at `act` a gate is made where it
    is given."""
    gate_elsewhere: NotRequired[bool]
    """Whether an `EvictionGate` of yours is that gate, so that none is made here. Off by
    default."""
    slack_channel: NotRequired[str]
    """Slack's id of the channel in which incidents are told."""
    slack_secret_name: NotRequired[str]
    """The secret in Secrets Manager with the bot's token. The channel needs it."""
    alerts_topic_arn: NotRequired[str]
    """A topic of SNS that hears of alarms. Without it there are none."""


class Operations(pulumi.ComponentResource):
    """The ledger, queues, rules and functions beside one Kafka: what the `operations` stack of a
    description makes. At `watch` nothing of the cluster's is changed; at `gate` an eviction gate
    answers; at `act` the Auto Scaling groups that are named get hooks and a tag.

    It needs a `kubernetes` provider of that cluster beside the one of AWS. The groups must exist
    before."""

    ledger_table: pulumi.Output[str]
    """The table in which incidents are kept."""
    events_queue_url: pulumi.Output[str]
    """The queue on which announcements arrive."""
    ticks_queue_url: pulumi.Output[str]
    """The queue that asks for the next step of an incident."""
    incidents_bucket: pulumi.Output[str]
    """The bucket in which closed incidents are filed: what `Report` is given."""

    def __init__(
        self, name: str, args: OperationsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        account = Account.current(pulumi.InvokeOptions(parent=self))
        subnets = facts.names(args, "subnet_ids")
        groups = facts.names(args, "security_group_ids")
        level = facts.one_of(args, "level", LEVELS)
        description, cluster = adopted.adoption_of(
            args,
            account.region,
            level=level,
            subnets=adopted.ids(subnets, adopted.LATE_SUBNET),
            security_groups=adopted.ids(groups, adopted.LATE_SECURITY_GROUP),
            drainer=args.get("drainer"),
            queue_url=args.get("queue_url"),
            eviction_gate=adopted.gate(args, "gate_image"),
            slack=adopted.slack(args),
            alerts=adopted.alerts(args),
        )
        if level != "watch":
            refuse_others(
                description.scaling_groups, {cluster.prefix}, pulumi.InvokeOptions(parent=self)
            )
        made = operations.Operations(
            name,
            operations.OperationsArgs(
                cluster=cluster,
                account=account,
                groups=description.matched,
                endpoint=args["endpoint"],
                authority=args["certificate_authority"],
                bootstrap=description.kafkas[0].bootstrap or "",
                subnet_ids=subnets,
                security_group_ids=groups,
                makes_gate=not facts.yes(args, "gate_elsewhere"),
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.ledger_table = made.ledger_table
        self.events_queue_url = made.events_queue_url
        self.ticks_queue_url = made.ticks_queue_url
        self.incidents_bucket = made.incidents_bucket
        self.register_outputs(
            {
                "ledgerTable": self.ledger_table,
                "eventsQueueUrl": self.events_queue_url,
                "ticksQueueUrl": self.ticks_queue_url,
                "incidentsBucket": self.incidents_bucket,
            }
        )
